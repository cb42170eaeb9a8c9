#include "core/model/statistics.h"

#include <stddef.h>
#include <stdlib.h>

static void add_success(inf_statistics_t *s, uint64_t ns);
static uint64_t span(uint64_t from, uint64_t to);
static void fold_duration(inf_duration_t *into, const inf_duration_t *from);
static void fold_batches(inf_statistics_t *into,
    const inf_batch_page_t *from);
static inf_batch_stat_t *batch_slot(inf_statistics_t *s, uint64_t rows);
static inf_batch_page_t *batch_page_after(inf_batch_page_t *page);
static int by_batch_size(const void *a, const void *b);
static uint32_t response_page(uint32_t index, uint32_t *offset);
static inf_response_stat_t *response_slot(inf_statistics_t *s,
    uint32_t index);
static void response_seen(inf_statistics_t *s, uint32_t count);
static void response_add(inf_response_stat_t *slot, inf_response_end_t end,
    uint64_t infer_ns, uint64_t output_ns);

void
inf_statistics_fini(inf_statistics_t *s)
{
    inf_batch_page_t *page = atomic_exchange_explicit(&s->batches.next, NULL,
        memory_order_acquire);
    while (page != NULL) {
        inf_batch_page_t *next = page->next;
        free(page);
        page = next;
    }

    for (uint32_t i = 0; i < INF_STAT_RESPONSE_PAGES; i++) {
        free(atomic_load_explicit(&s->responses[i], memory_order_acquire));
        atomic_store_explicit(&s->responses[i], NULL, memory_order_relaxed);
    }
}

void
inf_statistics_success(inf_statistics_t *s, uint32_t rows,
    uint64_t request_start_ns, uint64_t queue_start_ns,
    const uint64_t stamps[4], uint64_t now_ns)
{
    add_success(s, span(request_start_ns, now_ns));
    inf_duration_add(&s->queue, span(queue_start_ns, stamps[0]));
    inf_duration_add(&s->compute_input, span(stamps[0], stamps[1]));
    inf_duration_add(&s->compute_infer, span(stamps[1], stamps[2]));
    inf_duration_add(&s->compute_output, span(stamps[2], stamps[3]));
    atomic_fetch_add_explicit(&s->inference_count, rows,
        memory_order_relaxed);
}

void
inf_statistics_cache_hit(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t queue_start_ns, uint64_t lookup_start_ns, uint64_t lookup_ns,
    uint64_t now_ns)
{
    add_success(s, span(request_start_ns, now_ns));
    inf_duration_add(&s->queue, span(queue_start_ns, lookup_start_ns));
    inf_duration_add(&s->cache_hit, lookup_ns);
}

static void
add_success(inf_statistics_t *s, uint64_t ns)
{
    inf_duration_add(&s->success, ns);
    inf_histogram_add(&s->histograms[INF_HISTOGRAM_REQUEST], ns);
}

void
inf_statistics_observe(inf_statistics_t *s, uint64_t queue_start_ns,
    const uint64_t stamps[4])
{
    inf_histogram_add(&s->histograms[INF_HISTOGRAM_QUEUE],
        span(queue_start_ns, stamps[0]));
    inf_histogram_add(&s->histograms[INF_HISTOGRAM_COMPUTE],
        span(stamps[0], stamps[1]) + span(stamps[1], stamps[2])
            + span(stamps[2], stamps[3]));
}

void
inf_statistics_observe_hit(inf_statistics_t *s, uint64_t queue_start_ns,
    uint64_t lookup_start_ns)
{
    inf_histogram_add(&s->histograms[INF_HISTOGRAM_QUEUE],
        span(queue_start_ns, lookup_start_ns));
}

void
inf_statistics_failure(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t now_ns)
{
    inf_statistics_failure_for(s, INF_FAILURE_OTHER, request_start_ns, now_ns);
}

void
inf_statistics_failure_for(inf_statistics_t *s, inf_failure_t reason,
    uint64_t request_start_ns, uint64_t now_ns)
{
    inf_duration_add(&s->fail, span(request_start_ns, now_ns));
    atomic_fetch_add_explicit(&s->failures[reason], 1, memory_order_relaxed);
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

size_t
inf_statistics_batches(const inf_statistics_t *s,
    const inf_batch_stat_t **out, size_t cap)
{
    size_t count = 0;

    for (const inf_batch_page_t *page = &s->batches; page != NULL;
        page = atomic_load_explicit(&page->next, memory_order_acquire))
    {
        for (size_t i = 0; i < INF_STAT_BATCH_SLOTS; i++) {
            if (page->slots[i].batch_size != 0 && count++ < cap) {
                out[count - 1] = &page->slots[i];
            }
        }
    }

    if (cap > 0) {
        qsort(out, count < cap ? count : cap, sizeof(inf_batch_stat_t *),
            by_batch_size);
    }
    return count;
}

inf_err_t *
inf_statistics_response(inf_statistics_t *s, uint32_t index,
    inf_response_end_t end, uint64_t start_ns, uint64_t output_ns,
    uint64_t end_ns)
{
    if (index >= INF_STAT_RESPONSES) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "response %u of a request:"
            " statistics count the first %u", index, INF_STAT_RESPONSES);
    }

    inf_response_stat_t *slot = response_slot(s, index);
    if (slot == NULL) {
        return inf_err_nomem();
    }

    uint64_t outputs_at = output_ns != 0 ? output_ns : end_ns;
    response_add(slot, end, span(start_ns, outputs_at),
        span(outputs_at, end_ns));

    response_seen(s, index + 1);
    return NULL;
}

const inf_response_stat_t *
inf_statistics_find_response(const inf_statistics_t *s, uint32_t index)
{
    if (index >= atomic_load_explicit(&s->response_count,
            memory_order_relaxed))
    {
        return NULL;            /* its page may exist for other sizes        */
    }

    uint32_t offset;
    uint32_t page = response_page(index, &offset);
    const inf_response_stat_t *slots = atomic_load_explicit(
        &s->responses[page], memory_order_acquire);
    return slots != NULL ? &slots[offset] : NULL;
}

bool
inf_statistics_add_response(inf_response_stat_t *sum,
    const inf_statistics_t *from, uint32_t index)
{
    const inf_response_stat_t *at = inf_statistics_find_response(from, index);
    if (at == NULL) {
        return false;
    }

    fold_duration(&sum->compute_infer, &at->compute_infer);
    fold_duration(&sum->compute_output, &at->compute_output);
    fold_duration(&sum->success, &at->success);
    fold_duration(&sum->fail, &at->fail);
    fold_duration(&sum->empty_response, &at->empty_response);
    fold_duration(&sum->cancel, &at->cancel);
    return true;
}

inf_err_t *
inf_statistics_reserve(inf_statistics_t *into, const inf_statistics_t *from)
{
    uint32_t count = from->response_count;

    for (uint32_t page = 0, first = 0; first < count; page++) {
        if (response_slot(into, first) == NULL) {
            return inf_err_nomem();
        }
        first += 64u << page;
    }

    return NULL;
}

void
inf_statistics_absorb(inf_statistics_t *into, const inf_statistics_t *from)
{
    uint32_t offset;
    uint32_t n = 0;

    inf_statistics_fold(into, from);
    for (; n < from->response_count; n++) {
        uint32_t page = response_page(n, &offset);
        inf_response_stat_t *slots = atomic_load_explicit(
            &into->responses[page], memory_order_acquire);
        if (slots == NULL) {
            break;
        }
        inf_statistics_add_response(&slots[offset], from, n);
    }
    response_seen(into, n);
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
    for (size_t i = 0; i < INF_FAILURE_COUNT; i++) {
        into->failures[i] += from->failures[i];
    }
    if (into->last_inference_ms < from->last_inference_ms) {
        into->last_inference_ms = from->last_inference_ms;
    }

    for (size_t i = 0; i < INF_HISTOGRAM_COUNT; i++) {
        inf_histogram_fold(&into->histograms[i], &from->histograms[i]);
    }
    for (const inf_batch_page_t *page = &from->batches; page != NULL;
        page = atomic_load_explicit(&page->next, memory_order_acquire))
    {
        fold_batches(into, page);
    }
}

/* The time between stamps, which come from backends; 0 if they decrease. */
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

static void
fold_batches(inf_statistics_t *into, const inf_batch_page_t *from)
{
    for (size_t i = 0; i < INF_STAT_BATCH_SLOTS; i++) {
        const inf_batch_stat_t *slot = &from->slots[i];
        uint64_t rows = slot->batch_size;
        inf_batch_stat_t *mine = rows != 0 ? batch_slot(into, rows) : NULL;
        if (mine != NULL) {
            fold_duration(&mine->compute_input, &slot->compute_input);
            fold_duration(&mine->compute_infer, &slot->compute_infer);
            fold_duration(&mine->compute_output, &slot->compute_output);
        }
    }
}

/* Finds or claims the slot of a batch size; NULL: no room. */
static inf_batch_stat_t *
batch_slot(inf_statistics_t *s, uint64_t rows)
{
    inf_batch_page_t *page = &s->batches;

    for (uint32_t n = 0; n < INF_STAT_BATCH_PAGES && page != NULL;
        n++, page = batch_page_after(page))
    {
        inf_batch_stat_t *slot = &page->slots[rows % INF_STAT_BATCH_SLOTS];
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

/* The next page, created if missing; NULL: out of memory. */
static inf_batch_page_t *
batch_page_after(inf_batch_page_t *page)
{
    inf_batch_page_t *next = atomic_load_explicit(&page->next,
        memory_order_acquire);
    if (next != NULL) {
        return next;
    }

    inf_batch_page_t *made = calloc(1, sizeof(*made));
    if (made != NULL && atomic_compare_exchange_strong_explicit(&page->next,
            &next, made, memory_order_acq_rel, memory_order_acquire))
    {
        return made;
    }

    free(made);                         /* another thread was first          */
    return next;
}

static int
by_batch_size(const void *a, const void *b)
{
    uint64_t x = (*(const inf_batch_stat_t *const *) a)->batch_size;
    uint64_t y = (*(const inf_batch_stat_t *const *) b)->batch_size;
    return (x > y) - (x < y);
}

/* The page of an index; page p begins at index 64 * (2^p - 1). */
static uint32_t
response_page(uint32_t index, uint32_t *offset)
{
    uint32_t page = 0;
    while (index >= 64u << page) {
        index -= 64u << page;
        page++;
    }

    *offset = index;
    return page;
}

/* The counters of an index, created if missing; NULL: out of memory. */
static inf_response_stat_t *
response_slot(inf_statistics_t *s, uint32_t index)
{
    uint32_t offset;
    uint32_t page = response_page(index, &offset);
    inf_response_stat_t *slots = atomic_load_explicit(&s->responses[page],
        memory_order_acquire);

    if (slots == NULL) {
        inf_response_stat_t *made = calloc((size_t) 64 << page,
            sizeof(*made));
        if (made == NULL) {
            return NULL;
        }
        if (atomic_compare_exchange_strong_explicit(&s->responses[page],
                &slots, made, memory_order_acq_rel, memory_order_acquire))
        {
            slots = made;
        } else {
            free(made);                 /* another thread was first          */
        }
    }

    return &slots[offset];
}

/* Raises the number of indexes to count; never lowers it. */
static void
response_seen(inf_statistics_t *s, uint32_t count)
{
    uint32_t seen = atomic_load_explicit(&s->response_count,
        memory_order_relaxed);

    while (seen < count
        && !atomic_compare_exchange_weak_explicit(&s->response_count, &seen,
            count, memory_order_relaxed, memory_order_relaxed))
    {
        continue;
    }
}

static void
response_add(inf_response_stat_t *slot, inf_response_end_t end,
    uint64_t infer_ns, uint64_t output_ns)
{
    switch (end) {
    case INF_RESPONSE_SUCCESS:
        inf_duration_add(&slot->compute_infer, infer_ns);
        inf_duration_add(&slot->compute_output, output_ns);
        inf_duration_add(&slot->success, infer_ns + output_ns);
        break;
    case INF_RESPONSE_FAIL:
        inf_duration_add(&slot->compute_infer, infer_ns);
        if (output_ns > 0) {
            inf_duration_add(&slot->compute_output, output_ns);
        }
        inf_duration_add(&slot->fail, infer_ns + output_ns);
        break;
    case INF_RESPONSE_EMPTY:
        inf_duration_add(&slot->compute_infer, infer_ns);
        inf_duration_add(&slot->empty_response, infer_ns);
        break;
    case INF_RESPONSE_CANCEL:
        inf_duration_add(&slot->cancel, infer_ns + output_ns);
        break;
    }
}
