/*
 * rate_gate.h - the permits by which instance threads execute when rates are
 *               limited.
 *
 * Owner    The server owns the gate; an instance thread owns its permit.
 * Thread   open, close: loaders, while the permit's thread does not run; the
 *          rest of a permit: its thread.  One lock for all models, taken only
 *          if rates are limited.
 * Units    copies of resources, turns; ns.
 * Errors   open, add: as the limiter says.
 * Route    runner -> [rate gate] -> rate limiter
 *
 * A permit is for one instance, or for all of a device: then the limiter is
 * asked for all of them and grants one, which executes and returns it.
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
    inf_rate_gate_t             *gate;      /* NULL: no limits               */
    inf_waiter_t                *waiter;    /* woken when granted            */
    inf_rate_entry_t            *entries;   /* one per instance              */
    uint32_t                     count;
    bool                         asking;    /* thread's own                  */
    bool                         used;      /* thread's own                  */
    uint64_t                     review_ns; /* thread's own; while asking    */
    _Atomic(inf_rate_entry_t *)  granted;   /* seq_cst; NULL: not granted.  Set
                                               under the gate's lock, while
                                               asking                        */
} inf_rate_permit_t;

/* Creates a gate; copies the resources, the configured limits. */
INF_CHECK inf_err_t *inf_rate_gate_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_gate_t **out);

/* Creates the gate of the configuration; *out NULL: rates are not limited. */
INF_CHECK inf_err_t *inf_rate_gate_from_config(
    const NginxInference__CoreConfig *config, inf_rate_gate_t **out);

/* Frees the gate; no permit is open. */
void inf_rate_gate_free(inf_rate_gate_t *gate);

/* A call through the C API, which an execution may wait for: from now on
   resources are kept for a late instance for a short time.  gate may be
   NULL. */
void inf_rate_gate_expect_calls(inf_rate_gate_t *gate);

/* As inf_rate_limiter_each; fn runs under the gate's lock. */
void inf_rate_gate_each(inf_rate_gate_t *gate, inf_rate_resource_fn fn,
    void *userp);

/*
 * Adds findings for resources that msg's instance groups cannot get.  A group
 * without GPUs, which only nginx -t sees, may be on any GPU.
 */
INF_CHECK inf_err_t *inf_rate_gate_find(inf_rate_gate_t *gate,
    const Inference__ModelConfig *msg, inf_findings_t *f);

/* For nginx -t, adds an instance that never executes: the needs of the first
   instance of group count for later checks.  i is zeroed; remove it before the
   gate is freed. */
INF_CHECK inf_err_t *inf_rate_gate_add(inf_rate_gate_t *gate,
    inf_rate_instance_t *i, const Inference__ModelInstanceGroup *group);
void inf_rate_gate_remove(inf_rate_gate_t *gate, inf_rate_instance_t *i);

/* Opens the permit for the ring of instances of first; permit is zeroed. gate
   NULL: permit stays zeroed. */
INF_CHECK inf_err_t *inf_rate_permit_open(inf_rate_permit_t *permit,
    inf_rate_gate_t *gate, inf_instance_t *first, inf_waiter_t *waiter);
void inf_rate_permit_close(inf_rate_permit_t *permit);

/* Two permits of the same class need the same resources: if one can be granted,
   the other can. */
const void *inf_rate_permit_class(const inf_rate_permit_t *permit);

/* Whether the permit's thread may take a payload now. */
static inline bool
inf_rate_permit_may_take(const inf_rate_permit_t *permit)
{
    return permit->gate == NULL || (!permit->used
        && atomic_load(&permit->granted) != NULL);
}

/* Asks for the permit when there is a payload; returns a used permit first.
   false: the waiter is woken when it is granted; the thread asks again at
   review_ns at the latest. */
bool inf_rate_permit_ask(inf_rate_permit_t *permit, uint64_t now_ns);

/* Asks for one instance alone, and waits for the permit. */
void inf_rate_permit_wait(inf_rate_permit_t *permit,
    const inf_instance_t *instance);

/* Returns the instance that may execute, and counts a turn. */
inf_instance_t *inf_rate_permit_use(inf_rate_permit_t *permit);

/* Returns the permit, or stops asking, when there is nothing to do. */
void inf_rate_permit_return(inf_rate_permit_t *permit);

#endif /* INF_SCHED_RATE_GATE_H */
