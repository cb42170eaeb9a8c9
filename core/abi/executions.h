/*
 * executions.h - a table of the executions in progress that a crash handler
 *                reads without a lock.
 *
 * Owner    An instance owns its execution, which has the same lifetime.
 * Thread   add, remove: one at a time for each execution.  next: any thread
 *          while the process ends; otherwise the result may be freed.
 * Units    none.
 * Errors   none: an execution without a place in the table is not blamed for
 *          crashes of other threads.
 * Route    execute -> [executions] -> handler of a crash
 */

#ifndef INF_ABI_EXECUTIONS_H
#define INF_ABI_EXECUTIONS_H

#include <stdatomic.h>

#include "core/abi/execute.h"

/* The payload that an instance executes.  The core has its own array, since a
   backend may write to the one passed to Execute. */
typedef struct inf_execution_s inf_execution_t;
typedef _Atomic(inf_execution_t *) inf_execution_place_t;   /* acq_rel; NULL:
                                                               free          */

struct inf_execution_s {
    inf_instance_t        *instance;
    inf_execution_place_t *place;   /* or NULL                               */
    _Atomic bool    executing;      /* relaxed: for other threads' crashes   */
    uint32_t        count;
    uint32_t        cap;
    uint32_t        next;           /* where the search for the next release
                                       begins                                */
    uint32_t        released;
    _Atomic bool    suspect;        /* relaxed, likewise; of a request that was
                                       executing when a core crashed         */
    bool            guilty;         /* its only request has broken its GPU   */
    inf_request_t  *requests[];     /* NULL: released                        */
};

/* The execution whose Execute runs on this thread; NULL: none. */
extern _Thread_local inf_execution_t *inf_execution_running;

/* add: after e's first execution begins; remove: before e is freed; e may be
   NULL. */
void inf_executions_add(inf_execution_t *e);
void inf_executions_remove(inf_execution_t *e);

/* The next execution in progress from index *at on (0 at first): its backend
   executes, or has requests that it has not released.  NULL: no more. */
const inf_execution_t *inf_executions_next(uint32_t *at);

#endif /* INF_ABI_EXECUTIONS_H */
