#include "core/service/response_flow.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/refs.h"

/* Below the channel's; a sender holds no other lock. */
#define RANK_FLOW 85u

typedef enum {
    FLOW_RUNS,
    FLOW_STALLS,                /* nobody waits any more                     */
    FLOW_STALLED                /* and a response has been told so           */
} flow_state_t;

struct inf_response_flow_s {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    inf_lock_t       lock;      /* rank 85; guards what follows              */
    inf_cond_t       room;      /* something was released                    */
    uint64_t         held;      /* bytes that the worker has not released    */
    uint64_t         releases;  /* so far                                    */
    flow_state_t     state;
};

static void await_release_locked(inf_response_flow_t *flow,
    uint64_t patience_ns) INF_NEEDS(flow->lock);

inf_response_flow_t *
inf_response_flow_new(void)
{
    inf_response_flow_t *flow = calloc(1, sizeof(*flow));
    if (flow == NULL) {
        return NULL;
    }

    atomic_init(&flow->refs, 1);
    inf_lock_init(&flow->lock, RANK_FLOW);
    inf_cond_init(&flow->room);
    return flow;
}

void
inf_response_flow_unref(inf_response_flow_t *flow)
{
    if (flow == NULL || !inf_refs_drop(&flow->refs)) {
        return;
    }

    inf_cond_fini(&flow->room);
    inf_lock_fini(&flow->lock);
    free(flow);
}

inf_response_admission_t
inf_response_flow_admit(inf_response_flow_t *flow, uint64_t patience_ns,
    bool final)
{
    inf_lock(&flow->lock);
    while (!final && flow->state == FLOW_RUNS
        && flow->held >= INF_RESPONSE_FLOW_MAX)
    {
        await_release_locked(flow, patience_ns);
    }

    flow_state_t state = flow->state;
    if (state == FLOW_STALLS) {
        flow->state = FLOW_STALLED;
    }
    inf_unlock(&flow->lock);

    return state == FLOW_RUNS ? INF_RESPONSE_ADMITTED
        : state == FLOW_STALLS ? INF_RESPONSE_STALLED : INF_RESPONSE_DROPPED;
}

/* Until the worker releases something, or the request stalls. */
static void
await_release_locked(inf_response_flow_t *flow, uint64_t patience_ns)
{
    uint64_t releases = flow->releases;
    uint64_t until_ns = inf_clock_ns() + patience_ns;

    while (flow->releases == releases && flow->state == FLOW_RUNS) {
        if (!inf_cond_wait_until(&flow->room, &flow->lock, until_ns)) {
            if (flow->releases == releases && flow->state == FLOW_RUNS) {
                flow->state = FLOW_STALLS;
            }
            return;
        }
    }
}

void
inf_response_flow_take(inf_response_flow_t *flow, uint64_t bytes)
{
    atomic_fetch_add_explicit(&flow->refs, 1, memory_order_relaxed);

    inf_lock(&flow->lock);
    flow->held += bytes;
    inf_unlock(&flow->lock);
}

void
inf_response_flow_give(void *userp, uint64_t bytes)
{
    inf_response_flow_t *flow = userp;

    inf_lock(&flow->lock);
    flow->held -= bytes;
    flow->releases++;
    inf_cond_broadcast(&flow->room);
    inf_unlock(&flow->lock);

    inf_response_flow_unref(flow);
}
