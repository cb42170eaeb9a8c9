/*
 * suspects.h - when a suspect may go to its model: a request that was
 *              executing when a core died.
 *
 * Owner    The service owns the policy; a suspect belongs to it from push
 *          until next or cancel gives it back.
 * Thread   one at a time.  No clock, thread or lock of its own: events in,
 *          decisions out.
 * Units    ns.
 * Errors   none.
 * Route    intake -> [suspects] -> scheduler
 *
 * One suspect at a time is under way in the core, in order of arrival, so that
 * a core that dies names the request that ended it.  Requests that are no
 * suspects go on beside it.  INF_SUSPECTS_TOTAL_NS after a suspect first had to
 * wait all suspects go, for as long as the core lives.
 */

#ifndef INF_SCHED_SUSPECTS_H
#define INF_SCHED_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"

#define INF_SUSPECTS_TOTAL_NS UINT64_C(30000000000)

/* In a request; zeroed or taken back, it does not wait. */
typedef struct {
    inf_link_t link;
    bool       waits;
} inf_suspect_t;

typedef struct {
    inf_link_t waiting;
    uint32_t   under_way;
    uint64_t   until_ns;        /* UINT64_MAX: none has had to wait yet      */
} inf_suspects_t;

/* None waits or is under way. */
void inf_suspects_init(inf_suspects_t *s);

/* Waits from now on. */
void inf_suspects_push(inf_suspects_t *s, inf_suspect_t *suspect);

/* One that goes now; NULL: none does, before something is pushed or done, or
   time has passed.  To be called after pushes until NULL: time passes from the
   first such call at which one has to wait. */
inf_suspect_t *inf_suspects_next(inf_suspects_t *s, uint64_t now_ns);

/* One that has gone has its response. */
void inf_suspects_done(inf_suspects_t *s);

/* The suspect is taken back; false: it was not waiting. */
bool inf_suspects_cancel(inf_suspect_t *suspect);

#endif /* INF_SCHED_SUSPECTS_H */
