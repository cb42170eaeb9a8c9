#include "core/sched/default_scheduler.h"

#include <stdlib.h>

static inf_err_t *scheduler_push(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns);
static inf_next_t scheduler_next(inf_policy_t *p, uint32_t instance,
    uint64_t now_ns, inf_payload_t *out, inf_link_t *gone,
    uint64_t *until_ns);
static inf_next_t scheduler_ready(inf_policy_t *p, uint32_t instance,
    uint64_t now_ns, uint64_t *until_ns);
static bool scheduler_cancel(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns, inf_link_t *gone);
static inf_request_t *scheduler_drop(inf_policy_t *p);
static void scheduler_free(inf_policy_t *p);

static const inf_policy_ops_t default_scheduler_ops = {
    .push = scheduler_push,
    .next = scheduler_next,
    .ready = scheduler_ready,
    .cancel = scheduler_cancel,
    .drop = scheduler_drop,
    .leave = inf_policy_leave,
    .free = scheduler_free,
    INF_POLICY_ANY_INSTANCE
};

void
inf_default_scheduler_init(inf_default_scheduler_t *s, uint32_t limit)
{
    s->base = (inf_policy_t) {
        .ops = &default_scheduler_ops, .deadline_ns = INF_NEVER
    };
    inf_link_init(&s->queue);
    s->limit = limit;
}

inf_policy_t *
inf_default_scheduler_new(uint32_t limit)
{
    inf_default_scheduler_t *s = malloc(sizeof(*s));
    if (s == NULL) {
        return NULL;
    }

    inf_default_scheduler_init(s, limit);
    return &s->base;
}

static inf_err_t *
scheduler_push(inf_policy_t *p, inf_request_t *req, uint64_t now_ns)
{
    inf_default_scheduler_t *s = (inf_default_scheduler_t *) p;

    if (s->limit != 0 && p->queued >= s->limit) {
        return inf_request_name_error(req, inf_err_because(inf_err_new(
            INF_ERR_UNAVAILABLE, "Exceeds maximum queue size"),
            INF_CAUSE_FULL));
    }

    inf_request_move(req, INF_REQUEST_PENDING);
    req->queue_ns = now_ns;
    req->priority = 0;              /* the only level                        */
    inf_list_push_back(&s->queue, &req->link);
    p->queued++;
    return NULL;
}

static inf_next_t
scheduler_next(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
    inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns)
{
    inf_default_scheduler_t *s = (inf_default_scheduler_t *) p;
    (void) instance;
    (void) now_ns;
    (void) gone;
    (void) until_ns;

    inf_link_t *link = inf_list_pop_front(&s->queue);
    if (link == NULL) {
        return INF_NEXT_NOTHING;
    }

    p->queued--;
    inf_list_push_back(&out->requests, link);
    out->count = 1;
    return INF_NEXT_PAYLOAD;
}

static inf_next_t
scheduler_ready(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
    uint64_t *until_ns)
{
    (void) instance;
    (void) now_ns;
    (void) until_ns;
    return p->queued > 0 ? INF_NEXT_PAYLOAD : INF_NEXT_NOTHING;
}

static bool
scheduler_cancel(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone)
{
    (void) now_ns;
    (void) gone;

    if (atomic_load_explicit(&req->state, memory_order_relaxed)
        != INF_REQUEST_PENDING)
    {
        return false;
    }

    inf_link_remove(&req->link);
    inf_request_move(req, INF_REQUEST_REJECTED);
    p->queued--;
    return true;
}

static inf_request_t *
scheduler_drop(inf_policy_t *p)
{
    inf_default_scheduler_t *s = (inf_default_scheduler_t *) p;

    inf_link_t *link = inf_list_pop_front(&s->queue);
    if (link == NULL) {
        return NULL;
    }

    inf_request_t *req = inf_link_entry(link, inf_request_t, link);
    inf_request_move(req, INF_REQUEST_REJECTED);
    p->queued--;
    return req;
}

static void
scheduler_free(inf_policy_t *p)
{
    free(p);
}
