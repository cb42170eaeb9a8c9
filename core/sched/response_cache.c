#include "core/sched/response_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/sched/cache_flights.h"
#include "core/sched/cache_strangers.h"
#include "core/sched/entrance.h"
#include "core/sched/refusal.h"
#include "core/sched/runtime.h"
#include "core/tensor/packed_response.h"

#define GATE_RANK     26u
#define CACHE_RANK    27u
#define HASTE_BYTES   (32u << 10)   /* about 3 us of hashing                 */
#define QUICK_THREADS 2u
#define SLOW_THREADS  4u            /* lookups that may wait for something   */
#define LOG_EVERY_NS  UINT64_C(1000000000)

/* A miss that runs: where its response goes from here, as the factory's sink;
   lives until the factory is freed. */
typedef struct cache_run_s {
    inf_cache_flight_t    flight;       /* gate's lock                       */
    struct cache_run_s   *next;         /* on a list of spare ones           */
    inf_cached_model_t   *gate;
    const inf_sink_ops_t *sink;         /* the submitter's                   */
    void                 *userp;
    inf_factory_t        *factory;
    inf_cache_key_t       key;
    uint64_t              lookup_ns;
    bool                  declined;     /* the cache wouldn't keep it        */
    _Atomic bool          settled;      /* the first response has gone       */
} cache_run_t;

struct inf_response_cache_s {
    const inf_cache_ops_t *ops;         /* set in new(), then constant       */
    void                  *cache;
    bool                   quick;
    inf_cache_secret_t     secret;
    bool                   shared;
    _Atomic uint64_t       loads;       /* cached models made so far         */
    _Atomic uint64_t       log_next_ns; /* relaxed: when errors are logged   */
    _Atomic uint64_t       unlogged;    /* relaxed: errors since             */
    _Atomic uint64_t       passed;      /* relaxed: misses without a lookup  */

    inf_lock_t             lock;        /* rank 27; guards the next two      */
    inf_link_t             models;      /* with requests to look up          */
    bool                   stopping;
    inf_cond_t             work;
    pthread_t              threads[SLOW_THREADS];   /* new, free             */
    uint32_t               thread_count;
};

struct inf_cached_model_s {
    inf_response_cache_t  *cache;       /* set in new(), then constant       */
    inf_model_t           *model;
    inf_buf_t              key;         /* what its keys begin with          */
    inf_cache_strangers_t  strangers;
    _Atomic uint64_t       largest;     /* relaxed: response stored so far   */

    inf_link_t             link;        /* in cache->models; cache's lock    */

    inf_timekeeper_t      *timekeeper;  /* NULL: nobody times out            */
    inf_timer_t            timer;

    inf_lock_t             lock;        /* rank 26; guards the next seven    */
    inf_cache_flights_t    flights;
    inf_link_t             lookups;     /* requests for the cache's threads  */
    inf_heap_t             timeouts;    /* of requests that wait here        */
    uint64_t               armed_ns;    /* the timekeeper ticks then         */
    uint32_t               waiting;     /* requests that wait here           */
    bool                   scheduled;   /* in cache->models or in a thread's
                                           hands, with a model's reference   */
    cache_run_t           *spare;
    _Atomic(cache_run_t *) returned;    /* pushed by any thread              */
};

static void *lookup_main(void *arg);
static inf_cached_model_t *next_model(inf_response_cache_t *cache);
static void schedule(inf_cached_model_t *gate);
static void look_up_one(inf_cached_model_t *gate);
static inf_err_t *pass(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t now_ns, bool *queued);
static bool may_look_up_now(const inf_cached_model_t *gate, uint64_t bytes);
static void park(inf_cached_model_t *gate, inf_request_t *req);
static bool watch_locked(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t at_ns) INF_NEEDS(gate->lock);
static void unwatch_locked(inf_cached_model_t *gate, inf_request_t *req)
    INF_NEEDS(gate->lock);
static void unwatch_all_locked(inf_cached_model_t *gate,
    const inf_link_t *list) INF_NEEDS(gate->lock);
static void gate_tick(void *userp);
static uint64_t refuses_at(const inf_cached_model_t *gate,
    const inf_request_t *req);
static inf_err_t *look_up(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t now_ns, bool *queued);
static inf_err_t *miss(inf_cached_model_t *gate, inf_request_t *req,
    inf_cache_key_t key, bool declined, bool *queued);
static inf_err_t *execute(inf_cached_model_t *gate, cache_run_t *run,
    inf_request_t *req);
static void answer(inf_request_t *req, inf_response_t *response,
    uint64_t start_ns, uint64_t took_ns);
static void answer_error(inf_request_t *req, inf_err_t *err);

static void run_start(void *userp);
static inf_err_t *run_alloc(void *userp, inf_output_t *out, size_t size);
static void run_release(void *userp, inf_output_t *out);
static bool run_share(void *userp, inf_output_t *out);
static void run_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_err_t *run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id);
static void run_factory_free(void *userp, inf_factory_t *factory);
static void settle(cache_run_t *run, const inf_response_t *response);
static void count_miss(inf_model_t *model, uint64_t took_ns);
static bool in_host_memory(const inf_response_t *response);
static uint64_t store(cache_run_t *run, const inf_response_t *response);
static void share(cache_run_t *run, const inf_response_t *response);
static void pass_on(cache_run_t *run);
static void let_go(cache_run_t *run);
static void run_alone(inf_cached_model_t *gate, inf_request_t *req,
    inf_cache_key_t key);
static void promote(inf_cached_model_t *gate, cache_run_t *run,
    inf_request_t *req);

static cache_run_t *run_take(inf_cached_model_t *gate);
static cache_run_t *run_pop_locked(inf_cached_model_t *gate)
    INF_NEEDS(gate->lock);
static void run_give(cache_run_t *run);
static void run_list_free(cache_run_t *run);
static void log_trouble(inf_cached_model_t *gate, inf_err_t *err,
    const char *what);

/* Both kinds of submitters: with and without the operation query. */
static const inf_sink_ops_t run_sink = {
    .start = run_start,
    .alloc = run_alloc,
    .release = run_release,
    .share = run_share,
    .complete = run_complete,
    .factory_free = run_factory_free
};
static const inf_sink_ops_t run_sink_query = {
    .start = run_start,
    .alloc = run_alloc,
    .release = run_release,
    .share = run_share,
    .complete = run_complete,
    .query = run_query,
    .factory_free = run_factory_free
};

inf_err_t *
inf_response_cache_new(const inf_response_cache_options_t *options,
    inf_response_cache_t **out)
{
    inf_response_cache_t *cache = aligned_alloc(_Alignof(inf_response_cache_t),
        sizeof(*cache));
    if (cache == NULL) {
        return inf_err_nomem();
    }

    memset(cache, 0, sizeof(*cache));
    inf_lock_init(&cache->lock, CACHE_RANK);
    inf_cond_init(&cache->work);
    inf_link_init(&cache->models);
    cache->ops = options->ops;
    cache->cache = options->cache;
    cache->quick = options->quick;
    cache->shared = options->shared;

    inf_err_t *err = NULL;
    if (options->shared) {
        inf_cache_secret_constant(&cache->secret);
    } else {
        err = inf_cache_secret_random(&cache->secret);
    }

    uint32_t wanted = cache->quick ? QUICK_THREADS : SLOW_THREADS;
    while (err == NULL && cache->thread_count < wanted) {
        pthread_t *thread = &cache->threads[cache->thread_count];
        int rc = pthread_create(thread, NULL, lookup_main, cache);
        if (rc != 0) {
            err = inf_err_os(rc, "cannot start a lookup thread");
            break;
        }
        pthread_setname_np(*thread, "cache lookup");
        cache->thread_count++;
    }

    if (err != NULL) {
        inf_response_cache_free(cache);
        return err;
    }
    *out = cache;
    return NULL;
}

void
inf_response_cache_free(inf_response_cache_t *cache)
{
    if (cache == NULL) {
        return;
    }

    inf_lock(&cache->lock);
    cache->stopping = true;
    inf_unlock(&cache->lock);
    inf_cond_broadcast(&cache->work);

    for (uint32_t i = 0; i < cache->thread_count; i++) {
        pthread_join(cache->threads[i], NULL);
    }

    inf_cond_fini(&cache->work);
    inf_lock_fini(&cache->lock);
    free(cache);
}

bool
inf_response_cache_counts(const inf_response_cache_t *cache,
    inf_cache_counts_t *out)
{
    if (!cache->ops->counts(cache->cache, out)) {
        return false;
    }

    out->misses += atomic_load_explicit(&cache->passed, memory_order_relaxed);
    return true;
}

inf_err_t *
inf_cached_model_new(inf_response_cache_t *cache, inf_model_t *model,
    inf_timekeeper_t *timekeeper, inf_cached_model_t **out)
{
    inf_cached_model_t *gate = calloc(1, sizeof(*gate));
    if (gate == NULL) {
        return inf_err_nomem();
    }

    uint64_t load = atomic_fetch_add(&cache->loads, 1) + 1;
    inf_buf_init(&gate->key);
    inf_cache_key_model(model, cache->shared ? 0 : load, &gate->key);
    inf_err_t *err = inf_buf_status(&gate->key);
    if (err == NULL) {
        err = inf_cache_strangers_init(&gate->strangers);
    }
    if (err == NULL && timekeeper != NULL) {
        gate->timer.fire = gate_tick;
        gate->timer.userp = gate;
        err = inf_timekeeper_add(timekeeper, &gate->timer);
    }
    if (err != NULL) {
        inf_cache_strangers_fini(&gate->strangers);
        inf_buf_fini(&gate->key);
        free(gate);
        return err;
    }

    gate->cache = cache;
    gate->model = model;
    gate->timekeeper = timekeeper;
    gate->armed_ns = INF_NEVER;
    inf_link_init(&gate->link);
    inf_lock_init(&gate->lock, GATE_RANK);
    inf_cache_flights_init(&gate->flights);
    inf_link_init(&gate->lookups);
    *out = gate;
    return NULL;
}

void
inf_cached_model_free(inf_cached_model_t *gate)
{
    if (gate == NULL) {
        return;
    }

    if (gate->timekeeper != NULL) {
        inf_timekeeper_remove(gate->timekeeper, &gate->timer);
    }
    run_list_free(gate->spare);
    run_list_free(atomic_load_explicit(&gate->returned,
        memory_order_acquire));
    inf_lock_fini(&gate->lock);
    inf_cache_strangers_fini(&gate->strangers);
    inf_buf_fini(&gate->key);
    free(gate);
}

inf_err_t *
inf_cached_submit(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t now_ns, bool haste, bool *queued)
{
    uint64_t bytes;

    if (!inf_cache_key_bytes(req, &bytes)) {
        *queued = true;
        return inf_entrance_execute(gate->model, req, now_ns);
    }

    if (inf_cache_strangers_pass(&gate->strangers, req)) {
        return pass(gate, req, now_ns, queued);
    }

    req->queue_ns = now_ns;
    if (haste && !may_look_up_now(gate, bytes)) {
        *queued = false;
        park(gate, req);
        return NULL;
    }
    return look_up(gate, req, now_ns, queued);
}

/* A miss that nobody has looked for. */
static inf_err_t *
pass(inf_cached_model_t *gate, inf_request_t *req, uint64_t now_ns,
    bool *queued)
{
    count_miss(gate->model, 0);
    atomic_fetch_add_explicit(&gate->cache->passed, 1, memory_order_relaxed);

    *queued = true;
    return inf_entrance_execute(gate->model, req, now_ns);
}

bool
inf_cached_cancel(inf_cached_model_t *gate, inf_request_t *req)
{
    inf_lock(&gate->lock);
    bool parked = atomic_load_explicit(&req->state, memory_order_relaxed)
        == INF_REQUEST_PARKED;
    if (parked) {
        inf_link_remove(&req->link);
        unwatch_locked(gate, req);
        inf_request_move(req, INF_REQUEST_EXECUTING);
    }
    inf_unlock(&gate->lock);
    return parked;
}

uint32_t
inf_cached_waiting(inf_cached_model_t *gate)
{
    inf_lock(&gate->lock);
    uint32_t n = gate->waiting;
    inf_unlock(&gate->lock);
    return n;
}

static void *
lookup_main(void *arg)
{
    inf_response_cache_t *cache = arg;
    inf_cached_model_t *gate;

    while ((gate = next_model(cache)) != NULL) {
        look_up_one(gate);
    }
    return NULL;
}

/* NULL: the thread ends. */
static inf_cached_model_t *
next_model(inf_response_cache_t *cache)
{
    inf_link_t *link;

    inf_lock(&cache->lock);
    while ((link = inf_list_pop_front(&cache->models)) == NULL
        && !cache->stopping)
    {
        inf_cond_wait(&cache->work, &cache->lock);
    }
    inf_unlock(&cache->lock);

    return link != NULL ? inf_link_entry(link, inf_cached_model_t, link)
        : NULL;
}

static void
schedule(inf_cached_model_t *gate)
{
    inf_response_cache_t *cache = gate->cache;

    inf_lock(&cache->lock);
    inf_list_push_back(&cache->models, &gate->link);
    inf_unlock(&cache->lock);
    inf_cond_signal(&cache->work);
}

/* The first request that waits for a lookup, after the model has its place
   behind the others again. */
static void
look_up_one(inf_cached_model_t *gate)
{
    inf_model_t *model = gate->model;
    inf_request_t *req = NULL;
    bool queued;

    inf_lock(&gate->lock);
    inf_link_t *link = inf_list_pop_front(&gate->lookups);
    if (link != NULL) {
        req = inf_link_entry(link, inf_request_t, link);
        unwatch_locked(gate, req);
        inf_request_move(req, INF_REQUEST_EXECUTING);
    }
    bool more = !inf_list_empty(&gate->lookups);
    gate->scheduled = more;
    inf_unlock(&gate->lock);

    if (more) {
        schedule(gate);
    }
    if (req != NULL) {
        inf_err_t *err = look_up(gate, req, inf_clock_ns(), &queued);
        if (err != NULL) {
            answer_error(req, err);
        }
    }
    if (!more) {
        inf_model_unref(model);
    }
}

static bool
may_look_up_now(const inf_cached_model_t *gate, uint64_t bytes)
{
    uint64_t largest = atomic_load_explicit(&gate->largest,
        memory_order_relaxed);
    return gate->cache->quick && bytes <= HASTE_BYTES
        && largest <= HASTE_BYTES;
}

static void
park(inf_cached_model_t *gate, inf_request_t *req)
{
    uint64_t at_ns = refuses_at(gate, req);
    inf_model_ref(gate->model);

    inf_lock(&gate->lock);
    inf_request_move(req, INF_REQUEST_PARKED);
    inf_list_push_back(&gate->lookups, &req->link);
    bool first = watch_locked(gate, req, at_ns);
    bool scheduled = gate->scheduled;
    gate->scheduled = true;
    inf_unlock(&gate->lock);

    /* req may be gone, and its reference to the model with it */
    if (first) {
        inf_timekeeper_arm(gate->timekeeper, &gate->timer, at_ns);
    }
    if (scheduled) {
        inf_model_unref(gate->model);
    } else {
        schedule(gate);
    }
}

/* req waits here from now on.  true: the timekeeper must hear of at_ns. */
static bool
watch_locked(inf_cached_model_t *gate, inf_request_t *req, uint64_t at_ns)
{
    gate->waiting++;
    if (at_ns == INF_NEVER) {
        return false;
    }

    inf_heap_push(&gate->timeouts, &req->queued.timeout, at_ns);
    if (at_ns >= gate->armed_ns) {
        return false;
    }
    gate->armed_ns = at_ns;
    return true;
}

static void
unwatch_locked(inf_cached_model_t *gate, inf_request_t *req)
{
    gate->waiting--;
    inf_heap_remove(&gate->timeouts, &req->queued.timeout);
}

static void
unwatch_all_locked(inf_cached_model_t *gate, const inf_link_t *list)
{
    for (inf_link_t *l = list->next; l != list; l = l->next) {
        unwatch_locked(gate, inf_link_entry(l, inf_request_t, link));
    }
}

/* The timekeeper calls: requests have waited here too long. */
static void
gate_tick(void *userp)
{
    inf_cached_model_t *gate = userp;
    uint64_t now = inf_clock_ns();
    inf_heap_node_t *node;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&gate->lock);
    while ((node = gate->timeouts.top) != NULL && node->key <= now) {
        inf_request_queued_t *queued = inf_heap_entry(node,
            inf_request_queued_t, timeout);
        inf_request_t *req = inf_link_entry(queued, inf_request_t, queued);
        unwatch_locked(gate, req);
        inf_link_remove(&req->link);
        inf_request_move(req, INF_REQUEST_EXECUTING);
        inf_list_push_back(&gone, &req->link);
    }
    gate->armed_ns = node != NULL ? node->key : INF_NEVER;
    uint64_t at_ns = gate->armed_ns;
    inf_unlock(&gate->lock);

    if (at_ns != INF_NEVER) {
        inf_timekeeper_arm(gate->timekeeper, &gate->timer, at_ns);
    }
    inf_refuse_gone(&gone);
}

/* An ensemble refuses nobody for waiting, its models do. */
static uint64_t
refuses_at(const inf_cached_model_t *gate, const inf_request_t *req)
{
    return gate->timekeeper == NULL || gate->model->runner == NULL ? INF_NEVER
        : inf_runner_refuses_at(gate->model->runner, req, req->queue_ns);
}

/* On error the caller still owns req. */
static inf_err_t *
look_up(inf_cached_model_t *gate, inf_request_t *req, uint64_t now_ns,
    bool *queued)
{
    const inf_response_cache_t *cache = gate->cache;
    char text[INF_CACHE_KEY_TEXT];
    inf_response_t *response = NULL;

    inf_cache_span_t span = { .start_ns = now_ns };
    inf_cache_key_t key = inf_cache_key(&cache->secret,
        inf_buf_slice(&gate->key), req);
    inf_cache_key_write(key, text);
    inf_err_t *err = cache->ops->lookup(cache->cache, text, req->factory,
        &response, &span);
    req->lookup_ns = span.end_ns - span.start_ns;

    if (err == NULL && response != NULL) {
        inf_cache_strangers_hit(&gate->strangers);
        *queued = false;
        answer(req, response, span.start_ns, req->lookup_ns);
        return NULL;
    }
    if (err != NULL) {
        log_trouble(gate, err, "lookup");
    }
    inf_cache_strangers_missed(&gate->strangers, span.futile);
    return miss(gate, req, key, span.declines, queued);
}

static inf_err_t *
miss(inf_cached_model_t *gate, inf_request_t *req, inf_cache_key_t key,
    bool declined, bool *queued)
{
    uint64_t at_ns = refuses_at(gate, req);
    *queued = true;
    inf_lock(&gate->lock);
    cache_run_t *run = run_pop_locked(gate);
    if (run == NULL) {
        inf_unlock(&gate->lock);
        run = run_take(gate);
        if (run == NULL) {
            return inf_entrance_execute(gate->model, req, req->queue_ns);
        }
        inf_lock(&gate->lock);
    }
    run->key = key;
    run->declined = declined;

    /* a cancel sets the flag first and then looks for the request here */
    bool gone = atomic_load_explicit(&req->state, memory_order_relaxed)
        == INF_REQUEST_EXECUTING
        && atomic_load_explicit(&req->factory->cancelled,
            memory_order_relaxed);
    bool leads = !gone && inf_cache_flights_join(&gate->flights, &run->flight,
        key, req);
    bool first = !gone && !leads && watch_locked(gate, req, at_ns);
    if (!leads) {
        run->next = gate->spare;
        gate->spare = run;
    }
    if (first) {                /* req's reference to the model may go       */
        inf_model_ref(gate->model);
    }
    inf_unlock(&gate->lock);

    if (leads) {
        inf_err_t *err = execute(gate, run, req);
        if (err != NULL) {
            let_go(run);
            run_give(run);
        }
        return err;
    }

    *queued = false;
    if (first) {
        inf_timekeeper_arm(gate->timekeeper, &gate->timer, at_ns);
        inf_model_unref(gate->model);
    }
    if (gone) {
        inf_refuse_cancelled(req);
    }
    return NULL;
}

/* Takes run on success; on error the caller owns both, and req is as it was
   but for its state. */
static inf_err_t *
execute(inf_cached_model_t *gate, cache_run_t *run, inf_request_t *req)
{
    inf_factory_t *f = req->factory;

    run->factory = f;
    run->sink = f->sink;
    run->userp = f->userp;
    run->lookup_ns = req->lookup_ns;
    atomic_store_explicit(&run->settled, false, memory_order_relaxed);
    f->sink = run->sink->query != NULL ? &run_sink_query : &run_sink;
    f->userp = run;

    inf_err_t *err = inf_entrance_execute(gate->model, req, req->queue_ns);
    if (err != NULL) {
        f->sink = run->sink;
        f->userp = run->userp;
    }
    return err;
}

/* A hit; start and took are the lookup's. */
static void
answer(inf_request_t *req, inf_response_t *response, uint64_t start_ns,
    uint64_t took_ns)
{
    inf_factory_t *f = req->factory;
    inf_model_t *model = req->model;
    uint64_t now = inf_clock_ns();

    inf_statistics_cache_hit(&model->statistics, req->start_ns, req->queue_ns,
        start_ns, took_ns, now);
    if (model->latencies != NULL) {
        inf_latencies_first_response(model->latencies, req->start_ns, now);
        inf_latencies_hit(model->latencies, req->queue_ns, start_ns, took_ns,
            now);
        if (model->latencies->histogram) {
            inf_statistics_observe_hit(&model->statistics, req->start_ns,
                req->queue_ns, start_ns, now);
        }
    }
    atomic_store_explicit(&f->final, true, memory_order_relaxed);
    inf_response_send(response, INF_SEND_FINAL, NULL);
    inf_request_release(req, 1);
}

static void
answer_error(inf_request_t *req, inf_err_t *err)
{
    inf_factory_send_error(req->factory, err);
    inf_request_release(req, 1);
}

static void
run_start(void *userp)
{
    const cache_run_t *run = userp;
    if (run->sink->start != NULL) {
        run->sink->start(run->userp);
    }
}

static inf_err_t *
run_alloc(void *userp, inf_output_t *out, size_t size)
{
    const cache_run_t *run = userp;
    return run->sink->alloc(run->userp, out, size);
}

static void
run_release(void *userp, inf_output_t *out)
{
    const cache_run_t *run = userp;
    run->sink->release(run->userp, out);
}

static bool
run_share(void *userp, inf_output_t *out)
{
    const cache_run_t *run = userp;
    return run->sink->share != NULL && run->sink->share(run->userp, out);
}

static void
run_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    cache_run_t *run = userp;

    if (response != NULL || (flags & INF_SEND_FINAL)) {
        settle(run, response);
    }
    run->sink->complete(run->userp, response, flags);
}

static inf_err_t *
run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id)
{
    const cache_run_t *run = userp;
    return run->sink->query(run->userp, name, size, memory_type, memory_id);
}

/* The submitter's part drops the model, and the gate with it: last. */
static void
run_factory_free(void *userp, inf_factory_t *factory)
{
    cache_run_t *run = userp;
    const inf_sink_ops_t *sink = run->sink;
    void *inner = run->userp;

    settle(run, NULL);
    factory->sink = sink;
    factory->userp = inner;
    run_give(run);
    sink->factory_free(inner, factory);
}

/* The first response, or the end without any, decides for all who wait. */
static void
settle(cache_run_t *run, const inf_response_t *response)
{
    if (atomic_exchange_explicit(&run->settled, true, memory_order_acq_rel)) {
        return;
    }

    bool good = response != NULL && response->err == NULL;
    bool gave_up = !good && (run->factory->refused
        || atomic_load_explicit(&run->factory->cancelled,
            memory_order_relaxed)
        || (response != NULL
            && inf_err_code(response->err) == INF_ERR_CANCELLED));
    uint64_t insert_ns = good ? store(run, response) : 0;

    count_miss(run->gate->model, run->lookup_ns + insert_ns);
    if (good && in_host_memory(response)) {
        share(run, response);
    } else if (gave_up) {
        pass_on(run);
    } else {
        let_go(run);
    }
}

static void
count_miss(inf_model_t *model, uint64_t took_ns)
{
    inf_duration_add(&model->statistics.cache_miss, took_ns);
    if (model->latencies != NULL) {
        inf_latencies_miss(model->latencies, took_ns, inf_clock_ns());
    }
}

static bool
in_host_memory(const inf_response_t *response)
{
    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        if (out->memory_type == INF_MEMORY_GPU) {
            return false;
        }
    }
    return true;
}

/* How long it took. */
static uint64_t
store(cache_run_t *run, const inf_response_t *response)
{
    inf_cached_model_t *gate = run->gate;
    const inf_response_cache_t *cache = gate->cache;
    char text[INF_CACHE_KEY_TEXT];
    uint64_t bytes = 0;

    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        bytes += out->byte_size;
    }
    if (bytes > atomic_load_explicit(&gate->largest, memory_order_relaxed)) {
        atomic_store_explicit(&gate->largest, bytes, memory_order_relaxed);
    }

    if (run->declined) {
        return 0;
    }

    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    inf_cache_key_write(run->key, text);
    inf_err_t *err = cache->ops->insert(cache->cache, text, response, &span);
    if (err != NULL && inf_err_code(err) == INF_ERR_ALREADY_EXISTS) {
        inf_err_free(err);
    } else if (err != NULL) {
        log_trouble(gate, err, "insert");
    }
    return span.end_ns - span.start_ns;
}

/* Those who waited get the same, as hits. */
static void
share(cache_run_t *run, const inf_response_t *response)
{
    inf_cached_model_t *gate = run->gate;
    inf_link_t list, *link;
    inf_link_init(&list);

    inf_lock(&gate->lock);
    inf_cache_flights_leave(&gate->flights, &run->flight, &list);
    unwatch_all_locked(gate, &list);
    inf_unlock(&gate->lock);

    if (!inf_list_empty(&list)) {
        inf_cache_strangers_hit(&gate->strangers);
    }
    while ((link = inf_list_pop_front(&list)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        inf_response_t *copy;
        uint64_t start = inf_clock_ns();

        inf_err_t *err = inf_response_new(req->factory, &copy);
        if (err == NULL) {
            err = inf_response_copy(response, copy);
        }
        if (err == NULL) {
            answer(req, copy, start,
                req->lookup_ns + inf_clock_ns() - start);
            continue;
        }

        inf_response_free(copy);
        inf_statistics_failure(&req->model->statistics, req->start_ns,
            inf_clock_ns());
        answer_error(req, err);
    }
}

/* The next one runs, the others wait for it. */
static void
pass_on(cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    cache_run_t *heir = run_take(gate);
    if (heir == NULL) {
        let_go(run);
        return;
    }
    heir->key = run->key;

    inf_lock(&gate->lock);
    inf_request_t *req = inf_cache_flights_pass(&gate->flights, &run->flight,
        &heir->flight);
    if (req != NULL) {
        unwatch_locked(gate, req);
    }
    inf_unlock(&gate->lock);

    if (req == NULL) {
        run_give(heir);
    } else {
        promote(gate, heir, req);
    }
}

/* Those who waited run by themselves, each. */
static void
let_go(cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    inf_cache_key_t key = run->key;
    inf_link_t list, *link;
    inf_link_init(&list);

    inf_lock(&gate->lock);
    inf_cache_flights_leave(&gate->flights, &run->flight, &list);
    unwatch_all_locked(gate, &list);
    inf_unlock(&gate->lock);

    while ((link = inf_list_pop_front(&list)) != NULL) {
        run_alone(gate, inf_link_entry(link, inf_request_t, link), key);
    }
}

static void
run_alone(inf_cached_model_t *gate, inf_request_t *req, inf_cache_key_t key)
{
    cache_run_t *run = run_take(gate);
    if (run != NULL) {
        run->key = key;
        run->declined = false;
        promote(gate, run, req);
        return;
    }

    inf_err_t *err = inf_entrance_execute(gate->model, req, req->queue_ns);
    if (err != NULL) {
        answer_error(req, err);
    }
}

/* Takes both.  A runner that refuses req refuses those behind it too. */
static void
promote(inf_cached_model_t *gate, cache_run_t *run, inf_request_t *req)
{
    inf_err_t *err = execute(gate, run, req);
    if (err == NULL) {
        return;
    }

    inf_link_t list, *link;
    inf_link_init(&list);
    inf_lock(&gate->lock);
    inf_cache_flights_leave(&gate->flights, &run->flight, &list);
    unwatch_all_locked(gate, &list);
    inf_unlock(&gate->lock);

    while ((link = inf_list_pop_front(&list)) != NULL) {
        answer_error(inf_link_entry(link, inf_request_t, link),
            inf_err_copy(err));
    }
    run_give(run);
    answer_error(req, err);         /* last: it may hold the model           */
}

/* A run that is listed nowhere; NULL: out of memory. */
static cache_run_t *
run_take(inf_cached_model_t *gate)
{
    inf_lock(&gate->lock);
    cache_run_t *run = run_pop_locked(gate);
    inf_unlock(&gate->lock);

    if (run == NULL) {
        run = calloc(1, sizeof(*run));
        if (run != NULL) {
            run->gate = gate;
        }
    }
    return run;
}

static cache_run_t *
run_pop_locked(inf_cached_model_t *gate)
{
    cache_run_t *run = gate->spare;
    if (run == NULL) {
        run = atomic_exchange_explicit(&gate->returned, NULL,
            memory_order_acquire);
    }
    if (run != NULL) {
        gate->spare = run->next;
        run->next = NULL;
    }
    return run;
}

static void
run_give(cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    cache_run_t *head = atomic_load_explicit(&gate->returned,
        memory_order_relaxed);

    do {
        run->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&gate->returned, &head,
        run, memory_order_release, memory_order_relaxed));
}

static void
run_list_free(cache_run_t *run)
{
    while (run != NULL) {
        cache_run_t *next = run->next;
        free(run);
        run = next;
    }
}

/* Takes err.  A cache in trouble is in trouble with every request. */
static void
log_trouble(inf_cached_model_t *gate, inf_err_t *err, const char *what)
{
    inf_response_cache_t *cache = gate->cache;
    uint64_t now = inf_clock_ns();
    uint64_t next = atomic_load_explicit(&cache->log_next_ns,
        memory_order_relaxed);

    if (now < next || !atomic_compare_exchange_strong_explicit(
            &cache->log_next_ns, &next, now + LOG_EVERY_NS,
            memory_order_relaxed, memory_order_relaxed))
    {
        atomic_fetch_add_explicit(&cache->unlogged, 1, memory_order_relaxed);
        inf_err_free(err);
        return;
    }

    uint64_t more = atomic_exchange_explicit(&cache->unlogged, 0,
        memory_order_relaxed);
    inf_log(INF_LOG_ERROR, "model=%s version=%lld: response cache: %s failed:"
        " %s; requests are served without it (%llu such errors before)",
        gate->model->name, (long long) gate->model->version, what,
        inf_err_msg(err), (unsigned long long) more);
    inf_err_free(err);
}
