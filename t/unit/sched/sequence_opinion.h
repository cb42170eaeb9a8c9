/*
 * sequence_opinion.h - a second opinion of the sequence batcher: who has which
 *                      slot, who waits, what an instance does now, from the
 *                      rules alone and from the first slot on every time.
 *
 * Owner    sequence_simulation.c.
 * Thread   one.
 * Units    virtual ns.
 * Errors   an impossible event ends the round.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_SEQUENCE_OPINION_H
#define INF_T_SCHED_SEQUENCE_OPINION_H

#include "model/config_text.h"
#include "sched/simulated.h"

#include "core/base/heap.h"
#include "core/include/channel.h"
#include "core/sched/sequence_batcher.h"

#define POOL      32768
#define CLIENTS   16384
#define SEQUENCES (POOL + CLIENTS)
#define PLACES    2048              /* instances of one round                */
#define SLOTS     12
#define INSTANCES 1000
#define ROUND     1500              /* requests of one configuration         */
#define WORDS     (PLACES / 64)
#define RECENT    512

typedef enum { FREE, QUEUED, RUNNING } stage_t;

typedef struct sequence_s sequence_t;
typedef struct client_s client_t;
typedef struct place_s place_t;
typedef struct slot_s slot_t;

typedef struct {
    inf_request_t   req;
    stage_t         stage;
    sequence_t     *sequence;
    inf_link_t      link;           /* in the sequence's queue               */
    inf_link_t      issued;         /* oldest: in the place's                */
    int64_t         size;           /* of the variable input                 */
    uint64_t        arrived;
    uint64_t        deadline;       /* while it waits for a slot             */
    uint64_t        order;          /* in its sequence                       */
    slot_t         *slot;           /* that it was taken from                */
    bool            anonymous, expired, again;
    inf_heap_node_t release;
} item_t;

struct sequence_s {
    sequence_t     *next;           /* spare                                 */
    client_t       *client;
    bool            known, over;
    slot_t         *slot;           /* NULL: waits                           */
    inf_link_t      queue;
    inf_link_t      backlog;
    inf_heap_node_t timer;
    uint64_t        sent, ran;      /* order of the last                     */
    uint32_t        items;          /* that are somewhere                    */
    bool            here;           /* has a slot, or waits for one          */
};

struct client_s {
    uint64_t    id;
    char        text[48];           /* "": the number                        */
    sequence_t *sequence;           /* known                                 */
    uint32_t    left;
};

struct slot_s {
    place_t    *place;
    uint32_t    number;
    sequence_t *sequence;
    const void *proof;              /* what the policy calls it              */
    item_t     *issued;
    uint32_t    running;
};

struct place_s {
    uint32_t        number;
    bool            attached, open, retired, runs;
    bool            told;           /* and has not looked yet                */
    slot_t          slots[SLOTS];
    inf_link_t      issued;
    uint32_t        taken, running, queued;
    inf_heap_node_t finish, watch;
    inf_link_t      lazy;           /* told, looks later                     */
    inf_link_t      changed;
};

typedef struct {
    uint64_t   seed, now;
    inf_sequence_batcher_options_t options;
    uint32_t   preferred[3], most, limit;
    bool       compares, states;
    uint32_t   clients;
    uint64_t   gap, run_ns, late_ns, cancel_every, change_every;
    uint64_t   length;
    bool       drops, closes, leaves, leaving, crowded;

    inf_policy_t *policy;

    place_t   *places;
    uint32_t   place_count, present;
    uint64_t   vacant[SLOTS][WORDS];
    uint32_t   vacancies;
    inf_link_t backlog;
    uint32_t   waiting, known, taken, queued, running, again;
    inf_heap_t timers, finishes, watches, releases;
    inf_link_t lazy, changed;
    uint64_t   last_id;
    item_t    *recent[RECENT];      /* the last that came                    */

    uint64_t   pushed, rejected, executed, cancelled, timed_out, dropped;
    uint64_t   steps_again, payloads, sequences, reaped, came, went, told;
    uint64_t   gave_way;
} sim_t;

static sim_t sim;
static item_t *pool;
static item_t **spare;
static uint32_t spare_count;
static client_t *clients;
static sequence_t *sequences, *spare_sequences;
static uint32_t sequence_count;         /* used in this round                */
static const inf_config_tensors_t *variable;

/* ---- the second opinion: slots and backlog ------------------------------- */

static item_t *
item_of(inf_link_t *link)
{
    return (item_t *) (void *) inf_link_entry(link, inf_request_t, link);
}

static item_t *
head_of(const sequence_t *q)
{
    return q != NULL && !inf_list_empty(&q->queue)
        ? inf_link_entry(q->queue.next, item_t, link) : NULL;
}

static void
dirty(place_t *p)
{
    if (inf_list_empty(&p->changed)) {
        inf_list_push_back(&sim.changed, &p->changed);
    }
}

static sequence_t *
sequence_new(client_t *client)
{
    sequence_t *q = spare_sequences;

    if (q != NULL) {
        spare_sequences = q->next;
    } else {
        check(sequence_count < SEQUENCES, "too many sequences");
        q = &sequences[sequence_count++];
    }
    *q = (sequence_t) { .client = client, .known = true, .here = true };
    inf_link_init(&q->queue);
    inf_link_init(&q->backlog);
    if (client != NULL) {
        client->sequence = q;
    }
    sim.known++;
    sim.sequences++;
    return q;
}

static void
sequence_unref(sequence_t *q)
{
    if (q->items == 0 && !q->here) {
        check(!q->known && !q->timer.queued, "it is not over");
        q->next = spare_sequences;
        spare_sequences = q;
    }
}

static void
timer_set(sequence_t *q, uint64_t at)
{
    inf_heap_remove(&sim.timers, &q->timer);
    if (at != UINT64_MAX) {
        inf_heap_push(&sim.timers, &q->timer, at);
    }
}

static void
forget(sequence_t *q)
{
    if (!q->known) {
        return;
    }
    if (q->client != NULL) {
        q->client->sequence = NULL;
    }
    q->known = false;
    sim.known--;
}

static bool
can_run(const slot_t *s)
{
    const item_t *head = head_of(s->sequence);

    return head != NULL && (s->running == 0 || (!sim.states
        && !(head->req.flags & INF_REQUEST_SEQUENCE_START)));
}

static void
issue(slot_t *s)
{
    item_t *head = head_of(s->sequence);

    dirty(s->place);
    if (sim.options.oldest && s->issued == NULL && head != NULL
        && s->running == 0)
    {
        s->issued = head;
        inf_list_push_back(&s->place->issued, &head->issued);
    }
}

static void
give(slot_t *s, sequence_t *q)
{
    check(s->sequence == NULL, "it is not free");
    s->sequence = q;
    q->slot = s;
    s->place->taken++;
    sim.taken++;
}

static void
vacate(slot_t *s)
{
    place_t *p = s->place;

    if (s->sequence != NULL) {
        s->sequence->here = false;
        timer_set(s->sequence, UINT64_MAX);
        sequence_unref(s->sequence);
        s->sequence = NULL;
        p->taken--;
        sim.taken--;
    }
    dirty(p);
    if (!p->open || p->retired) {
        return;
    }
    inf_link_t *link = inf_list_pop_front(&sim.backlog);
    if (link == NULL) {
        sim.vacant[s->number][p->number / 64]
            |= UINT64_C(1) << p->number % 64;
        sim.vacancies++;
        return;
    }
    sequence_t *q = inf_link_entry(link, sequence_t, backlog);
    sim.waiting--;
    timer_set(q, UINT64_MAX);
    give(s, q);
    for (inf_link_t *l = q->queue.next; l != &q->queue; l = l->next) {
        p->queued++;
    }
    issue(s);
}

static slot_t *
vacancy(void)
{
    for (uint32_t n = 0; sim.vacancies > 0 && n < sim.options.slots; n++) {
        for (uint32_t w = 0; w < WORDS; w++) {
            if (sim.vacant[n][w] != 0) {
                uint32_t i = w * 64
                    + (uint32_t) __builtin_ctzll(sim.vacant[n][w]);
                sim.vacant[n][w] &= sim.vacant[n][w] - 1;
                sim.vacancies--;
                return &sim.places[i].slots[n];
            }
        }
    }
    return NULL;
}

/* A sequence waits that nothing holds up but those that say nothing: the one
   that is silent for longest goes. */
static void
give_way(void)
{
    slot_t *first;

    do {
        first = NULL;
        for (uint32_t i = 0; sim.leaving && sim.waiting > 0
            && i < sim.place_count; i++)
        {
            place_t *p = &sim.places[i];
            for (uint32_t k = 0; p->attached && p->open && !p->retired
                && k < sim.options.slots; k++)
            {
                const sequence_t *q = p->slots[k].sequence;
                if (q != NULL && q->timer.queued && (first == NULL
                    || q->timer.key < first->sequence->timer.key))
                {
                    first = &p->slots[k];
                }
            }
        }
        if (first != NULL) {
            forget(first->sequence);
            vacate(first);
            sim.gave_way++;
        }
    } while (first != NULL);
}

/* Something was taken, released or cancelled. */
static void
settle(slot_t *s)
{
    sequence_t *q = s->sequence;

    if (q != NULL && q->over && inf_list_empty(&q->queue)) {
        vacate(s);
        return;
    }
    issue(s);
    if (q != NULL && q->known && s->running == 0
        && inf_list_empty(&q->queue))
    {
        timer_set(q, sim.now + sim.options.idle_us * 1000);
        give_way();
    }
}

static void
enqueue(item_t *item, sequence_t *q)
{
    item->sequence = q;
    item->stage = QUEUED;
    item->arrived = sim.now;
    item->order = ++q->sent;
    q->items++;
    sim.queued++;
    inf_list_push_back(&q->queue, &item->link);
    if (q->slot != NULL) {
        q->slot->place->queued++;
        timer_set(q, UINT64_MAX);
        item->deadline = UINT64_MAX;
    } else {
        item->deadline = item->req.timeout_us == 0 ? UINT64_MAX
            : sim.now + item->req.timeout_us * 1000;
        if (item->deadline != UINT64_MAX
            && (!q->timer.queued || item->deadline < q->timer.key))
        {
            timer_set(q, item->deadline);
        }
    }
    if (item->req.flags & INF_REQUEST_SEQUENCE_END) {
        forget(q);
        q->over = true;
    }
    if (q->slot != NULL) {
        issue(q->slot);
    }
}

static void
dequeue(item_t *item)
{
    sequence_t *q = item->sequence;

    check(item->stage == QUEUED, "it was not queued");
    inf_link_remove(&item->link);
    inf_link_remove(&item->issued);
    sim.queued--;
    sim.again -= item->again;
    item->again = false;
    if (q->slot != NULL) {
        q->slot->place->queued--;
        if (q->slot->issued == item) {
            q->slot->issued = NULL;
        }
    }
}

/* ---- the second opinion: what an instance does now ----------------------- */

typedef struct {
    inf_next_t next;
    uint32_t   count, slots;
    uint64_t   until, oldest;
} opinion_t;

static bool
prefers(uint32_t rows)
{
    for (uint32_t i = 0; i < sim.options.preferred_count; i++) {
        if (sim.preferred[i] == rows) {
            return true;
        }
    }
    return sim.options.preferred_count == 0 && rows == sim.limit;
}

static opinion_t
opinion_oldest(const place_t *p)
{
    opinion_t o = { .next = INF_NEXT_NOTHING, .oldest = UINT64_MAX };
    uint64_t delay = sim.options.delay_us * 1000;
    uint32_t best = 0, count = 0;
    bool closed = false;
    const item_t *first = NULL;

    for (inf_link_t *l = p->issued.next; l != &p->issued; l = l->next) {
        const item_t *item = inf_link_entry(l, item_t, issued);
        first = first != NULL ? first : item;
        if (count > 0 && count + 1 > sim.most && best == 0) {
            best = count;
        }
        if (count > 0 && (count + 1 > sim.limit
            || (sim.compares && item->size != first->size)))
        {
            closed = true;
            break;
        }
        count++;
        o.oldest = least(o.oldest, item->arrived);
        best = prefers(count) ? count : best;
    }
    if (count == 0) {
        return o;
    }
    bool late = sim.policy->closing || sim.leaving
        || (delay > 0 && sim.now >= o.oldest + delay);
    o.next = INF_NEXT_PAYLOAD;
    o.count = best > 0 && !late ? best : count;
    if ((best == 0 || late) && !closed && count < sim.most && !late
        && delay > 0)
    {
        o.next = INF_NEXT_WAIT;
        o.until = o.oldest + delay;
    }
    return o;
}

static opinion_t
opinion_direct(const place_t *p)
{
    opinion_t o = { .next = INF_NEXT_NOTHING, .oldest = UINT64_MAX };
    uint64_t delay = sim.options.delay_us * 1000;

    for (uint32_t i = 0; p->queued > 0 && i < sim.options.slots; i++) {
        if (can_run(&p->slots[i])) {
            o.count++;
            o.slots = i + 1;
            o.oldest = least(o.oldest,
                head_of(p->slots[i].sequence)->arrived);
        }
    }
    if (o.count == 0) {
        return o;
    }
    o.next = INF_NEXT_PAYLOAD;
    if (delay > 0 && sim.options.utilization > 0 && !sim.policy->closing
        && !sim.leaving
        && (double) o.count < sim.options.utilization * sim.limit
        && sim.now < o.oldest + delay)
    {
        o.next = INF_NEXT_WAIT;
        o.until = o.oldest + delay;
    }
    return o;
}

static opinion_t
opinion(const place_t *p)
{
    return sim.options.oldest ? opinion_oldest(p) : opinion_direct(p);
}

static bool
may_go(const place_t *p)
{
    return p->retired && p->taken == 0 && p->queued == 0 && p->running == 0;
}

#endif /* INF_T_SCHED_SEQUENCE_OPINION_H */
