/*
 * idle_role.h - the role of the rings' leader, without rings: one idle thread
 *               holds it at a time and watches its own waiter.
 *
 * Owner    One role in each program.
 * Thread   instance threads.
 * Units    none.
 * Errors   none.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_IDLE_ROLE_H
#define INF_T_SCHED_IDLE_ROLE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/sched/runtime.h"

static _Atomic bool     role_held;
static _Atomic uint32_t role_turns;     /* how often it was taken            */

static bool
role_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    (void) userp;
    (void) runner;
    if (atomic_exchange(&role_held, true)) {
        return false;
    }
    atomic_fetch_add(&role_turns, 1);
    while (!inf_waiter_woken(waiter)
        && (until_ns == INF_NEVER || inf_clock_ns() < until_ns))
    {
        sched_yield();
    }
    atomic_store(&role_held, false);
    return true;
}

static void
role_leave(void *userp, inf_runner_t *runner)
{
    (void) userp;
    (void) runner;
}

static const inf_idle_ops_t role_ops = {
    .lead = role_lead, .leave = role_leave
};

#endif /* INF_T_SCHED_IDLE_ROLE_H */
