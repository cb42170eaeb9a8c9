/*
 * metrics.h - metric families and metrics created by a model.
 *
 * Owner    The interpreter; they are deleted at its process's end.
 * Thread   the thread with the consumer role.
 * Units    none.
 * Errors   The server's errors; INVALID_ARG: an unknown id.
 * Route    calls -> [metrics] -> server
 */

#ifndef PY_METRICS_H
#define PY_METRICS_H

#include "link.h"

typedef struct {
    TRITONSERVER_MetricFamily *family;      /* NULL: deleted                 */
} py_family_t;

typedef struct {
    TRITONSERVER_Metric *metric;            /* NULL: deleted                 */
    uint64_t             family;
    uint32_t             generation;        /* of its place; part of the id  */
} py_metric_t;

typedef struct {
    py_family_t  *families;
    size_t        family_count;
    py_metric_t  *metrics;
    size_t        metric_count;
} py_metrics_t;

/* Deletes all metrics and families. */
void py_metrics_fini(py_metrics_t *m);

/* Carries out one of PY_UP_FAMILY_NEW to PY_UP_METRIC_VALUE; writes the result
   (an id, a value, or none) to w. */
BK_CHECK TRITONSERVER_Error *py_metrics_call(py_metrics_t *m, py_up_t kind,
    uint64_t id, py_reader_t *r, py_writer_t *w);

#endif /* PY_METRICS_H */
