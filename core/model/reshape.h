/*
 * reshape.h - between the dims of a tensor that clients see and those of its
 *             reshape, which the backend sees.
 *
 * Owner    The shape for the backend lives in the request's arena; the one for
 *          the client is the caller's array.
 * Thread   one at a time per request or response.
 * Units    elements.
 * Errors   INVALID_ARG: the output has other dimensions than its reshape.
 *          INTERNAL: the configuration's dims and reshape don't fit.
 * Route    normalise -> [reshape] -> scheduler; backend -> [reshape] -> response
 */

#ifndef INF_MODEL_RESHAPE_H
#define INF_MODEL_RESHAPE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/* Sets the model's shape of in, an input that is described by t: -1 entries of
   reshape take the request's values at dims' -1, in order.  batched: 1 where
   the first dimension is the batch, else 0. */
INF_CHECK inf_err_t *inf_input_reshape(inf_request_t *req, inf_input_t *in,
    const inf_config_tensor_t *t, uint32_t batched);

/* The shape of output t as the client sees it, from the one that the backend
   gave; client is an array of twice INF_MAX_DIMS. */
INF_CHECK inf_err_t *inf_output_undo_reshape(const inf_model_t *model,
    const inf_config_tensor_t *t, const int64_t *shape, uint32_t dims,
    int64_t *client, uint32_t *client_dims);

#endif /* INF_MODEL_RESHAPE_H */
