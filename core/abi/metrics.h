/*
 * metrics.h - TRITONSERVER_Metrics: a handle whose text is taken when asked.
 *
 * Owner    The maker of the handle; TRITONSERVER_MetricsDelete frees it.
 * Thread   one at a time a handle.
 * Units    bytes of Prometheus text 0.0.4.
 * Errors   out of memory.
 * Route    ServerMetrics makes it -> MetricsFormatted -> writer (the server's
 *          own families), then the registry's.
 */

#ifndef INF_ABI_METRICS_H
#define INF_ABI_METRICS_H

#include "core/abi/objects.h"
#include "core/server/metric_registry.h"

/* Appends families that the registry does not hold; runs on the thread that
   calls MetricsFormatted, under no lock. */
typedef void (*inf_metrics_writer_fn)(void *userp, inf_buf_t *out);

/* writer may be NULL.  userp outlives the handle.  NULL: out of memory. */
TRITONSERVER_Metrics *inf_metrics_new(inf_metrics_writer_fn writer,
    void *userp);

#endif /* INF_ABI_METRICS_H */
