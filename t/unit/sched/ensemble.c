#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/ensemble_world.h"

#define MANY 16

static uint64_t
failures(const inf_model_t *model, inf_failure_t why)
{
    return atomic_load(&model->statistics.failures[why]);
}

static void
run_ok(world_job_t *job)
{
    assert_null(job_submit(job));
    job_wait(job);
    assert_string_equal(job->text, "");
    assert_int_equal(job->errors, 0);
    assert_int_equal(job->finals, 1);
    assert_int_equal(job->released, 1);
}

/* Scenario 1. */
static void
a_step_runs_once_and_both_readers_get_its_response(void **state)
{
    (void) state;
    inf_model_t *pre = world_model("both", pair_config, "", 1);
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *b = world_model("slow", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "both:I0=X>O0=mid square:I0=mid>O0=OUT0 slow:I0=mid>O0=OUT1",
        pre, a, b);
    world_job_t job;
    job_init(&job);

    for (int i = 0; i < 20; i++) {
        job_begin(&job, e);
        job_input(&job, "X", 4);
        run_ok(&job);
        assert_int_equal(job.answers, 1);
        assert_int_equal(job.values[0][0], 25);
        assert_int_equal(job.values[0][1], 5);
        assert_int_equal(job.executing, 1);
    }
    assert_int_equal(world_of(pre)->executed, 20);
    assert_int_equal(world_of(a)->executed, 20);
    assert_int_equal(world_of(b)->executed, 20);

    inf_statistics_t *s = &e->statistics;
    assert_int_equal(s->success.count, 20);
    assert_int_equal(s->execution_count, 20);
    assert_int_equal(s->inference_count, 20);
    assert_int_equal(s->fail.count, 0);
    assert_int_equal(s->queue.ns, 0);
    assert_int_equal(s->compute_input.ns, 20 * 3 * 10);
    assert_int_equal(s->compute_infer.ns, 20 * 3 * 20);
    assert_int_equal(s->compute_output.ns, 20 * 3 * 30);
    job_fini(&job);
    world_free_ensemble(e);
}

/* Scenarios 2 and 3. */
static void
steps_that_nobody_asked_for_do_not_run(void **state)
{
    (void) state;
    inf_model_t *a = world_model("add_a", add_config, "", 1);
    inf_model_t *b = world_model("add_b", add_config, "", 1);
    inf_model_t *c = world_model("square", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") IN("Y") OUT("OUT0") OUT("OUT1"),
        "add_a:I0=X>O0=OUT0 add_b:I0=Y>O0=m square:I0=m>O0=OUT1", a, b, c);
    world_job_t job;
    job_init(&job);

    job_begin(&job, e);
    job_input(&job, "X", 3);
    job_input(&job, "Y", 4);
    job_want(&job, "OUT0");
    run_ok(&job);
    assert_true(job.has[0]);
    assert_false(job.has[1]);
    assert_int_equal(job.values[0][0], 3);
    assert_int_equal(world_of(b)->executed, 0);
    assert_int_equal(world_of(c)->executed, 0);

    job_begin(&job, e);
    job_input(&job, "X", 3);
    job_input(&job, "Y", 4);
    job_want(&job, "OUT1");
    run_ok(&job);
    assert_int_equal(job.values[0][1], 16);
    assert_int_equal(world_of(a)->executed, 1);
    job_fini(&job);
    world_free_ensemble(e);
}

static void
rejected(const char *ends, const char *steps, inf_model_t *one,
    const char *why)
{
    inf_model_t *model;
    inf_model_t *composing[4] = { one, one, one, one };
    size_t count = 1;
    for (const char *s = steps; *s != '\0'; s++) {
        count += *s == ' ';
    }

    inf_err_t *err = world_try(ends, steps, composing, count, &model);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), why);
    inf_err_free(err);
}

/* Scenarios 4 and 5, as far as it takes the models (the rest is the
   configuration's own, t/unit/model). */
static void
models_that_do_not_fit_are_rejected_with_their_names(void **state)
{
    (void) state;
    inf_model_t *plain = world_model("square", composing_config, "", 1);
    inf_model_t *four = world_model("square4", composing_config,
        "max_batch_size: 4", 1);
    inf_model_t *add = world_model("add", add_config, "", 1);
    inf_model_t *two = world_model("two", IN("I0")
        " input { name: \"I1\" data_type: TYPE_INT32 dims: [ 2 ] }"
        OUT("O0"), "", 1);

    rejected(IN("X") OUT("Y") "max_batch_size: 8", "square4:I0=X>O0=Y", four,
        "ensemble e allows maximum batch size 8, but it contains model square4"
        " which only allows maximum batch size to be 4");
    rejected(IN("X") OUT("Y"), "square:BAD=X>O0=Y", plain, "in ensemble e,"
        " ensemble tensor X is mapping to non-existing input BAD in model"
        " square");
    rejected(IN("X") OUT("Y"), "square:I0=X>BAD=Y", plain, "in ensemble e,"
        " ensemble tensor Y is mapped from non-existing output BAD in model"
        " square");
    rejected(IN("X") OUT("Y"), "two:I0=X>O0=Y", two, "in ensemble e, input I1"
        " in model two is not mapped to any ensemble tensors");
    rejected(IN("X") OUT("Y"), "square:I0=X>O0=Y square:I0=X>O0=Y", plain,
        "in ensemble e, ensemble tensor Y is written by more than one output,"
        " the last of them O0 of model square");
    rejected(" input { name: \"X\" data_type: TYPE_FP32 dims: [ -1 ] }"
        OUT("Y"), "square:I0=X>O0=Y", plain, "in ensemble e, ensemble tensor"
        " X: inconsistent data type: TYPE_FP32 is inferred from model e while"
        " TYPE_INT32 is inferred from model square");
    rejected(" input { name: \"X\" data_type: TYPE_INT32 dims: [ 2, 3 ] }"
        OUT("Y"), "square:I0=X>O0=Y", plain, "in ensemble e, ensemble tensor"
        " X: inconsistent shape: [2,3] is inferred from model e while [-1] is"
        " inferred from model square");
    rejected(IN("X") OUT("Y"), "add:I0=X,I1=b>O0=a add:I0=a>O0=b"
        " add:I0=X>O0=Y", add, "ensemble e has a step that can never start:"
        " what it reads depends on itself, or is not connected");

    /* a model that doesn't batch takes the batch as a dimension */
    inf_model_t *wide = world_model("square0", " input { name: \"I0\""
        " data_type: TYPE_INT32 dims: [ -1, 1 ] } output { name: \"O0\""
        " data_type: TYPE_INT32 dims: [ -1, 1 ] }", "", 1);
    inf_model_t *ok = world_ensemble(" input { name: \"X\" data_type:"
        " TYPE_INT32 dims: [ 1 ] } output { name: \"OUT0\" data_type:"
        " TYPE_INT32 dims: [ 1 ] } max_batch_size: 8", "square0:I0=X>O0=OUT0",
        wide);
    world_job_t job;
    job_init(&job);
    job_begin(&job, ok);
    job_input_shape(&job, "X", 5, (const int64_t[]) { 3, 1 }, 2);
    run_ok(&job);
    assert_int_equal(world_of(wide)->dims[0], 3);
    assert_int_equal(world_of(wide)->dims[1], 1);
    assert_int_equal(job.out_dims[0], 2);
    assert_int_equal(ok->statistics.inference_count, 3);
    job_fini(&job);
    world_free_ensemble(ok);
}

static void
different_decoupled_sources_can_not_be_combined(void **state)
{
    (void) state;
    inf_model_t *r1 = world_model("repeat1", decoupled_config, "", 1);
    inf_model_t *r2 = world_model("repeat2", decoupled_config, "", 1);
    inf_model_t *add = world_model("add", add_config, "", 1);
    inf_model_t *model;
    inf_model_t *composing[] = { r1, r2, add };

    inf_err_t *err = world_try(IN("X") OUT("Y"), "repeat1:I0=X>O0=a"
        " repeat2:I0=X>O0=b add:I0=a,I1=b>O0=Y", composing, 3, &model);
    assert_string_equal(inf_err_msg(err), "in ensemble e, step of model 'add'"
        " receives inputs originated from different decoupled models");
    inf_err_free(err);

    inf_model_t *some[] = { r1, add };
    err = world_try(IN("X") OUT("Y"), "repeat1:I0=X>O0=a"
        " add:I0=a,I1=X>O0=Y", some, 2, &model);
    assert_non_null(err);
    inf_err_free(err);

    err = world_try(IN("X") OUT("Y") " response_cache { enable: true }",
        "repeat1:I0=X>O0=Y", some, 1, &model);
    assert_string_equal(inf_err_msg(err), "Response Cache does not currently"
        " support model e with 'decoupled' transaction policy. Please disable"
        " the response cache.");
    inf_err_free(err);
}

/* docs/differences.md */
static void
outputs_of_two_decoupled_models_are_asked_for_one_at_a_time(void **state)
{
    (void) state;
    inf_model_t *r1 = world_model("repeat1", decoupled_config, "", 1);
    inf_model_t *r2 = world_model("repeat2", decoupled_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "repeat1:I0=X>O0=OUT0 repeat2:I0=X>O0=OUT1", r1, r2);
    world_job_t job;
    job_init(&job);

    job_begin(&job, e);
    job_input(&job, "X", 3);
    inf_err_t *err = job_submit(&job);
    assert_non_null(strstr(inf_err_msg(err), "come from different decoupled"
        " models and can't be asked for together"));
    inf_err_free(err);

    for (uint32_t o = 0; o < 2; o++) {
        job_begin(&job, e);
        job_input(&job, "X", 3);
        job_want(&job, o == 0 ? "OUT0" : "OUT1");
        run_ok(&job);
        assert_int_equal(job.answers, 3);
        assert_true(job.has[o]);
        assert_false(job.has[1 - o]);
    }
    job_fini(&job);
    world_free_ensemble(e);
}

/* The four ways of a batch dimension between two models. */
static void
batch_dimensions_are_reconciled(void **state)
{
    (void) state;
    static const char one[] = " input { name: \"I0\" data_type: TYPE_INT32"
        " dims: [ 2 ] } output { name: \"O0\" data_type: TYPE_INT32"
        " dims: [ 2 ] }";
    inf_model_t *batches = world_model("square_b", one, "max_batch_size: 4",
        1);
    inf_model_t *plain = world_model("square_p", one, "", 1);
    inf_model_t *whole = world_model("square_w", " input { name: \"I0\""
        " data_type: TYPE_INT32 dims: [ -1, 2 ] } output { name: \"O0\""
        " data_type: TYPE_INT32 dims: [ -1, 2 ] }", "", 1);
    static const char ends[] = " input { name: \"X\" data_type: TYPE_INT32"
        " dims: [ 2 ] } output { name: \"OUT0\" data_type: TYPE_INT32"
        " dims: [ 2 ] }";
    world_job_t job;
    job_init(&job);

    /* [2] -> prepended [1,2] -> stripped [2] for the client */
    inf_model_t *e = world_ensemble(ends,
        "square_p:I0=X>O0=m square_b:I0=m>O0=OUT0", plain, batches);
    job_begin(&job, e);
    job_input_shape(&job, "X", 2, (const int64_t[]) { 2 }, 1);
    run_ok(&job);
    assert_int_equal(world_of(batches)->dims[0], 1);
    assert_int_equal(world_of(batches)->dims[1], 2);
    assert_int_equal(job.out_dims[0], 1);
    assert_int_equal(job.values[0][0], 16);
    world_free_ensemble(e);

    /* [1,2] of a batch -> stripped where the model has no batch */
    e = world_ensemble(ends, "square_b:I0=X>O0=m square_p:I0=m>O0=OUT0",
        batches, plain);
    job_begin(&job, e);
    job_input_shape(&job, "X", 2, (const int64_t[]) { 2 }, 1);
    run_ok(&job);
    assert_int_equal(world_of(plain)->dims[0], 2);
    assert_int_equal(world_of(plain)->dims[1], -1);
    world_free_ensemble(e);

    /* [3,2] unbatched -> its first dimension is the batch, and back */
    e = world_ensemble(" input { name: \"X\" data_type: TYPE_INT32"
        " dims: [ -1, 2 ] } output { name: \"OUT0\" data_type: TYPE_INT32"
        " dims: [ -1, 2 ] }", "square_w:I0=X>O0=m square_b:I0=m>O0=n"
        " square_w:I0=n>O0=OUT0", whole, batches, whole);
    job_begin(&job, e);
    job_input_shape(&job, "X", 2, (const int64_t[]) { 3, 2 }, 2);
    run_ok(&job);
    assert_int_equal(world_of(batches)->dims[0], 3);
    assert_int_equal(job.out_dims[0], 2);
    world_free_ensemble(e);

    /* the ensemble's own reshape, in and out */
    e = world_ensemble(" input { name: \"X\" data_type: TYPE_INT32 dims:"
        " [ 2, 3 ] reshape { shape: [ 3, 2 ] } } output { name: \"OUT0\""
        " data_type: TYPE_INT32 dims: [ 2, 3 ] reshape { shape: [ 3, 2 ] } }",
        "square_w:I0=X>O0=OUT0", whole);
    job_begin(&job, e);
    job_input_shape(&job, "X", 2, (const int64_t[]) { 2, 3 }, 2);
    run_ok(&job);
    assert_int_equal(world_of(whole)->dims[0], 3);
    assert_int_equal(world_of(whole)->dims[1], 2);
    assert_int_equal(job.out_shape[0], 2);
    assert_int_equal(job.out_shape[1], 3);
    world_free_ensemble(e);
    job_fini(&job);
}

/* Scenario 6. */
static void
flags_and_what_steps_say_of_their_sequence_travel(void **state)
{
    (void) state;
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *b = world_model("label", composing_config, "", 1);
    inf_model_t *c = world_model("slow", composing_config, "", 1);
    inf_model_t *plain = world_ensemble(IN("X") OUT("OUT0"),
        "square:I0=X>O0=OUT0", a);
    inf_model_t *named = world_ensemble(IN("X") OUT("OUT0"),
        "label:I0=X>O0=m slow:I0=m>O0=OUT0", b, c);
    world_job_t job;
    job_init(&job);

    for (uint32_t i = 0; i < 3; i++) {
        job_begin(&job, plain);
        job_input(&job, "X", 1);
        job.request.correlation_id = 5;
        job.request.flags = i == 0 ? INF_REQUEST_SEQUENCE_START
            : i == 2 ? INF_REQUEST_SEQUENCE_END : 0;
        run_ok(&job);
        assert_int_equal(job.sequence, 5);
        assert_int_equal(job.start, i == 0);
        assert_int_equal(job.end, i == 2);
        assert_int_equal(world_of(a)->flags, job.request.flags);
        assert_int_equal(world_of(a)->correlation_id, 5);
    }

    job_begin(&job, named);
    job_input(&job, "X", 1);
    job.request.correlation_id = 5;
    job.request.flags = INF_REQUEST_SEQUENCE_START;
    run_ok(&job);
    assert_int_equal(world_of(b)->correlation_id, 5);
    assert_int_equal(world_of(b)->flags, INF_REQUEST_SEQUENCE_START);
    assert_int_equal(world_of(c)->correlation_id, 77);
    assert_int_equal(world_of(c)->flags, INF_REQUEST_SEQUENCE_START
        | INF_REQUEST_SEQUENCE_END);
    assert_int_equal(job.sequence, 77);
    assert_true(job.start && job.end);
    job_fini(&job);
    world_free_ensemble(plain);
    world_free_ensemble(named);
}

/* Scenario 7, and the same of an input of the ensemble. */
static void
what_is_left_out_is_empty(void **state)
{
    (void) state;
    inf_model_t *half = world_model("half", pair_config, "", 1);
    inf_model_t *add = world_model("add", add_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "half:I0=X>O0=OUT0,O1=OUT1", half);
    inf_model_t *chain = world_ensemble(IN("X") MAYBE("Y") OUT("OUT0"),
        "half:I0=X>O0=a,O1=b add:I0=a,I1=b>O0=c add:I0=c,I1=Y>O0=OUT0",
        half, add, add);
    world_job_t job;
    job_init(&job);

    job_begin(&job, e);
    job_input(&job, "X", 6);
    run_ok(&job);
    assert_true(job.has[0]);
    assert_false(job.has[1]);

    job_begin(&job, chain);
    job_input(&job, "X", 6);
    run_ok(&job);
    assert_int_equal(job.values[0][0], 6);
    job_begin(&job, chain);
    job_input(&job, "X", 6);
    job_input(&job, "Y", 10);
    run_ok(&job);
    assert_int_equal(job.values[0][0], 16);
    job_fini(&job);
    world_free_ensemble(e);
    world_free_ensemble(chain);
}

/* Scenario 8. */
static void
a_stream_comes_in_its_producers_order(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("repeat", decoupled_config, "", 1);
    inf_model_t *shuffle = world_model("shuffle", composing_config, "", 4);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "repeat:I0=X>O0=m shuffle:I0=m>O0=OUT0", repeat, shuffle);
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);
    assert_true(inf_model_is_decoupled(e));

    for (int32_t n = 0; n <= 100; n = n * 4 + 1) {
        job_begin(job, e);
        job_input(job, "X", n);
        run_ok(job);
        assert_int_equal(job->answers, n);
        for (int32_t i = 0; i < n; i++) {
            assert_int_equal(job->values[i][0], i);
        }
    }
    job_fini(job);
    free(job);
    world_free_ensemble(e);
}

/* Scenario 9. */
static void
a_fan_pairs_the_same_item(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("thread", decoupled_config, "", 1);
    inf_model_t *shuffle = world_model("shuffle", composing_config, "", 4);
    inf_model_t *add = world_model("add", add_config, "", 2);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "thread:I0=X>O0=OUT1 shuffle:I0=OUT1>O0=m add:I0=OUT1,I1=m>O0=OUT0",
        repeat, shuffle, add);
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);

    for (int i = 0; i < 4; i++) {
        job->shares = i % 2;
        job_begin(job, e);
        job_input(job, "X", 100);
        run_ok(job);
        assert_int_equal(job->answers, 100);
        for (int32_t k = 0; k < 100; k++) {
            assert_int_equal(job->values[k][0], 2 * k);
            assert_int_equal(job->values[k][1], k);
        }
        /* steps read what the client has, where that can be */
        assert_int_equal(atomic_load(&world.shared) > 0, i > 0);
    }
    job_fini(job);
    free(job);
    world_free_ensemble(e);
}

/* Scenario 10. */
static void
no_step_has_more_than_its_permits(void **state)
{
    (void) state;
    static const char *const most[] = { "most=4", "most=1" };
    inf_model_t *repeat = world_model("thread", decoupled_config, "", 4);
    inf_model_t *slow = world_model("shuffle", composing_config, "", 3);
    world_job_t *jobs = calloc(MANY, sizeof(*jobs));

    for (int m = 0; m < 2; m++) {
        char steps[128];
        snprintf(steps, sizeof(steps), "thread:I0=X>O0=m"
            " shuffle:I0=m>O0=OUT0 %s", most[m]);
        inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"), steps, repeat,
            slow);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < MANY; i++) {
                job_init(&jobs[i]);
                job_begin(&jobs[i], e);
                job_input(&jobs[i], "X", 32);
                assert_null(job_submit(&jobs[i]));
            }
            for (int i = 0; i < MANY; i++) {
                job_wait(&jobs[i]);
                assert_int_equal(jobs[i].answers, 32);
                assert_int_equal(jobs[i].errors, 0);
                for (int32_t k = 0; k < 32; k++) {
                    assert_int_equal(jobs[i].values[k][0], k);
                }
                job_fini(&jobs[i]);
            }
        }
        world_free_ensemble(e);
    }
    assert_int_equal(inf_pause_count(), 0);
    free(jobs);
}

/* The producer is paused: with the consumer at the gate no more than permits
   and what the producer holds in its hand are made. */
static void
a_producer_waits_for_its_consumer_and_no_longer(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("repeat", decoupled_config, "", 1);
    inf_model_t *gate = world_model("gate", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "repeat:I0=X>O0=m gate:I0=m>O0=OUT0 most=2", repeat, gate);
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);

    job_begin(job, e);
    job_input(job, "X", 50);
    assert_null(job_submit(job));
    wait_at_gate(1);
    while (inf_pause_count() == 0 || atomic_load(&world.sleeps) == 0) {
        usleep(100);
    }
    assert_int_equal(inf_runner_queued(gate->sched.runner), 1);
    assert_int_equal(atomic_load(&world.sleeps), 1);
    open_gate(true);
    job_wait(job);
    assert_int_equal(job->answers, 50);
    assert_int_equal(inf_pause_count(), 0);

    /* a cancel wakes it at once, though the consumer goes on */
    open_gate(false);
    job_begin(job, e);
    job_input(job, "X", 50);
    assert_null(job_submit(job));
    wait_at_gate(1);
    while (inf_pause_count() == 0) {
        usleep(100);
    }
    job_cancel(job);
    while (inf_pause_count() > 0) {
        usleep(100);
    }
    while (inf_runner_pending(repeat->sched.runner) > 0) {
        usleep(100);                /* it saw the flag and has ended         */
    }
    open_gate(true);
    job_wait(job);
    assert_int_equal(job->errors, 1);
    assert_int_equal(job->code, INF_ERR_CANCELLED);
    assert_string_equal(job->text, "");

    /* and so does the request's timeout, which ends nothing else */
    open_gate(false);
    job_begin(job, e);
    job_input(job, "X", 6);
    job->request.timeout_us = 20000;
    assert_null(job_submit(job));
    wait_at_gate(1);
    while (inf_runner_pending(repeat->sched.runner) > 0) {
        usleep(100);
    }
    open_gate(true);
    job_wait(job);
    assert_int_equal(job->answers, 6);
    job_fini(job);
    free(job);
    world_free_ensemble(e);
}

/* Producers that wait never keep their consumers from running. */
static void
nobody_waits_for_himself(void **state)
{
    (void) state;
    inf_model_t *one = world_model("repeat1", decoupled_config, "", 1);
    inf_model_t *two = world_model("repeat2", decoupled_config, "", 1);
    inf_model_t *self = world_ensemble(IN("X") OUT("OUT0"),
        "repeat1:I0=X>O0=m repeat1:I0=m>O0=OUT0 most=1", one, one);
    inf_model_t *there = world_ensemble(IN("X") OUT("OUT0"),
        "repeat1:I0=X>O0=m repeat2:I0=m>O0=OUT0 most=1", one, two);
    inf_model_t *back = world_ensemble(IN("X") OUT("OUT0"),
        "repeat2:I0=X>O0=m repeat1:I0=m>O0=OUT0 most=1", two, one);
    inf_model_t *const all[] = { self, there, back };
    world_job_t *jobs = calloc(MANY, sizeof(*jobs));

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < MANY; i++) {
            job_init(&jobs[i]);
            job_begin(&jobs[i], all[i % 3]);
            job_input(&jobs[i], "X", 20);
            assert_null(job_submit(&jobs[i]));
        }
        for (int i = 0; i < MANY; i++) {
            job_wait(&jobs[i]);
            assert_int_equal(jobs[i].answers, 19 * 20 / 2);
            job_fini(&jobs[i]);
        }
    }
    assert_int_equal(inf_pause_count(), 0);
    free(jobs);
    for (int i = 0; i < 3; i++) {
        world_free_ensemble(all[i]);
    }
}

/* Scenario 11, and with a branch beside. */
static void
a_full_queue_ends_a_stream_with_one_error(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("repeat", decoupled_config, "", 1);
    inf_model_t *slow = world_model("slow", composing_config,
        "max_batch_size: 1"
        " dynamic_batching { default_queue_policy { max_queue_size: 4 } }", 1);
    inf_model_t *other = world_model("shuffle", composing_config, "", 2);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "repeat:I0=X>O0=m slow:I0=m>O0=OUT0", repeat, slow);
    inf_model_t *fork = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "repeat:I0=X>O0=m slow:I0=m>O0=OUT0 shuffle:I0=m>O0=OUT1", repeat,
        slow, other);
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);

    for (int i = 0; i < 2; i++) {
        inf_model_t *model = i == 0 ? e : fork;
        job_begin(job, model);
        job_input(job, "X", 60);
        assert_null(job_submit(job));
        job_wait(job);
        assert_true(job->answers < 60);
        assert_int_equal(job->errors, 1);
        assert_int_equal(job->finals, 1);
        assert_int_equal(job->code, INF_ERR_UNAVAILABLE);
        assert_non_null(strstr(job->text, "Exceeds maximum queue size"));
        assert_memory_equal(job->text, "in ensemble 'e', ", 17);
        assert_null(strstr(job->text + 1, "in ensemble"));
        assert_int_equal(failures(model, INF_FAILURE_OTHER), 1);
        assert_int_equal(model->statistics.fail.count, 1);
    }
    job_fini(job);
    free(job);
    world_free_ensemble(e);
    world_free_ensemble(fork);
}

/* Scenario 12, and scenario 10 of cancellation. */
static void
a_cancelled_request_runs_no_further_step(void **state)
{
    (void) state;
    inf_model_t *gate = world_model("gate", composing_config, "", 1);
    inf_model_t *next = world_model("square", composing_config,
        "max_batch_size: 4 dynamic_batching { }", 1);
    inf_model_t *plain = world_model("square0", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "gate:I0=X>O0=m square:I0=m>O0=OUT0", gate, next);
    inf_model_t *e0 = world_ensemble(IN("X") OUT("OUT0"),
        "gate:I0=X>O0=m square0:I0=m>O0=OUT0", gate, plain);
    inf_model_t *last = world_ensemble(IN("X") OUT("OUT0"),
        "gate:I0=X>O0=OUT0", gate);
    world_job_t jobs[3];

    for (int i = 0; i < 2; i++) {
        job_init(&jobs[i]);
        job_begin(&jobs[i], i == 0 ? e : e0);
        job_input(&jobs[i], "X", 1);
        assert_null(job_submit(&jobs[i]));
    }
    wait_at_gate(1);

    /* the second one's step is queued: it goes at once */
    job_cancel(&jobs[1]);
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].code, INF_ERR_CANCELLED);
    assert_string_equal(jobs[1].text, "");
    assert_int_equal(jobs[1].executing, 0);
    assert_int_equal(failures(e0, INF_FAILURE_OTHER), 1);

    job_cancel(&jobs[0]);
    open_gate(true);
    job_wait(&jobs[0]);
    assert_int_equal(jobs[0].code, INF_ERR_CANCELLED);
    assert_int_equal(jobs[0].executing, 1);
    assert_true(world_of(gate)->saw_cancel);
    assert_int_equal(world_of(next)->executed, 0);
    assert_int_equal(world_of(plain)->executed, 0);

    /* one whose last step runs is answered as if nothing had been */
    open_gate(false);
    job_init(&jobs[2]);
    job_begin(&jobs[2], last);
    job_input(&jobs[2], "X", 9);
    assert_null(job_submit(&jobs[2]));
    wait_at_gate(1);
    job_cancel(&jobs[2]);
    open_gate(true);
    job_wait(&jobs[2]);
    assert_int_equal(jobs[2].errors, 0);
    assert_int_equal(jobs[2].values[0][0], 9);

    for (int i = 0; i < 3; i++) {
        job_fini(&jobs[i]);
    }
    world_free_ensemble(e);
    world_free_ensemble(e0);
    world_free_ensemble(last);
}

/* Whether it is at the gate; false: it was answered before. */
static bool
at_gate_or_over(world_job_t *job)
{
    for (;;) {
        pthread_mutex_lock(&world.lock);
        bool at_gate = world.at_gate > 0;
        pthread_mutex_unlock(&world.lock);
        pthread_mutex_lock(&job->lock);
        bool over = job->freed > 0;
        pthread_mutex_unlock(&job->lock);
        if (at_gate || over) {
            return at_gate;
        }
        usleep(100);
    }
}

/* Scenario 13. */
static void
a_step_that_times_out_counts_once_there_and_once_here(void **state)
{
    (void) state;
    inf_model_t *gate = world_model("gate", composing_config,
        "max_batch_size: 1"
        " dynamic_batching { default_queue_policy { timeout_action: REJECT"
        " default_timeout_microseconds: 1000 } }", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "gate:I0=X>O0=OUT0", gate);
    world_job_t jobs[2];

    job_init(&jobs[0]);
    job_init(&jobs[1]);
    do {                        /* on a busy machine this one may be late    */
        job_begin(&jobs[0], e);
        job_input(&jobs[0], "X", 1);
        assert_null(job_submit(&jobs[0]));
    } while (!at_gate_or_over(&jobs[0]));
    uint64_t late = failures(e, INF_FAILURE_OTHER);

    job_begin(&jobs[1], e);
    job_input(&jobs[1], "X", 1);
    assert_null(job_submit(&jobs[1]));
    job_wait(&jobs[1]);
    assert_int_equal(jobs[1].code, INF_ERR_UNAVAILABLE);
    assert_string_equal(jobs[1].text,
        "in ensemble 'e', Request timeout expired");
    assert_int_equal(failures(gate, INF_FAILURE_REJECTED), late + 1);
    assert_int_equal(failures(e, INF_FAILURE_OTHER), late + 1);
    assert_int_equal(failures(e, INF_FAILURE_REJECTED), 0);
    assert_int_equal(e->statistics.fail.count, late + 1);
    open_gate(true);
    job_wait(&jobs[0]);
    for (int i = 0; i < 2; i++) {
        job_fini(&jobs[i]);
    }
    world_free_ensemble(e);
}

/* Scenario 14. */
static void
priority_and_timeout_reach_every_step(void **state)
{
    (void) state;
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *b = world_model("slow", composing_config,
        "max_batch_size: 1"
        " dynamic_batching { priority_levels: 3 default_priority_level: 3 }",
        1);
    inf_model_t *inner = world_ensemble(IN("X") OUT("Y"),
        "slow:I0=X>O0=Y", b);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "square:I0=X>O0=m e:X=m>Y=OUT0", a, inner);
    world_job_t job;
    job_init(&job);

    job_begin(&job, e);
    job_input(&job, "X", 3);
    job.request.priority = 1;
    job.request.timeout_us = 5000000;
    run_ok(&job);
    assert_int_equal(job.values[0][0], 9);
    assert_int_equal(world_of(b)->priority, 1);
    assert_int_equal(world_of(b)->timeout_us, 5000000);
    assert_int_equal(inner->statistics.success.count, 1);
    assert_int_equal(e->statistics.compute_infer.ns, 40);
    job_fini(&job);
    world_free_ensemble(e);
    world_free_ensemble(inner);
}

static void
ensembles_of_ensembles_stream_and_fail_as_one(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("repeat", decoupled_config, "", 1);
    inf_model_t *shuffle = world_model("shuffle", composing_config, "", 4);
    inf_model_t *fails = world_model("fail", composing_config, "", 1);
    inf_model_t *bad = world_ensemble(IN("X") OUT("Y"), "fail:I0=X>O0=Y",
        fails);
    inf_model_t *inner = world_ensemble(IN("X") OUT("Y"),
        "repeat:I0=X>O0=m shuffle:I0=m>O0=Y most=2", repeat, shuffle);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "e:X=X>Y=m shuffle:I0=m>O0=OUT0 most=3", inner, shuffle);
    inf_model_t *worse = world_ensemble(IN("X") OUT("OUT0"),
        "e:X=X>Y=m e:X=m>Y=OUT0", inner, bad);
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);

    job_begin(job, e);
    job_input(job, "X", 200);
    run_ok(job);
    assert_int_equal(job->answers, 200);
    for (int32_t k = 0; k < 200; k++) {
        assert_int_equal(job->values[k][0], k);
    }

    job_begin(job, worse);
    job_input(job, "X", 5);
    assert_null(job_submit(job));
    job_wait(job);
    assert_int_equal(job->answers, 0);
    assert_int_equal(job->errors, 1);
    assert_int_equal(job->code, INF_ERR_INTERNAL);
    assert_string_equal(job->text, "in ensemble 'e', in ensemble 'e', it went"
        " wrong");
    job_fini(job);
    free(job);
    world_free_ensemble(worse);
    world_free_ensemble(e);
    world_free_ensemble(inner);
    world_free_ensemble(bad);
}

static void
a_model_that_forgets_its_request_fails_it(void **state)
{
    (void) state;
    inf_model_t *mute = world_model("mute", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"), "mute:I0=X>O0=OUT0",
        mute);
    world_job_t job;
    job_init(&job);

    for (int i = 0; i < 3; i++) {
        job_begin(&job, e);
        job_input(&job, "X", 1);
        assert_null(job_submit(&job));
        job_wait(&job);
        assert_int_equal(job.errors, 1);
        assert_int_equal(job.finals, 1);
        assert_string_equal(job.text, "in ensemble 'e', backend '' of model"
            " 'mute' released the request without a final response");
    }
    job_fini(&job);
    world_free_ensemble(e);
}

/* A shape that a step does not take is found when the step would start. */
static void
what_a_step_can_not_take_is_the_requests_error(void **state)
{
    (void) state;
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *three = world_model("slow", " input { name: \"I0\" data_type:"
        " TYPE_INT32 dims: [ 3 ] }" OUT("O0"), "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "square:I0=X>O0=m slow:I0=m>O0=OUT0", a, three);
    world_job_t job;
    job_init(&job);

    job_begin(&job, e);
    job_input(&job, "X", 1);
    assert_null(job_submit(&job));
    job_wait(&job);
    assert_int_equal(job.code, INF_ERR_INVALID_ARG);
    assert_non_null(strstr(job.text, "in ensemble 'e', unexpected shape for"
        " input 'I0' for model 'slow'. Expected [3], got [1]"));
    assert_int_equal(job.executing, 1);
    job_fini(&job);
    world_free_ensemble(e);
}

/* Section 9, scenario 2. */
static void
a_stop_begins_no_sequence(void **state)
{
    (void) state;
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *inner = world_ensemble(IN("X") OUT("Y"),
        "square:I0=X>O0=Y", a);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "e:X=X>Y=n square:I0=n>O0=OUT0", inner, a);
    world_job_t job;
    job_init(&job);

    inf_ensemble_end_sequences(inner->sched.ensemble);
    for (int i = 0; i < 4; i++) {
        job_begin(&job, e);
        job_input(&job, "X", 2);
        job.request.correlation_id = 5;
        job.request.flags = i % 2 == 0 ? INF_REQUEST_SEQUENCE_START
            : INF_REQUEST_SEQUENCE_END;
        if (i != 2) {
            run_ok(&job);
            assert_int_equal(job.values[0][0], 16);
            inf_ensemble_end_sequences(e->sched.ensemble);
            continue;
        }
        inf_err_t *err = job_submit(&job);
        assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
        inf_err_free(err);
    }
    job_fini(&job);
    world_free_ensemble(e);
    world_free_ensemble(inner);
}

/* Section 9, scenario 4. */
static void
a_stop_lets_what_runs_go_on_to_its_end(void **state)
{
    (void) state;
    inf_model_t *gate = world_model("gate", composing_config, "", 1);
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *inner = world_ensemble(IN("X") OUT("Y"),
        "square:I0=X>O0=Y", a);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0"),
        "gate:I0=X>O0=m e:X=m>Y=n square:I0=n>O0=OUT0", gate, inner, a);
    world_job_t job, late;
    job_init(&job);
    job_init(&late);

    job_begin(&job, e);
    job_input(&job, "X", 2);
    assert_null(job_submit(&job));
    wait_at_gate(1);
    inf_entrance_close(a);
    inf_entrance_close(gate);
    inf_entrance_close(inner);
    inf_entrance_close(e);

    for (int i = 0; i < 2; i++) {
        job_begin(&late, i == 0 ? e : inner);
        job_input(&late, "X", 2);
        inf_err_t *err = job_submit(&late);
        assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
        inf_err_free(err);
    }
    open_gate(true);
    job_wait(&job);
    assert_int_equal(job.errors, 0);
    assert_int_equal(job.values[0][0], 16);
    job_fini(&job);
    job_fini(&late);
    world_free_ensemble(e);
    world_free_ensemble(inner);
}

/* A tensor that is only an output is made where the client wants it. */
static void
outputs_are_made_in_the_clients_memory(void **state)
{
    (void) state;
    inf_model_t *both = world_model("both", pair_config, "", 1);
    inf_model_t *a = world_model("square", composing_config, "", 1);
    inf_model_t *e = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "both:I0=X>O0=OUT0,O1=OUT1 square:I0=OUT0>O0=rest both:I0=rest>O0=z"
        , both, a, both);
    (void) e;
    world_job_t job;
    job_init(&job);

    for (int i = 0; i < 2; i++) {
        atomic_store(&world.allocs, 0);
        job.shares = i == 1;
        job_begin(&job, e);
        job_input(&job, "X", 1);
        run_ok(&job);
        assert_int_equal(job.values[0][0], 2);
        assert_int_equal(job.values[0][1], 3);
        assert_int_equal(atomic_load(&world.allocs), 2);
    }
    job_fini(&job);
    world_free_ensemble(e);
}

typedef struct {
    inf_model_t *const *models;
    _Atomic bool       *stop;
    unsigned            seed;
    uint32_t            done;
} load_t;

static void *
load_main(void *arg)
{
    load_t *l = arg;
    world_job_t *job = malloc(sizeof(*job));
    job_init(job);

    while (!atomic_load(l->stop)) {
        uint32_t pick = (uint32_t) rand_r(&l->seed);
        job->shares = pick & 1;
        job_begin(job, l->models[(pick >> 3) % 3]);
        job_input(job, "X", (int32_t) (pick >> 5) % 40);
        inf_err_t *err = job_submit(job);
        if (err != NULL) {
            abort();
        }
        if ((pick >> 12) % 4 == 0) {
            usleep((pick >> 15) % 300);
            inf_factory_t *f = &job->factory;
            if (inf_factory_try_ref(f)) {
                job_cancel(job);
                inf_factory_unref(f);
            }
        }
        job_wait(job);
        if (job->finals != 1 || job->released != 1) {
            abort();
        }
        l->done++;
    }
    job_fini(job);
    free(job);
    return NULL;
}

/* For the thread sanitizer: everything at once, with cancels. */
static void
threads_cancels_and_streams_go_together(void **state)
{
    (void) state;
    inf_model_t *repeat = world_model("repeat", decoupled_config, "", 2);
    inf_model_t *thread = world_model("thread", decoupled_config, "", 2);
    inf_model_t *shuffle = world_model("shuffle", composing_config, "", 4);
    inf_model_t *add = world_model("add", add_config, "max_batch_size: 8"
        " dynamic_batching { }", 2);
    inf_model_t *fan = world_ensemble(IN("X") OUT("OUT0") OUT("OUT1"),
        "thread:I0=X>O0=OUT1 shuffle:I0=OUT1>O0=m add:I0=OUT1,I1=m>O0=OUT0"
        " most=3", thread, shuffle, add);
    inf_model_t *line = world_ensemble(IN("X") OUT("OUT0"),
        "repeat:I0=X>O0=m shuffle:I0=m>O0=OUT0 most=1", repeat, shuffle);
    inf_model_t *inner = world_ensemble(IN("X") OUT("OUT0"),
        "shuffle:I0=X>O0=m e:X=m>OUT0=n add:I0=n>O0=OUT0", shuffle, line,
        add);
    inf_model_t *const models[] = { fan, line, inner };
    _Atomic bool stop = false;
    load_t loads[6];
    pthread_t threads[6];

    for (unsigned i = 0; i < 6; i++) {
        loads[i] = (load_t) { .models = models, .stop = &stop,
            .seed = i + 1 };
        assert_int_equal(pthread_create(&threads[i], NULL, load_main,
            &loads[i]), 0);
    }
    usleep(1500000);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_true(loads[i].done > 0);
    }
    world_free_ensemble(inner);
    world_free_ensemble(fan);
    world_free_ensemble(line);
    assert_int_equal(inf_pause_count(), 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, world_start,         \
    world_end)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_step_runs_once_and_both_readers_get_its_response),
        test(steps_that_nobody_asked_for_do_not_run),
        test(models_that_do_not_fit_are_rejected_with_their_names),
        test(different_decoupled_sources_can_not_be_combined),
        test(outputs_of_two_decoupled_models_are_asked_for_one_at_a_time),
        test(batch_dimensions_are_reconciled),
        test(flags_and_what_steps_say_of_their_sequence_travel),
        test(what_is_left_out_is_empty),
        test(a_stream_comes_in_its_producers_order),
        test(a_fan_pairs_the_same_item),
        test(no_step_has_more_than_its_permits),
        test(a_producer_waits_for_its_consumer_and_no_longer),
        test(nobody_waits_for_himself),
        test(a_full_queue_ends_a_stream_with_one_error),
        test(a_cancelled_request_runs_no_further_step),
        test(a_step_that_times_out_counts_once_there_and_once_here),
        test(priority_and_timeout_reach_every_step),
        test(ensembles_of_ensembles_stream_and_fail_as_one),
        test(a_model_that_forgets_its_request_fails_it),
        test(what_a_step_can_not_take_is_the_requests_error),
        test(a_stop_begins_no_sequence),
        test(a_stop_lets_what_runs_go_on_to_its_end),
        test(outputs_are_made_in_the_clients_memory),
        test(threads_cancels_and_streams_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
