/*
 * response_check.h - is what a backend made fit to be sent.
 *
 * Owner    nothing is kept; a text that had to be changed is in the
 *          response's arena.
 * Thread   as the response's.
 * Units    bytes.
 * Errors   INTERNAL: the backend, the model, the output or parameter, and
 *          what is wrong with it.
 * Route    backend -> infer's sink -> [response_check] -> record
 *
 * The worker that reads the record checks it too, because it trusts nobody,
 * but it knows no names.
 */

#ifndef INF_SERVICE_RESPONSE_CHECK_H
#define INF_SERVICE_RESPONSE_CHECK_H

#include "core/base/slice.h"
#include "core/model/model.h"
#include "core/tensor/response.h"

/* model may be NULL: a response to a request that found none. */
INF_CHECK inf_err_t *inf_response_check(const inf_model_t *model,
    const inf_response_t *response);

/* text as UTF-8, other bytes as '?'; "" when out of memory. */
inf_slice_t inf_response_readable(inf_arena_t *arena, const char *text);

#endif /* INF_SERVICE_RESPONSE_CHECK_H */
