/*
 * suspect_queue.h - requests that were executing when a core exited, and wait
 *                   to run in this one.
 *
 * Owner    The intake owns the queue; a waiting request is its session's.
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
    inf_suspects_t   suspects;      /* used by the intake role               */
    _Atomic uint32_t answered;      /* release, acquire: number answered since
                                       the intake last looked                */
    void           (*wake)(void *userp);
    void            *userp;
} inf_suspect_queue_t;

/* wake is called from any thread to make the intake call next. */
void inf_suspect_queue_init(inf_suspect_queue_t *q, void (*wake)(void *userp),
    void *userp);

/* Queues in_flight until next or cancel returns it. */
void inf_suspect_queue_push(inf_suspect_queue_t *q,
    inf_in_flight_t *in_flight);

/* Takes the next suspect that may run; NULL: none. */
inf_in_flight_t *inf_suspect_queue_next(inf_suspect_queue_t *q,
    uint64_t now_ns);

/* Removes a waiting suspect; false: it does not wait. */
bool inf_suspect_queue_cancel(inf_in_flight_t *in_flight);

/* Called when in_flight, suspect or not, has a response: no core executes it
   again. */
void inf_suspect_queue_answered(inf_in_flight_t *in_flight);

/* Whether next may have a suspect. */
static inline bool
inf_suspect_queue_pending(const inf_suspect_queue_t *q)
{
    return !inf_list_empty(&q->suspects.waiting)
        || atomic_load_explicit(&q->answered, memory_order_relaxed) != 0;
}

#endif /* INF_SERVICE_SUSPECT_QUEUE_H */
