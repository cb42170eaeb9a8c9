/* api_metrics.c - the metrics text: what the core counts of its models, then
   what backends and the program registered. */

#include "core/service/api.h"

#include "core/abi/metrics.h"
#include "core/base/log.h"
#include "core/sched/runtime.h"
#include "core/service/ready_models.h"

typedef uint64_t (*count_fn)(const inf_model_t *model,
    const inf_statistics_t *s);

typedef struct {
    const char *name;
    const char *type;
    const char *help;
    count_fn    count;
} family_t;

static void write_models(void *userp, inf_buf_t *out);
static void write_row(const family_t *family, const inf_model_t *model,
    inf_buf_t *out);
static void put_label_value(inf_buf_t *out, const char *text);

static uint64_t
successes(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->success.count;
}

static uint64_t
inferences(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->inference_count;
}

static uint64_t
executions(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->execution_count;
}

static uint64_t
pending(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) s;
    return inf_runner_pending(model->runner);
}

static uint64_t
request_us(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->success.ns / 1000;
}

static uint64_t
queue_us(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->queue.ns / 1000;
}

static uint64_t
input_us(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->compute_input.ns / 1000;
}

static uint64_t
infer_us(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->compute_infer.ns / 1000;
}

static uint64_t
output_us(const inf_model_t *model, const inf_statistics_t *s)
{
    (void) model;
    return s->compute_output.ns / 1000;
}

static const family_t families[] = {
    { "nv_inference_request_success", "counter",
        "requests answered", successes },
    { "nv_inference_count", "counter",
        "inferences, a batch's rows each", inferences },
    { "nv_inference_exec_count", "counter",
        "executions of the model", executions },
    { "nv_inference_pending_request_count", "gauge",
        "requests queued or running", pending },
    { "nv_inference_request_duration_us", "counter",
        "time of answered requests", request_us },
    { "nv_inference_queue_duration_us", "counter",
        "time in the queue", queue_us },
    { "nv_inference_compute_input_duration_us", "counter",
        "time gathering inputs", input_us },
    { "nv_inference_compute_infer_duration_us", "counter",
        "time computing", infer_us },
    { "nv_inference_compute_output_duration_us", "counter",
        "time writing outputs", output_us }
};

TRITONSERVER_Error *
TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server,
    TRITONSERVER_Metrics **metrics)
{
    *metrics = inf_metrics_new(write_models, inf_as_server(server));
    return *metrics != NULL ? NULL : inf_err_nomem();
}

static void
write_models(void *userp, inf_buf_t *out)
{
    inf_ready_models_t ready;
    inf_err_t *err = inf_ready_models_init(&ready, userp);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "metrics lack the models"));
        return;
    }

    size_t count = sizeof(families) / sizeof(families[0]);
    for (size_t f = 0; ready.count > 0 && f < count; f++) {
        inf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", families[f].name,
            families[f].help, families[f].name, families[f].type);
        for (size_t i = 0; i < ready.count; i++) {
            write_row(&families[f], ready.models[i], out);
        }
    }

    inf_ready_models_fini(&ready);
}

static void
write_row(const family_t *family, const inf_model_t *model, inf_buf_t *out)
{
    inf_statistics_t s = { 0 };
    inf_statistics_fold(&s, &model->statistics);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        inf_statistics_fold(&s, &model->instances[i].statistics);
    }

    inf_buf_printf(out, "%s{model=\"", family->name);
    put_label_value(out, model->name);
    inf_buf_printf(out, "\",version=\"%lld\"} %llu\n",
        (long long) model->version,
        (unsigned long long) family->count(model, &s));
    inf_statistics_fini(&s);
}

static void
put_label_value(inf_buf_t *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"') {
            inf_buf_putc(out, '\\');
            inf_buf_putc(out, *p);
        } else if (*p == '\n') {
            inf_buf_puts(out, "\\n");
        } else {
            inf_buf_putc(out, *p);
        }
    }
}
