/* sequence_rows.c - the next payload of an instance, row by row. */

#include "core/sched/sequence_parts.h"

#include "core/sched/compatibility.h"

typedef inf_sequence_batcher_t batcher_t;
typedef inf_sequence_instance_t instance_t;
typedef inf_slot_t             slot_t;

/* The result of a scan of an instance's slots (direct). */
typedef struct {
    const inf_request_t *oldest;    /* NULL: nothing can run                 */
    uint32_t             ready;
    uint32_t             slots;     /* index of the last with a request, plus
                                       1                                     */
} scan_t;

static void scan(const batcher_t *b, const instance_t *instance, scan_t *out);
static inf_next_t direct_decide(const batcher_t *b, const scan_t *l,
    uint64_t now_ns, uint64_t *until_ns);
static void direct_take(batcher_t *b, instance_t *instance, const scan_t *l,
    uint64_t now_ns, inf_payload_t *out);
static void oldest_taken(batcher_t *b, inf_payload_t *out, uint64_t now_ns);
static void taken(batcher_t *b, slot_t *s, inf_request_t *req);
static inf_err_t *fill(inf_payload_t *out);
static void give_up(inf_payload_t *out, inf_link_t *failed);

inf_next_t
inf_sequence_batcher_next(inf_policy_t *p, uint32_t number, uint64_t now_ns,
    inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = inf_sequence_instance_find(b, number);
    scan_t l;

    inf_sequence_batcher_expire(p, now_ns, gone);
    if (inf_sequence_batcher_holds(b)) {
        return INF_NEXT_NOTHING;
    }
    if (instance->batcher != NULL) {
        instance->batcher->closing = p->closing || b->base.leaving;
        if (instance->stuck) {
            instance->stuck = false;
            for (uint32_t i = 0; i < b->options.slots; i++) {
                inf_slot_issue(b, &instance->slots[i]);
            }
        }
        inf_next_t next = instance->batcher->ops->next(instance->batcher, 0,
            now_ns, out, gone, until_ns);
        if (next == INF_NEXT_PAYLOAD) {
            oldest_taken(b, out, now_ns);
        }
        return next;
    }

    scan(b, instance, &l);
    inf_next_t next = direct_decide(b, &l, now_ns, until_ns);
    if (next == INF_NEXT_PAYLOAD) {
        direct_take(b, instance, &l, now_ns, out);
    }
    return next;
}

inf_next_t
inf_sequence_batcher_ready(inf_policy_t *p, uint32_t number, uint64_t now_ns,
    uint64_t *until_ns)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = inf_sequence_instance_find(b, number);
    scan_t l;

    if (inf_sequence_batcher_holds(b)) {
        return INF_NEXT_NOTHING;
    }
    if (instance->batcher != NULL) {
        instance->batcher->closing = p->closing || b->base.leaving;
        return instance->batcher->ops->ready(instance->batcher, 0, now_ns,
            until_ns);
    }

    scan(b, instance, &l);
    return direct_decide(b, &l, now_ns, until_ns);
}

bool
inf_sequence_batcher_holds(batcher_t *b)
{
    uint32_t queued = 0;

    if (!b->held) {
        return false;
    }

    for (uint32_t i = 0; i < b->instance_count; i++) {
        queued += b->instances[i]->queued;
    }
    if ((queued < b->options.hold
            || b->base.queued - queued < b->options.backlog_hold)
        && !b->base.closing && !b->base.leaving)
    {
        return true;
    }

    b->held = false;
    for (uint32_t i = 0; i < b->instance_count; i++) {
        inf_sequence_instance_touch(b, b->instances[i]);
    }
    return false;
}

static void
scan(const batcher_t *b, const instance_t *instance, scan_t *out)
{
    *out = (scan_t) { .oldest = NULL };
    for (uint32_t i = 0; instance->queued > 0 && i < b->options.slots; i++) {
        const slot_t *s = &instance->slots[i];
        if (!inf_slot_can_run(s)) {
            continue;
        }

        const inf_request_t *req = inf_link_entry(s->queue.next,
            inf_request_t, link);
        out->ready++;
        out->slots = i + 1;
        if (out->oldest == NULL || req->queue_ns < out->oldest->queue_ns) {
            out->oldest = req;
        }
    }
}

/* A sequence begins when all requests of the slot's previous one were released;
   with states, a request runs when the previous one was released. */
bool
inf_slot_can_run(const slot_t *s)
{
    if (inf_list_empty(&s->queue)) {
        return false;
    }

    return s->running == 0 || (!s->instance->keeps
        && !(inf_link_entry(s->queue.next, inf_request_t, link)->flags
            & INF_FLAG_START));
}

static inf_next_t
direct_decide(const batcher_t *b, const scan_t *l, uint64_t now_ns,
    uint64_t *until_ns)
{
    if (l->oldest == NULL) {
        return INF_NEXT_NOTHING;
    }

    uint64_t due_ns = inf_later(l->oldest->queue_ns, b->delay_ns);
    if (b->base.closing || b->base.leaving || b->delay_ns == 0
        || b->options.utilization <= 0
        || (double) l->ready >= b->options.utilization * b->options.slots
        || now_ns >= due_ns)
    {
        return INF_NEXT_PAYLOAD;
    }

    *until_ns = due_ns;
    return INF_NEXT_WAIT;
}

static void
direct_take(batcher_t *b, instance_t *instance, const scan_t *l,
    uint64_t now_ns, inf_payload_t *out)
{
    const inf_request_t *like = l->oldest;

    for (uint32_t i = 0; i < l->slots; i++) {
        slot_t *s = &instance->slots[i];
        if (!inf_slot_can_run(s)) {
            continue;
        }

        inf_request_t *req = inf_link_entry(s->queue.next, inf_request_t,
            link);
        if (req != like && b->options.tensors != NULL
            && !inf_compatible(b->options.tensors, like, req))
        {
            continue;
        }

        inf_link_remove(&req->link);
        inf_list_push_back(&out->requests, &req->link);
        out->count++;
        taken(b, s, req);
    }
    out->slots = l->slots;

    /* a sequence that takes a freed slot runs in the next payload */
    for (inf_link_t *k = out->requests.next; k != &out->requests; k = k->next)
    {
        const inf_request_t *req = inf_link_entry(k, inf_request_t, link);
        inf_slot_settle(b, req->sched.queued.slot, now_ns);
    }
}

static void
oldest_taken(batcher_t *b, inf_payload_t *out, uint64_t now_ns)
{
    for (inf_link_t *k = out->requests.next; k != &out->requests; k = k->next)
    {
        inf_request_t *req = inf_link_entry(k, inf_request_t, link);
        slot_t *s = req->sched.queued.slot;
        s->issued = NULL;
        taken(b, s, req);
        inf_slot_settle(b, s, now_ns);
    }
}

static void
taken(batcher_t *b, slot_t *s, inf_request_t *req)
{
    req->sched.queued.turn = s->turn;
    s->running++;
    s->instance->running++;
    inf_slot_lose(b, s, req);
}

inf_err_t *
inf_sequence_batcher_add_controls(inf_policy_t *p, inf_payload_t *out,
    inf_link_t *failed)
{
    const batcher_t *b = (const batcher_t *) p;
    inf_link_t *first = out->requests.next;
    inf_err_t *bad = NULL;

    if (b->options.inputs == NULL || first == &out->requests) {
        return NULL;
    }

    for (inf_link_t *l = first; l != &out->requests; ) {
        inf_request_t *req = inf_link_entry(l, inf_request_t, link);
        l = l->next;
        inf_err_t *err = inf_slot_inputs_add_controls(
            req->sched.queued.slot->inputs, req,
            (req->flags & INF_FLAG_START) != 0,
            (req->flags & INF_FLAG_END) != 0);
        if (err != NULL) {
            inf_err_free(bad);
            bad = err;
            inf_link_remove(&req->link);
            inf_list_push_back(failed, &req->link);
            out->count--;
        }
    }

    inf_err_t *err = fill(out);
    if (err != NULL) {
        inf_err_free(bad);
        bad = err;
        give_up(out, failed);
    }
    return bad;
}

/* Fills every row up to the last slot with a request. */
static inf_err_t *
fill(inf_payload_t *out)
{
    inf_link_t *at = out->requests.next;

    if (out->count == 0 || out->slots == out->count) {
        return NULL;
    }

    const inf_request_t *like = inf_link_entry(at, inf_request_t, link);
    const instance_t *instance = like->sched.queued.slot->instance;
    for (uint32_t i = 0; i < out->slots; i++) {
        inf_request_t *padding;

        if (at != &out->requests && inf_link_entry(at, inf_request_t,
                link)->sched.queued.slot->number == i)
        {
            at = at->next;
            continue;
        }

        inf_err_t *err = inf_slot_inputs_fill(instance->slots[i].inputs, like,
            &padding);
        if (err != NULL) {
            return err;
        }
        inf_request_move(padding, INF_REQUEST_EXECUTING);
        inf_link_insert(at, &padding->link);
        out->count++;
    }
    return NULL;
}

/* Fails the whole payload, because rows would be misplaced. */
static void
give_up(inf_payload_t *out, inf_link_t *failed)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(&out->requests)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        if (req->padding) {
            inf_request_release(req, 1);
        } else {
            inf_list_push_back(failed, link);
        }
    }
    out->count = 0;
}
