/*
 * rate_limiter.h - which instances, of all models, may execute now: those
 *                  whose resources are free, the most deserving first.
 *
 * Owner    The rate gate owns the limiter; each instance belongs to the
 *          thread that runs it, between add and remove.
 * Thread   any, with the gate's lock held.  No clock, thread or lock of its
 *          own: events in, decisions out.
 * Units    copies of resources; turns, of which an instance of priority p
 *          gets one p-th as many as one of priority 1.
 * Errors   INVALID_ARG: a resource that can't be had, or is of both kinds.
 * Route    instance thread -> rate gate -> [rate limiter]
 *
 * Start-time fair queueing: an execution costs an instance its priority, the
 * one that has used least goes first, and one that comes back after a rest
 * brings no claims along.  An instance that lacks a resource lets others pass,
 * but only so many: after that none that would delay it further.
 */

#ifndef INF_SCHED_RATE_LIMITER_H
#define INF_SCHED_RATE_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/queue.h"

/* Larger priorities count as this one. */
#define INF_RATE_PRIORITY_MAX (1u << 20)

#define INF_RATE_EVERY_DEVICE (-1)      /* of a resource                     */
#define INF_RATE_ANY_DEVICE   (-2)      /* of an instance: where there are most
                                           copies of each resource           */

typedef struct inf_rate_limiter_s inf_rate_limiter_t;
typedef struct inf_rate_class_s inf_rate_class_t;

/* How many copies of a resource there are, said explicitly. */
typedef struct {
    const char *name;
    uint64_t    count;
    int32_t     device;         /* or INF_RATE_EVERY_DEVICE                  */
} inf_rate_resource_t;

/* How many copies an instance holds while it executes. */
typedef struct {
    const char *name;
    uint64_t    count;
    bool        global;         /* not its device's, but everybody's         */
} inf_rate_need_t;

typedef enum {
    INF_RATE_IDLE,
    INF_RATE_ASKING,
    INF_RATE_GRANTED            /* holds its resources                       */
} inf_rate_state_t;

typedef struct {
    inf_link_t        link;     /* in its class while it asks                */
    inf_rate_class_t *cls;      /* of those that need the same               */
    inf_rate_state_t  state;
    uint64_t          asked;    /* number of its question                    */
    uint64_t          start;    /* what it had used when it asked            */
    uint64_t          finish;   /* what it has used                          */
    uint64_t          turns;    /* executions                                */
    void             *userp;
} inf_rate_instance_t;

/* count 0: there is as much of each resource as the neediest instance asks.
   Else what isn't listed doesn't exist; of repeated ones the least counts. */
INF_CHECK inf_err_t *inf_rate_limiter_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_limiter_t **out);

/* No instance is left. */
void inf_rate_limiter_free(inf_rate_limiter_t *l);

/* Whether an instance of that device could be added: the first need that can't
   be met is *at, and *field what is wrong with it ("name", "count" or
   "global").  Both may be NULL. */
INF_CHECK inf_err_t *inf_rate_limiter_check(const inf_rate_limiter_t *l,
    int32_t device, const inf_rate_need_t *needs, size_t count, size_t *at,
    const char **field);

/* Fills in i, zeroed but for userp; priority 0 counts as 1.  An error changes
   nothing. */
INF_CHECK inf_err_t *inf_rate_limiter_add(inf_rate_limiter_t *l,
    inf_rate_instance_t *i, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count);

/* i does not execute. */
void inf_rate_limiter_remove(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i is idle, and its model has something for it.  again: as before, it had no
   rest. */
void inf_rate_limiter_ask(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool again);

/* i does not ask any more. */
void inf_rate_limiter_withdraw(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i was granted, and returns its resources; executed: that was a turn. */
void inf_rate_limiter_release(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool executed);

/* After events, until NULL: who may go, granted now. */
inf_rate_instance_t *inf_rate_limiter_next(inf_rate_limiter_t *l);

/* One resource; device is 0 if it is global. */
typedef void (*inf_rate_resource_fn)(void *userp, const char *name,
    bool global, int32_t device, uint64_t copies, uint64_t used);

/* Calls fn for each that an instance needs. */
void inf_rate_limiter_each(const inf_rate_limiter_t *l,
    inf_rate_resource_fn fn, void *userp);

/* How many copies exist, and are held. */
uint64_t inf_rate_limiter_copies(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);
uint64_t inf_rate_limiter_used(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);

#endif /* INF_SCHED_RATE_LIMITER_H */
