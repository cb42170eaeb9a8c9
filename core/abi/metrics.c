/* metrics.c - metric families, metrics, their arguments, and the text. */

#include "core/abi/metrics.h"
#include "core/abi/objects.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/queue.h"

#define HANDLES_RANK 69

struct TRITONSERVER_MetricFamily {
    inf_metric_family_t *family;
    _Atomic size_t       metrics;       /* seq_cst: number of live metrics of
                                           this family                       */
};

struct TRITONSERVER_Metric {
    TRITONSERVER_MetricFamily *family;
    inf_metric_series_t       *series;
};

struct TRITONSERVER_MetricArgs {
    bool      histogram;                /* SetHistogram was called           */
    double   *bounds;
    size_t    bound_count;
};

struct TRITONSERVER_Metrics {
    inf_link_t             link;        /* handles_lock                      */
    inf_metrics_writer_fn  writer;      /* handles_lock; NULL: none, or userp
                                           is gone                           */
    void                  *userp;
    inf_buf_t              text;        /* of the last MetricsFormatted      */
};

/* Rank 69; guards the list of handles. */
static inf_lock_t handles_lock = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = HANDLES_RANK
};
static inf_link_t handles = { &handles, &handles };     /* handles_lock      */

static TRITONSERVER_Error *check_args(const TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_MetricArgs *args);
static TRITONSERVER_Error *read_labels(const TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_Parameter **labels, uint64_t count,
    inf_metric_label_t **out);
static inf_metric_kind_t kind_of(const TRITONSERVER_Metric *metric);
static TRITONSERVER_Error *unsupported(const TRITONSERVER_Metric *metric,
    const char *operation);

TRITONSERVER_Error *
TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family,
    const TRITONSERVER_MetricKind kind, const char *name,
    const char *description)
{
    if ((unsigned) kind > TRITONSERVER_METRIC_KIND_HISTOGRAM) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "Unsupported kind passed to MetricFamily constructor. (%d for"
            " '%s')", (int) kind, name);
    }

    TRITONSERVER_MetricFamily *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_metric_family_get((inf_metric_kind_t) kind, name,
        description, &f->family);
    if (err != NULL) {
        free(f);
        return err;
    }

    *family = f;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family)
{
    if (family == NULL) {
        return NULL;
    }

    size_t alive = atomic_load(&family->metrics);
    if (alive > 0) {
        return inf_err_new(INF_ERR_INTERNAL, "Must call MetricDelete on all"
            " dependent metrics before calling MetricFamilyDelete. (%zu"
            " metrics of '%s')", alive,
            inf_metric_family_name(family->family));
    }

    free(family);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family,
    TRITONSERVER_MetricKind *kind)
{
    *kind = (TRITONSERVER_MetricKind) inf_metric_family_kind(family->family);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args)
{
    *args = calloc(1, sizeof(**args));
    return *args != NULL ? NULL : inf_err_nomem();
}

TRITONSERVER_Error *
TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args,
    const double *buckets, const uint64_t buckets_count)
{
    if (buckets_count > SIZE_MAX / sizeof(double) - 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%llu histogram buckets are"
            " too many", (unsigned long long) buckets_count);
    }

    double *copy = calloc(buckets_count + 1, sizeof(*copy));
    if (copy == NULL) {
        return inf_err_nomem();
    }
    if (buckets_count > 0) {
        memcpy(copy, buckets, buckets_count * sizeof(*copy));
    }

    free(args->bounds);
    args->bounds = copy;
    args->bound_count = buckets_count;
    args->histogram = true;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args)
{
    if (args != NULL) {
        free(args->bounds);
        free(args);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric,
    TRITONSERVER_MetricFamily *family, const TRITONSERVER_Parameter **labels,
    const uint64_t label_count)
{
    return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count,
        NULL);
}

TRITONSERVER_Error *
TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric,
    TRITONSERVER_MetricFamily *family, const TRITONSERVER_Parameter **labels,
    const uint64_t label_count, const TRITONSERVER_MetricArgs *args)
{
    inf_err_t *err = check_args(family, args);
    if (err != NULL) {
        return err;
    }

    inf_metric_label_t *pairs = NULL;
    err = read_labels(family, labels, label_count, &pairs);
    if (err != NULL) {
        return err;
    }

    TRITONSERVER_Metric *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        err = inf_err_nomem();
    } else {
        err = inf_metric_series_get(family->family, pairs, label_count,
            args != NULL ? args->bounds : NULL,
            args != NULL ? args->bound_count : 0, &m->series);
    }

    free(pairs);
    if (err != NULL) {
        free(m);
        return err;
    }

    m->family = family;
    atomic_fetch_add(&family->metrics, 1);
    *metric = m;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric)
{
    if (metric != NULL) {
        inf_metric_series_drop(metric->series);
        atomic_fetch_sub(&metric->family->metrics, 1);
        free(metric);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric, double *value)
{
    if (kind_of(metric) == INF_METRIC_HISTOGRAM) {
        return unsupported(metric, "Value");
    }

    *value = inf_metric_value(metric->series);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric, double value)
{
    switch (kind_of(metric)) {
    case INF_METRIC_COUNTER:
        if (!(value >= 0)) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented"
                " monotonically by non-negative values. (%g)", value);
        }
        break;
    case INF_METRIC_GAUGE:
        break;
    case INF_METRIC_HISTOGRAM:
        return unsupported(metric, "Increment");
    }

    inf_metric_add(metric->series, value);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric, double value)
{
    if (kind_of(metric) != INF_METRIC_GAUGE) {
        return unsupported(metric, "Set");
    }

    inf_metric_set(metric->series, value);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric, double value)
{
    if (kind_of(metric) != INF_METRIC_HISTOGRAM) {
        return unsupported(metric, "Observe");
    }

    inf_metric_observe(metric->series, value);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
    TRITONSERVER_MetricKind *kind)
{
    *kind = (TRITONSERVER_MetricKind) kind_of(metric);
    return NULL;
}

TRITONSERVER_Metrics *
inf_metrics_new(inf_metrics_writer_fn writer, void *userp)
{
    TRITONSERVER_Metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics != NULL) {
        metrics->writer = writer;
        metrics->userp = userp;
        inf_buf_init(&metrics->text);
        inf_lock(&handles_lock);
        inf_list_push_back(&handles, &metrics->link);
        inf_unlock(&handles_lock);
    }
    return metrics;
}

void
inf_metrics_forget(const void *userp)
{
    inf_lock(&handles_lock);
    for (inf_link_t *l = handles.next; l != &handles; l = l->next) {
        TRITONSERVER_Metrics *m = inf_link_entry(l, TRITONSERVER_Metrics,
            link);
        m->writer = m->userp == userp ? NULL : m->writer;
    }
    inf_unlock(&handles_lock);
}

TRITONSERVER_Error *
TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics)
{
    if (metrics != NULL) {
        inf_lock(&handles_lock);
        inf_link_remove(&metrics->link);
        inf_unlock(&handles_lock);
        inf_buf_fini(&metrics->text);
        free(metrics);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics,
    TRITONSERVER_MetricFormat format, const char **base, size_t *byte_size)
{
    if (format != TRITONSERVER_METRIC_PROMETHEUS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown metrics format '%d'",
            (int) format);
    }

    inf_lock(&handles_lock);
    inf_metrics_writer_fn writer = metrics->writer;
    inf_unlock(&handles_lock);

    inf_buf_reset(&metrics->text);
    if (writer != NULL) {
        writer(metrics->userp, &metrics->text);
    }
    inf_metrics_format(&metrics->text);

    inf_err_t *err = inf_buf_status(&metrics->text);
    if (err != NULL) {
        return err;
    }

    *base = inf_buf_slice(&metrics->text).data;
    *byte_size = metrics->text.len;
    return NULL;
}

/* Checks arguments; buckets belong to histograms alone. */
static TRITONSERVER_Error *
check_args(const TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_MetricArgs *args)
{
    const char *name = inf_metric_family_name(family->family);

    inf_metric_kind_t kind = inf_metric_family_kind(family->family);

    if (kind != INF_METRIC_HISTOGRAM) {
        return args == NULL ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
            "Unexpected args found in %s Metric constructor. ('%s')",
            kind == INF_METRIC_COUNTER ? "counter" : "gauge", name);
    }

    return args != NULL && args->histogram ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "%s ('%s')", args == NULL
            ? "Bucket boundaries not found in Metric args."
            : "Metric args not set to histogram kind.", name);
}

static TRITONSERVER_Error *
read_labels(const TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_Parameter **labels, uint64_t count,
    inf_metric_label_t **out)
{
    if (count > SIZE_MAX / sizeof(inf_metric_label_t) - 1) {
        return inf_err_nomem();
    }

    inf_metric_label_t *pairs = calloc(count + 1, sizeof(*pairs));
    if (pairs == NULL) {
        return inf_err_nomem();
    }

    for (uint64_t i = 0; i < count; i++) {
        const inf_parameter_t *p = (const void *) labels[i];
        if (p->type != INF_PARAMETER_STRING) {
            inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG, "Parameter [%s]"
                " must have a type of TRITONSERVER_PARAMETER_STRING to be"
                " added as a label. ('%s')", p->name,
                inf_metric_family_name(family->family));
            free(pairs);
            return err;
        }

        pairs[i].name = p->name;
        pairs[i].value = p->text;
    }

    *out = pairs;
    return NULL;
}

static inf_metric_kind_t
kind_of(const TRITONSERVER_Metric *metric)
{
    return inf_metric_family_kind(metric->family->family);
}

static TRITONSERVER_Error *
unsupported(const TRITONSERVER_Metric *metric, const char *operation)
{
    static const char *const kinds[] = { "COUNTER", "GAUGE", "HISTOGRAM" };

    return inf_err_new(INF_ERR_UNSUPPORTED, "TRITONSERVER_METRIC_KIND_%s does"
        " not support %s ('%s')", kinds[kind_of(metric)], operation,
        inf_metric_family_name(metric->family->family));
}
