#include "core/model/latencies.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#define HISTOGRAM_OPTIONS \
    INFERENCE__MODEL_METRICS__METRIC_CONTROL__METRIC_OPTIONS_HISTOGRAM_OPTIONS

static bool make_summaries(inf_latencies_t *l);
static inf_err_t *make_histogram(inf_latencies_t *l,
    const Inference__ModelConfig *msg);
static const Inference__ModelMetrics__MetricControl__HistogramOptions *
    find_buckets(const Inference__ModelConfig *msg);
static int by_value(const void *a, const void *b);
static void observe(inf_latencies_t *l, inf_latency_t which, uint64_t from_ns,
    uint64_t to_ns, uint64_t now_ns);

inf_err_t *
inf_latencies_new(const Inference__ModelConfig *msg, bool summaries,
    bool histogram, inf_latencies_t **out)
{
    *out = NULL;
    if (!summaries && !histogram) {
        return NULL;
    }

    inf_latencies_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = summaries && !make_summaries(l) ? inf_err_nomem() : NULL;
    if (err == NULL && histogram) {
        err = make_histogram(l, msg);
    }
    if (err != NULL) {
        inf_latencies_free(l);
        return err;
    }

    *out = l;
    return NULL;
}

void
inf_latencies_free(inf_latencies_t *l)
{
    if (l == NULL) {
        return;
    }

    for (size_t i = 0; i < INF_LATENCY_COUNT; i++) {
        inf_summary_free(l->summaries[i]);
    }
    free(l->bounds);
    free(l->counts);
    free(l);
}

void
inf_latencies_success(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t queue_start_ns, const uint64_t stamps[4], uint64_t now_ns)
{
    if (l->summaries[0] == NULL) {
        return;
    }

    observe(l, INF_LATENCY_REQUEST, request_start_ns, now_ns, now_ns);
    observe(l, INF_LATENCY_QUEUE, queue_start_ns, stamps[0], now_ns);
    observe(l, INF_LATENCY_COMPUTE_INPUT, stamps[0], stamps[1], now_ns);
    observe(l, INF_LATENCY_COMPUTE_INFER, stamps[1], stamps[2], now_ns);
    observe(l, INF_LATENCY_COMPUTE_OUTPUT, stamps[2], stamps[3], now_ns);
}

void
inf_latencies_first_response(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t now_ns)
{
    if (!l->histogram) {
        return;
    }

    uint64_t ms = now_ns > request_start_ns
        ? (now_ns - request_start_ns) / 1000000 : 0;
    size_t i = 0;
    while (i < l->bound_count && (double) ms > l->bounds[i]) {
        i++;
    }

    atomic_fetch_add_explicit(&l->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->sum_ms, ms, memory_order_relaxed);
}

static bool
make_summaries(inf_latencies_t *l)
{
    for (size_t i = 0; i < INF_LATENCY_COUNT; i++) {
        l->summaries[i] = inf_summary_new();
        if (l->summaries[i] == NULL) {
            return false;
        }
    }

    return true;
}

static inf_err_t *
make_histogram(inf_latencies_t *l, const Inference__ModelConfig *msg)
{
    static const double usual[] = { 100, 500, 2000, 5000 };
    const Inference__ModelMetrics__MetricControl__HistogramOptions *own =
        find_buckets(msg);
    const double *bounds = own != NULL ? own->buckets : usual;

    l->histogram = true;
    l->bound_count = own != NULL ? own->n_buckets
        : sizeof(usual) / sizeof(usual[0]);
    l->bounds = calloc(l->bound_count + 1, sizeof(*l->bounds));
    l->counts = calloc(l->bound_count + 1, sizeof(*l->counts));
    if (l->bounds == NULL || l->counts == NULL) {
        return inf_err_nomem();
    }

    /* the configuration may name them in any order */
    if (l->bound_count > 0) {
        memcpy(l->bounds, bounds, l->bound_count * sizeof(*bounds));
        qsort(l->bounds, l->bound_count, sizeof(*bounds), by_value);
    }
    return NULL;
}

/* NULL: the configuration has none. */
static const Inference__ModelMetrics__MetricControl__HistogramOptions *
find_buckets(const Inference__ModelConfig *msg)
{
    const Inference__ModelMetrics__MetricControl__HistogramOptions *found =
        NULL;

    for (size_t i = 0; msg->model_metrics != NULL
        && i < msg->model_metrics->n_metric_control; i++)
    {
        const Inference__ModelMetrics__MetricControl *c =
            msg->model_metrics->metric_control[i];
        const char *family = c->metric_identifier != NULL
            ? c->metric_identifier->family : "";

        if (strcmp(family, INF_LATENCY_FIRST_RESPONSE) != 0) {
            inf_log(INF_LOG_WARN, "model=%s: model_metrics: family '%s' can't"
                " be customized", msg->name, family);
        } else if (c->metric_options_case == HISTOGRAM_OPTIONS) {
            found = c->histogram_options;
        }
    }

    return found;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return (x > y) - (x < y);
}

/* Stamps come from backends: a clock run backwards counts as nothing. */
static void
observe(inf_latencies_t *l, inf_latency_t which, uint64_t from_ns,
    uint64_t to_ns, uint64_t now_ns)
{
    inf_summary_observe(l->summaries[which],
        to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0, now_ns);
}
