/* The gate before a model's runner, with a cache and a backend of the test. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/sched/response_cache.h"
#include "core/sched/runtime.h"
#include "core/tensor/packed_response.h"

#define ENTRIES 512
#define SHOTS   64

typedef struct {
    char   key[INF_CACHE_KEY_TEXT];
    char  *bytes;
    size_t size;
} entry_t;

/* A cache and a backend; everything under the lock. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;

    entry_t         entries[ENTRIES];
    uint32_t        count;
    uint32_t        lookups;
    uint32_t        inserts;
    bool            lookup_fails;
    bool            insert_fails;
    bool            hold_lookups;   /* lookups wait                          */
    uint32_t        looking;

    uint32_t        executed;
    uint32_t        inside;
    bool            hold;           /* executions wait                       */
    inf_err_code_t  fail_with;      /* UNKNOWN: answer                       */
    uint32_t        fail_count;     /* so many executions                    */
    bool            device;         /* outputs claim to be the device's      */
} world_t;

typedef struct {
    inf_request_t    request;
    inf_factory_t    factory;
    uint32_t         value;
    bool             refuse;        /* the client has no memory              */
    _Atomic uint32_t answers;
    _Atomic uint32_t finals;
    _Atomic uint32_t released;
    _Atomic uint32_t freed;
    _Atomic uint32_t got;           /* the value that came back              */
    _Atomic int      code;          /* of the error; -1: none                */
} shot_t;

static world_t w;
static inf_model_t model;
static inf_instance_t instances[4];
static inf_instance_spec_t spec = { .name = "i" };
static inf_response_cache_t *cache;
static shot_t shots[SHOTS];
static _Atomic uint32_t buffers;

static inf_err_t *
fake_lookup(void *userp, const char *key, inf_factory_t *factory,
    inf_response_t **out, inf_cache_span_t *span)
{
    (void) userp;
    inf_err_t *err = NULL;

    *out = NULL;
    span->end_ns = inf_clock_ns();
    pthread_mutex_lock(&w.lock);
    w.lookups++;
    w.looking++;
    pthread_cond_broadcast(&w.changed);
    while (w.hold_lookups) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    w.looking--;
    char *bytes = NULL;
    size_t size = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        if (strcmp(w.entries[i].key, key) == 0) {
            bytes = w.entries[i].bytes;
            size = w.entries[i].size;
        }
    }
    if (w.lookup_fails) {
        err = inf_err_new(INF_ERR_INTERNAL, "no");
        bytes = NULL;
    }
    pthread_mutex_unlock(&w.lock);
    if (bytes == NULL) {
        return err;
    }

    inf_response_t *r;
    assert_null(inf_response_new(factory, &r));
    err = inf_packed_response_read(bytes, size, r);
    if (err != NULL) {
        inf_response_free(r);
        return err;
    }
    *out = r;
    return NULL;
}

static inf_err_t *
fake_insert(void *userp, const char *key, const inf_response_t *response,
    inf_cache_span_t *span)
{
    (void) userp;
    uint64_t size;
    span->end_ns = inf_clock_ns();
    inf_err_t *err = inf_packed_response_size(response, &size);
    if (err != NULL) {
        return err;
    }

    pthread_mutex_lock(&w.lock);
    w.inserts++;
    for (uint32_t i = 0; i < w.count; i++) {
        if (strcmp(w.entries[i].key, key) == 0) {
            err = inf_err_new(INF_ERR_ALREADY_EXISTS, "there");
        }
    }
    if (err == NULL && (w.insert_fails || w.count == ENTRIES)) {
        err = inf_err_new(INF_ERR_INTERNAL, "full");
    }
    if (err == NULL) {
        entry_t *e = &w.entries[w.count++];
        strcpy(e->key, key);
        e->size = size;
        e->bytes = malloc(size);
        inf_packed_response_write(response, e->bytes, false);
    }
    pthread_mutex_unlock(&w.lock);
    return err;
}

static bool
fake_counts(void *userp, inf_cache_counts_t *out)
{
    (void) userp;
    *out = (inf_cache_counts_t) { .hits = 7 };
    return true;
}

static const inf_cache_ops_t fake_ops = {
    .lookup = fake_lookup, .insert = fake_insert, .counts = fake_counts
};

/* Answers with the input's value, times two. */
static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    (void) instance;
    assert_int_equal(count, 1);
    inf_request_t *r = requests[0];

    pthread_mutex_lock(&w.lock);
    w.executed++;
    w.inside++;
    pthread_cond_broadcast(&w.changed);
    while (w.hold) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    w.inside--;
    inf_err_code_t code = w.fail_count > 0 ? w.fail_with : INF_ERR_UNKNOWN;
    w.fail_count -= w.fail_count > 0;
    bool device = w.device;
    pthread_mutex_unlock(&w.lock);

    if (atomic_load(&r->factory->cancelled) && code == INF_ERR_UNKNOWN) {
        code = INF_ERR_CANCELLED;
    }
    if (code != INF_ERR_UNKNOWN) {
        inf_factory_send_error(r->factory, inf_err_new(code, "failed"));
        inf_request_release(r, 1);
        return;
    }

    uint32_t value;
    memcpy(&value, r->inputs[0].buffers[0].base, sizeof(value));
    value *= 2;
    inf_response_t *response;
    assert_null(inf_response_new(r->factory, &response));
    inf_output_t *out = inf_response_add_output(response, "OUT",
        INF_TYPE_UINT32, (int64_t[]) { 1 }, 1);
    inf_factory_t *f = response->factory;
    inf_err_t *err = f->sink->alloc(f->userp, out, sizeof(value));
    if (err == NULL) {
        out->byte_size = sizeof(value);
        memcpy(out->base, &value, sizeof(value));
        out->memory_type = device ? INF_MEMORY_GPU : INF_MEMORY_CPU;
    }
    inf_response_send(response, INF_SEND_FINAL, err);
    inf_err_free(err);
    inf_request_release(r, 1);
}

static const inf_executor_t executor = { .execute = execute };

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    if (((shot_t *) userp)->refuse) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "no memory");
    }
    out->base = malloc(size);
    out->memory_type = INF_MEMORY_CPU;
    atomic_fetch_add(&buffers, 1);
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
    atomic_fetch_sub(&buffers, 1);
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    shot_t *s = userp;
    if (response != NULL && response->err != NULL) {
        atomic_store(&s->code, (int) inf_err_code(response->err));
    } else if (response != NULL) {
        uint32_t value;
        memcpy(&value, response->first->base, sizeof(value));
        atomic_store(&s->got, value);
    }
    inf_response_free(response);
    atomic_fetch_add(&s->answers, response != NULL);
    atomic_fetch_add(&s->finals, (flags & INF_SEND_FINAL) != 0);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) f;
    inf_model_unref(&model);
    atomic_fetch_add(&((shot_t *) userp)->freed, 1);
}

static const inf_sink_ops_t shot_sink = {
    .alloc = sink_alloc,
    .release = sink_release,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

static void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    atomic_fetch_add(&((shot_t *) userp)->released, 1);
}

static const inf_request_ops_t shot_ops = { .released = on_released };

static void
last_unref(inf_model_t *m)
{
    (void) m;
    fail_msg("the model went while the test holds it");
}

static void
load(shot_t *s, uint32_t value)
{
    s->value = value;
    s->refuse = false;
    s->answers = s->finals = s->released = s->freed = s->got = 0;
    s->code = -1;
    inf_request_reset(&s->request);
    inf_model_ref(&model);
    inf_factory_start(&s->factory, &model, "", &shot_sink, s);
    inf_request_t *r = &s->request;
    r->model = &model;
    r->factory = &s->factory;
    r->ops = &shot_ops;
    r->userp = s;
    r->start_ns = inf_clock_ns();
    inf_input_t *in = inf_request_add_input(r, "IN", 2, INF_TYPE_UINT32,
        (int64_t[]) { 1 }, 1);
    assert_null(inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = &s->value, .size = sizeof(s->value) }));
}

static bool
submit(shot_t *s, uint32_t value, bool haste)
{
    bool queued;
    load(s, value);
    assert_null(inf_cached_submit(model.cached, &s->request, inf_clock_ns(),
        haste, &queued));
    return queued;
}

static void
wait_for(_Atomic uint32_t *counter, uint32_t value)
{
    while (atomic_load(counter) < value) {
        usleep(100);
    }
}

static void
over(shot_t *s)
{
    wait_for(&s->freed, 1);
    wait_for(&s->released, 1);
    assert_int_equal(s->answers, 1);
    assert_int_equal(s->finals, 1);
    assert_int_equal(s->released, 1);
    assert_int_equal(s->freed, 1);
}

static void
got(shot_t *s)
{
    over(s);
    assert_int_equal(s->code, -1);
    assert_int_equal(s->got, s->value * 2);
}

static void
failed(shot_t *s, inf_err_code_t code)
{
    over(s);
    assert_int_equal(s->code, code);
}

static void
wait_inside(uint32_t n)
{
    pthread_mutex_lock(&w.lock);
    while (w.inside < n) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
}

static void
set_hold(bool hold)
{
    pthread_mutex_lock(&w.lock);
    w.hold = hold;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

static void
hold_lookups(bool hold)
{
    pthread_mutex_lock(&w.lock);
    w.hold_lookups = hold;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

static int
start(bool quick)
{
    static const inf_model_ops_t ops = { .last_unref = last_unref };
    const inf_response_cache_options_t options = {
        .ops = &fake_ops, .quick = quick, .shared = false
    };
    const inf_runner_options_t runner = { .executor = &executor };

    memset(&w, 0, sizeof(w));
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    memset(&model, 0, sizeof(model));
    atomic_init(&model.refs, 1);
    model.ops = &ops;
    model.name = "m";
    model.version = 1;
    model.instances = instances;
    model.instance_count = 4;
    for (int i = 0; i < 4; i++) {
        instances[i].model = &model;
        instances[i].spec = &spec;
    }
    assert_null(inf_response_cache_new(&options, &cache));
    assert_null(inf_runner_start(&model, &runner));
    model.cached = inf_cached_model_new(cache, &model);
    assert_non_null(model.cached);
    for (int i = 0; i < SHOTS; i++) {
        inf_request_init(&shots[i].request);
        inf_factory_init(&shots[i].factory);
    }
    return 0;
}

static int
quick(void **state)
{
    (void) state;
    return start(true);
}

static int
slow(void **state)
{
    (void) state;
    return start(false);
}

static int
end(void **state)
{
    (void) state;
    while (atomic_load(&model.refs) > 1) {
        usleep(100);
    }
    inf_runner_free(model.runner);
    inf_cached_model_free(model.cached);
    inf_response_cache_free(cache);
    for (int i = 0; i < SHOTS; i++) {
        inf_request_fini(&shots[i].request);
        inf_factory_fini(&shots[i].factory);
    }
    for (uint32_t i = 0; i < w.count; i++) {
        free(w.entries[i].bytes);
    }
    assert_int_equal(buffers, 0);
    return 0;
}

static void
a_second_request_is_answered_at_once(void **state)
{
    (void) state;
    inf_statistics_t *s = &model.statistics;

    assert_true(submit(&shots[0], 21, true));
    got(&shots[0]);
    assert_int_equal(w.executed, 1);
    assert_false(submit(&shots[1], 21, true));
    assert_int_equal(shots[1].released, 1);     /* before submit returned    */
    got(&shots[1]);
    assert_int_equal(w.executed, 1);

    assert_true(submit(&shots[2], 22, true));
    got(&shots[2]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(s->cache_hit.count, 1);
    assert_int_equal(s->cache_miss.count, 2);
    assert_int_equal(s->success.count, 1);      /* others: the backend's     */
    assert_int_equal(s->queue.count, 1);
    assert_int_equal(s->inference_count, 0);
    assert_true(s->cache_hit.ns > 0 && s->cache_miss.ns > 0);

    inf_cache_counts_t c;
    assert_true(inf_response_cache_counts(cache, &c));
    assert_int_equal(c.hits, 7);
}

static void
an_error_is_not_stored(void **state)
{
    (void) state;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 1;
    submit(&shots[0], 5, true);
    failed(&shots[0], INF_ERR_INTERNAL);
    assert_int_equal(w.inserts, 0);
    assert_true(submit(&shots[1], 5, true));
    got(&shots[1]);
    assert_false(submit(&shots[2], 5, true));
    got(&shots[2]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(model.statistics.cache_miss.count, 2);
}

static void
identical_requests_in_flight_run_once(void **state)
{
    (void) state;
    w.hold = true;
    assert_true(submit(&shots[0], 1, true));
    wait_inside(1);
    for (int i = 1; i < 10; i++) {
        assert_false(submit(&shots[i], 1, true));
        assert_int_equal(shots[i].request.state, INF_REQUEST_PARKED);
    }
    assert_true(submit(&shots[10], 2, true));
    wait_inside(2);
    set_hold(false);
    for (int i = 0; i <= 10; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 2);
    assert_int_equal(model.statistics.cache_hit.count, 9);
    assert_int_equal(model.statistics.cache_miss.count, 2);
    assert_true(model.statistics.queue.ns > 0);
}

static void
one_that_waits_is_cancelled_alone(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    atomic_store(&shots[1].factory.cancelled, true);
    assert_true(inf_cached_cancel(model.cached, &shots[1].request));
    assert_false(inf_cached_cancel(model.cached, &shots[1].request));
    assert_false(inf_cached_cancel(model.cached, &shots[0].request));
    inf_factory_send_error(&shots[1].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[1].request, 1);
    failed(&shots[1], INF_ERR_CANCELLED);
    set_hold(false);
    got(&shots[0]);
    got(&shots[2]);
    assert_int_equal(w.executed, 1);
}

static void
when_the_first_gives_up_the_next_one_runs(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    for (int i = 1; i < 5; i++) {
        submit(&shots[i], 1, true);
    }
    atomic_store(&shots[0].factory.cancelled, true);
    set_hold(false);
    failed(&shots[0], INF_ERR_CANCELLED);
    for (int i = 1; i < 5; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 2);
}

static void
when_a_queued_first_is_cancelled_the_next_one_runs(void **state)
{
    (void) state;
    w.hold = true;
    for (uint32_t i = 0; i < 4; i++) {          /* all instances are busy    */
        submit(&shots[i], 100 + i, true);
    }
    wait_inside(4);
    submit(&shots[10], 1, true);
    submit(&shots[11], 1, true);
    submit(&shots[12], 1, true);
    assert_true(inf_runner_cancel(model.runner, &shots[10].request));
    inf_factory_send_error(&shots[10].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[10].request, 1);
    failed(&shots[10], INF_ERR_CANCELLED);
    assert_int_equal(shots[11].request.state, INF_REQUEST_PENDING);
    assert_int_equal(shots[12].request.state, INF_REQUEST_PARKED);
    set_hold(false);
    got(&shots[11]);
    got(&shots[12]);
    for (int i = 0; i < 4; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 5);
}

static void
when_the_first_fails_each_runs_by_itself(void **state)
{
    (void) state;
    w.hold = true;
    w.fail_with = INF_ERR_UNSUPPORTED;
    w.fail_count = 1;
    submit(&shots[0], 1, true);
    wait_inside(1);
    for (int i = 1; i < 4; i++) {
        submit(&shots[i], 1, true);
    }
    set_hold(false);
    failed(&shots[0], INF_ERR_UNSUPPORTED);
    for (int i = 1; i < 4; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 4);
    assert_int_equal(w.count, 1);
    assert_false(submit(&shots[5], 1, true));
    got(&shots[5]);
}

static void
a_response_in_device_memory_is_not_shared(void **state)
{
    (void) state;
    w.hold = true;
    w.device = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    set_hold(false);
    got(&shots[0]);
    got(&shots[1]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(w.count, 0);
}

static void
one_without_memory_for_the_answer_gets_an_error(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    shots[1].refuse = true;
    set_hold(false);
    got(&shots[0]);
    failed(&shots[1], INF_ERR_UNAVAILABLE);
    got(&shots[2]);
    assert_int_equal(model.statistics.fail.count, 1);
}

static void
a_cache_in_trouble_is_done_without(void **state)
{
    (void) state;
    w.lookup_fails = true;
    w.insert_fails = true;
    for (int i = 0; i < 3; i++) {
        assert_true(submit(&shots[i], 1, true));
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 3);
    assert_int_equal(w.lookups, 3);
    assert_int_equal(w.inserts, 3);
}

static void
a_runner_that_is_closed_refuses_all_who_wait(void **state)
{
    (void) state;
    bool queued;

    w.hold = true;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 1;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    inf_runner_close(model.runner);
    set_hold(false);
    failed(&shots[0], INF_ERR_INTERNAL);
    failed(&shots[1], INF_ERR_UNAVAILABLE);
    failed(&shots[2], INF_ERR_UNAVAILABLE);

    /* a submit that is refused leaves the request with its submitter */
    load(&shots[3], 9);
    inf_err_t *err = inf_cached_submit(model.cached, &shots[3].request,
        inf_clock_ns(), true, &queued);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);
    assert_int_equal(shots[3].request.state, INF_REQUEST_IDLE);
    assert_ptr_equal(shots[3].factory.sink, &shot_sink);
    assert_ptr_equal(shots[3].factory.userp, &shots[3]);
    inf_factory_unref(&shots[3].factory);
    assert_int_equal(shots[3].answers, 0);
}

static void
a_hasty_submitter_leaves_slow_lookups_to_threads(void **state)
{
    (void) state;
    w.hold_lookups = true;
    for (uint32_t i = 0; i < 20; i++) {
        assert_false(submit(&shots[i], i % 5, true));
    }
    /* one that no thread has yet can be taken back */
    assert_true(inf_cached_cancel(model.cached, &shots[19].request));
    inf_factory_send_error(&shots[19].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[19].request, 1);
    failed(&shots[19], INF_ERR_CANCELLED);
    hold_lookups(false);
    for (int i = 0; i < 19; i++) {
        got(&shots[i]);
    }
    assert_in_range(w.executed, 5, 19);
    for (uint32_t i = 0; i < 5; i++) {
        assert_false(submit(&shots[20 + i], i, false));
        assert_int_equal(shots[20 + i].released, 1);
    }
}

static void
one_cancelled_during_its_lookup_does_not_run(void **state)
{
    (void) state;
    w.hold_lookups = true;
    submit(&shots[0], 1, true);
    pthread_mutex_lock(&w.lock);
    while (w.looking == 0) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    atomic_store(&shots[0].factory.cancelled, true);
    assert_false(inf_cached_cancel(model.cached, &shots[0].request));
    hold_lookups(false);
    failed(&shots[0], INF_ERR_CANCELLED);
    assert_int_equal(w.executed, 0);
    assert_int_equal(model.statistics.fail.count, 1);
}

static void
what_cannot_be_read_goes_straight_to_the_runner(void **state)
{
    (void) state;
    inf_host_data_t host = { .policy = "p" };
    bool queued;

    for (int i = 0; i < 2; i++) {
        load(&shots[i], 3);
        shots[i].request.inputs[0].host_data = &host;
        assert_null(inf_cached_submit(model.cached, &shots[i].request,
            inf_clock_ns(), true, &queued));
        assert_true(queued);
        got(&shots[i]);
    }
    assert_int_equal(w.lookups, 0);
    assert_int_equal(w.inserts, 0);
    assert_int_equal(w.executed, 2);
}

/* Many submitters, few values, cancels and failures at random: each request
   is answered once. */
typedef struct {
    uint32_t  seed;
    shot_t    shots[8];
    uint32_t  rounds;
} crowd_t;

static void
cancel(shot_t *s)
{
    if (!inf_factory_try_ref(&s->factory)) {
        return;
    }
    atomic_store(&s->factory.cancelled, true);
    if (inf_cached_cancel(model.cached, &s->request)
        || inf_runner_cancel(model.runner, &s->request))
    {
        inf_factory_send_error(&s->factory,
            inf_err_new(INF_ERR_CANCELLED, "%s", ""));
        inf_request_release(&s->request, 1);
    }
    inf_factory_unref(&s->factory);
}

static void *
crowd_main(void *arg)
{
    crowd_t *c = arg;
    for (int i = 0; i < 8; i++) {
        inf_request_init(&c->shots[i].request);
        inf_factory_init(&c->shots[i].factory);
    }

    for (uint32_t round = 0; round < c->rounds; round++) {
        for (int i = 0; i < 8; i++) {
            c->seed = c->seed * 1664525u + 1013904223u;
            uint32_t value = (c->seed >> 20) % 40 + round / 20 * 1000;
            submit(&c->shots[i], value, c->seed >> 31);
            if ((c->seed >> 16 & 7) == 0) {
                cancel(&c->shots[i]);
            }
        }
        for (int i = 0; i < 8; i++) {
            shot_t *s = &c->shots[i];
            over(s);
            assert_true(s->code == INF_ERR_CANCELLED
                || s->code == INF_ERR_INTERNAL
                || (s->code == -1 && s->got == s->value * 2));
        }
    }

    for (int i = 0; i < 8; i++) {
        inf_request_fini(&c->shots[i].request);
        inf_factory_fini(&c->shots[i].factory);
    }
    return NULL;
}

static void
each_of_a_crowd_is_answered_once(void **state)
{
    (void) state;
    static crowd_t crowd[6];
    pthread_t threads[6];

    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 200;
    for (uint32_t i = 0; i < 6; i++) {
        crowd[i].seed = i + 1;
        crowd[i].rounds = 100;
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_main,
            &crowd[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(w.executed < 6 * 100 * 8);
}

#define TEST(f, setup) cmocka_unit_test_setup_teardown(f, setup, end)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_second_request_is_answered_at_once, quick),
        TEST(an_error_is_not_stored, quick),
        TEST(identical_requests_in_flight_run_once, quick),
        TEST(one_that_waits_is_cancelled_alone, quick),
        TEST(when_the_first_gives_up_the_next_one_runs, quick),
        TEST(when_a_queued_first_is_cancelled_the_next_one_runs, quick),
        TEST(when_the_first_fails_each_runs_by_itself, quick),
        TEST(a_response_in_device_memory_is_not_shared, quick),
        TEST(one_without_memory_for_the_answer_gets_an_error, quick),
        TEST(a_cache_in_trouble_is_done_without, quick),
        TEST(a_runner_that_is_closed_refuses_all_who_wait, quick),
        TEST(a_hasty_submitter_leaves_slow_lookups_to_threads, slow),
        TEST(one_cancelled_during_its_lookup_does_not_run, slow),
        TEST(what_cannot_be_read_goes_straight_to_the_runner, slow),
        TEST(each_of_a_crowd_is_answered_once, quick),
        TEST(each_of_a_crowd_is_answered_once, slow)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
