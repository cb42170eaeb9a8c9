/* executions on a runtime of the test: batches, halves, states, controls,
   batch tensors, memory of a GPU */

#include "common_world.h"

#include "backends/common/runner.h"

#define REQUESTS_MAX 8
#define RUNS_MAX     64
#define BAD          666.0f             /* a number that the runtime rejects */

#define X_Y "{\"max_batch_size\":16,\"input\":[{\"name\":\"X\"," \
    "\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],\"output\":[{\"name\":" \
    "\"Y\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]"

/* Settings of the test, and what the runtime has seen. */
typedef struct {
    TRITONSERVER_Error_Code code;       /* for BAD                           */
    bool                    own_memory; /* rejects outputs preallocated      */
    bool                    cancels;    /* all requests but one, then all    */
    uint32_t                rows_more;  /* in outputs that are its own       */

    bk_run_t                run;        /* the last one                      */
    int32_t                 control[REQUESTS_MAX];
    uint32_t                runs;
    uint32_t                sizes[RUNS_MAX];    /* requests of each run      */
    uint32_t                done;       /* calls of done                     */
    uint32_t                abandoned;  /* questions answered with yes       */
} runtime_t;

typedef struct {
    fake_model_t      model;
    bk_model_config_t config;
    bk_tensors_t      tensors;
    runtime_t         runtime;
    bk_runner_t       runner;
    fake_request_t   *requests[REQUESTS_MAX];
    uint32_t          count;
} world_t;

static const bk_value_t *
input_of(const bk_run_t *run, const char *name)
{
    for (uint32_t i = 0; i < run->input_count; i++) {
        if (strcmp(run->inputs[i].tensor->name, name) == 0) {
            return &run->inputs[i];
        }
    }

    fail_msg("the run has no input %s", name);
    return NULL;
}

/* Of its own: with rows_more rows, or of X's elements in one dimension. */
static void
output_make(const runtime_t *rt, bk_value_t *to, const bk_value_t *x)
{
    to->handle = malloc(x->len_bytes + rt->rows_more * 8 + 1);
    to->data = to->handle;
    to->dims_count = x->dims_count;
    memcpy(to->dims, x->dims, x->dims_count * sizeof(*x->dims));
    to->dims[0] += rt->rows_more;
}

/* After each step the runtime asks whether the run is abandoned. */
static void
cancel(runtime_t *rt, const bk_run_t *run)
{
    for (uint32_t but = 0; but <= run->request_count; but++) {
        for (uint32_t i = 0; i < run->request_count; i++) {
            fake_request_t *r = (void *) run->requests[i].handle;

            r->cancelled = i != but;
        }
        rt->abandoned += bk_run_is_abandoned(run);
    }
}

/* Every output is twice X. */
static TRITONSERVER_Error *
run_twice(void *self, bk_run_t *run)
{
    runtime_t *rt = self;
    const bk_value_t *x = input_of(run, "X");
    const float *from = x->data;

    assert_in_range(rt->runs, 0, RUNS_MAX - 1);
    rt->sizes[rt->runs++] = run->request_count;
    rt->run = *run;
    for (uint32_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i].tensor->control) {
            memcpy(rt->control, run->inputs[i].data,
                run->inputs[i].len_bytes);
        }
    }
    if (rt->cancels) {
        cancel(rt, run);
    }
    for (uint64_t k = 0; k < x->elements; k++) {
        if (from[k] == BAD) {
            return bk_err_new(rt->code, "a bad number");
        }
    }

    for (uint32_t i = 0; i < run->output_count; i++) {
        bk_value_t *to = &run->outputs[i];

        if (to->preallocated && rt->own_memory) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "no room of another's");
        }
        if (!to->preallocated) {
            output_make(rt, to, x);
        }
        for (uint64_t k = 0; k < x->elements; k++) {
            ((float *) to->data)[k] = 2 * from[k];
        }
    }
    return NULL;
}

static void
run_done(void *self, bk_run_t *run)
{
    ((runtime_t *) self)->done++;
    for (uint32_t i = 0; i < run->output_count; i++) {
        free(run->outputs[i].handle);
    }
}

static const bk_runtime_t functions = { .run = run_twice, .done = run_done };

/* device: a GPU, or BK_NO_DEVICE */
static void
world_init(world_t *w, const char *config, int32_t device)
{
    *w = (world_t) {
        .model = { .kind = device == BK_NO_DEVICE
            ? TRITONSERVER_INSTANCEGROUPKIND_CPU
            : TRITONSERVER_INSTANCEGROUPKIND_GPU },
        .runtime = { .code = TRITONSERVER_ERROR_INVALID_ARG }
    };
    config_read(&w->config, config);
    tensors_of_config(&w->tensors, &w->config);
    expect_success(bk_runner_init(&w->runner, INSTANCE(&w->model),
        &(bk_instance_config_t) { .tensors = &w->tensors,
            .batching = w->config.max_batch_size > 0,
            .device_id = device }, &functions, &w->runtime));
}

static void
requests_free(world_t *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        fake_request_free(w->requests[i]);
    }
    w->count = 0;
}

static void
world_fini(world_t *w)
{
    requests_free(w);
    bk_runner_fini(&w->runner);
    bk_tensors_fini(&w->tensors);
    bk_model_config_fini(&w->config);
}

/* Another request: so many rows of columns numbers, each of them x. */
static fake_request_t *
ask_wide(world_t *w, int64_t rows, int64_t columns, float x)
{
    fake_request_t *r = fake_request_new(&w->model);
    float numbers[64];

    assert_in_range(rows * columns, 0, 64);
    for (int64_t k = 0; k < rows * columns; k++) {
        numbers[k] = x;
    }
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, DIMS(rows, columns),
        numbers, (uint64_t) (rows * columns) * 4);
    fake_request_want(r, "Y");
    w->requests[w->count++] = r;
    return r;
}

static fake_request_t *
ask(world_t *w, int64_t rows, float x)
{
    return ask_wide(w, rows, 2, x);
}

static void
execute(world_t *w)
{
    TRITONBACKEND_Request *list[REQUESTS_MAX];

    for (uint32_t i = 0; i < w->count; i++) {
        list[i] = REQUEST(w->requests[i]);
    }
    expect_success(bk_runner_execute(&w->runner, list, w->count));
    for (uint32_t i = 0; i < w->count; i++) {
        const fake_request_t *r = w->requests[i];

        assert_true(r->final);
        assert_true(r->released);
        assert_int_equal(r->reported, 1);
        assert_int_equal(r->reported_success, !r->failed);
        for (int k = 0; k < 3; k++) {
            assert_true(r->times[k] <= r->times[k + 1]);
        }
    }
}

static void
expect_numbers(const fake_tensor_t *t, int64_t count, float x)
{
    assert_non_null(t);
    assert_int_equal(t->chunk_lens[0], count * 4);
    for (int64_t k = 0; k < count; k++) {
        assert_true(((const float *) t->chunks[0])[k] == x);
    }
}

static void
expect_answer(const fake_request_t *r, int64_t rows, float x)
{
    const fake_tensor_t *t = fake_request_output(r, "Y");

    assert_int_equal(t->dims_count, 2);
    assert_int_equal(t->shape[0], rows);
    assert_int_equal(t->shape[1], 2);
    expect_numbers(t, rows * 2, x);
}

static void
expect_failure(const fake_request_t *r, TRITONSERVER_Error_Code code,
    const char *words)
{
    assert_true(r->failed);
    assert_int_equal(r->error_code, code);
    if (strstr(r->error, words) == NULL) {
        fail_msg("%s", r->error);
    }
}

static void
runner_runs_compatible_requests_as_one_batch(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3 + round; i++) {
            ask(&w, 1 + i, (float) i);
        }
        execute(&w);
        assert_int_equal(w.runtime.runs, round + 1);
        assert_int_equal(w.runtime.sizes[round], 3 + round);
        assert_int_equal(w.model.batches, round + 1);
        for (int i = 0; i < 3 + round; i++) {
            expect_answer(w.requests[i], 1 + i, 2 * (float) i);
        }
        requests_free(&w);
    }
    assert_int_equal(w.model.rows, 6 + 10 + 15);
    assert_int_equal(w.runtime.done, 3);
    world_fini(&w);
}

/* One after the other, in order; and one that is wrong runs not at all. */
static void
runner_splits_an_execution_where_requests_differ(void **state)
{
    static const uint32_t sizes[] = { 2, 1, 1 };
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.runner.batch.preallocates = false;    /* Y is as wide as X             */
    ask_wide(&w, 1, 2, 1);
    ask_wide(&w, 2, 2, 2);
    ask_wide(&w, 1, 3, 3);
    ask_wide(&w, 1, 3, 4)->inputs[0].datatype = TRITONSERVER_TYPE_INT32;
    ask_wide(&w, 1, 3, 5);
    execute(&w);
    assert_int_equal(w.runtime.runs, 3);
    assert_memory_equal(w.runtime.sizes, sizes, sizeof(sizes));
    assert_int_equal(w.model.batches, 3);
    expect_answer(w.requests[1], 2, 4);
    expect_numbers(fake_request_output(w.requests[2], "Y"), 3, 6);
    expect_failure(w.requests[3], TRITONSERVER_ERROR_INVALID_ARG, "is INT32");
    expect_numbers(fake_request_output(w.requests[4], "Y"), 3, 10);
    world_fini(&w);
}

static void
runner_without_batches_runs_each_request(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, "{\"input\":[{\"name\":\"X\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[-1,2]}],\"output\":[{\"name\":\"Y\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[-1,2]}]}", BK_NO_DEVICE);
    ask(&w, 1, 1);
    ask(&w, 2, 2);
    execute(&w);
    assert_int_equal(w.runtime.runs, 2);
    assert_int_equal(w.model.rows, 2);
    expect_answer(w.requests[0], 1, 2);
    expect_answer(w.requests[1], 2, 4);
    world_fini(&w);
}

/* Only the request whose data is wrong has the runtime's error. */
static void
runner_runs_a_failed_batch_again_in_halves(void **state)
{
    (void) state;
    for (uint32_t count = 2; count < 7; count++) {
        for (uint32_t bad = 0; bad < count; bad++) {
            world_t w;

            world_init(&w, X_Y "}", BK_NO_DEVICE);
            w.runner.batch.preallocates = false;
            for (uint32_t i = 0; i < count; i++) {
                ask(&w, 1 + i, i == bad ? BAD : (float) i);
            }
            execute(&w);
            assert_int_equal(w.runtime.sizes[0], count);
            assert_int_equal(w.runtime.sizes[1], count / 2);
            assert_int_equal(w.runtime.done, w.runtime.runs);
            assert_int_equal(w.model.batches, 1);
            for (uint32_t i = 0; i < count; i++) {
                if (i == bad) {
                    expect_failure(w.requests[i],
                        TRITONSERVER_ERROR_INVALID_ARG, "a bad number");
                } else {
                    expect_answer(w.requests[i], 1 + i, 2 * (float) i);
                }
            }
            world_fini(&w);
        }
    }
}

/* No request's data is to blame: the runtime is asked once. */
static void
runner_gives_all_requests_an_error_that_halves_cannot_help(void **state)
{
    static const TRITONSERVER_Error_Code codes[] = {
        TRITONSERVER_ERROR_UNAVAILABLE, TRITONSERVER_ERROR_CANCELLED
    };

    (void) state;
    for (size_t k = 0; k < COUNT(codes); k++) {
        world_t w;

        world_init(&w, X_Y "}", BK_NO_DEVICE);
        w.runner.batch.preallocates = false;
        w.runtime.code = codes[k];
        ask(&w, 1, BAD);
        ask(&w, 1, 1);
        execute(&w);
        assert_int_equal(w.runtime.runs, 1);
        for (int i = 0; i < 2; i++) {
            expect_failure(w.requests[i], codes[k], "a bad number");
        }
        world_fini(&w);
    }
}

static void
runner_copies_outputs_once_the_runtime_rejects_memory(void **state)
{
    unsigned warned = fake_logged(TRITONSERVER_LOG_WARN);
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.runtime.own_memory = true;
    ask(&w, 3, 1);
    execute(&w);
    assert_int_equal(w.runtime.runs, 2);
    assert_int_equal(w.runtime.done, 2);
    expect_answer(w.requests[0], 3, 2);
    assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN), warned + 1);
    requests_free(&w);

    ask(&w, 1, 5);
    ask(&w, 2, 6);
    execute(&w);
    assert_int_equal(w.runtime.runs, 3);
    expect_answer(w.requests[0], 1, 10);
    expect_answer(w.requests[1], 2, 12);
    world_fini(&w);
}

static void
runner_rejects_outputs_with_other_rows_than_the_batch(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.runner.batch.preallocates = false;
    w.runtime.rows_more = 1;
    ask(&w, 1, 1);
    ask(&w, 2, 2);
    execute(&w);
    for (int i = 0; i < 2; i++) {
        expect_failure(w.requests[i], TRITONSERVER_ERROR_INTERNAL, "output "
            "\"Y\": its first dimension is 4, the batch has 3 rows");
    }
    assert_int_equal(w.runtime.runs, 1);
    world_fini(&w);
}

/* Before its group runs, and of a group that runs later. */
static void
cancelled_request_does_not_run(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.runner.batch.preallocates = false;
    ask_wide(&w, 1, 2, 1);
    ask_wide(&w, 1, 2, 2)->cancelled = true;
    ask_wide(&w, 1, 3, 3)->cancelled_after = 1;
    execute(&w);
    assert_int_equal(w.runtime.runs, 1);
    assert_int_equal(w.runtime.sizes[0], 1);
    expect_answer(w.requests[0], 1, 2);
    expect_failure(w.requests[1], TRITONSERVER_ERROR_CANCELLED, "cancelled");
    expect_failure(w.requests[2], TRITONSERVER_ERROR_CANCELLED, "cancelled");
    world_fini(&w);
}

static void
run_is_abandoned_when_all_its_clients_have_given_up(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.runtime.cancels = true;
    ask(&w, 1, 1);
    ask(&w, 1, 2);
    ask(&w, 1, 3);
    execute(&w);
    assert_int_equal(w.runtime.abandoned, 1);
    world_fini(&w);
}

#define STATE(in, out) ",\"sequence_batching\":{\"state\":[{\"input_name\":" \
    "\"" in "\",\"output_name\":\"" out "\",\"data_type\":\"TYPE_FP32\"," \
    "\"dims\":[2]}]}}"

static fake_request_t *
ask_of_sequence(world_t *w, int64_t rows, float x)
{
    fake_request_t *r = ask(w, rows, x);
    const float zeros[2 * 4] = { 0 };

    fake_request_input(r, "IN", TRITONSERVER_TYPE_FP32, DIMS(rows, 2), zeros,
        (uint64_t) rows * 8);
    r->has_states = true;
    r->correlation_id = 7;
    return r;
}

/* Also where no client asks for it; a sample of the warm-up has none. */
static void
state_is_kept_for_each_sequence_of_a_batch(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y STATE("IN", "OUT"), BK_NO_DEVICE);
    ask_of_sequence(&w, 1, 1);
    ask_of_sequence(&w, 2, 2);
    fake_request_t *sample = ask_of_sequence(&w, 1, 3);
    sample->has_states = false;
    sample->correlation_id = 0;
    execute(&w);
    assert_int_equal(w.runtime.runs, 1);
    expect_numbers(fake_request_state(w.requests[0], "OUT"), 2, 2);
    expect_numbers(fake_request_state(w.requests[1], "OUT"), 4, 4);
    assert_int_equal(w.requests[0]->output_count, 1);
    expect_answer(sample, 1, 6);
    assert_null(fake_request_state(sample, "OUT"));
    requests_free(&w);

    /* a single request that also asks for it: both have it */
    fake_request_want(ask_of_sequence(&w, 1, 4), "OUT");
    execute(&w);
    expect_numbers(fake_request_output(w.requests[0], "OUT"), 2, 8);
    expect_numbers(fake_request_state(w.requests[0], "OUT"), 2, 8);
    world_fini(&w);
}

static void
state_that_cannot_be_kept_is_an_error_of_its_request(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y STATE("IN", "OUT"), BK_NO_DEVICE);
    ask_of_sequence(&w, 1, 1)->has_states = false;
    ask_of_sequence(&w, 1, 2);
    execute(&w);
    expect_failure(w.requests[0], TRITONSERVER_ERROR_INVALID_ARG,
        "unable to add state");
    expect_numbers(fake_request_state(w.requests[1], "OUT"), 2, 4);
    world_fini(&w);

    /* memory that the CPU cannot write */
    world_init(&w, X_Y STATE("IN", "GPU"), BK_NO_DEVICE);
    ask_of_sequence(&w, 1, 1);
    execute(&w);
    expect_failure(w.requests[0], TRITONSERVER_ERROR_UNSUPPORTED,
        "state \"GPU\" was given memory of GPU 0");
    assert_null(fake_request_state(w.requests[0], "GPU"));
    world_fini(&w);
}

/* Of a failed request no state is left. */
static void
state_of_a_failed_request_is_not_kept(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, X_Y STATE("IN", "OUT"), BK_NO_DEVICE);
    ask_of_sequence(&w, 1, BAD);
    ask_of_sequence(&w, 1, 1);
    execute(&w);
    expect_failure(w.requests[0], TRITONSERVER_ERROR_INVALID_ARG, "bad");
    assert_null(fake_request_state(w.requests[0], "OUT"));
    expect_numbers(fake_request_state(w.requests[1], "OUT"), 2, 2);
    world_fini(&w);
}

/* [1] in a request, [N,1] in the batch, as the model's file has it. */
static void
control_has_one_element_for_each_request(void **state)
{
    static const int32_t flags[] = { 1, 0, 1 };
    world_t w;

    (void) state;
    world_init(&w, X_Y ",\"sequence_batching\":{\"control_input\":[{"
        "\"name\":\"START\",\"control\":[{\"int32_false_true\":[0,1]}]}]}}",
        BK_NO_DEVICE);
    for (int i = 0; i < 3; i++) {
        fake_request_t *r = ask(&w, 1, (float) i);

        fake_request_input(r, "START", TRITONSERVER_TYPE_INT32, DIMS(1),
            &flags[i], 4);
    }
    execute(&w);
    assert_int_equal(w.runtime.sizes[0], 3);
    const bk_value_t *control = input_of(&w.runtime.run, "START");
    assert_int_equal(control->dims_count, 2);
    assert_int_equal(control->dims[0], 3);
    assert_int_equal(control->dims[1], 1);
    assert_memory_equal(w.runtime.control, flags, sizeof(flags));
    expect_answer(w.requests[2], 1, 4);
    world_fini(&w);
}

/*
 * X of all requests in one dimension, LEN its length in each, and Y split as
 * LEN says; the batch dimension is the request's own.
 */
static void
batch_tensors_gather_and_scatter_ragged_requests(void **state)
{
    static const int64_t columns[] = { 3, 1, 4 };
    world_t w;

    (void) state;
    world_init(&w, "{\"max_batch_size\":4,\"input\":[{\"name\":\"X\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[-1],"
        "\"allow_ragged_batch\":true}],\"output\":[{\"name\":\"Y\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],"
        "\"batch_input\":[{\"kind\":\"BATCH_ACCUMULATED_ELEMENT_COUNT\","
        "\"target_name\":[\"LEN\"],\"data_type\":\"TYPE_INT32\","
        "\"source_input\":[\"X\"]}],\"batch_output\":[{\"target_name\":"
        "[\"Y\"],\"source_input\":[\"X\"]}]}", BK_NO_DEVICE);
    w.tensors.inputs[1].control = true;     /* to have its values            */
    for (int i = 0; i < 3; i++) {
        ask_wide(&w, 1, columns[i], (float) i);
    }
    execute(&w);
    assert_int_equal(w.runtime.runs, 1);
    assert_int_equal(input_of(&w.runtime.run, "X")->dims_count, 1);
    assert_int_equal(input_of(&w.runtime.run, "X")->dims[0], 8);
    assert_int_equal(input_of(&w.runtime.run, "LEN")->dims[0], 3);
    assert_int_equal(w.runtime.control[0], 3);
    assert_int_equal(w.runtime.control[1], 4);
    assert_int_equal(w.runtime.control[2], 8);
    for (int i = 0; i < 3; i++) {
        const fake_tensor_t *t = fake_request_output(w.requests[i], "Y");

        assert_int_equal(t->shape[0], 1);
        assert_int_equal(t->shape[1], columns[i]);
        expect_numbers(t, columns[i], 2 * (float) i);
    }
    requests_free(&w);

    /* elements of no request */
    w.runtime.rows_more = 1;
    ask_wide(&w, 1, 2, 1);
    ask_wide(&w, 1, 2, 1);
    execute(&w);
    expect_failure(w.requests[0], TRITONSERVER_ERROR_INTERNAL,
        "it has 5 elements, the requests' parts 4");
    world_fini(&w);
}

static void *
gpu_alloc(uint64_t size)
{
    return calloc(1, size + 1);
}

/*
 * Where a response takes its output shows when it is allocated: a request of
 * a batch whose output lies on the GPU runs again, alone, and writes there.
 */
static void
request_of_a_batch_with_an_output_on_the_gpu_runs_alone(void **state)
{
    world_t w;

    (void) state;
    fake_device_memory(gpu_alloc, free);
    world_init(&w, X_Y "}", 0);
    ask(&w, 1, 1);
    ask(&w, 2, 2)->outputs_on_gpu = true;
    ask(&w, 1, 3);
    execute(&w);
    assert_int_equal(w.runtime.runs, 2);
    assert_int_equal(w.runtime.sizes[0], 3);
    assert_int_equal(w.runtime.sizes[1], 1);
    assert_true(w.runtime.run.outputs[0].on_device);
    expect_answer(w.requests[0], 1, 2);
    expect_answer(w.requests[1], 2, 4);
    assert_int_equal(fake_request_output(w.requests[1], "Y")->memory,
        TRITONSERVER_MEMORY_GPU);
    expect_answer(w.requests[2], 1, 6);
    requests_free(&w);

    /* one that is known beforehand is not tried in a batch */
    fake_request_t *r = ask(&w, 1, 1);
    r->queried = true;
    r->outputs_on_gpu = true;
    ask(&w, 1, 2);
    execute(&w);
    assert_int_equal(w.runtime.runs, 4);
    expect_answer(w.requests[0], 1, 2);
    expect_answer(w.requests[1], 1, 4);
    requests_free(&w);

    /* an instance of the CPU cannot write there at all */
    world_fini(&w);
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    w.model.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ask(&w, 1, 1)->outputs_on_gpu = true;
    ask(&w, 1, 2);
    execute(&w);
    expect_failure(w.requests[0], TRITONSERVER_ERROR_UNSUPPORTED,
        "this backend writes CPU memory");
    expect_answer(w.requests[1], 1, 4);
    world_fini(&w);
    fake_device_memory(NULL, NULL);
}

/* Buffers that are apart or at an odd address are copied together. */
static void
input_in_pieces_is_gathered(void **state)
{
    const float numbers[] = { 1, 1, 1, 1 };
    world_t w;

    (void) state;
    world_init(&w, X_Y "}", BK_NO_DEVICE);
    fake_request_t *r = ask(&w, 2, 1);
    free(r->inputs[0].chunks[0]);
    r->inputs[0].chunk_count = 0;
    fake_tensor_append(&r->inputs[0], numbers, 5);
    fake_tensor_append(&r->inputs[0], (const char *) numbers + 5, 11);
    execute(&w);
    expect_answer(w.requests[0], 2, 2);
    world_fini(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runner_runs_compatible_requests_as_one_batch),
        cmocka_unit_test(runner_splits_an_execution_where_requests_differ),
        cmocka_unit_test(runner_without_batches_runs_each_request),
        cmocka_unit_test(runner_runs_a_failed_batch_again_in_halves),
        cmocka_unit_test(
            runner_gives_all_requests_an_error_that_halves_cannot_help),
        cmocka_unit_test(
            runner_copies_outputs_once_the_runtime_rejects_memory),
        cmocka_unit_test(
            runner_rejects_outputs_with_other_rows_than_the_batch),
        cmocka_unit_test(cancelled_request_does_not_run),
        cmocka_unit_test(run_is_abandoned_when_all_its_clients_have_given_up),
        cmocka_unit_test(state_is_kept_for_each_sequence_of_a_batch),
        cmocka_unit_test(state_that_cannot_be_kept_is_an_error_of_its_request),
        cmocka_unit_test(state_of_a_failed_request_is_not_kept),
        cmocka_unit_test(control_has_one_element_for_each_request),
        cmocka_unit_test(batch_tensors_gather_and_scatter_ragged_requests),
        cmocka_unit_test(
            request_of_a_batch_with_an_output_on_the_gpu_runs_alone),
        cmocka_unit_test(input_in_pieces_is_gathered)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
