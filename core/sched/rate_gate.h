/*
 * rate_gate.h - where instance threads get the rate limiter's leave.
 *
 * Owner    The server owns the gate; each instance thread has a seat in it.
 * Thread   open, close: loaders, when the seat's thread doesn't run; the rest
 *          of a seat: its thread alone.  One lock for all models, which is
 *          taken only where limits are on.
 * Units    copies of resources, turns.
 * Errors   open, add: as the limiter says.
 * Route    runner -> [rate gate] -> rate limiter
 *
 * A seat has one instance, or all of a device: they ask together and one of
 * them gets leave.
 */

#ifndef INF_SCHED_RATE_GATE_H
#define INF_SCHED_RATE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/model/config_findings.h"
#include "core/model/model.h"
#include "core/sched/rate_limiter.h"
#include "core/sched/waiter.h"
#include "core_config.pb-c.h"

typedef struct inf_rate_gate_s inf_rate_gate_t;
typedef struct inf_rate_entry_s inf_rate_entry_t;

typedef struct {
    inf_rate_gate_t             *gate;      /* NULL: nothing is limited      */
    inf_waiter_t                *waiter;    /* woken when leave is granted   */
    inf_rate_entry_t            *entries;   /* one per instance              */
    uint32_t                     count;
    bool                         asking;    /* the thread's own              */
    bool                         spent;     /* leave was used; its own       */
    _Atomic(inf_rate_entry_t *)  leave;     /* set under the gate's lock,
                                               while asking                  */
} inf_rate_seat_t;

/* Copies the resources, the configured limits. */
INF_CHECK inf_err_t *inf_rate_gate_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_gate_t **out);

/* As config limits rates; *out NULL: it doesn't. */
INF_CHECK inf_err_t *inf_rate_gate_from_config(
    const NginxInference__CoreConfig *config, inf_rate_gate_t **out);

/* No seat is open. */
void inf_rate_gate_free(inf_rate_gate_t *gate);

/*
 * What of msg's instance groups could not be had, as findings.  A group that
 * names no GPUs, which only nginx -t sees, may be on any of them.
 */
INF_CHECK inf_err_t *inf_rate_gate_find(inf_rate_gate_t *gate,
    const Inference__ModelConfig *msg, inf_findings_t *f);

/* An instance that never executes, for nginx -t: what the first one of group
   needs counts for what is found later.  Zeroed; remove before the gate goes. */
INF_CHECK inf_err_t *inf_rate_gate_add(inf_rate_gate_t *gate,
    inf_rate_instance_t *i, const Inference__ModelInstanceGroup *group);
void inf_rate_gate_remove(inf_rate_gate_t *gate, inf_rate_instance_t *i);

/* For the ring of instances that first is in; seat is zeroed.  gate NULL: it
   stays so. */
INF_CHECK inf_err_t *inf_rate_seat_open(inf_rate_seat_t *seat,
    inf_rate_gate_t *gate, inf_instance_t *first, inf_waiter_t *waiter);
void inf_rate_seat_close(inf_rate_seat_t *seat);

/* Seats of the same resource class need the same: one can go if the other
   can. */
const void *inf_rate_seat_kin(const inf_rate_seat_t *seat);

/* Whether its thread may take a payload now. */
static inline bool
inf_rate_seat_may_take(const inf_rate_seat_t *seat)
{
    return seat->gate == NULL || (!seat->spent
        && atomic_load(&seat->leave) != NULL);
}

/* There is a payload to take.  A leave that was used is given back in the
   same breath.  false: the waiter is woken when it is granted. */
bool inf_rate_seat_ask(inf_rate_seat_t *seat);

/* The same for one instance alone, and waits. */
void inf_rate_seat_wait(inf_rate_seat_t *seat, const inf_instance_t *instance);

/* Its thread may take: the instance to execute on; that is a turn. */
inf_instance_t *inf_rate_seat_spend(inf_rate_seat_t *seat);

/* There is nothing to do: gives back whatever it holds, asks no longer. */
void inf_rate_seat_rest(inf_rate_seat_t *seat);

#endif /* INF_SCHED_RATE_GATE_H */
