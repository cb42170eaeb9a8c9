/*
 * metric_registry.h - the process's own metrics: families, and their series
 *                     of values by label set.
 *
 * Owner    The registry is one per process, as the ABI's metrics need no
 *          server: they may be made before one exists and outlive it.
 *          Families are never removed.  A series belongs to its users and
 *          goes with the last of them.
 * Thread   any.  Values are relaxed atomics; the lists have one lock.
 * Units    those of the metric.
 * Errors   INVALID_ARG: a name Prometheus does not allow, a family of the
 *          same name and another kind, bounds that do not rise.
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

/* The family of that name; made at the first call, whose description stays. */
INF_CHECK inf_err_t *inf_metric_family_get(inf_metric_kind_t kind,
    const char *name, const char *description, inf_metric_family_t **out);

/* As the family was made. */
inf_metric_kind_t inf_metric_family_kind(const inf_metric_family_t *f);
const char *inf_metric_family_name(const inf_metric_family_t *f);

/* The series of that label set, one user more; ends with series_drop.  A
   label name given twice: the last value counts.  Bounds are a histogram's
   upper bucket bounds; those of the series' first user stay. */
INF_CHECK inf_err_t *inf_metric_series_get(inf_metric_family_t *f,
    const inf_metric_label_t *labels, size_t label_count, const double *bounds,
    size_t bound_count, inf_metric_series_t **out);

/* One user less; series may be NULL. */
void inf_metric_series_drop(inf_metric_series_t *series);

/* Counter and gauge. */
void inf_metric_add(inf_metric_series_t *series, double value);
void inf_metric_set(inf_metric_series_t *series, double value);
double inf_metric_value(const inf_metric_series_t *series);

/* The value of a series of that gauge which has the label; with several, of
   the one made last.  false: there is none. */
bool inf_metric_find_gauge(const char *family, const inf_metric_label_t *label,
    double *value);

/* Histogram. */
void inf_metric_observe(inf_metric_series_t *series, double value);

/* As in the text: 16 digits, "Nan", "+Inf", "-Inf", always a point. */
void inf_metric_put_number(inf_buf_t *out, double value);
void inf_metric_put_count(inf_buf_t *out, uint64_t count);

/* Appends every family that has a series, as Prometheus text 0.0.4. */
void inf_metrics_format(inf_buf_t *out);

#endif /* INF_SERVER_METRIC_REGISTRY_H */
