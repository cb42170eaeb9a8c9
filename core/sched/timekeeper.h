/*
 * timekeeper.h - calls functions at given times, with one thread for all
 *                models.
 *
 * Owner    The lifecycle owns it; a timer belongs to the object it is for.
 * Thread   arm, remove: any; fire: the timekeeper's own thread, which is
 *          started when the first timer is added.
 * Units    ns on the monotonic clock.
 * Errors   add: the thread cannot be started.
 * Route    runner -> [timekeeper] -> runner's tick.
 *
 * Queued requests must time out even while every instance is busy.  The delay
 * of a batch needs no timer, as an idle instance waits for it.
 */

#ifndef INF_SCHED_TIMEKEEPER_H
#define INF_SCHED_TIMEKEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/heap.h"
#include "core/base/lock.h"

typedef struct {
    inf_heap_node_t node;       /* in the timekeeper's heap; its lock        */
    void          (*fire)(void *userp);
    void           *userp;
} inf_timer_t;

typedef struct {
    inf_lock_t   lock;          /* rank 34; guards all below                 */
    inf_cond_t   changed;       /* timer armed earlier, callback over,
                                   stopping                                  */
    inf_heap_t   timers;
    inf_timer_t *firing;        /* its callback runs                         */
    bool         stopping;
    bool         running;
    pthread_t    thread;        /* set under lock, joined by fini            */
} inf_timekeeper_t;

/* Initializes it; the first timer starts the thread. */
void inf_timekeeper_init(inf_timekeeper_t *k);

/* Stops the thread; no timer is left. */
void inf_timekeeper_fini(inf_timekeeper_t *k);

/* Adds timer, whose functions are set; it can be armed. */
INF_CHECK inf_err_t *inf_timekeeper_add(inf_timekeeper_t *k,
    inf_timer_t *timer);

/* Arms the timer for at_ns, unless it is armed for an earlier time. */
void inf_timekeeper_arm(inf_timekeeper_t *k, inf_timer_t *timer,
    uint64_t at_ns);

/* Removes the timer; waits for a running callback. */
void inf_timekeeper_remove(inf_timekeeper_t *k, inf_timer_t *timer);

#endif /* INF_SCHED_TIMEKEEPER_H */
