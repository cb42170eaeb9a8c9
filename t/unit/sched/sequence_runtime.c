/*
 * sequence_runtime.c - sequences under a real runner: several senders,
 *                      instances that come and go, cancels, sequences that are
 *                      left open, backends that release late.
 */

#include "model/config_text.h"
#include "model/instance_array.h"
#include "sched/idle_role.h"
#include "sched/job.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/sched/sequence_inputs.h"

enum { MOST = 4, SENDERS = 3, ROUNDS = 40, AT_ONCE = 6, STEPS = 5, LIMIT = 4 };

typedef struct {
    inf_instance_t      instance;
    inf_instance_spec_t spec;
    _Atomic bool        busy;
    char                name[16];
} member_t;

typedef struct {
    uint64_t                 id;
    _Atomic uint32_t         executed;      /* steps; they are a prefix      */
    _Atomic(inf_instance_t *) on;
} line_t;

/* A step of a line; the job's number says which. */
typedef struct step_s {
    job_t          job;
    line_t        *line;
    bool           sent;
    struct step_s *late;
} step_t;

typedef struct {
    pthread_t thread;
    unsigned  seed;
    line_t    lines[AT_ONCE];
    step_t    steps[AT_ONCE][STEPS];
    uint64_t  ran, rejected;
} sender_t;

typedef struct {
    const char *scheduling;
    bool        oldest, leads, late, limits, changes;
} storm_t;

static storm_t how;
static inf_model_t *model;
static inf_rate_gate_t *gate;
static inf_timekeeper_t timekeeper;
static inf_runner_options_t options;
static member_t *members[MOST];
static uint32_t member_count;
static sender_t senders[SENDERS];
static _Atomic uint32_t done;
static _Atomic uint64_t last_id, paddings, changes;

static _Atomic(step_t *) late_steps;    /* to be released by somebody else   */
static _Atomic bool late_ends;

/* ---- requests ------------------------------------------------------------ */

static int32_t
control(const inf_request_t *r, const char *name)
{
    const inf_input_t *in = inf_request_find_input(r, name);
    int32_t value;

    must(in != NULL && in->byte_size == sizeof(value));
    memcpy(&value, in->buffers[0].base, sizeof(value));
    return value;
}

static void
execute_one(inf_instance_t *instance, inf_request_t *r)
{
    if (r->padding) {
        must(control(r, "READY") == 0 && control(r, "START") == 0);
        must(!how.oldest);
        atomic_fetch_add(&paddings, 1);
        job_answer(r);
        inf_request_release(r, 1);
        return;
    }

    step_t *step = r->userp;
    line_t *line = step->line;
    inf_instance_t *nobody = NULL;

    must(control(r, "READY") == 1);
    must(control(r, "START") == (step->job.number == 0));
    must(control(r, "END") == (step->job.number == STEPS - 1));
    must(control(r, "ID") == (int32_t) line->id);
    must(atomic_fetch_add(&line->executed, 1) == step->job.number);
    must(atomic_compare_exchange_strong(&line->on, &nobody, instance)
        || nobody == instance);
    atomic_fetch_add(&step->job.executed, 1);
    job_answer(r);

    if (!how.late || line->id % 2 == 0) {
        inf_request_release(r, 1);
        return;
    }
    step->late = atomic_load(&late_steps);
    while (!atomic_compare_exchange_weak(&late_steps, &step->late, step)) {
        continue;
    }
}

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    member_t *m = (member_t *) (void *) instance;

    must(!atomic_exchange(&m->busy, true));
    must(count <= LIMIT);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            must(requests[i]->padding || requests[k]->padding
                || requests[i]->correlation_id
                    != requests[k]->correlation_id);
        }
    }
    if (count > 2) {
        usleep(100);
    }
    for (uint32_t i = 0; i < count; i++) {
        execute_one(instance, requests[i]);
    }
    atomic_store(&m->busy, false);
}

static const inf_executor_t executor = { .execute = execute };

static void *
late_main(void *arg)
{
    (void) arg;
    for (;;) {
        bool ends = atomic_load(&late_ends);
        step_t *step = atomic_exchange(&late_steps, NULL);
        if (step == NULL && ends) {
            return NULL;
        }
        usleep(200);
        while (step != NULL) {
            step_t *next = step->late;
            inf_request_release(&step->job.request, 1);
            step = next;
        }
    }
}

static void
step_submit(step_t *step, line_t *line, uint32_t number)
{
    static const int64_t shape[2] = { 1, 1 };
    static const int32_t data = 5;
    inf_request_t *r = job_reset(&step->job, model);

    step->job.number = number;
    step->line = line;
    r->batch_size = 1;
    r->correlation_id = line->id;
    r->flags = (number == 0 ? 1u : 0) | (number == STEPS - 1 ? 2u : 0);
    inf_input_t *in = inf_request_add_input(r, "IN", 2, INF_TYPE_INT32, shape,
        2);
    must(in != NULL && inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = &data, .size = sizeof(data) }) == NULL);

    inf_err_t *err = inf_runner_submit(model->sched.runner, r, inf_clock_ns());
    step->sent = err == NULL;
    if (err != NULL) {              /* it was cancelled, or was idle         */
        must(number > 0 && inf_err_code(err) == INF_ERR_INVALID_ARG);
        inf_err_free(err);
        inf_factory_unref(&step->job.factory);
    }
}

static void
step_cancel(step_t *step)
{
    if (step->sent) {
        job_cancel(model->sched.runner, &step->job);
    }
}

static void
lines_end(sender_t *s, uint32_t steps)
{
    for (int i = 0; i < AT_ONCE; i++) {
        uint32_t ran = 0;

        for (uint32_t k = 0; k < steps; k++) {
            const job_t *job = &s->steps[i][k].job;
            if (!s->steps[i][k].sent) {
                s->rejected++;
                continue;
            }
            job_wait(job);
            must(job->executed == 0 || ran == k);   /* nothing after a gap   */
            ran += job->executed;
        }
        must(ran == s->lines[i].executed);
        s->ran += ran;
        s->rejected += steps - ran;
    }
}

static void *
sender_main(void *arg)
{
    sender_t *s = arg;

    for (int round = 0; round < ROUNDS; round++) {
        bool open = rand_r(&s->seed) % 8 == 0;  /* they are left alone       */
        uint32_t steps = open ? 2 : STEPS;

        for (int i = 0; i < AT_ONCE; i++) {
            s->lines[i].id = atomic_fetch_add(&last_id, 1) + 1;
            s->lines[i].executed = 0;
            s->lines[i].on = NULL;
        }
        for (uint32_t k = 0; k < steps; k++) {
            for (int i = 0; i < AT_ONCE; i++) {
                step_submit(&s->steps[i][k], &s->lines[i], k);
                if (rand_r(&s->seed) % 24 == 0) {
                    step_cancel(&s->steps[i][(uint32_t) rand_r(&s->seed)
                        % (k + 1)]);
                }
            }
        }
        lines_end(s, steps);
    }
    atomic_fetch_add(&done, 1);
    return NULL;
}

/* ---- instances come and go ----------------------------------------------- */

static member_t *
member_new(uint64_t number)
{
    member_t *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    snprintf(m->name, sizeof(m->name), "m_%llu", (unsigned long long) number);
    m->instance.model = model;
    m->instance.spec = &m->spec;
    m->spec.name = m->name;
    m->spec.kind = INF_INSTANCE_CPU;
    m->spec.settings = model->built->instance_group[0];
    return m;
}

/* One comes, one goes: with its sequences' end. */
static void
change(void)
{
    member_t *comes = member_new(atomic_fetch_add(&changes, 1) + 1);
    inf_instance_t *in = &comes->instance;
    member_t *goes = members[0];
    inf_instance_t *out = &goes->instance;

    must(inf_runner_add(model->sched.runner, &in, 1, &options) == NULL);
    inf_runner_admit(model->sched.runner);
    inf_runner_dismiss(model->sched.runner, &out, 1);
    inf_runner_collect(model->sched.runner, &out, 1);
    must(!goes->busy);
    free(goes);
    memmove(members, members + 1, (member_count - 1) * sizeof(members[0]));
    members[member_count - 1] = comes;
}

/* ---- storms -------------------------------------------------------------- */

static void
open_model(void)
{
    char text[1024];

    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: %d"
        " input { name: 'IN' data_type: TYPE_INT32 dims: 1 }"
        " output { name: 'OUT' data_type: TYPE_INT32 dims: 1 }"
        " instance_group { kind: KIND_CPU rate_limiter {"
        "  resources { name: 'R' count: 1 } } }"
        " sequence_batching { max_sequence_idle_microseconds: 20000"
        "  control_input { name: 'START' control {"
        "   kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }"
        "  control_input { name: 'END' control {"
        "   kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }"
        "  control_input { name: 'READY' control {"
        "   kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }"
        "  control_input { name: 'ID' control {"
        "   kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } } %s }",
        LIMIT, how.scheduling);
    model = inf_model_new("m", 1, "/m");
    assert_non_null(model);
    model->built = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    assert_ok(inf_sequence_inputs_new(NULL, "/m", model,
        &model->sched.sequence_inputs));

    gate = NULL;
    if (how.limits) {
        assert_ok(inf_rate_gate_new(NULL, 0, &gate));
    }
    inf_timekeeper_init(&timekeeper);
    options = (inf_runner_options_t) {
        .executor = &executor, .timekeeper = &timekeeper, .rate_gate = gate,
        .idle = how.leads ? &role_ops : NULL
    };

    done = 0;
    changes = paddings = 0;
    member_count = 2;
    model->instances = calloc(2, sizeof(*model->instances));
    model->instance_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        members[i] = member_new(i);
        model->instances[i] = &members[i]->instance;
    }
    assert_ok(inf_runner_start(model, &options));
}

static void
close_model(void)
{
    inf_runner_free(model->sched.runner);
    model->sched.runner = NULL;
    inf_timekeeper_fini(&timekeeper);
    for (uint32_t i = 0; i < member_count; i++) {
        free(members[i]);
    }
    instances_unlisted(model);
    inf_sequence_inputs_free(model->sched.sequence_inputs);
    model->sched.sequence_inputs = NULL;
    must(model->refs == 1);             /* no padding is out                 */
    inf_model_free(model);
    inf_rate_gate_free(gate);
    assert_false(atomic_load(&role_held));
}

static void
storm(storm_t kind)
{
    uint64_t ran = 0, rejected = 0;
    pthread_t late;

    how = kind;
    open_model();
    atomic_store(&late_ends, false);
    assert_int_equal(pthread_create(&late, NULL, late_main, NULL), 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        sender_t *s = &senders[i];
        s->seed = i + 1;
        s->ran = s->rejected = 0;
        for (int k = 0; k < AT_ONCE * STEPS; k++) {
            job_init(&s->steps[k / STEPS][k % STEPS].job);
        }
        assert_int_equal(pthread_create(&s->thread, NULL, sender_main, s), 0);
    }
    while (atomic_load(&done) < SENDERS) {
        if (how.changes) {
            change();
        }
        usleep(1000);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        ran += senders[i].ran;
        rejected += senders[i].rejected;
    }
    while (inf_runner_sequences(model->sched.runner) > 0) {     /* idle end  */
        usleep(1000);
    }
    atomic_store(&late_ends, true);
    pthread_join(late, NULL);
    assert_int_equal(inf_runner_pending(model->sched.runner), 0);

    close_model();
    assert_true(ran > 0 && rejected > 0);
    assert_true(how.oldest || paddings > 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        for (int k = 0; k < AT_ONCE * STEPS; k++) {
            job_fini(&senders[i].steps[k / STEPS][k % STEPS].job);
        }
    }
}

#define OLDEST "oldest { max_candidate_sequences: 5"                         \
    " preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 300 }"
#define DIRECT "direct { max_queue_delay_microseconds: 300"                  \
    " minimum_slot_utilization: 0.75 }"

static void
a_row_for_each_slot(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "direct { }" });
    storm((storm_t) { .scheduling = DIRECT, .leads = true, .late = true });
}

static void
the_oldest_first(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "oldest { }", .oldest = true });
    storm((storm_t) { .scheduling = OLDEST, .oldest = true, .leads = true,
        .late = true });
}

static void
instances_go_with_the_end_of_their_sequences(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = DIRECT, .changes = true });
    storm((storm_t) { .scheduling = "direct { }", .changes = true,
        .leads = true, .late = true });
    storm((storm_t) { .scheduling = OLDEST, .oldest = true, .changes = true,
        .late = true });
}

static void
resources_are_asked_for_too(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "direct { }", .limits = true,
        .leads = true });
    storm((storm_t) { .scheduling = OLDEST, .oldest = true, .limits = true,
        .changes = true });
}

/* A lost wake-up ends after so many seconds. */
int
main(int argc, char **argv)
{
    alarm(argc > 1 ? (unsigned) atoi(argv[1]) : 540);
    inf_log_set_levels(false, false, true, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_for_each_slot),
        cmocka_unit_test(the_oldest_first),
        cmocka_unit_test(instances_go_with_the_end_of_their_sequences),
        cmocka_unit_test(resources_are_asked_for_too)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
