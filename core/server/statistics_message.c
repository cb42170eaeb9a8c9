#include "core/server/statistics_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/instances.h"
#include "core/tensor/memory.h"

typedef Inference__ModelStatistics                     model_message_t;
typedef Inference__StatisticDuration                   duration_message_t;
typedef Inference__InferStatistics                     infer_message_t;
typedef Inference__InferBatchStatistics                batch_message_t;
typedef Inference__InferResponseStatistics             response_message_t;
typedef Inference__ModelStatistics__ResponseStatsEntry response_entry_t;
typedef Inference__MemoryUsage                         memory_message_t;

/* After one failed allocation the message fails. */
typedef struct {
    inf_arena_t *arena;
    bool         failed;
} maker_t;

static bool is_wanted(const inf_model_t *model, const char *name,
    int64_t version);
static inf_err_t *describe(maker_t *mk, inf_model_t *model,
    model_message_t **out);
static infer_message_t *make_infer(maker_t *mk, const inf_statistics_t *s);
static void add_batches(maker_t *mk, const inf_statistics_t *s,
    model_message_t *out);
static void add_responses(maker_t *mk, inf_model_t *model,
    model_message_t *out);
static response_entry_t *make_response(maker_t *mk, uint32_t index,
    const inf_response_stat_t *s);
static inf_err_t *add_memory(maker_t *mk, inf_model_t *model,
    model_message_t *out);
static duration_message_t *make_duration(maker_t *mk,
    const inf_duration_t *d);
static char *make_number(maker_t *mk, long long number);
static void *make(maker_t *mk, size_t size);

inf_err_t *
inf_statistics_message(const inf_ready_models_t *ready, const char *name,
    int64_t version, inf_arena_t *arena,
    Inference__ModelStatisticsResponse *out)
{
    maker_t mk = { arena, false };
    bool known = false;

    inference__model_statistics_response__init(out);
    out->model_stats = make(&mk, (ready->count + 1)
        * sizeof(*out->model_stats));
    if (mk.failed) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < ready->count; i++) {
        inf_model_t *model = ready->models[i];
        known |= strcmp(model->name, name) == 0;
        if (!is_wanted(model, name, version)) {
            continue;
        }

        inf_err_t *err = describe(&mk, model,
            &out->model_stats[out->n_model_stats]);
        if (err != NULL) {
            return err;
        }
        out->n_model_stats++;
    }

    if (name[0] == '\0' || out->n_model_stats > 0) {
        return NULL;
    }
    return known ? inf_err_new(INF_ERR_INVALID_ARG, "requested model version"
            " is not available for model '%s'", name)
        : inf_err_new(INF_ERR_INVALID_ARG,
            "requested model '%s' is not available", name);
}

static bool
is_wanted(const inf_model_t *model, const char *name, int64_t version)
{
    return name[0] == '\0' || (strcmp(model->name, name) == 0
        && (version == -1 || model->version == version));
}

static inf_err_t *
describe(maker_t *mk, inf_model_t *model, model_message_t **out)
{
    inf_statistics_t s = { 0 };
    model_message_t *m = make(mk, sizeof(*m));

    if (m == NULL) {
        return inf_err_nomem();
    }

    inf_model_sum_statistics(model, &s);

    inference__model_statistics__init(m);
    m->name = model->name;
    m->version = make_number(mk, model->version);
    m->last_inference = s.last_inference_ms;
    m->inference_count = s.inference_count;
    m->execution_count = s.execution_count;
    m->inference_stats = make_infer(mk, &s);
    add_batches(mk, &s, m);
    add_responses(mk, model, m);
    inf_err_t *err = add_memory(mk, model, m);

    inf_statistics_fini(&s);
    *out = m;
    return err != NULL ? err : mk->failed ? inf_err_nomem() : NULL;
}

static infer_message_t *
make_infer(maker_t *mk, const inf_statistics_t *s)
{
    infer_message_t *m = make(mk, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }

    inference__infer_statistics__init(m);
    m->success = make_duration(mk, &s->success);
    m->fail = make_duration(mk, &s->fail);
    m->queue = make_duration(mk, &s->queue);
    m->compute_input = make_duration(mk, &s->compute_input);
    m->compute_infer = make_duration(mk, &s->compute_infer);
    m->compute_output = make_duration(mk, &s->compute_output);
    m->cache_hit = make_duration(mk, &s->cache_hit);
    m->cache_miss = make_duration(mk, &s->cache_miss);
    return m;
}

/* Adds the batch sizes, ascending. */
static void
add_batches(maker_t *mk, const inf_statistics_t *s, model_message_t *out)
{
    size_t count = inf_statistics_batches(s, NULL, 0);
    const inf_batch_stat_t **sorted = make(mk, (count + 1)
        * sizeof(const inf_batch_stat_t *));
    if (mk->failed) {
        return;
    }

    count = inf_statistics_batches(s, sorted, count);
    out->batch_stats = make(mk, (count + 1) * sizeof(*out->batch_stats));
    for (size_t i = 0; !mk->failed && i < count; i++) {
        batch_message_t *m = make(mk, sizeof(*m));
        if (m == NULL) {
            return;
        }
        inference__infer_batch_statistics__init(m);
        m->batch_size = sorted[i]->batch_size;
        m->compute_input = make_duration(mk, &sorted[i]->compute_input);
        m->compute_infer = make_duration(mk, &sorted[i]->compute_infer);
        m->compute_output = make_duration(mk, &sorted[i]->compute_output);
        out->batch_stats[out->n_batch_stats++] = m;
    }
}

/* Adds the sums by response index; indexes begin at 0 without gaps. */
static void
add_responses(maker_t *mk, inf_model_t *model, model_message_t *out)
{
    inf_response_stat_t sum;
    uint32_t count = 0;

    while (count < INF_STAT_RESPONSES
        && inf_model_sum_responses(model, count, &sum))
    {
        count++;
    }

    out->response_stats = make(mk, (count + 1)
        * sizeof(*out->response_stats));
    for (uint32_t i = 0; !mk->failed && i < count; i++) {
        if (!inf_model_sum_responses(model, i, &sum)) {
            return;
        }
        out->response_stats[i] = make_response(mk, i, &sum);
        if (!mk->failed) {
            out->n_response_stats++;
        }
    }
}

static response_entry_t *
make_response(maker_t *mk, uint32_t index, const inf_response_stat_t *s)
{
    response_entry_t *entry = make(mk, sizeof(*entry));
    response_message_t *m = make(mk, sizeof(*m));
    if (mk->failed) {
        return NULL;
    }

    inference__model_statistics__response_stats_entry__init(entry);
    inference__infer_response_statistics__init(m);
    m->compute_infer = make_duration(mk, &s->compute_infer);
    m->compute_output = make_duration(mk, &s->compute_output);
    m->success = make_duration(mk, &s->success);
    m->fail = make_duration(mk, &s->fail);
    m->empty_response = make_duration(mk, &s->empty_response);
    m->cancel = make_duration(mk, &s->cancel);
    entry->key = make_number(mk, index);
    entry->value = m;
    return entry;
}

static inf_err_t *
add_memory(maker_t *mk, inf_model_t *model, model_message_t *out)
{
    inf_memory_row_t *rows = NULL;
    size_t count = 0;

    inf_err_t *err = inf_model_memory_usage(model, &rows, &count);
    if (err != NULL) {
        return err;
    }

    out->memory_usage = make(mk, (count + 1) * sizeof(*out->memory_usage));
    for (size_t i = 0; !mk->failed && i < count; i++) {
        memory_message_t *m = make(mk, sizeof(*m));
        if (m != NULL) {
            inference__memory_usage__init(m);
            m->type = (char *) (uintptr_t) inf_memory_type_name(
                rows[i].memory_type);
            m->id = rows[i].memory_id;
            m->byte_size = rows[i].byte_size;
            out->memory_usage[out->n_memory_usage++] = m;
        }
    }

    free(rows);
    return NULL;
}

static duration_message_t *
make_duration(maker_t *mk, const inf_duration_t *d)
{
    duration_message_t *m = make(mk, sizeof(*m));
    if (m != NULL) {
        inference__statistic_duration__init(m);
        m->count = d->count;
        m->ns = d->ns;
    }
    return m;
}

static char *
make_number(maker_t *mk, long long number)
{
    char *text = make(mk, 24);
    if (text != NULL) {
        snprintf(text, 24, "%lld", number);
    }
    return text;
}

static void *
make(maker_t *mk, size_t size)
{
    void *memory = inf_arena_alloc(mk->arena, size);
    mk->failed |= memory == NULL;
    return memory;
}
