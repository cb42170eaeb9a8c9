#include "core/sched/sequence_batcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/sched/compatibility.h"
#include "core/sched/rejection.h"
#include "core/sched/sequence_parts.h"

#define BUCKETS_LEAST 64u
#define NOTICE_NS     UINT64_C(1000000000)  /* between two notices           */

typedef inf_sequence_batcher_t batcher_t;
typedef inf_sequence_instance_t instance_t;
typedef inf_sequence_t         sequence_t;
typedef inf_slot_t             slot_t;

static inf_err_t *batcher_init(batcher_t *b,
    const inf_sequence_batcher_options_t *options);
static void batcher_free(inf_policy_t *p);
static inf_err_t *batcher_push(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns);
static bool batcher_notice(inf_policy_t *p, char *text, size_t cap);
static inf_err_t *check(const batcher_t *b, const inf_request_t *req);
static void name(batcher_t *b, inf_request_t *req);
static inf_err_t *begin(batcher_t *b, inf_request_t *req, uint64_t now_ns);
static void enqueue(batcher_t *b, slot_t *s, inf_request_t *req);
static void wait_on(batcher_t *b, sequence_t *q, inf_request_t *req);
static void batcher_released(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns, inf_link_t *gone);
static void lose_start(batcher_t *b, slot_t *s, inf_link_t *gone);
static inf_err_t *batcher_again(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns);
static bool goes_on(const inf_request_t *req);
static bool batcher_cancel(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns, inf_link_t *gone);
static bool remove_request(batcher_t *b, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone);
static void withdraw_behind(batcher_t *b, inf_link_t *queue,
    inf_link_t *from, inf_gone_t why, inf_link_t *gone);
static void withdraw(batcher_t *b, inf_request_t *req);
static inf_request_t *batcher_drop(inf_policy_t *p);
static void backlog_timer(batcher_t *b, sequence_t *q);
static uint64_t late_at(const inf_request_t *req);
static const char *id_text(const inf_request_t *req, char *room, size_t cap);

static const inf_policy_ops_t batcher_ops = {
    .gathers = true,
    .binds = true,
    .push = batcher_push,
    .notice = batcher_notice,
    .next = inf_sequence_batcher_next,
    .ready = inf_sequence_batcher_ready,
    .add_controls = inf_sequence_batcher_add_controls,
    .cancel = batcher_cancel,
    .drop = batcher_drop,
    .expire = inf_sequence_batcher_expire,
    .released = batcher_released,
    .again = batcher_again,
    .leave = inf_sequence_batcher_leave,
    .count = inf_sequence_batcher_count,
    .free = batcher_free,
    .attach = inf_sequence_batcher_attach,
    .open = inf_sequence_batcher_open,
    .retire = inf_sequence_batcher_retire,
    .occupied = inf_sequence_batcher_occupied,
    .detach = inf_sequence_batcher_detach,
    .touched = inf_sequence_batcher_touched
};

inf_err_t *
inf_sequence_batcher_new(const inf_sequence_batcher_options_t *options,
    inf_policy_t **out)
{
    batcher_t *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = batcher_init(b, options);
    if (err != NULL) {
        batcher_free(&b->base);
        return err;
    }

    *out = &b->base;
    return NULL;
}

inf_err_t *
inf_sequence_batcher_of(inf_model_t *model, inf_policy_t **out)
{
    const Inference__ModelSequenceBatching *msg =
        model->built->sequence_batching;
    const Inference__ModelSequenceBatching__StrategyOldest *oldest =
        msg->strategy_choice_case
        == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST
        ? msg->oldest : NULL;
    const Inference__ModelSequenceBatching__StrategyDirect *direct =
        msg->strategy_choice_case
        == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_DIRECT
        ? msg->direct : NULL;
    size_t n = oldest != NULL ? oldest->n_preferred_batch_size : 0;
    uint32_t limit = inf_config_tensors_max_batch_size(model->tensors);
    uint32_t *preferred = calloc(n + 1, sizeof(*preferred));
    if (preferred == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < n; i++) {
        preferred[i] = (uint32_t) oldest->preferred_batch_size[i];
    }

    const inf_sequence_batcher_options_t options = {
        .model = model->name,
        .oldest = oldest != NULL,
        .slots = oldest != NULL && oldest->max_candidate_sequences > 0
            ? (uint32_t) oldest->max_candidate_sequences
            : limit > 0 ? limit : 1,
        .limit = limit,
        .delay_us = oldest != NULL ? oldest->max_queue_delay_microseconds
            : direct != NULL ? direct->max_queue_delay_microseconds : 0,
        .utilization = direct != NULL
            ? (double) direct->minimum_slot_utilization : 0,
        .preferred = preferred,
        .preferred_count = (uint32_t) n,
        .idle_us = msg->max_sequence_idle_microseconds,
        .iterative = msg->iterative_sequence,
        .tensors = model->tensors,
        .inputs = model->sched.sequence_inputs,
        .hold = inf_policy_hold("TRITONSERVER_DELAY_SCHEDULER"),
        .backlog_hold = inf_policy_hold(
            "TRITONSERVER_BACKLOG_DELAY_SCHEDULER")
    };
    inf_err_t *err = inf_sequence_batcher_new(&options, out);
    free(preferred);
    return err;
}

void
inf_sequence_batcher_count(const inf_policy_t *p, inf_sequence_counts_t *out)
{
    const batcher_t *b = (const batcher_t *) p;

    *out = (inf_sequence_counts_t) {
        .sequences = b->base.live,
        .slots = b->taken,
        .free = b->vacant,
        .backlog = b->waiting
    };
}

static inf_err_t *
batcher_init(batcher_t *b, const inf_sequence_batcher_options_t *options)
{
    b->base.ops = &batcher_ops;
    b->base.deadline_ns = INF_NEVER;
    b->options = *options;
    b->options.slots = options->slots > 0 ? options->slots : 1;
    if (options->tensors != NULL
        && !inf_compatibility_matters(options->tensors))
    {
        b->options.tensors = NULL;
    }
    b->delay_ns = inf_us_to_ns(options->delay_us);
    b->idle_ns = inf_us_to_ns(options->idle_us);
    b->held = options->hold > 0 || options->backlog_hold > 0;
    inf_link_init(&b->backlog);
    inf_link_init(&b->silent);
    inf_link_init(&b->touched);
    inf_link_init(&b->departed);

    /* hashes are seeded, as clients choose the ids */
    if (getrandom(&b->seed, sizeof(b->seed), GRND_NONBLOCK)
        != (ssize_t) sizeof(b->seed))
    {
        b->seed = (uint64_t) (uintptr_t) b;
    }

    b->mask = BUCKETS_LEAST - 1;
    b->buckets = calloc(BUCKETS_LEAST, sizeof(b->buckets[0]));
    b->preferred = calloc(options->preferred_count + (size_t) 1,
        sizeof(*b->preferred));
    if (b->buckets == NULL || b->preferred == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < options->preferred_count; i++) {
        b->preferred[i] = options->preferred[i];
    }
    b->options.preferred = b->preferred;
    return NULL;
}

static void
batcher_free(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;
    inf_link_t *link;

    for (uint64_t i = 0; b->buckets != NULL && i <= b->mask; i++) {
        while (b->buckets[i] != NULL) {
            sequence_t *q = b->buckets[i];
            inf_sequence_timer_clear(b, q);
            inf_sequence_forget(b, q);
            inf_sequence_free(b, q);
        }
    }
    while (b->spares != NULL) {
        sequence_t *q = b->spares;
        b->spares = q->next;
        free(q);
    }

    while (b->instance_count > 0) {
        inf_sequence_instance_free(b, b->instances[--b->instance_count]);
    }
    while ((link = inf_list_pop_front(&b->departed)) != NULL) {
        inf_sequence_instance_free(b, inf_link_entry(link, instance_t, link));
    }
    free(b->instances);
    free(b->buckets);
    free(b->preferred);
    free(b);
}

static inf_err_t *
batcher_push(inf_policy_t *p, inf_request_t *req, uint64_t now_ns)
{
    batcher_t *b = (batcher_t *) p;

    b->restart = NULL;
    if (b->options.iterative && req->correlation_id == 0
        && req->correlation_text == NULL)
    {
        name(b, req);
    }

    inf_err_t *err = check(b, req);
    if (err != NULL) {
        return err;
    }

    sequence_t *q = inf_sequence_find(b, req);
    if (q == NULL) {
        err = begin(b, req, now_ns);
        (void) inf_sequence_batcher_holds(b);
        return err;
    }

    inf_request_move(req, INF_REQUEST_PENDING);
    req->queue_ns = now_ns;
    b->restart = req->flags & INF_FLAG_START ? req : NULL;
    if (q->slot != NULL) {
        enqueue(b, q->slot, req);
    } else {
        wait_on(b, q, req);
    }
    (void) inf_sequence_batcher_holds(b);
    return NULL;
}

static bool
batcher_notice(inf_policy_t *p, char *text, size_t cap)
{
    batcher_t *b = (batcher_t *) p;
    const inf_request_t *req = b->restart;
    char room[24];
    char more[80] = "";

    b->restart = NULL;
    if (req == NULL || req->queue_ns < b->notice_ns) {
        b->unnoticed += req != NULL;
        return false;
    }

    if (b->unnoticed > 0) {
        snprintf(more, sizeof(more), ", as %u others did since the last time"
            " that this was said", b->unnoticed);
    }
    snprintf(text, cap, "model=%s: sequence %.64s starts again before it has"
        " ended%s", b->options.model, id_text(req, room, sizeof(room)), more);
    b->unnoticed = 0;
    b->notice_ns = inf_later(req->queue_ns, NOTICE_NS);
    return true;
}

static inf_err_t *
check(const batcher_t *b, const inf_request_t *req)
{
    if (req->batch_size > 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "inference request to model"
            " '%s' must specify batch-size 1 due to requirements of sequence"
            " batcher", b->options.model);
    }

    if (req->correlation_text != NULL ? req->correlation_text[0] == '\0'
        : req->correlation_id == 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "inference request to model"
            " '%s' must specify a non-zero or non-empty correlation ID",
            b->options.model);
    }

    /* running ensemble requests go on */
    if (b->base.closing && (req->flags & INF_FLAG_START)
        && req->whole == NULL)
    {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    return b->options.inputs != NULL
        ? inf_sequence_inputs_check(b->options.inputs, req) : NULL;
}

/* Gives req the next free id; it begins a sequence. */
static void
name(batcher_t *b, inf_request_t *req)
{
    do {
        req->correlation_id = ++b->last_id;
    } while (req->correlation_id == 0 || inf_sequence_find(b, req) != NULL);

    req->flags |= INF_FLAG_START;
}

/* Begins a sequence with its first request. */
static inf_err_t *
begin(batcher_t *b, inf_request_t *req, uint64_t now_ns)
{
    sequence_t *q = NULL;

    if (!(req->flags & INF_FLAG_START)) {
        return inf_rejection_no_start(req, b->options.model);
    }

    inf_err_t *err = inf_sequence_new(b, req, &q);
    if (err != NULL) {
        return err;
    }

    inf_request_move(req, INF_REQUEST_PENDING);
    req->queue_ns = now_ns;

    slot_t *s = inf_slot_take_free(b);
    if (s != NULL) {
        inf_slot_give(b, s, q);
        enqueue(b, s, req);
        return NULL;
    }

    inf_list_push_back(&b->backlog, &q->link);
    b->waiting++;
    wait_on(b, q, req);
    inf_slots_give_way(b);
    return NULL;
}

/* Queues req, PENDING, in the slot of its sequence. */
static void
enqueue(batcher_t *b, slot_t *s, inf_request_t *req)
{
    bool first = inf_list_empty(&s->queue);

    req->sched.queued = (inf_request_queued_t) { .slot = s };
    inf_list_push_back(&s->queue, &req->link);
    s->instance->queued++;
    b->base.queued++;

    inf_slot_speak(b, s);
    if (req->flags & INF_FLAG_END) {
        inf_slot_forget(b, s);
        s->over = true;
    }

    inf_slot_issue(b, s);
    if (first) {
        inf_slot_touch(b, s);
    }
}

/* Queues req, PENDING, in its sequence in the backlog. */
static void
wait_on(batcher_t *b, sequence_t *q, inf_request_t *req)
{
    uint64_t late_ns = late_at(req);

    req->sched.queued = (inf_request_queued_t) { .sequence = q };
    inf_list_push_back(&q->queue, &req->link);
    b->base.queued++;

    if (late_ns != INF_NEVER
        && (!q->timer.queued || late_ns < q->timer.key))
    {
        inf_sequence_timer_set(b, q, late_ns);
    }
    if (req->flags & INF_FLAG_END) {
        inf_sequence_forget(b, q);
        q->over = true;
    }
}

static void
batcher_released(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone)
{
    batcher_t *b = (batcher_t *) p;
    slot_t *s = req->sched.queued.slot;
    instance_t *instance = s->instance;

    s->running--;
    if (--instance->running == 0 && !inf_list_empty(&instance->link)) {
        inf_link_remove(&instance->link);
        /* the last request of a detached instance was released */
        inf_sequence_instance_free(b, instance);
        return;
    }
    if (!inf_list_empty(&instance->link)) {
        return;
    }

    if ((req->flags & INF_FLAG_START) && req->outcome == INF_OUTCOME_REJECTED
        && s->turn == req->sched.queued.turn)
    {
        lose_start(b, s, gone);

    } else if (b->options.iterative && goes_on(req)) {
        inf_slot_forget(b, s);
        s->over = true;
    }

    if (s->running > 0) {
        return;
    }

    bool waited = !inf_list_empty(&s->queue);
    if (s->taken) {
        inf_slot_settle(b, s, now_ns);
    }
    if (waited) {
        inf_slot_touch(b, s);
    }
    inf_sequence_instance_touch_empty(b, instance);
}

/* Ends the slot's sequence, whose START was lost, unless another START is
   queued: its requests must not run on the previous sequence's states. */
static void
lose_start(batcher_t *b, slot_t *s, inf_link_t *gone)
{
    while (!inf_list_empty(&s->queue)) {
        inf_request_t *req = inf_link_entry(s->queue.next, inf_request_t,
            link);
        if (req->flags & INF_FLAG_START) {
            return;
        }
        withdraw(b, req);
        req->sched.queued.gone = INF_GONE_WITH_START;
        inf_list_push_back(gone, &req->link);
    }

    inf_slot_forget(b, s);
    s->over = true;
}

static inf_err_t *
batcher_again(inf_policy_t *p, inf_request_t *req, uint64_t now_ns)
{
    batcher_t *b = (batcher_t *) p;
    slot_t *s = req->sched.queued.slot;

    if (!goes_on(req)) {
        return inf_rejection_no_start(req, b->options.model);
    }

    s->running--;
    s->instance->running--;
    req->flags = 0;
    req->sched.again = true;
    b->base.again++;
    req->queue_ns = now_ns;
    inf_request_move(req, INF_REQUEST_PENDING);
    bool waited = !inf_list_empty(&s->queue);
    enqueue(b, s, req);
    if (waited) {
        inf_slot_touch(b, s);
    }
    return NULL;
}

/* Whether the sequence of req, which was taken, is still known; another
   sequence may have its slot by now, even with the same id. */
static bool
goes_on(const inf_request_t *req)
{
    const slot_t *s = req->sched.queued.slot;

    return s->sequence != NULL && s->turn == req->sched.queued.turn;
}

static bool
batcher_cancel(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone)
{
    if (atomic_load_explicit(&req->state, memory_order_relaxed)
        != INF_REQUEST_PENDING)
    {
        return false;
    }

    return remove_request((batcher_t *) p, req, now_ns, gone);
}

/* Removes req and the requests behind it; the sequence ends with those
   before. */
static bool
remove_request(batcher_t *b, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone)
{
    slot_t *s = req->sched.queued.slot;
    sequence_t *q = s != NULL ? s->sequence : req->sched.queued.sequence;
    inf_link_t *queue = s != NULL ? &s->queue : &q->queue;
    inf_link_t *behind = s != NULL && s->issued == req ? queue->next
        : req->link.next;

    withdraw_behind(b, queue, behind, INF_GONE_WITH_SEQUENCE, gone);
    if (s != NULL && s->issued == req) {
        instance_t *instance = s->instance;
        (void) instance->batcher->ops->cancel(instance->batcher, req, now_ns,
            gone);
        s->issued = NULL;
        inf_slot_lose(b, s, req);
    } else {
        withdraw(b, req);
    }

    if (s == NULL) {
        inf_sequence_forget(b, q);
        q->over = true;
        backlog_timer(b, q);
        if (inf_list_empty(&q->queue)) {
            inf_sequence_leave_backlog(b, q);
            inf_sequence_free(b, q);
        }
        return true;
    }

    inf_slot_forget(b, s);
    s->over = true;
    inf_slot_settle(b, s, now_ns);
    return true;
}

/* Withdraws the requests from that link on. */
static void
withdraw_behind(batcher_t *b, inf_link_t *queue, inf_link_t *from,
    inf_gone_t why, inf_link_t *gone)
{
    while (from != queue) {
        inf_request_t *req = inf_link_entry(from, inf_request_t, link);
        from = from->next;
        withdraw(b, req);
        req->sched.queued.gone = why;
        inf_list_push_back(gone, &req->link);
    }
}

/* Removes req from the queue of its slot or sequence. */
static void
withdraw(batcher_t *b, inf_request_t *req)
{
    inf_link_remove(&req->link);
    if (req->sched.queued.slot != NULL) {
        inf_slot_lose(b, req->sched.queued.slot, req);
    } else {
        b->base.queued--;
    }
    inf_request_move(req, INF_REQUEST_REJECTED);
}

static inf_request_t *
batcher_drop(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;
    inf_request_t *req = NULL;
    inf_link_t none;

    if (!inf_list_empty(&b->backlog)) {
        sequence_t *q = inf_link_entry(b->backlog.prev, sequence_t, link);
        req = inf_link_entry(q->queue.prev, inf_request_t, link);
    }
    for (uint32_t i = 0; req == NULL && i < b->instance_count; i++) {
        instance_t *instance = b->instances[i];
        for (uint32_t k = 0; req == NULL && instance->queued > 0
            && k < b->options.slots; k++)
        {
            const slot_t *s = &instance->slots[k];
            req = !inf_list_empty(&s->queue)
                ? inf_link_entry(s->queue.prev, inf_request_t, link)
                : s->issued;
        }
    }
    if (req == NULL) {
        return NULL;
    }

    inf_link_init(&none);
    (void) remove_request(b, req, 0, &none);    /* it is the last of its
                                                   queue                     */
    return req;
}

void
inf_sequence_batcher_expire(inf_policy_t *p, uint64_t now_ns, inf_link_t *gone)
{
    batcher_t *b = (batcher_t *) p;

    while (p->deadline_ns <= now_ns) {
        sequence_t *q = inf_heap_entry(b->timers.top, sequence_t, timer);
        slot_t *s = q->slot;

        if (s != NULL) {
            inf_slot_forget(b, s);
            inf_slot_offer(b, s);
            continue;
        }

        inf_sequence_forget(b, q);
        withdraw_behind(b, &q->queue, q->queue.next,
            INF_GONE_SEQUENCE_TIMED_OUT, gone);
        inf_sequence_leave_backlog(b, q);
        inf_sequence_free(b, q);
    }
}

/* Sets the backlog timer again after requests have left. */
static void
backlog_timer(batcher_t *b, sequence_t *q)
{
    uint64_t first_ns = INF_NEVER;

    for (const inf_link_t *l = q->queue.next; l != &q->queue; l = l->next) {
        uint64_t at_ns = late_at(inf_link_entry(l, inf_request_t, link));
        first_ns = at_ns < first_ns ? at_ns : first_ns;
    }
    inf_sequence_timer_set(b, q, first_ns);
}

/* The time when req has waited too long in the backlog. */
static uint64_t
late_at(const inf_request_t *req)
{
    return req->timeout_us > 0 ? inf_later(req->queue_ns,
        inf_us_to_ns(req->timeout_us)) : INF_NEVER;
}

static const char *
id_text(const inf_request_t *req, char *room, size_t cap)
{
    if (req->correlation_text != NULL) {
        return req->correlation_text;
    }

    snprintf(room, cap, "%llu", (unsigned long long) req->correlation_id);
    return room;
}
