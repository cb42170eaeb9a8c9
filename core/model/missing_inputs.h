/*
 * missing_inputs.h - the error of a request that lacks inputs.
 *
 * Owner    The error is the caller's.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the inputs that came and those that are missing.
 * Route    request -> normalise -> [error]
 */

#ifndef INF_MODEL_MISSING_INPUTS_H
#define INF_MODEL_MISSING_INPUTS_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/* given: for each input of the configuration whether it came.  The names that
   came are sorted, as Triton's text has them. */
INF_CHECK inf_err_t *inf_model_missing_inputs(const inf_model_t *model,
    const inf_request_t *req, const bool *given);

#endif /* INF_MODEL_MISSING_INPUTS_H */
