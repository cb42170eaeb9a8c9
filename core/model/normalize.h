/*
 * normalize.h - converts a request to the form its model expects, or rejects
 *               it.
 *
 * Owner    The request stays the caller's; new shapes are in its arena.
 * Thread   one at a time per request.
 * Units    dims are elements, sizes bytes.
 * Errors   INVALID_ARG naming the tensor, the expected and the actual value.
 * Route    record -> request -> [normalise] -> scheduler.
 */

#ifndef INF_MODEL_NORMALIZE_H
#define INF_MODEL_NORMALIZE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/*
 * Checks names, counts, datatypes, shapes and byte sizes, splits off the batch,
 * applies the configured reshape, and wants all outputs if none is wanted.  Its
 * time depends on the number of tensors, whose bytes are not read; strings
 * remain to be checked by string_check.h.
 */
INF_CHECK inf_err_t *inf_request_normalize(const inf_model_t *model,
    inf_request_t *req);

/* Checks, before many are added, that the model has an output of that name. */
INF_CHECK inf_err_t *inf_model_knows_output(const inf_model_t *model,
    inf_slice_t name);

#endif /* INF_MODEL_NORMALIZE_H */
