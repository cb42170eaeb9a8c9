/* memory kinds: inputs and outputs on the CPU and on GPUs */

#include "common_world.h"

#include "backends/common/device.h"

#define GPU 1

static fake_model_t gpu_model = { .kind = TRITONSERVER_INSTANCEGROUPKIND_GPU };

static fake_request_t *
request_new(bk_input_t *in, const float *data, uint64_t len_bytes,
    int64_t gpu)
{
    fake_request_t *r = fake_request_new(&gpu_model);
    fake_tensor_t *t = fake_request_input(r, "X", TRITONSERVER_TYPE_FP32,
        DIMS(2), NULL, 0);

    if (gpu == BK_NO_DEVICE) {
        fake_tensor_append(t, data, len_bytes);
    } else {
        fake_tensor_on_gpu(t, (void *) (uintptr_t) data, len_bytes, gpu);
    }
    expect_success(bk_input_open(in, REQUEST(r), "X"));
    return r;
}

/* The test's memory on a GPU is not the request's to free. */
static void
request_free(fake_request_t *r)
{
    if (r->inputs[0].memory == TRITONSERVER_MEMORY_GPU) {
        r->inputs[0].chunk_count = 0;
    }
    fake_request_free(r);
}

static void
input_on_the_gpu_is_used_there(void **state)
{
    const float numbers[] = { 1, 2 };
    const void *data;
    bk_input_t in;

    (void) state;
    fake_request_t *r = request_new(&in, numbers, 8, GPU);
    expect_success(bk_device_input(&in, GPU, &data));
    assert_ptr_equal(data, numbers);
    request_free(r);

    /* on the host, or for an instance of the CPU: none */
    r = request_new(&in, numbers, 8, BK_NO_DEVICE);
    expect_success(bk_device_input(&in, GPU, &data));
    assert_null(data);
    expect_success(bk_device_input(&in, BK_NO_DEVICE, &data));
    assert_null(data);
    request_free(r);
}

static void
input_on_a_gpu_is_rejected_where_it_cannot_be_read(void **state)
{
    const float numbers[] = { 1, 2, 3 };
    const void *data;
    bk_input_t in;
    float to[2];

    (void) state;
    fake_request_t *r = request_new(&in, numbers, 8, GPU + 1);
    expect_error(bk_device_input(&in, GPU, &data),
        TRITONSERVER_ERROR_UNSUPPORTED, "input \"X\" lies in memory of GPU 2,"
        " the model's instance runs on GPU 1");
    request_free(r);

    /* at an odd address */
    r = request_new(&in, (const float *) ((uintptr_t) numbers + 2), 8, GPU);
    expect_error(bk_device_input(&in, GPU, &data),
        TRITONSERVER_ERROR_UNSUPPORTED, "multiple of the 4 bytes");
    request_free(r);

    /* in two buffers */
    r = request_new(&in, numbers, 4, GPU);
    fake_tensor_on_gpu(&r->inputs[0], (void *) (uintptr_t) (numbers + 1), 4,
        GPU);
    expect_success(bk_input_open(&in, REQUEST(r), "X"));
    expect_error(bk_device_input(&in, GPU, &data),
        TRITONSERVER_ERROR_UNSUPPORTED, "in 2 pieces");
    request_free(r);

    /* by the functions for the CPU */
    r = request_new(&in, numbers, 8, GPU);
    expect_error(bk_input_view(&in, &data), TRITONSERVER_ERROR_UNSUPPORTED,
        "lies in GPU memory of device 1; this backend reads CPU memory");
    expect_error(bk_input_copy(&in, to), TRITONSERVER_ERROR_UNSUPPORTED,
        "lies in GPU memory of device 1");
    request_free(r);
}

/* No bytes are nowhere. */
static void
empty_input_is_on_no_gpu(void **state)
{
    const void *data = &gpu_model;
    bk_input_t in;

    (void) state;
    fake_request_t *r = request_new(&in, NULL, 0, GPU + 1);
    expect_success(bk_device_input(&in, GPU, &data));
    assert_null(data);
    expect_success(bk_input_view(&in, &data));
    request_free(r);
}

static void
input_is_viewed_in_one_buffer_and_copied_from_several(void **state)
{
    const float numbers[] = { 1, 2 };
    const void *data;
    bk_input_t in;
    float to[2];

    (void) state;
    fake_request_t *r = request_new(&in, numbers, 8, BK_NO_DEVICE);
    expect_success(bk_input_view(&in, &data));
    assert_memory_equal(data, numbers, 8);
    request_free(r);

    r = request_new(&in, numbers, 3, BK_NO_DEVICE);
    fake_tensor_append(&r->inputs[0], (const char *) numbers + 3, 5);
    expect_success(bk_input_open_at(&in, REQUEST(r), 0));
    assert_int_equal(in.len_bytes, 8);
    expect_success(bk_input_view(&in, &data));
    assert_null(data);
    expect_success(bk_input_copy(&in, to));
    assert_memory_equal(to, numbers, 8);

    /* a core whose buffers are not as it has said */
    in.len_bytes = 7;
    expect_error(bk_input_copy(&in, to), TRITONSERVER_ERROR_INTERNAL,
        "hold more than its 7 bytes");
    in.len_bytes = 9;
    expect_error(bk_input_copy(&in, to), TRITONSERVER_ERROR_INTERNAL,
        "hold 8 of its 9 bytes");
    request_free(r);

    r = request_new(&in, numbers, 8, BK_NO_DEVICE);
    in.len_bytes = 7;
    expect_error(bk_input_view(&in, &data), TRITONSERVER_ERROR_INTERNAL,
        "said to have 7 bytes and has 8");
    assert_null(data);
    request_free(r);
}

static void *
gpu_alloc(uint64_t size)
{
    return malloc(size);
}

static void
output_lies_on_the_gpu_where_the_response_takes_it(void **state)
{
    fake_model_t *m = &gpu_model;
    TRITONBACKEND_Response *response;
    bool on_device;
    void *data;

    (void) state;
    fake_device_memory(gpu_alloc, free);
    fake_request_t *r = fake_request_new(m);
    assert_false(bk_device_accepts(REQUEST(r), "Y", 0));
    r->queried = true;
    assert_false(bk_device_accepts(REQUEST(r), "Y", 0));
    r->outputs_on_gpu = true;
    assert_true(bk_device_accepts(REQUEST(r), "Y", 0));
    assert_false(bk_device_accepts(REQUEST(r), "Y", GPU));
    assert_false(bk_device_accepts(REQUEST(r), "Y", BK_NO_DEVICE));

    expect_success(TRITONBACKEND_ResponseNew(&response, REQUEST(r)));
    expect_success(bk_device_output(response, "Y", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, 0, &data, &on_device));
    assert_true(on_device);
    assert_non_null(data);

    /* memory of another GPU than the instance's */
    expect_error(bk_device_output(response, "Z", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, GPU, &data, &on_device), TRITONSERVER_ERROR_UNSUPPORTED,
        "output \"Z\" was given memory of GPU 0, the model's instance runs "
        "on GPU 1");
    assert_false(on_device);

    /* an instance of the CPU cannot write it */
    expect_error(bk_device_output(response, "V", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, BK_NO_DEVICE, &data, &on_device),
        TRITONSERVER_ERROR_UNSUPPORTED, "this backend writes CPU memory");
    assert_false(on_device);
    expect_success(TRITONBACKEND_ResponseDelete(response));

    r->outputs_on_gpu = false;
    expect_success(TRITONBACKEND_ResponseNew(&response, REQUEST(r)));
    expect_success(bk_device_output(response, "Y", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, 0, &data, &on_device));
    assert_false(on_device);
    memset(data, 0, 8);
    expect_success(TRITONBACKEND_ResponseDelete(response));
    fake_request_free(r);
    fake_device_memory(NULL, NULL);
}

static void
output_without_memory_is_an_error(void **state)
{
    fake_request_t *r = fake_request_new(&gpu_model);
    TRITONBACKEND_Response *response;
    void *data;

    (void) state;
    expect_success(TRITONBACKEND_ResponseNew(&response, REQUEST(r)));
    expect_error(bk_output_new(response, "FULL", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, &data), TRITONSERVER_ERROR_UNAVAILABLE, "full");
    expect_error(bk_output_new(response, "REJECTED", TRITONSERVER_TYPE_FP32,
        DIMS(2), 8, &data), TRITONSERVER_ERROR_INVALID_ARG, "no such output");

    /* nothing is to be written */
    expect_success(bk_output_new(response, "GPU", TRITONSERVER_TYPE_FP32,
        DIMS(0), 0, &data));
    expect_success(TRITONBACKEND_ResponseDelete(response));
    fake_request_free(r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_on_the_gpu_is_used_there),
        cmocka_unit_test(input_on_a_gpu_is_rejected_where_it_cannot_be_read),
        cmocka_unit_test(empty_input_is_on_no_gpu),
        cmocka_unit_test(
            input_is_viewed_in_one_buffer_and_copied_from_several),
        cmocka_unit_test(output_lies_on_the_gpu_where_the_response_takes_it),
        cmocka_unit_test(output_without_memory_is_an_error)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
