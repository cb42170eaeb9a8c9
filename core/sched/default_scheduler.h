/*
 * default_scheduler.h - runs each request alone, in order of arrival; any idle
 *                       instance takes the next one.
 *
 * Owner    The model's runner owns it and the requests queued in it.
 * Thread   any, with the runner's lock held; it has no clock of its own.
 * Units    ns.
 * Errors   INF_ERR_UNAVAILABLE: the queue is full.
 * Route    runner -> [default scheduler] -> instance thread.
 */

#ifndef INF_SCHED_DEFAULT_SCHEDULER_H
#define INF_SCHED_DEFAULT_SCHEDULER_H

#include "core/sched/policy.h"

typedef struct {
    inf_policy_t base;
    inf_link_t   queue;
    uint32_t     limit;             /* 0: no limit                           */
} inf_default_scheduler_t;

/* Initializes the caller's memory; limit 0: no limit. */
void inf_default_scheduler_init(inf_default_scheduler_t *s, uint32_t limit);

/* Allocates one; NULL: out of memory. */
inf_policy_t *inf_default_scheduler_new(uint32_t limit);

#endif /* INF_SCHED_DEFAULT_SCHEDULER_H */
