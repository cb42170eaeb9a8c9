/*
 * reshape.h - converts between a tensor's dims, seen by clients, and its
 *             reshape, seen by the backend.
 *
 * Owner    The backend's shape is in the request's arena; the client's is in
 *          the caller's array.
 * Thread   one at a time per request or response.
 * Units    elements.
 * Errors   INVALID_ARG: the output has other dimensions than its reshape.
 *          INTERNAL: the configuration's dims and reshape do not match.
 * Route    normalize -> [reshape] -> sched; backend -> [reshape] -> response
 */

#ifndef INF_MODEL_RESHAPE_H
#define INF_MODEL_RESHAPE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/* Sets the model's shape of input in, described by t: -1 in reshape takes the
   request's values at dims' -1, in order.  batched: 1 if the first dimension is
   the batch, otherwise 0. */
INF_CHECK inf_err_t *inf_input_reshape(inf_request_t *req, inf_input_t *in,
    const inf_config_tensor_t *t, uint32_t batched);

/* Converts the backend's shape of output t to the client's; client is an array
   of twice INF_MAX_DIMS. */
INF_CHECK inf_err_t *inf_output_undo_reshape(const inf_model_t *model,
    const inf_config_tensor_t *t, const int64_t *shape, uint32_t dims,
    int64_t *client, uint32_t *client_dims);

#endif /* INF_MODEL_RESHAPE_H */
