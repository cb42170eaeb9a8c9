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

#endif /* INF_MODEL_NORMALIZE_H */
