/*
 * wrong_inputs.h - the error of a request with unknown or missing inputs.
 *
 * Owner    The error is the caller's.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the inputs that came, those that are missing and
 *          those that the model does not have.
 * Route    request -> normalise -> [error]
 */

#ifndef INF_MODEL_WRONG_INPUTS_H
#define INF_MODEL_WRONG_INPUTS_H

#include "core/model/model.h"
#include "core/tensor/request.h"

/* Fewer inputs than the model needs, or more than it has: Triton's text, with
   sorted names, and then those that the model does not have. */
INF_CHECK inf_err_t *inf_model_wrong_inputs(const inf_model_t *model,
    const inf_request_t *req);

/* name is an input that the model does not have: as above, or, where their
   number is right, the error of that input. */
INF_CHECK inf_err_t *inf_model_unknown_input(const inf_model_t *model,
    const inf_request_t *req, const char *name);

#endif /* INF_MODEL_WRONG_INPUTS_H */
