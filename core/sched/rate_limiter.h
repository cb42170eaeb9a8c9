/*
 * rate_limiter.h - decides which instances, of all models, may execute now:
 *                  those with free resources, the least used first.
 *
 * Owner    The rate gate owns the limiter; each instance belongs to its thread,
 *          between add and remove.
 * Thread   any, with the gate's lock held.  Without clock, thread or lock:
 *          events in, decisions out.
 * Units    copies of resources; turns, of which an instance of priority p gets
 *          one p-th as many as one of priority 1.
 * Errors   INVALID_ARG: a resource that does not exist, or is used as both
 *          kinds.
 * Route    instance thread -> rate gate -> [rate limiter]
 *
 * Start-time fair queueing: an execution costs an instance its priority, the
 * instance that has used least is first, and an instance gains nothing from a
 * pause.  An instance that lacks a resource is passed a limited number of
 * times; then no execution may start that would delay it.
 */

#ifndef INF_SCHED_RATE_LIMITER_H
#define INF_SCHED_RATE_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/queue.h"

/* The maximum priority; larger values count as this one. */
#define INF_RATE_PRIORITY_MAX (1u << 20)

#define INF_RATE_EVERY_DEVICE (-1)      /* of a resource                     */
#define INF_RATE_ANY_DEVICE   (-2)      /* of an instance: the device with the
                                           most copies of each resource      */

typedef struct inf_rate_limiter_s inf_rate_limiter_t;
typedef struct inf_rate_class_s inf_rate_class_t;

/* The configured number of copies of a resource. */
typedef struct {
    const char *name;
    uint64_t    count;
    int32_t     device;         /* or INF_RATE_EVERY_DEVICE                  */
} inf_rate_resource_t;

/* The copies an instance holds while it executes. */
typedef struct {
    const char *name;
    uint64_t    count;
    bool        global;         /* shared by all devices                     */
} inf_rate_need_t;

typedef enum {
    INF_RATE_IDLE,
    INF_RATE_ASKING,
    INF_RATE_GRANTED            /* holds its resources                       */
} inf_rate_state_t;

typedef struct {
    inf_link_t        link;     /* in its class while it asks                */
    inf_rate_class_t *cls;      /* of instances with the same needs          */
    inf_rate_state_t  state;
    uint64_t          asked;    /* sequence number of asking                 */
    uint64_t          start;    /* finish at the time of asking              */
    uint64_t          finish;   /* virtual time used                         */
    uint64_t          turns;    /* number of executions                      */
    void             *userp;
} inf_rate_instance_t;

/* Creates a limiter.  count 0: each resource has as many copies as the largest
   need.  Otherwise unlisted resources do not exist; of repeated ones the
   smallest counts. */
INF_CHECK inf_err_t *inf_rate_limiter_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_limiter_t **out);

/* Frees the limiter; no instance is left. */
void inf_rate_limiter_free(inf_rate_limiter_t *l);

/* Whether an instance of that device could be added.  On error *at is the first
   need that cannot be met, and *field its bad field ("name", "count" or
   "global").  Both may be NULL. */
INF_CHECK inf_err_t *inf_rate_limiter_check(const inf_rate_limiter_t *l,
    int32_t device, const inf_rate_need_t *needs, size_t count, size_t *at,
    const char **field);

/* Adds i, which is zeroed except for userp; priority 0 counts as 1.  An error
   changes nothing. */
INF_CHECK inf_err_t *inf_rate_limiter_add(inf_rate_limiter_t *l,
    inf_rate_instance_t *i, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count);

/* Removes i, which does not execute. */
void inf_rate_limiter_remove(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i is idle, and its model has a payload.  again: it asks as before, without a
   pause. */
void inf_rate_limiter_ask(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool again);

/* i stops asking. */
void inf_rate_limiter_withdraw(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i returns its granted resources; executed: counts as a turn. */
void inf_rate_limiter_release(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool executed);

/* The next instance that may execute, now granted; called after events until
   NULL. */
inf_rate_instance_t *inf_rate_limiter_next(inf_rate_limiter_t *l);

/* Called for a resource; device is 0 if it is global. */
typedef void (*inf_rate_resource_fn)(void *userp, const char *name,
    bool global, int32_t device, uint64_t copies, uint64_t used);

/* Calls fn for each resource that an instance needs. */
void inf_rate_limiter_each(const inf_rate_limiter_t *l,
    inf_rate_resource_fn fn, void *userp);

/* The number of existing copies, and of held ones. */
uint64_t inf_rate_limiter_copies(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);
uint64_t inf_rate_limiter_used(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);

#endif /* INF_SCHED_RATE_LIMITER_H */
