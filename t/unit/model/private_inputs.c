#include "model/request_world.h"

#include "core/include/channel.h"
#include "core/model/private_inputs.h"
#include "core/tensor/copy.h"
#include "fake_cuda.h"

static const char config[] = "name: 'm' input [ { name: 'A' data_type:"
    " TYPE_UINT8 dims: -1 }, { name: 'B' data_type: TYPE_STRING dims: -1 } ]"
    " output { name: 'O' data_type: TYPE_BOOL dims: 1 }";

static bool
wants(const char *text)
{
    Inference__ModelConfig *msg = config_parse(text);
    bool wanted;

    assert_ok(inf_private_inputs_wanted(msg, &wanted));
    inf_message_free(&msg->base);
    return wanted;
}

static bool
reads_own_gpu(const char *text)
{
    Inference__ModelConfig *msg = config_parse(text);
    bool own = inf_private_inputs_own_gpu(msg);

    inf_message_free(&msg->base);
    return own;
}

static void
some_backends_read_their_own_gpu_alone(void **state)
{
    (void) state;

    assert_true(reads_own_gpu("backend: 'onnxruntime'"));
    assert_false(reads_own_gpu("backend: 'cuda'"));
    assert_false(reads_own_gpu(""));
}

static void
only_models_that_write_get_copies(void **state)
{
    (void) state;

    assert_false(wants("backend: 'onnxruntime'"));
    assert_false(wants(""));
    assert_true(wants("backend: 'pytorch'"));
    assert_false(wants("backend: 'pytorch' parameters { key:"
        " 'INFERENCE_WRITABLE_INPUTS' value { string_value: 'false' } }"));
    assert_true(wants("backend: 'identity' parameters { key:"
        " 'INFERENCE_WRITABLE_INPUTS' value { string_value: 'true' } }"));
}

static void
what_changes_after_the_copy_is_not_seen(void **state)
{
    (void) state;
    world_t w;
    char bytes[5] = "abcd";
    char prefix[8] = { 4, 0, 0, 0, 't', 'e', 'x', 't' };

    world_open(&w, config);
    w.model->private_inputs = true;
    inf_input_t *a = add(&w, "A", INF_TYPE_UINT8, SHAPE(4));
    add_data(&w, a, bytes, 1);
    add_data(&w, a, bytes + 1, 3);
    add_data(&w, add(&w, "B", INF_TYPE_BYTES, SHAPE(1)), prefix, 8);

    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    memset(bytes, 'x', sizeof(bytes));
    memset(prefix, 0xff, sizeof(prefix));

    assert_ok(inf_request_check_strings(&w.req));
    a = inf_request_find_input(&w.req, "A");
    assert_int_equal(a->buffer_count, 2);
    assert_int_equal(a->byte_size, 4);
    assert_memory_equal(a->buffers[0].base, "a", 1);
    assert_memory_equal(a->buffers[1].base, "bcd", 3);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal((uintptr_t) a->buffers[i].base % INF_ARENA_ALIGN, 0);
    }

    /* once: what the backend wrote meanwhile is its own */
    const void *copy = a->buffers[0].base;
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    assert_ptr_equal(a->buffers[0].base, copy);
    world_close(&w);
}

static void
others_read_where_the_bytes_are(void **state)
{
    (void) state;
    world_t w;
    inf_buffer_t gpu = { .base = zeroes, .size = 4,
        .memory_type = INF_MEMORY_GPU, .memory_id = 1 };

    world_open(&w, config);
    add_data(&w, add(&w, "A", INF_TYPE_UINT8, SHAPE(4)), zeroes, 4);
    add(&w, "B", INF_TYPE_BYTES, SHAPE(0));
    assert_ok(check(&w));
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    assert_ptr_equal(w.req.inputs[0].buffers[0].base, zeroes);

    /* nor does anything leave a GPU */
    again(&w);
    w.model->private_inputs = true;
    inf_input_t *a = add(&w, "A", INF_TYPE_UINT8, SHAPE(4));
    assert_ok(inf_request_add_data(&w.req, a, &gpu));
    add(&w, "B", INF_TYPE_BYTES, SHAPE(0));
    assert_ok(check(&w));
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    assert_ptr_equal(w.req.inputs[0].buffers[0].base, zeroes);
    assert_int_equal(w.req.inputs[0].buffers[0].memory_type, INF_MEMORY_GPU);
    world_close(&w);
}

/* 8 bytes of strings in a region, and 4 others that nobody copies. */
static void
add_region_inputs(world_t *w, inf_budget_t *budget)
{
    static const char text[8] = { 4, 0, 0, 0, 't', 'e', 'x', 't' };

    w->req.copies = budget;
    add_data(w, add(w, "A", INF_TYPE_UINT8, SHAPE(4)), zeroes, 4);
    inf_input_t *b = add(w, "B", INF_TYPE_BYTES, SHAPE(1));
    add_data(w, b, text, sizeof(text));
    b->in_region = true;
    assert_ok(check(w));
}

static void
copies_of_regions_are_counted_until_the_request_is_over(void **state)
{
    (void) state;
    world_t w;
    inf_budget_t budget = { .bound = 10 };

    world_open(&w, config);
    add_region_inputs(&w, &budget);
    assert_int_equal(inf_budget_take(&budget, 3), INF_BUDGET_TAKEN);
    inf_err_t *err = inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_FULL);
    assert_error(err, INF_ERR_UNAVAILABLE, "no room to copy the 8 bytes of"
        " inputs in shared memory: requests hold 3 of at most 10 bytes of"
        " copies (inference_shared_memory copies=)");
    assert_int_equal(inf_budget_used(&budget), 3);

    /* nothing was copied, and later there may be room */
    inf_budget_give(&budget, 1);
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    assert_int_equal(inf_budget_used(&budget), 10);
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    assert_int_equal(inf_budget_used(&budget), 10);
    again(&w);
    assert_int_equal(inf_budget_used(&budget), 2);

    add_region_inputs(&w, &budget);
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU));
    world_close(&w);
    assert_int_equal(inf_budget_used(&budget), 2);
}

static void
what_can_never_be_copied_is_the_clients_error(void **state)
{
    (void) state;
    world_t w;
    inf_budget_t budget = { .bound = 7 };

    world_open(&w, config);
    add_region_inputs(&w, &budget);
    assert_error(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU),
        INF_ERR_INVALID_ARG,
        "the inputs in shared memory that must be copied have 8 bytes, and copies may have 7 bytes in all"
        " (inference_shared_memory copies=)");
    world_close(&w);
    assert_int_equal(inf_budget_used(&budget), 0);
}

/* Those on a GPU alone; the bytes are there after one wait. */
static void
an_instance_on_no_gpu_gets_inputs_on_the_host(void **state)
{
    (void) state;
    static const char bytes[4] = "abc";
    inf_budget_t budget = { .bound = 9 };
    const char *what;
    void *gpu;
    world_t w;

    fake_cuda_reset();
    assert_ok(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = 5.0 }));
    inf_memory_t *m = inf_memory_shared();
    assert_ok(inf_memory_alloc(m, INF_MEMORY_GPU, 1, 8, &gpu));
    assert_ok(inf_memory_copy(m, &(inf_place_t) { gpu, INF_MEMORY_GPU, 1 },
        &(inf_place_t) { (void *) (uintptr_t) bytes, INF_MEMORY_CPU, 0 }, 4));

    world_open(&w, config);
    w.req.copies = &budget;
    inf_input_t *a = add(&w, "A", INF_TYPE_UINT8, SHAPE(10));
    add_data(&w, a, zeroes, 2);
    for (int i = 0; i < 2; i++) {
        assert_ok(inf_request_add_data(&w.req, a, &(inf_buffer_t) {
            .base = gpu, .size = 4, .memory_type = INF_MEMORY_GPU,
            .memory_id = 1, .ipc_handle = zeroes }));
    }
    a->in_region = true;
    add(&w, "B", INF_TYPE_BYTES, SHAPE(0));
    assert_ok(check(&w));

    size_t waits = fake_cuda_waits();
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_NO_GPU));
    assert_int_equal(fake_cuda_waits(), waits + 1);
    assert_int_equal(inf_budget_used(&budget), 8);
    assert_ptr_equal(a->buffers[0].base, zeroes);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(a->buffers[i].memory_type, INF_MEMORY_CPU);
        assert_null(a->buffers[i].ipc_handle);
        assert_memory_equal(a->buffers[i].base, bytes, 4);
    }
    assert_ok(inf_private_inputs_make(&w.req, INF_INPUTS_NO_GPU));
    assert_int_equal(fake_cuda_waits(), waits + 1);

    again(&w);
    w.req.copies = NULL;
    a = add(&w, "A", INF_TYPE_UINT8, SHAPE(4));
    assert_ok(inf_request_add_data(&w.req, a, &(inf_buffer_t) {
        .base = gpu, .size = 4, .memory_type = INF_MEMORY_GPU,
        .memory_id = 1 }));
    add(&w, "B", INF_TYPE_BYTES, SHAPE(0));
    assert_ok(check(&w));
    fake_cuda_fail("cuStreamSynchronize", 999);
    assert_error(inf_private_inputs_make(&w.req, INF_INPUTS_NO_GPU),
        INF_ERR_INTERNAL, "CUDA_ERROR_UNKNOWN");
    fake_cuda_fail(NULL, 0);

    /* what was not written is not taken for the input the next time */
    assert_int_equal(w.req.inputs_state, INF_INPUTS_LOST);
    assert_error(inf_private_inputs_make(&w.req, INF_INPUTS_ANY_GPU),
        INF_ERR_UNAVAILABLE, "has failed");

    world_close(&w);
    assert_int_equal(inf_budget_used(&budget), 0);
    assert_ok(inf_memory_release(m, gpu, INF_MEMORY_GPU, 1));
    inf_memory_unshare();
    assert_int_equal(fake_cuda_live(), 0);
    assert_int_equal(fake_cuda_wrong(&what), 0);
}

/* Only a whole tensor of the instance's GPU, at a multiple of 4, is read where
   it lies. */
static void
an_instance_that_reads_its_own_gpu_gets_others_on_the_host(void **state)
{
    (void) state;
    static const struct {
        int64_t  gpu;
        size_t   at;
        int      pieces;
        bool     stays;
    } rows[] = {
        { 1, 0, 1, true }, { 0, 0, 1, false }, { 1, 2, 1, false },
        { 1, 0, 2, false }
    };
    void *gpu;

    fake_cuda_reset();
    assert_ok(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = 5.0 }));
    inf_memory_t *m = inf_memory_shared();
    assert_ok(inf_memory_alloc(m, INF_MEMORY_GPU, 1, 16, &gpu));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_t w;
        world_open(&w, "name: 'm' backend: 'onnxruntime' input"
            " { name: 'A' data_type: TYPE_FP32 dims: [ -1 ] }");
        inf_input_t *a = add(&w, "A", INF_TYPE_FP32, SHAPE(rows[i].pieces));
        for (int n = 0; n < rows[i].pieces; n++) {
            assert_ok(inf_request_add_data(&w.req, a, &(inf_buffer_t) {
                .base = (char *) gpu + rows[i].at, .size = 4,
                .memory_type = INF_MEMORY_GPU, .memory_id = 1 }));
        }
        assert_ok(check(&w));
        assert_ok(inf_private_inputs_make(&w.req, rows[i].gpu));
        for (int n = 0; n < rows[i].pieces; n++) {
            assert_int_equal(a->buffers[n].memory_type, rows[i].stays
                ? INF_MEMORY_GPU : INF_MEMORY_CPU);
        }
        world_close(&w);
    }
    assert_ok(inf_memory_release(m, gpu, INF_MEMORY_GPU, 1));
    inf_memory_unshare();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_models_that_write_get_copies),
        cmocka_unit_test(some_backends_read_their_own_gpu_alone),
        cmocka_unit_test(what_changes_after_the_copy_is_not_seen),
        cmocka_unit_test(others_read_where_the_bytes_are),
        cmocka_unit_test(
            copies_of_regions_are_counted_until_the_request_is_over),
        cmocka_unit_test(what_can_never_be_copied_is_the_clients_error),
        cmocka_unit_test(an_instance_on_no_gpu_gets_inputs_on_the_host),
        cmocka_unit_test(
            an_instance_that_reads_its_own_gpu_gets_others_on_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
