/*
 * default_scheduler.h - each request alone, in order of arrival; any idle
 *                       instance takes the next one.
 *
 * Owner    The model's runtime owns it and the requests queued in it.
 * Thread   any, with the runtime's lock held; it has no clock of its own.
 * Units    ns.
 * Errors   INF_ERR_UNAVAILABLE: the queue is full.
 * Route    runtime -> [default scheduler] -> instance thread.
 */

#ifndef INF_SCHED_DEFAULT_SCHEDULER_H
#define INF_SCHED_DEFAULT_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor/request.h"

typedef struct {
    inf_link_t queue;
    uint32_t   queued;
    uint32_t   limit;               /* 0: none                               */
} inf_default_scheduler_t;

void inf_default_scheduler_init(inf_default_scheduler_t *s, uint32_t limit);

/* Takes req; on error the caller still owns it. */
INF_CHECK inf_err_t *inf_default_scheduler_push(inf_default_scheduler_t *s,
    inf_request_t *req, uint64_t now_ns);

/* The next request, the caller's now; NULL when nothing is queued. */
inf_request_t *inf_default_scheduler_next(inf_default_scheduler_t *s);

/* Unlinks req if it is queued; true: the caller owns it. */
bool inf_default_scheduler_cancel(inf_default_scheduler_t *s,
    inf_request_t *req);

#endif /* INF_SCHED_DEFAULT_SCHEDULER_H */
