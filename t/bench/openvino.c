/*
 * openvino.c - what backend openvino adds to the library's own call, for one
 *              request at a time: the digits model of examples/openvino.
 *
 *   bench_openvino [runs]
 *
 * The backend is run by the fake core of t/backends-fake.  Its time is that of
 * one Execute, with the fake core's own lists in it: reading and checking the
 * request, tensors over its memory, the run, the response.  Beside it the
 * library's own calls: the asynchronous run and the wait for it, which is what
 * the backend calls, and the run on the caller's thread, which with one thread
 * reports no error (docs/decisions, 0116); both with tensors that were set
 * once.  Last the tensors alone, made and set, which any caller with other data
 * has to do.  Each figure is the median of its runs.  The calls take turns, and
 * both that wake a thread come after the same others, as an idle processor
 * takes longer to wake; of those the second run counts.
 */

#include "t/backends-fake/fakecore.h"

#include <openvino/c/openvino.h>

#include <inttypes.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define CALLS   4
#define RUNS    20000
#define WARM_UP 500
#define TARGET  20000                   /* ns                                */
#define ROWS    1
#define PIXELS  64
#define CLASSES 10

typedef struct {
    ov_core_t           *core;
    ov_model_t          *model;
    ov_compiled_model_t *compiled;
    ov_infer_request_t  *request;
    float                image[ROWS * PIXELS] __attribute__((aligned(64)));
    float                scores[ROWS * CLASSES] __attribute__((aligned(64)));
} direct_t;

static void direct_open(direct_t *d);
static void direct_close(direct_t *d);
static void direct_set(direct_t *d);
static uint64_t time_backend(fake_model_t *m, const direct_t *d, bool check);
static uint64_t time_asynchronous(direct_t *d);
static uint64_t time_run(direct_t *d);
static uint64_t time_set(direct_t *d);
static uint64_t median(uint64_t *times, size_t count);
static uint64_t now_ns(void);
static void must(ov_status_e status, const char *what);

int
main(int argc, char **argv)
{
    size_t runs = argc > 1 ? (size_t) atol(argv[1]) : RUNS;
    uint64_t *times[CALLS];
    uint64_t medians[CALLS];
    fake_backend_t backend;
    fake_model_t model;
    direct_t d;

    for (size_t k = 0; k < CALLS; k++) {
        times[k] = calloc(runs + 1, sizeof(*times[k]));
    }

    direct_open(&d);
    TRITONSERVER_Error *err = fake_backend_open(&backend, BACKEND, NULL);
    if (err == NULL) {
        err = fake_model_load(&model, &backend, MODELS "/digits",
            "{\"name\":\"digits\",\"max_batch_size\":32}", true,
            TRITONSERVER_INSTANCEGROUPKIND_CPU);
    }
    if (err != NULL) {
        fprintf(stderr, "%s\n", TRITONSERVER_ErrorMessage(err));
        return 1;
    }

    for (size_t i = 0; i < runs + WARM_UP; i++) {
        size_t at = i < WARM_UP ? 0 : i - WARM_UP;

        times[2][at] = time_run(&d);
        times[3][at] = time_set(&d);
        times[0][at] = time_backend(&model, &d, i == 0);
        times[2][at] = time_run(&d);
        times[3][at] = time_set(&d);
        times[1][at] = time_asynchronous(&d);
    }
    for (size_t k = 0; k < CALLS; k++) {
        medians[k] = median(times[k], runs);
        free(times[k]);
    }

    printf("openvino, digits, one image: Execute %.2f us; the library's "
        "asynchronous run %.2f us, its run on the caller's thread %.2f us, "
        "setting the tensors %.2f us\n", (double) medians[0] / 1e3,
        (double) medians[1] / 1e3, (double) medians[2] / 1e3,
        (double) medians[3] / 1e3);
    for (size_t k = 1; k < 3; k++) {
        printf("the backend adds %.2f us to the %s run; target: at most %d us: "
            "%s\n", ((double) medians[0] - (double) medians[k]) / 1e3,
            k == 1 ? "asynchronous" : "caller's", TARGET / 1000,
            medians[0] <= medians[k] + TARGET ? "met" : "MISSED");
    }

    fake_model_unload(&model);
    fake_backend_close(&backend);
    direct_close(&d);
    return 0;
}

/* As the backend compiles it. */
static void
direct_open(direct_t *d)
{
    static const ov_property_t properties[] = {
        { "INFERENCE_PRECISION_HINT", "f32" }, { "ENABLE_CPU_PINNING", "NO" },
        { "NUM_STREAMS", "1" }, { "INFERENCE_NUM_THREADS", "1" }
    };

    for (size_t i = 0; i < ROWS * PIXELS; i++) {
        d->image[i] = (float) (i % 17);
    }

    must(ov_core_create(&d->core), "core");
    must(ov_core_read_model(d->core, MODELS "/digits/1/model.xml", NULL,
        &d->model), "model");
    must(ov_core_compile_model_props(d->core, d->model, "CPU",
        sizeof(properties) / sizeof(properties[0]), properties,
        &d->compiled), "compile");
    must(ov_compiled_model_create_infer_request(d->compiled, &d->request),
        "request");
    direct_set(d);
}

static void
direct_close(direct_t *d)
{
    ov_infer_request_free(d->request);
    ov_compiled_model_free(d->compiled);
    ov_model_free(d->model);
    ov_core_free(d->core);
}

static void
direct_set(direct_t *d)
{
    int64_t in_dims[] = { ROWS, 8, 8 };
    int64_t out_dims[] = { ROWS, CLASSES };
    ov_shape_t in_shape = { 3, in_dims };
    ov_shape_t out_shape = { 2, out_dims };
    ov_tensor_t *in;
    ov_tensor_t *out;

    must(ov_tensor_create_from_host_ptr(F32, in_shape, d->image, &in), "in");
    must(ov_tensor_create_from_host_ptr(F32, out_shape, d->scores, &out),
        "out");
    must(ov_infer_request_set_input_tensor_by_index(d->request, 0, in),
        "set in");
    must(ov_infer_request_set_output_tensor_by_index(d->request, 0, out),
        "set out");
    ov_tensor_free(in);
    ov_tensor_free(out);
}

static uint64_t
time_backend(fake_model_t *m, const direct_t *d, bool check)
{
    static const int64_t shape[] = { ROWS, 8, 8 };

    fake_request_t *r = fake_request_new(m);
    fake_request_input(r, "image", TRITONSERVER_TYPE_FP32, shape, 3,
        d->image, sizeof(d->image));
    fake_request_want(r, "scores");

    uint64_t start_ns = now_ns();
    fake_execute(m, &r, 1);
    uint64_t took_ns = now_ns() - start_ns;

    if (check) {
        const fake_tensor_t *t = fake_request_output(r, "scores");
        must(ov_infer_request_infer(d->request), "run");
        assert_memory_equal(t->chunks[0], d->scores, sizeof(d->scores));
    }

    fake_request_free(r);
    return took_ns;
}

static uint64_t
time_asynchronous(direct_t *d)
{
    uint64_t start_ns = now_ns();
    must(ov_infer_request_start_async(d->request), "start");
    must(ov_infer_request_wait(d->request), "wait");

    return now_ns() - start_ns;
}

static uint64_t
time_run(direct_t *d)
{
    uint64_t start_ns = now_ns();
    must(ov_infer_request_infer(d->request), "run");

    return now_ns() - start_ns;
}

static uint64_t
time_set(direct_t *d)
{
    uint64_t start_ns = now_ns();
    direct_set(d);

    return now_ns() - start_ns;
}

static int
by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a;
    uint64_t y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}

static uint64_t
median(uint64_t *times, size_t count)
{
    qsort(times, count, sizeof(*times), by_size);
    return times[count / 2];
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void
must(ov_status_e status, const char *what)
{
    if (status != OK) {
        fprintf(stderr, "%s: %s\n", what, ov_get_last_err_msg());
        exit(1);
    }
}
