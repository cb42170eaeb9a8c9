#include "core/model/summary.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* 128 exact values, then 64 steps for each power of two from 2^7 to 2^35. */
#define SUMMARY_EXACT 128u
#define SUMMARY_STEPS 64u
#define SUMMARY_SLOTS (SUMMARY_EXACT + 29 * SUMMARY_STEPS)
#define SUMMARY_MAX   ((UINT64_C(1) << 36) - 1)

typedef struct {
    _Atomic uint64_t epoch;             /* which window of all time          */
    _Atomic uint32_t counts[SUMMARY_SLOTS];
} summary_window_t;

struct inf_summary_s {
    summary_window_t windows[INF_SUMMARY_WINDOWS];
};

static summary_window_t *window_of(inf_summary_t *s, uint64_t epoch);
static uint32_t slot_of(uint64_t value);
static double value_of(uint32_t slot);
static double quantile(const uint64_t *counts, uint64_t total, double q);

inf_summary_t *
inf_summary_new(void)
{
    return calloc(1, sizeof(inf_summary_t));
}

void
inf_summary_free(inf_summary_t *s)
{
    free(s);
}

void
inf_summary_observe(inf_summary_t *s, uint64_t value, uint64_t window)
{
    summary_window_t *w = window_of(s, window);

    atomic_fetch_add_explicit(&w->counts[slot_of(value)], 1,
        memory_order_relaxed);
}

void
inf_summary_quantiles(const inf_summary_t *s, uint64_t now_ns,
    const double *quantiles, size_t count, double *values)
{
    uint64_t merged[SUMMARY_SLOTS] = { 0 };
    uint64_t total = 0;
    uint64_t now = inf_summary_window(now_ns);

    for (size_t w = 0; w < INF_SUMMARY_WINDOWS; w++) {
        uint64_t epoch = atomic_load_explicit(&s->windows[w].epoch,
            memory_order_relaxed);
        if (epoch > now || now - epoch >= INF_SUMMARY_WINDOWS) {
            continue;
        }

        for (uint32_t i = 0; i < SUMMARY_SLOTS; i++) {
            uint32_t n = atomic_load_explicit(&s->windows[w].counts[i],
                memory_order_relaxed);
            merged[i] += n;
            total += n;
        }
    }

    for (size_t i = 0; i < count; i++) {
        values[i] = quantile(merged, total, quantiles[i]);
    }
}

/* The first value of a new window empties the oldest one. */
static summary_window_t *
window_of(inf_summary_t *s, uint64_t epoch)
{
    summary_window_t *w = &s->windows[epoch % INF_SUMMARY_WINDOWS];
    uint64_t have = atomic_load_explicit(&w->epoch, memory_order_relaxed);

    if (have != epoch && atomic_compare_exchange_strong_explicit(&w->epoch,
            &have, epoch, memory_order_relaxed, memory_order_relaxed))
    {
        for (uint32_t i = 0; i < SUMMARY_SLOTS; i++) {
            atomic_store_explicit(&w->counts[i], 0, memory_order_relaxed);
        }
    }

    return w;
}

static uint32_t
slot_of(uint64_t value)
{
    if (value < SUMMARY_EXACT) {
        return (uint32_t) value;
    }
    if (value > SUMMARY_MAX) {
        value = SUMMARY_MAX;
    }

    uint32_t power = 63u - (uint32_t) __builtin_clzll(value);
    uint32_t step = (uint32_t) (value >> (power - 6)) - SUMMARY_STEPS;
    return SUMMARY_EXACT + (power - 7) * SUMMARY_STEPS + step;
}

/* The middle of what is counted there. */
static double
value_of(uint32_t slot)
{
    if (slot < SUMMARY_EXACT) {
        return slot;
    }

    uint32_t power = 7 + (slot - SUMMARY_EXACT) / SUMMARY_STEPS;
    uint64_t step = SUMMARY_STEPS + (slot - SUMMARY_EXACT) % SUMMARY_STEPS;
    uint64_t width = UINT64_C(1) << (power - 6);
    return (double) (step * width + (width - 1) / 2);
}

static double
quantile(const uint64_t *counts, uint64_t total, double q)
{
    if (total == 0) {
        return NAN;
    }

    double rank = ceil(q * (double) total);
    uint64_t want = rank < 1 ? 1 : (uint64_t) rank;
    uint64_t seen = 0;
    uint32_t slot = 0;

    for (; slot < SUMMARY_SLOTS - 1; slot++) {
        seen += counts[slot];
        if (seen >= want) {
            break;
        }
    }

    return value_of(slot);
}
