/*
 * metrics.h - TRITONSERVER_Metrics: a handle whose text is created on request.
 *
 * Owner    The creator of the handle; TRITONSERVER_MetricsDelete frees it.
 * Thread   one at a time for a handle.
 * Units    bytes of Prometheus text 0.0.4.
 * Errors   out of memory.
 * Route    ServerMetrics creates it -> MetricsFormatted -> writer (the
 *          server's own families), then the registry's.
 */

#ifndef INF_ABI_METRICS_H
#define INF_ABI_METRICS_H

#include "core/abi/objects.h"
#include "core/server/metric_registry.h"

/* Appends the families outside the registry; called by the thread that calls
   MetricsFormatted, without a lock. */
typedef void (*inf_metrics_writer_fn)(void *userp, inf_buf_t *out);

/* writer may be NULL.  NULL: out of memory. */
TRITONSERVER_Metrics *inf_metrics_new(inf_metrics_writer_fn writer,
    void *userp);

/* Called before userp is freed: the registry then owns the text of its
   handles. */
void inf_metrics_forget(const void *userp);

#endif /* INF_ABI_METRICS_H */
