/*
 * queue.h - the queued requests of a model, by priority level, with the
 *           queue policy of each level.
 *
 * Owner    A policy owns its queue; the queue owns the requests in it.
 * Thread   as the policy: the runner's lock is held.
 * Units    ns on the monotonic clock; timeouts come as us.
 * Errors   UNAVAILABLE: a level is full, or out of memory.
 * Route    dynamic batcher -> [queue] -> payload.
 *
 * Level 1 comes first; without priorities there is one level, 0.  Within a
 * level live requests are in order of arrival, followed by those that have
 * timed out and still wait (DELAY), in the order of their timeouts.
 */

#ifndef INF_SCHED_QUEUE_H
#define INF_SCHED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/heap.h"
#include "core/base/queue.h"
#include "core/tensor/request.h"

typedef struct {
    bool     delays;                /* DELAY, otherwise REJECT               */
    bool     overrides;             /* a request may shorten it              */
    uint64_t timeout_us;            /* 0: no timeout                         */
    uint32_t limit;                 /* requests in a level; 0: none          */
} inf_queue_policy_t;

typedef struct {
    uint64_t           level;
    inf_queue_policy_t policy;
} inf_queue_rule_t;

typedef struct {
    uint64_t                levels;         /* 0: no priorities              */
    uint64_t                standard;       /* level of requests without one */
    inf_queue_policy_t      policy;         /* for levels without a rule     */
    const inf_queue_rule_t *rules;          /* copied                        */
    uint32_t                rule_count;
} inf_queue_options_t;

typedef struct inf_level_s {
    uint64_t                  number;
    const inf_queue_policy_t *policy;
    inf_link_t                live;
    inf_link_t                delayed;
    uint32_t                  count;        /* of both lists                 */
} inf_level_t;

typedef struct {
    uint64_t           levels;
    uint64_t           standard;
    inf_queue_policy_t policy;
    inf_queue_rule_t  *rules;               /* sorted by level               */
    uint32_t           rule_count;
    inf_level_t      **used;                /* non-empty levels, sorted      */
    uint32_t           used_count;
    inf_level_t      **spare;
    uint32_t           spare_count;
    uint32_t           cap;                 /* of both arrays                */
    uint32_t           queued;
    inf_heap_t         timeouts;
} inf_queue_t;

/* Initializes the queue; copies the options. */
INF_CHECK inf_err_t *inf_queue_init(inf_queue_t *q,
    const inf_queue_options_t *options);

/* Frees the queue; q may be zeroed memory. */
void inf_queue_fini(inf_queue_t *q);

/* Takes req on success, as PENDING. */
INF_CHECK inf_err_t *inf_queue_push(inf_queue_t *q, inf_request_t *req,
    uint64_t now_ns);

/* Removes a queued request. */
void inf_queue_remove(inf_queue_t *q, inf_request_t *req);

/* The time when req, which arrived at now_ns and is not queued yet, will be
   rejected; UINT64_MAX: never.  Needs no lock: reads constant data. */
uint64_t inf_queue_rejects_at(const inf_queue_t *q, const inf_request_t *req,
    uint64_t now_ns);

/* The next timeout of a queued request; UINT64_MAX: none. */
uint64_t inf_queue_deadline(const inf_queue_t *q);

/*
 * A request that has timed out by now; NULL: no more.  The request stays in the
 * queue: a delayed one at its new position, one to reject where it was.
 */
inf_request_t *inf_queue_expire(inf_queue_t *q, uint64_t now_ns);

/* The next request in the order of execution; NULL: the end.  at NULL: the
   first. */
inf_request_t *inf_queue_after(const inf_queue_t *q,
    const inf_request_t *at);

/* Whether a precedes b; both are queued, and b is not live in a's level. */
bool inf_queue_before(const inf_request_t *a, const inf_request_t *b);

#endif /* INF_SCHED_QUEUE_H */
