/*
 * server_simulation.c - several models behind response cache and rate limiter
 *                       with a virtual clock: random schedulers, instances,
 *                       resources, traffic, cancels, timeouts and failures.
 *
 *     unit_sched_server_simulation                 a short run of every kind
 *     unit_sched_server_simulation REQUESTS [SEED] a long one
 *
 * The gate before the runner, the policies, the limiter, the order of
 * responses and the timekeeper's heap are the server's own.  The threads are
 * this file's: linked with --wrap, the clock is virtual, a thread that is
 * started never runs, and the runner is a loop over events (CMakeLists.txt).
 * Built as sched_cost, every basic block of core/sched that runs is counted.
 */

#include "model/config_text.h"
#include "sched/counted.h"
#include "sched/simulated.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "core/base/heap.h"
#include "core/base/os/thread.h"
#include "core/cache/response_cache.h"
#include "core/sched/rate_limiter.h"
#include "core/sched/rejection.h"
#include "core/sched/runtime.h"
#include "core/tensor/response.h"

#define POOL      4096
#define MODELS    12
#define INSTANCES 1000
#define DEVICES   100
#define SLOTS     64                /* of the cache                          */
#define LEVELS    4
#define ROUND     1500

typedef struct server_model_s server_model_t;

typedef enum { FREE, SENT, QUEUED, RUNNING, ANSWERED } place_t;

typedef struct {
    inf_request_t   req;
    inf_factory_t   factory;
    server_model_t *model;
    place_t         place;
    bool            released, freed, cancelled, fails, numbered;
    uint32_t        rows, value, got;
    uint64_t        priority;       /* as it was sent                        */
    uint64_t        deadline;       /* when it is to be rejected             */
    inf_heap_node_t waits;          /* in sim.deadlines until it runs        */
    uint64_t        number;         /* of those taken, where order is kept   */
} item_t;

typedef enum { IDLE, ASKS, RUNS } doing_t;

typedef struct {
    inf_rate_instance_t limited;
    server_model_t     *model;
    uint32_t            index;
    uint32_t            first;      /* first of the model that needs the same */
    uint32_t            class_asking; /* of that first one                   */
    int32_t             device;
    uint32_t            local, global;      /* copies it needs               */
    doing_t             doing;
    inf_heap_node_t     finish;
    inf_link_t          requests;   /* of its payload                        */
} runs_t;

struct server_model_s {
    inf_model_t          *model;
    inf_policy_t         *policy;
    inf_response_order_t *order;
    uint64_t              taken, left;      /* numbers                       */
    uint32_t              limit, levels;
    bool                  batches, keeps_order, overrides, delays;
    uint64_t              timeout_us;
    uint32_t              queue_limit;
    uint32_t              queued[LEVELS + 1];
    runs_t               *instances;
    uint32_t              count;
    runs_t              **idle;
    uint32_t              idle_count, asking;
    inf_heap_node_t       watch;    /* somebody looks then                   */
    inf_heap_node_t       expiry;   /* the policy's deadline                 */
};

typedef struct {
    char     key[INF_CACHE_KEY_TEXT];
    uint32_t value;
} slot_t;

typedef struct {
    uint64_t         seed, now;
    bool             limits, calm;
    uint32_t         devices, values;
    uint64_t         gap, run_ns, cancel_every;
    uint64_t         local_copies, global_copies;
    uint64_t         held[DEVICES], held_global;
    server_model_t   models[MODELS];
    uint32_t         model_count;
    inf_rate_limiter_t   *limiter;
    inf_response_cache_t *cache;
    slot_t           slots[SLOTS];
    inf_heap_t       watches, expiries, finishes, deadlines;
    uint32_t         running;       /* instances                             */
    uint32_t         asking;
    uint64_t         sent, rejected, executed, cancelled, timed_out, failed;
    uint64_t         hits, payloads;
} sim_t;

static sim_t sim;
static inf_timekeeper_t timekeeper;
static item_t pool[POOL];
static item_t *spare[POOL];
static uint32_t spare_count;
static runs_t instances[INSTANCES];
static runs_t *idle_places[INSTANCES];

/* ---- the world that is wrapped ------------------------------------------- */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
inf_err_t *__wrap_inf_thread_start(pthread_t *t, const char *name,
    inf_thread_main_t thread_main, void *arg);
int __wrap_pthread_join(pthread_t t, void **result);
inf_err_t *__wrap_inf_runner_submit(inf_runner_t *runner, inf_request_t *req,
    uint64_t now_ns);
bool __wrap_inf_runner_cancel(inf_runner_t *runner, inf_request_t *req);
uint64_t __wrap_inf_runner_rejects_at(const inf_runner_t *runner,
    const inf_request_t *req, uint64_t now_ns);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id != CLOCK_MONOTONIC) {
        return __real_clock_gettime(id, ts);
    }
    ts->tv_sec = (time_t) (sim.now / 1000000000u);
    ts->tv_nsec = (long) (sim.now % 1000000000u);
    return 0;
}

inf_err_t *
__wrap_inf_thread_start(pthread_t *t, const char *name,
    inf_thread_main_t thread_main, void *arg)
{
    (void) name;
    (void) thread_main;
    (void) arg;
    *t = pthread_self();
    return NULL;
}

int
__wrap_pthread_join(pthread_t t, void **result)
{
    (void) t;
    (void) result;
    return 0;
}

/* ---- requests ------------------------------------------------------------ */

static item_t *
item_of(const inf_request_t *req)
{
    return (item_t *) (void *) req;
}

static void
gone_if_over(item_t *item)
{
    if (!item->released || !item->freed) {
        return;
    }
    check(item->place == ANSWERED, "it was never answered");
    check(!item->waits.queued, "it waits still");
    item->place = FREE;
    spare[spare_count++] = item;
}

static void
on_released(void *userp, inf_request_t *req, uint32_t flags)
{
    item_t *item = userp;
    (void) req;
    (void) flags;
    check(!item->released, "it is released twice");
    item->released = true;
    gone_if_over(item);
}

static const inf_request_ops_t request_ops = { .released = on_released };

static inf_err_t *
on_alloc(void *userp, inf_output_t *out, size_t size)
{
    item_t *item = userp;
    check(size == sizeof(item->got), "%zu bytes", size);
    out->base = &item->got;
    out->memory_type = INF_MEMORY_CPU;
    return NULL;
}

static void
on_output_released(void *userp, inf_output_t *out)
{
    (void) userp;
    (void) out;
}

/* An error is one that it may get, at the tick at which it may get it. */
static void
check_error(const item_t *item, const inf_err_t *err)
{
    const server_model_t *m = item->model;
    const char *text = inf_err_msg(err);

    switch (inf_err_code(err)) {
    case INF_ERR_CANCELLED:
        check(item->cancelled, "nobody cancelled it");
        sim.cancelled++;
        break;
    case INF_ERR_UNAVAILABLE:
        check(item->place != RUNNING, "it runs");
        if (strcmp(text, "Request timeout expired") == 0) {
            check(item->deadline == sim.now, "its time is %llu",
                (unsigned long long) item->deadline);
            sim.timed_out++;
            break;
        }
        check(strcmp(text, "[request id: <id_unknown>] Exceeds maximum queue size")
            == 0, "%s", text);
        check(m->queue_limit > 0, "nothing limits the queue");
        sim.rejected++;
        break;
    case INF_ERR_INTERNAL:
        check(item->fails, "it did not fail: %s", text);
        sim.failed++;
        break;
    default:
        check(false, "%s", text);
    }
}

static void
on_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    item_t *item = userp;
    server_model_t *m = item->model;

    check(item->place != FREE && item->place != ANSWERED,
        "it is answered twice");
    check(response != NULL && (flags & INF_SEND_FINAL) != 0, "half an answer");
    if (item->waits.queued) {
        inf_heap_remove(&sim.deadlines, &item->waits);
    }
    if (item->numbered) {
        check(item->number == m->left, "%llu overtakes %llu",
            (unsigned long long) item->number,
            (unsigned long long) m->left);
        m->left++;
    }
    if (response->err != NULL) {
        check_error(item, response->err);
    } else {
        check(item->got == item->value, "it gets another's answer");
        sim.executed += item->place == RUNNING;
        sim.hits += item->place == SENT;
        check(item->place == RUNNING || item->place == SENT, "it is queued");
    }
    item->place = ANSWERED;
    inf_response_free(response);
}

static void
on_factory_free(void *userp, inf_factory_t *f)
{
    item_t *item = userp;
    check(f->sink != NULL && !item->freed, "its factory is freed twice");
    inf_model_unref(item->model->model);
    item->freed = true;
    gone_if_over(item);
}

static const inf_sink_ops_t sink_ops = {
    .alloc = on_alloc,
    .release = on_output_released,
    .complete = on_complete,
    .factory_free = on_factory_free
};

static uint32_t
level_of(const server_model_t *m, const inf_request_t *req)
{
    return m->levels == 0 ? 0 : req->priority == 0
        || req->priority > m->levels ? m->levels : (uint32_t) req->priority;
}

static void
waits_for(item_t *item)
{
    const server_model_t *m = item->model;
    uint64_t us = m->timeout_us, own = item->req.timeout_us;

    if (m->overrides && own > 0 && (us == 0 || own < us)) {
        us = own;
    }
    item->deadline = m->delays || us == 0 ? UINT64_MAX : sim.now + us * 1000;
    if (item->deadline != UINT64_MAX) {
        inf_heap_push(&sim.deadlines, &item->waits, item->deadline);
    }
}

static item_t *
item_new(server_model_t *m)
{
    item_t *item = spare[--spare_count];
    inf_request_t *r = &item->req;

    check(item->place == FREE, "it is in use");
    item->model = m;
    item->place = SENT;
    item->released = item->freed = item->cancelled = item->fails = false;
    item->numbered = false;
    item->value = (uint32_t) chance(sim.values);
    item->got = UINT32_MAX;
    item->rows = m->limit > 0 ? 1 + (uint32_t) chance(one_in(4) ? m->limit
        : 1) : 1;

    inf_request_reset(r);
    inf_model_ref(m->model);
    inf_factory_start(&item->factory, m->model, "", &sink_ops, item);
    r->model = m->model;
    r->factory = &item->factory;
    r->ops = &request_ops;
    r->userp = item;
    r->start_ns = sim.now;
    r->batch_size = m->limit > 0 ? item->rows : 0;
    r->priority = item->priority = chance(LEVELS + 2);
    r->timeout_us = one_in(2) ? 0 : 1 + chance(500);
    inf_input_t *in = inf_request_add_input(r, "IN", 2, INF_TYPE_UINT32,
        (int64_t[]) { item->rows, 1 }, 2);
    inf_err_free(inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = &item->value, .size = sizeof(item->value) }));
    return item;
}

/* ---- the cache: a few places, each key has one --------------------------- */

static slot_t *
slot_of(const char *key)
{
    uint32_t n = 0;
    for (const char *p = key; *p != '\0'; p++) {
        n = n * 31 + (unsigned char) *p;
    }
    return &sim.slots[n % SLOTS];
}

/* value: the input's where it stands first. */
static inf_err_t *
answer_with(inf_factory_t *f, uint32_t value, inf_response_t **out)
{
    inf_response_t *r;
    inf_err_t *err = inf_response_new(f, &r);
    if (err != NULL) {
        return err;
    }
    inf_output_t *o = inf_response_add_output(r, "OUT", INF_TYPE_UINT32,
        (int64_t[]) { 1 }, 1);
    err = f->sink->alloc(f->userp, o, sizeof(value));
    if (err == NULL) {
        memcpy(o->base, &value, sizeof(value));
        o->byte_size = sizeof(value);
    }
    *out = r;
    return err;
}

static inf_err_t *
cache_lookup(void *cache, const char *key, inf_factory_t *factory,
    inf_response_t **out, inf_cache_span_t *span)
{
    const slot_t *s = slot_of(key);
    bool was = counting;

    (void) cache;
    counting = false;
    *out = NULL;
    span->end_ns = sim.now;
    inf_err_t *err = NULL;
    if (!sim.calm && one_in(300)) {
        err = inf_err_new(INF_ERR_INTERNAL, "the cache is ill");
    } else if (strcmp(s->key, key) == 0) {
        err = answer_with(factory, s->value, out);
    }
    counting = was;
    return err;
}

static inf_err_t *
cache_insert(void *cache, const char *key, const inf_response_t *response,
    inf_cache_span_t *span)
{
    slot_t *s = slot_of(key);

    (void) cache;
    span->end_ns = sim.now;
    check(response->err == NULL, "an error is kept");
    if (one_in(20)) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "no room");
    }
    if (strcmp(s->key, key) == 0) {
        return inf_err_new(INF_ERR_ALREADY_EXISTS, "it is there");
    }
    strcpy(s->key, key);
    memcpy(&s->value, response->first->base, sizeof(s->value));
    return NULL;
}

static bool
cache_counts(void *cache, inf_cache_counts_t *out)
{
    (void) cache;
    (void) out;
    return false;
}

static const inf_cache_ops_t cache_ops = {
    .lookup = cache_lookup, .insert = cache_insert, .counts = cache_counts
};

/* ---- the runner ---------------------------------------------------------- */

static void settle_model(server_model_t *m);

static server_model_t *
model_of(const inf_runner_t *runner)
{
    return (server_model_t *) (void *) runner;
}

static void
arm(server_model_t *m)
{
    if (m->expiry.queued && m->expiry.key == m->policy->deadline_ns) {
        return;
    }
    inf_heap_remove(&sim.expiries, &m->expiry);
    if (m->policy->deadline_ns != INF_NEVER) {
        inf_heap_push(&sim.expiries, &m->expiry, m->policy->deadline_ns);
    }
}

static void
check_calm(const item_t *item)
{
    if (!sim.calm || item->model->model->sched.gate == NULL) {
        return;
    }
    for (uint32_t i = 0; i < POOL; i++) {
        const item_t *other = &pool[i];
        check(other == item || other->model != item->model
            || other->value != item->value || other->rows != item->rows
            || other->priority != item->priority
            || (other->place != QUEUED && other->place != RUNNING),
            "two run that are the same");
    }
}

inf_err_t *
__wrap_inf_runner_submit(inf_runner_t *runner, inf_request_t *req,
    uint64_t now_ns)
{
    server_model_t *m = model_of(runner);
    item_t *item = item_of(req);
    uint32_t level = level_of(m, req);

    check(now_ns <= sim.now, "it comes from the future");
    check(item->place == SENT, "it is queued twice");
    inf_err_t *err = m->policy->ops->push(m->policy, req, now_ns);
    if (err != NULL) {
        check(m->queue_limit > 0 && m->queued[level] >= m->queue_limit,
            "there is room: %s", inf_err_msg(err));
        return err;
    }
    check(m->queue_limit == 0 || m->queued[level] < m->queue_limit,
        "there is no room");
    m->queued[level]++;
    item->place = QUEUED;
    check_calm(item);
    arm(m);
    return NULL;
}

static void
left_queue(item_t *item)
{
    check(item->place == QUEUED, "it was not queued");
    item->model->queued[item->req.priority]--;
    item->place = SENT;
}

bool
__wrap_inf_runner_cancel(inf_runner_t *runner, inf_request_t *req)
{
    server_model_t *m = model_of(runner);
    bool was = m->policy->ops->cancel(m->policy, req, sim.now, NULL);

    check(was == (item_of(req)->place == QUEUED), "a cancel is not heard");
    if (was) {
        left_queue(item_of(req));
        arm(m);
    }
    return was;
}

uint64_t
__wrap_inf_runner_rejects_at(const inf_runner_t *runner,
    const inf_request_t *req, uint64_t now_ns)
{
    const inf_policy_t *policy = model_of(runner)->policy;
    return policy->ops->rejects_at != NULL
        ? policy->ops->rejects_at(policy, req, now_ns) : INF_NEVER;
}

static void
reject(inf_link_t *gone)
{
    for (inf_link_t *l = gone->next; l != gone; l = l->next) {
        left_queue(item_of(inf_link_entry(l, inf_request_t, link)));
    }
    inf_reject_gone(gone);
}

static void
expire(server_model_t *m)
{
    inf_link_t gone;
    inf_link_init(&gone);
    core(m->policy->ops->expire(m->policy, sim.now, &gone));
    arm(m);
    core(reject(&gone));
    settle_model(m);
}

/* ---- instances ----------------------------------------------------------- */

static void
make_idle(runs_t *i)
{
    i->doing = IDLE;
    i->model->idle[i->model->idle_count++] = i;
}

static void
hold(runs_t *i)
{
    sim.held[i->device] += i->local;
    sim.held_global += i->global;
    check(i->local == 0 || sim.held[i->device] <= sim.local_copies,
        "%llu copies are held", (unsigned long long) sim.held[i->device]);
    check(i->global == 0 || sim.held_global <= sim.global_copies,
        "%llu global copies are held", (unsigned long long) sim.held_global);
}

static void
give_back(runs_t *i, bool executed)
{
    if (sim.limits) {
        sim.held[i->device] -= i->local;
        sim.held_global -= i->global;
        core(inf_rate_limiter_release(sim.limiter, &i->limited, executed));
    }
}

static void
ask(runs_t *i, bool again)
{
    i->doing = ASKS;
    i->model->asking++;
    i->model->instances[i->first].class_asking++;
    sim.asking++;
    core(inf_rate_limiter_ask(sim.limiter, &i->limited, again));
}

/* Level by level, and no more rows than are allowed. */
static void
check_payload(const server_model_t *m, const inf_payload_t *p)
{
    uint64_t rows = 0;
    uint64_t worst = 0;

    for (inf_link_t *l = p->requests.next; l != &p->requests; l = l->next) {
        const item_t *item = item_of(inf_link_entry(l, inf_request_t, link));
        check(item->place == QUEUED, "it is not queued");
        check(!item->cancelled, "it was cancelled in time");
        check(item->deadline > sim.now, "its time is over");
        check(item->req.priority >= worst, "a better level comes later");
        worst = item->req.priority;
        rows += item->rows;
    }
    check(p->count == 1 || rows <= m->limit, "%llu rows",
        (unsigned long long) rows);
    for (uint64_t l = 0; l < worst; l++) {
        uint32_t taken = 0;
        for (inf_link_t *k = p->requests.next; k != &p->requests;
            k = k->next)
        {
            taken += inf_link_entry(k, inf_request_t, link)->priority == l;
        }
        check(m->queued[l] == taken, "a better level is left behind");
    }
}

static void
run(runs_t *i, inf_payload_t *p)
{
    server_model_t *m = i->model;
    inf_link_t *link;

    check_payload(m, p);
    while ((link = inf_list_pop_front(&p->requests)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        item_t *item = item_of(req);
        left_queue(item);
        item->place = RUNNING;
        inf_heap_remove(&sim.deadlines, &item->waits);
        inf_request_move(req, INF_REQUEST_EXECUTING);
        if (m->order != NULL) {
            inf_response_order_enter(m->order, req->factory);
            item->numbered = true;
            item->number = m->taken++;
        }
        inf_list_push_back(&i->requests, link);
    }
    i->doing = RUNS;
    sim.running++;
    sim.payloads++;
    inf_heap_push(&sim.finishes, &i->finish, sim.now + 1
        + chance(sim.run_ns));
}

/* As an instance's thread does; leave was given if there is a limit. */
static void
look(runs_t *i)
{
    server_model_t *m = i->model;
    inf_payload_t payload;
    inf_link_t gone;
    uint64_t until = 0;
    inf_next_t next;

    inf_payload_init(&payload);
    inf_link_init(&gone);
    core(next = m->policy->ops->next(m->policy, i->index, sim.now, &payload,
        &gone, &until));
    arm(m);
    if (next == INF_NEXT_PAYLOAD) {
        run(i, &payload);
    } else {
        if (next == INF_NEXT_WAIT) {
            if (!m->watch.queued || until < m->watch.key) {
                inf_heap_remove(&sim.watches, &m->watch);
                inf_heap_push(&sim.watches, &m->watch, until);
            }
        }
        give_back(i, false);
        make_idle(i);
    }
    core(reject(&gone));
}

static void
settle_limiter(void)
{
    inf_rate_instance_t *limited;

    for (;;) {
        core(limited = inf_rate_limiter_next(sim.limiter));
        if (limited == NULL) {
            return;
        }
        runs_t *i = limited->userp;
        check(i->doing == ASKS, "leave that nobody asked for");
        i->model->asking--;
        i->model->instances[i->first].class_asking--;
        sim.asking--;
        hold(i);
        look(i);
    }
}

/* Whether somebody should look now; else the delay is watched. */
static bool
has_work(server_model_t *m)
{
    uint64_t until = INF_NEVER;
    inf_next_t next;

    core(next = m->policy->ops->ready(m->policy, 0, sim.now, &until));
    if (next == INF_NEXT_WAIT && (!m->watch.queued || until < m->watch.key)) {
        inf_heap_remove(&sim.watches, &m->watch);
        inf_heap_push(&sim.watches, &m->watch, until);
    }
    return next == INF_NEXT_PAYLOAD;
}

/* One idle instance that should ask too: of a resource class that doesn't yet,
   or any if
   there are more requests than ask. */
static runs_t *
next_to_ask(server_model_t *m)
{
    for (uint32_t k = m->idle_count; k > 0; k--) {
        runs_t *i = m->idle[k - 1];
        if (m->policy->queued > m->asking
            || m->instances[i->first].class_asking == 0)
        {
            m->idle[k - 1] = m->idle[--m->idle_count];
            return i;
        }
    }
    return NULL;
}

static void
settle_model(server_model_t *m)
{
    while (m->idle_count > 0 && m->policy->queued > 0 && has_work(m)) {
        if (!sim.limits) {
            look(m->idle[--m->idle_count]);
            continue;
        }
        runs_t *i = next_to_ask(m);
        if (i == NULL) {
            break;
        }
        ask(i, false);
        settle_limiter();
    }
}

/* ---- events -------------------------------------------------------------- */

static void
send_answer(item_t *item)
{
    inf_response_t *response = NULL;
    inf_factory_t *f = &item->factory;

    if (item->cancelled && one_in(2)) {     /* the backend looked            */
        inf_factory_send_error(f, inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    } else if (!sim.calm && one_in(16)) {
        item->fails = true;
        inf_factory_send_error(f, inf_err_new(INF_ERR_INTERNAL, "no luck"));
    } else {
        inf_err_t *err = answer_with(f, item->value, &response);
        check(err == NULL, "no answer");
        inf_response_send(response, INF_SEND_FINAL, NULL);
    }
}

static void
finish(runs_t *i)
{
    server_model_t *m = i->model;
    inf_link_t *link;

    sim.running--;
    while ((link = inf_list_pop_front(&i->requests)) != NULL) {
        item_t *item = item_of(inf_link_entry(link, inf_request_t, link));
        bool first = one_in(2);             /* released before its answer    */

        inf_factory_ref(&item->factory);
        if (first) {
            inf_request_release(&item->req, 1);
        }
        core(send_answer(item));
        if (!first) {
            inf_request_release(&item->req, 1);
        }
        core(inf_factory_unref(&item->factory));
    }

    bool more = m->policy->queued > 0 && has_work(m);
    give_back(i, true);
    if (sim.limits && more) {
        ask(i, true);
    } else {
        make_idle(i);
    }
    if (sim.limits) {
        settle_limiter();
    }
}

static void
cancel(item_t *item)
{
    server_model_t *m = item->model;

    if (item->place == FREE || item->place == ANSWERED
        || !inf_factory_try_ref(&item->factory))
    {
        return;
    }
    atomic_store(&item->factory.cancelled, true);
    item->cancelled = true;
    bool waited = item->place != RUNNING;
    if ((m->model->sched.gate != NULL
            && inf_gate_cancel(m->model->sched.gate, &item->req))
        || __wrap_inf_runner_cancel(m->model->sched.runner, &item->req))
    {
        core(inf_reject_cancelled(&item->req));
        check(item->place == ANSWERED || item->place == FREE, "no answer");
    } else {
        check(!waited, "a cancel is late");
    }
    inf_factory_unref(&item->factory);
    settle_model(m);
}

static void
send_one(void)
{
    server_model_t *m = &sim.models[chance(sim.model_count)];
    bool queued = true;
    inf_err_t *err;

    if (spare_count == 0) {
        return;
    }
    item_t *item = item_new(m);
    waits_for(item);
    sim.sent++;
    core(err = m->model->sched.gate != NULL
        ? inf_gate_submit(m->model->sched.gate, &item->req, sim.now, true,
            &queued)
        : inf_runner_submit(m->model->sched.runner, &item->req, sim.now));
    if (err != NULL) {                      /* it is ours still              */
        check(item->place == SENT && !item->released, "it is gone");
        check(item->factory.sink == &sink_ops, "its sink is not its own");
        inf_factory_send_error(&item->factory, err);
        inf_request_release(&item->req, 1);
        return;
    }
    settle_model(m);
}

static uint64_t
key_of(const inf_heap_t *h)
{
    return h->top != NULL ? h->top->key : UINT64_MAX;
}

static void
fire_timers(void)
{
    while (key_of(&timekeeper.timers) <= sim.now) {
        inf_timer_t *timer = inf_heap_entry(timekeeper.timers.top,
            inf_timer_t, node);
        inf_heap_remove(&timekeeper.timers, &timer->node);
        core(timer->fire(timer->userp));
    }
    while (key_of(&sim.expiries) <= sim.now) {
        expire(inf_heap_entry(sim.expiries.top, server_model_t, expiry));
    }
}

/* A request promoted by an answer is queued without a call. */
static void
settle_all(void)
{
    if (sim.limits) {
        settle_limiter();
    }
    for (uint32_t k = 0; k < sim.model_count; k++) {
        settle_model(&sim.models[k]);
    }
}

/* Nobody sleeps over work, nobody waits beyond its time. */
static void
check_rest(void)
{
    check(key_of(&sim.deadlines) > sim.now, "one waits beyond its time");
    for (uint32_t k = 0; k < sim.model_count; k++) {
        server_model_t *m = &sim.models[k];
        uint32_t queued = 0;
        for (uint32_t l = 0; l <= LEVELS; l++) {
            queued += m->queued[l];
        }
        check(m->policy->queued == queued, "%u queued, not %u",
            m->policy->queued, queued);
        check(sim.limits || m->idle_count == 0 || queued == 0
            || !has_work(m), "an instance sleeps over work");
    }
    check(sim.asking == 0 || sim.running > 0, "all wait for nobody");
}

static void
step(uint64_t *arrival, uint64_t requests)
{
    uint64_t at = least(*arrival, key_of(&sim.finishes));
    at = least(at, least(key_of(&sim.watches), key_of(&sim.expiries)));
    at = least(at, key_of(&timekeeper.timers));

    check(at != UINT64_MAX, "the world stands still");
    sim.now = at > sim.now ? at : sim.now;
    fire_timers();
    if (key_of(&sim.watches) <= sim.now) {
        server_model_t *m = inf_heap_entry(sim.watches.top, server_model_t,
            watch);
        inf_heap_remove(&sim.watches, &m->watch);
        settle_model(m);
    } else if (key_of(&sim.finishes) <= sim.now) {
        runs_t *i = inf_heap_entry(sim.finishes.top, runs_t, finish);
        inf_heap_remove(&sim.finishes, &i->finish);
        finish(i);
    } else if (*arrival <= sim.now) {
        for (uint64_t n = one_in(4) ? chance(12) : 0; ; n--) {
            send_one();
            if (n == 0) {
                break;
            }
        }
        if (sim.cancel_every > 0 && one_in(sim.cancel_every)) {
            for (int n = 0; n < 8; n++) {
                cancel(&pool[chance(POOL)]);
            }
        }
        *arrival = sim.sent >= requests ? UINT64_MAX
            : sim.now + chance(sim.gap);
    }
    settle_all();
    fire_timers();
    check_rest();
}

/* ---- rounds -------------------------------------------------------------- */

static void
put_policy(server_model_t *m, char *text, size_t size)
{
    m->timeout_us = one_in(3) ? 0 : 1 + chance(400);
    m->overrides = one_in(2);
    m->delays = m->timeout_us > 0 && !m->keeps_order && one_in(3);
    m->queue_limit = one_in(2) ? 0 : 1 + (uint32_t) chance(40);
    snprintf(text, size, "default_queue_policy { timeout_action: %s"
        " default_timeout_microseconds: %llu allow_timeout_override: %s"
        " max_queue_size: %u }", m->delays ? "DELAY" : "REJECT",
        (unsigned long long) m->timeout_us, m->overrides ? "true" : "false",
        m->queue_limit);
}

static void
configure(server_model_t *m)
{
    char policy[512] = "", batching[1024] = "", text[2048];

    m->batches = !one_in(4);
    if (m->batches) {
        m->limit = one_in(6) ? 0 : 1 + (uint32_t) chance(12);
        m->keeps_order = one_in(4);
        m->levels = m->keeps_order || one_in(2) ? 0
            : 1 + (uint32_t) chance(LEVELS);
        put_policy(m, policy, sizeof(policy));
        snprintf(batching, sizeof(batching), "dynamic_batching { %s"
            " max_queue_delay_microseconds: %llu preserve_ordering: %s"
            " priority_levels: %u default_priority_level: %u }", policy,
            (unsigned long long) (one_in(2) ? 0 : 1 + chance(150)),
            m->keeps_order ? "true" : "false", m->levels, m->levels);
    }
    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: %u"
        " input { name: 'IN' data_type: TYPE_UINT32 dims: 1 }"
        " output { name: 'OUT' data_type: TYPE_UINT32 dims: 1 } %s",
        m->limit, batching);
    m->model = inf_model_new("m", 1, "/m");
    m->model->built = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(m->model->built, &m->model->tensors));
    assert_ok(inf_policy_new(m->model, &m->policy));
    m->order = m->keeps_order ? inf_response_order_new() : NULL;
    m->model->sched.runner = (inf_runner_t *) (void *) m;
    if (one_in(2)) {
        assert_ok(inf_cached_model_new(sim.cache, m->model, &timekeeper,
            &m->model->sched.gate));
    }
}

static void
place(server_model_t *m, uint32_t first, uint32_t count)
{
    m->instances = &instances[first];
    m->idle = &idle_places[first];
    m->count = count;
    for (uint32_t k = 0; k < count; k++) {
        runs_t *i = &m->instances[k];
        *i = (runs_t) {
            .model = m, .index = k, .device = (int32_t) (k % sim.devices)
        };
        inf_link_init(&i->requests);
        i->limited.userp = i;
        i->local = (uint32_t) chance(1 + sim.local_copies);
        i->global = sim.global_copies > 0 && one_in(3)
            ? 1 + (uint32_t) chance(sim.global_copies) : 0;
        inf_rate_need_t needs[2];
        size_t n = 0;
        if (i->local > 0) {
            needs[n++] = (inf_rate_need_t) { "R", i->local, false };
        }
        if (i->global > 0) {
            needs[n++] = (inf_rate_need_t) { "G", i->global, true };
        }
        if (sim.limits) {
            assert_ok(inf_rate_limiter_add(sim.limiter, &i->limited,
                i->device, (uint32_t) chance(4), needs, n));
            while (m->instances[i->first].limited.cls != i->limited.cls) {
                i->first++;
            }
        }
        make_idle(i);
    }
}

static void
open_world(uint64_t seed, uint32_t models, uint32_t count, uint32_t devices,
    bool crowded)
{
    memset(&sim, 0, sizeof(sim));
    sim.seed = chance_state = seed;
    sim.now = 1000;
    sim.calm = one_in(4);
    sim.limits = one_in(2) || crowded;
    sim.devices = devices;
    sim.local_copies = 1 + chance(3);
    sim.global_copies = crowded ? 0 : 1 + chance(3);
    sim.values = crowded ? 1000000 : 2 + (uint32_t) chance(50);
    sim.gap = 1 + chance(one_in(2) ? 4000 : 40000);
    sim.run_ns = 1 + chance(300000);
    sim.cancel_every = sim.calm || one_in(3) ? 0 : 2 + chance(20);
    if (crowded) {                          /* work for most of them         */
        sim.gap = 4000;
        sim.run_ns = sim.gap * models * count / 4;
    }

    const inf_rate_resource_t copies[] = {
        { "R", sim.local_copies, INF_RATE_EVERY_DEVICE },
        { "G", sim.global_copies, INF_RATE_EVERY_DEVICE }
    };
    const inf_response_cache_options_t options = {
        .ops = &cache_ops, .quick = true, .secret = "simulated",
        .secret_len = 9
    };
    inf_timekeeper_init(&timekeeper);
    assert_ok(inf_rate_limiter_new(copies, 2, &sim.limiter));
    assert_ok(inf_response_cache_new(&options, &sim.cache));
    sim.model_count = models;
    for (uint32_t k = 0; k < models; k++) {
        configure(&sim.models[k]);
        place(&sim.models[k], k * count, crowded ? count
            : 1 + (uint32_t) chance(count));
    }
}

static void
close_world(void)
{
    check(spare_count == POOL, "%u requests are lost", POOL - spare_count);
    check(sim.sent == sim.rejected + sim.executed + sim.cancelled
        + sim.timed_out + sim.failed + sim.hits, "requests are lost");
    for (uint32_t k = 0; k < sim.model_count; k++) {
        server_model_t *m = &sim.models[k];
        check(m->taken == m->left, "an answer is lost");
        for (uint32_t i = 0; sim.limits && i < m->count; i++) {
            inf_rate_limiter_remove(sim.limiter, &m->instances[i].limited);
        }
        m->policy->ops->free(m->policy);
        inf_cached_model_free(m->model->sched.gate);
        m->model->sched.gate = NULL;
        m->model->sched.runner = NULL;
        inf_response_order_unref(m->order);
        inf_model_free(m->model);
    }
    inf_response_cache_free(sim.cache);
    inf_rate_limiter_free(sim.limiter);
    inf_timekeeper_fini(&timekeeper);
}

typedef struct {
    uint64_t sent, executed, hits, cancelled, timed_out, rejected, failed;
    uint64_t payloads, steps;
} totals_t;

static totals_t totals;

static void
run_world(uint64_t seed, uint32_t models, uint32_t count, uint32_t devices,
    uint64_t requests, bool crowded)
{
    open_world(seed, models, count, devices, crowded);
    steps = 0;
    uint64_t arrival = sim.now;
    while (arrival != UINT64_MAX || spare_count < POOL) {
        step(&arrival, requests);
    }
    close_world();
    totals.sent += sim.sent;
    totals.executed += sim.executed;
    totals.hits += sim.hits;
    totals.cancelled += sim.cancelled;
    totals.timed_out += sim.timed_out;
    totals.rejected += sim.rejected;
    totals.failed += sim.failed;
    totals.payloads += sim.payloads;
    totals.steps += steps;
}

static void
run_worlds(uint64_t seed, uint64_t requests)
{
    uint64_t end = totals.sent + requests;
    while (totals.sent < end) {
        run_world(seed, 1 + (uint32_t) (seed % 4), 4, 1 + seed % 2, ROUND,
            false);
        seed++;
    }
}

/* 10 models on 100 devices, an instance of each on every one. */
static void
run_crowded(uint64_t seed, uint32_t devices, uint64_t requests)
{
    uint64_t end = totals.sent + requests;
    while (totals.sent < end) {
        run_world(seed++, 10, devices, devices, 20000, true);
    }
}

static int
setup(void **state)
{
    (void) state;
    spare_count = 0;
    for (int i = 0; i < POOL; i++) {
        inf_request_init(&pool[i].req);
        inf_factory_init(&pool[i].factory);
        spare[spare_count++] = &pool[i];
    }
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    for (int i = 0; i < POOL; i++) {
        inf_request_fini(&pool[i].req);
        inf_factory_fini(&pool[i].factory);
    }
    return 0;
}

static void
nothing_is_lost_between_cache_and_limiter(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run_worlds(1, 200000);
    assert_true(totals.executed > totals.sent / 5);
    assert_true(totals.hits > 1000);
    assert_true(totals.cancelled > 1000);
    assert_true(totals.timed_out > 1000);
    assert_true(totals.rejected > 1000);
    assert_true(totals.failed > 1000);
    assert_true(totals.payloads < totals.executed + totals.failed
        + totals.cancelled);
}

static void
a_thousand_instances_stand_on_a_hundred_devices(void **state)
{
    (void) state;
    totals = (totals_t) { 0 };
    run_crowded(1000000, DEVICES, 40000);
    assert_true(totals.executed > totals.sent / 3);
}

#ifdef SIM_COSTS
static double
cost_of(uint64_t seed, uint32_t devices, uint64_t requests)
{
    totals = (totals_t) { 0 };
    run_crowded(seed, devices, requests);
    return (double) totals.steps / (double) totals.sent;
}

/* The counts are the same on every machine. */
static bool
run_costs(void)
{
    double few = 0;

    for (uint32_t devices = 1; devices <= DEVICES; devices *= 10) {
        double cost = cost_of(1, devices, 400000);
        few = devices == 1 ? cost : few;
        printf("%4u instances on %3u devices: %.0f basic blocks a request\n",
            devices * 10, devices, cost);
        if (!flat(few, cost)) {
            return false;
        }
    }
    return true;
}
#endif

static void
run_long(uint64_t requests, uint64_t seed)
{
    for (uint32_t devices = 1; devices <= DEVICES; devices *= 10) {
        totals = (totals_t) { 0 };
        if (devices == 1) {
            run_worlds(seed, requests);
        } else {
            run_crowded(seed, devices, requests / 10);
        }
        printf("%4u instances: %llu requests, %llu executed in %llu payloads,"
            " %llu hits, %llu cancelled, %llu timed out, %llu rejected, %llu"
            " failed\n", devices * 10, (unsigned long long) totals.sent,
            (unsigned long long) totals.executed,
            (unsigned long long) totals.payloads,
            (unsigned long long) totals.hits,
            (unsigned long long) totals.cancelled,
            (unsigned long long) totals.timed_out,
            (unsigned long long) totals.rejected,
            (unsigned long long) totals.failed);
    }
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_between_cache_and_limiter),
        cmocka_unit_test(a_thousand_instances_stand_on_a_hundred_devices),
    };
    static const simulation_t simulation = {
        .setup = setup, .teardown = teardown, .tests = tests,
        .test_count = sizeof(tests) / sizeof(tests[0]), .run_long = run_long,
        .run_costs = RUN_COSTS
    };
    return simulation_main(&simulation, argc, argv);
}
