/*
 * suspects.h - decides when a suspect may go to its model: a request that was
 *              executing when a core exited.
 *
 * Owner    The service owns the policy; a suspect belongs to it from push until
 *          next or cancel returns it.
 * Thread   one at a time.  Without clock, thread or lock: events in, decisions
 *          out.
 * Units    ns.
 * Errors   none.
 * Route    intake -> [suspects] -> scheduler
 *
 * One suspect at a time runs, in order of arrival, so that the exit of a core
 * shows which request caused it.  Other requests run beside it.
 * INF_SUSPECTS_TOTAL_NS after the first wait of a suspect, all suspects may
 * run, as long as the core lives.
 */

#ifndef INF_SCHED_SUSPECTS_H
#define INF_SCHED_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"

#define INF_SUSPECTS_TOTAL_NS UINT64_C(30000000000)

/* The link in a request; zeroed or cancelled, it does not wait. */
typedef struct {
    inf_link_t link;
    bool       waits;
} inf_suspect_t;

typedef struct {
    inf_link_t waiting;
    uint32_t   under_way;
    uint64_t   until_ns;        /* UINT64_MAX: no suspect waits              */
} inf_suspects_t;

/* Initializes the policy without suspects. */
void inf_suspects_init(inf_suspects_t *s);

/* Queues a suspect. */
void inf_suspects_push(inf_suspects_t *s, inf_suspect_t *suspect);

/* Takes the next suspect that may go to its model; NULL: none before a push, a
   done or the end of the wait.  Call it after pushes until NULL: the wait
   starts with the first call that leaves a suspect waiting. */
inf_suspect_t *inf_suspects_next(inf_suspects_t *s, uint64_t now_ns);

/* Called when a suspect taken by next has its response. */
void inf_suspects_done(inf_suspects_t *s);

/* Removes a waiting suspect; false: it was not waiting. */
bool inf_suspects_cancel(inf_suspect_t *suspect);

#endif /* INF_SCHED_SUSPECTS_H */
