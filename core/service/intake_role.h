/*
 * intake_role.h - selects the thread that drains the workers' rings.
 *
 * Owner    The intake owns its role, and its memory.
 * Thread   take, check: any.  give: the thread that has the role.  stand_by,
 *          take_last: the main thread.  stop: any, and signal handlers.
 * Units    ns.
 * Errors   none.
 * Route    idle instance threads, main thread -> [role] -> intake
 *
 * One thread at a time has the role.  While other threads have it the main
 * thread stands by: it checks every ms whether the rings were unattended for
 * too long, and sleeps when nothing has changed for a while.
 */

#ifndef INF_SERVICE_INTAKE_ROLE_H
#define INF_SERVICE_INTAKE_ROLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/sched/waiter.h"

typedef struct {
    _Atomic bool     taken;         /* acquire, seq_cst: a thread has the
                                       role                                  */
    _Atomic uint64_t turns;         /* relaxed: number of takes              */
    _Atomic bool     standby_deep;  /* seq_cst: the main thread sleeps       */
    inf_waiter_t     standby;       /* of the main thread                    */
    _Atomic bool     stopping;      /* seq_cst                               */
} inf_intake_role_t;

/* Initializes the role as taken by the caller. */
void inf_intake_role_init(inf_intake_role_t *role);

/* false: another thread has it. */
bool inf_intake_role_take(inf_intake_role_t *role);
void inf_intake_role_give(inf_intake_role_t *role);

/* Whether the calling thread has a role. */
bool inf_intake_role_is_mine(void);

/* Returns when no thread has had the role for a tick, or at stop. */
void inf_intake_role_stand_by(inf_intake_role_t *role);

/* Wakes the main thread if no thread has the role, because an expected thread
   will not take it soon. */
void inf_intake_role_check(inf_intake_role_t *role);

/* Stops: the thread that has the role sees it and gives it back. */
void inf_intake_role_stop(inf_intake_role_t *role);

/* Takes the role permanently, after stop. */
void inf_intake_role_take_last(inf_intake_role_t *role);

static inline bool
inf_intake_role_is_stopping(const inf_intake_role_t *role)
{
    return atomic_load_explicit(&role->stopping, memory_order_relaxed);
}

#endif /* INF_SERVICE_INTAKE_ROLE_H */
