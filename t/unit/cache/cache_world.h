/*
 * cache_world.h - the gate before a model's runner, with a cache and a backend
 *                 of the test, and requests to send.
 *
 * Owner    the test: start, end.
 * Thread   any.
 * Units    ns.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_CACHE_CACHE_WORLD_H
#define INF_T_CACHE_CACHE_WORLD_H

#include "model/config_text.h"
#include "model/instance_array.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/cache/packed_response.h"
#include "core/cache/response_cache.h"
#include "core/sched/runtime.h"

#define ENTRIES 512
#define SHOTS   64
#define CROWD   6

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
    uint32_t        pause_us;       /* what an execution takes               */
    bool            device;         /* outputs claim to be the device's      */
} world_t;

typedef struct {
    inf_request_t    request;
    inf_factory_t    factory;
    uint32_t         value;
    bool             reject;        /* the client has no memory              */
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
static inf_timekeeper_t timekeeper;
static shot_t shots[SHOTS];
static _Atomic uint32_t buffers;

static inline inf_err_t *
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

static inline inf_err_t *
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

static inline bool
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
static inline void
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
    uint32_t pause_us = w.pause_us;
    pthread_mutex_unlock(&w.lock);
    if (pause_us > 0) {
        usleep(pause_us);
    }

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

static inline inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    if (((shot_t *) userp)->reject) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "no memory");
    }
    out->base = malloc(size);
    out->memory_type = INF_MEMORY_CPU;
    atomic_fetch_add(&buffers, 1);
    return NULL;
}

static inline void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
    atomic_fetch_sub(&buffers, 1);
}

static inline void
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

static inline void
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

static inline void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    atomic_fetch_add(&((shot_t *) userp)->released, 1);
}

static const inf_request_ops_t shot_ops = { .released = on_released };

static inline void
last_unref(inf_model_t *m)
{
    (void) m;
    fail_msg("the model went while the test holds it");
}

static inline void
load(shot_t *s, uint32_t value)
{
    s->value = value;
    s->reject = false;
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

/* timeout_us: the client's; 0: none. */
static inline bool
submit_for(shot_t *s, uint32_t value, bool nonblocking, uint64_t timeout_us)
{
    bool queued;
    load(s, value);
    s->request.timeout_us = timeout_us;
    assert_null(inf_gate_submit(model.sched.gate, &s->request, inf_clock_ns(),
        nonblocking, &queued));
    return queued;
}

static inline bool
submit(shot_t *s, uint32_t value, bool nonblocking)
{
    return submit_for(s, value, nonblocking, 0);
}

static inline void
wait_for(_Atomic uint32_t *counter, uint32_t value)
{
    while (atomic_load(counter) < value) {
        usleep(100);
    }
}

static inline void
over(shot_t *s)
{
    wait_for(&s->freed, 1);
    wait_for(&s->released, 1);
    assert_int_equal(s->answers, 1);
    assert_int_equal(s->finals, 1);
    assert_int_equal(s->released, 1);
    assert_int_equal(s->freed, 1);
}

static inline void
got(shot_t *s)
{
    over(s);
    assert_int_equal(s->code, -1);
    assert_int_equal(s->got, s->value * 2);
}

static inline void
failed(shot_t *s, inf_err_code_t code)
{
    over(s);
    assert_int_equal(s->code, code);
}

static inline void
wait_inside(uint32_t n)
{
    pthread_mutex_lock(&w.lock);
    while (w.inside < n) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
}

static inline void
set_hold(bool hold)
{
    pthread_mutex_lock(&w.lock);
    w.hold = hold;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

static inline void
hold_lookups(bool hold)
{
    pthread_mutex_lock(&w.lock);
    w.hold_lookups = hold;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

/* scheduling: what stands in the model's configuration; NULL: nothing. */
static inline int
start(bool quick, const char *scheduling)
{
    static const inf_model_ops_t ops = { .last_unref = last_unref };
    const inf_response_cache_options_t options = {
        .ops = &fake_ops, .quick = quick
    };
    const inf_runner_options_t runner = {
        .executor = &executor, .timekeeper = &timekeeper
    };

    memset(&w, 0, sizeof(w));
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    memset(&model, 0, sizeof(model));
    atomic_init(&model.refs, 1);
    model.ops = &ops;
    model.name = "m";
    model.version = 1;
    instances_listed(&model, instances, 4);
    for (int i = 0; i < 4; i++) {
        instances[i].spec = &spec;
    }
    assert_null(inf_response_cache_new(&options, &cache));
    inf_timekeeper_init(&timekeeper);
    if (scheduling != NULL) {
        char text[1024];
        snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: 1"
            " input { name: 'IN' data_type: TYPE_UINT32 dims: 1 }"
            " output { name: 'OUT' data_type: TYPE_UINT32 dims: 1 } %s",
            scheduling);
        model.built = config_parse_normal(text);
        assert_ok(inf_config_tensors_new(model.built, &model.tensors));
    }
    assert_ok(inf_runner_start(&model, &runner));
    assert_ok(inf_cached_model_new(cache, &model, &timekeeper,
        &model.sched.gate));
    for (int i = 0; i < SHOTS; i++) {
        inf_request_init(&shots[i].request);
        inf_factory_init(&shots[i].factory);
    }
    return 0;
}

static inline int
quick(void **state)
{
    (void) state;
    return start(true, NULL);
}

static inline int
slow(void **state)
{
    (void) state;
    return start(false, NULL);
}

static inline int
end(void **state)
{
    (void) state;
    while (atomic_load(&model.refs) > 1) {
        usleep(100);
    }
    inf_runner_free(model.sched.runner);
    instances_unlisted(&model);
    inf_cached_model_free(model.sched.gate);
    inf_response_cache_free(cache);
    inf_timekeeper_fini(&timekeeper);
    if (model.built != NULL) {
        inf_config_tensors_free(model.tensors);
        inf_message_free(&model.built->base);
    }
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

static inline void
cancel(shot_t *s)
{
    if (!inf_factory_try_ref(&s->factory)) {
        return;
    }
    atomic_store(&s->factory.cancelled, true);
    if (inf_gate_cancel(model.sched.gate, &s->request)
        || inf_runner_cancel(model.sched.runner, &s->request))
    {
        inf_factory_send_error(&s->factory,
            inf_err_new(INF_ERR_CANCELLED, "%s", ""));
        inf_request_release(&s->request, 1);
    }
    inf_factory_unref(&s->factory);
}

/* Many submitters, few values, cancels and failures at random: each request
   is answered once. */
typedef struct {
    uint32_t  seed;
    shot_t    shots[8];
    uint32_t  rounds;
    uint32_t  patience_us;          /* 0: without end                        */
    uint32_t  timed_out;
    pthread_t thread;
} crowd_t;

static crowd_t crowd[CROWD];

static inline void *
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
            uint64_t timeout_us = c->patience_us > 0
                ? 1 + (c->seed >> 4) % c->patience_us : 0;
            submit_for(&c->shots[i], value, c->seed >> 31, timeout_us);
            if ((c->seed >> 16 & 7) == 0) {
                cancel(&c->shots[i]);
            }
        }
        for (int i = 0; i < 8; i++) {
            shot_t *s = &c->shots[i];
            over(s);
            bool timed_out = c->patience_us > 0
                && s->code == INF_ERR_UNAVAILABLE;
            c->timed_out += timed_out;
            assert_true(timed_out || s->code == INF_ERR_CANCELLED
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

/* How many timed out. */
static inline uint32_t
run_crowd(uint32_t rounds, uint32_t patience_us)
{
    uint32_t timed_out = 0;

    for (uint32_t i = 0; i < CROWD; i++) {
        crowd[i].seed = i + 1;
        crowd[i].rounds = rounds;
        crowd[i].patience_us = patience_us;
        crowd[i].timed_out = 0;
        assert_int_equal(pthread_create(&crowd[i].thread, NULL, crowd_main,
            &crowd[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(crowd[i].thread, NULL);
        timed_out += crowd[i].timed_out;
    }
    return timed_out;
}

#endif /* INF_T_CACHE_CACHE_WORLD_H */
