/*
 * statistics_json.h - what was counted of a model version, as the statistics
 *                     extension spells it.
 *
 * Owner    json is the caller's.
 * Thread   any; counters go on while they are read.
 * Units    ns, bytes; last_inference is ms of wall clock.
 * Errors   out of memory.
 * Route    api_server -> [statistics JSON] -> client
 */

#ifndef INF_SERVICE_STATISTICS_JSON_H
#define INF_SERVICE_STATISTICS_JSON_H

#include "core/base/buf.h"
#include "core/model/model.h"

/* Appends one object of "model_stats". */
INF_CHECK inf_err_t *inf_statistics_json(inf_model_t *model, inf_buf_t *json);

#endif /* INF_SERVICE_STATISTICS_JSON_H */
