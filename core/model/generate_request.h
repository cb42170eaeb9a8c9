/*
 * generate_request.h - from the JSON of a generate request to the inputs and
 *                      parameters that the model knows.
 *
 * Owner    The JSON is the caller's and is not needed afterwards; the tensors
 *          are made in the request's arena.
 * Thread   any; req is not queued yet.  The time goes by the JSON's length.
 * Units    bytes.
 * Errors   INVALID_ARG: what is wrong with the JSON, with a member's type, or
 *          with the number of its elements.
 * Route    service -> [generate request] -> normalise -> scheduler
 */

#ifndef INF_MODEL_GENERATE_REQUEST_H
#define INF_MODEL_GENERATE_REQUEST_H

#include "core/base/slice.h"
#include "core/model/model.h"
#include "core/tensor/request.h"

/* Sets id, inputs and parameters of req; it is normalised after that. */
INF_CHECK inf_err_t *inf_generate_request(const inf_model_t *model,
    inf_request_t *req, inf_slice_t json);

#endif /* INF_MODEL_GENERATE_REQUEST_H */
