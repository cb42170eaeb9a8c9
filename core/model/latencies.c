#include "core/model/latencies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#define HISTOGRAM_OPTIONS \
    INFERENCE__MODEL_METRICS__METRIC_CONTROL__METRIC_OPTIONS_HISTOGRAM_OPTIONS

static inf_err_t *make_histogram(inf_latencies_t *l,
    const Inference__ModelConfig *msg);
static const Inference__ModelMetrics__MetricControl__HistogramOptions *
    find_buckets(const Inference__ModelConfig *msg);
static size_t settle_bounds(double *to, const double *from, size_t count);
static int by_value(const void *a, const void *b);
static uint64_t span_us(uint64_t from_ns, uint64_t to_ns);

_Static_assert(INF_LATENCY_COUNT == INF_SUMMARY_KINDS, "a kind each");

inf_err_t *
inf_latencies_new(const Inference__ModelConfig *msg,
    const inf_latencies_options_t *options, inf_latencies_t **out)
{
    *out = NULL;
    if (!options->summaries && !options->histogram) {
        return NULL;
    }

    inf_latencies_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return inf_err_nomem();
    }

    l->device_id = -1;
    l->cached = options->cached;
    l->summary = options->summaries ? inf_summary_new() : NULL;
    inf_err_t *err = options->summaries && l->summary == NULL
        ? inf_err_nomem() : NULL;
    if (err == NULL && options->histogram) {
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
    while (l != NULL) {
        inf_latencies_t *next = l->next;
        inf_summary_free(l->summary);
        free(l->bounds);
        free(l->counts);
        free(l);
        l = next;
    }
}

inf_err_t *
inf_latencies_add_gpu(inf_latencies_t *l, int32_t device_id)
{
    if (l->summary == NULL || inf_latencies_of_gpu(l, device_id) != l) {
        return NULL;
    }

    inf_latencies_t *gpu = calloc(1, sizeof(*gpu));
    inf_summary_t *summary = inf_summary_new();
    if (gpu == NULL || summary == NULL) {
        inf_summary_free(summary);
        free(gpu);
        return inf_err_nomem();
    }

    gpu->cached = l->cached;
    gpu->summary = summary;
    gpu->device_id = device_id;
    gpu->next = l->next;
    l->next = gpu;
    return NULL;
}

inf_latencies_t *
inf_latencies_of_gpu(inf_latencies_t *l, int32_t device_id)
{
    for (inf_latencies_t *gpu = l->next; gpu != NULL; gpu = gpu->next) {
        if (gpu->device_id == device_id) {
            return gpu;
        }
    }

    return l;
}

bool
inf_latencies_has(const inf_latencies_t *l, inf_latency_t which)
{
    if (l->summary == NULL) {
        return false;
    }

    switch (which) {
    case INF_LATENCY_REQUEST:
        return !l->cached;
    case INF_LATENCY_CACHE_HIT:
    case INF_LATENCY_CACHE_MISS:
        return l->cached;
    case INF_LATENCY_QUEUE:
    case INF_LATENCY_COMPUTE_INPUT:
    case INF_LATENCY_COMPUTE_INFER:
    case INF_LATENCY_COMPUTE_OUTPUT:
    case INF_LATENCY_COUNT:
        break;
    }

    return true;
}

void
inf_latencies_success(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t queue_start_ns, const uint64_t stamps[4], uint64_t now_ns)
{
    inf_summary_t *s = l->summary;
    if (s == NULL) {
        return;
    }

    uint32_t window = inf_summary_window(s, now_ns);
    inf_summary_observe(s, INF_LATENCY_REQUEST, window,
        span_us(request_start_ns, now_ns));
    inf_summary_observe(s, INF_LATENCY_QUEUE, window,
        span_us(queue_start_ns, stamps[0]));
    inf_summary_observe(s, INF_LATENCY_COMPUTE_INPUT, window,
        span_us(stamps[0], stamps[1]));
    inf_summary_observe(s, INF_LATENCY_COMPUTE_INFER, window,
        span_us(stamps[1], stamps[2]));
    inf_summary_observe(s, INF_LATENCY_COMPUTE_OUTPUT, window,
        span_us(stamps[2], stamps[3]));
}

void
inf_latencies_hit(inf_latencies_t *l, uint64_t queue_start_ns,
    uint64_t lookup_start_ns, uint64_t took_ns, uint64_t now_ns)
{
    inf_summary_t *s = l->summary;
    if (s == NULL) {
        return;
    }

    uint32_t window = inf_summary_window(s, now_ns);
    inf_summary_observe(s, INF_LATENCY_QUEUE, window,
        span_us(queue_start_ns, lookup_start_ns));
    inf_summary_observe(s, INF_LATENCY_CACHE_HIT, window, took_ns / 1000);
}

void
inf_latencies_miss(inf_latencies_t *l, uint64_t took_ns, uint64_t now_ns)
{
    if (l->summary != NULL) {
        inf_summary_observe(l->summary, INF_LATENCY_CACHE_MISS,
            inf_summary_window(l->summary, now_ns), took_ns / 1000);
    }
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
    if (ms > 0) {
        atomic_fetch_add_explicit(&l->sum_ms, ms, memory_order_relaxed);
    }
}

static inf_err_t *
make_histogram(inf_latencies_t *l, const Inference__ModelConfig *msg)
{
    static const double usual[] = { 100, 500, 2000, 5000 };
    const Inference__ModelMetrics__MetricControl__HistogramOptions *own =
        find_buckets(msg);
    const double *bounds = own != NULL ? own->buckets : usual;
    size_t count = own != NULL ? own->n_buckets
        : sizeof(usual) / sizeof(usual[0]);

    l->histogram = true;
    l->bounds = calloc(count + 1, sizeof(*l->bounds));
    l->counts = calloc(count + 1, sizeof(*l->counts));
    if (l->bounds == NULL || l->counts == NULL) {
        return inf_err_nomem();
    }

    l->bound_count = settle_bounds(l->bounds, bounds, count);
    return NULL;
}

/* Sorts the bounds and removes repeated ones, infinity (always there) and NaN;
   returns their number. */
static size_t
settle_bounds(double *to, const double *from, size_t count)
{
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(from[i])) {
            to[numbers++] = from[i];
        }
    }

    qsort(to, numbers, sizeof(*to), by_value);

    size_t kept = 0;
    for (size_t i = 0; i < numbers; i++) {
        if (kept == 0 || to[i] > to[kept - 1]) {
            to[kept++] = to[i];
        }
    }
    return kept;
}

/* The configured buckets, or NULL. */
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

/* The time between stamps, which come from backends; 0 if they decrease. */
static uint64_t
span_us(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}
