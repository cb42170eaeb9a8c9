#include "core/service/response_flow.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/refs.h"

/* Below the channel's; a sender holds no other lock. */
#define RANK_FLOW 85u

struct inf_response_flow_s {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    inf_lock_t       lock;      /* rank 85; guards what follows              */
    inf_cond_t       room;      /* something was released                    */
    uint64_t         held;      /* bytes that the worker has not released    */
    uint64_t         releases;  /* so far                                    */
    bool             stalled;   /* full, and no thread waits for it          */
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

inf_response_flow_t *
inf_response_flow_ref(inf_response_flow_t *flow)
{
    atomic_fetch_add_explicit(&flow->refs, 1, memory_order_relaxed);
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

bool
inf_response_flow_admit(inf_response_flow_t *flow, uint64_t patience_ns)
{
    inf_lock(&flow->lock);
    while (!flow->stalled && flow->held >= INF_RESPONSE_FLOW_MAX) {
        await_release_locked(flow, patience_ns);
    }

    bool admitted = !flow->stalled;
    inf_unlock(&flow->lock);

    return admitted;
}

/* Waits until the worker releases something, or the flow stalls. */
static void
await_release_locked(inf_response_flow_t *flow, uint64_t patience_ns)
{
    uint64_t releases = flow->releases;
    uint64_t until_ns = inf_clock_ns() + patience_ns;

    while (flow->releases == releases && !flow->stalled) {
        if (!inf_cond_wait_until(&flow->room, &flow->lock, until_ns)) {
            flow->stalled |= flow->releases == releases;
            break;
        }
    }

    if (flow->stalled) {
        inf_cond_broadcast(&flow->room);    /* ends the waits of the others  */
    }
}

void
inf_response_flow_take(inf_response_flow_t *flow, uint64_t bytes)
{
    (void) inf_response_flow_ref(flow);
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
    flow->stalled &= flow->held >= INF_RESPONSE_FLOW_MAX;
    inf_cond_broadcast(&flow->room);
    inf_unlock(&flow->lock);

    inf_response_flow_unref(flow);
}
