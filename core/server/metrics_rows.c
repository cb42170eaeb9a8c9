#include "core/server/metrics_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/model/instances.h"
#include "core/proto/message_utf8.h"
#include "core/sched/gate.h"
#include "core/sched/runtime.h"
#include "core/tensor/memory.h"

/* The rows of one model. */
typedef struct {
    inf_metrics_rows_t *rows;
    size_t              first;
} model_rows_t;

static void put_start(const inf_metrics_row_t *row, const char *name,
    const char *suffix, inf_buf_t *out);
static inf_err_t *add_model(inf_metrics_rows_t *rows, inf_model_t *model,
    bool by_gpu);
static inf_err_t *add_gpu(const model_rows_t *m, inf_model_t *model,
    const inf_instance_spec_t *spec);
static inf_metrics_row_t *row_of(const model_rows_t *m,
    const inf_instance_spec_t *spec);
static void add_statistics(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s);
static inf_err_t *add_row(inf_metrics_rows_t *rows, inf_model_t *model,
    int32_t device_id, const char *uuid, inf_metrics_row_t **out);
static void count_requests(inf_metrics_row_t *row);
static const char *uuid_of(int32_t device_id);
static char *make_labels(const inf_model_t *model, const char *uuid);
static const Inference__ModelConfig__MetricTagsEntry *next_tag(
    const Inference__ModelConfig *msg,
    const Inference__ModelConfig__MetricTagsEntry *last);
static int compare_label_names(const char *a, const char *b);
static char label_char(char c);
static void put_label_name(inf_buf_t *out, const char *name);
static void put_label_value(inf_buf_t *out, const char *text);

inf_err_t *
inf_metrics_rows_init(inf_metrics_rows_t *rows,
    const inf_ready_models_t *ready, bool by_gpu)
{
    inf_err_t *err = NULL;

    *rows = (inf_metrics_rows_t) { .items = NULL };
    for (size_t i = 0; err == NULL && i < ready->count; i++) {
        err = add_model(rows, ready->models[i], by_gpu);
    }

    return err;
}

void
inf_metrics_rows_fini(inf_metrics_rows_t *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->items[i].labels);
        inf_statistics_fini(&rows->items[i].s);
    }

    free(rows->items);
    *rows = (inf_metrics_rows_t) { .items = NULL };
}

void
inf_metrics_row_put(const inf_metrics_row_t *row, const char *name,
    const char *suffix, const char *reason, inf_buf_t *out)
{
    put_start(row, name, suffix, out);
    if (reason != NULL) {
        inf_buf_puts(out, "reason=\"");
        inf_buf_puts(out, reason);
        inf_buf_puts(out, "\",");
    }
    inf_buf_puts(out, row->version);
    inf_buf_puts(out, "} ");
}

void
inf_metrics_row_put_last(const inf_metrics_row_t *row, const char *name,
    const char *suffix, const char *label, const char *value, inf_buf_t *out)
{
    put_start(row, name, suffix, out);
    inf_buf_puts(out, row->version);
    inf_buf_putc(out, ',');
    inf_buf_puts(out, label);
    inf_buf_puts(out, "=\"");
    inf_buf_puts(out, value);
    inf_buf_puts(out, "\"} ");
}

static void
put_start(const inf_metrics_row_t *row, const char *name, const char *suffix,
    inf_buf_t *out)
{
    inf_buf_puts(out, name);
    inf_buf_puts(out, suffix);
    inf_buf_putc(out, '{');
    inf_buf_puts(out, row->labels);
    inf_buf_putc(out, ',');
}

/* Adds the rows of a model.  Requests without an instance count in the model's
   row, as do those on no GPU. */
static inf_err_t *
add_model(inf_metrics_rows_t *rows, inf_model_t *model, bool by_gpu)
{
    model_rows_t m = { .rows = rows, .first = rows->count };
    inf_metrics_row_t *row;

    inf_err_t *err = add_row(rows, model, -1, NULL, &row);
    if (err != NULL) {
        return err;
    }

    count_requests(row);
    inf_instance_t *instance = NULL;
    while (by_gpu && err == NULL
        && (instance = inf_instance_visit_next(model, instance)) != NULL)
    {
        err = add_gpu(&m, model, instance->spec);
    }
    if (err != NULL) {
        inf_instance_visited(instance);
        return err;
    }

    inf_model_each_statistics(model, add_statistics, &m);
    return NULL;
}

/* Adds a row for the instance's GPU, unless there is one or the GPU is
   unknown. */
static inf_err_t *
add_gpu(const model_rows_t *m, inf_model_t *model,
    const inf_instance_spec_t *spec)
{
    inf_metrics_row_t *row;
    const char *uuid = NULL;

    if (row_of(m, spec) == &m->rows->items[m->first]) {
        uuid = spec->kind == INF_INSTANCE_GPU ? uuid_of(spec->device_id)
            : NULL;
    }
    return uuid == NULL ? NULL
        : add_row(m->rows, model, spec->device_id, uuid, &row);
}

/* The row of the instance's GPU, or the model's. */
static inf_metrics_row_t *
row_of(const model_rows_t *m, const inf_instance_spec_t *spec)
{
    inf_metrics_rows_t *rows = m->rows;

    for (size_t i = m->first + 1; spec != NULL
        && spec->kind == INF_INSTANCE_GPU && i < rows->count; i++)
    {
        if (rows->items[i].device_id == spec->device_id) {
            return &rows->items[i];
        }
    }

    return &rows->items[m->first];
}

static void
add_statistics(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s)
{
    inf_statistics_fold(&row_of(userp, spec)->s, s);
}

static inf_err_t *
add_row(inf_metrics_rows_t *rows, inf_model_t *model, int32_t device_id,
    const char *uuid, inf_metrics_row_t **out)
{
    if (rows->count == rows->cap) {
        size_t cap = rows->cap == 0 ? 16 : rows->cap * 2;
        inf_metrics_row_t *wider = realloc(rows->items, cap * sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        rows->items = wider;
        rows->cap = cap;
    }

    inf_latencies_t *latencies = model->latencies;
    if (latencies != NULL && device_id >= 0) {
        latencies = inf_latencies_of_gpu(latencies, device_id);
    }

    inf_metrics_row_t *row = &rows->items[rows->count];
    *row = (inf_metrics_row_t) {
        .model = model,
        .latencies = latencies,
        .labels = make_labels(model, uuid),
        .device_id = device_id
    };
    if (row->labels == NULL) {
        return inf_err_nomem();
    }

    snprintf(row->version, sizeof(row->version), "version=\"%lld\"",
        (long long) model->version);
    rows->count++;
    *out = row;
    return NULL;
}

static void
count_requests(inf_metrics_row_t *row)
{
    inf_model_t *model = row->model;

    if (model->sched.runner != NULL) {
        uint64_t all = inf_runner_pending(model->sched.runner);
        row->waiting = inf_runner_queued(model->sched.runner);
        row->executing = all > row->waiting ? all - row->waiting : 0;
        row->stuck = inf_runner_stuck(model->sched.runner).stuck;
    }
    if (model->sched.gate != NULL) {
        row->waiting += inf_gate_waiting(model->sched.gate);
    }
}

static const char *
uuid_of(int32_t device_id)
{
    const inf_cuda_t *driver = inf_memory_driver(inf_memory_shared());
    const inf_cuda_device_t *about = driver != NULL
        ? inf_cuda_device(driver, device_id) : NULL;

    return about != NULL && about->uuid[0] != '\0' ? about->uuid : NULL;
}

/* Renders the labels in byte order: tags begin with "_". */
static char *
make_labels(const inf_model_t *model, const char *uuid)
{
    const Inference__ModelConfig__MetricTagsEntry *tag = NULL;
    inf_buf_t out;

    inf_buf_init(&out);
    while (model->built != NULL
        && (tag = next_tag(model->built, tag)) != NULL)
    {
        inf_buf_putc(&out, '_');
        put_label_name(&out, tag->key);
        inf_buf_puts(&out, "=\"");
        put_label_value(&out, tag->value);
        inf_buf_puts(&out, "\",");
    }
    if (uuid != NULL) {
        inf_buf_printf(&out, "gpu_uuid=\"%s\",", uuid);
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

/* The next tag by name after last; of tags with the same name the last one. */
static const Inference__ModelConfig__MetricTagsEntry *
next_tag(const Inference__ModelConfig *msg,
    const Inference__ModelConfig__MetricTagsEntry *last)
{
    const Inference__ModelConfig__MetricTagsEntry *next = NULL;

    for (size_t i = 0; i < msg->n_metric_tags; i++) {
        const Inference__ModelConfig__MetricTagsEntry *tag =
            msg->metric_tags[i];
        if ((last == NULL || compare_label_names(tag->key, last->key) > 0)
            && (next == NULL || compare_label_names(tag->key, next->key) <= 0))
        {
            next = tag;
        }
    }

    return next;
}

static int
compare_label_names(const char *a, const char *b)
{
    while (*a != '\0' && label_char(*a) == label_char(*b)) {
        a++;
        b++;
    }
    return label_char(*a) - label_char(*b);
}

/* Replaces a character that Prometheus does not allow in a name by "_". */
static char
label_char(char c)
{
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9') || c == '\0';
    return plain ? c : '_';
}

static void
put_label_name(inf_buf_t *out, const char *name)
{
    for (; *name != '\0'; name++) {
        inf_buf_putc(out, label_char(*name));
    }
}

/* Writes a value with invalid UTF-8 replaced: one bad byte would make the whole
   text unreadable. */
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
