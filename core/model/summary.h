/*
 * summary.h - quantiles of the values of the last minute.
 *
 * Owner    whoever made it.
 * Thread   any: relaxed atomics; a value that meets the turn of a window may
 *          be lost to the quantiles.
 * Units    values are whole numbers; below 128 they are kept exactly, above
 *          in steps of at most 1/64 of the value; 2^36 and more count as that.
 * Errors   none.
 * Route    latencies -> [summary] -> metrics text
 */

#ifndef INF_MODEL_SUMMARY_H
#define INF_MODEL_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#define INF_SUMMARY_WINDOWS   5
#define INF_SUMMARY_WINDOW_NS UINT64_C(12000000000)

typedef struct inf_summary_s inf_summary_t;

/* NULL: out of memory. */
inf_summary_t *inf_summary_new(void);
void inf_summary_free(inf_summary_t *s);

/* Which window of all time it is. */
static inline uint64_t
inf_summary_window(uint64_t now_ns)
{
    return now_ns / INF_SUMMARY_WINDOW_NS;
}

void inf_summary_observe(inf_summary_t *s, uint64_t value, uint64_t window);

/* values[i] is the quantiles[i] (0 to 1) of the last minute; NaN: there were
   no values. */
void inf_summary_quantiles(const inf_summary_t *s, uint64_t now_ns,
    const double *quantiles, size_t count, double *values);

#endif /* INF_MODEL_SUMMARY_H */
