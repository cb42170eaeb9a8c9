/*
 * histogram.h - counts durations in buckets from 10 us to a minute.
 *
 * Owner    The statistics that contain it; zeroed memory needs no init.
 * Thread   any: relaxed atomics.
 * Units    ns.
 * Errors   none.
 * Route    statistics -> [histogram] -> metrics text
 */

#ifndef INF_MODEL_HISTOGRAM_H
#define INF_MODEL_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define INF_HISTOGRAM_BOUNDS 21

/* A bucket for each bound, and one for larger values. */
typedef struct {
    _Atomic uint64_t counts[INF_HISTOGRAM_BOUNDS + 1]; /* relaxed: statistics */
} inf_histogram_t;

/* Where the search for a time begins, by its number of bits. */
extern const uint8_t inf_histogram_first[65];

/* Ascending; a bucket holds values up to its bound. */
extern const uint64_t inf_histogram_bounds_ns[INF_HISTOGRAM_BOUNDS];

/* In seconds, as in metrics. */
extern const char *const inf_histogram_bounds_text[INF_HISTOGRAM_BOUNDS];

static inline void
inf_histogram_add(inf_histogram_t *h, uint64_t ns)
{
    uint32_t bits = ns == 0 ? 0 : 64u - (uint32_t) __builtin_clzll(ns);
    uint32_t i = inf_histogram_first[bits];

    while (i < INF_HISTOGRAM_BOUNDS && ns > inf_histogram_bounds_ns[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
}

/* Adds the present counts of from to into. */
void inf_histogram_fold(inf_histogram_t *into, const inf_histogram_t *from);

#endif /* INF_MODEL_HISTOGRAM_H */
