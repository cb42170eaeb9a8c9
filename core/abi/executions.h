/*
 * executions.h - the executions that are under way, where the handler of a
 *                crash finds them without a lock.
 *
 * Owner    An instance owns its execution, which lives as long as it.
 * Thread   add, remove: one at a time for each execution.  next: any, where
 *          the process ends; elsewhere what it gives may be freed.
 * Units    none.
 * Errors   none: without a free place other threads' crashes don't count
 *          against an execution.
 * Route    execute -> [executions] -> handler of a crash
 */

#ifndef INF_ABI_EXECUTIONS_H
#define INF_ABI_EXECUTIONS_H

#include <stdatomic.h>

#include "core/abi/execute.h"

/* The payload that an instance executes: the backend may write into the array
   that it is given, so the core keeps its own. */
typedef struct inf_execution_s inf_execution_t;
typedef _Atomic(inf_execution_t *) inf_execution_place_t;   /* acq_rel; NULL:
                                                               it is free    */

struct inf_execution_s {
    inf_instance_t        *instance;
    inf_execution_place_t *place;   /* or NULL                               */
    _Atomic bool    executing;      /* relaxed: for other threads' crashes   */
    uint32_t        count;
    uint32_t        cap;
    uint32_t        next;           /* the next release is looked for here   */
    uint32_t        released;
    bool            suspect;        /* of a request that was executing when
                                       a core died                           */
    bool            guilty;         /* its request alone has broken its GPU  */
    inf_request_t  *requests[];     /* NULL: released                        */
};

/* This thread is in a backend's Execute with it; NULL: it is not. */
extern _Thread_local inf_execution_t *inf_execution_running;

/* e has executed for the first time; it is freed.  e may be NULL then. */
void inf_executions_add(inf_execution_t *e);
void inf_executions_remove(inf_execution_t *e);

/* The next execution under way at index *at (0 at first) or above: its backend
   executes, or holds requests that it has not released.  NULL: there is no
   other. */
const inf_execution_t *inf_executions_next(uint32_t *at);

#endif /* INF_ABI_EXECUTIONS_H */
