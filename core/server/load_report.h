/*
 * load_report.h - how full the KV cache of the server is, as backends for
 *                 language models tell by a gauge: for clients that ask for
 *                 endpoint-load-metrics.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    of 1; tokens.
 * Errors   false: no backend has said it.
 * Route    metric registry -> [load report] -> response record -> header
 */

#ifndef INF_SERVER_LOAD_REPORT_H
#define INF_SERVER_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* used: the part of the cache that is in use; tokens: what it may hold. */
bool inf_load_report(double *used, uint64_t *tokens);

#endif /* INF_SERVER_LOAD_REPORT_H */
