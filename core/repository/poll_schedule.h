/*
 * poll_schedule.h - when repositories are polled, and when what differs there
 *                   is compared again: a policy, without clock or thread.
 *
 * Owner    The caller's memory.
 * Thread   one at a time.
 * Units    ns on any clock that does not go back.
 * Errors   none.
 * Route    settings, events -> [poll schedule] -> poll
 *
 * A poll comes when the interval has passed since the last full one has ended,
 * or early because something has changed.  Early polls don't put off the full
 * ones.  Between the end of a poll and the next one that is early there is a
 * gap, however much changes.
 *
 * A poll lists and compares.  While models differ from what is loaded, their
 * files may still be on their way: they are compared again, some time apart,
 * until all of them hold still, but not for ever: the next poll sees the rest.
 */

#ifndef INF_REPOSITORY_POLL_SCHEDULE_H
#define INF_REPOSITORY_POLL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The gap, and at least so many times as long as the last poll has worked,
   which bounds the CPU that polls need. */
#define INF_POLL_GAP_NS      UINT64_C(1000000000)
#define INF_POLL_GAP_FACTOR  20u

#define INF_POLL_COMPARISONS 5u     /* in one poll, after the first          */
#define INF_POLL_NEVER       UINT64_MAX

typedef enum {
    INF_POLL_WAIT,
    INF_POLL_BEGIN,             /* list and compare                          */
    INF_POLL_COMPARE            /* what has differed                         */
} inf_poll_action_t;

/* After BEGIN or COMPARE, compared is to be called. */
typedef struct {
    inf_poll_action_t action;
    uint64_t          until_ns;     /* WAIT                                  */
    bool              events;       /* WAIT: a change ends it                */
    bool              early;        /* BEGIN: before the interval has passed;
                                       what failed is not tried again        */
    bool              remote;       /* BEGIN: remote repositories, too       */
} inf_poll_decision_t;

typedef enum {
    INF_POLL_IDLE,
    INF_POLL_BUSY,              /* until compared is called                  */
    INF_POLL_SETTLING           /* until the next comparison                 */
} inf_poll_phase_t;

typedef struct {
    inf_poll_phase_t phase;
    uint64_t         settle_ns;
    uint64_t         interval_ns;   /* 0: no poll                            */
    uint64_t         full_ns;       /* end of the last full poll             */
    uint64_t         end_ns;        /* of the last poll                      */
    uint64_t         work_ns;       /* of the last poll                      */
    uint64_t         turn_ns;       /* when the phase began; SETTLING: ends  */
    unsigned         comparisons;
    bool             changed;       /* reason for an early poll              */
    bool             remote;        /* it is for remote ones, too            */
    bool             early;         /* the last poll was                     */
} inf_poll_schedule_t;

/* Nothing is polled yet; models hold still when they are the same settle_ns
   later. */
void inf_poll_schedule_init(inf_poll_schedule_t *s, uint64_t settle_ns,
    uint64_t now_ns);

/* Full polls come this long after each other; 0: none, early ones neither. */
void inf_poll_schedule_set_interval(inf_poll_schedule_t *s,
    uint64_t interval_ns);

/* The next poll may come early.  remote: remote repositories, too. */
void inf_poll_schedule_hasten(inf_poll_schedule_t *s, bool remote);

/* A full poll begins now; the interval does not count. */
void inf_poll_schedule_begin(inf_poll_schedule_t *s, uint64_t now_ns);

/* A comparison has ended; so many models differ and don't hold still. */
void inf_poll_schedule_compared(inf_poll_schedule_t *s, size_t unsettled,
    uint64_t now_ns);

/* A poll that is settling ends without another comparison. */
void inf_poll_schedule_give_up(inf_poll_schedule_t *s, uint64_t now_ns);

/* The action that is due now.  Not between BEGIN or COMPARE and compared. */
inf_poll_decision_t inf_poll_schedule_next(inf_poll_schedule_t *s,
    uint64_t now_ns);

#endif /* INF_REPOSITORY_POLL_SCHEDULE_H */
