/*
 * load_report.h - usage of the server's KV cache, from the gauges of language
 *                 model backends, for clients that ask for
 *                 endpoint-load-metrics.
 *
 * Owner    none.
 * Thread   any.
 * Units    a share from 0 to 1; tokens.
 * Errors   false: no backend has set the gauges.
 * Route    metric registry -> [load report] -> response record -> header
 */

#ifndef INF_SERVER_LOAD_REPORT_H
#define INF_SERVER_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* used: share of the cache in use; tokens: capacity of the cache. */
bool inf_load_report(double *used, uint64_t *tokens);

#endif /* INF_SERVER_LOAD_REPORT_H */
