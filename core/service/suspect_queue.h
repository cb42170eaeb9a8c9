/*
 * suspect_queue.h - requests that were executing when a core died, and wait
 *                   for their turn in this one.
 *
 * Owner    The intake owns the queue; a request that waits is its session's.
 * Thread   init, push, next, cancel, pending: the intake role.  answered: any.
 * Units    ns.
 * Errors   none.
 * Route    infer -> [suspect queue] -> intake -> infer
 */

#ifndef INF_SERVICE_SUSPECT_QUEUE_H
#define INF_SERVICE_SUSPECT_QUEUE_H

#include <stdatomic.h>

#include "core/sched/suspects.h"
#include "core/service/session.h"

typedef struct inf_suspect_queue_s {
    inf_suspects_t   suspects;      /* the intake role's                     */
    _Atomic uint32_t answered;      /* release, acquire: of those under way,
                                       since the intake last looked          */
    void           (*wake)(void *userp);
    void            *userp;
} inf_suspect_queue_t;

/* wake has the intake look, from any thread. */
void inf_suspect_queue_init(inf_suspect_queue_t *q, void (*wake)(void *userp),
    void *userp);

/* in_flight waits until next or cancel gives it back. */
void inf_suspect_queue_push(inf_suspect_queue_t *q,
    inf_in_flight_t *in_flight);

/* One whose turn it is, under way from now on; NULL: it is nobody's. */
inf_in_flight_t *inf_suspect_queue_next(inf_suspect_queue_t *q,
    uint64_t now_ns);

/* false: it does not wait. */
bool inf_suspect_queue_cancel(inf_in_flight_t *in_flight);

/* in_flight, which need be no suspect, has a response: no core executes it
   again. */
void inf_suspect_queue_answered(inf_in_flight_t *in_flight);

/* Whether next may have something to do. */
static inline bool
inf_suspect_queue_pending(const inf_suspect_queue_t *q)
{
    return !inf_list_empty(&q->suspects.waiting)
        || atomic_load_explicit(&q->answered, memory_order_relaxed) != 0;
}

#endif /* INF_SERVICE_SUSPECT_QUEUE_H */
