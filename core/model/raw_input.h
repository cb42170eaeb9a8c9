/*
 * raw_input.h - the raw binary request of KServe v2: a body without a JSON
 *               header, which is the model's only input.
 *
 * Owner    The request stays the caller's and refers to the bytes; shape and
 *          the length of a string are in its arena.
 * Thread   one at a time per request.
 * Units    dims are elements, sizes bytes.
 * Errors   INVALID_ARG, UNSUPPORTED: the model's table does not determine how
 *          to read the bytes.
 * Route    record -> [raw input] -> normalise.
 */

#ifndef INF_MODEL_RAW_INPUT_H
#define INF_MODEL_RAW_INPUT_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/* Adds the raw input: name, datatype and shape are the model's, data is the
   whole body (KServe v2 raw binary request). */
INF_CHECK inf_err_t *inf_request_add_raw(const inf_model_t *model,
    inf_request_t *req, const inf_buffer_t *data);

#endif /* INF_MODEL_RAW_INPUT_H */
