/*
 * metric_registry.h - the process's own metrics: families, and their series by
 *                     label set.
 *
 * Owner    One registry per process: the ABI's metrics need no server, and may
 *          be created before one and outlive it.  Families are never removed.
 *          A series belongs to its users and is removed with the last.
 * Thread   any.  Values are relaxed atomics; the lists have one lock.
 * Units    those of the metric.
 * Errors   INVALID_ARG: a name Prometheus does not allow, a family of the same
 *          name and another kind, bounds that do not rise.
 * Route    plug-in -> metrics.c -> [metric registry] -> metrics text.
 */

#ifndef INF_SERVER_METRIC_REGISTRY_H
#define INF_SERVER_METRIC_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"

/* The values are those of TRITONSERVER_MetricKind. */
typedef enum {
    INF_METRIC_COUNTER   = 0,
    INF_METRIC_GAUGE     = 1,
    INF_METRIC_HISTOGRAM = 2
} inf_metric_kind_t;

typedef struct inf_metric_series_s inf_metric_series_t;
typedef struct inf_metric_family_s inf_metric_family_t;

typedef struct {
    const char *name;
    const char *value;
} inf_metric_label_t;

/* The family of that name, created by the first call, whose description is
   kept. */
INF_CHECK inf_err_t *inf_metric_family_get(inf_metric_kind_t kind,
    const char *name, const char *description, inf_metric_family_t **out);

/* The kind and the name that the family was created with. */
inf_metric_kind_t inf_metric_family_kind(const inf_metric_family_t *f);
const char *inf_metric_family_name(const inf_metric_family_t *f);

/* The series of that label set with one user more; release with series_drop.
   Of a label name given twice the last value counts.  Bounds are a histogram's
   upper bucket bounds; the first user's are kept. */
INF_CHECK inf_err_t *inf_metric_series_get(inf_metric_family_t *f,
    const inf_metric_label_t *labels, size_t label_count, const double *bounds,
    size_t bound_count, inf_metric_series_t **out);

/* Removes one user; series may be NULL. */
void inf_metric_series_drop(inf_metric_series_t *series);

/* Functions of counters and gauges. */
void inf_metric_add(inf_metric_series_t *series, double value);
void inf_metric_set(inf_metric_series_t *series, double value);
double inf_metric_value(const inf_metric_series_t *series);

/* The value of a series of that gauge with the label; of several, the newest.
   false: none. */
bool inf_metric_find_gauge(const char *family, const inf_metric_label_t *label,
    double *value);

/* Adds an observation to a histogram. */
void inf_metric_observe(inf_metric_series_t *series, double value);

/* The two lines before a family's values; type as Prometheus has it. */
void inf_metric_put_head(inf_buf_t *out, const char *name, const char *help,
    const char *type);

/* A whole family: one value without labels. */
void inf_metric_put_one(inf_buf_t *out, const char *name, const char *help,
    const char *type, double value);

/* As in the text: 16 digits, "Nan", "+Inf", "-Inf", always a point. */
void inf_metric_put_number(inf_buf_t *out, double value);
void inf_metric_put_count(inf_buf_t *out, uint64_t count);

/* Appends every family that has a series, as Prometheus text 0.0.4. */
void inf_metrics_format(inf_buf_t *out);

#endif /* INF_SERVER_METRIC_REGISTRY_H */
