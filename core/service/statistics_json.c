#include "core/service/statistics_json.h"

#include <stdlib.h>

#include "core/proto/message_json.h"
#include "core/tensor/memory.h"

static void put_statistics(const inf_statistics_t *s, inf_buf_t *json);
static void put_batches(const inf_statistics_t *s, inf_buf_t *json);
static int by_batch_size(const void *a, const void *b);
static void put_responses(const inf_model_t *model, inf_buf_t *json);
static void add_responses(inf_response_stat_t *into,
    const inf_response_stat_t *from);
static void add_duration(inf_duration_t *into, const inf_duration_t *from);
static inf_err_t *put_memory(inf_model_t *model, inf_buf_t *json);
static void put_duration(inf_buf_t *json, const char *name,
    const inf_duration_t *d, const char *after);

inf_err_t *
inf_statistics_json(inf_model_t *model, inf_buf_t *json)
{
    inf_statistics_t s = { 0 };

    inf_statistics_fold(&s, &model->statistics);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        inf_statistics_fold(&s, &model->instances[i].statistics);
    }

    inf_buf_puts(json, "{\"name\":");
    inf_json_put_string(json, inf_slice_str(model->name));
    inf_buf_printf(json, ",\"version\":\"%lld\",",
        (long long) model->version);
    put_statistics(&s, json);
    inf_buf_puts(json, ",\"response_stats\":{");
    put_responses(model, json);
    inf_buf_puts(json, "},\"batch_stats\":[");
    put_batches(&s, json);
    inf_buf_puts(json, "],\"memory_usage\":[");
    inf_err_t *err = put_memory(model, json);
    inf_buf_puts(json, "]}");

    inf_statistics_fini(&s);
    return err != NULL ? err : inf_buf_status(json);
}

static void
put_statistics(const inf_statistics_t *s, inf_buf_t *json)
{
    inf_buf_printf(json, "\"last_inference\":%llu,\"inference_count\":%llu,"
        "\"execution_count\":%llu,\"inference_stats\":{",
        (unsigned long long) s->last_inference_ms,
        (unsigned long long) s->inference_count,
        (unsigned long long) s->execution_count);
    put_duration(json, "success", &s->success, ",");
    put_duration(json, "fail", &s->fail, ",");
    put_duration(json, "queue", &s->queue, ",");
    put_duration(json, "compute_input", &s->compute_input, ",");
    put_duration(json, "compute_infer", &s->compute_infer, ",");
    put_duration(json, "compute_output", &s->compute_output, ",");
    put_duration(json, "cache_hit", &s->cache_hit, ",");
    put_duration(json, "cache_miss", &s->cache_miss, "}");
}

/* By size, ascending. */
static void
put_batches(const inf_statistics_t *s, inf_buf_t *json)
{
    const inf_batch_stat_t *sorted[INF_STAT_BATCH_SLOTS];
    size_t count = 0;

    for (size_t i = 0; i < INF_STAT_BATCH_SLOTS; i++) {
        if (s->batches[i].batch_size != 0) {
            sorted[count++] = &s->batches[i];
        }
    }
    qsort(sorted, count, sizeof(inf_batch_stat_t *), by_batch_size);

    for (size_t i = 0; i < count; i++) {
        inf_buf_printf(json, "%s{\"batch_size\":%llu,", i > 0 ? "," : "",
            (unsigned long long) sorted[i]->batch_size);
        put_duration(json, "compute_input", &sorted[i]->compute_input, ",");
        put_duration(json, "compute_infer", &sorted[i]->compute_infer, ",");
        put_duration(json, "compute_output", &sorted[i]->compute_output, "}");
    }
}

static int
by_batch_size(const void *a, const void *b)
{
    uint64_t x = (*(const inf_batch_stat_t *const *) a)->batch_size;
    uint64_t y = (*(const inf_batch_stat_t *const *) b)->batch_size;
    return x < y ? -1 : x > y;
}

/* By index, summed over what was counted where. */
static void
put_responses(const inf_model_t *model, inf_buf_t *json)
{
    bool first = true;

    for (uint32_t index = 0; index < INF_STAT_RESPONSES; index++) {
        inf_response_stat_t sum = { 0 };
        const inf_response_stat_t *at = inf_statistics_find_response(
            &model->statistics, index);
        bool any = at != NULL;
        add_responses(&sum, at);

        for (uint32_t i = 0; i < model->instance_count; i++) {
            at = inf_statistics_find_response(&model->instances[i].statistics,
                index);
            any |= at != NULL;
            add_responses(&sum, at);
        }
        if (!any) {
            return;             /* indexes are seen from 0 on                */
        }

        inf_buf_printf(json, "%s\"%u\":{", first ? "" : ",", index);
        first = false;
        put_duration(json, "compute_infer", &sum.compute_infer, ",");
        put_duration(json, "compute_output", &sum.compute_output, ",");
        put_duration(json, "success", &sum.success, ",");
        put_duration(json, "fail", &sum.fail, ",");
        put_duration(json, "empty_response", &sum.empty_response, ",");
        put_duration(json, "cancel", &sum.cancel, "}");
    }
}

static void
add_responses(inf_response_stat_t *into, const inf_response_stat_t *from)
{
    if (from != NULL) {
        add_duration(&into->compute_infer, &from->compute_infer);
        add_duration(&into->compute_output, &from->compute_output);
        add_duration(&into->success, &from->success);
        add_duration(&into->fail, &from->fail);
        add_duration(&into->empty_response, &from->empty_response);
        add_duration(&into->cancel, &from->cancel);
    }
}

static void
add_duration(inf_duration_t *into, const inf_duration_t *from)
{
    into->count += from->count;
    into->ns += from->ns;
}

static inf_err_t *
put_memory(inf_model_t *model, inf_buf_t *json)
{
    inf_memory_row_t *rows = NULL;
    size_t count = 0;

    inf_err_t *err = inf_model_memory_usage(model, &rows, &count);
    for (size_t i = 0; err == NULL && i < count; i++) {
        inf_buf_printf(json, "%s{\"type\":\"%s\",\"id\":%lld,"
            "\"byte_size\":%llu}", i > 0 ? "," : "",
            inf_memory_type_name(rows[i].memory_type),
            (long long) rows[i].memory_id,
            (unsigned long long) rows[i].byte_size);
    }

    free(rows);
    return err;
}

static void
put_duration(inf_buf_t *json, const char *name, const inf_duration_t *d,
    const char *after)
{
    inf_buf_printf(json, "\"%s\":{\"count\":%llu,\"ns\":%llu}%s", name,
        (unsigned long long) d->count, (unsigned long long) d->ns, after);
}
