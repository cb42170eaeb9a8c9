/*
 * cache_metrics.h - counters of the built-in response cache as Prometheus text
 *                   0.0.4.
 *
 * Owner    The text is the caller's buffer.
 * Thread   any.
 * Units    us where a family is a time.
 * Errors   none: the buffer's own state.
 * Route    response cache -> [cache metrics] -> metrics text
 */

#ifndef INF_SERVER_CACHE_METRICS_H
#define INF_SERVER_CACHE_METRICS_H

#include "core/base/buf.h"
#include "core/server/server_cache.h"

/* Appends nothing without a built-in cache; a cache plug-in registers its own
   metrics. */
void inf_cache_metrics_text(const inf_server_cache_t *cache, inf_buf_t *out);

#endif /* INF_SERVER_CACHE_METRICS_H */
