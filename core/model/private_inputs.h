/*
 * private_inputs.h - copies of a request's inputs, for a backend that writes
 *                    into them, trusts them to stay as they were checked, or
 *                    can't read them where they are.
 *
 * Owner    The copies live in the request's arena.
 * Thread   the thread that takes the payload, or asks a strategy
 *          about the request.
 * Units    bytes.
 * Errors   wanted: INVALID_ARG, the parameter's value is none.  make: out of
 *          memory; UNAVAILABLE, the copies of other requests leave no room;
 *          INVALID_ARG, there never is as much.
 * Route    runtime -> [private inputs] -> string check -> executor
 *
 * Backends read inputs where the worker received them.  The core maps that
 * memory read-only, but the worker, whose memory it is, may still write to it;
 * and an ensemble's steps may share an output.  A model whose parameter
 * INFERENCE_WRITABLE_INPUTS is "true" gets copies that are nobody else's.
 *
 * Inputs of a client's CUDA region, and outputs of a step on a GPU, lie on that
 * GPU.  An instance of another kind than KIND_GPU gets them on the host:
 * backends built for CPUs cannot read a GPU's memory.  Backend onnxruntime
 * binds whole tensors of its instance's GPU and can't read others: a step of an
 * ensemble that runs on another GPU than the one before gets them on the host.
 */

#ifndef INF_MODEL_PRIVATE_INPUTS_H
#define INF_MODEL_PRIVATE_INPUTS_H

#include <stdbool.h>

#include "core/tensor/request.h"
#include "model_config.pb-c.h"

/* The model's parameter: "true" or "false". */
#define INF_PRIVATE_INPUTS_KEY "INFERENCE_WRITABLE_INPUTS"

/* Without the parameter: true for backends that are known to write. */
INF_CHECK inf_err_t *inf_private_inputs_wanted(
    const Inference__ModelConfig *msg, bool *wanted);

/* Whether the backend reads of a GPU only whole tensors of its instance's. */
bool inf_private_inputs_own_gpu(const Inference__ModelConfig *msg);

/* In place of a GPU's number. */
#define INF_INPUTS_ANY_GPU INT64_C(-1)
#define INF_INPUTS_NO_GPU  INT64_C(-2)

/*
 * Nothing to do unless inputs are SHARED, which they are not afterwards, or
 * bytes on a GPU don't lie where they are read.  gpu: whole tensors on that
 * one stay there, at an address that is a multiple of their element's size;
 * other bytes on a GPU are copied to the host.  INF_INPUTS_ANY_GPU: all stay,
 * unless they are strings of a region.  INF_INPUTS_NO_GPU: none do.
 * req->copies bounds copies of regions: any number of requests may name one
 * region, while other inputs are no larger than what their requests hold
 * anyway.
 */
INF_CHECK inf_err_t *inf_private_inputs_make(inf_request_t *req, int64_t gpu);

#endif /* INF_MODEL_PRIVATE_INPUTS_H */
