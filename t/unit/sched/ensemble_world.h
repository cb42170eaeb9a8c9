/* ensemble_world.h - models that the test executes, with real runners, and a
   client that collects what an ensemble answers. */

#ifndef T_ENSEMBLE_WORLD_H
#define T_ENSEMBLE_WORLD_H

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/include/channel.h"
#include "core/model/normalize.h"
#include "core/sched/ensemble.h"
#include "core/sched/ensemble_pause.h"
#include "core/sched/entrance.h"
#include "core/sched/runtime.h"
#include "core/tensor/response.h"
#include "sched/ensemble_models.h"

#define WORLD_MODELS 16
#define MOST_ANSWERS 4096

/*
 * The function of a model (INT32), by the first letters of its name:
 *
 *     add      O0 = I0 + I1 (an absent input is 0)
 *     both     O0 = I0 + 1, O1 = I0 + 2
 *     half     O0 alone, of two outputs
 *     square   O0 = I0 * I0
 *     shuffle  O0 = I0, after a random time
 *     slow     O0 = I0, after 2 ms
 *     gate     O0 = I0, once the gate is open
 *     repeat   decoupled: I0[0] responses, O0 = 0, 1, 2, ...
 *     thread   the same from a thread of its own
 *     fail     an error
 *     mute     releases the request without a response
 *     label    O0 = I0, and says what sequence it is
 */
typedef struct {
    inf_model_t         *model;
    inf_instance_t       instances[4];
    inf_instance_t      *list[4];
    inf_instance_spec_t  spec;
    _Atomic uint32_t     executed;
    _Atomic uint64_t     priority;      /* of the last request               */
    _Atomic uint64_t     timeout_us;
    _Atomic uint64_t     correlation_id;
    _Atomic uint32_t     flags;
    _Atomic int64_t      dims[4];       /* of I0; -1 beyond                  */
    _Atomic bool         saw_cancel;
} world_model_t;

typedef struct {
    inf_request_t    request;
    inf_factory_t    factory;
    inf_model_t     *model;
    pthread_mutex_t  lock;
    pthread_cond_t   changed;
    uint32_t         answers;
    uint32_t         errors;
    uint32_t         finals;
    uint32_t         released;
    uint32_t         freed;
    uint32_t         executing;
    inf_err_code_t   code;
    char             text[256];
    int32_t          values[MOST_ANSWERS][3];   /* of outputs OUT0.. OUT2    */
    bool             has[3];                    /* of the last               */
    uint32_t         out_dims[3];
    int64_t          out_shape[2];              /* of OUT0                   */
    int64_t          sequence;
    bool             start;
    bool             end;
    uint32_t         slow_us;                   /* takes so long to read     */
    int32_t          data[3][64];
    bool             shares;
} world_job_t;

static struct {
    world_model_t    models[WORLD_MODELS];
    uint32_t         count;
    pthread_mutex_t  lock;
    pthread_cond_t   changed;
    bool             open;
    uint32_t         at_gate;
    inf_timekeeper_t timekeeper;
    _Atomic int32_t  buffers;           /* of the client's, alive            */
    _Atomic uint32_t allocs;
    _Atomic uint32_t shared;
    _Atomic uint32_t sleeps;            /* instance threads that said so     */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER };

static const char composing_config[] =
    " input { name: \"I0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " output { name: \"O0\" data_type: TYPE_INT32 dims: [ -1 ] }";
static const char pair_config[] =
    " input { name: \"I0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " output { name: \"O0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " output { name: \"O1\" data_type: TYPE_INT32 dims: [ -1 ] }";
static const char add_config[] =
    " input { name: \"I0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " input { name: \"I1\" data_type: TYPE_INT32 dims: [ -1 ]"
    " optional: true }"
    " output { name: \"O0\" data_type: TYPE_INT32 dims: [ -1 ] }";
static const char decoupled_config[] =
    " input { name: \"I0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " output { name: \"O0\" data_type: TYPE_INT32 dims: [ -1 ] }"
    " model_transaction_policy { decoupled: true }";

static bool
is(const inf_model_t *model, const char *kind)
{
    return strncmp(model->name, kind, strlen(kind)) == 0;
}

static const int32_t *
input_of(const inf_request_t *r, const char *name, uint64_t *count)
{
    const inf_input_t *in = inf_request_find_input(r, name);
    *count = in != NULL ? in->byte_size / sizeof(int32_t) : 0;
    return in != NULL && in->buffer_count > 0 ? in->buffers[0].base : NULL;
}

static void
put(inf_response_t *response, const char *name, const int32_t *data,
    uint64_t count, const inf_request_t *like)
{
    int64_t shape[8] = { (int64_t) count };
    uint32_t dims = 1;
    if (like != NULL && like->input_count > 0
        && like->inputs[0].dim_count < 8
        && like->inputs[0].byte_size == count * sizeof(*data))
    {
        dims = like->inputs[0].dim_count;
        memcpy(shape, like->inputs[0].shape, dims * sizeof(shape[0]));
    }

    inf_output_t *out = inf_response_add_output(response, name,
        INF_TYPE_INT32, shape, dims);
    inf_err_t *err = inf_output_alloc(out, count * sizeof(*data));
    if (err != NULL) {
        fprintf(stderr, "%s\n", inf_err_msg(err));
        abort();
    }
    if (count > 0) {
        memcpy(out->base, data, count * sizeof(*data));
    }
}

/* As the ABI's ResponseSend does. */
static void
send_it(inf_response_t *response, uint32_t flags)
{
    response->sent = true;
    if (flags & INF_SEND_FINAL) {
        atomic_store(&response->factory->final, true);
    }
    inf_response_send(response, flags, NULL);
    inf_pause_wait();
}

static inf_response_t *
new_response(inf_factory_t *f)
{
    inf_response_t *response;
    inf_err_t *err = inf_response_new(f, &response);
    if (err != NULL) {
        abort();
    }
    return response;
}

static void
stream(inf_factory_t *f, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (atomic_load(&f->cancelled)) {
            break;
        }
        inf_response_t *response = new_response(f);
        put(response, "O0", &i, 1, NULL);
        send_it(response, 0);
    }
    atomic_store(&f->final, true);
    inf_factory_send_flags(f, INF_SEND_FINAL);
}

typedef struct {
    inf_factory_t *factory;
    int32_t        count;
} stream_t;

static void *
stream_main(void *arg)
{
    stream_t *s = arg;
    stream(s->factory, s->count);
    inf_factory_unref(s->factory);
    free(s);
    return NULL;
}

static void
answer_one(world_model_t *w, inf_request_t *r)
{
    const inf_model_t *model = w->model;
    inf_factory_t *f = r->factory;
    uint64_t n, n1;
    const int32_t *a = input_of(r, "I0", &n);
    const int32_t *b = input_of(r, "I1", &n1);
    int32_t out[64] = { 0 };
    int32_t more[64] = { 0 };
    n = n == 0 ? n1 : n;

    for (uint64_t i = 0; i < n; i++) {
        int32_t x = a != NULL ? a[i] : 0;
        out[i] = is(model, "square") ? x * x : is(model, "both") ? x + 1
            : x + (is(model, "add") && b != NULL ? b[i] : 0);
        more[i] = x + 2;
    }
    if (is(model, "fail")) {
        inf_factory_send_error(f, inf_err_new(INF_ERR_INTERNAL, "%s",
            "it went wrong"));
        return;
    }

    inf_response_t *response = new_response(f);
    if (inf_request_wants_output(r, "O0")) {
        put(response, "O0", out, n, r);
    }
    if (is(model, "both") && inf_request_wants_output(r, "O1")) {
        put(response, "O1", more, n, r);
    }
    if (is(model, "label")) {
        inf_parameter_add(&response->parameters, &response->arena,
            "sequence_id", 11, INF_PARAMETER_INT)->i = 77;
        inf_parameter_add(&response->parameters, &response->arena,
            "sequence_end", 12, INF_PARAMETER_BOOL)->b = true;
    }
    send_it(response, INF_SEND_FINAL);
}

static void
wait_here(const inf_model_t *model)
{
    if (is(model, "shuffle")) {
        usleep((unsigned) (inf_clock_ns() / 7 % 700));
    } else if (is(model, "slow")) {
        usleep(2000);
    } else if (is(model, "gate")) {
        pthread_mutex_lock(&world.lock);
        world.at_gate++;
        pthread_cond_broadcast(&world.changed);
        while (!world.open) {
            pthread_cond_wait(&world.changed, &world.lock);
        }
        world.at_gate--;
        pthread_mutex_unlock(&world.lock);
    }
}

static void
world_execute(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count)
{
    world_model_t *w = instance->model->state;

    for (uint32_t i = 0; i < count; i++) {
        inf_request_t *r = requests[i];
        uint64_t start = inf_clock_ns();
        uint64_t n;
        const int32_t *in = input_of(r, "I0", &n);
        const inf_input_t *first = inf_request_find_input(r, "I0");

        atomic_fetch_add(&w->executed, 1);
        w->priority = r->priority;
        w->timeout_us = r->timeout_us;
        w->correlation_id = r->correlation_id;
        w->flags = r->flags;
        for (uint32_t d = 0; d < 4; d++) {
            w->dims[d] = first != NULL && d < first->dim_count
                ? first->shape[d] : -1;
        }

        wait_here(w->model);
        w->saw_cancel = w->saw_cancel
            | atomic_load(&r->factory->cancelled);
        if (is(w->model, "repeat")) {
            stream(r->factory, n > 0 ? in[0] : 0);
        } else if (is(w->model, "thread")) {
            stream_t *s = malloc(sizeof(*s));
            pthread_t thread;
            *s = (stream_t) { r->factory, n > 0 ? in[0] : 0 };
            inf_factory_ref(r->factory);
            if (pthread_create(&thread, NULL, stream_main, s) != 0) {
                abort();
            }
            pthread_detach(thread);
        } else if (!is(w->model, "mute")) {
            answer_one(w, r);
        }

        uint64_t end = inf_clock_ns();
        r->backend_ns[0] = start;
        r->backend_ns[1] = start + 10;
        r->backend_ns[2] = start + 30;
        r->backend_ns[3] = start + 60;
        r->outcome = INF_OUTCOME_REPORTED;
        inf_statistics_success(&instance->statistics,
            r->batch_size > 0 ? r->batch_size : 1, r->start_ns, r->queue_ns,
            r->backend_ns, end);
        inf_request_release(r, 1);
    }
}

static bool
idle_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    (void) userp;
    (void) runner;
    (void) waiter;
    (void) until_ns;
    return false;
}

static void
idle_leave(void *userp, inf_runner_t *runner)
{
    (void) userp;
    (void) runner;
}

static void
idle_sleeps(void *userp)
{
    (void) userp;
    atomic_fetch_add(&world.sleeps, 1);
}

static const inf_idle_ops_t world_idle = {
    .lead = idle_lead,
    .leave = idle_leave,
    .sleeps = idle_sleeps
};

static const inf_executor_t world_executor = { .execute = world_execute };

/* A model of the kind that its name says; more: text of its configuration. */
static inf_model_t *
world_model(const char *name, const char *config, const char *more,
    uint32_t instances)
{
    world_model_t *w = &world.models[world.count++];
    char *text;
    if (world.count > WORLD_MODELS
        || asprintf(&text, "name: \"%s\" %s %s", name, config, more) < 0)
    {
        abort();
    }

    memset(w, 0, sizeof(*w));
    w->model = test_model(name, text);
    free(text);
    w->spec.name = w->model->name;
    w->spec.host_policy = "cpu";
    w->model->state = w;
    w->model->instances = w->list;
    w->model->instance_count = instances;
    for (uint32_t i = 0; i < instances; i++) {
        w->list[i] = &w->instances[i];
        w->instances[i].model = w->model;
        w->instances[i].spec = &w->spec;
    }

    inf_err_t *err = inf_runner_start(w->model, &(inf_runner_options_t) {
        .executor = &world_executor,
        .idle = &world_idle,
        .timekeeper = &world.timekeeper
    });
    if (err != NULL) {
        abort();
    }
    return w->model;
}

static world_model_t *
world_of(const inf_model_t *model)
{
    return model->state;
}

/* "model:I0=X,I1=Y>O0=Z" for each step, separated by blanks. */
static inf_err_t *
world_try(const char *ends, const char *steps, inf_model_t *const *composing,
    size_t count, inf_model_t **out)
{
    char text[8192];
    size_t at = (size_t) snprintf(text, sizeof(text), "name: \"e\" platform:"
        " \"ensemble\" %s ensemble_scheduling {", ends);
    char *copy = strdup(steps);
    char *save = NULL;

    for (char *word = strtok_r(copy, " ", &save); word != NULL;
        word = strtok_r(NULL, " ", &save))
    {
        if (strncmp(word, "most=", 5) == 0) {
            at += (size_t) snprintf(text + at, sizeof(text) - at,
                " max_inflight_requests: %s", word + 5);
            continue;
        }
        char *maps = strchr(word, ':');
        *maps++ = '\0';
        at += (size_t) snprintf(text + at, sizeof(text) - at,
            " step { model_name: \"%s\" model_version: -1", word);
        const char *side = "input_map";
        while (maps != NULL && *maps != '\0') {
            char *value = strchr(maps, '=');
            char *next = strpbrk(value, ",>");
            char sep = next != NULL ? *next : '\0';
            *value++ = '\0';
            if (next != NULL) {
                *next++ = '\0';
            }
            at += (size_t) snprintf(text + at, sizeof(text) - at,
                " %s { key: \"%s\" value: \"%s\" }", side, maps, value);
            side = sep == '>' ? "output_map" : side;
            maps = next;
        }
        at += (size_t) snprintf(text + at, sizeof(text) - at, " }");
    }
    snprintf(text + at, sizeof(text) - at, " }");
    free(copy);

    inf_model_t *model = test_model("e", text);
    inf_ensemble_t *e;
    inf_err_t *err = inf_ensemble_new(model, composing, count, NULL, &e);
    if (err != NULL) {
        inf_model_free(model);
        return err;
    }
    model->sched.ensemble = e;
    *out = model;
    return NULL;
}

#define IN(name) " input { name: \"" name "\" data_type: TYPE_INT32 dims:" \
    " [ -1 ] }"
#define MAYBE(name) " input { name: \"" name "\" data_type: TYPE_INT32 dims:" \
    " [ -1 ] optional: true }"
#define OUT(name) " output { name: \"" name "\" data_type: TYPE_INT32 dims:" \
    " [ -1 ] }"

#define world_ensemble(ends, steps, ...)                                      \
    world_ensemble_of(ends, steps, (inf_model_t *[]) { __VA_ARGS__ },         \
        sizeof((inf_model_t *[]) { __VA_ARGS__ }) / sizeof(inf_model_t *))

static inf_model_t *
world_ensemble_of(const char *ends, const char *steps,
    inf_model_t *const *composing, size_t count)
{
    inf_model_t *model;
    inf_err_t *err = world_try(ends, steps, composing, count, &model);
    if (err != NULL) {
        fprintf(stderr, "%s: %s\n", steps, inf_err_msg(err));
        abort();
    }
    return model;
}

static void
world_free_ensemble(inf_model_t *model)
{
    while (inf_ensemble_pending(model->sched.ensemble) > 0
        || atomic_load(&model->refs) > 1)
    {
        usleep(100);
    }
    inf_ensemble_free(model->sched.ensemble);
    inf_model_free(model);
}

static int
world_start(void **state)
{
    (void) state;
    world.count = 0;
    world.open = false;
    world.at_gate = 0;
    atomic_store(&world.allocs, 0);
    atomic_store(&world.shared, 0);
    atomic_store(&world.sleeps, 0);
    inf_timekeeper_init(&world.timekeeper);
    return 0;
}

static int
world_end(void **state)
{
    (void) state;
    for (uint32_t i = 0; i < world.count; i++) {
        inf_model_t *model = world.models[i].model;
        for (int k = 0; atomic_load(&model->refs) > 1; k++) {
            if (k > 20000) {
                return 1;           /* a test failed: its threads go on      */
            }
            usleep(100);
        }
        inf_runner_free(model->sched.runner);
        for (uint32_t k = 0; k < model->instance_count; k++) {
            inf_statistics_fini(&model->instances[k]->statistics);
        }
        model->instances = NULL;
        model->instance_count = 0;
        inf_model_free(model);
    }
    inf_timekeeper_fini(&world.timekeeper);
    return atomic_load(&world.buffers) != 0;
}

static void
open_gate(bool open)
{
    pthread_mutex_lock(&world.lock);
    world.open = open;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void
wait_at_gate(uint32_t count)
{
    pthread_mutex_lock(&world.lock);
    while (world.at_gate < count) {
        pthread_cond_wait(&world.changed, &world.lock);
    }
    pthread_mutex_unlock(&world.lock);
}

/* ---- the client */

typedef struct {
    _Atomic uint32_t refs;
} buffer_head_t;

static inf_err_t *
job_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    buffer_head_t *head = malloc(sizeof(buffer_head_t) + 16 + size);
    atomic_init(&head->refs, 1);
    out->base = (char *) head + 16;
    out->memory_type = INF_MEMORY_CPU;
    out->memory_id = 0;
    out->sink_userp = head;
    atomic_fetch_add(&world.buffers, 1);
    atomic_fetch_add(&world.allocs, 1);
    return NULL;
}

static void
job_release(void *userp, inf_output_t *out)
{
    (void) userp;
    buffer_head_t *head = out->sink_userp;
    if (atomic_fetch_sub(&head->refs, 1) == 1) {
        free(head);
        atomic_fetch_sub(&world.buffers, 1);
    }
}

static bool
job_share(void *userp, inf_output_t *out)
{
    (void) userp;
    buffer_head_t *head = out->sink_userp;
    atomic_fetch_add(&head->refs, 1);
    atomic_fetch_add(&world.shared, 1);
    return true;
}

static void
job_read(world_job_t *job, const inf_response_t *response)
{
    for (int k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof(name), "OUT%d", k);
        job->has[k] = false;
        for (const inf_output_t *o = response->first; o != NULL; o = o->next) {
            if (strcmp(o->name, name) == 0) {
                job->has[k] = true;
                job->out_dims[k] = o->dim_count;
                for (uint32_t d = 0; k == 0 && d < 2 && d < o->dim_count;
                    d++)
                {
                    job->out_shape[d] = o->shape[d];
                }
                job->values[job->answers][k] = o->byte_size > 0
                    ? *(const int32_t *) o->base : 0;
            }
        }
    }
    for (uint32_t n = 0; n < response->parameters.count; n++) {
        const inf_parameter_t *p = response->parameters.items[n];
        if (strcmp(p->name, "sequence_id") == 0) {
            job->sequence = p->i;
        } else if (strcmp(p->name, "sequence_start") == 0) {
            job->start = p->b;
        } else if (strcmp(p->name, "sequence_end") == 0) {
            job->end = p->b;
        }
    }
}

static void
job_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    world_job_t *job = userp;

    if (job->slow_us > 0) {
        usleep(job->slow_us);
    }
    pthread_mutex_lock(&job->lock);
    if (response != NULL && response->err != NULL) {
        job->errors++;
        job->code = inf_err_code(response->err);
        snprintf(job->text, sizeof(job->text), "%s",
            inf_err_msg(response->err));
    } else if (response != NULL && job->answers < MOST_ANSWERS) {
        job_read(job, response);
        job->answers++;
    }
    job->finals += (flags & INF_SEND_FINAL) != 0;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    inf_response_free(response);
}

static void
job_factory_free(void *userp, inf_factory_t *factory)
{
    world_job_t *job = userp;
    inf_model_t *model = factory->model;

    inf_model_unref(model);
    pthread_mutex_lock(&job->lock);
    job->freed++;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static void
job_released(void *userp, inf_request_t *r, uint32_t flags)
{
    world_job_t *job = userp;
    (void) r;
    (void) flags;
    pthread_mutex_lock(&job->lock);
    job->released++;
    pthread_mutex_unlock(&job->lock);
}

static void
job_executing(void *userp, inf_request_t *r)
{
    world_job_t *job = userp;
    (void) r;
    pthread_mutex_lock(&job->lock);
    job->executing++;
    pthread_mutex_unlock(&job->lock);
}

static const inf_sink_ops_t job_sink = {
    .alloc = job_alloc,
    .release = job_release,
    .complete = job_complete,
    .factory_free = job_factory_free
};
static const inf_sink_ops_t job_sink_shares = {
    .alloc = job_alloc,
    .release = job_release,
    .share = job_share,
    .complete = job_complete,
    .factory_free = job_factory_free
};
static const inf_request_ops_t job_ops = {
    .released = job_released,
    .executing = job_executing
};

static void
job_init(world_job_t *job)
{
    memset(job, 0, sizeof(*job));
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->changed, NULL);
    inf_request_init(&job->request);
    inf_factory_init(&job->factory);
}

static void
job_fini(world_job_t *job)
{
    inf_request_fini(&job->request);
    inf_factory_fini(&job->factory);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->changed);
}

/* A request of the job for model; its inputs follow. */
static void
job_begin(world_job_t *job, inf_model_t *model)
{
    inf_request_t *r = &job->request;

    inf_request_reset(r);
    job->model = model;
    job->answers = job->errors = job->finals = job->released = 0;
    job->freed = job->executing = 0;
    job->text[0] = '\0';
    inf_model_ref(model);
    inf_factory_start(&job->factory, model, "id", job->shares
        ? &job_sink_shares : &job_sink, job);
    r->factory = &job->factory;
    r->model = model;
    r->ops = &job_ops;
    r->userp = job;
    r->id = "id";
    r->start_ns = inf_clock_ns();
}

static void
job_input_shape(world_job_t *job, const char *name, int32_t value,
    const int64_t *shape, uint32_t dims)
{
    inf_request_t *r = &job->request;
    int32_t *data = job->data[r->input_count];
    uint64_t count = 1;

    for (uint32_t i = 0; i < dims; i++) {
        count *= (uint64_t) shape[i];
    }
    for (uint64_t i = 0; i < count && i < 64; i++) {
        data[i] = value;
    }
    inf_input_t *in = inf_request_add_input(r, name, strlen(name),
        INF_TYPE_INT32, shape, dims);
    inf_err_t *err = inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = data, .size = count * sizeof(*data) });
    if (err != NULL) {
        abort();
    }
}

static void
job_input(world_job_t *job, const char *name, int32_t value)
{
    job_input_shape(job, name, value, (const int64_t[]) { 1 }, 1);
}

static void
job_want(world_job_t *job, const char *name)
{
    if (inf_request_add_output(&job->request, name, strlen(name)) != NULL) {
        abort();
    }
}

static inf_err_t *
job_submit(world_job_t *job)
{
    bool queued;
    inf_err_t *err = inf_request_normalize(job->model, &job->request);
    if (err == NULL) {
        err = inf_entrance_submit(job->model, &job->request, inf_clock_ns(),
            false, &queued);
    }
    if (err != NULL) {
        inf_factory_unref(&job->factory);
    }
    return err;
}

/* Until nothing of it is left. */
static void
job_wait(world_job_t *job)
{
    pthread_mutex_lock(&job->lock);
    while (job->freed == 0) {
        pthread_cond_wait(&job->changed, &job->lock);
    }
    pthread_mutex_unlock(&job->lock);
}

static void
job_cancel(world_job_t *job)
{
    atomic_store(&job->factory.cancelled, true);
    inf_entrance_cancel(job->model, &job->request, NULL);
}

#endif /* T_ENSEMBLE_WORLD_H */
