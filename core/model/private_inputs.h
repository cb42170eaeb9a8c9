/*
 * private_inputs.h - copies a request's inputs for a backend that writes to
 *                    them, relies on their checked contents, or cannot read
 *                    them where they are.
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
 * Backends read inputs in the memory where the worker received them.  The core
 * maps that memory read-only, but the worker, which owns it, may still write to
 * it; and steps of an ensemble may share an output.  A model with the parameter
 * INFERENCE_WRITABLE_INPUTS "true" gets copies that nothing else uses.
 *
 * Inputs in a client's CUDA region, and outputs of a step on a GPU, are on that
 * GPU.  An instance of another kind than KIND_GPU gets them on the host,
 * because backends built for CPUs cannot read GPU memory.  Backend onnxruntime
 * binds whole tensors of its instance's GPU and cannot read others: a step of
 * an ensemble on another GPU than the previous one gets them on the host.
 */

#ifndef INF_MODEL_PRIVATE_INPUTS_H
#define INF_MODEL_PRIVATE_INPUTS_H

#include <stdbool.h>

#include "core/tensor/request.h"
#include "model_config.pb-c.h"

/* The model's parameter: "true" or "false". */
#define INF_PRIVATE_INPUTS_KEY "INFERENCE_WRITABLE_INPUTS"

/* Whether the model gets copies; without the parameter true for backends known
   to write. */
INF_CHECK inf_err_t *inf_private_inputs_wanted(
    const Inference__ModelConfig *msg, bool *wanted);

/* Whether the backend reads only whole tensors of its instance's own GPU. */
bool inf_private_inputs_own_gpu(const Inference__ModelConfig *msg);

/* Instead of a GPU's number. */
#define INF_INPUTS_ANY_GPU INT64_C(-1)
#define INF_INPUTS_NO_GPU  INT64_C(-2)

/*
 * Copies inputs that are SHARED, or on a GPU where the instance cannot read
 * them; afterwards none is SHARED.  gpu: whole tensors on it stay if aligned to
 * their element size; other bytes on a GPU are copied to the host.
 * INF_INPUTS_ANY_GPU: all stay, except strings of a region.  INF_INPUTS_NO_GPU:
 * none stays. req->copies limits copies of regions, which any number of
 * requests may name; other inputs are no larger than what their requests hold.
 */
INF_CHECK inf_err_t *inf_private_inputs_make(inf_request_t *req, int64_t gpu);

#endif /* INF_MODEL_PRIVATE_INPUTS_H */
