#include "core/cache/cache_run.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/cache/packed_response.h"
#include "core/sched/entrance.h"

static inf_err_t *execute(inf_cache_run_t *run, inf_request_t *req);
static void run_start(void *userp);
static inf_err_t *run_alloc(void *userp, inf_output_t *out, size_t size);
static void run_release(void *userp, inf_output_t *out);
static bool run_share(void *userp, inf_output_t *out);
static void run_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_err_t *run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id);
static void run_factory_free(void *userp, inf_factory_t *factory);
static void settle(inf_cache_run_t *run, const inf_response_t *response);
static bool in_host_memory(const inf_response_t *response);
static uint64_t store(inf_cache_run_t *run, const inf_response_t *response);
static void share(inf_cache_run_t *run, const inf_response_t *response);
static void pass_on(inf_cache_run_t *run);
static void let_go(inf_cache_run_t *run);
static void run_alone(inf_cached_model_t *gate, inf_request_t *req,
    inf_cache_key_t key);
static void promote(inf_cache_run_t *run, inf_request_t *req);
static void land(inf_cache_run_t *run, inf_link_t *list);
static void run_give(inf_cache_run_t *run);
static void run_list_free(inf_cache_run_t *run);

/* For submitters with and without the operation query. */
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

inf_cache_run_t *
inf_cache_run_take(inf_cached_model_t *gate)
{
    inf_lock(&gate->lock);
    inf_cache_run_t *run = inf_cache_run_pop_locked(gate);
    inf_unlock(&gate->lock);

    if (run == NULL) {
        run = calloc(1, sizeof(*run));
        if (run != NULL) {
            run->gate = gate;
        }
    }
    return run;
}

inf_err_t *
inf_cache_run_begin(inf_cache_run_t *run, inf_request_t *req)
{
    inf_err_t *err = execute(run, req);
    if (err != NULL) {
        let_go(run);
        run_give(run);
    }
    return err;
}

void
inf_cache_runs_free(inf_cached_model_t *gate)
{
    run_list_free(gate->spare);
    run_list_free(atomic_load_explicit(&gate->returned,
        memory_order_acquire));
}

/* Submits req; takes run on success.  On error the caller owns both, and req is
   unchanged except for its state. */
static inf_err_t *
execute(inf_cache_run_t *run, inf_request_t *req)
{
    inf_factory_t *f = req->factory;

    run->factory = f;
    run->sink = f->sink;
    run->userp = f->userp;
    run->lookup_ns = req->cache.lookup_ns;
    atomic_store_explicit(&run->settled, false, memory_order_relaxed);
    f->sink = run->sink->query != NULL ? &run_sink_query : &run_sink;
    f->userp = run;

    inf_err_t *err = inf_entrance_execute(run->gate->model, req,
        req->queue_ns);
    if (err != NULL) {
        f->sink = run->sink;
        f->userp = run->userp;
    }
    return err;
}

static void
run_start(void *userp)
{
    const inf_cache_run_t *run = userp;
    if (run->sink->start != NULL) {
        run->sink->start(run->userp);
    }
}

static inf_err_t *
run_alloc(void *userp, inf_output_t *out, size_t size)
{
    const inf_cache_run_t *run = userp;
    return run->sink->alloc(run->userp, out, size);
}

static void
run_release(void *userp, inf_output_t *out)
{
    const inf_cache_run_t *run = userp;
    run->sink->release(run->userp, out);
}

static bool
run_share(void *userp, inf_output_t *out)
{
    const inf_cache_run_t *run = userp;
    return run->sink->share != NULL && run->sink->share(run->userp, out);
}

static void
run_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    inf_cache_run_t *run = userp;

    if (response != NULL || (flags & INF_SEND_FINAL)) {
        settle(run, response);
    }
    run->sink->complete(run->userp, response, flags);
}

static inf_err_t *
run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id)
{
    const inf_cache_run_t *run = userp;
    return run->sink->query(run->userp, name, size, memory_type, memory_id);
}

/* The submitter's function drops the model and with it the gate, so it comes
   last. */
static void
run_factory_free(void *userp, inf_factory_t *factory)
{
    inf_cache_run_t *run = userp;
    const inf_sink_ops_t *sink = run->sink;
    void *inner = run->userp;

    settle(run, NULL);
    factory->sink = sink;
    factory->userp = inner;
    run_give(run);
    sink->factory_free(inner, factory);
}

/* Handles the first response, or the end without one, for all waiting
   requests. */
static void
settle(inf_cache_run_t *run, const inf_response_t *response)
{
    if (atomic_exchange_explicit(&run->settled, true, memory_order_acq_rel)) {
        return;
    }

    bool good = response != NULL && response->err == NULL;
    bool gave_up = !good && (run->factory->rejected
        || atomic_load_explicit(&run->factory->cancelled,
            memory_order_relaxed)
        || (response != NULL
            && inf_err_code(response->err) == INF_ERR_CANCELLED));
    uint64_t insert_ns = good ? store(run, response) : 0;

    inf_cached_count_miss(run->gate->model, run->lookup_ns + insert_ns);
    if (good && in_host_memory(response)) {
        share(run, response);
    } else if (gave_up) {
        pass_on(run);
    } else {
        let_go(run);
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

/* Stores the response and returns the time it took. */
static uint64_t
store(inf_cache_run_t *run, const inf_response_t *response)
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

    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    inf_cache_key_write(&run->key, text);
    inf_err_t *err = cache->ops->insert(cache->cache, text, response, &span);
    if (err != NULL && inf_err_code(err) == INF_ERR_ALREADY_EXISTS) {
        inf_err_free(err);
    } else if (err != NULL) {
        inf_cached_log_trouble(gate, err, "Failed to insert key");
    }
    return span.end_ns - span.start_ns;
}

/* Answers the waiting requests with the response, as hits. */
static void
share(inf_cache_run_t *run, const inf_response_t *response)
{
    inf_link_t list, *link;

    land(run, &list);
    while ((link = inf_list_pop_front(&list)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        inf_response_t *copy;
        uint64_t start = inf_clock_ns();

        inf_err_t *err = inf_response_new(req->factory, &copy);
        if (err == NULL) {
            err = inf_response_copy(response, copy);
        }
        if (err == NULL) {
            inf_cached_answer(req, copy, start,
                req->cache.lookup_ns + inf_clock_ns() - start);
            continue;
        }

        inf_response_free(copy);
        inf_statistics_failure(&req->model->statistics, req->start_ns,
            inf_clock_ns());
        inf_cached_answer_error(req, err);
    }
}

/* Executes the next waiting request; the others wait for it. */
static void
pass_on(inf_cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    inf_cache_run_t *heir = inf_cache_run_take(gate);
    if (heir == NULL) {
        let_go(run);
        return;
    }
    heir->key = run->key;

    inf_lock(&gate->lock);
    inf_request_t *req = inf_cache_executions_pass(&gate->executions,
        &run->execution, &heir->execution);
    if (req != NULL) {
        inf_cached_unwatch_locked(gate, req);
    }
    inf_unlock(&gate->lock);

    if (req == NULL) {
        run_give(heir);
    } else {
        promote(heir, req);
    }
}

/* Executes each waiting request by itself. */
static void
let_go(inf_cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    inf_cache_key_t key = run->key;
    inf_link_t list, *link;

    land(run, &list);
    while ((link = inf_list_pop_front(&list)) != NULL) {
        run_alone(gate, inf_link_entry(link, inf_request_t, link), key);
    }
}

static void
run_alone(inf_cached_model_t *gate, inf_request_t *req, inf_cache_key_t key)
{
    inf_cache_run_t *run = inf_cache_run_take(gate);
    if (run != NULL) {
        run->key = key;
        promote(run, req);
        return;
    }

    inf_err_t *err = inf_entrance_execute(gate->model, req, req->queue_ns);
    if (err != NULL) {
        inf_cached_answer_error(req, err);
    }
}

/* Executes req; takes both.  If the runner rejects req, those after it are also
   rejected. */
static void
promote(inf_cache_run_t *run, inf_request_t *req)
{
    inf_err_t *err = execute(run, req);
    if (err == NULL) {
        return;
    }

    inf_link_t list, *link;

    land(run, &list);
    while ((link = inf_list_pop_front(&list)) != NULL) {
        inf_cached_answer_error(inf_link_entry(link, inf_request_t, link),
            inf_err_copy(err));
    }
    run_give(run);
    inf_cached_answer_error(req, err);  /* last, since req may have the last
                                           reference of the model            */
}

/* Ends the execution: lists the requests that waited for it, in order. */
static void
land(inf_cache_run_t *run, inf_link_t *list)
{
    inf_cached_model_t *gate = run->gate;

    inf_link_init(list);
    inf_lock(&gate->lock);
    inf_cache_executions_leave(&gate->executions, &run->execution, list);
    for (inf_link_t *l = list->next; l != list; l = l->next) {
        inf_cached_unwatch_locked(gate,
            inf_link_entry(l, inf_request_t, link));
    }
    inf_unlock(&gate->lock);
}

static void
run_give(inf_cache_run_t *run)
{
    inf_cached_model_t *gate = run->gate;
    inf_cache_run_t *head = atomic_load_explicit(&gate->returned,
        memory_order_relaxed);

    do {
        run->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&gate->returned, &head,
        run, memory_order_release, memory_order_relaxed));
}

static void
run_list_free(inf_cache_run_t *run)
{
    while (run != NULL) {
        inf_cache_run_t *next = run->next;
        free(run);
        run = next;
    }
}
