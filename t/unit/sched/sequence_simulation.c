/*
 * sequence_simulation.c - the sequence batcher under random configurations,
 * traffic, cancels, timeouts, silence, late releases and instances that come
 * and go, with a virtual clock, against a second opinion of every slot.
 *
 *     unit_sched_sequence_simulation                 a short run of every kind
 *     unit_sched_sequence_simulation REQUESTS [SEED] a long one
 *
 * Threads are called as the runner does it: who is told looks, sooner or
 * later; who was not told sleeps.  Built as sequence_cost, every basic block
 * of core/sched that runs is counted.
 */

#include "sched/counted.h"
#include "sched/sequence_opinion.h"

#include "core/include/datatype.h"
#include "core/sched/sequence_inputs.h"

static inf_model_t *models[2];          /* without states, with              */
static inf_sequence_inputs_t *inputs[2];
static inf_instance_t instance;
static inf_instance_spec_t spec = { .name = (char *) "m_0" };

/* ---- who is told --------------------------------------------------------- */

static void
hear(void)
{
    for (;;) {
        void *owner;
        core(owner = sim.policy->ops->touched(sim.policy));
        place_t *p = owner;
        if (p == NULL) {
            return;
        }
        check(p >= sim.places && p < sim.places + sim.place_count
            && p->attached, "nobody is told");
        sim.told++;
        check(opinion(p).next != INF_NEXT_NOTHING || may_go(p),
            "instance %u is told of nothing", p->number);
        p->told = true;
        if (inf_list_empty(&p->lazy)) {
            inf_list_push_back(&sim.lazy, &p->lazy);
        }
    }
}

/* ---- requests ------------------------------------------------------------ */

static void
item_free(item_t *item)
{
    sequence_t *q = item->sequence;

    item->stage = FREE;
    item->sequence = NULL;
    spare[spare_count++] = item;
    if (q != NULL) {
        q->items--;
        sequence_unref(q);
    }
}

static void
item_gone(item_t *item, inf_request_state_t state)
{
    check(item->req.state == state, "state %d", (int) item->req.state);
    inf_request_move(&item->req, INF_REQUEST_RELEASED);
    item_free(item);
}

static void
push_as(client_t *client, uint32_t flags)
{
    item_t *item = spare[--spare_count];
    inf_request_t *r = &item->req;
    sequence_t *q = client != NULL ? client->sequence : NULL;
    bool start = client == NULL || (flags & INF_REQUEST_SEQUENCE_START) != 0;
    inf_err_t *err;

    inf_request_reset(r);
    item->anonymous = client == NULL;
    item->again = false;
    item->expired = false;
    item->slot = NULL;
    item->size = 1 + (int64_t) (sim.compares && one_in(4) ? chance(3) : 0);
    r->batch_size = sim.options.limit > 0 ? (uint32_t) chance(2) : 0;
    r->correlation_id = client != NULL && client->text[0] == '\0'
        ? client->id : 0;
    r->correlation_text = client != NULL && client->text[0] != '\0'
        ? client->text : NULL;
    r->flags = flags;
    r->whole = one_in(8) ? r : NULL;
    r->timeout_us = one_in(2) ? 0 : 1 + chance(2 + sim.run_ns / 500);
    if (sim.compares) {
        const int64_t shape[] = { 1, item->size };
        assert_non_null(inf_request_add_input(r, "IN", 2, INF_TYPE_INT32,
            shape, 2));
    }
    sim.recent[sim.pushed++ % RECENT] = item;
    core(err = sim.policy->ops->push(sim.policy, r, sim.now));
    if (client == NULL) {
        check(r->correlation_id == ++sim.last_id, "its id is %llu",
            (unsigned long long) r->correlation_id);
        check((r->flags & INF_REQUEST_SEQUENCE_START) != 0, "no START");
    }
    bool bad = (q == NULL && !start)
        || (start && sim.policy->closing && r->whole == NULL);
    check((err != NULL) == bad, "%s", err != NULL ? inf_err_msg(err) : "");
    if (bad) {
        check(inf_err_code(err) == (start ? INF_ERR_UNAVAILABLE
            : INF_ERR_INVALID_ARG), "%s", inf_err_msg(err));
        check(r->state == INF_REQUEST_IDLE, "it is taken");
        inf_err_free(err);
        sim.rejected++;
        item_free(item);
        hear();
        return;
    }
    if (q == NULL) {
        q = sequence_new(client);
        slot_t *s = vacancy();
        if (s != NULL) {
            give(s, q);
        } else {
            inf_list_push_back(&sim.backlog, &q->backlog);
            sim.waiting++;
        }
    }
    enqueue(item, q);
    give_way();
    hear();
}

static void
push_one(void)
{
    client_t *c = &clients[chance(sim.clients)];
    uint32_t flags = 0;

    if (spare_count == 0) {
        return;
    }
    if (sim.options.iterative && one_in(2)) {
        push_as(NULL, one_in(8) ? INF_REQUEST_SEQUENCE_START : 0);
        return;
    }
    if (c->sequence == NULL) {
        flags = one_in(30) ? 0 : INF_REQUEST_SEQUENCE_START;
        c->left = (uint32_t) chance(2 * sim.length);
    } else if (one_in(50)) {
        flags = INF_REQUEST_SEQUENCE_START;
    }
    if (c->left == 0) {
        flags |= INF_REQUEST_SEQUENCE_END;
    }
    c->left -= c->left > 0;
    push_as(c, flags);
}

static void
cancel(item_t *item)
{
    inf_link_t gone, *link;
    bool was;

    if (item == NULL || item->stage == FREE) {
        return;
    }

    sequence_t *q = item->sequence;
    bool queued = item->stage == QUEUED;
    inf_link_init(&gone);
    core(was = sim.policy->ops->cancel(sim.policy, &item->req, sim.now,
        &gone));
    check(was == queued, "it is%s queued", queued ? "" : " not");
    if (!was) {
        check(inf_list_empty(&gone), "something goes with nothing");
        return;
    }
    q->items++;                             /* it stays until the end        */
    while (item->link.next != &q->queue) {
        item_t *next = inf_link_entry(item->link.next, item_t, link);
        link = inf_list_pop_front(&gone);
        check(link != NULL && item_of(link) == next, "it stays behind");
        check(next->req.sched.queued.gone == INF_GONE_WITH_SEQUENCE, "why");
        dequeue(next);
        item_gone(next, INF_REQUEST_REJECTED);
        sim.cancelled++;
    }
    check(inf_list_empty(&gone), "too many go");
    dequeue(item);
    item_gone(item, INF_REQUEST_REJECTED);
    sim.cancelled++;
    forget(q);
    q->over = true;
    timer_set(q, UINT64_MAX);
    if (q->slot != NULL) {
        settle(q->slot);
    } else if (inf_list_empty(&q->queue)) {
        inf_link_remove(&q->backlog);
        sim.waiting--;
        q->here = false;
    } else {
        uint64_t at = UINT64_MAX;
        for (inf_link_t *l = q->queue.next; l != &q->queue; l = l->next) {
            at = least(at, inf_link_entry(l, item_t, link)->deadline);
        }
        timer_set(q, at);
    }
    q->items--;
    sequence_unref(q);
    hear();
}

static void
expire(void)
{
    inf_link_t gone, *link;
    uint32_t count = 0;

    inf_link_init(&gone);
    core(sim.policy->ops->expire(sim.policy, sim.now, &gone));
    while (sim.timers.top != NULL && sim.timers.top->key <= sim.now) {
        sequence_t *q = inf_heap_entry(sim.timers.top, sequence_t, timer);
        timer_set(q, UINT64_MAX);
        forget(q);
        sim.reaped++;
        if (q->slot != NULL) {
            check(q->slot->running == 0 && inf_list_empty(&q->queue),
                "it is not idle");
            vacate(q->slot);
            continue;
        }
        for (inf_link_t *l = q->queue.next; l != &q->queue; l = l->next) {
            inf_link_entry(l, item_t, link)->expired = true;
            count++;
        }
        inf_link_remove(&q->backlog);
        sim.waiting--;
        q->here = false;
    }
    for (; (link = inf_list_pop_front(&gone)) != NULL; count--) {
        item_t *item = item_of(link);
        check(item->expired, "its time is not over");
        check(item->req.sched.queued.gone == INF_GONE_SEQUENCE_TIMED_OUT,
            "why");
        dequeue(item);
        item_gone(item, INF_REQUEST_REJECTED);
        sim.timed_out++;
    }
    check(count == 0, "%u wait beyond their time", count);
    hear();
}

/* ---- instances ----------------------------------------------------------- */

static void
open_place(void)
{
    inf_err_t *err;

    if (sim.place_count == PLACES) {
        return;
    }
    place_t *p = &sim.places[sim.place_count];
    memset(p, 0, sizeof(*p));
    p->number = sim.place_count++;
    p->attached = true;
    inf_link_init(&p->issued);
    inf_link_init(&p->lazy);
    inf_link_init(&p->changed);
    for (uint32_t i = 0; i < sim.options.slots; i++) {
        p->slots[i] = (slot_t) { .place = p, .number = i };
    }
    core(err = sim.policy->ops->attach(sim.policy, p->number, &instance,
        p));
    assert_ok(err);
    hear();
    if (one_in(2)) {                        /* between attach and open      */
        push_one();
    }
    core(sim.policy->ops->open(sim.policy, p->number));
    p->open = true;
    sim.came++;
    sim.present++;
    for (uint32_t i = 0; i < sim.options.slots; i++) {
        vacate(&p->slots[i]);
    }
    hear();
}

static void
retire_place(place_t *p)
{
    if (!p->attached || p->retired || (sim.present == 1 && !one_in(8))) {
        return;
    }
    core(sim.policy->ops->retire(sim.policy, p->number));
    p->retired = true;
    sim.present--;
    dirty(p);
    for (uint32_t i = 0; i < sim.options.slots; i++) {
        uint64_t *w = &sim.vacant[i][p->number / 64];
        uint64_t bit = UINT64_C(1) << p->number % 64;
        sim.vacancies -= (*w & bit) != 0;
        *w &= ~bit;
    }
    hear();
}

static void
leave(place_t *p)
{
    p->attached = false;
    sim.went++;
    inf_heap_remove(&sim.watches, &p->watch);
    inf_link_remove(&p->changed);
    core(sim.policy->ops->detach(sim.policy, p->number));
    hear();
}

static void
take(place_t *p, item_t *item)
{
    sequence_t *q = item->sequence;
    slot_t *s = q->slot;

    check(item->req.state == INF_REQUEST_PENDING, "state");
    check(s != NULL && s->place == p, "it belongs to another instance");
    check(head_of(q) == item, "it is not its turn");
    check(item->order > q->ran, "it is late");
    check(!sim.options.oldest || s->running == 0, "two of one sequence run");
    if (s->proof == NULL) {
        for (uint32_t i = 0; i < sim.options.slots; i++) {
            check(p->slots[i].proof != (void *) item->req.sched.queued.slot,
                "two slots are one");
        }
        s->proof = item->req.sched.queued.slot;
    }
    check(s->proof == (void *) item->req.sched.queued.slot,
        "it changed its slot");
    dequeue(item);
    q->ran = item->order;
    item->stage = RUNNING;
    item->slot = s;
    s->running++;
    p->running++;
    sim.running++;
    inf_request_move(&item->req, INF_REQUEST_EXECUTING);
}

static int32_t
control(const inf_request_t *r, const char *name)
{
    const inf_input_t *in = inf_request_find_input(r, name);

    check(in != NULL && in->byte_size == sizeof(int32_t), "no %s", name);
    return *(const int32_t *) in->buffers[0].base;
}

/* Without a lock: what is taken gets its controls, what is between it rows. */
static void
add_controls(inf_payload_t *got)
{
    inf_link_t failed, *next;
    uint32_t row = 0, count = got->count;
    inf_err_t *err;

    inf_link_init(&failed);
    core(err = sim.policy->ops->add_controls(sim.policy, got, &failed));
    check(err == NULL && inf_list_empty(&failed), "it can't be dressed");
    check(got->count == (sim.options.oldest || sim.options.inputs == NULL
        ? count : got->slots), "%u rows", got->count);
    if (sim.options.inputs == NULL) {
        return;
    }
    for (inf_link_t *l = got->requests.next; l != &got->requests; l = next) {
        inf_request_t *r = inf_link_entry(l, inf_request_t, link);
        next = l->next;
        check(r->state == INF_REQUEST_EXECUTING, "state");
        check(control(r, "READY") == !r->padding, "READY");
        check(control(r, "START") == (!r->padding
            && (r->flags & INF_REQUEST_SEQUENCE_START)), "START");
        check(r->padding || sim.options.oldest
            || item_of(l)->slot->number == row, "it is not row %u", row);
        if (r->padding) {
            inf_link_remove(l);
            inf_request_release(r, 1);
            got->count--;
        }
        row++;
    }
    check(got->count == count, "%u requests", got->count);
}

static void
check_direct(const place_t *p, const inf_payload_t *got, const opinion_t *o)
{
    const item_t *first = item_of(got->requests.next);
    uint32_t count = 0;
    uint64_t oldest = UINT64_MAX;
    inf_link_t *l = got->requests.next;

    check(got->slots == o->slots, "%u rows, not %u", got->slots, o->slots);
    for (uint32_t i = 0; i < o->slots; i++) {
        const item_t *head = head_of(p->slots[i].sequence);
        if (!can_run(&p->slots[i])
            || (sim.compares && head->size != first->size))
        {
            continue;
        }
        check(l != &got->requests && item_of(l) == head, "slot %u", i);
        oldest = least(oldest, head->arrived);
        l = l->next;
        count++;
    }
    check(oldest == o->oldest, "others wait longer");
    check(count == got->count, "%u requests, not %u", got->count, count);
}

static void
run_payload(place_t *p, inf_payload_t *got, const opinion_t *o)
{
    item_t *items[SLOTS * 4];
    inf_link_t *link;
    uint32_t n = 0;
    uint64_t end = sim.now + 1 + chance(sim.run_ns);

    check(got->count > 0 && got->count <= sim.limit, "%u rows", got->count);
    if (!sim.options.oldest) {
        check_direct(p, got, o);
    } else {
        check(got->slots == 0, "%u rows", got->slots);
        check(got->count == o->count, "%u rows, not %u", got->count,
            o->count);
    }
    for (link = got->requests.next; link != &got->requests;
        link = link->next)
    {
        item_t *item = item_of(link);
        check(!sim.options.oldest
            || p->issued.next == &item->issued, "an older one waits");
        items[n++] = item;
        take(p, item);
    }
    check(n == got->count, "count");
    add_controls(got);
    while (inf_list_pop_front(&got->requests) != NULL) {
        continue;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = one_in(2) ? end : one_in(2) ? sim.now + 1
            + chance(end - sim.now) : end + chance(sim.late_ns);
        settle(items[i]->slot);
        inf_heap_push(&sim.releases, &items[i]->release, at);
    }
    sim.payloads++;
    p->runs = true;
    inf_heap_push(&sim.finishes, &p->finish, end);
}

/* As an instance's thread does between two payloads. */
static void
look(place_t *p)
{
    inf_payload_t payload;
    inf_link_t gone;
    uint64_t until = 0, until_ready = 0;
    inf_next_t next;

    inf_payload_init(&payload);
    inf_link_init(&gone);
    p->told = false;
    inf_link_remove(&p->lazy);
    inf_heap_remove(&sim.watches, &p->watch);
    check(sim.policy->ops->occupied(sim.policy, p->number)
        == (p->taken > 0 || p->queued > 0 || p->running > 0), "occupied");
    if (may_go(p)) {
        leave(p);
        return;
    }

    opinion_t o = opinion(p);
    inf_next_t ready = sim.policy->ops->ready(sim.policy, p->number,
        sim.now, &until_ready);
    core(next = sim.policy->ops->next(sim.policy, p->number, sim.now,
        &payload, &gone, &until));
    check(inf_list_empty(&gone), "its time was not over");
    check(next == o.next, "it does %d, not %d", (int) next, (int) o.next);
    check(next == ready, "ready says %d, next %d", (int) ready, (int) next);
    if (next == INF_NEXT_PAYLOAD) {
        run_payload(p, &payload, &o);
    } else if (next == INF_NEXT_WAIT) {
        check(until == o.until && until == until_ready, "until %llu, not"
            " %llu", (unsigned long long) until,
            (unsigned long long) o.until);
        inf_heap_push(&sim.watches, &p->watch, until);
    }
    hear();
}

/* Threads that were notified and sleep poll, in any order; some wake late. */
static void
wake(bool all)
{
    inf_link_t late, *link;

    inf_link_init(&late);
    while ((link = inf_list_pop_front(&sim.lazy)) != NULL) {
        place_t *p = inf_link_entry(link, place_t, lazy);
        if (!p->attached || p->runs) {
            p->told = false;
        } else if (!all && one_in(3)) {
            inf_list_push_back(&late, link);
        } else {
            look(p);
        }
    }
    while ((link = inf_list_pop_front(&late)) != NULL) {
        inf_list_push_back(&sim.lazy, link);
    }
}

static bool
again(item_t *item)
{
    slot_t *s = item->slot;
    sequence_t *q = item->sequence;
    bool lives = q->known && s->place->attached && s->sequence == q;
    inf_err_t *err;

    core(err = sim.policy->ops->again(sim.policy, &item->req, sim.now));
    check((err == NULL) == lives, "it%s live", lives ? " does" : "s sequence"
        " does not");
    if (err != NULL) {
        check(strstr(inf_err_msg(err), "must specify the START flag")
            != NULL, "%s", inf_err_msg(err));
        inf_err_free(err);
        return false;
    }
    check(item->req.state == INF_REQUEST_PENDING && item->req.flags == 0,
        "flags %u", item->req.flags);
    s->running--;
    s->place->running--;
    sim.running--;
    q->items--;                             /* enqueue counts it             */
    item->again = true;
    sim.again++;
    enqueue(item, q);
    sim.steps_again++;
    hear();
    return true;
}

static void
release(item_t *item)
{
    slot_t *s = item->slot;
    place_t *p = s->place;
    sequence_t *q = item->sequence;

    check(item->stage == RUNNING, "it is answered twice");
    if (sim.options.iterative && !one_in(3) && again(item)) {
        return;
    }
    inf_link_t gone;
    inf_link_init(&gone);
    core(sim.policy->ops->released(sim.policy, &item->req, sim.now, &gone));
    check(inf_list_empty(&gone), "a release takes others along");
    s->running--;
    p->running--;
    sim.running--;
    if (p->attached) {
        if (sim.options.iterative && q->known && s->sequence == q) {
            forget(q);
            q->over = true;
        }
        if (s->running == 0) {
            settle(s);
        }
        dirty(p);
    }
    item_gone(item, INF_REQUEST_EXECUTING);
    sim.executed++;
    hear();
}

/* ---- rounds -------------------------------------------------------------- */

static uint64_t
key_of(const inf_heap_t *h)
{
    return h->top != NULL ? h->top->key : UINT64_MAX;
}

/* Nobody sleeps over work, nothing is counted wrong. */
static void
check_rest(void)
{
    inf_sequence_counts_t c;
    inf_link_t *link;

    inf_sequence_batcher_count(sim.policy, &c);
    check(sim.policy->queued == sim.queued, "%u queued, not %u",
        sim.policy->queued, sim.queued);
    check(sim.policy->again == sim.again, "%u again, not %u",
        sim.policy->again, sim.again);
    check(sim.policy->live == sim.known && c.sequences == sim.known,
        "%u live, not %u", sim.policy->live, sim.known);
    check(c.slots == sim.taken, "%u taken, not %u", c.slots, sim.taken);
    check(c.free == sim.vacancies, "%u free, not %u", c.free,
        sim.vacancies);
    check(c.backlog == sim.waiting, "%u wait, not %u", c.backlog,
        sim.waiting);
    check(sim.vacancies == 0 || sim.waiting == 0, "one waits, %u are free",
        sim.vacancies);
    check(sim.policy->deadline_ns == key_of(&sim.timers), "deadline %llu,"
        " not %llu", (unsigned long long) sim.policy->deadline_ns,
        (unsigned long long) key_of(&sim.timers));
    uint32_t all = one_in(sim.crowded ? 20000 : 50) ? sim.place_count : 0;
    for (uint32_t i = 0; i < all; i++) {
        dirty(&sim.places[i]);              /* now and then                  */
    }
    while ((link = inf_list_pop_front(&sim.changed)) != NULL) {
        place_t *p = inf_link_entry(link, place_t, changed);
        uint64_t until = 0;
        if (!p->attached || p->runs || p->told
            || (p->watch.queued && p->watch.key <= sim.now))
        {
            continue;                       /* it looks anyway               */
        }
        opinion_t o = opinion(p);
        check(o.next != INF_NEXT_PAYLOAD, "instance %u sleeps over work",
            p->number);
        check(sim.policy->ops->ready(sim.policy, p->number, sim.now,
            &until) == o.next && (o.next != INF_NEXT_WAIT
            || until == o.until), "ready does not say %d", (int) o.next);
        check(o.next != INF_NEXT_WAIT || (p->watch.queued
            && p->watch.key <= o.until), "nobody watches the delay");
        check(!may_go(p), "an instance that may go was not told");
    }
}

/* The runner calls them. */
static void
check_all(void)
{
    for (uint32_t i = 0; i < sim.place_count; i++) {
        if (sim.places[i].attached && !sim.places[i].runs) {
            look(&sim.places[i]);
        }
    }
}

static void
arrive(uint64_t *arrival, uint64_t requests)
{
    for (uint64_t n = one_in(4) ? chance(12) : 0; ; n--) {
        push_one();
        if (one_in(2)) {
            wake(false);
        }
        if (n == 0) {
            break;
        }
    }
    if (sim.cancel_every > 0 && one_in(sim.cancel_every)) {
        for (int n = 0; n < 8; n++) {
            cancel(sim.recent[(sim.pushed - 1 - chance(one_in(2) ? 16
                : least(sim.pushed, RECENT))) % RECENT]);
        }
    }
    if (sim.change_every > 0 && one_in(sim.change_every)) {
        if (one_in(2) && sim.present < INSTANCES) {
            open_place();
        } else {
            retire_place(&sim.places[chance(sim.place_count)]);
        }
    }
    if (sim.closes && sim.pushed > requests - requests / 4) {
        sim.policy->closing = true;
        sim.closes = false;
        check_all();
    }
    if (sim.leaves && sim.pushed > requests / 2) {
        core(sim.policy->ops->leave(sim.policy, true));
        sim.leaves = false;
        sim.leaving = true;
        give_way();
        hear();
        check_all();
    }
    *arrival = sim.pushed >= requests ? UINT64_MAX
        : sim.now + chance(sim.gap);
}

/*
 * Requests arrive at even ns, releases come at odd ones and each at its own:
 * no two sequences are idle since the same tick, none is when another's
 * timeout in the backlog comes.
 */
static void
step(uint64_t *arrival, uint64_t requests)
{
    uint64_t at = least(least(*arrival, key_of(&sim.finishes)),
        least(key_of(&sim.watches), key_of(&sim.releases)));
    uint64_t deadline = sim.policy->deadline_ns;
    bool releases = key_of(&sim.releases) <= at;

    if (at == UINT64_MAX && !inf_list_empty(&sim.lazy)) {
        wake(true);
        check_rest();
        return;
    }
    check(at != UINT64_MAX || deadline != INF_NEVER,
        "the world stands still: %u queued, %u run, %u live, %u wait",
        sim.queued, sim.running, sim.known, sim.waiting);
    at = at <= sim.now ? sim.now + 1 : at;
    at += at != UINT64_MAX && (at & 1) != releases;
    if (deadline <= at) {
        check(deadline >= sim.now, "a deadline is missed");
        sim.now = deadline;
        expire();
        wake(false);
        check_rest();
        return;
    }

    sim.now = at;
    if (releases) {
        inf_heap_node_t *node = sim.releases.top;
        inf_heap_remove(&sim.releases, node);
        release(inf_heap_entry(node, item_t, release));
    } else if (key_of(&sim.watches) <= at) {
        look(inf_heap_entry(sim.watches.top, place_t, watch));
    } else if (key_of(&sim.finishes) <= at) {
        place_t *p = inf_heap_entry(sim.finishes.top, place_t, finish);
        inf_heap_remove(&sim.finishes, &p->finish);
        p->runs = false;
        look(p);
    } else {
        arrive(arrival, requests);
    }
    wake(one_in(2));
    check_rest();
}

static void
random_configuration(uint32_t instances)
{
    inf_sequence_batcher_options_t *o = &sim.options;

    sim.crowded = instances > 8;
    o->model = "M";
    o->oldest = one_in(2);
    o->limit = one_in(8) ? 0 : 1 + (uint32_t) chance(SLOTS - 4);
    sim.limit = o->limit > 0 ? o->limit : 1;
    o->slots = o->oldest ? 1 + (uint32_t) chance(SLOTS) : sim.limit;
    o->delay_us = one_in(2) ? 0 : 1 + chance(100);
    o->utilization = o->oldest || one_in(3) ? 0
        : (double) (1 + chance(4)) / 4;
    o->preferred = sim.preferred;
    o->preferred_count = o->oldest && o->limit > 0 ? (uint32_t) chance(3) : 0;
    sim.most = o->preferred_count == 0 ? sim.limit : 0;
    for (uint32_t i = 0; i < o->preferred_count; i++) {
        sim.preferred[i] = 1 + (uint32_t) chance(sim.limit);
        sim.most = sim.preferred[i] > sim.most ? sim.preferred[i] : sim.most;
    }
    o->iterative = one_in(4);
    sim.compares = o->limit > 0 && one_in(3);
    o->tensors = sim.compares ? variable : NULL;
    o->inputs = one_in(2) ? NULL : inputs[chance(2)];
    sim.states = o->inputs == inputs[1];
    sim.run_ns = 1 + chance(100000);
    sim.late_ns = 1 + chance(one_in(2) ? 1000 : 200000);
    sim.gap = 1 + chance(one_in(2) ? 5000 : 50000);
    sim.length = 1 + chance(one_in(2) ? 3 : 12);
    sim.clients = 1 + (uint32_t) chance(3 * instances * o->slots);
    sim.cancel_every = one_in(2) ? 0 : 4 + chance(40);
    sim.change_every = one_in(2) ? 0 : 2 + chance(30);
    sim.drops = one_in(4);
    sim.closes = one_in(4);
    sim.leaves = one_in(2) && !sim.crowded;
    if (sim.crowded) {                      /* there is work for half        */
        o->limit = o->slots = sim.limit = sim.most = SLOTS - 4;
        o->preferred_count = 0;
        o->delay_us /= 10;
        sim.length = 2;
        sim.gap = 4000;
        sim.run_ns = sim.gap * instances;
        sim.late_ns = sim.run_ns / 10 + 1;
        sim.clients = (uint32_t) least(CLIENTS, instances * 9u);
        sim.change_every = 50;
    }
    if (sim.clients > CLIENTS) {
        sim.clients = CLIENTS;
    }
    o->idle_us = 1 + chance(2 * (1 + sim.gap * sim.clients / 1000));
    if (sim.crowded) {
        o->idle_us *= 4;
    }
}

static void
open_world(uint64_t seed, uint32_t instances)
{
    place_t *places = sim.places;

    memset(&sim, 0, sizeof(sim));
    sim.places = places;
    sim.seed = chance_state = seed;
    sim.now = 1000;
    spare_sequences = NULL;
    sequence_count = 0;
    inf_link_init(&sim.backlog);
    inf_link_init(&sim.lazy);
    inf_link_init(&sim.changed);
    random_configuration(instances);
    for (uint32_t i = 0; i < sim.clients; i++) {
        client_t *c = &clients[i];
        *c = (client_t) { .id = 1000000 + i / 2 };
        if (i % 2 != 0) {                   /* the same, but as a text       */
            snprintf(c->text, sizeof(c->text), "%s%llu", i % 8 == 7
                ? "a rather long name that does not fit" : "",
                (unsigned long long) c->id);
        }
    }
    assert_ok(inf_sequence_batcher_new(&sim.options, &sim.policy));
    if (one_in(4)) {
        push_one();                         /* before there is an instance   */
    }
    for (uint32_t i = 0; i < instances; i++) {
        open_place();
    }
    wake(true);
}

/* As the runner does it that will not wait. */
static void
drop_all(void)
{
    inf_request_t *req;
    uint32_t count = 0, queued = sim.queued;

    sim.policy->closing = true;
    while ((req = sim.policy->ops->drop(sim.policy)) != NULL) {
        item_t *item = (item_t *) (void *) req;
        check(item->stage == QUEUED, "it is not queued");
        item->stage = FREE;
        check(req->state == INF_REQUEST_REJECTED, "state");
        count++;
        sim.dropped++;
        while (sim.policy->ops->touched(sim.policy) != NULL) {
            continue;
        }
    }
    check(count == queued, "%u dropped, not %u", count, queued);
    check(sim.policy->queued == 0 && sim.policy->again == 0,
        "some are queued still");
    for (uint32_t i = 0; i < sim.place_count; i++) {
        if (sim.places[i].attached) {
            sim.policy->ops->detach(sim.policy, i);
        }
    }
    while (sim.releases.top != NULL) {
        item_t *item = inf_heap_entry(sim.releases.top, item_t, release);
        inf_link_t gone;
        inf_link_init(&gone);
        inf_heap_remove(&sim.releases, &item->release);
        sim.policy->ops->released(sim.policy, &item->req, sim.now, &gone);
        item->stage = FREE;
        sim.executed++;
    }
    check(sim.policy->live == 0, "%u are live", sim.policy->live);
}

/* Requests and sequences are new, wherever a round has left them. */
static void
reset_items(void)
{
    spare_count = 0;
    for (uint32_t i = 0; i < POOL; i++) {
        item_t *item = &pool[i];
        item->stage = FREE;
        item->sequence = NULL;
        item->release.queued = false;
        inf_link_init(&item->link);
        inf_link_init(&item->issued);
        spare[spare_count++] = item;
    }
}

static void
run_round(uint64_t seed, uint32_t instances, uint64_t requests)
{
    open_world(seed, instances);
    uint64_t arrival = sim.now;

    while (arrival != UINT64_MAX || (!sim.drops && (sim.queued > 0
        || sim.running > 0 || sim.known > 0 || sim.finishes.top != NULL)))
    {
        if (arrival == UINT64_MAX && sim.present == 0) {
            open_place();
            wake(true);
        }
        step(&arrival, requests);
    }

    if (sim.drops) {
        drop_all();
        reset_items();
    } else {
        wake(true);
        check(sim.taken == 0 && sim.waiting == 0, "a slot is lost");
        check(spare_count == POOL, "%u requests are lost",
            POOL - spare_count);
        for (uint32_t i = 0; i < sim.place_count; i++) {
            if (sim.places[i].attached) {
                sim.policy->ops->detach(sim.policy, i);
            }
        }
    }
    check(sim.pushed == sim.rejected + sim.executed + sim.cancelled
        + sim.timed_out + sim.dropped, "requests are lost");
    sim.policy->ops->free(sim.policy);
}

typedef struct {
    uint64_t pushed, rejected, executed, cancelled, timed_out, dropped;
    uint64_t again, payloads, sequences, reaped, came, went, told;
    uint64_t gave_way, steps;
} totals_t;

static totals_t totals;

static void
run(uint64_t seed, uint32_t instances, uint64_t requests, uint64_t round)
{
    uint64_t end = totals.pushed + requests;

    while (totals.pushed < end) {
        steps = 0;
        run_round(seed, instances > 0 ? instances : 1 + (uint32_t) (seed % 5),
            round);
        seed++;
        totals.pushed += sim.pushed;
        totals.rejected += sim.rejected;
        totals.executed += sim.executed;
        totals.cancelled += sim.cancelled;
        totals.timed_out += sim.timed_out;
        totals.dropped += sim.dropped;
        totals.again += sim.steps_again;
        totals.payloads += sim.payloads;
        totals.sequences += sim.sequences;
        totals.reaped += sim.reaped;
        totals.came += sim.came;
        totals.went += sim.went;
        totals.told += sim.told;
        totals.gave_way += sim.gave_way;
        totals.steps += steps;
    }
}

static int
setup(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size:"
            " 16 input { name: 'IN' data_type: TYPE_INT32 dims: -1 } output {"
            " name: 'OUT' data_type: TYPE_INT32 dims: -1 } sequence_batching"
            " { control_input [ { name: 'READY' control { kind:"
            " CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }, { name:"
            " 'START' control { kind: CONTROL_SEQUENCE_START"
            " int32_false_true: [ 0, 1 ] } } ] %s }", i == 0 ? ""
            : "state { input_name: 'S' output_name: 'T' data_type: TYPE_INT32"
              " dims: 2 }");
        models[i] = inf_model_new("m", 1, "/models/m");
        models[i]->built = config_parse_normal(text);
        assert_ok(inf_config_tensors_new(models[i]->built,
            &models[i]->tensors));
        assert_ok(inf_sequence_inputs_new(NULL, "m", models[i], &inputs[i]));
    }
    variable = models[0]->tensors;
    instance = (inf_instance_t) { .model = models[0], .spec = &spec };

    pool = calloc(POOL, sizeof(*pool));
    spare = calloc(POOL, sizeof(*spare));
    clients = calloc(CLIENTS, sizeof(*clients));
    sequences = calloc(SEQUENCES, sizeof(*sequences));
    sim.places = calloc(PLACES, sizeof(*sim.places));
    assert_true(pool != NULL && spare != NULL && clients != NULL
        && sequences != NULL && sim.places != NULL);
    for (int i = 0; i < POOL; i++) {
        inf_request_init(&pool[i].req);
    }
    reset_items();
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    for (int i = 0; i < POOL; i++) {
        inf_request_fini(&pool[i].req);
    }
    for (int i = 0; i < 2; i++) {
        inf_sequence_inputs_free(inputs[i]);
        inf_model_free(models[i]);
    }
    free(pool);
    free(spare);
    free(clients);
    free(sequences);
    free(sim.places);
    return 0;
}

static void
every_sequence_runs_in_order_in_one_slot(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run(1, 0, 200000, ROUND);
    assert_true(totals.executed > totals.pushed / 4);
    assert_true(totals.cancelled > 1000);
    assert_true(totals.timed_out > 1000);
    assert_true(totals.rejected > 1000);
    assert_true(totals.dropped > 1000);
    assert_true(totals.reaped > 1000);
    assert_true(totals.again > 1000);
    assert_true(totals.gave_way > 300);
    assert_true(totals.payloads < totals.executed);
    assert_true(totals.came > 1000 && totals.went > 500);
}

static void
a_thousand_instances_keep_their_sequences(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run(2000000, INSTANCES, 60000, 30000);
    assert_true(totals.executed > totals.pushed / 4);
}

static void
print_totals(uint32_t instances)
{
    printf("%4u instances: %llu requests of %llu sequences, %llu payloads,"
        " %llu more steps, %llu cancelled, %llu timed out, %llu reaped,"
        " %llu rejected, %llu told\n", instances,
        (unsigned long long) totals.pushed,
        (unsigned long long) totals.sequences,
        (unsigned long long) totals.payloads,
        (unsigned long long) totals.again,
        (unsigned long long) totals.cancelled,
        (unsigned long long) totals.timed_out,
        (unsigned long long) totals.reaped,
        (unsigned long long) totals.rejected,
        (unsigned long long) totals.told);
}

static void
run_long(uint64_t requests, uint64_t seed)
{
    for (uint32_t instances = 1; instances <= INSTANCES; instances *= 10) {
        totals = (totals_t) { 0 };
        if (instances == 1) {
            run(seed, 0, requests / 4, ROUND);
        } else if (instances < INSTANCES) {
            run(seed, instances, requests / 8, 20000);
        } else {
            run(seed, instances, requests / 2, 200000);
        }
        print_totals(instances);
    }
}

#ifdef SIM_COSTS
/* The cost of a request of so many that are queued in one slot, or each in a
   sequence of its own in the backlog. */
static double
cost_of_depth(uint32_t depth, bool backlog)
{
    inf_policy_t *p = NULL;
    uint64_t until;
    inf_link_t gone, *link;
    int owner = 0;
    inf_err_t *err = inf_sequence_batcher_new(
        &(inf_sequence_batcher_options_t) { .model = "M", .slots = 1,
            .limit = 1, .idle_us = 1000000 }, &p);

    assert_ok(err);
    assert_ok(p->ops->attach(p, 0, NULL, &owner));
    p->ops->open(p, 0);
    inf_link_init(&gone);
    steps = 0;
    for (uint32_t i = 0; i < depth; i++) {
        inf_request_t *r = &pool[i].req;
        inf_request_reset(r);
        r->correlation_id = backlog ? 1 + i : 1;
        r->timeout_us = 1000000 - i % 1000;
        r->flags = (backlog || i == 0 ? INF_REQUEST_SEQUENCE_START : 0u)
            | (backlog ? INF_REQUEST_SEQUENCE_END : 0u);
        core(err = p->ops->push(p, r, 1 + i));
        assert_ok(err);
    }
    for (uint32_t i = 0; i < depth; i++) {
        inf_payload_t payload;
        inf_payload_init(&payload);
        core(p->ops->next(p, 0, depth + i, &payload, &gone, &until));
        link = inf_list_pop_front(&payload.requests);
        assert_ptr_equal(link, &pool[i].req.link);
        inf_request_move(&pool[i].req, INF_REQUEST_EXECUTING);
        core(p->ops->released(p, &pool[i].req, depth + i, &gone));
        inf_request_move(&pool[i].req, INF_REQUEST_RELEASED);
    }
    p->ops->free(p);
    return (double) steps / depth;
}

static bool
depths_are_flat(void)
{
    for (int backlog = 0; backlog <= 1; backlog++) {
        double few = cost_of_depth(32, backlog);
        double many = cost_of_depth(POOL, backlog);
        printf("%s: %.0f basic blocks a request of %u, %.0f of %u\n",
            backlog ? "in the backlog" : "in a slot", few, 32, many, POOL);
        if (!flat(few, many)) {
            return false;
        }
    }
    return true;
}

/* The counts are the same on every machine. */
static bool
run_costs(void)
{
    double few = 0;

    if (!depths_are_flat()) {
        return false;
    }
    reset_items();
    for (uint32_t instances = 10; instances <= INSTANCES; instances *= 10) {
        totals = (totals_t) { 0 };
        run(1, instances, 400000, 50000);
        double cost = (double) totals.steps / (double) totals.pushed;
        few = instances == 10 ? cost : few;
        printf("%4u instances: %.0f basic blocks a request\n", instances,
            cost);
        if (!flat(few, cost)) {
            return false;
        }
    }
    return true;
}
#endif

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_runs_in_order_in_one_slot),
        cmocka_unit_test(a_thousand_instances_keep_their_sequences),
    };
    static const simulation_t simulation = {
        .setup = setup, .teardown = teardown, .tests = tests,
        .test_count = sizeof(tests) / sizeof(tests[0]), .run_long = run_long,
        .run_costs = RUN_COSTS
    };
    return simulation_main(&simulation, argc, argv);
}
