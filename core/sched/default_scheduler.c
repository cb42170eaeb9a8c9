#include "core/sched/default_scheduler.h"

void
inf_default_scheduler_init(inf_default_scheduler_t *s, uint32_t limit)
{
    inf_link_init(&s->queue);
    s->queued = 0;
    s->limit = limit;
}

inf_err_t *
inf_default_scheduler_push(inf_default_scheduler_t *s, inf_request_t *req,
    uint64_t now_ns)
{
    if (s->limit != 0 && s->queued >= s->limit) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Exceeds maximum queue size");
    }

    inf_request_move(req, INF_REQUEST_PENDING);
    req->queue_ns = now_ns;
    inf_list_push_back(&s->queue, &req->link);
    s->queued++;
    return NULL;
}

inf_request_t *
inf_default_scheduler_next(inf_default_scheduler_t *s)
{
    inf_link_t *link = inf_list_pop_front(&s->queue);
    if (link == NULL) {
        return NULL;
    }

    s->queued--;
    return inf_link_entry(link, inf_request_t, link);
}

bool
inf_default_scheduler_cancel(inf_default_scheduler_t *s, inf_request_t *req)
{
    if (atomic_load_explicit(&req->state, memory_order_relaxed)
        != INF_REQUEST_PENDING)
    {
        return false;
    }

    inf_link_remove(&req->link);
    s->queued--;
    return true;
}
