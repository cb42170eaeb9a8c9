/*
 * rate_limiter.h - decides which instances, of all models, may execute now.
 *
 * Owner    The rate gate owns the limiter.  The caller owns each instance
 *          object, between add and remove.
 * Thread   any, with the gate's lock held.
 * Units    copies of resources; turns.  An instance of priority p gets one turn
 *          where an instance of priority 1 gets p.
 * Errors   INVALID_ARG: a resource does not exist, or is used both as global
 *          and for a device.
 * Route    instance thread -> rate gate -> [rate limiter]
 *
 * The limiter is passive: events go in, decisions come out.  The limiter has no
 * clock, thread or lock.
 *
 * Order for an instance: add; ask; next returns the instance; release; and so
 * on until remove.  withdraw ends an ask.  Meanwhile the caller has it
 * reviewed at intervals longer than most executions.
 *
 * Start-time fair queueing: an execution costs an instance its priority.  Of
 * the instances whose resources are free, the one that has used least is first.
 * An instance gains nothing from a pause.
 *
 * An instance that lacks a resource is passed by others a limited number of
 * times.  Then no execution may start that would delay that instance, while
 * what is lacking is returned, and for some time more: an execution that holds
 * it may itself wait for one that is delayed, as that of a model which calls
 * others.
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
    uint32_t          reviews;  /* in a row at which it was late, and
                                   nothing that it lacks was returned        */
    uint64_t          returns;  /* of what it lacks, at the last review      */
    uint64_t          asked;    /* sequence number of asking                 */
    uint64_t          start;    /* finish at the time of asking              */
    uint64_t          finish;   /* virtual time used                         */
    uint64_t          turns;    /* number of executions                      */
    void             *userp;
} inf_rate_instance_t;

/* Creates a limiter of the listed resources; of entries for the same resource
   the smallest counts.  count 0: every resource exists, with as many copies as
   the largest need. */
INF_CHECK inf_err_t *inf_rate_limiter_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_limiter_t **out);

/* Frees a limiter without instances. */
void inf_rate_limiter_free(inf_rate_limiter_t *l);

/* Whether an instance of that device could be added.  On error *at is the index
   of the first need that cannot be met, and *field names the field to blame:
   "name", "count" or "global".  at and field may be NULL. */
INF_CHECK inf_err_t *inf_rate_limiter_check(const inf_rate_limiter_t *l,
    int32_t device, const inf_rate_need_t *needs, size_t count, size_t *at,
    const char **field);

/* Adds i, which is zeroed but for userp.  A priority of 0 counts as 1.  On
   error nothing has changed. */
INF_CHECK inf_err_t *inf_rate_limiter_add(inf_rate_limiter_t *l,
    inf_rate_instance_t *i, int32_t device, uint32_t priority,
    const inf_rate_need_t *needs, size_t count);

/* Removes i, which does not execute. */
void inf_rate_limiter_remove(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i is idle, and its model has a payload.  again: i asks without a pause since
   its last execution. */
void inf_rate_limiter_ask(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool again);

/* From now on executions call other models. */
void inf_rate_limiter_expect_calls(inf_rate_limiter_t *l);

/* Ends the keeping of resources for i, if they were kept at the last review of
   this ask, too, and none that i lacks was returned since; where no calls are
   expected, at the last 59. */
void inf_rate_limiter_review(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i stops asking. */
void inf_rate_limiter_withdraw(inf_rate_limiter_t *l, inf_rate_instance_t *i);

/* i returns its resources.  executed: i has used its turn. */
void inf_rate_limiter_release(inf_rate_limiter_t *l, inf_rate_instance_t *i,
    bool executed);

/* The next instance that may execute; the instance is GRANTED now.  Called
   after each event, until NULL. */
inf_rate_instance_t *inf_rate_limiter_next(inf_rate_limiter_t *l);

/* Called for a resource; device is 0 if it is global. */
typedef void (*inf_rate_resource_fn)(void *userp, const char *name,
    bool global, int32_t device, uint64_t copies, uint64_t used);

/* Calls fn for each resource that an instance needs. */
void inf_rate_limiter_each(const inf_rate_limiter_t *l,
    inf_rate_resource_fn fn, void *userp);

/* How many copies of a resource exist, and how many are held. */
uint64_t inf_rate_limiter_copies(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);
uint64_t inf_rate_limiter_used(const inf_rate_limiter_t *l, const char *name,
    bool global, int32_t device);

#endif /* INF_SCHED_RATE_LIMITER_H */
