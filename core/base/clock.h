/*
 * clock.h - the two clocks: monotonic for intervals, wall clock for people.
 *
 * Owner    none.
 * Thread   any.
 * Units    ns since an arbitrary start (CLOCK_MONOTONIC); ms since 1970.
 * Errors   none.
 * Route    [clock] -> public functions, which pass it on as now_ns
 */

#ifndef INF_BASE_CLOCK_H
#define INF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
inf_clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

static inline uint64_t
inf_clock_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t) ts.tv_sec * 1000u + (uint64_t) ts.tv_nsec / 1000000u;
}

#endif /* INF_BASE_CLOCK_H */
