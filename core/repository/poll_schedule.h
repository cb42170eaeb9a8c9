/*
 * poll_schedule.h - the times of polls of repositories, and of repeated
 *                   comparisons: a policy without clock or thread.
 *
 * Owner    The caller's memory.
 * Thread   one at a time.
 * Units    ns on any clock that does not go back.
 * Errors   none.
 * Route    settings, events -> [poll schedule] -> poll
 *
 * A poll begins when the interval has passed since the end of the last full
 * poll, or early after a change.  Early polls do not delay full ones.  After
 * each poll there is a minimum gap before an early one.
 *
 * A poll lists and compares.  Files of models that differ may still be
 * changing, so these models are compared again after a while until all are
 * stable, a limited number of times; the next poll handles the rest.
 */

#ifndef INF_REPOSITORY_POLL_SCHEDULE_H
#define INF_REPOSITORY_POLL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Minimum gap, and a multiple of the last poll's duration, which limits the CPU
   time of polls. */
#define INF_POLL_GAP_NS      UINT64_C(1000000000)
#define INF_POLL_GAP_FACTOR  20u

#define INF_POLL_COMPARISONS 5u     /* in one poll, after the first          */
#define INF_POLL_NEVER       UINT64_MAX

typedef enum {
    INF_POLL_WAIT,
    INF_POLL_BEGIN,             /* list and compare                          */
    INF_POLL_COMPARE            /* compare again what differs                */
} inf_poll_action_t;

/* A decision; after BEGIN or COMPARE, call compared. */
typedef struct {
    inf_poll_action_t action;
    uint64_t          until_ns;     /* WAIT                                  */
    bool              events;       /* WAIT: a change ends it                */
    bool              early;        /* BEGIN: before the interval's end; does
                                       not try again what failed             */
    bool              remote;       /* BEGIN: also remote repositories       */
} inf_poll_decision_t;

typedef enum {
    INF_POLL_IDLE,
    INF_POLL_BUSY,              /* until compared is called                  */
    INF_POLL_SETTLING           /* until the next comparison                 */
} inf_poll_phase_t;

typedef struct {
    inf_poll_phase_t phase;
    uint64_t         settle_ns;
    uint64_t         interval_ns;   /* 0: no polls                           */
    uint64_t         full_ns;       /* end of the last full poll             */
    uint64_t         end_ns;        /* of the last poll                      */
    uint64_t         work_ns;       /* duration of the last poll             */
    uint64_t         turn_ns;       /* begin of the phase; SETTLING: end     */
    unsigned         comparisons;
    bool             changed;       /* an early poll is due                  */
    bool             remote;        /* also of remote repositories           */
    bool             early;         /* the last poll was early               */
} inf_poll_schedule_t;

/* Initializes a schedule without polls; models are stable when equal after
   settle_ns. */
void inf_poll_schedule_init(inf_poll_schedule_t *s, uint64_t settle_ns,
    uint64_t now_ns);

/* Sets the interval of full polls; 0: no polls, not even early ones. */
void inf_poll_schedule_set_interval(inf_poll_schedule_t *s,
    uint64_t interval_ns);

/* Makes an early poll due.  remote: also of remote repositories. */
void inf_poll_schedule_hasten(inf_poll_schedule_t *s, bool remote);

/* Begins a full poll now, without the interval. */
void inf_poll_schedule_begin(inf_poll_schedule_t *s, uint64_t now_ns);

/* Ends a comparison; unsettled: number of models that differ and are not
   stable. */
void inf_poll_schedule_compared(inf_poll_schedule_t *s, size_t unsettled,
    uint64_t now_ns);

/* Ends a settling poll without another comparison. */
void inf_poll_schedule_give_up(inf_poll_schedule_t *s, uint64_t now_ns);

/* The next action.  Not between BEGIN or COMPARE and compared. */
inf_poll_decision_t inf_poll_schedule_next(inf_poll_schedule_t *s,
    uint64_t now_ns);

#endif /* INF_REPOSITORY_POLL_SCHEDULE_H */
