#include "core/model/statistics.h"

#include <stddef.h>

static uint64_t span(uint64_t from, uint64_t to);
static void fold_duration(inf_duration_t *into, const inf_duration_t *from);
static inf_batch_stat_t *batch_slot(inf_statistics_t *s, uint64_t rows);

void
inf_statistics_success(inf_statistics_t *s, uint32_t rows,
    uint64_t request_start_ns, uint64_t queue_start_ns,
    const uint64_t stamps[4], uint64_t now_ns)
{
    inf_duration_add(&s->success, span(request_start_ns, now_ns));
    inf_duration_add(&s->queue, span(queue_start_ns, stamps[0]));
    inf_duration_add(&s->compute_input, span(stamps[0], stamps[1]));
    inf_duration_add(&s->compute_infer, span(stamps[1], stamps[2]));
    inf_duration_add(&s->compute_output, span(stamps[2], stamps[3]));
    atomic_fetch_add_explicit(&s->inference_count, rows,
        memory_order_relaxed);
}

void
inf_statistics_failure(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t now_ns)
{
    inf_duration_add(&s->fail, span(request_start_ns, now_ns));
}

void
inf_statistics_batch(inf_statistics_t *s, uint64_t rows,
    const uint64_t stamps[4], uint64_t wall_ms)
{
    atomic_fetch_add_explicit(&s->execution_count, 1, memory_order_relaxed);

    uint64_t last = atomic_load_explicit(&s->last_inference_ms,
        memory_order_relaxed);
    while (last < wall_ms
        && !atomic_compare_exchange_weak_explicit(&s->last_inference_ms,
            &last, wall_ms, memory_order_relaxed, memory_order_relaxed))
    {
        continue;
    }

    inf_batch_stat_t *slot = batch_slot(s, rows);
    if (slot == NULL) {
        return;
    }

    inf_duration_add(&slot->compute_input, span(stamps[0], stamps[1]));
    inf_duration_add(&slot->compute_infer, span(stamps[1], stamps[2]));
    inf_duration_add(&slot->compute_output, span(stamps[2], stamps[3]));
}

void
inf_statistics_fold(inf_statistics_t *into, const inf_statistics_t *from)
{
    fold_duration(&into->success, &from->success);
    fold_duration(&into->fail, &from->fail);
    fold_duration(&into->queue, &from->queue);
    fold_duration(&into->compute_input, &from->compute_input);
    fold_duration(&into->compute_infer, &from->compute_infer);
    fold_duration(&into->compute_output, &from->compute_output);
    fold_duration(&into->cache_hit, &from->cache_hit);
    fold_duration(&into->cache_miss, &from->cache_miss);

    into->inference_count += from->inference_count;
    into->execution_count += from->execution_count;
    if (into->last_inference_ms < from->last_inference_ms) {
        into->last_inference_ms = from->last_inference_ms;
    }

    for (size_t i = 0; i < INF_STAT_BATCH_SLOTS; i++) {
        const inf_batch_stat_t *slot = &from->batches[i];
        uint64_t rows = slot->batch_size;
        inf_batch_stat_t *mine = rows != 0 ? batch_slot(into, rows) : NULL;
        if (mine != NULL) {
            fold_duration(&mine->compute_input, &slot->compute_input);
            fold_duration(&mine->compute_infer, &slot->compute_infer);
            fold_duration(&mine->compute_output, &slot->compute_output);
        }
    }
}

/* Stamps come from backends: a clock run backwards counts as nothing. */
static uint64_t
span(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static void
fold_duration(inf_duration_t *into, const inf_duration_t *from)
{
    into->count += from->count;
    into->ns += from->ns;
}

/* Finds or claims the slot of a batch size; NULL when all are taken. */
static inf_batch_stat_t *
batch_slot(inf_statistics_t *s, uint64_t rows)
{
    for (size_t i = 0; i < INF_STAT_BATCH_SLOTS; i++) {
        inf_batch_stat_t *slot = &s->batches[i];
        uint64_t have = atomic_load_explicit(&slot->batch_size,
            memory_order_relaxed);

        if (have == 0) {
            atomic_compare_exchange_strong_explicit(&slot->batch_size, &have,
                rows, memory_order_relaxed, memory_order_relaxed);
            have = atomic_load_explicit(&slot->batch_size,
                memory_order_relaxed);
        }
        if (have == rows) {
            return slot;
        }
    }

    return NULL;
}
