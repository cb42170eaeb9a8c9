/* cuda.c - the cuda backend on the fake driver, run by hand; the one kernel
   is a function of this program */

#include "fakecore.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/cuda-fake/fake_cuda.h"
#include "t/cuda-fake/fake_kernels.h"

#define TENSOR(name, dims) "{\"name\":\"" name "\",\"data_type\":" \
    "\"TYPE_FP32\",\"dims\":" dims "}"
#define PARAMETER(key, value) "\"" key "\":{\"string_value\":\"" value "\"}"
#define CONFIG(dims, more) "{\"name\":\"fake\",\"max_batch_size\":4," \
    "\"input\":[" TENSOR("a", dims) "," TENSOR("b", dims) "]," \
    "\"output\":[" TENSOR("sum", dims) "]," \
    "\"parameters\":{" PARAMETER("shape_sum", "like a") "," \
    PARAMETER("weights_w", "w.bin") "," \
    PARAMETER("scratch_half", "bytes(sum)") "," \
    PARAMETER("kernel_1", "add<<<1,1>>>(a,b,half,int(elements(sum)))") "," \
    PARAMETER("kernel_2", "add<<<1,1>>>(half,w,sum,int(elements(sum)))") \
    more "}}"

static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum,\n"
    ".param .u32 count) { ret; }\n";
static const float weights[64] = { 100, 200, 300 };

static char directory[64];
static const char *library;

/* sum = a + b, if the three are as long as they should be. */
static void
run_add(const fake_cuda_launch_t *l)
{
    size_t count = (size_t) *(const int *) l->arguments[3];
    float *p[3];

    for (int i = 0; i < 3; i++) {
        size_t left;
        p[i] = fake_cuda_range(*(void *const *) l->arguments[i], &left);
        if (p[i] == NULL || left < count * sizeof(float)) {
            fake_cuda_fault(700);
            return;
        }
    }
    for (size_t i = 0; i < count; i++) {
        p[2][i] = p[0][i] + p[1][i];
    }
}

static void
write_file(const char *name, const void *data, size_t len)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* A backend of its own for each test: it remembers a device's failure. */
static void
open_backend(fake_backend_t *b)
{
    static const size_t sizes[] = { 8, 8, 8, 4 };

    fake_cuda_reset();
    fake_cuda_set_devices(2);
    fake_cuda_register("add", run_add, sizes, 4);
    assert_null(fake_backend_open(b, library, NULL));
}

/* All that the test made on the device is given back. */
static void
close_backend(fake_backend_t *b)
{
    const char *what;

    fake_backend_close(b);
    assert_int_equal(fake_cuda_wrong(&what), 0);
    assert_string_equal(what, "");
    assert_int_equal(fake_cuda_live(), 0);
    assert_int_equal(fake_leftovers(), 0);
}

static void
load(fake_model_t *m, fake_backend_t *b, const char *config)
{
    TRITONSERVER_Error *err = fake_model_load(m, b, directory, config, true,
        TRITONSERVER_INSTANCEGROUPKIND_GPU);

    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static fake_request_t *
request(fake_model_t *m, const float *a, const float *b, int64_t rows,
    int64_t width)
{
    const int64_t shape[] = { rows, width };
    uint64_t len = (uint64_t) (rows * width) * sizeof(float);
    fake_request_t *r = fake_request_new(m);

    fake_request_input(r, "a", TRITONSERVER_TYPE_FP32, shape, 2, a, len);
    fake_request_input(r, "b", TRITONSERVER_TYPE_FP32, shape, 2, b, len);
    fake_request_want(r, "sum");
    return r;
}

static void
expect_sum(const fake_request_t *r, const float *sum, size_t count)
{
    const fake_tensor_t *t = fake_request_output(r, "sum");
    const float *got = t->memory == TRITONSERVER_MEMORY_GPU
        ? fake_cuda_bytes(t->chunks[0]) : t->chunks[0];

    assert_int_equal(t->chunk_lens[0], count * sizeof(float));
    assert_memory_equal(got, sum, count * sizeof(float));
}

static void
requests_run_as_one_batch(void **state)
{
    const float a[] = { 1, 2, 3, 4 }, b[] = { 10, 20, 30, 40 };
    const float first[] = { 111, 222, 333, 44 }, second[] = { 11, 22 };
    fake_backend_t backend;
    fake_request_t *r[2];
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ""));
    size_t live = fake_cuda_live();
    r[0] = request(&m, a, b, 2, 2);
    r[1] = request(&m, a, b, 1, 2);
    fake_execute(&m, r, 2);
    expect_sum(r[0], first, 4);
    expect_sum(r[1], second, 2);
    assert_int_equal(m.batches, 1);
    assert_int_equal(m.rows, 3);
    assert_int_equal(fake_cuda_ran("add"), 2);
    assert_int_equal(fake_cuda_live(), live);   /* nothing for the batch     */

    fake_request_free(r[0]);
    fake_request_free(r[1]);
    fake_model_unload(&m);
    close_backend(&backend);
}

static void
batches_end_at_the_model_s_rows_and_at_other_shapes(void **state)
{
    const float a[8] = { 1 }, b[8] = { 2 };
    fake_backend_t backend;
    fake_request_t *r[4];
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[-1]", ""));
    r[0] = request(&m, a, b, 3, 2);
    r[1] = request(&m, a, b, 2, 2);
    r[2] = request(&m, a, b, 2, 2);
    r[3] = request(&m, a, b, 1, 3);
    fake_execute(&m, r, 4);
    assert_int_equal(m.batches, 3);
    assert_int_equal(m.rows, 8);
    for (int i = 0; i < 4; i++) {
        assert_false(r[i]->failed);
        fake_request_free(r[i]);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

static void
a_request_that_does_not_fit_costs_no_other(void **state)
{
    const float a[] = { 1, 2, 3, 4 }, b[] = { 1, 1, 1, 1 };
    const float sum[] = { 102, 203 };
    fake_backend_t backend;
    fake_request_t *r[4];
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ""));
    r[0] = request(&m, a, b, 1, 3);             /* too wide                  */
    r[1] = request(&m, a, b, 1, 2);
    r[2] = request(&m, a, b, 1, 2);
    r[2]->inputs[1].datatype = TRITONSERVER_TYPE_INT32;
    r[3] = request(&m, a, b, 1, 2);
    r[3]->cancelled = true;
    fake_execute(&m, r, 4);
    expect_sum(r[1], sum, 2);
    assert_non_null(strstr(r[0]->error, "shape of the configuration"));
    assert_non_null(strstr(r[2]->error, "is INT32, the model takes FP32"));
    assert_int_equal(r[3]->error_code, TRITONSERVER_ERROR_CANCELLED);
    for (int i = 0; i < 4; i++) {
        fake_request_free(r[i]);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

/* The buffers of the two sizes have no room beside each other. */
static void
a_batch_takes_no_more_than_its_memory(void **state)
{
    static const struct {
        int64_t width;
        bool    fits;
    } rows[] = {
        { 1, true }, { 30, true }, { 1, true }, { 65, false }, { 30, true },
        { 64, false }
    };
    const float zeros[65] = { 0 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[-1]", "," PARAMETER("memory", "1024") ","
        PARAMETER("scratch_x", "max(1000 - 30 * elements(a), 4)")));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_request_t *r = request(&m, zeros, zeros, 1, rows[i].width);

        fake_execute(&m, &r, 1);
        assert_int_equal(r->failed, !rows[i].fits);
        if (rows[i].fits) {
            expect_sum(r, weights, (size_t) rows[i].width);
        } else {
            assert_int_equal(r->error_code, TRITONSERVER_ERROR_INVALID_ARG);
            assert_non_null(strstr(r->error, "may take 1024"));
        }
        fake_request_free(r);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

/* Of a width beyond 2 the second kernel, which writes the output, does not. */
static void
outputs_of_kernels_that_do_not_run_are_zeros(void **state)
{
    static const int64_t widths[] = { 2, 3, 2, 3 };
    const float a[3] = { 0 }, zeros[3] = { 0 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[-1]", "," PARAMETER("kernel_3",
        "add<<<max(3 - a[0], 0),1>>>(half,w,sum,int(elements(sum)))")
        "," PARAMETER("kernel_2", "add<<<1,1>>>(a,b,half,int(1))")));
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        fake_request_t *r = request(&m, a, a, 1, widths[i]);

        fake_execute(&m, &r, 1);
        expect_sum(r, widths[i] == 2 ? weights : zeros, (size_t) widths[i]);
        fake_request_free(r);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

/* Two rows have no room, one has. */
static void
requests_that_fail_together_run_one_by_one(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    const char *const limits[] = {
        PARAMETER("scratch_x", "1 / (2 - batch)"),
        PARAMETER("kernel_3", "add<<<1,1022 + batch * 2>>>(a,b,half,int(0))"),
        PARAMETER("memory", "32")
    };
    char config[2048];

    (void) state;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        fake_backend_t backend;
        fake_request_t *r[2];
        fake_model_t m;

        snprintf(config, sizeof(config), CONFIG("[-1]", ",%s"), limits[i]);
        open_backend(&backend);
        load(&m, &backend, config);
        for (int k = 0; k < 2; k++) {
            r[k] = request(&m, a, b, 1, 2);
        }
        fake_execute(&m, r, 2);
        for (int k = 0; k < 2; k++) {
            expect_sum(r[k], sum, 2);
            fake_request_free(r[k]);
        }
        assert_int_equal(m.batches, 2);
        fake_model_unload(&m);
        close_backend(&backend);
    }
}

/* ---- memory of devices */

extern int cuMemAlloc_v2(unsigned long long *base, size_t size);
extern int cuMemFree_v2(unsigned long long base);
extern int cuCtxPushCurrent_v2(void *context);
extern int cuCtxPopCurrent_v2(void **context);
extern int cuDevicePrimaryCtxRetain(void **context, int device);
extern int cuDevicePrimaryCtxRelease_v2(int device);

static int on_device;

static void *
device_alloc(uint64_t size)
{
    unsigned long long base = 0;
    void *context;

    assert_int_equal(cuDevicePrimaryCtxRetain(&context, on_device), 0);
    assert_int_equal(cuCtxPushCurrent_v2(context), 0);
    assert_int_equal(cuMemAlloc_v2(&base, size), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(on_device), 0);
    return (void *) (uintptr_t) base;
}

static void
device_free(void *p)
{
    void *context;

    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(context), 0);
    assert_int_equal(cuMemFree_v2((unsigned long long) (uintptr_t) p), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
}

/* An input on GPU device, offset bytes into its memory. */
static void
put_on_gpu(fake_tensor_t *t, int device, const void *data, uint64_t len)
{
    on_device = device;
    void *p = device_alloc(len);
    on_device = 0;
    memcpy(fake_cuda_bytes(p), data, len);
    fake_tensor_on_gpu(t, p, len, device);
}

static void
tensors_on_the_device_stay_there(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    const int64_t shape[] = { 1, 2 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    fake_device_memory(device_alloc, device_free);
    load(&m, &backend, CONFIG("[2]", ""));
    for (int device = 0; device < 2; device++) {
        uint64_t to_device = fake_cuda_moved(FAKE_CUDA_TO_DEVICE);
        uint64_t on = fake_cuda_moved(FAKE_CUDA_ON_DEVICE);
        uint64_t peer = fake_cuda_moved(FAKE_CUDA_TO_PEER);
        fake_request_t *r = fake_request_new(&m);

        put_on_gpu(fake_request_input(r, "a", TRITONSERVER_TYPE_FP32, shape,
            2, NULL, 0), device, a, sizeof(a));
        fake_request_input(r, "b", TRITONSERVER_TYPE_FP32, shape, 2, b,
            sizeof(b));
        fake_request_want(r, "sum");
        r->outputs_on_gpu = true;
        fake_execute(&m, &r, 1);
        expect_sum(r, sum, 2);

        /* b alone is copied to it, a only from another */
        assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_DEVICE) - to_device, 8);
        assert_int_equal(fake_cuda_moved(FAKE_CUDA_ON_DEVICE) - on, 8);
        assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_PEER) - peer,
            device == 0 ? 0 : 8);
        assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_HOST), 0);
        fake_request_free(r);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

static void
inputs_that_kernels_write_to_are_copied(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 11, 22 };
    const int64_t shape[] = { 1, 2 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ","
        PARAMETER("INFERENCE_WRITABLE_INPUTS", "true") ","
        PARAMETER("kernel_1", "add<<<1,1>>>(a,b,sum,int(elements(sum)))") ","
        PARAMETER("kernel_2", "add<<<1,1>>>(a,b,a,int(elements(sum)))")));
    fake_request_t *r = fake_request_new(&m);
    fake_tensor_t *t = fake_request_input(r, "a", TRITONSERVER_TYPE_FP32,
        shape, 2, NULL, 0);
    put_on_gpu(t, 0, a, sizeof(a));
    fake_request_input(r, "b", TRITONSERVER_TYPE_FP32, shape, 2, b,
        sizeof(b));
    fake_request_want(r, "sum");
    fake_execute(&m, &r, 1);
    expect_sum(r, sum, 2);
    assert_memory_equal(fake_cuda_bytes(t->chunks[0]), a, sizeof(a));
    fake_request_free(r);
    fake_model_unload(&m);
    close_backend(&backend);
}

static void
inputs_in_several_buffers_are_put_together(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    const int64_t shape[] = { 1, 2 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ""));
    fake_request_t *r = fake_request_new(&m);
    fake_tensor_t *t = fake_request_input(r, "a", TRITONSERVER_TYPE_FP32,
        shape, 2, a, 3);
    fake_tensor_append(t, (const char *) a + 3, 5);
    fake_request_input(r, "b", TRITONSERVER_TYPE_FP32, shape, 2, b,
        sizeof(b));
    fake_request_want(r, "sum");
    fake_execute(&m, &r, 1);
    expect_sum(r, sum, 2);
    fake_request_free(r);
    fake_model_unload(&m);
    close_backend(&backend);
}

/* ---- failures */

static TRITONSERVER_Error *
execute(fake_model_t *m, fake_request_t *r)
{
    TRITONSERVER_Error *(*run)(TRITONBACKEND_ModelInstance *,
        TRITONBACKEND_Request **, uint32_t) = (void *) dlsym(
        m->backend->library, "TRITONBACKEND_ModelInstanceExecute");
    TRITONBACKEND_Request *requests[] = { (void *) r };

    return run((void *) m, requests, 1);
}

static bool
is_ready(fake_model_t *m)
{
    TRITONSERVER_Error *(*ready)(TRITONBACKEND_ModelInstance *) = (void *)
        dlsym(m->backend->library, "TRITONBACKEND_ModelInstanceReady");
    TRITONSERVER_Error *err = ready((void *) m);

    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
    }
    return err == NULL;
}

/* Load, two batches, unload, with the n-th call of the driver failing. */
static bool
survives(uint64_t n, int rc)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    fake_backend_t backend;
    fake_model_t m;

    open_backend(&backend);
    fake_cuda_fail_nth(n, rc);
    TRITONSERVER_Error *err = fake_model_load(&m, &backend, directory,
        CONFIG("[2]", ""), true, TRITONSERVER_INSTANCEGROUPKIND_GPU);
    if (err == NULL) {
        for (int i = 0; i < 3; i++) {
            fake_request_t *r = request(&m, a, b, 1, 2);
            fake_execute(&m, &r, 1);
            if (r->failed) {
                assert_true(strlen(r->error) > 10);
            } else {
                expect_sum(r, sum, 2);
            }
            fake_request_free(r);
        }
        fake_model_unload(&m);
    } else {
        assert_true(strlen(TRITONSERVER_ErrorMessage(err)) > 10);
        TRITONSERVER_ErrorDelete(err);
    }

    bool failed = fake_cuda_failures() > 0;
    fake_cuda_fail_nth(0, 0);
    close_backend(&backend);
    return failed;
}

static void
every_call_may_fail_once(void **state)
{
    uint64_t n = 1;

    (void) state;
    while (survives(n, 2)) {
        n++;
    }
    assert_true(n > 60);
}

/* Without an execution. */
static void
await_ready(fake_model_t *m)
{
    for (int i = 0; i < 10000 && !is_ready(m); i++) {
        usleep(1000);
    }
    assert_true(is_ready(m));
}

static void
kernels_that_are_late_keep_their_requests(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    fake_backend_t backend;
    fake_request_t *r[3];
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", "," PARAMETER("timeout", "30")));
    for (int i = 0; i < 3; i++) {
        r[i] = request(&m, a, b, 1, 2);
    }

    fake_cuda_hang("add");
    assert_null(execute(&m, r[0]));
    assert_true(r[0]->final && r[0]->failed && !r[0]->released);
    assert_int_equal(r[0]->error_code, TRITONSERVER_ERROR_UNAVAILABLE);
    assert_false(is_ready(&m));
    assert_null(execute(&m, r[1]));
    assert_true(r[1]->final && r[1]->failed && r[1]->released);
    assert_false(r[0]->released);

    /* a call that fails does not say that the kernels have ended */
    static const char *const calls[] = {
        "cuStreamQuery", "cuCtxPushCurrent_v2"
    };
    for (int i = 0; i < 2; i++) {
        uint64_t asked = fake_cuda_count(calls[i]);

        fake_cuda_fail(calls[i], 801);
        for (int k = 0; k < 10000 && fake_cuda_count(calls[i]) < asked + 3;
             k++)
        {
            usleep(1000);
        }
        assert_true(fake_cuda_count(calls[i]) >= asked + 3);
        assert_false(r[0]->released || is_ready(&m));
    }
    fake_cuda_fail(NULL, 0);

    fake_cuda_hang(NULL);
    await_ready(&m);
    assert_true(r[0]->released);
    fake_execute(&m, &r[2], 1);
    expect_sum(r[2], sum, 2);
    for (int i = 0; i < 3; i++) {
        fake_request_free(r[i]);
    }
    fake_model_unload(&m);
    close_backend(&backend);
}

/* The core finalizes an instance once its requests are released. */
static void
an_instance_ends_after_its_late_kernels(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 };
    fake_backend_t backend;
    fake_request_t *r;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", "," PARAMETER("timeout", "30")));
    r = request(&m, a, b, 1, 2);
    fake_cuda_hang("add");
    assert_null(execute(&m, r));
    assert_false(r->released);
    fake_cuda_hang(NULL);
    await_ready(&m);
    assert_true(r->released);
    fake_request_free(r);
    fake_model_unload(&m);
    close_backend(&backend);
}

static void *
execute_in_thread(void *r)
{
    assert_null(execute(((fake_request_t *) r)->model, r));
    return NULL;
}

/* Sleeps until so much waits in streams: a lock of the backend's around a
   batch would hold the second one up. */
static void
await_queued(size_t least)
{
    for (int i = 0; i < 10000 && fake_cuda_queued() < least; i++) {
        usleep(1000);
    }
    assert_true(fake_cuda_queued() >= least);
}

static void
instances_on_a_device_overlap(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    fake_backend_t backend;
    fake_request_t *r[2];
    pthread_t threads[2];
    fake_model_t m[2];
    size_t one = 0;

    (void) state;
    open_backend(&backend);
    for (int i = 0; i < 2; i++) {
        load(&m[i], &backend, CONFIG("[2]", ""));
        r[i] = request(&m[i], a, b, 1, 2);
    }

    fake_cuda_hang("add");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, execute_in_thread,
            r[i]), 0);
        await_queued(i == 0 ? 3 : one + 3);
        one = fake_cuda_queued();
    }
    fake_cuda_hang(NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        expect_sum(r[i], sum, 2);
        fake_request_free(r[i]);
        fake_model_unload(&m[i]);
    }
    close_backend(&backend);
}

static void
a_fault_ends_the_device(void **state)
{
    const float a[] = { 1, 2 }, b[] = { 10, 20 };
    fake_backend_t backend;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ""));
    assert_true(is_ready(&m));
    fake_cuda_fault_in("add");
    for (int i = 0; i < 2; i++) {
        fake_request_t *r = request(&m, a, b, 1, 2);
        fake_execute(&m, &r, 1);
        assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNAVAILABLE);
        assert_non_null(strstr(r->error, "GPU 0 has failed"));
        assert_non_null(strstr(r->error, "700"));
        assert_non_null(strstr(r->error, "cannot run model \"fake\""));
        assert_null(strstr(r->error, "model.ptx"));
        fake_request_free(r);
    }
    assert_false(is_ready(&m));

    /* nor does another model load on it */
    fake_model_t other;
    TRITONSERVER_Error *err = fake_model_load(&other, &backend, directory,
        CONFIG("[2]", ""), true, TRITONSERVER_INSTANCEGROUPKIND_GPU);
    assert_non_null(err);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), "has failed"));
    TRITONSERVER_ErrorDelete(err);
    fake_model_unload(&m);
    fake_backend_close(&backend);
    fake_cuda_break(0, 0);
    fake_cuda_fault_in(NULL);
}

/* No number tells whether a device has failed: the driver is asked. */
static void
an_error_of_one_call_ends_no_device(void **state)
{
    static const int codes[] = { 719, 801, 999 };
    const float a[] = { 1, 2 }, b[] = { 10, 20 }, sum[] = { 111, 222 };
    fake_backend_t backend;
    fake_request_t *r;
    fake_model_t m;

    (void) state;
    open_backend(&backend);
    load(&m, &backend, CONFIG("[2]", ""));
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        fake_cuda_fail("cuMemcpyHtoDAsync_v2", codes[i]);
        r = request(&m, a, b, 1, 2);
        fake_execute(&m, &r, 1);
        assert_int_equal(r->error_code, TRITONSERVER_ERROR_INTERNAL);
        fake_request_free(r);
        fake_cuda_fail(NULL, 0);
        assert_true(is_ready(&m));
        r = request(&m, a, b, 1, 2);
        fake_execute(&m, &r, 1);
        expect_sum(r, sum, 2);
        fake_request_free(r);
    }

    fake_cuda_break(0, 333);            /* a number of no list               */
    r = request(&m, a, b, 1, 2);
    fake_execute(&m, &r, 1);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNAVAILABLE);
    assert_non_null(strstr(r->error, "GPU 0 has failed"));
    fake_request_free(r);
    assert_false(is_ready(&m));
    fake_model_unload(&m);
    fake_backend_close(&backend);
    fake_cuda_break(0, 0);
}

static int
make_model(void **state)
{
    char path[80];

    (void) state;
    strcpy(directory, "/tmp/inf-fake-cuda-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/1", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("1/model.ptx", ptx, sizeof(ptx) - 1);
    write_file("1/w.bin", weights, sizeof(weights));
    return 0;
}

static int
remove_model(void **state)
{
    static const char *const names[] = { "1/model.ptx", "1/w.bin", "1", "." };

    (void) state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), i < 3 ? "%s/%s" : "%s", directory,
            names[i]);
        assert_int_equal(remove(path), 0);
    }
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_run_as_one_batch),
        cmocka_unit_test(batches_end_at_the_model_s_rows_and_at_other_shapes),
        cmocka_unit_test(a_request_that_does_not_fit_costs_no_other),
        cmocka_unit_test(a_batch_takes_no_more_than_its_memory),
        cmocka_unit_test(outputs_of_kernels_that_do_not_run_are_zeros),
        cmocka_unit_test(requests_that_fail_together_run_one_by_one),
        cmocka_unit_test(tensors_on_the_device_stay_there),
        cmocka_unit_test(inputs_that_kernels_write_to_are_copied),
        cmocka_unit_test(inputs_in_several_buffers_are_put_together),
        cmocka_unit_test(every_call_may_fail_once),
        cmocka_unit_test(kernels_that_are_late_keep_their_requests),
        cmocka_unit_test(an_instance_ends_after_its_late_kernels),
        cmocka_unit_test(instances_on_a_device_overlap),
        cmocka_unit_test(an_error_of_one_call_ends_no_device),
        cmocka_unit_test(a_fault_ends_the_device)
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s BACKEND\n", argv[0]);
        return 2;
    }
    library = argv[1];
    setenv("INFERENCE_CUDA_DRIVER", FAKE_CUDA_LIBRARY, 1);
    return cmocka_run_group_tests(tests, make_model, remove_model);
}
