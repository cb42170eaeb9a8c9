/*
 * counted.h - counts the basic blocks that core runs: built with SIM_COSTS,
 *             and core with -fsanitize-coverage=trace-pc.
 *
 * Owner    the program that includes it.
 * Thread   one.
 * Units    basic blocks.
 * Errors   none.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_COUNTED_H
#define INF_T_SCHED_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t steps;
static bool counting;

#ifdef SIM_COSTS
void __sanitizer_cov_trace_pc(void);

void
__sanitizer_cov_trace_pc(void)
{
    steps += counting;
}
#endif

/* What core does from here on is counted; the simulation's own work is not. */
#define core(call) (counting = true, (call), counting = false)

#endif /* INF_T_SCHED_COUNTED_H */
