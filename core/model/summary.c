#include "core/model/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sum of all windows. */
typedef struct {
    uint32_t used;
    uint64_t total;
    uint64_t counts[INF_SUMMARY_BLOCKS][INF_SUMMARY_BLOCK];     /* of used
                                                                   blocks    */
} merged_t;

static void merge(merged_t *into, uint32_t used,
    const inf_summary_block_t *blocks);
static void empty(inf_summary_t *s, uint32_t kind, uint32_t window);
static double quantile(const merged_t *m, double q);
static double value_of(uint32_t block, uint32_t slot);

inf_summary_t *
inf_summary_new(void)
{
    inf_summary_t *s = aligned_alloc(_Alignof(inf_summary_t), sizeof(*s));
    if (s != NULL) {
        memset(s, 0, sizeof(*s));
    }
    return s;
}

void
inf_summary_free(inf_summary_t *s)
{
    free(s);
}

void
inf_summary_quantiles(const inf_summary_t *s, uint32_t kind, uint64_t now_ns,
    const double *quantiles, size_t count, double *values)
{
    uint64_t now = now_ns / INF_SUMMARY_WINDOW_NS;
    merged_t m;

    m.used = 0;
    m.total = 0;
    for (uint32_t i = 0; i < INF_SUMMARY_WINDOWS; i++) {
        const inf_summary_window_t *w = &s->windows[i];
        uint64_t epoch = atomic_load_explicit(&w->epoch,
            memory_order_relaxed);
        if (epoch <= now && now - epoch < INF_SUMMARY_WINDOWS) {
            merge(&m, atomic_load_explicit(&w->used[kind],
                memory_order_relaxed), s->counts[kind][i]);
        }
    }

    for (size_t i = 0; i < count; i++) {
        values[i] = quantile(&m, quantiles[i]);
    }
}

void
inf_summary_turn(inf_summary_t *s, uint32_t window, uint64_t epoch)
{
    inf_summary_window_t *w = &s->windows[window];
    uint64_t have = atomic_load_explicit(&w->epoch, memory_order_relaxed);

    if (have == epoch || !atomic_compare_exchange_strong_explicit(&w->epoch,
            &have, epoch, memory_order_relaxed, memory_order_relaxed))
    {
        return;                         /* another thread was first          */
    }

    for (uint32_t kind = 0; kind < INF_SUMMARY_KINDS; kind++) {
        empty(s, kind, window);
    }
}

static void
empty(inf_summary_t *s, uint32_t kind, uint32_t window)
{
    uint32_t used = atomic_exchange_explicit(&s->windows[window].used[kind], 0,
        memory_order_relaxed);

    for (uint32_t b = 0; b < INF_SUMMARY_BLOCKS; b++) {
        for (uint32_t i = 0; (used & 1u << b) != 0 && i < INF_SUMMARY_BLOCK;
            i++)
        {
            atomic_store_explicit(&s->counts[kind][window][b][i], 0,
                memory_order_relaxed);
        }
    }
}

static void
merge(merged_t *into, uint32_t used, const inf_summary_block_t *blocks)
{
    for (uint32_t b = 0; b < INF_SUMMARY_BLOCKS; b++) {
        if ((used & 1u << b) == 0) {
            continue;
        }
        if ((into->used & 1u << b) == 0) {
            memset(into->counts[b], 0, sizeof(into->counts[b]));
            into->used |= 1u << b;
        }
        for (uint32_t i = 0; i < INF_SUMMARY_BLOCK; i++) {
            uint32_t n = atomic_load_explicit(&blocks[b][i],
                memory_order_relaxed);
            into->counts[b][i] += n;
            into->total += n;
        }
    }
}

static double
quantile(const merged_t *m, double q)
{
    double rank = ceil(q * (double) m->total);
    uint64_t want = rank < 1 ? 1 : (uint64_t) rank;
    uint64_t seen = 0;
    double last = NAN;

    for (uint32_t b = 0; b < INF_SUMMARY_BLOCKS; b++) {
        for (uint32_t i = 0; (m->used & 1u << b) != 0 && i < INF_SUMMARY_BLOCK;
            i++)
        {
            if (m->counts[b][i] == 0) {
                continue;
            }
            last = value_of(b, i);
            seen += m->counts[b][i];
            if (seen >= want) {
                return last;
            }
        }
    }

    return last;
}

/* The middle of the slot's range. */
static double
value_of(uint32_t block, uint32_t slot)
{
    if (block < INF_SUMMARY_EXACT / INF_SUMMARY_BLOCK) {
        return block * INF_SUMMARY_BLOCK + slot;
    }

    uint64_t width = UINT64_C(1) << (block - 1);
    return (double) ((INF_SUMMARY_BLOCK + slot) * width + (width - 1) / 2);
}
