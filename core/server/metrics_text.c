#include "core/server/metrics_text.h"

#include <stddef.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/proto/core_options.h"
#include "core/server/cache_metrics.h"
#include "core/server/metric_registry.h"
#include "core/server/metrics_rows.h"
#include "core/tensor/memory.h"

#define QUANTILES_USUAL "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"
#define QUANTILES_MAX   64
#define LABEL_MAX       32

typedef struct {
    size_t count;
    double values[QUANTILES_MAX];
    char   labels[QUANTILES_MAX][LABEL_MAX];
} quantiles_t;

/* Condition for a row in a family. */
typedef enum {
    ROW_ALWAYS,
    ROW_LATENCY,                /* if latencies are enabled                  */
    ROW_CACHED                  /* likewise, and the model has a response
                                   cache                                     */
} row_when_t;

typedef struct {
    const char *name;
    const char *help;
    double    (*value)(const inf_metrics_row_t *m);
    bool        gauge;
    row_when_t  when;
} family_t;

typedef struct {
    const char   *name;
    const char   *help;
    inf_latency_t which;
    size_t        duration;     /* offset in inf_statistics_t: count and sum */
} summary_family_t;

typedef struct {
    const char *name;
    const char *help;
    inf_histogram_name_t which;
} histogram_family_t;

typedef struct {
    const NginxInference__MetricsSettings *settings;
    inf_metrics_rows_t                     rows;
    inf_buf_t                             *out;
    uint64_t                               now_ns;
} text_t;

static void put_models(text_t *t, inf_server_t *server);
static void put_count(const text_t *t, uint64_t n);
static void put_pinned(inf_buf_t *out);
static void put_server(inf_server_t *server, inf_buf_t *out);
static void put_family(const text_t *t, const family_t *family);
static bool has_row(const text_t *t, const family_t *family,
    const inf_metrics_row_t *row);
static void put_failures(const text_t *t);
static void put_first_responses(const text_t *t);
static void put_first_response(const text_t *t, const inf_metrics_row_t *m);
static void put_histograms(const text_t *t, const histogram_family_t *family);
static void put_histogram(const text_t *t, const inf_metrics_row_t *m,
    const histogram_family_t *family);
static void put_seconds(const text_t *t, uint64_t ns);
static uint64_t histogram_ns(const inf_statistics_t *s,
    inf_histogram_name_t which);
static void put_summaries(const text_t *t, const summary_family_t *family,
    const quantiles_t *quantiles);
static void put_summary(const text_t *t, const inf_metrics_row_t *m,
    const summary_family_t *family, const quantiles_t *quantiles);
static void read_quantiles(const text_t *t, quantiles_t *out);
static void label_of(double value, char label[LABEL_MAX]);

static double
successes(const inf_metrics_row_t *m)
{
    return (double) m->s.success.count;
}

static double
inferences(const inf_metrics_row_t *m)
{
    return (double) m->s.inference_count;
}

static double
executions(const inf_metrics_row_t *m)
{
    return (double) m->s.execution_count;
}

static double
waiting(const inf_metrics_row_t *m)
{
    return (double) m->waiting;
}

static double
executing(const inf_metrics_row_t *m)
{
    return (double) m->executing;
}

static double
stuck(const inf_metrics_row_t *m)
{
    return (double) m->stuck;
}

static double
request_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.success.ns / 1000);
}

static double
queue_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.queue.ns / 1000);
}

static double
input_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.compute_input.ns / 1000);
}

static double
infer_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.compute_infer.ns / 1000);
}

static double
output_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.compute_output.ns / 1000);
}

static double
cache_hits(const inf_metrics_row_t *m)
{
    return (double) m->s.cache_hit.count;
}

static double
cache_misses(const inf_metrics_row_t *m)
{
    return (double) m->s.cache_miss.count;
}

static double
cache_hit_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.cache_hit.ns / 1000);
}

static double
cache_miss_us(const inf_metrics_row_t *m)
{
    return (double) (m->s.cache_miss.ns / 1000);
}

static double
load_secs(const inf_metrics_row_t *m)
{
    return m->device_id < 0 ? (double) m->model->load_ns / 1e9 : 0;
}

static const family_t families[] = {
    { "nv_inference_request_success", "requests answered", successes, false,
        ROW_ALWAYS },
    { "nv_inference_count", "inferences, a batch's rows each", inferences,
        false, ROW_ALWAYS },
    { "nv_inference_exec_count", "executions of the model", executions, false,
        ROW_ALWAYS },
    { "nv_inference_request_duration_us", "time of answered requests",
        request_us, false, ROW_LATENCY },
    { "nv_inference_queue_duration_us", "time in the queue", queue_us, false,
        ROW_LATENCY },
    { "nv_inference_compute_input_duration_us", "time gathering inputs",
        input_us, false, ROW_LATENCY },
    { "nv_inference_compute_infer_duration_us", "time computing", infer_us,
        false, ROW_LATENCY },
    { "nv_inference_compute_output_duration_us", "time writing outputs",
        output_us, false, ROW_LATENCY },
    { "nv_inference_pending_request_count", "requests waiting to be executed",
        waiting, true, ROW_ALWAYS },
    { "nginx_inference_executing_requests", "requests being executed",
        executing, true, ROW_ALWAYS },
    { "nginx_inference_stuck_instances",
        "instances that execute for longer than inference_stuck", stuck, true,
        ROW_ALWAYS },
    { "nv_model_load_duration_secs", "how long the model's load took",
        load_secs, true, ROW_ALWAYS },
    { "nv_cache_num_hits_per_model", "requests the response cache answered",
        cache_hits, false, ROW_CACHED },
    { "nv_cache_num_misses_per_model", "requests it could not answer",
        cache_misses, false, ROW_CACHED },
    { "nv_cache_hit_duration_per_model", "time of lookups that hit",
        cache_hit_us, false, ROW_CACHED },
    { "nv_cache_miss_duration_per_model",
        "time of lookups that missed, and of insertions", cache_miss_us, false,
        ROW_CACHED }
};

static const histogram_family_t histogram_families[] = {
    { "nginx_inference_request_duration_seconds",
        "time of answered requests", INF_HISTOGRAM_REQUEST },
    { "nginx_inference_queue_duration_seconds", "time in the queue",
        INF_HISTOGRAM_QUEUE },
    { "nginx_inference_compute_duration_seconds",
        "time gathering inputs, computing and writing outputs",
        INF_HISTOGRAM_COMPUTE }
};

static const summary_family_t summary_families[] = {
    { "nv_inference_request_summary_us", "time of answered requests",
        INF_LATENCY_REQUEST, offsetof(inf_statistics_t, success) },
    { "nv_inference_queue_summary_us", "time in the queue",
        INF_LATENCY_QUEUE, offsetof(inf_statistics_t, queue) },
    { "nv_inference_compute_input_summary_us", "time gathering inputs",
        INF_LATENCY_COMPUTE_INPUT, offsetof(inf_statistics_t, compute_input) },
    { "nv_inference_compute_infer_summary_us", "time computing",
        INF_LATENCY_COMPUTE_INFER, offsetof(inf_statistics_t, compute_infer) },
    { "nv_inference_compute_output_summary_us", "time writing outputs",
        INF_LATENCY_COMPUTE_OUTPUT,
        offsetof(inf_statistics_t, compute_output) },
    { "nv_cache_hit_summary_per_model", "time of lookups that hit",
        INF_LATENCY_CACHE_HIT, offsetof(inf_statistics_t, cache_hit) },
    { "nv_cache_miss_summary_per_model",
        "time of lookups that missed, and of insertions",
        INF_LATENCY_CACHE_MISS, offsetof(inf_statistics_t, cache_miss) }
};

void
inf_metrics_text_server(inf_server_t *server, inf_buf_t *out)
{
    text_t t = {
        .settings = server->config->values->metrics,
        .out = out,
        .now_ns = inf_clock_ns()
    };

    if (!t.settings->enabled) {
        return;
    }

    put_models(&t, server);
    inf_cache_metrics_text(&server->cache, out);
    if (t.settings->cpu) {
        inf_cpu_metrics_text(&server->cpu_metrics, t.now_ns,
            t.settings->interval_ms * 1000000 / 2, out);
    }
    put_pinned(out);
    put_server(server, out);
    inf_gpu_metrics_write(server->gpu_metrics, t.now_ns, out);
}

inf_err_t *
inf_metrics_text(inf_server_t *server, inf_buf_t *out)
{
    inf_metrics_text_server(server, out);
    inf_metrics_format(out);
    return inf_buf_status(out);
}

size_t
inf_metrics_quantiles(const char *text, double *values, size_t cap)
{
    size_t count = 0;

    for (const char *p = text; *p != '\0' && count < cap;) {
        size_t len = strcspn(p, ",");

        if (inf_quantile_parse(p, &values[count])) {
            count++;
        } else {
            inf_log(INF_LOG_WARN, "summary quantile \"%.*s\" is skipped: it is"
                " QUANTILE:ERROR, both from 0 to 1", (int) len, p);
        }

        p += len;
        p += *p == ',';
    }

    return count;
}

static void
put_models(text_t *t, inf_server_t *server)
{
    quantiles_t quantiles = { .count = 0 };
    inf_ready_models_t ready;

    inf_err_t *err = inf_ready_models_init(&ready, server);
    if (err == NULL) {
        err = inf_metrics_rows_init(&t->rows, &ready, t->settings->gpu);
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "metrics lack the models"));
        inf_metrics_rows_fini(&t->rows);
    }

    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        put_family(t, &families[f]);
    }
    put_failures(t);
    put_first_responses(t);
    for (size_t f = 0; f < sizeof(histogram_families)
            / sizeof(histogram_families[0]); f++)
    {
        put_histograms(t, &histogram_families[f]);
    }

    if (t->settings->summaries) {
        read_quantiles(t, &quantiles);
    }
    for (size_t f = 0;
        f < sizeof(summary_families) / sizeof(summary_families[0]); f++)
    {
        put_summaries(t, &summary_families[f], &quantiles);
    }

    inf_metrics_rows_fini(&t->rows);
    inf_ready_models_fini(&ready);
}

static void
put_count(const text_t *t, uint64_t n)
{
    inf_metric_put_count(t->out, n);
    inf_buf_putc(t->out, '\n');
}

/* Metrics of the process, the same for every server. */
static void
put_pinned(inf_buf_t *out)
{
    inf_memory_usage_of_pool_t usage = inf_memory_pinned_usage(
        inf_memory_shared());

    inf_metric_put_one(out, "nv_pinned_memory_pool_total_bytes",
        "pinned memory of the core", "gauge", (double) usage.total);
    inf_metric_put_one(out, "nv_pinned_memory_pool_used_bytes",
        "pinned memory in use", "gauge", (double) usage.used);
}

static void
put_server(inf_server_t *server, inf_buf_t *out)
{
    inf_metric_put_one(out, "nginx_inference_shared_memory_region_bytes",
        "system shared memory that clients have registered", "gauge",
        (double) inf_shm_regions_bytes(server->regions));
    inf_metric_put_one(out, "nginx_inference_shared_memory_copy_bytes",
        "copies of inputs in shared memory", "gauge",
        (double) inf_budget_used(inf_shm_regions_copies(server->regions)));
    inf_metric_put_one(out, "nginx_inference_response_arena_used_bytes",
        "bytes of responses held in the workers' response arenas", "gauge",
        (double) atomic_load_explicit(&server->responses_used,
            memory_order_relaxed));
    inf_metric_put_one(out, "nginx_inference_response_arena_bound_bytes",
        "bytes that these arenas may hold", "gauge",
        (double) atomic_load_explicit(&server->responses_bound,
            memory_order_relaxed));
    inf_metric_put_one(out, "nginx_inference_stuck_loads",
        "loads that were given up and have not returned", "gauge",
        (double) inf_lifecycle_stuck_loads(server->lifecycle));
    inf_metric_put_one(out, "nginx_inference_traces_dropped_total",
        "traces that reached no file and no collector", "counter",
        (double) inf_tracer_dropped(server->tracer));
}

/* Writes a family; nothing if it has no row. */
static void
put_family(const text_t *t, const family_t *family)
{
    bool zero = !family->gauge && !t->settings->counters;
    bool first = true;

    for (size_t i = 0; i < t->rows.count; i++) {
        const inf_metrics_row_t *m = &t->rows.items[i];
        if (!has_row(t, family, m)) {
            continue;
        }
        if (first) {
            inf_metric_put_head(t->out, family->name, family->help,
                family->gauge ? "gauge" : "counter");
            first = false;
        }
        inf_metrics_row_put(m, family->name, "", NULL, t->out);
        inf_metric_put_number(t->out, zero ? 0 : family->value(m));
        inf_buf_putc(t->out, '\n');
    }
}

static bool
has_row(const text_t *t, const family_t *family, const inf_metrics_row_t *m)
{
    switch (family->when) {
    case ROW_ALWAYS:
        break;
    case ROW_LATENCY:
        return t->settings->counters;
    case ROW_CACHED:
        return t->settings->counters && m->model->sched.gate != NULL;
    }

    return true;
}

static void
put_failures(const text_t *t)
{
    static const char name[] = "nv_inference_request_failure";
    static const char *const reasons[INF_FAILURE_COUNT] = {
        [INF_FAILURE_REJECTED] = "REJECTED",
        [INF_FAILURE_CANCELED] = "CANCELED",
        [INF_FAILURE_BACKEND] = "BACKEND",
        [INF_FAILURE_OTHER] = "OTHER"
    };

    for (size_t i = 0; i < t->rows.count; i++) {
        const inf_metrics_row_t *m = &t->rows.items[i];
        if (i == 0) {
            inf_metric_put_head(t->out, name, "requests that failed, and why",
                "counter");
        }
        for (size_t r = 0; r < INF_FAILURE_COUNT; r++) {
            inf_metrics_row_put(m, name, "", reasons[r], t->out);
            put_count(t, t->settings->counters ? m->s.failures[r] : 0);
        }
    }
}

static void
put_first_responses(const text_t *t)
{
    bool first = true;

    for (size_t i = 0; i < t->rows.count; i++) {
        const inf_latencies_t *l = t->rows.items[i].latencies;
        if (l == NULL || !l->histogram || t->rows.items[i].device_id >= 0) {
            continue;
        }
        if (first) {
            inf_metric_put_head(t->out, INF_LATENCY_FIRST_RESPONSE, "from a"
                " request to its first response", "histogram");
            first = false;
        }
        put_first_response(t, &t->rows.items[i]);
    }
}

/* Writes the histogram; counts added meanwhile are left for the next call. */
static void
put_first_response(const text_t *t, const inf_metrics_row_t *m)
{
    static const char name[] = INF_LATENCY_FIRST_RESPONSE;
    const inf_latencies_t *l = m->latencies;
    uint64_t total = 0;
    uint64_t seen = 0;

    for (size_t i = 0; i <= l->bound_count; i++) {
        total += atomic_load_explicit(&l->counts[i], memory_order_relaxed);
    }
    inf_metrics_row_put(m, name, "_count", NULL, t->out);
    put_count(t, total);
    inf_metrics_row_put(m, name, "_sum", NULL, t->out);
    put_count(t, atomic_load_explicit(&l->sum_ms, memory_order_relaxed));

    for (size_t i = 0; i < l->bound_count; i++) {
        char label[LABEL_MAX];
        label_of(l->bounds[i], label);
        seen += atomic_load_explicit(&l->counts[i], memory_order_relaxed);
        seen = seen < total ? seen : total;
        inf_metrics_row_put_last(m, name, "_bucket", "le", label, t->out);
        put_count(t, seen);
    }
    inf_metrics_row_put_last(m, name, "_bucket", "le", "+Inf", t->out);
    put_count(t, total);
}

static void
put_histograms(const text_t *t, const histogram_family_t *family)
{
    for (size_t i = 0; t->settings->histograms && i < t->rows.count; i++) {
        if (i == 0) {
            inf_metric_put_head(t->out, family->name, family->help,
                "histogram");
        }
        put_histogram(t, &t->rows.items[i], family);
    }
}

/* Writes a histogram in seconds, the unit of Prometheus. */
static void
put_histogram(const text_t *t, const inf_metrics_row_t *m,
    const histogram_family_t *family)
{
    const inf_histogram_t *h = &m->s.histograms[family->which];
    uint64_t total = 0;

    for (size_t i = 0; i <= INF_HISTOGRAM_BOUNDS; i++) {
        total += h->counts[i];
    }
    inf_metrics_row_put(m, family->name, "_count", NULL, t->out);
    put_count(t, total);
    inf_metrics_row_put(m, family->name, "_sum", NULL, t->out);
    put_seconds(t, histogram_ns(&m->s, family->which));

    total = 0;
    for (size_t i = 0; i <= INF_HISTOGRAM_BOUNDS; i++) {
        total += h->counts[i];
        inf_metrics_row_put_last(m, family->name, "_bucket", "le",
            i < INF_HISTOGRAM_BOUNDS ? inf_histogram_bounds_text[i] : "+Inf",
            t->out);
        put_count(t, total);
    }
}

static void
put_seconds(const text_t *t, uint64_t ns)
{
    char digits[11] = ".000000000";
    uint64_t rest = ns % 1000000000;

    for (size_t i = 9; i > 0; i--) {
        digits[i] = (char) ('0' + rest % 10);
        rest /= 10;
    }
    inf_metric_put_count(t->out, ns / 1000000000);
    inf_buf_put(t->out, digits, 10);
    inf_buf_putc(t->out, '\n');
}

static uint64_t
histogram_ns(const inf_statistics_t *s, inf_histogram_name_t which)
{
    switch (which) {
    case INF_HISTOGRAM_REQUEST:
        return s->success.ns;
    case INF_HISTOGRAM_QUEUE:
        return s->queue.ns;
    case INF_HISTOGRAM_COMPUTE:
    case INF_HISTOGRAM_COUNT:
        break;
    }

    return s->compute_input.ns + s->compute_infer.ns + s->compute_output.ns;
}

static void
put_summaries(const text_t *t, const summary_family_t *family,
    const quantiles_t *quantiles)
{
    bool first = true;

    for (size_t i = 0; i < t->rows.count; i++) {
        const inf_metrics_row_t *m = &t->rows.items[i];
        if (m->latencies == NULL
            || !inf_latencies_has(m->latencies, family->which))
        {
            continue;
        }
        if (first) {
            inf_metric_put_head(t->out, family->name, family->help,
                "summary");
            first = false;
        }
        put_summary(t, m, family, quantiles);
    }
}

static void
put_summary(const text_t *t, const inf_metrics_row_t *m,
    const summary_family_t *family, const quantiles_t *quantiles)
{
    const inf_duration_t *total = (const inf_duration_t *) (const void *)
        ((const char *) &m->s + family->duration);
    double values[QUANTILES_MAX];

    inf_metrics_row_put(m, family->name, "_count", NULL, t->out);
    put_count(t, total->count);
    inf_metrics_row_put(m, family->name, "_sum", NULL, t->out);
    put_count(t, total->ns / 1000);

    inf_summary_quantiles(m->latencies->summary, family->which, t->now_ns,
        quantiles->values, quantiles->count, values);
    for (size_t i = 0; i < quantiles->count; i++) {
        inf_metrics_row_put_last(m, family->name, "", "quantile",
            quantiles->labels[i], t->out);
        inf_metric_put_number(t->out, values[i]);
        inf_buf_putc(t->out, '\n');
    }
}

static void
read_quantiles(const text_t *t, quantiles_t *out)
{
    const char *text = t->settings->quantiles;

    out->count = inf_metrics_quantiles(text[0] != '\0' ? text
        : QUANTILES_USUAL, out->values, QUANTILES_MAX);
    for (size_t i = 0; i < out->count; i++) {
        label_of(out->values[i], out->labels[i]);
    }
}

static void
label_of(double value, char label[LABEL_MAX])
{
    inf_buf_t text;

    inf_buf_init(&text);
    inf_metric_put_number(&text, value);
    inf_slice_t s = inf_buf_slice(&text);
    size_t len = s.len < LABEL_MAX ? s.len : LABEL_MAX - 1;
    memcpy(label, s.data, len);
    label[len] = '\0';
    inf_buf_fini(&text);
}
