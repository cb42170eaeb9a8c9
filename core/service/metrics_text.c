#include "core/service/metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/metric_registry.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/proto/message_utf8.h"
#include "core/sched/runtime.h"
#include "core/service/cache_metrics.h"
#include "core/service/ready_models.h"
#include "core/tensor/memory.h"

#define QUANTILES_USUAL "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"
#define QUANTILES_MAX   64

/* One model as the text shows it: taken once, written family by family. */
typedef struct {
    const inf_model_t *model;
    char              *labels;      /* "_tag=..,model=..", without version   */
    inf_statistics_t   s;
    uint64_t           queued;
} snapshot_t;

typedef double (*value_fn)(const snapshot_t *m);

typedef struct {
    const char *name;
    const char *help;
    value_fn    value;
    bool        gauge;
    bool        latency;        /* left out with the counters of latencies   */
} family_t;

typedef struct {
    const char   *name;
    const char   *help;
    inf_latency_t which;
} summary_family_t;

typedef struct {
    const NginxInference__MetricsSettings *settings;
    snapshot_t                            *models;
    size_t                                 count;
    inf_buf_t                             *out;
    uint64_t                               now_ns;
} text_t;

static inf_err_t *take_snapshots(text_t *t, const inf_ready_models_t *ready);
static char *make_labels(const inf_model_t *model);
static void put_label_name(inf_buf_t *out, const char *name);
static void put_label_value(inf_buf_t *out, const char *text);
static void put_head(const text_t *t, const char *name, const char *help,
    const char *type);
static void put_sample(const text_t *t, const snapshot_t *m, const char *name,
    const char *suffix);
static void put_pinned(const text_t *t);
static void put_families(const text_t *t);
static void put_cache_families(const text_t *t);
static void put_failures(const text_t *t);
static void put_histograms(const text_t *t);
static void put_histogram(const text_t *t, const snapshot_t *m);
static void put_summaries(const text_t *t);
static void put_summary(const text_t *t, const snapshot_t *m,
    const summary_family_t *family, const double *quantiles, size_t count);

static double
successes(const snapshot_t *m)
{
    return (double) m->s.success.count;
}

static double
inferences(const snapshot_t *m)
{
    return (double) m->s.inference_count;
}

static double
executions(const snapshot_t *m)
{
    return (double) m->s.execution_count;
}

static double
queued(const snapshot_t *m)
{
    return (double) m->queued;
}

static double
request_us(const snapshot_t *m)
{
    return (double) (m->s.success.ns / 1000);
}

static double
queue_us(const snapshot_t *m)
{
    return (double) (m->s.queue.ns / 1000);
}

static double
input_us(const snapshot_t *m)
{
    return (double) (m->s.compute_input.ns / 1000);
}

static double
infer_us(const snapshot_t *m)
{
    return (double) (m->s.compute_infer.ns / 1000);
}

static double
output_us(const snapshot_t *m)
{
    return (double) (m->s.compute_output.ns / 1000);
}

static double
cache_hits(const snapshot_t *m)
{
    return (double) m->s.cache_hit.count;
}

static double
cache_misses(const snapshot_t *m)
{
    return (double) m->s.cache_miss.count;
}

static double
cache_hit_us(const snapshot_t *m)
{
    return (double) (m->s.cache_hit.ns / 1000);
}

static double
cache_miss_us(const snapshot_t *m)
{
    return (double) (m->s.cache_miss.ns / 1000);
}

static double
load_secs(const snapshot_t *m)
{
    return (double) m->model->load_ns / 1e9;
}

static const family_t families[] = {
    { "nv_inference_request_success", "requests answered", successes, false,
        false },
    { "nv_inference_count", "inferences, a batch's rows each", inferences,
        false, false },
    { "nv_inference_exec_count", "executions of the model", executions, false,
        false },
    { "nv_inference_request_duration_us", "time of answered requests",
        request_us, false, true },
    { "nv_inference_queue_duration_us", "time in the queue", queue_us, false,
        true },
    { "nv_inference_compute_input_duration_us", "time gathering inputs",
        input_us, false, true },
    { "nv_inference_compute_infer_duration_us", "time computing", infer_us,
        false, true },
    { "nv_inference_compute_output_duration_us", "time writing outputs",
        output_us, false, true },
    { "nv_inference_pending_request_count", "requests waiting to be executed",
        queued, true, false },
    { "nv_model_load_duration_secs", "how long the model's load took",
        load_secs, true, false }
};

/* Only of models with a response cache. */
static const family_t cache_families[] = {
    { "nv_cache_num_hits_per_model", "requests the response cache answered",
        cache_hits, false, true },
    { "nv_cache_num_misses_per_model", "requests it could not answer",
        cache_misses, false, true },
    { "nv_cache_hit_duration_per_model", "time of lookups that hit",
        cache_hit_us, false, true },
    { "nv_cache_miss_duration_per_model",
        "time of lookups that missed, and of insertions", cache_miss_us, false,
        true }
};

static const summary_family_t summary_families[] = {
    { "nv_inference_request_summary_us", "time of answered requests",
        INF_LATENCY_REQUEST },
    { "nv_inference_queue_summary_us", "time in the queue",
        INF_LATENCY_QUEUE },
    { "nv_inference_compute_input_summary_us", "time gathering inputs",
        INF_LATENCY_COMPUTE_INPUT },
    { "nv_inference_compute_infer_summary_us", "time computing",
        INF_LATENCY_COMPUTE_INFER },
    { "nv_inference_compute_output_summary_us", "time writing outputs",
        INF_LATENCY_COMPUTE_OUTPUT }
};

void
inf_metrics_text_server(inf_server_t *server, inf_buf_t *out)
{
    static const NginxInference__MetricsSettings usual =
        NGINX_INFERENCE__METRICS_SETTINGS__INIT;
    inf_ready_models_t ready;
    text_t t = {
        .settings = server->config->metrics != NULL ? server->config->metrics
            : &usual,
        .out = out,
        .now_ns = inf_clock_ns()
    };

    if (!t.settings->enabled) {
        return;
    }

    inf_err_t *err = inf_ready_models_init(&ready, server);
    if (err == NULL) {
        err = take_snapshots(&t, &ready);
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "metrics lack the models"));
    } else if (t.count > 0) {
        put_families(&t);
        put_cache_families(&t);
        put_failures(&t);
        put_histograms(&t);
        put_summaries(&t);
    }

    for (size_t i = 0; i < t.count; i++) {
        free(t.models[i].labels);
        inf_statistics_fini(&t.models[i].s);
    }
    free(t.models);
    inf_ready_models_fini(&ready);

    inf_cache_metrics_text(&server->cache, out);
    if (t.settings->cpu) {
        inf_cpu_metrics_text(&server->cpu_metrics, t.now_ns,
            t.settings->interval_ms * 1000000 / 2, out);
    }
    put_pinned(&t);
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
        char *end, *last;
        double value = strtod(p, &end);
        double error = *end == ':' ? strtod(end + 1, &last) : NAN;

        if (end == p || *end != ':' || last == end + 1 || last != p + len
            || !(value >= 0 && value <= 1) || !(error >= 0 && error <= 1))
        {
            inf_log(INF_LOG_WARN, "summary quantile \"%.*s\" is skipped: it is"
                " QUANTILE:ERROR, both from 0 to 1", (int) len, p);
        } else {
            values[count++] = value;
        }

        p += len;
        p += *p == ',';
    }

    return count;
}

static inf_err_t *
take_snapshots(text_t *t, const inf_ready_models_t *ready)
{
    t->models = calloc(ready->count + 1, sizeof(*t->models));
    if (t->models == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < ready->count; i++) {
        const inf_model_t *model = ready->models[i];
        snapshot_t *m = &t->models[t->count++];

        m->model = model;
        m->queued = model->runner != NULL ? inf_runner_queued(model->runner)
            : 0;
        m->labels = make_labels(model);
        if (m->labels == NULL) {
            return inf_err_nomem();
        }
        if (!t->settings->counters) {
            continue;
        }

        inf_statistics_fold(&m->s, &model->statistics);
        for (uint32_t k = 0; k < model->instance_count; k++) {
            inf_statistics_fold(&m->s, &model->instances[k].statistics);
        }
    }

    return NULL;
}

/* All but the version, in byte order: tags begin with "_". */
static char *
make_labels(const inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;
    inf_buf_t out;

    inf_buf_init(&out);
    for (size_t i = 0; msg != NULL && i < msg->n_metric_tags; i++) {
        inf_buf_putc(&out, '_');
        put_label_name(&out, msg->metric_tags[i]->key);
        inf_buf_puts(&out, "=\"");
        put_label_value(&out, msg->metric_tags[i]->value);
        inf_buf_puts(&out, "\",");
    }
    inf_buf_puts(&out, "model=\"");
    put_label_value(&out, model->name);
    inf_buf_putc(&out, '"');
    if (model->space != NULL) {
        inf_buf_puts(&out, ",namespace=\"");
        put_label_value(&out, model->space);
        inf_buf_putc(&out, '"');
    }

    char *labels = out.failed ? NULL : inf_buf_give(&out, NULL);
    inf_buf_fini(&out);
    return labels;
}

/* What Prometheus does not allow in a name becomes "_". */
static void
put_label_name(inf_buf_t *out, const char *name)
{
    for (const char *p = name; *p != '\0'; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
            || (*p >= '0' && *p <= '9');
        inf_buf_putc(out, plain ? *p : '_');
    }
}

/* A byte that is no UTF-8 would cost the reader all of the text. */
static void
put_label_value(inf_buf_t *out, const char *text)
{
    const char *bad = text + inf_utf8_valid_prefix(inf_slice_str(text));

    for (const char *p = text; *p != '\0'; p++) {
        if (p == bad) {
            inf_buf_putc(out, '?');
            bad = p + 1 + inf_utf8_valid_prefix(inf_slice_str(p + 1));
        } else if (*p == '\\' || *p == '"') {
            inf_buf_putc(out, '\\');
            inf_buf_putc(out, *p);
        } else if (*p == '\n') {
            inf_buf_puts(out, "\\n");
        } else {
            inf_buf_putc(out, *p);
        }
    }
}

static void
put_head(const text_t *t, const char *name, const char *help, const char *type)
{
    inf_buf_printf(t->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
        type);
}

/* name_suffix{labels,version="1"} and a blank. */
static void
put_sample(const text_t *t, const snapshot_t *m, const char *name,
    const char *suffix)
{
    inf_buf_printf(t->out, "%s%s{%s,version=\"%lld\"} ", name, suffix,
        m->labels, (long long) m->model->version);
}

/* Of the process, whichever server is asked. */
static void
put_pinned(const text_t *t)
{
    inf_memory_usage_of_pool_t usage = inf_memory_pinned_usage(
        inf_memory_shared());

    put_head(t, "nv_pinned_memory_pool_total_bytes", "pinned memory of the"
        " core", "gauge");
    inf_buf_printf(t->out, "nv_pinned_memory_pool_total_bytes %llu\n",
        (unsigned long long) usage.total);
    put_head(t, "nv_pinned_memory_pool_used_bytes", "pinned memory in use",
        "gauge");
    inf_buf_printf(t->out, "nv_pinned_memory_pool_used_bytes %llu\n",
        (unsigned long long) usage.used);
}

static void
put_families(const text_t *t)
{
    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        const family_t *family = &families[f];
        if (family->latency && !t->settings->counters) {
            continue;
        }

        put_head(t, family->name, family->help,
            family->gauge ? "gauge" : "counter");
        for (size_t i = 0; i < t->count; i++) {
            put_sample(t, &t->models[i], family->name, "");
            inf_metric_put_number(t->out, family->value(&t->models[i]));
            inf_buf_putc(t->out, '\n');
        }
    }
}

/* Nothing at all without a model that has one. */
static void
put_cache_families(const text_t *t)
{
    size_t families_count = sizeof(cache_families) / sizeof(cache_families[0]);

    for (size_t f = 0; t->settings->counters && f < families_count; f++) {
        const family_t *family = &cache_families[f];
        bool first = true;

        for (size_t i = 0; i < t->count; i++) {
            if (t->models[i].model->cached == NULL) {
                continue;
            }
            if (first) {
                put_head(t, family->name, family->help, "counter");
                first = false;
            }
            put_sample(t, &t->models[i], family->name, "");
            inf_metric_put_number(t->out, family->value(&t->models[i]));
            inf_buf_putc(t->out, '\n');
        }
    }
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

    put_head(t, name, "requests that failed, and why", "counter");
    for (size_t i = 0; i < t->count; i++) {
        const snapshot_t *m = &t->models[i];
        for (size_t r = 0; r < INF_FAILURE_COUNT; r++) {
            inf_buf_printf(t->out, "%s{%s,reason=\"%s\",version=\"%lld\"}"
                " %llu\n", name, m->labels, reasons[r],
                (long long) m->model->version,
                (unsigned long long) m->s.failures[r]);
        }
    }
}

static void
put_histograms(const text_t *t)
{
    if (!t->settings->histograms) {
        return;
    }

    put_head(t, INF_LATENCY_FIRST_RESPONSE, "from a request to its first"
        " response", "histogram");
    for (size_t i = 0; i < t->count; i++) {
        const inf_latencies_t *l = t->models[i].model->latencies;
        if (l != NULL && l->histogram) {
            put_histogram(t, &t->models[i]);
        }
    }
}

/* The counts are read once, so that _count is the last bucket's. */
static void
put_histogram(const text_t *t, const snapshot_t *m)
{
    const inf_latencies_t *l = m->model->latencies;
    inf_buf_t rows;
    uint64_t total = 0;

    inf_buf_init(&rows);
    for (size_t i = 0; i <= l->bound_count; i++) {
        total += atomic_load_explicit(&l->counts[i], memory_order_relaxed);
        inf_buf_printf(&rows, INF_LATENCY_FIRST_RESPONSE "_bucket{%s,version="
            "\"%lld\",le=\"", m->labels, (long long) m->model->version);
        inf_metric_put_number(&rows, i < l->bound_count ? l->bounds[i]
            : INFINITY);
        inf_buf_printf(&rows, "\"} %llu\n", (unsigned long long) total);
    }

    put_sample(t, m, INF_LATENCY_FIRST_RESPONSE, "_count");
    inf_buf_printf(t->out, "%llu\n", (unsigned long long) total);
    put_sample(t, m, INF_LATENCY_FIRST_RESPONSE, "_sum");
    inf_buf_printf(t->out, "%llu\n", (unsigned long long) atomic_load_explicit(
        &l->sum_ms, memory_order_relaxed));
    inf_buf_put(t->out, rows.data, rows.len);
    t->out->failed = t->out->failed || rows.failed;
    inf_buf_fini(&rows);
}

static void
put_summaries(const text_t *t)
{
    const char *text = t->settings->quantiles;
    double quantiles[QUANTILES_MAX];

    if (!t->settings->summaries) {
        return;
    }

    size_t count = inf_metrics_quantiles(text[0] != '\0' ? text
        : QUANTILES_USUAL, quantiles, QUANTILES_MAX);
    for (size_t f = 0;
        f < sizeof(summary_families) / sizeof(summary_families[0]); f++)
    {
        const summary_family_t *family = &summary_families[f];

        put_head(t, family->name, family->help, "summary");
        for (size_t i = 0; i < t->count; i++) {
            const inf_latencies_t *l = t->models[i].model->latencies;
            bool whole = family->which == INF_LATENCY_REQUEST;
            if (whole && t->models[i].model->cached != NULL) {
                continue;           /* as the original: hits would blur it   */
            }
            if (l != NULL && l->summaries[0] != NULL) {
                put_summary(t, &t->models[i], family, quantiles, count);
            }
        }
    }
}

static void
put_summary(const text_t *t, const snapshot_t *m,
    const summary_family_t *family, const double *quantiles, size_t count)
{
    const inf_summary_t *s = m->model->latencies->summaries[family->which];
    double values[QUANTILES_MAX];

    put_sample(t, m, family->name, "_count");
    inf_buf_printf(t->out, "%llu\n",
        (unsigned long long) inf_summary_count(s));
    put_sample(t, m, family->name, "_sum");
    inf_buf_printf(t->out, "%llu\n", (unsigned long long) inf_summary_sum(s));

    inf_summary_quantiles(s, t->now_ns, quantiles, count, values);
    for (size_t i = 0; i < count; i++) {
        inf_buf_printf(t->out, "%s{%s,version=\"%lld\",quantile=\"",
            family->name, m->labels, (long long) m->model->version);
        inf_metric_put_number(t->out, quantiles[i]);
        inf_buf_puts(t->out, "\"} ");
        inf_metric_put_number(t->out, values[i]);
        inf_buf_putc(t->out, '\n');
    }
}
