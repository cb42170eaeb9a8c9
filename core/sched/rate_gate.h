/*
 * rate_gate.h - the permits with which instance threads execute where rates
 *               are limited.
 *
 * Owner    The server owns the gate; an instance thread owns its permit.
 * Thread   open, close: loaders, when the permit's thread doesn't run; the
 *          rest of a permit: its thread alone.  One lock for all models, which is
 *          taken only where limits are on.
 * Units    copies of resources, turns.
 * Errors   open, add: as the limiter says.
 * Route    runner -> [rate gate] -> rate limiter
 *
 * A permit is for one instance, or for all of a device: the limiter is asked
 * for all of them and grants it to one, which executes and returns it.
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
    inf_waiter_t                *waiter;    /* woken when it is granted      */
    inf_rate_entry_t            *entries;   /* one per instance              */
    uint32_t                     count;
    bool                         asking;    /* the thread's own              */
    bool                         used;      /* the thread's own              */
    _Atomic(inf_rate_entry_t *)  granted;   /* seq_cst; NULL: not.  Set under
                                               the gate's lock, while asking */
} inf_rate_permit_t;

/* Copies the resources, the configured limits. */
INF_CHECK inf_err_t *inf_rate_gate_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_gate_t **out);

/* As config limits rates; *out NULL: it doesn't. */
INF_CHECK inf_err_t *inf_rate_gate_from_config(
    const NginxInference__CoreConfig *config, inf_rate_gate_t **out);

/* No permit is open. */
void inf_rate_gate_free(inf_rate_gate_t *gate);

/* As inf_rate_limiter_each; fn runs under the gate's lock. */
void inf_rate_gate_each(inf_rate_gate_t *gate, inf_rate_resource_fn fn,
    void *userp);

/*
 * Resources of msg's instance groups that can't be had, as findings.  A group
 * that names no GPUs, which only nginx -t sees, may be on any of them.
 */
INF_CHECK inf_err_t *inf_rate_gate_find(inf_rate_gate_t *gate,
    const Inference__ModelConfig *msg, inf_findings_t *f);

/* An instance that never executes, for nginx -t: what the first one of group
   needs counts for what is found later.  Zeroed; remove before the gate goes. */
INF_CHECK inf_err_t *inf_rate_gate_add(inf_rate_gate_t *gate,
    inf_rate_instance_t *i, const Inference__ModelInstanceGroup *group);
void inf_rate_gate_remove(inf_rate_gate_t *gate, inf_rate_instance_t *i);

/* For the ring of instances that first is in; permit is zeroed.  gate NULL: it
   stays so. */
INF_CHECK inf_err_t *inf_rate_permit_open(inf_rate_permit_t *permit,
    inf_rate_gate_t *gate, inf_instance_t *first, inf_waiter_t *waiter);
void inf_rate_permit_close(inf_rate_permit_t *permit);

/* Two permits of the same resource class need the same resources: where one
   can be granted, the other can. */
const void *inf_rate_permit_class(const inf_rate_permit_t *permit);

/* Whether the permit's thread may take a payload now. */
static inline bool
inf_rate_permit_may_take(const inf_rate_permit_t *permit)
{
    return permit->gate == NULL || (!permit->used
        && atomic_load(&permit->granted) != NULL);
}

/* Asks for the permit: there is a payload to take.  One that was used is
   returned first.  false: the waiter is woken when it is granted. */
bool inf_rate_permit_ask(inf_rate_permit_t *permit);

/* Asks for one instance alone, and waits until the permit is granted. */
void inf_rate_permit_wait(inf_rate_permit_t *permit,
    const inf_instance_t *instance);

/* The thread may take a payload: returns the instance to execute on, and counts
   a turn. */
inf_instance_t *inf_rate_permit_use(inf_rate_permit_t *permit);

/* There is nothing to do: returns the permit, or asks for it no longer. */
void inf_rate_permit_return(inf_rate_permit_t *permit);

#endif /* INF_SCHED_RATE_GATE_H */
