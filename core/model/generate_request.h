/*
 * generate_request.h - converts the JSON of a generate request to inputs and
 *                      parameters of the model.
 *
 * Owner    The JSON is the caller's and not needed afterwards; the tensors are
 *          in the request's arena.
 * Thread   any; req is not queued yet.  The time depends on the length of the
 *          JSON.
 * Units    bytes.
 * Errors   INVALID_ARG: a problem of the JSON, of a member's type, or of the
 *          number of its elements.
 * Route    service -> [generate request] -> normalise -> scheduler
 */

#ifndef INF_MODEL_GENERATE_REQUEST_H
#define INF_MODEL_GENERATE_REQUEST_H

#include "core/base/slice.h"
#include "core/model/model.h"
#include "core/tensor/request.h"

/* Sets id, inputs and parameters of req, which is to be normalised afterwards.
   max_bytes: of all tensors together. */
INF_CHECK inf_err_t *inf_generate_request(const inf_model_t *model,
    inf_request_t *req, inf_slice_t json, uint64_t max_bytes);

#endif /* INF_MODEL_GENERATE_REQUEST_H */
