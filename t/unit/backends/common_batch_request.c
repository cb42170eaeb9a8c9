/* one request of an execution, read and checked; which run together */

#include "common_world.h"

#include "backends/common/batch_request.h"
#include "backends/common/device.h"

typedef struct {
    fake_model_t         model;
    bk_tensors_t         tensors;
    bk_instance_config_t instance;
    bk_input_t           inputs[2][4];
    bool                 wanted[2][4];
    bk_batch_request_t   reqs[2];
} world_t;

/* Inputs X FP32 [-1,2] and N INT32 [-1,-1], a control and a default D. */
static void
world_init(world_t *w, bool batching)
{
    *w = (world_t) { 0 };
    expect_success(bk_tensors_init(&w->tensors, 3, 1, 2));
    describe(&w->tensors.inputs[0], "X", TRITONSERVER_TYPE_FP32,
        DIMS(-1, 2));
    describe(&w->tensors.inputs[1], "N", TRITONSERVER_TYPE_INT32,
        DIMS(-1, -1));
    describe(&w->tensors.inputs[2], "C", TRITONSERVER_TYPE_INT32,
        DIMS(-1, 1));
    describe(&w->tensors.inputs[3], "D", TRITONSERVER_TYPE_BYTES, DIMS(-1));
    describe(&w->tensors.outputs[0], "Y", TRITONSERVER_TYPE_FP32,
        DIMS(-1, 2));
    describe(&w->tensors.outputs[1], "MAP", TRITONSERVER_TYPE_INVALID,
        DIMS(-1));
    w->tensors.inputs[2].control = true;
    w->instance = (bk_instance_config_t) {
        .tensors = &w->tensors, .batching = batching,
        .device_id = BK_NO_DEVICE
    };
    for (int i = 0; i < 2; i++) {
        w->reqs[i].inputs = w->inputs[i];
        w->reqs[i].wanted = w->wanted[i];
    }
}

static void
world_fini(world_t *w)
{
    bk_tensors_fini(&w->tensors);
}

static const float zeros[64];

/* Rows of X and of N, the latter with so many columns. */
static fake_request_t *
ask(world_t *w, int64_t x_rows, int64_t n_rows, int64_t columns)
{
    fake_request_t *r = fake_request_new(&w->model);

    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, DIMS(x_rows, 2), zeros,
        (uint64_t) x_rows * 8);
    fake_request_input(r, "N", TRITONSERVER_TYPE_INT32,
        DIMS(n_rows, columns), zeros, (uint64_t) (n_rows * columns) * 4);
    fake_request_input(r, "C", TRITONSERVER_TYPE_INT32, DIMS(1, 1), zeros, 4);
    fake_request_want(r, "Y");
    return r;
}

/* Answers and frees it; takes what the first request has for an error. */
static TRITONSERVER_Error *
finish(world_t *w, int i, fake_request_t *r)
{
    bk_batch_request_t *req = &w->reqs[i];
    const bk_times_t times = { 0 };
    TRITONSERVER_Error *err = req->err;

    req->err = NULL;
    bk_batch_request_finish(req, INSTANCE(&w->model), &times);
    assert_true(r->final);
    assert_true(r->released);
    fake_request_free(r);
    return err;
}

static TRITONSERVER_Error *
open_one(world_t *w, fake_request_t *r)
{
    bk_batch_request_open(&w->reqs[0], &w->instance, REQUEST(r));
    return finish(w, 0, r);
}

static void
request_is_read_with_its_rows_and_outputs(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, true);
    fake_request_t *r = ask(&w, 3, 3, 5);
    fake_tensor_t *control = &r->inputs[2];
    control->shape[0] = 1;
    bk_batch_request_open(&w.reqs[0], &w.instance, REQUEST(r));
    expect_error(w.reqs[0].err, TRITONSERVER_ERROR_INVALID_ARG,
        "input \"C\" has a batch of 1 rows, the inputs before it 3");
    w.reqs[0].err = NULL;
    expect_success(finish(&w, 0, r));

    r = ask(&w, 1, 1, 5);
    bk_batch_request_open(&w.reqs[0], &w.instance, REQUEST(r));
    expect_success(w.reqs[0].err);
    assert_int_equal(w.reqs[0].rows, 1);
    assert_true(w.reqs[0].wanted[0]);
    assert_false(w.reqs[0].on_device);
    assert_non_null(w.reqs[0].inputs[0].handle);
    assert_null(w.reqs[0].inputs[3].handle);
    expect_success(finish(&w, 0, r));
    world_fini(&w);

    /* without batches a request is one row, of any shapes */
    world_init(&w, false);
    r = ask(&w, 3, 2, 5);
    bk_batch_request_open(&w.reqs[0], &w.instance, REQUEST(r));
    expect_success(w.reqs[0].err);
    assert_int_equal(w.reqs[0].rows, 1);
    expect_success(finish(&w, 0, r));
    world_fini(&w);
}

static void
request_is_rejected_by_the_tensor_that_is_wrong(void **state)
{
    fake_request_t *r;
    world_t w;

    (void) state;
    world_init(&w, true);
    r = ask(&w, 1, 1, 5);
    r->inputs[0].datatype = TRITONSERVER_TYPE_INT32;
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"X\" is INT32, the model takes FP32");

    r = ask(&w, 1, 1, 5);
    r->inputs[0].shape[1] = 3;
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"X\" has shape [1,3], the model takes [-1,2]");

    r = ask(&w, 1, 1, 5);
    r->inputs[1].shape[1] = -5;
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"N\" has shape [1,-5]");

    r = ask(&w, 1, 1, 5);
    r->inputs[1].shape[1] = 4;
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"N\" has 20 bytes, its shape [1,4] needs 4 elements of 4");

    /* as many bytes as fit into no number of 64 bits */
    r = ask(&w, 1, 1, 5);
    r->inputs[1].shape[1] = INT64_MAX;
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"N\" has 20 bytes");

    r = ask(&w, 1, 2, 5);
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"N\" has a batch of 2 rows, the inputs before it 1");

    r = ask(&w, 0, 0, 5);
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "input \"X\" has a batch of 0 rows");

    r = ask(&w, 1, 1, 5);
    r->inputs[1].name[0] = 'Q';
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "unknown request input name");
    world_fini(&w);
}

static void
request_is_rejected_by_control_or_output(void **state)
{
    fake_request_t *r;
    world_t w;

    (void) state;
    world_init(&w, true);
    r = ask(&w, 1, 1, 5);
    r->inputs[2].shape[1] = 2;
    fake_tensor_append(&r->inputs[2], zeros, 4);
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "control input \"C\" has 2 elements in one request");

    r = ask(&w, 1, 1, 5);
    fake_request_want(r, "Z");
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "the model has no output \"Z\"");

    r = ask(&w, 1, 1, 5);
    fake_request_want(r, "MAP");
    expect_error(open_one(&w, r), TRITONSERVER_ERROR_INVALID_ARG,
        "the model has no output \"MAP\" that a response can carry");
    world_fini(&w);
}

static bool
compatible(world_t *w, fake_request_t *a, fake_request_t *b)
{
    bk_batch_request_open(&w->reqs[0], &w->instance, REQUEST(a));
    bk_batch_request_open(&w->reqs[1], &w->instance, REQUEST(b));
    expect_success(w->reqs[0].err);
    expect_success(w->reqs[1].err);
    bool same = bk_batch_requests_compatible(&w->reqs[0], &w->reqs[1],
        &w->tensors);
    expect_success(finish(w, 0, a));
    expect_success(finish(w, 1, b));
    return same;
}

/* The same inputs, of the same shapes but for the rows. */
static void
requests_are_compatible_but_for_their_rows(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, true);
    w.tensors.inputs[2].control = false;
    w.tensors.inputs[2].has_default = true;
    fake_request_t *a = ask(&w, 2, 2, 5), *b = ask(&w, 3, 3, 5);
    a->inputs[2].name[0] = b->inputs[2].name[0] = 'Q';
    assert_true(compatible(&w, a, b));

    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 6);
    assert_false(compatible(&w, a, b));

    /* an optional input that one of them leaves out */
    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 5);
    b->inputs[2].name[0] = 'Q';
    assert_false(compatible(&w, a, b));
    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 5);
    a->inputs[2].name[0] = 'Q';
    assert_false(compatible(&w, a, b));

    /* a ragged input is gathered in one dimension, of any shape */
    w.tensors.inputs[1].ragged = true;
    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 6);
    assert_true(compatible(&w, a, b));
    world_fini(&w);
}

/* Tensors on the GPU are used there, one request at a time. */
static void
request_on_the_gpu_runs_alone(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, true);
    w.model.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    w.instance.device_id = 0;
    fake_request_t *a = ask(&w, 1, 1, 5), *b = ask(&w, 1, 1, 5);
    assert_true(compatible(&w, a, b));

    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 5);
    free(b->inputs[0].chunks[0]);
    b->inputs[0].chunk_count = 0;
    fake_tensor_on_gpu(&b->inputs[0], malloc(8), 8, 0);
    assert_false(compatible(&w, a, b));

    a = ask(&w, 1, 1, 5), b = ask(&w, 1, 1, 5);
    a->queried = true;
    a->outputs_on_gpu = true;
    assert_false(compatible(&w, a, b));
    world_fini(&w);
}

static void
cancelled_request_keeps_an_error_that_it_has(void **state)
{
    world_t w;

    (void) state;
    world_init(&w, true);
    fake_request_t *r = ask(&w, 1, 1, 5);
    bk_batch_request_open(&w.reqs[0], &w.instance, REQUEST(r));
    bk_batch_request_check_cancelled(&w.reqs[0]);
    expect_success(w.reqs[0].err);
    r->cancelled = true;
    bk_batch_request_check_cancelled(&w.reqs[0]);
    bk_batch_request_check_cancelled(&w.reqs[0]);
    expect_error(finish(&w, 0, r), TRITONSERVER_ERROR_CANCELLED, "cancelled");
    world_fini(&w);
}

/* Outputs of the first run are deleted with its response. */
static void
restarted_request_has_an_empty_response(void **state)
{
    world_t w;
    void *data;

    (void) state;
    world_init(&w, true);
    fake_request_t *r = ask(&w, 1, 1, 5);
    bk_batch_request_open(&w.reqs[0], &w.instance, REQUEST(r));
    expect_success(bk_output_new(w.reqs[0].response, "Y",
        TRITONSERVER_TYPE_FP32, DIMS(1, 2), 8, &data));
    bk_batch_request_restart(&w.reqs[0]);
    expect_success(w.reqs[0].err);
    expect_success(bk_output_new(w.reqs[0].response, "Y",
        TRITONSERVER_TYPE_FP32, DIMS(1, 2), 8, &data));
    memcpy(data, zeros, 8);
    expect_success(finish(&w, 0, r));
    world_fini(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_is_read_with_its_rows_and_outputs),
        cmocka_unit_test(request_is_rejected_by_the_tensor_that_is_wrong),
        cmocka_unit_test(request_is_rejected_by_control_or_output),
        cmocka_unit_test(requests_are_compatible_but_for_their_rows),
        cmocka_unit_test(request_on_the_gpu_runs_alone),
        cmocka_unit_test(cancelled_request_keeps_an_error_that_it_has),
        cmocka_unit_test(restarted_request_has_an_empty_response)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
