/*
 * intake_role.h - which thread drains the workers' rings.
 *
 * Owner    The intake owns its role; memory is the intake's.
 * Thread   take, check: any.  give: the thread that has the role.  stand_by,
 *          take_last: the main thread.  stop: any, and signal handlers.
 * Units    ns.
 * Errors   none.
 * Route    idle instance threads, main thread -> [role] -> intake
 *
 * One thread at a time has the role.  While others have it the main thread
 * stands by: it checks every ms whether the rings were left alone for too
 * long, and sleeps when for a while nothing has changed.
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
    _Atomic uint64_t turns;         /* relaxed: how often it was taken       */
    _Atomic bool     standby_deep;  /* seq_cst: the main thread sleeps       */
    inf_waiter_t     standby;       /* the main thread's                     */
    _Atomic bool     stopping;      /* seq_cst                               */
} inf_intake_role_t;

/* Taken by the caller: it is nobody's turn before the first give. */
void inf_intake_role_init(inf_intake_role_t *role);

/* false: another thread has it. */
bool inf_intake_role_take(inf_intake_role_t *role);
void inf_intake_role_give(inf_intake_role_t *role);

/* Whether the calling thread has a role. */
bool inf_intake_role_is_mine(void);

/* Returns when nobody has had the role for a tick, or at stop. */
void inf_intake_role_stand_by(inf_intake_role_t *role);

/* Wakes the main thread if no thread has the role: a thread that was to be
   back soon will not be. */
void inf_intake_role_check(inf_intake_role_t *role);

/* The thread that has the role sees it and gives it back. */
void inf_intake_role_stop(inf_intake_role_t *role);

/* After stop: takes the role for good. */
void inf_intake_role_take_last(inf_intake_role_t *role);

static inline bool
inf_intake_role_is_stopping(const inf_intake_role_t *role)
{
    return atomic_load_explicit(&role->stopping, memory_order_relaxed);
}

#endif /* INF_SERVICE_INTAKE_ROLE_H */
