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
#include <stdio.h>

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

/* Its bool run_costs(void) in such a program, else NULL. */
#ifdef SIM_COSTS
#define RUN_COSTS run_costs

/* Whether many cost about as much as few, each. */
static bool
flat(double few, double many)
{
    if (many > 2 * few) {
        printf("that is not flat\n");
        return false;
    }
    return true;
}
#else
#define RUN_COSTS NULL
#endif

/* The work of core from here on is counted; the simulation's own is not. */
#define core(call) (counting = true, (call), counting = false)

#endif /* INF_T_SCHED_COUNTED_H */
