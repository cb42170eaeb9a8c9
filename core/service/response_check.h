/*
 * response_check.h - checks whether a backend's response can be sent.
 *
 * Owner    none; a text that had to be changed is in the response's arena.
 * Thread   as the response's.
 * Units    bytes.
 * Errors   INTERNAL: the backend, the model, the output or parameter, and the
 *          problem.
 * Route    backend -> infer's sink -> [response_check] -> record
 *
 * The worker checks the record, too, because it does not trust the core, but it
 * has no names.
 */

#ifndef INF_SERVICE_RESPONSE_CHECK_H
#define INF_SERVICE_RESPONSE_CHECK_H

#include "core/base/slice.h"
#include "core/model/model.h"
#include "core/tensor/response.h"

/* Checks a response; model may be NULL if the request found none. */
INF_CHECK inf_err_t *inf_response_check(const inf_model_t *model,
    const inf_response_t *response);

/* text as UTF-8, with other bytes as '?'; "" when out of memory. */
inf_slice_t inf_response_readable(inf_arena_t *arena, const char *text);

#endif /* INF_SERVICE_RESPONSE_CHECK_H */
