/*
 * summary.h - quantiles of the last minute's values, of several kinds observed
 *             together.
 *
 * Owner    The creator.
 * Thread   any: relaxed atomics; a value at the begin of a window may be
 *          missing in quantiles.
 * Units    values are whole numbers: exact below 128, above in steps of at most
 *          1/64 of the value; 2^36 and more count as 2^36.
 * Errors   none.
 * Route    latencies -> [summary] -> metrics text
 *
 * A minute has five windows.  The first 128 values have a slot each; then each
 * power of two has 64 slots.  Slots are grouped in blocks of 64, and blocks
 * without values are not read.
 */

#ifndef INF_MODEL_SUMMARY_H
#define INF_MODEL_SUMMARY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define INF_SUMMARY_WINDOWS   5
#define INF_SUMMARY_WINDOW_NS UINT64_C(12000000000)
#define INF_SUMMARY_EXACT     128u
#define INF_SUMMARY_BLOCK     64u
#define INF_SUMMARY_BLOCKS    31u
#define INF_SUMMARY_MAX       ((UINT64_C(1) << 36) - 1)

#define INF_SUMMARY_KINDS     7u

/* One window; a cache line. */
typedef struct {
    _Alignas(64) _Atomic uint64_t epoch;    /* relaxed: number of the window in
                                               time                          */
    _Atomic uint32_t used[INF_SUMMARY_KINDS];   /* a bit for each block      */
} inf_summary_window_t;

typedef _Atomic uint32_t inf_summary_block_t[INF_SUMMARY_BLOCK];

typedef struct {
    inf_summary_window_t windows[INF_SUMMARY_WINDOWS];
    inf_summary_block_t  counts[INF_SUMMARY_KINDS][INF_SUMMARY_WINDOWS]
                             [INF_SUMMARY_BLOCKS];
} inf_summary_t;

/* NULL: out of memory. */
inf_summary_t *inf_summary_new(void);
void inf_summary_free(inf_summary_t *s);

/* Sets values[i] to the quantiles[i] (0 to 1) of the last minute; NaN: no
   values. */
void inf_summary_quantiles(const inf_summary_t *s, uint32_t kind,
    uint64_t now_ns, const double *quantiles, size_t count, double *values);

/* Begins a window, by clearing the values of a minute ago. */
void inf_summary_turn(inf_summary_t *s, uint32_t window, uint64_t epoch);

/* The window for values of now. */
static inline uint32_t
inf_summary_window(inf_summary_t *s, uint64_t now_ns)
{
    uint64_t epoch = now_ns / INF_SUMMARY_WINDOW_NS;
    uint32_t window = (uint32_t) (epoch % INF_SUMMARY_WINDOWS);

    if (atomic_load_explicit(&s->windows[window].epoch, memory_order_relaxed)
        != epoch)
    {
        inf_summary_turn(s, window, epoch);
    }
    return window;
}

static inline void
inf_summary_observe(inf_summary_t *s, uint32_t kind, uint32_t window,
    uint64_t value)
{
    _Atomic uint32_t *used = &s->windows[window].used[kind];
    uint32_t block = (uint32_t) (value / INF_SUMMARY_BLOCK);
    uint32_t slot = (uint32_t) (value % INF_SUMMARY_BLOCK);

    if (value >= INF_SUMMARY_EXACT) {
        value = value < INF_SUMMARY_MAX ? value : INF_SUMMARY_MAX;
        uint32_t power = 63u - (uint32_t) __builtin_clzll(value);
        block = power - 5;
        slot = (uint32_t) (value >> (power - 6)) - INF_SUMMARY_BLOCK;
    }

    if ((atomic_load_explicit(used, memory_order_relaxed) & 1u << block) == 0)
    {
        atomic_fetch_or_explicit(used, 1u << block, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&s->counts[kind][window][block][slot], 1,
        memory_order_relaxed);
}

#endif /* INF_MODEL_SUMMARY_H */
