#include "core/service/response_flow.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/queue.h"
#include "core/base/refs.h"
#include "core/include/channel.h"

/* Below the channel's rank; a sender holds no other lock. */
#define RANK_FLOW 85u

#define NONE_MISSING UINT64_MAX

struct inf_response_flow_s {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    inf_lock_t       lock;      /* rank 85; guards all below                 */
    inf_cond_t       room;      /* signalled after a release, or for a new
                                   request                                   */
    inf_link_t       line;      /* turns by order, until answered and
                                   released                                  */
    uint64_t         missing;   /* order of a request to be submitted again, or
                                   NONE_MISSING                              */
    uint64_t         missing_until_ns;  /* end of the wait for missing       */
    uint64_t         again_ns;
    uint64_t         loose;     /* responses without order, not released     */
    uint64_t         held;      /* bytes not released by the worker, and those
                                   of responses that wait                    */
    uint64_t         releases;  /* number so far                             */
    bool             stalled;   /* nothing was released in time: no thread
                                   waits                                     */
};

/* Fields except flow are under the flow's lock. */
struct inf_response_turn_s {
    inf_response_flow_t *flow;          /* a reference                       */
    inf_link_t           link;          /* in line, or unlinked              */
    uint64_t             order;
    uint32_t             unreleased;    /* number of responses               */
    bool                 loose;         /* sent as they come                 */
    bool                 answered;      /* the final response was sent       */
    bool                 ended;
};

static void flow_enter_locked(inf_response_flow_t *flow,
    inf_response_turn_t *turn) INF_NEEDS(flow->lock);
static bool is_full_locked(const inf_response_flow_t *flow)
    INF_NEEDS(flow->lock);
static bool is_due_locked(const inf_response_flow_t *flow)
    INF_NEEDS(flow->lock);
static bool is_forgotten_locked(const inf_response_flow_t *flow)
    INF_NEEDS(flow->lock);
static void flow_changed_locked(inf_response_flow_t *flow)
    INF_NEEDS(flow->lock);
static void await_release_locked(inf_response_flow_t *flow,
    const inf_response_patience_t *patience) INF_NEEDS(flow->lock);
static void turn_free(inf_response_turn_t *turn);

inf_response_flow_t *
inf_response_flow_new(uint64_t again_ns)
{
    inf_response_flow_t *flow = calloc(1, sizeof(*flow));
    if (flow == NULL) {
        return NULL;
    }

    atomic_init(&flow->refs, 1);
    inf_lock_init(&flow->lock, RANK_FLOW);
    inf_cond_init(&flow->room);
    inf_link_init(&flow->line);
    flow->missing = NONE_MISSING;
    flow->again_ns = again_ns;
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

inf_response_turn_t *
inf_response_turn_new(inf_response_flow_t *flow, uint64_t order)
{
    inf_response_turn_t *turn = calloc(1, sizeof(*turn));
    if (turn == NULL) {
        inf_response_flow_unref(flow);
        return NULL;
    }

    turn->flow = flow;
    turn->order = order;
    turn->loose = order == 0;
    inf_link_init(&turn->link);
    if (!turn->loose) {
        inf_lock(&flow->lock);
        flow_enter_locked(flow, turn);
        inf_unlock(&flow->lock);
    }

    return turn;
}

/* Inserts turn by its order; requests may arrive in any order after another
   core's exit, but no more than a channel has slots.  A worker that breaks this
   rule gets another order: the search must not hold up other workers. */
static void
flow_enter_locked(inf_response_flow_t *flow, inf_response_turn_t *turn)
{
    inf_link_t *before = &flow->line;

    for (uint32_t n = 0; n < INF_MAX_SLOTS && before->prev != &flow->line
        && inf_link_entry(before->prev, inf_response_turn_t, link)->order
            > turn->order; n++)
    {
        before = before->prev;
    }

    inf_link_insert(before, &turn->link);
    if (flow->missing == turn->order) {
        flow->missing = NONE_MISSING;
    }
    flow_changed_locked(flow);
}

void
inf_response_turn_unorder(inf_response_turn_t *turn)
{
    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    inf_link_remove(&turn->link);
    turn->loose = true;
    inf_unlock(&flow->lock);
}

bool
inf_response_turn_admit(inf_response_turn_t *turn, uint64_t bytes,
    const inf_response_patience_t *patience)
{
    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    flow->held += bytes;
    while (!flow->stalled && is_full_locked(flow)) {
        await_release_locked(flow, patience);
    }

    bool admitted = !flow->stalled;
    if (!admitted) {
        flow->held -= bytes;
    }
    inf_unlock(&flow->lock);

    return admitted;
}

bool
inf_response_turn_may_send(inf_response_turn_t *turn)
{
    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    bool may_send = !flow->stalled;
    inf_unlock(&flow->lock);

    return may_send;
}

static bool
is_full_locked(const inf_response_flow_t *flow)
{
    return flow->held > INF_RESPONSE_FLOW_MAX && is_due_locked(flow);
}

/* Whether the worker has a response that its client may take: one without
   order, or one of the first request in line. */
static bool
is_due_locked(const inf_response_flow_t *flow)
{
    if (flow->loose > 0 || inf_list_empty(&flow->line)) {
        return flow->loose > 0;
    }

    const inf_response_turn_t *first = inf_link_entry(flow->line.next,
        inf_response_turn_t, link);
    return first->unreleased > 0
        && (first->order < flow->missing || is_forgotten_locked(flow));
}

/* Whether the missing request comes no more: its client has left, and the
   call's number is another call's, or its time is over. */
static bool
is_forgotten_locked(const inf_response_flow_t *flow)
{
    return inf_clock_ns() >= flow->missing_until_ns;
}

static void
flow_changed_locked(inf_response_flow_t *flow)
{
    flow->stalled &= is_due_locked(flow);
    inf_cond_broadcast(&flow->room);
}

/* Waits until the worker releases a response, or the flow is not full, or
   stalls. */
static void
await_release_locked(inf_response_flow_t *flow,
    const inf_response_patience_t *patience)
{
    uint64_t releases = flow->releases;
    uint64_t now_ns = inf_clock_ns();
    uint64_t until_ns = now_ns + patience->patience_ns;

    while (flow->releases == releases && !flow->stalled
        && is_full_locked(flow))
    {
        uint64_t poll_ns = now_ns + INF_RESPONSE_FLOW_POLL_NS;
        bool told = inf_cond_wait_until(&flow->room, &flow->lock,
            poll_ns < until_ns ? poll_ns : until_ns);

        now_ns = inf_clock_ns();
        if (!told && now_ns >= until_ns) {
            flow->stalled |= flow->releases == releases
                && is_full_locked(flow);
            break;
        }
        if (!told) {
            inf_unlock(&flow->lock);
            patience->poll(patience->userp);
            inf_lock(&flow->lock);
        }
    }

    if (flow->stalled) {
        inf_cond_broadcast(&flow->room);    /* ends the waits of other
                                               threads                       */
    }
}

void
inf_response_turn_send(inf_response_turn_t *turn, uint64_t admitted,
    uint64_t bytes, bool final)
{
    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    if (bytes > 0) {
        turn->unreleased++;
        flow->loose += turn->loose;
    }
    flow->held += bytes - admitted;
    turn->answered |= final;
    if (turn->answered && turn->unreleased == 0) {
        inf_link_remove(&turn->link);
    }
    inf_unlock(&flow->lock);
}

void
inf_response_turn_release(void *userp, uint64_t bytes)
{
    inf_response_turn_t *turn = userp;
    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    turn->unreleased--;
    flow->loose -= turn->loose;
    flow->held -= bytes;
    flow->releases++;
    flow->stalled = false;
    if (turn->answered && turn->unreleased == 0) {
        inf_link_remove(&turn->link);
        if (flow->loose == 0 && inf_list_empty(&flow->line)) {
            flow->missing = NONE_MISSING;   /* it may never be submitted     */
        }
    }
    flow_changed_locked(flow);
    bool over = turn->ended && turn->unreleased == 0;
    inf_unlock(&flow->lock);

    if (over) {
        turn_free(turn);
    }
}

void
inf_response_turn_end(inf_response_turn_t *turn)
{
    if (turn == NULL) {
        return;
    }

    inf_response_flow_t *flow = turn->flow;

    inf_lock(&flow->lock);
    if (!turn->answered && !turn->loose) {
        inf_link_remove(&turn->link);
        if (turn->order <= flow->missing || is_forgotten_locked(flow)) {
            flow->missing = turn->order;
            flow->missing_until_ns = inf_clock_ns() + flow->again_ns;
        }
        flow_changed_locked(flow);
    }
    turn->ended = true;
    bool over = turn->unreleased == 0;
    inf_unlock(&flow->lock);

    if (over) {
        turn_free(turn);
    }
}

static void
turn_free(inf_response_turn_t *turn)
{
    inf_response_flow_unref(turn->flow);
    free(turn);
}
