#include "core/cache/response_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/cache/cache_run.h"
#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/sched/runtime.h"

#define GATE_RANK     26u
#define CACHE_RANK    27u
#define NONBLOCKING_BYTES (4u << 10)    /* a few us of hashing               */
#define QUICK_THREADS 2u
#define LOG_EVERY_NS  UINT64_C(1000000000)

static inf_err_t *random_hash(inf_cache_hash_t **out);
static void *lookup_main(void *arg);
static inf_err_t *gate_submit(inf_gate_t *base, inf_request_t *req,
    uint64_t now_ns, bool nonblocking, bool *queued);
static bool has_history(const inf_cached_model_t *gate,
    const inf_request_t *req);
static bool gate_cancel(inf_gate_t *base, inf_request_t *req);
static uint32_t gate_waiting(inf_gate_t *base);
static inf_cached_model_t *of(inf_gate_t *base);
static inf_cached_model_t *next_model(inf_response_cache_t *cache);
static void schedule(inf_cached_model_t *gate);
static void look_up_one(inf_cached_model_t *gate);
static bool may_look_up_inline(const inf_cached_model_t *gate, uint64_t bytes);
static void park(inf_cached_model_t *gate, inf_request_t *req);
static bool watch_locked(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t at_ns) INF_NEEDS(gate->lock);
static void gate_tick(void *userp);
static uint64_t rejects_at(const inf_cached_model_t *gate,
    const inf_request_t *req);
static inf_err_t *look_up(inf_cached_model_t *gate, inf_request_t *req,
    uint64_t now_ns, bool *queued);
static inf_err_t *miss(inf_cached_model_t *gate, inf_request_t *req,
    inf_cache_key_t key, bool *queued);

static const inf_gate_ops_t gate_ops = {
    .submit  = gate_submit,
    .cancel  = gate_cancel,
    .waiting = gate_waiting
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
    cache->shared = options->secret != NULL;

    inf_err_t *err = options->secret == NULL ? random_hash(&cache->hash)
        : inf_cache_hash_new(options->secret, options->secret_len,
            &cache->hash);

    uint32_t wanted = cache->quick ? QUICK_THREADS : INF_CACHE_SLOW_THREADS;
    while (err == NULL && cache->thread_count < wanted) {
        err = inf_thread_start(&cache->threads[cache->thread_count],
            "cache lookup", lookup_main, cache);
        cache->thread_count += err == NULL;
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

    inf_cache_hash_free(cache->hash);
    inf_cond_fini(&cache->work);
    inf_lock_fini(&cache->lock);
    free(cache);
}

static inf_err_t *
random_hash(inf_cache_hash_t **out)
{
    unsigned char secret[INF_CACHE_HASH_BYTES];

    if (getentropy(secret, sizeof(secret)) != 0) {
        return inf_err_os(errno, "cannot get random bytes");
    }
    return inf_cache_hash_new(secret, sizeof(secret), out);
}

bool
inf_response_cache_counts(const inf_response_cache_t *cache,
    inf_cache_counts_t *out)
{
    return cache->ops->counts(cache->cache, out);
}

inf_err_t *
inf_cached_model_new(inf_response_cache_t *cache, inf_model_t *model,
    inf_timekeeper_t *timekeeper, inf_gate_t **out)
{
    inf_cached_model_t *gate = calloc(1, sizeof(*gate));
    if (gate == NULL) {
        return inf_err_nomem();
    }

    uint64_t load = atomic_fetch_add(&cache->loads, 1) + 1;
    inf_buf_init(&gate->key);
    inf_cache_key_model(model, cache->shared ? 0 : load, &gate->key);
    inf_err_t *err = inf_buf_status(&gate->key);
    if (err == NULL && timekeeper != NULL) {
        gate->timer.fire = gate_tick;
        gate->timer.userp = gate;
        err = inf_timekeeper_add(timekeeper, &gate->timer);
    }
    if (err != NULL) {
        inf_buf_fini(&gate->key);
        free(gate);
        return err;
    }

    gate->gate.ops = &gate_ops;
    gate->cache = cache;
    gate->model = model;
    gate->timekeeper = timekeeper;
    gate->armed_ns = INF_NEVER;
    inf_link_init(&gate->link);
    inf_lock_init(&gate->lock, GATE_RANK);
    inf_cache_executions_init(&gate->executions);
    inf_link_init(&gate->lookups);
    *out = &gate->gate;
    return NULL;
}

void
inf_cached_model_free(inf_gate_t *base)
{
    if (base == NULL) {
        return;
    }

    inf_cached_model_t *gate = of(base);

    if (gate->timekeeper != NULL) {
        inf_timekeeper_remove(gate->timekeeper, &gate->timer);
    }
    inf_cache_runs_free(gate);
    inf_lock_fini(&gate->lock);
    inf_buf_fini(&gate->key);
    free(gate);
}

static inf_err_t *
gate_submit(inf_gate_t *base, inf_request_t *req, uint64_t now_ns,
    bool nonblocking,
    bool *queued)
{
    inf_cached_model_t *gate = of(base);
    uint64_t bytes;

    if (has_history(gate, req) || !inf_cache_key_bytes(req, &bytes)) {
        *queued = true;
        return inf_entrance_execute(gate->model, req, now_ns);
    }

    req->queue_ns = now_ns;
    if (nonblocking && !may_look_up_inline(gate, bytes)) {
        *queued = false;
        park(gate, req);
        return NULL;
    }
    return look_up(gate, req, now_ns, queued);
}

/* Whether the response may depend on earlier requests: req is of a sequence of
   an ensemble, whose composing models may have states. */
static bool
has_history(const inf_cached_model_t *gate, const inf_request_t *req)
{
    return gate->model->sched.runner == NULL && (req->flags != 0
        || req->correlation_id != 0 || req->correlation_text != NULL);
}

static bool
gate_cancel(inf_gate_t *base, inf_request_t *req)
{
    inf_cached_model_t *gate = of(base);

    inf_lock(&gate->lock);
    bool parked = atomic_load_explicit(&req->state, memory_order_relaxed)
        == INF_REQUEST_PARKED;
    if (parked) {
        inf_link_remove(&req->link);
        inf_cached_unwatch_locked(gate, req);
        inf_request_move(req, INF_REQUEST_EXECUTING);
    }
    inf_unlock(&gate->lock);
    return parked;
}

static uint32_t
gate_waiting(inf_gate_t *base)
{
    inf_cached_model_t *gate = of(base);

    inf_lock(&gate->lock);
    uint32_t n = gate->waiting;
    inf_unlock(&gate->lock);
    return n;
}

static inf_cached_model_t *
of(inf_gate_t *base)
{
    return (inf_cached_model_t *) (void *) base;
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

/* Waits for a model with lookups; NULL: the thread ends. */
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

/* Looks up the first waiting request, after moving the model behind the
   others. */
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
        inf_cached_unwatch_locked(gate, req);
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
            inf_cached_answer_error(req, err);
        }
    }
    if (!more) {
        inf_model_unref(model);
    }
}

static bool
may_look_up_inline(const inf_cached_model_t *gate, uint64_t bytes)
{
    uint64_t largest = atomic_load_explicit(&gate->largest,
        memory_order_relaxed);
    return gate->cache->quick && bytes <= NONBLOCKING_BYTES
        && largest <= NONBLOCKING_BYTES;
}

static void
park(inf_cached_model_t *gate, inf_request_t *req)
{
    uint64_t at_ns = rejects_at(gate, req);
    inf_model_ref(gate->model);

    inf_lock(&gate->lock);
    inf_request_move(req, INF_REQUEST_PARKED);
    inf_list_push_back(&gate->lookups, &req->link);
    bool first = watch_locked(gate, req, at_ns);
    bool scheduled = gate->scheduled;
    gate->scheduled = true;
    inf_unlock(&gate->lock);

    /* req may be freed, and its reference to the model dropped */
    if (first) {
        inf_timekeeper_arm(gate->timekeeper, &gate->timer, at_ns);
    }
    if (scheduled) {
        inf_model_unref(gate->model);
    } else {
        schedule(gate);
    }
}

/* Notes that req waits here.  true: the caller must arm the timekeeper for
   at_ns. */
static bool
watch_locked(inf_cached_model_t *gate, inf_request_t *req, uint64_t at_ns)
{
    gate->waiting++;
    if (at_ns == INF_NEVER) {
        return false;
    }

    inf_heap_push(&gate->timeouts, &req->timeout, at_ns);
    if (at_ns >= gate->armed_ns) {
        return false;
    }
    gate->armed_ns = at_ns;
    return true;
}

/* Called by the timekeeper: rejects requests that have waited too long. */
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
        inf_request_t *req = inf_heap_entry(node, inf_request_t, timeout);
        inf_cached_unwatch_locked(gate, req);
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
    inf_reject_gone(&gone);
}

/* The time limit of req; an ensemble has none, only its composing models do. */
static uint64_t
rejects_at(const inf_cached_model_t *gate, const inf_request_t *req)
{
    const inf_runner_t *runner = gate->model->sched.runner;

    return gate->timekeeper == NULL || runner == NULL ? INF_NEVER
        : inf_runner_rejects_at(runner, req, req->queue_ns);
}

/* Looks up req; on error the caller still owns req. */
static inf_err_t *
look_up(inf_cached_model_t *gate, inf_request_t *req, uint64_t now_ns,
    bool *queued)
{
    const inf_response_cache_t *cache = gate->cache;
    char text[INF_CACHE_KEY_TEXT];
    inf_response_t *response = NULL;
    inf_cache_key_t key;

    if (!inf_cache_key(cache->hash, inf_buf_slice(&gate->key), req, &key)) {
        *queued = true;
        return inf_entrance_execute(gate->model, req, req->queue_ns);
    }

    inf_cache_span_t span = { .start_ns = now_ns };
    inf_cache_key_write(&key, text);
    inf_err_t *err = cache->ops->lookup(cache->cache, text, req->factory,
        &response, &span);
    req->cache.lookup_ns = span.end_ns - span.start_ns;
    req->cache.lookup = INF_LOOKUP_MISS;

    if (err == NULL && response != NULL) {
        *queued = false;
        inf_cached_answer(req, response, span.start_ns, req->cache.lookup_ns);
        return NULL;
    }
    if (err != NULL) {
        inf_cached_log_trouble(gate, err, "lookup failed");
    }
    return miss(gate, req, key, queued);
}

static inf_err_t *
miss(inf_cached_model_t *gate, inf_request_t *req, inf_cache_key_t key,
    bool *queued)
{
    uint64_t at_ns = rejects_at(gate, req);
    *queued = true;
    inf_lock(&gate->lock);
    inf_cache_run_t *run = inf_cache_run_pop_locked(gate);
    if (run == NULL) {
        inf_unlock(&gate->lock);
        run = inf_cache_run_take(gate);
        if (run == NULL) {
            return inf_entrance_execute(gate->model, req, req->queue_ns);
        }
        inf_lock(&gate->lock);
    }
    run->key = key;

    /* a cancel sets the flag first and then searches for the request here */
    bool gone = atomic_load_explicit(&req->state, memory_order_relaxed)
        == INF_REQUEST_EXECUTING
        && atomic_load_explicit(&req->factory->cancelled,
            memory_order_relaxed);
    bool leads = !gone && inf_cache_executions_join(&gate->executions,
        &run->execution, key, req);
    bool first = !gone && !leads && watch_locked(gate, req, at_ns);
    if (!leads) {
        inf_cache_run_keep_locked(gate, run);
    }
    if (first) {                /* req's reference to the model may be
                                   dropped                                   */
        inf_model_ref(gate->model);
    }
    inf_unlock(&gate->lock);

    if (leads) {
        return inf_cache_run_begin(run, req);
    }

    *queued = false;
    if (first) {
        inf_timekeeper_arm(gate->timekeeper, &gate->timer, at_ns);
        inf_model_unref(gate->model);
    }
    if (gone) {
        inf_reject_cancelled(req);
    }
    return NULL;
}

void
inf_cached_answer(inf_request_t *req, inf_response_t *response,
    uint64_t start_ns, uint64_t took_ns)
{
    inf_factory_t *f = req->factory;
    inf_model_t *model = req->model;
    uint64_t now = inf_clock_ns();

    req->cache.lookup = INF_LOOKUP_HIT;
    inf_statistics_cache_hit(&model->statistics, req->start_ns, req->queue_ns,
        start_ns, took_ns, now);
    if (model->latencies != NULL) {
        inf_latencies_first_response(model->latencies, req->start_ns, now);
        inf_latencies_hit(model->latencies, req->queue_ns, start_ns, took_ns,
            now);
        if (model->latencies->histogram) {
            inf_statistics_observe_hit(&model->statistics, req->queue_ns,
                start_ns);
        }
    }
    atomic_store_explicit(&f->final, true, memory_order_relaxed);
    inf_response_send(response, INF_SEND_FINAL, NULL);
    inf_request_release(req, 1);
}

void
inf_cached_answer_error(inf_request_t *req, inf_err_t *err)
{
    inf_factory_send_error(req->factory, err);
    inf_request_release(req, 1);
}

void
inf_cached_count_miss(inf_model_t *model, uint64_t took_ns)
{
    inf_duration_add(&model->statistics.cache_miss, took_ns);
    if (model->latencies != NULL) {
        inf_latencies_miss(model->latencies, took_ns, inf_clock_ns());
    }
}

void
inf_cached_log_trouble(inf_cached_model_t *gate, inf_err_t *err,
    const char *what)
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
    inf_log(INF_LOG_ERROR, "model=%s version=%lld: response cache: %s: %s;"
        " requests are served without it (%llu such errors before)",
        gate->model->name, (long long) gate->model->version, what,
        inf_err_msg(err), (unsigned long long) more);
    inf_err_free(err);
}
