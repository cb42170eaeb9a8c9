/*
 * simulation.c - the dynamic batcher under random configurations, traffic,
 * cancels, timeouts, plug-ins and instances that come and go, with a virtual
 * clock, against a second opinion that looks at the whole queue every time.
 *
 *     unit_sched_simulation                 a short run of every kind
 *     unit_sched_simulation REQUESTS [SEED] a long one
 *
 * A failure names the seed of its round; the same seed fails again.
 */

#include "model/config_text.h"
#include "sched/simulated.h"

#include <stdio.h>
#include <time.h>

#include "core/include/datatype.h"
#include "core/sched/dynamic_batcher.h"

#define POOL        2048
#define LEVELS      5
#define INSTANCES   1000
#define ROUND       1000            /* requests of one configuration         */

typedef enum { FREE, QUEUED, RUNNING } place_t;

typedef struct {
    inf_request_t req;
    place_t       place;
    uint32_t      level;
    uint32_t      rows;
    int64_t       size;             /* of the variable input                 */
    uint64_t      volume;
    uint64_t      arrived;
    uint64_t      deadline;
    uint64_t      order;            /* of arrival                            */
    bool          delayed;
    bool          cancelled;        /* while the plug-in looked              */
    bool          pinned;           /* in the plug-in's open batch           */
} item_t;

typedef struct {
    item_t  *items[POOL];
    uint32_t count;
} list_t;

typedef struct {
    uint64_t at;
    uint32_t instance;
} finish_t;

typedef struct {
    uint64_t  seed;
    uint64_t  now;

    /* configuration */
    inf_dynamic_batcher_options_t options;
    inf_queue_rule_t rules[LEVELS];
    uint32_t  preferred[4];
    uint32_t  most, limit;
    bool      compares, suspects, disturbs;
    uint64_t  volume_limit;         /* 0: no plug-in                         */
    uint32_t  instances;
    uint64_t  gap, run_ns, cancel_every;

    inf_policy_t *policy;

    /* the second opinion */
    list_t    live[LEVELS], delayed[LEVELS];
    uint64_t  orders;

    /* instances */
    uint32_t  idle[INSTANCES];
    uint32_t  idle_count;
    finish_t  busy[INSTANCES];      /* a heap by at                          */
    uint32_t  busy_count;
    list_t   *running;              /* one list per instance                 */
    uint64_t  watch;
    uint32_t  watcher;              /* whose watch it is                     */

    /* they come and go */
    uint64_t  change_every;         /* 0: never                              */
    uint32_t  slots, present;
    uint32_t  last_number;
    uint32_t  numbers[INSTANCES];   /* what the policy knows; 0: not there   */
    bool      leaving[INSTANCES];   /* with what it has in hand              */
    uint32_t  thinking;             /* asks the plug-in now                  */

    /* plug-in */
    inf_batch_strategy_t strategy;
    bool      open, asking;
    uint64_t  volume;
    list_t    included;

    uint64_t  pushed, rejected, executed, cancelled, timed_out, payloads;
    uint64_t  came, went;
} sim_t;

static sim_t sim;
static item_t pool[POOL];
static list_t free_items;
static inf_config_tensors_t *variable;

/* ---- lists --------------------------------------------------------------- */

static void
list_add(list_t *l, item_t *item)
{
    l->items[l->count++] = item;
}

static bool
list_remove(list_t *l, const item_t *item)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->items[i] == item) {
            memmove(&l->items[i], &l->items[i + 1],
                (l->count - i - 1) * sizeof(l->items[0]));
            l->count--;
            return true;
        }
    }
    return false;
}

static item_t *
item_of(inf_link_t *link)
{
    return (item_t *) (void *) inf_link_entry(link, inf_request_t, link);
}

/* ---- the second opinion: the queue from its head, every time ------------- */

static item_t *
opinion_at(uint32_t index)
{
    for (uint32_t l = 0; l < LEVELS; l++) {
        if (index < sim.live[l].count) {
            return sim.live[l].items[index];
        }
        index -= sim.live[l].count;
        if (index < sim.delayed[l].count) {
            return sim.delayed[l].items[index];
        }
        index -= sim.delayed[l].count;
    }
    return NULL;
}

static bool
opinion_prefers(uint64_t rows)
{
    for (uint32_t i = 0; i < sim.options.preferred_count; i++) {
        if (sim.preferred[i] == rows) {
            return true;
        }
    }
    return sim.options.preferred_count == 0 && rows == sim.limit;
}

static bool
opinion_joins(const item_t *first, const item_t *item, uint64_t rows,
    uint64_t volume)
{
    return rows + item->rows <= sim.limit && !first->req.suspect
        && !item->req.suspect && (!sim.compares || first->size == item->size)
        && (sim.volume_limit == 0
            || volume + item->volume <= sim.volume_limit);
}

/* How many from the head go now; 0: none, *until says when. */
static uint32_t
opinion(uint64_t *until)
{
    uint64_t rows = 0, volume = 0, oldest = UINT64_MAX;
    uint32_t count = 0, best = 0;
    item_t *first = opinion_at(0), *item;
    bool closed = first != NULL && first->req.suspect;

    *until = UINT64_MAX;
    while ((item = opinion_at(count)) != NULL) {
        if (count > 0) {
            if (rows + item->rows > sim.most && best == 0
                && !first->req.suspect)
            {
                best = count;
            }
            if (!opinion_joins(first, item, rows, volume)) {
                closed = true;
                break;
            }
        }
        count++;
        rows += item->rows;
        volume += item->volume;
        oldest = item->arrived < oldest ? item->arrived : oldest;
        if (opinion_prefers(rows)) {
            best = count;
        }
    }
    if (count == 0) {
        return 0;
    }

    uint64_t delay = sim.options.delay_us * 1000;
    bool late = delay > 0 && sim.now >= oldest + delay;
    if (best > 0 && !late) {
        return best;
    }
    if (closed || rows >= sim.most || late || delay == 0) {
        return count;
    }
    *until = oldest + delay;
    return 0;
}

static uint64_t
opinion_deadline(void)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t l = 0; l < LEVELS; l++) {
        for (uint32_t i = 0; i < sim.live[l].count; i++) {
            uint64_t at = sim.live[l].items[i]->deadline;
            first = at < first ? at : first;
        }
    }
    return first;
}

static void
opinion_remove(item_t *item)
{
    check(item->place == QUEUED, "it was not queued");
    check(list_remove(item->delayed ? &sim.delayed[item->level]
        : &sim.live[item->level], item), "it is not where it should be");
}

static const inf_queue_policy_t *
policy_of(uint32_t level)
{
    for (uint32_t i = 0; sim.options.queue.levels > 0
        && i < sim.options.queue.rule_count; i++)
    {
        if (sim.rules[i].level == level) {
            return &sim.rules[i].policy;
        }
    }
    return &sim.options.queue.policy;
}

/* ---- requests come and go ------------------------------------------------ */

static void
item_free(item_t *item)
{
    inf_request_reset(&item->req);
    item->place = FREE;
    list_add(&free_items, item);
}

static item_t *
item_new(void)
{
    if (free_items.count == 0) {
        return NULL;
    }

    item_t *item = free_items.items[--free_items.count];
    item->rows = 1 + (uint32_t) (one_in(2) ? 0 : chance(sim.limit));
    item->size = 1 + (int64_t) (one_in(3) ? chance(3) : 0);
    item->volume = 1 + chance(3);
    item->delayed = item->cancelled = item->pinned = false;
    item->order = sim.orders++;
    item->req.batch_size = sim.options.limit > 0 ? item->rows : 0;
    item->rows = sim.options.limit > 0 ? item->rows : 1;
    item->req.priority = chance(LEVELS + 2);
    item->req.timeout_us = one_in(2) ? 0 : 1 + chance(400);
    item->req.suspect = sim.suspects && one_in(20);
    if (sim.compares) {
        const int64_t shape[] = { item->rows, item->size };
        assert_non_null(inf_request_add_input(&item->req, "IN", 2,
            INF_TYPE_INT32, shape, 2));
    }
    return item;
}

static uint64_t
deadline_of(const item_t *item)
{
    const inf_queue_policy_t *policy = policy_of(item->level);
    uint64_t us = policy->timeout_us;
    uint64_t own = item->req.timeout_us;

    if (policy->overrides && own > 0 && (us == 0 || own < us)) {
        us = own;
    }
    return us == 0 ? UINT64_MAX : sim.now + us * 1000;
}

static void
push_one(void)
{
    item_t *item = item_new();
    if (item == NULL) {
        return;
    }

    uint64_t levels = sim.options.queue.levels;
    uint64_t p = item->req.priority;
    item->level = (uint32_t) (levels == 0 ? 0 : p == 0 || p > levels
        ? sim.options.queue.standard : p);
    item->arrived = sim.now;
    item->deadline = deadline_of(item);

    const inf_queue_policy_t *policy = policy_of(item->level);
    uint32_t there = sim.live[item->level].count
        + sim.delayed[item->level].count;
    bool full = policy->limit != 0 && there >= policy->limit;

    inf_err_t *err = sim.policy->ops->push(sim.policy, &item->req, sim.now);
    check((err != NULL) == full, "%u of %u queued", there, policy->limit);
    inf_err_free(err);
    sim.pushed++;
    if (full) {
        sim.rejected++;
        item_free(item);
        return;
    }

    check(item->req.priority == item->level, "level");
    item->place = QUEUED;
    list_add(&sim.live[item->level], item);
}

/* A request that the policy rejects was cancelled during the plug-in's call,
   or its time is over, to the tick. */
static void
take_gone(inf_link_t *gone)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(gone)) != NULL) {
        item_t *item = item_of(link);
        opinion_remove(item);
        check(item->req.state == INF_REQUEST_REJECTED, "state");
        check(!sim.asking || !item->pinned, "the plug-in may be reading it");
        if (item->cancelled) {
            sim.cancelled++;
        } else {
            check(!policy_of(item->level)->delays, "it should be delayed");
            check(item->deadline == sim.now
                || (item->pinned && item->deadline < sim.now),
                "deadline %llu", (unsigned long long) item->deadline);
            sim.timed_out++;
        }
        inf_request_move(&item->req, INF_REQUEST_RELEASED);
        item_free(item);
    }
}

/* The second opinion moves what is delayed, in order of deadline. */
static void
delay_overdue(void)
{
    for (uint32_t l = 0; l < LEVELS; l++) {
        list_t *live = &sim.live[l];
        if (!policy_of(l)->delays) {
            continue;
        }
        for (uint32_t i = 0; i < live->count; ) {
            item_t *item = live->items[i];
            if (item->deadline > sim.now) {
                i++;
                continue;
            }
            list_remove(live, item);
            item->delayed = true;
            list_add(&sim.delayed[l], item);
        }
    }
}

/* Requests of one level that time out in the same ns may be delayed in any
   order: the policy's is taken over. */
static void
agree_on_ties(void)
{
    for (uint32_t l = 0; l < LEVELS; l++) {
        list_t *d = &sim.delayed[l];
        if (d->count < 2) {
            continue;
        }
        const inf_level_t *level = d->items[0]->req.sched.queued.level;
        uint32_t i = 0;
        for (inf_link_t *k = level->delayed.next; k != &level->delayed;
            k = k->next, i++)
        {
            item_t *item = item_of(k);
            check(i < d->count && d->items[i]->deadline == item->deadline,
                "delayed requests are out of order");
            d->items[i] = item;
        }
    }
}

static void
expire(void)
{
    inf_link_t gone;
    inf_link_init(&gone);
    sim.policy->ops->expire(sim.policy, sim.now, &gone);
    take_gone(&gone);
    delay_overdue();
    agree_on_ties();
}

static void
cancel_one(void)
{
    item_t *item = &pool[chance(POOL)];
    for (uint32_t i = 0; i < 16 && item->place != QUEUED; i++) {
        item = &pool[chance(POOL)];
    }

    bool was = sim.policy->ops->cancel(sim.policy, &item->req, sim.now,
        NULL);
    if (item->place != QUEUED) {
        check(!was, "a request that isn't queued was unlinked");
        return;
    }
    if (!was) {
        check(sim.asking && item->pinned, "a queued request stayed");
        item->cancelled = true;
        return;
    }

    check(!sim.asking || !item->pinned, "the plug-in may be reading it");
    opinion_remove(item);
    check(item->req.state == INF_REQUEST_REJECTED, "state");
    inf_request_move(&item->req, INF_REQUEST_RELEASED);
    item_free(item);
    sim.cancelled++;
}

/* ---- the plug-in: a limit by volume -------------------------------------- */

static void
unpin_all(void)
{
    for (uint32_t i = 0; i < sim.included.count; i++) {
        sim.included.items[i]->pinned = false;
    }
    sim.included.count = 0;
}

static inf_err_t *
strategy_begin(inf_batch_strategy_t *s, void **batch)
{
    check(s == &sim.strategy && !sim.open, "two batches at once");
    if (sim.disturbs && one_in(50)) {
        return inf_err_new(INF_ERR_INTERNAL, "no batch today");
    }
    sim.open = true;
    sim.volume = 0;
    *batch = &sim;
    return NULL;
}

/* Others come, go and time out while the plug-in thinks. */
static void
disturb(void)
{
    if (sim.change_every > 0 && one_in(4) && sim.present > 1
        && !sim.leaving[sim.thinking])
    {
        sim.leaving[sim.thinking] = true;   /* but it must come back first   */
        sim.present--;
    }
    while (one_in(2)) {
        switch (chance(4)) {
        case 0:
            push_one();
            break;
        case 1:
            cancel_one();
            break;
        default:
            if (sim.policy->deadline_ns != INF_NEVER
                && (sim.busy_count == 0
                    || sim.policy->deadline_ns <= sim.busy[0].at))
            {
                sim.now = sim.policy->deadline_ns;
                expire();
            }
            break;
        }
        check(sim.policy->ops->ready(sim.policy, 0, sim.now,
            &(uint64_t) { 0 })
            == INF_NEXT_NOTHING, "somebody else is told to look");
    }
}

static inf_err_t *
strategy_include(inf_batch_strategy_t *s, void *batch, inf_request_t *req,
    bool *joins)
{
    item_t *item = (item_t *) (void *) req;

    check(s == &sim.strategy && sim.open && batch == &sim, "no batch");
    check(!*joins, "the answer begins as a no");
    item->pinned = true;
    list_add(&sim.included, item);
    sim.asking = true;
    if (sim.disturbs && one_in(4)) {
        disturb();
    }
    sim.asking = false;
    for (uint32_t i = 0; i < sim.included.count; i++) {
        check(sim.included.items[i]->place == QUEUED,
            "it was taken away under the plug-in's eyes");
    }

    *joins = sim.volume + item->volume <= sim.volume_limit;
    if (*joins || sim.included.count == 1) {
        sim.volume += item->volume;
    }
    return NULL;
}

static inf_err_t *
strategy_end(inf_batch_strategy_t *s, void *batch)
{
    check(s == &sim.strategy && sim.open && batch == &sim, "no batch");
    sim.open = false;
    unpin_all();
    return NULL;
}

static const inf_batch_strategy_ops_t strategy_ops = {
    .begin = strategy_begin, .include = strategy_include, .end = strategy_end
};

/* ---- instances ----------------------------------------------------------- */

static void
busy_push(finish_t f)
{
    uint32_t i = sim.busy_count++;
    while (i > 0 && sim.busy[(i - 1) / 2].at > f.at) {
        sim.busy[i] = sim.busy[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    sim.busy[i] = f;
}

static finish_t
busy_pop(void)
{
    finish_t top = sim.busy[0];
    finish_t f = sim.busy[--sim.busy_count];
    uint32_t i = 0;

    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= sim.busy_count) {
            break;
        }
        if (k + 1 < sim.busy_count && sim.busy[k + 1].at < sim.busy[k].at) {
            k++;
        }
        if (sim.busy[k].at >= f.at) {
            break;
        }
        sim.busy[i] = sim.busy[k];
        i = k;
    }
    sim.busy[i] = f;
    return top;
}

/* Every batch is legal: this says why, not whether it is the right one. */
static void
check_payload(const list_t *got)
{
    uint64_t rows = 0, volume = 0;
    const item_t *first = got->items[0];

    for (uint32_t i = 0; i < got->count; i++) {
        const item_t *item = got->items[i];
        check(item->place == QUEUED, "it ran already");
        check(item->req.state == INF_REQUEST_PENDING, "state");
        check(!item->cancelled, "it was cancelled in time");
        check(item->delayed || item->deadline > sim.now, "its time is over");
        check(!sim.compares || item->size == first->size, "shapes differ");
        check(!item->req.suspect || got->count == 1, "a suspect has company");
        rows += item->rows;
        volume += item->volume;
    }
    check(got->count == 1 || rows <= sim.limit, "%llu rows of %u",
        (unsigned long long) rows, sim.limit);
    check(sim.volume_limit == 0 || got->count == 1
        || volume <= sim.volume_limit, "%llu of volume %llu",
        (unsigned long long) volume,
        (unsigned long long) sim.volume_limit);
    check(!sim.open, "the plug-in's batch is open still");
}

static void
run_payload(uint32_t instance, inf_payload_t *payload, uint32_t expected)
{
    list_t *run = &sim.running[instance];
    inf_link_t *link;

    run->count = 0;
    while ((link = inf_list_pop_front(&payload->requests)) != NULL) {
        list_add(run, item_of(link));
    }
    check(run->count == payload->count && run->count > 0, "count");
    check_payload(run);
    if (!sim.disturbs) {
        check(run->count == expected, "%u requests, expected %u", run->count,
            expected);
    }
    for (uint32_t i = 0; i < run->count; i++) {
        item_t *item = run->items[i];
        check(opinion_at(0) == item, "request %llu goes before its turn",
            (unsigned long long) item->order);
        opinion_remove(item);
        item->place = RUNNING;
        inf_request_move(&item->req, INF_REQUEST_EXECUTING);
    }
    sim.payloads++;
    busy_push((finish_t) { .at = sim.now + 1 + chance(sim.run_ns),
        .instance = instance });
}

static bool call_idle(void);

/* It has nothing in hand: another one looks instead of it. */
static void
go_away(uint32_t instance)
{
    sim.leaving[instance] = false;
    sim.numbers[instance] = 0;
    sim.went++;
    if (sim.watch != UINT64_MAX && sim.watcher == instance) {
        sim.watch = UINT64_MAX;
    }
    call_idle();
}

/* The work of an instance's thread between two payloads. */
static void
look(uint32_t instance)
{
    inf_payload_t payload;
    inf_link_t gone;

    for (;;) {
        uint64_t until = 0, expected_until = 0;
        inf_payload_init(&payload);
        inf_link_init(&gone);

        inf_next_t next = sim.policy->ops->next(sim.policy,
            sim.numbers[instance], sim.now, &payload, &gone, &until);
        take_gone(&gone);
        if (next == INF_NEXT_ASK) {
            inf_payload_t none;
            inf_payload_init(&none);
            if (sim.instances > 1) {        /* another one looks meanwhile   */
                check(sim.policy->ops->next(sim.policy,
                    sim.numbers[instance] + 1, sim.now, &none, &gone, &until)
                    == INF_NEXT_NOTHING, "two ask");
            }
            sim.thinking = instance;
            sim.policy->ops->ask(sim.policy);
            continue;
        }

        uint32_t expected = opinion(&expected_until);
        switch (next) {
        case INF_NEXT_PAYLOAD:
            run_payload(instance, &payload, expected);
            while (call_idle()) {
                continue;
            }
            return;
        case INF_NEXT_WAIT:
            check(expected == 0 && until == expected_until, "expected %u, %llu"
                " instead of %llu", expected, (unsigned long long) until,
                (unsigned long long) expected_until);
            if (until < sim.watch && !sim.leaving[instance]) {
                sim.watch = until;
                sim.watcher = instance;
            }
            break;
        case INF_NEXT_NOTHING:
            check(expected == 0 && expected_until == UINT64_MAX,
                "nothing, but expected %u or to wait", expected);
            break;
        case INF_NEXT_ASK:
            break;
        }
        if (sim.leaving[instance]) {
            go_away(instance);
        } else {
            sim.idle[sim.idle_count++] = instance;
        }
        return;
    }
}

/* As the runner does it: an idle instance looks when the policy says so. */
static bool
call_idle(void)
{
    uint64_t until = 0;

    if (sim.idle_count == 0) {
        return false;
    }
    inf_next_t ready = sim.policy->ops->ready(sim.policy, 0, sim.now, &until);
    if (ready == INF_NEXT_NOTHING
        || (ready == INF_NEXT_WAIT && until >= sim.watch))
    {
        return false;
    }
    uint32_t before = sim.idle_count;
    look(sim.idle[--sim.idle_count]);
    return sim.idle_count < before;
}

static void
finish_one(void)
{
    finish_t f = busy_pop();
    list_t *run = &sim.running[f.instance];

    for (uint32_t i = 0; i < run->count; i++) {
        item_t *item = run->items[i];
        check(item->place == RUNNING, "it is answered twice");
        inf_request_move(&item->req, INF_REQUEST_RELEASED);
        item_free(item);
        sim.executed++;
    }
    run->count = 0;
    if (sim.leaving[f.instance]) {
        go_away(f.instance);
    } else {
        look(f.instance);
    }
}

/* A new one looks at once, one that goes ends with what it has in hand. */
static void
change_instances(void)
{
    uint32_t i = (uint32_t) chance(sim.slots);

    if (sim.numbers[i] == 0) {
        sim.numbers[i] = ++sim.last_number;
        sim.present++;
        sim.came++;
        look(i);
        return;
    }
    if (sim.leaving[i] || sim.present == 1) {
        return;
    }

    sim.present--;
    sim.leaving[i] = true;
    for (uint32_t k = 0; k < sim.idle_count; k++) {
        if (sim.idle[k] == i) {
            sim.idle[k] = sim.idle[--sim.idle_count];
            go_away(i);
            return;
        }
    }
}

/* ---- rounds -------------------------------------------------------------- */

/* Nobody sleeps over work, nothing is counted wrong. */
static void
check_rest(void)
{
    uint64_t until;
    uint32_t queued = 0;

    for (uint32_t l = 0; l < LEVELS; l++) {
        queued += sim.live[l].count + sim.delayed[l].count;
    }
    check(sim.policy->queued == queued, "%u queued, expected %u",
        sim.policy->queued, queued);
    check(sim.policy->deadline_ns == opinion_deadline(), "deadline");
    if (sim.idle_count > 0) {
        check(opinion(&until) == 0, "an idle instance sleeps over a batch");
        check(sim.watch <= until, "nobody watches the delay");
    }
}

static inf_queue_policy_t
random_policy(void)
{
    if (one_in(2)) {
        return (inf_queue_policy_t) { 0 };
    }
    return (inf_queue_policy_t) {
        .delays = one_in(2),
        .overrides = one_in(2),
        .timeout_us = one_in(4) ? 0 : 1 + chance(300),
        .limit = one_in(2) ? 0 : 1 + (uint32_t) chance(40)
    };
}

static void
random_configuration(bool plug_in)
{
    inf_dynamic_batcher_options_t *o = &sim.options;

    o->limit = one_in(8) ? 0 : 1 + (uint32_t) chance(16);
    sim.limit = o->limit > 0 ? o->limit : 1;
    o->preferred_count = o->limit > 0 ? (uint32_t) chance(4) : 0;
    sim.most = o->preferred_count == 0 ? sim.limit : 0;
    for (uint32_t i = 0; i < o->preferred_count; i++) {
        sim.preferred[i] = 1 + (uint32_t) chance(sim.limit);
        sim.most = sim.preferred[i] > sim.most ? sim.preferred[i] : sim.most;
    }
    o->preferred = sim.preferred;
    o->delay_us = one_in(2) ? 0 : 1 + chance(200);
    o->queue.levels = one_in(2) ? 0 : 1 + chance(LEVELS - 1);
    o->queue.standard = o->queue.levels > 0 ? 1 + chance(o->queue.levels) : 0;
    o->queue.policy = random_policy();
    o->queue.rules = sim.rules;
    o->queue.rule_count = 0;
    for (uint32_t l = 1; l <= o->queue.levels; l++) {
        if (one_in(2)) {
            sim.rules[o->queue.rule_count++] = (inf_queue_rule_t) {
                .level = l, .policy = random_policy()
            };
        }
    }
    sim.compares = one_in(2);
    o->tensors = sim.compares ? variable : NULL;
    sim.suspects = one_in(4);
    if (plug_in) {
        sim.strategy.ops = &strategy_ops;
        o->strategy = &sim.strategy;
        sim.volume_limit = 1 + chance(20);
        sim.disturbs = one_in(2);
    }
    sim.gap = 1 + chance(one_in(2) ? 2000 : 40000);
    sim.run_ns = 1 + chance(300000);
    sim.cancel_every = one_in(2) ? 0 : 2 + chance(20);
}

static void
step(uint64_t *arrival, uint64_t requests)
{
    uint64_t busy = sim.busy_count > 0 ? sim.busy[0].at : UINT64_MAX;
    uint64_t deadline = sim.policy->deadline_ns;
    uint64_t at = least(least(*arrival, busy), least(deadline, sim.watch));

    check(at != UINT64_MAX, "the world stands still");
    if (at > sim.now) {
        sim.now = at;
    }

    if (deadline <= sim.now) {
        expire();
        while (call_idle()) {
            continue;
        }
    } else if (sim.watch <= sim.now) {
        sim.watch = UINT64_MAX;
        if (sim.idle_count > 0) {
            look(sim.idle[--sim.idle_count]);
        }
    } else if (busy <= sim.now) {
        finish_one();
    } else {
        for (uint64_t n = one_in(4) ? chance(12) : 0; ; n--) {
            push_one();
            if (one_in(2)) {                /* the runner looks after each;
                                               a burst may come between      */
                call_idle();
            }
            if (n == 0) {
                break;
            }
        }
        if (sim.cancel_every > 0 && one_in(sim.cancel_every)) {
            cancel_one();
        }
        if (sim.change_every > 0 && one_in(sim.change_every)) {
            change_instances();
        }
        while (call_idle()) {
            continue;
        }
        *arrival = sim.pushed >= requests ? UINT64_MAX
            : sim.now + chance(sim.gap);
    }
    check_rest();
}

static void
run_round(uint64_t seed, uint32_t instances, uint64_t requests, bool plug_in)
{
    list_t *running = sim.running;
    memset(&sim, 0, sizeof(sim));
    sim.running = running;
    sim.seed = chance_state = seed;
    sim.now = 1000;
    sim.watch = UINT64_MAX;
    random_configuration(plug_in);
    if (instances > 8) {                    /* that there is work for all    */
        sim.run_ns = sim.gap * instances;
    }
    sim.instances = instances;
    sim.slots = (uint32_t) least(2 * instances, INSTANCES);
    sim.change_every = one_in(2) ? 0 : 1 + chance(20);
    for (uint32_t i = 0; i < instances; i++) {
        sim.idle[sim.idle_count++] = i;
        sim.numbers[i] = ++sim.last_number;
        sim.present++;
    }
    assert_ok(inf_dynamic_batcher_new(&sim.options, &sim.policy));

    uint64_t arrival = sim.now;
    while (arrival != UINT64_MAX || sim.policy->queued > 0
        || sim.busy_count > 0)
    {
        step(&arrival, requests);
    }

    check(sim.pushed == sim.rejected + sim.executed + sim.cancelled
        + sim.timed_out, "%llu of %llu requests are lost",
        (unsigned long long) (sim.pushed - sim.rejected - sim.executed
            - sim.cancelled - sim.timed_out),
        (unsigned long long) sim.pushed);
    check(free_items.count == POOL, "requests are lost");
    sim.policy->ops->free(sim.policy);
    check(!sim.open, "the plug-in's last batch never ended");
}

typedef struct {
    uint64_t pushed, executed, cancelled, timed_out, rejected, payloads;
    uint64_t came, went;
} totals_t;

static totals_t totals;

static void
run(uint64_t seed, uint32_t instances, uint64_t requests, bool plug_in)
{
    uint64_t end = totals.pushed + requests;

    while (totals.pushed < end) {
        uint32_t n = instances > 0 ? instances : 1 + (uint32_t) (seed % 5);
        run_round(seed++, n, n > 8 ? 20 * n : ROUND, plug_in);
        totals.pushed += sim.pushed;
        totals.executed += sim.executed;
        totals.cancelled += sim.cancelled;
        totals.timed_out += sim.timed_out;
        totals.rejected += sim.rejected;
        totals.payloads += sim.payloads;
        totals.came += sim.came;
        totals.went += sim.went;
    }
}

static int
setup(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal("name: 'm' backend: 'x'"
        " max_batch_size: 16 input { name: 'IN' data_type: TYPE_INT32"
        " dims: -1 } output { name: 'OUT' data_type: TYPE_INT32 dims: -1 }");
    assert_ok(inf_config_tensors_new(msg, &variable));
    inf_message_free(&msg->base);

    sim.running = calloc(INSTANCES, sizeof(*sim.running));
    free_items.count = 0;
    for (int i = 0; i < POOL; i++) {
        inf_request_init(&pool[i].req);
        list_add(&free_items, &pool[i]);
    }
    return sim.running == NULL;
}

static int
teardown(void **state)
{
    (void) state;
    for (int i = 0; i < POOL; i++) {
        inf_request_fini(&pool[i].req);
    }
    inf_config_tensors_free(variable);
    free(sim.running);
    return 0;
}

static void
nothing_is_lost_and_every_batch_is_the_right_one(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run(1, 0, 150000, false);
    assert_true(totals.executed > totals.pushed / 4);
    assert_true(totals.cancelled > 1000);
    assert_true(totals.timed_out > 1000);
    assert_true(totals.rejected > 1000);
    assert_true(totals.payloads < totals.executed);
    assert_true(totals.came > 1000 && totals.went > 1000);
}

static void
a_plug_in_is_asked_in_order_and_its_word_counts(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run(1000000, 0, 100000, true);
    assert_true(totals.executed > totals.pushed / 4);
    assert_true(totals.cancelled > 500);
    assert_true(totals.timed_out > 500);
    assert_true(totals.came > 500 && totals.went > 500);
}

static void
a_thousand_instances_share_one_batcher(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run(2000000, INSTANCES, 40000, false);
    assert_true(totals.executed > totals.pushed / 4);
}

/* A long run; what a request costs is printed, the checks' own work in it. */
static void
run_long(uint64_t requests, uint64_t seed)
{
    static const uint32_t instances[] = { 0, 10, 100, INSTANCES };

    for (int i = 0; i < 5; i++) {
        struct timespec from, to;
        totals = (totals_t) { 0 };
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        run(seed, instances[i % 4], requests / 5, i == 4);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        printf("%4u instances%s: %llu requests, %llu payloads, %llu"
            " cancelled, %llu timed out, %llu rejected, %.0f ns a request\n",
            instances[i % 4], i == 4 ? " (1-5), plug-in" : "",
            (unsigned long long) totals.pushed,
            (unsigned long long) totals.payloads,
            (unsigned long long) totals.cancelled,
            (unsigned long long) totals.timed_out,
            (unsigned long long) totals.rejected,
            ((double) (to.tv_sec - from.tv_sec) * 1e9
                + (double) (to.tv_nsec - from.tv_nsec))
                / (double) totals.pushed);
    }
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_and_every_batch_is_the_right_one),
        cmocka_unit_test(a_plug_in_is_asked_in_order_and_its_word_counts),
        cmocka_unit_test(a_thousand_instances_share_one_batcher),
    };
    static const simulation_t simulation = {
        .setup = setup, .teardown = teardown, .tests = tests,
        .test_count = sizeof(tests) / sizeof(tests[0]), .run_long = run_long
    };
    return simulation_main(&simulation, argc, argv);
}
