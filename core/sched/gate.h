/*
 * gate.h - functions that a request of a model passes before the runner or
 *          ensemble; set by the response cache.
 *
 * Owner    The creator frees the gate when no request is left.  A gate owns a
 *          request that it took until the request goes on or is answered.
 * Thread   any, no lock held.
 * Units    ns.
 * Errors   submit: the runner's; the caller still owns req then.
 * Route    entrance -> [gate] -> response cache -> entrance
 */

#ifndef INF_SCHED_GATE_H
#define INF_SCHED_GATE_H

#include "core/tensor/request.h"

typedef struct inf_gate_s inf_gate_t;

typedef struct {
    inf_err_t *(*submit)(inf_gate_t *gate, inf_request_t *req,
        uint64_t now_ns, bool nonblocking, bool *queued);
    bool (*cancel)(inf_gate_t *gate, inf_request_t *req);
    uint32_t (*waiting)(inf_gate_t *gate);
} inf_gate_ops_t;

/* First member of a gate. */
struct inf_gate_s {
    const inf_gate_ops_t *ops;
};

/* As inf_entrance_submit. */
INF_CHECK static inline inf_err_t *
inf_gate_submit(inf_gate_t *gate, inf_request_t *req, uint64_t now_ns,
    bool nonblocking, bool *queued)
{
    return gate->ops->submit(gate, req, now_ns, nonblocking, queued);
}

/* Removes a request that waits in the gate; true: the caller owns it. */
static inline bool
inf_gate_cancel(inf_gate_t *gate, inf_request_t *req)
{
    return gate->ops->cancel(gate, req);
}

/* Number of requests that wait in the gate. */
static inline uint32_t
inf_gate_waiting(inf_gate_t *gate)
{
    return gate->ops->waiting(gate);
}

#endif /* INF_SCHED_GATE_H */
