/*
 * normalize.h - brings a request into the form its model expects, or says
 *               why that can't be.
 *
 * Owner    The request stays the caller's; new shapes live in its arena.
 * Thread   one at a time per request.
 * Units    dims are elements, sizes bytes.
 * Errors   INVALID_ARG naming the tensor, what was expected and what came.
 * Route    record -> request -> [normalise] -> scheduler.
 */

#ifndef INF_MODEL_NORMALIZE_H
#define INF_MODEL_NORMALIZE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/*
 * Checks names, counts, datatypes, shapes and byte sizes, splits off the
 * batch, applies the configured reshape, and asks for all outputs when none
 * was asked for.  Its time goes by the number of tensors: no byte of theirs is
 * read, and where there are strings, string_check.h remains to be done.
 */
INF_CHECK inf_err_t *inf_request_normalize(const inf_model_t *model,
    inf_request_t *req);

/* For callers that add many tensors: whether the model has one of that
   name. */
INF_CHECK inf_err_t *inf_model_knows_input(const inf_model_t *model,
    inf_slice_t name);
INF_CHECK inf_err_t *inf_model_knows_output(const inf_model_t *model,
    inf_slice_t name);

/* req, which has asked for none, asks for all. */
void inf_request_want_all_outputs(const inf_model_t *model,
    inf_request_t *req);

/* One raw input: takes name, datatype and shape from the model; data is the
   whole body (KServe v2 raw binary request). */
INF_CHECK inf_err_t *inf_request_add_raw(const inf_model_t *model,
    inf_request_t *req, const inf_buffer_t *data);

/* The backend speaks in reshape's dims, the client reads dims: the shape of
   output t as the client sees it, in an array of twice INF_MAX_DIMS. */
INF_CHECK inf_err_t *inf_output_undo_reshape(const inf_model_t *model,
    const inf_config_tensor_t *t, const int64_t *shape, uint32_t dims,
    int64_t *client, uint32_t *client_dims);

#endif /* INF_MODEL_NORMALIZE_H */
