/*
 * private_inputs.h - copies a request's inputs for a backend that cannot use
 *                    the inputs where they are.
 *
 * Owner    The copies are in the request's arena.
 * Thread   the thread that takes the payload, or that asks a strategy about the
 *          request.
 * Units    bytes.
 * Errors   wanted: INVALID_ARG, the parameter's value is invalid.  make: out of
 *          memory; UNAVAILABLE, copies of other requests leave no room;
 *          INVALID_ARG, the copies exceed the limit.
 * Route    runtime -> [private inputs] -> string check -> executor
 *
 * Backends read inputs in the memory where the worker received them.  There are
 * two reasons for a copy:
 *
 * Others may write.  The core maps that memory read-only, but the worker owns
 * the memory and may write to it; steps of an ensemble may share an output.  A
 * backend that writes to inputs, or relies on their checked contents, needs
 * copies: the model has the parameter INFERENCE_WRITABLE_INPUTS "true".
 *
 * The backend cannot read the memory.  Inputs in a client's CUDA region, and
 * outputs of a step on a GPU, are on that GPU.  An instance of another kind
 * than KIND_GPU gets copies on the host, because backends built for CPUs cannot
 * read GPU memory.  Backend onnxruntime binds whole tensors of its instance's
 * GPU and reads no other GPU: a step on another GPU than the step before gets
 * copies on the host.
 */

#ifndef INF_MODEL_PRIVATE_INPUTS_H
#define INF_MODEL_PRIVATE_INPUTS_H

#include <stdbool.h>

#include "core/tensor/request.h"
#include "model_config.pb-c.h"

/* The model's parameter: "true" or "false". */
#define INF_PRIVATE_INPUTS_KEY "INFERENCE_WRITABLE_INPUTS"

/* Whether the model gets copies.  Without the parameter: whether the backend is
   known to write to inputs. */
INF_CHECK inf_err_t *inf_private_inputs_wanted(
    const Inference__ModelConfig *msg, bool *wanted);

/* Whether the backend reads only whole tensors of its instance's own GPU. */
bool inf_private_inputs_own_gpu(const Inference__ModelConfig *msg);

/* Instead of a GPU's number. */
#define INF_INPUTS_ANY_GPU INT64_C(-1)
#define INF_INPUTS_NO_GPU  INT64_C(-2)

/*
 * Copies the inputs that are SHARED, or on a GPU where the instance cannot read
 * them.  Afterwards no input is SHARED.
 *
 * gpu says what stays on a GPU; all other bytes on GPUs are copied to the host.
 *     a number             whole tensors on that GPU, aligned to their elements
 *     INF_INPUTS_ANY_GPU   everything but strings of a region
 *     INF_INPUTS_NO_GPU    nothing
 *
 * req->copies limits the copies of regions, because any number of requests may
 * name one region.  Other inputs are no larger than what their requests hold.
 */
INF_CHECK inf_err_t *inf_private_inputs_make(inf_request_t *req, int64_t gpu);

#endif /* INF_MODEL_PRIVATE_INPUTS_H */
