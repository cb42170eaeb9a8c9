/*
 * suspects.h - which executions of a core may begin: those of suspects,
 *              requests that executed when a core died, have no other beside
 *              them.
 *
 * Owner    The suspect gate owns the policy; an execution belongs to the
 *          thread that executes it, between push and done.
 * Thread   any, with the gate's lock held.  No clock, thread or lock of its
 *          own: events in, decisions out.
 * Units    ns.
 * Errors   none.
 * Route    instance thread -> suspect gate -> [suspects]
 *
 * A suspect waits until nothing executes, and nothing begins meanwhile; the
 * first that came is the first to go.  Exempt is what another execution may
 * wait for: parts of what has begun.  An execution that takes longer than
 * INF_SUSPECT_WAIT_NS is waited for no more, and others that have waited as
 * long go before the next suspect.
 */

#ifndef INF_SCHED_SUSPECTS_H
#define INF_SCHED_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"

#define INF_SUSPECT_WAIT_NS UINT64_C(10000000000)

typedef enum {
    INF_EXECUTION_WAITS,
    INF_EXECUTION_BESIDE,       /* others                                    */
    INF_EXECUTION_ALONE,        /* with what belongs to the same whole       */
    INF_EXECUTION_DONE
} inf_execution_state_t;

/* One execution; its caller sets the first three. */
typedef struct {
    bool                  suspect;
    bool                  exempt;   /* begins at once, unless it is suspect  */
    const void           *whole;    /* what it is a part of                  */

    inf_execution_state_t state;
    inf_link_t            link;     /* waits                                 */
    uint32_t              round;    /* in which it began                     */
    uint64_t              until_ns; /* others wait behind suspects           */
} inf_execution_t;

typedef struct {
    inf_link_t  exempt;             /* wait for next() alone                 */
    inf_link_t  suspects;
    inf_link_t  others;
    uint32_t    round;              /* of executions that are waited for     */
    uint64_t    until_ns;           /* they are                              */
    uint32_t    beside;             /* of this round, under way              */
    uint32_t    alone;              /* likewise: parts of whole              */
    const void *whole;              /* of the suspect that executes          */
} inf_suspects_t;

/* Nothing waits or executes. */
void inf_suspects_init(inf_suspects_t *s);

/* The execution waits, until next() gives it back. */
void inf_suspects_push(inf_suspects_t *s, inf_execution_t *e,
    uint64_t now_ns);

/* One that begins now; NULL: none does, before something is pushed or done, or
   time has passed. */
inf_execution_t *inf_suspects_next(inf_suspects_t *s, uint64_t now_ns);

/* Of one that has begun. */
void inf_suspects_done(inf_suspects_t *s, inf_execution_t *e,
    uint64_t now_ns);

#endif /* INF_SCHED_SUSPECTS_H */
