/* onnxruntime_gpu.c - tensors on the GPU of an onnxruntime session, with a
 * fake provider on the fake driver: memory that the backend itself touches
 * ends the program. */

#include "fakecore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/tensor/cuda_functions.h"
#include "fake_cuda.h"
#include "ort_gpu.h"

#define DECLARE(field, symbol, parameters)                                    \
    inf_cu_result_t symbol parameters;
INF_CU_FUNCTIONS(DECLARE)

#define TENSOR(name, dims) \
    "{\"name\":\"" name "\",\"data_type\":\"TYPE_FP32\",\"dims\":" dims "}"
#define ADD "{\"name\":\"fake\",\"max_batch_size\":8,\"input\":[" \
    TENSOR("A", "[4]") "," TENSOR("B", "[4]") "],\"output\":[" \
    TENSOR("SUM", "[4]") "," TENSOR("DIFF", "[4]") "]," \
    "\"optimization\":{\"execution_accelerators\":{" \
    "\"gpu_execution_accelerator\":[{\"name\":\"cuda\",\"parameters\":{" \
    "\"use_tf32\":\"0\"}}]}},\"parameters\":{\"gpu_mem_limit\":{" \
    "\"string_value\":\"1000000\"},\"intra_op_thread_count\":{" \
    "\"string_value\":\"1\"}}}"
#define NONZERO "{\"name\":\"fake\",\"max_batch_size\":0,\"input\":[" \
    TENSOR("X", "[-1]") "],\"output\":[{\"name\":\"WHERE\"," \
    "\"data_type\":\"TYPE_INT64\",\"dims\":[1,-1]}]}"

static fake_backend_t backend;
static inf_cu_context_t contexts[2];

static void *
device_alloc(uint64_t size)
{
    inf_cu_context_t context;
    inf_cu_ptr_t base = 0;

    assert_int_equal(cuCtxPushCurrent_v2(contexts[0]), 0);
    assert_int_equal(cuMemAlloc_v2(&base, size), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    return (void *) (uintptr_t) base;
}

static void
device_free(void *p)
{
    inf_cu_context_t context;

    assert_int_equal(cuCtxPushCurrent_v2(contexts[0]), 0);
    assert_int_equal(cuMemFree_v2((inf_cu_ptr_t) (uintptr_t) p), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
}

static void *
on_device(const void *data, uint64_t len_bytes)
{
    void *base = device_alloc(len_bytes);

    memcpy(fake_cuda_bytes(base), data, len_bytes);
    return base;
}

static fake_model_t *
load(fake_model_t *m, const char *name, const char *config)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%s/%s", MODELS, name);
    TRITONSERVER_Error *err = fake_model_load(m, &backend, folder, config,
        false, TRITONSERVER_INSTANCEGROUPKIND_GPU);
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    return m;
}

/* A of rows on the GPU or not, B on the host. */
static fake_request_t *
add_request(fake_model_t *m, int64_t rows, float first, bool gpu, bool out)
{
    int64_t shape[] = { rows, 4 };
    uint64_t len_bytes = (uint64_t) rows * 16;
    float a[64], b[64];

    for (int i = 0; i < rows * 4; i++) {
        a[i] = first + (float) i;
        b[i] = 100;
    }

    fake_request_t *r = fake_request_new(m);
    fake_tensor_t *t = fake_request_input(r, "A", TRITONSERVER_TYPE_FP32,
        shape, 2, gpu ? NULL : a, len_bytes);
    if (gpu) {
        fake_tensor_on_gpu(t, on_device(a, len_bytes), len_bytes, 0);
    }
    fake_request_input(r, "B", TRITONSERVER_TYPE_FP32, shape, 2, b,
        len_bytes);
    fake_request_want(r, "SUM");
    r->outputs_on_gpu = out;
    return r;
}

static void
check_sum(const fake_request_t *r, int rows, float first)
{
    const fake_tensor_t *o = fake_request_output(r, "SUM");
    bool gpu = o->memory == TRITONSERVER_MEMORY_GPU;
    const float *f = gpu ? (float *) fake_cuda_bytes(o->chunks[0])
        : o->chunks[0];

    assert_int_equal(gpu, r->outputs_on_gpu);
    assert_int_equal(o->shape[0], rows);
    for (int i = 0; i < rows * 4; i++) {
        assert_true(f[i] == first + (float) i + 100);
    }
}

static ort_gpu_seen_t
since(const ort_gpu_seen_t *before)
{
    ort_gpu_seen_t now;

    ort_gpu_seen(&now);
    if (before != NULL) {
        now.inputs -= before->inputs;
        now.outputs -= before->outputs;
        now.runs -= before->runs;
    }
    return now;
}

static void
onnx_gpu_gives_the_provider_its_parameters(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD);
    ort_gpu_seen_t seen = since(NULL);
    assert_int_equal(seen.device, 0);
    assert_non_null(strstr(seen.options, "device_id=0 "));
    assert_non_null(strstr(seen.options, "gpu_mem_limit=1000000 "));
    assert_non_null(strstr(seen.options, "use_tf32=0 "));
    fake_model_unload(&m);
}

static void
onnx_gpu_binds_input_and_output_in_place(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD);
    for (int i = 0; i < 4; i++) {
        bool in = i & 1, out = i & 2;
        ort_gpu_seen_t before = since(NULL);
        fake_request_t *r = add_request(&m, 2, 5, in, out);
        r->queried = i == 3;
        fake_execute(&m, &r, 1);
        check_sum(r, 2, 5);
        ort_gpu_seen_t seen = since(&before);
        assert_int_equal(seen.inputs, in);
        assert_int_equal(seen.outputs, out);
        assert_int_equal(seen.runs, 1);
        fake_request_free(r);
    }
    fake_model_unload(&m);
}

/* With and without a core that tells beforehand where outputs lie. */
static void
onnx_gpu_joins_only_what_lies_on_the_host(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD);
    for (int queried = 0; queried < 2; queried++) {
        /* host, host | GPU in | host, host, GPU out */
        const bool in[] = { false, false, true, false, false, false };
        const bool out[] = { false, false, false, false, false, true };
        fake_request_t *r[6];

        ort_gpu_seen_t before = since(NULL);
        uint64_t batches = m.batches;
        for (int i = 0; i < 6; i++) {
            r[i] = add_request(&m, i % 2 + 1, (float) (10 * i), in[i],
                out[i]);
            r[i]->queried = queried;
        }
        fake_execute(&m, r, 6);
        ort_gpu_seen_t seen = since(&before);
        assert_int_equal(seen.inputs, 1);
        assert_int_equal(seen.outputs, 1);
        assert_int_equal(seen.runs, 4);
        assert_int_equal(m.batches - batches, queried ? 4 : 3);
        for (int i = 0; i < 6; i++) {
            check_sum(r[i], i % 2 + 1, (float) (10 * i));
            fake_request_free(r[i]);
        }
    }
    fake_model_unload(&m);
}

static void
rejected(fake_model_t *m, fake_request_t *r, const char *words)
{
    fake_request_t *good = add_request(m, 1, 1, false, false);
    fake_request_t *both[] = { r, good };

    fake_execute(m, both, 2);
    assert_true(r->failed);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNSUPPORTED);
    if (strstr(r->error, words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", r->error, words);
    }
    check_sum(good, 1, 1);
    fake_request_free(r);
    fake_request_free(good);
}

static void
onnx_gpu_rejects_memory_that_it_cannot_bind(void **state)
{
    const float more[4] = { 0 };
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD);
    fake_request_t *r = add_request(&m, 1, 0, true, false);
    r->inputs[0].memory_id = 1;
    rejected(&m, r, "\"A\" lies in memory of GPU 1, the model's instance runs"
        " on GPU 0");

    r = add_request(&m, 2, 0, true, false);
    fake_tensor_on_gpu(&r->inputs[0], on_device(more, 16), 16, 0);
    r->inputs[0].chunk_lens[0] = 16;
    rejected(&m, r, "\"A\" lies in GPU memory in 2 pieces");

    /* as a region with an odd offset */
    r = add_request(&m, 1, 0, true, false);
    device_free(r->inputs[0].chunks[0]);
    void *base = device_alloc(32);
    r->inputs[0].chunks[0] = (char *) base + 2;
    fake_request_t *good = add_request(&m, 1, 1, false, false);
    fake_request_t *both[] = { r, good };
    fake_execute(&m, both, 2);
    assert_non_null(strstr(r->error, "no multiple of the 4 bytes"));
    check_sum(good, 1, 1);
    r->inputs[0].chunks[0] = base;
    fake_request_free(r);
    fake_request_free(good);
    fake_model_unload(&m);
}

/* An output that the run itself sizes is on the host, or has an error. */
static void
onnx_gpu_copies_outputs_of_unknown_shape_on_the_host(void **state)
{
    const int64_t shape[] = { 5 };
    const float x[] = { 0, 3, 0, 0, 9 };
    fake_model_t m;

    (void) state;
    load(&m, "nonzero", NONZERO);
    for (int out = 0; out < 2; out++) {
        fake_request_t *r = fake_request_new(&m);
        fake_tensor_on_gpu(fake_request_input(r, "X", TRITONSERVER_TYPE_FP32,
            shape, 1, NULL, 20), on_device(x, 20), 20, 0);
        fake_request_want(r, "WHERE");
        r->outputs_on_gpu = out;
        ort_gpu_seen_t before = since(NULL);
        fake_execute(&m, &r, 1);
        assert_int_equal(since(&before).inputs, 1);
        if (out) {
            assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNSUPPORTED);
            assert_non_null(strstr(r->error, "\"WHERE\" was given GPU"));
        } else {
            const fake_tensor_t *o = fake_request_output(r, "WHERE");
            assert_int_equal(((const int64_t *) o->chunks[0])[1], 4);
        }
        fake_request_free(r);
    }
    fake_model_unload(&m);
}

static void
onnx_gpu_runs_on_the_instance_s_device(void **state)
{
    fake_model_t m = { 0 };
    char folder[512];

    (void) state;
    snprintf(folder, sizeof(folder), "%s/add", MODELS);
    fake_next_device(1);
    assert_null(fake_model_load(&m, &backend, folder, ADD, false,
        TRITONSERVER_INSTANCEGROUPKIND_GPU));
    assert_int_equal(since(NULL).device, 1);
    rejected(&m, add_request(&m, 1, 0, true, false), "memory of GPU 0, the "
        "model's instance runs on GPU 1");
    fake_model_unload(&m);
}

static void
onnx_gpu_leaves_nothing_behind(void **state)
{
    const char *wrong = "";

    (void) state;
    assert_int_equal(fake_leftovers(), 0);
    assert_int_equal(fake_cuda_wrong(&wrong), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cuDevicePrimaryCtxRelease_v2(i), 0);
    }
    assert_int_equal(fake_cuda_live(), 0);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_gpu_gives_the_provider_its_parameters),
        cmocka_unit_test(onnx_gpu_binds_input_and_output_in_place),
        cmocka_unit_test(onnx_gpu_joins_only_what_lies_on_the_host),
        cmocka_unit_test(onnx_gpu_rejects_memory_that_it_cannot_bind),
        cmocka_unit_test(
            onnx_gpu_copies_outputs_of_unknown_shape_on_the_host),
        cmocka_unit_test(onnx_gpu_runs_on_the_instance_s_device),
        cmocka_unit_test(onnx_gpu_leaves_nothing_behind)
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s libtriton_onnxruntime.so\n", argv[0]);
        return 2;
    }

    fake_device_memory(device_alloc, device_free);
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&contexts[0], 0) != 0
        || cuDevicePrimaryCtxRetain(&contexts[1], 1) != 0)
    {
        fprintf(stderr, "the fake driver does not start\n");
        return 1;
    }

    TRITONSERVER_Error *err = fake_backend_open(&backend, argv[1], NULL);
    if (err != NULL) {
        fprintf(stderr, "%s\n", TRITONSERVER_ErrorMessage(err));
        return 1;
    }

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_backend_close(&backend);
    return failed;
}
