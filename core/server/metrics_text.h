/*
 * metrics_text.h - the core's metrics as Prometheus text 0.0.4: models, CPUs,
 *                  pinned memory and GPUs, then the metrics that backends and
 *                  programs registered.
 *
 * Owner    The text is the caller's buffer.
 * Thread   any.
 * Units    as each family's name says.
 * Errors   out of memory.
 * Route    ready models, CPU metrics, GPU metrics, memory, registry ->
 *          [metrics text] -> C API, call of a worker
 */

#ifndef INF_SERVER_METRICS_TEXT_H
#define INF_SERVER_METRICS_TEXT_H

#include "core/base/buf.h"
#include "core/server/server.h"

/* Appends the server's own families; a value that cannot be read is logged and
   left out. */
void inf_metrics_text_server(inf_server_t *server, inf_buf_t *out);

/* Appends the server's families, then the process's registry. */
INF_CHECK inf_err_t *inf_metrics_text(inf_server_t *server, inf_buf_t *out);

/* Parses "0.5:0.05,0.9:0.01" to values from 0 to 1, at most cap; bad ones are
   logged and skipped.  Returns their number. */
size_t inf_metrics_quantiles(const char *text, double *values, size_t cap);

#endif /* INF_SERVER_METRICS_TEXT_H */
