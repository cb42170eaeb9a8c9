/*
 * timekeeper.h - calls somebody at a time: one thread for all models.
 *
 * Owner    The lifecycle owns it; each timer belongs to what it calls for.
 * Thread   arm, remove: any; fire: the timekeeper's own thread, which is
 *          started when the first timer is added.
 * Units    ns on the monotonic clock.
 * Errors   add: the thread can't be started.
 * Route    runner -> [timekeeper] -> runner's tick.
 *
 * Queued requests must time out even while every instance is busy; a batch's
 * delay needs nobody, the idle instance waits for it by itself.
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
    inf_cond_t   changed;       /* an earlier timer, a fire over, stopping   */
    inf_heap_t   timers;
    inf_timer_t *firing;        /* being called now                          */
    bool         stopping;
    bool         running;
    pthread_t    thread;        /* set under lock, joined by fini            */
} inf_timekeeper_t;

/* The thread is started by the first timer. */
void inf_timekeeper_init(inf_timekeeper_t *k);

/* No timer is left. */
void inf_timekeeper_fini(inf_timekeeper_t *k);

/* timer's functions are set; it calls from now on. */
INF_CHECK inf_err_t *inf_timekeeper_add(inf_timekeeper_t *k,
    inf_timer_t *timer);

/* Fires at at_ns, or before that if it was armed for earlier. */
void inf_timekeeper_arm(inf_timekeeper_t *k, inf_timer_t *timer,
    uint64_t at_ns);

/* The timer does not fire afterwards; waits for a callback under way. */
void inf_timekeeper_remove(inf_timekeeper_t *k, inf_timer_t *timer);

#endif /* INF_SCHED_TIMEKEEPER_H */
