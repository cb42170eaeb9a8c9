/* Memory kinds through the C API: servers on the fake driver's GPUs, and the
   backend t/backends/memory_kinds.c. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/abi/api.h"
#include "core/tensor/nvml.h"
#include "fake_cuda.h"
#include "fake_nvml.h"
#include "temp_tree.h"

#define SIZE 48u

/* The preferences of a request, and its result. */
typedef struct {
    TRITONSERVER_MemoryType         place;      /* where alloc puts DATA     */
    int64_t                         place_id;
    bool                            ipc;        /* and gives a handle        */
    TRITONSERVER_InferenceResponse *response;
    bool                            released;
} shot_t;

static struct {
    char                           *tree;
    TRITONSERVER_Server            *server;
    TRITONSERVER_ResponseAllocator *allocator;
    pthread_mutex_t                 lock;
    pthread_cond_t                  arrived;
} world = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER
};

static const uint8_t handle[64] = "a handle of the client";

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

/* DATA where the shot says, the rest on the CPU. */
static TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id)
{
    const shot_t *shot = userp;
    bool data = strcmp(name, "DATA") == 0;
    (void) allocator;
    (void) type;
    (void) id;

    *actual = data ? shot->place : TRITONSERVER_MEMORY_CPU;
    *actual_id = data ? shot->place_id : 0;
    *buffer_userp = NULL;
    return inf_memory_alloc(inf_memory_shared(), (inf_memory_type_t) *actual,
        *actual_id, size, buffer);
}

static TRITONSERVER_Error *
on_release_buffer(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    (void) buffer_userp;
    (void) size;
    return inf_memory_release(inf_memory_shared(), buffer,
        (inf_memory_type_t) type, id);
}

static TRITONSERVER_Error *
on_attributes(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    TRITONSERVER_BufferAttributes *a, void *userp, void *buffer_userp)
{
    (void) allocator;
    (void) buffer_userp;
    return ((const shot_t *) userp)->ipc && strcmp(name, "DATA") == 0
        ? TRITONSERVER_BufferAttributesSetCudaIpcHandle(a, (void *) handle)
        : NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    (void) flags;
    pthread_mutex_lock(&world.lock);
    ((shot_t *) userp)->response = response;
    pthread_cond_broadcast(&world.arrived);
    pthread_mutex_unlock(&world.lock);
}

static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    (void) request;
    (void) flags;
    pthread_mutex_lock(&world.lock);
    ((shot_t *) userp)->released = true;
    pthread_cond_broadcast(&world.arrived);
    pthread_mutex_unlock(&world.lock);
}

static int
setup(void **state)
{
    (void) state;
    fake_cuda_reset();
    world.tree = tree_new();
    setenv(INF_MEMORY_DRIVER_ENV, FAKE_CUDA_LIBRARY, 1);
    setenv(INF_NVML_ENV, FAKE_NVML_LIBRARY, 1);
    succeeds(TRITONSERVER_ResponseAllocatorNew(&world.allocator, on_alloc,
        on_release_buffer, NULL));
    succeeds(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
        world.allocator, on_attributes));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    const char *what;

    if (world.server != NULL) {
        succeeds(TRITONSERVER_ServerDelete(world.server));
        world.server = NULL;
    }
    succeeds(TRITONSERVER_ResponseAllocatorDelete(world.allocator));
    tree_free(world.tree);
    fake_cuda_fail(NULL, 0);
    fake_nvml_fail(NULL);
    assert_int_equal(fake_cuda_live(), 0);
    assert_int_equal(fake_nvml_open(), 0);
    if (fake_cuda_wrong(&what) != 0) {
        fail_msg("%s", what);
    }
    return 0;
}

static void
make_model(const char *name, const char *group)
{
    char path[128], config[512];

    snprintf(path, sizeof(path), "models/%s/1", name);
    tree_dir(world.tree, path);
    snprintf(path, sizeof(path), "models/%s/config.pbtxt", name);
    snprintf(config, sizeof(config), "backend: 'memory_kinds'\n"
        "input { name: 'IN' data_type: TYPE_UINT8 dims: -1 }\n"
        "output [ { name: 'DATA' data_type: TYPE_UINT8 dims: -1 },\n"
        "  { name: 'REPORT' data_type: TYPE_STRING dims: 1 } ]\n"
        "instance_group { %s }\n", group);
    tree_file(world.tree, path, config);
}

static TRITONSERVER_ServerOptions *
new_options(void)
{
    TRITONSERVER_ServerOptions *o;

    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        tree_path(world.tree, "models")));
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o,
        TEST_BACKENDS));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE));
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetStrictReadiness(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(o,
        1 << 20));
    succeeds(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 0,
        1 << 20));
    succeeds(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 1,
        2 << 20));
    succeeds(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(o, 1,
        1 << 20));
    succeeds(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(o, 1,
        2 << 20));                              /* the last one counts       */
    succeeds(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(o,
        5.0));
    return o;
}

static void
start(TRITONSERVER_ServerOptions *o)
{
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

static TRITONSERVER_InferenceRequest *
new_request(shot_t *shot, const char *model, int64_t want, int64_t want_id)
{
    TRITONSERVER_InferenceRequest *r;
    int64_t shape = SIZE;

    succeeds(TRITONSERVER_InferenceRequestNew(&r, world.server, model, -1));
    succeeds(TRITONSERVER_InferenceRequestAddInput(r, "IN",
        TRITONSERVER_TYPE_UINT8, &shape, 1));
    succeeds(TRITONSERVER_InferenceRequestSetIntParameter(r, "want", want));
    succeeds(TRITONSERVER_InferenceRequestSetIntParameter(r, "want_id",
        want_id));
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(r, on_release,
        shot));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(r,
        world.allocator, shot, on_response, shot));
    return r;
}

static void
run(shot_t *shot, TRITONSERVER_InferenceRequest *r)
{
    shot->response = NULL;
    shot->released = false;
    succeeds(TRITONSERVER_ServerInferAsync(world.server, r, NULL));
    pthread_mutex_lock(&world.lock);
    while (shot->response == NULL || !shot->released) {
        pthread_cond_wait(&world.arrived, &world.lock);
    }
    pthread_mutex_unlock(&world.lock);
}

/* An output's place; its bytes, where they may be read. */
static const void *
output(const shot_t *shot, const char *want, size_t *size,
    TRITONSERVER_MemoryType *type, int64_t *id)
{
    uint32_t count;

    succeeds(TRITONSERVER_InferenceResponseError(shot->response));
    succeeds(TRITONSERVER_InferenceResponseOutputCount(shot->response,
        &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_DataType datatype;
        const int64_t *shape;
        uint64_t dims;
        const void *base;
        void *userp;

        succeeds(TRITONSERVER_InferenceResponseOutput(shot->response, i,
            &name, &datatype, &shape, &dims, &base, size, type, id, &userp));
        if (strcmp(name, want) == 0) {
            return base;
        }
    }
    fail_msg("no output %s", want);
    return NULL;
}

/* The arrays of these tests are where the compiler has put them. */
static void
expect_report(const shot_t *shot, const char *want)
{
    static const char unaligned[] = ":unaligned";
    TRITONSERVER_MemoryType type;
    int64_t id;
    size_t size;
    const char *base = output(shot, "REPORT", &size, &type, &id);
    char text[1024];

    assert_true(size >= 4 && size - 4 < sizeof(text));
    memcpy(text, base + 4, size - 4);
    text[size - 4] = '\0';
    for (char *at; (at = strstr(text, unaligned)) != NULL; ) {
        const char *rest = at + sizeof(unaligned) - 1;
        memmove(at, rest, strlen(rest) + 1);
    }
    assert_string_equal(text, want);
}

static void
finish(shot_t *shot, TRITONSERVER_InferenceRequest *r)
{
    succeeds(TRITONSERVER_InferenceResponseDelete(shot->response));
    succeeds(TRITONSERVER_InferenceRequestDelete(r));
}

static char *
metrics_text(void)
{
    TRITONSERVER_Metrics *m;
    const char *base;
    size_t size;

    succeeds(TRITONSERVER_ServerMetrics(world.server, &m));
    succeeds(TRITONSERVER_MetricsFormatted(m, TRITONSERVER_METRIC_PROMETHEUS,
        &base, &size));
    char *text = strndup(base, size);
    succeeds(TRITONSERVER_MetricsDelete(m));
    return text;
}

static void
has_line(const char *text, const char *line)
{
    char whole[256];
    snprintf(whole, sizeof(whole), "%s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, text);
    }
}

/* Addresses that nobody may touch: an access ends the process. */
static void
inputs_on_a_gpu_reach_the_backend_as_such(void **state)
{
    (void) state;
    shot_t shot = { .place = TRITONSERVER_MEMORY_CPU };
    TRITONSERVER_BufferAttributes *a;
    uint8_t here[SIZE - 40];
    void *gpu0, *gpu1;

    make_model("m", "kind: KIND_GPU gpus: [1]");
    start(new_options());
    succeeds(inf_memory_alloc(inf_memory_shared(), INF_MEMORY_GPU, 0, 30,
        &gpu0));
    succeeds(inf_memory_alloc(inf_memory_shared(), INF_MEMORY_GPU, 1, 10,
        &gpu1));

    TRITONSERVER_InferenceRequest *r = new_request(&shot, "m", 0, 0);
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", gpu0, 30,
        TRITONSERVER_MEMORY_GPU, 0));
    succeeds(TRITONSERVER_BufferAttributesNew(&a));
    succeeds(TRITONSERVER_BufferAttributesSetByteSize(a, 10));
    succeeds(TRITONSERVER_BufferAttributesSetMemoryType(a,
        TRITONSERVER_MEMORY_GPU));
    succeeds(TRITONSERVER_BufferAttributesSetMemoryTypeId(a, 1));
    succeeds(TRITONSERVER_BufferAttributesSetCudaIpcHandle(a,
        (void *) handle));
    succeeds(TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
        r, "IN", gpu1, a));
    succeeds(TRITONSERVER_BufferAttributesDelete(a));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", here,
        sizeof(here), TRITONSERVER_MEMORY_CPU_PINNED, 0));

    run(&shot, r);
    expect_report(&shot, "on GPU 1; scratch CPU CPU_PINNED GPU; in GPU:0:30"
        " GPU:1:10:ipc CPU_PINNED:0:8; out CPU:0;");
    finish(&shot, r);
    succeeds(inf_memory_release(inf_memory_shared(), gpu0, INF_MEMORY_GPU,
        0));
    succeeds(inf_memory_release(inf_memory_shared(), gpu1, INF_MEMORY_GPU,
        1));
}

static void
outputs_lie_where_the_allocator_puts_them(void **state)
{
    (void) state;
    static const struct {
        int64_t                 want, want_id;
        TRITONSERVER_MemoryType place;
        int64_t                 place_id;
        bool                    ipc;
        const char             *report;
    } rows[] = {
        { 2, 0, TRITONSERVER_MEMORY_GPU, 0, true, "out GPU:0:ipc;" },
        { 2, 0, TRITONSERVER_MEMORY_GPU, 1, false, "out GPU:1;" },
        { 2, 1, TRITONSERVER_MEMORY_CPU_PINNED, 0, false,
          "out CPU_PINNED:0;" },
        { 2, 1, TRITONSERVER_MEMORY_CPU, 0, false, "out CPU:0;" },
        { 0, 0, TRITONSERVER_MEMORY_GPU, 1, true, "out GPU:1:ipc;" }
    };
    uint8_t data[SIZE];

    memset(data, 7, sizeof(data));
    make_model("m", "kind: KIND_CPU");
    start(new_options());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        shot_t shot = { .place = rows[i].place, .place_id = rows[i].place_id,
            .ipc = rows[i].ipc };
        TRITONSERVER_MemoryType type;
        char want[128];
        int64_t id;
        size_t size;

        TRITONSERVER_InferenceRequest *r = new_request(&shot, "m",
            rows[i].want, rows[i].want_id);
        succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data,
            SIZE, TRITONSERVER_MEMORY_CPU, 0));
        run(&shot, r);

        snprintf(want, sizeof(want), "on CPU 0; scratch CPU CPU_PINNED GPU;"
            " in CPU:0:48; %s", rows[i].report);
        expect_report(&shot, want);
        const void *base = output(&shot, "DATA", &size, &type, &id);
        assert_int_equal(type, rows[i].place);
        assert_int_equal(id, rows[i].place_id);
        assert_int_equal(size, SIZE);
        if (type == TRITONSERVER_MEMORY_GPU) {
            assert_non_null(fake_cuda_bytes(base));
        } else {
            assert_memory_equal(base, data, SIZE);
        }
        finish(&shot, r);
    }
    assert_int_equal(inf_memory_gpu_usage(inf_memory_shared(), 1).used, 0);
}

static void
options_size_the_pools(void **state)
{
    (void) state;
    make_model("m", "");
    start(new_options());

    inf_memory_t *m = inf_memory_shared();
    assert_int_equal(inf_memory_pinned_usage(m).total, 1 << 20);
    assert_int_equal(inf_memory_gpu_usage(m, 0).total, 1 << 20);
    assert_int_equal(inf_memory_gpu_usage(m, 1).total, 2 << 20);
    assert_int_equal(inf_memory_virtual_bytes(m, 0),
        INF_MEMORY_VIRTUAL_DEFAULT);
    assert_int_equal(inf_memory_virtual_bytes(m, 1), 2 << 20);
    assert_int_equal(inf_memory_virtual_bytes(m, 2), 0);
    assert_false(fake_cuda_reaches(0, 1));      /* off unless asked for      */
}

static void
peer_access_is_an_option(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();

    tree_dir(world.tree, "models");
    succeeds(TRITONSERVER_ServerOptionsSetEnablePeerAccess(o, true));
    start(o);
    assert_true(fake_cuda_reaches(0, 1) && fake_cuda_reaches(1, 0));
}

/* Gone: the model on the old GPU; the pools; the next server starts anew. */
static void
the_least_capability_is_an_option(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();
    bool ready;

    make_model("old", "kind: KIND_GPU gpus: [1]");
    make_model("all", "kind: KIND_GPU");
    succeeds(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(o,
        7.5));
    start(o);
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "old", -1,
        &ready));
    assert_false(ready);
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "all", -1,
        &ready));
    assert_true(ready);
    assert_int_equal(inf_memory_gpu_usage(inf_memory_shared(), 1).total, 0);
    succeeds(TRITONSERVER_ServerDelete(world.server));
    world.server = NULL;
    assert_int_equal(fake_cuda_live(), 0);

    o = new_options();
    succeeds(TRITONSERVER_ServerOptionsSetBackendConfig(o, "",
        "min-compute-capability", "high"));
    TRITONSERVER_Error *err = TRITONSERVER_ServerNew(&world.server, o);
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    if (err != NULL) {          /* the number that was set comes last       */
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static void
a_capability_that_is_no_number_is_rejected(void **state)
{
    (void) state;
    static const char *const values[] = { "high", "", "7.5x", "-1", "nan" };

    tree_dir(world.tree, "models");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        TRITONSERVER_ServerOptions *o;

        succeeds(TRITONSERVER_ServerOptionsNew(&o));
        succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
            tree_path(world.tree, "models")));
        succeeds(TRITONSERVER_ServerOptionsSetBackendConfig(o, "",
            "min-compute-capability", values[i]));
        TRITONSERVER_Error *err = TRITONSERVER_ServerNew(&world.server, o);
        assert_non_null(err);
        assert_int_equal(TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ERROR_INVALID_ARG);
        assert_non_null(strstr(TRITONSERVER_ErrorMessage(err),
            "min-compute-capability"));
        TRITONSERVER_ErrorDelete(err);
        succeeds(TRITONSERVER_ServerOptionsDelete(o));
        assert_int_equal(fake_cuda_live(), 0);
    }
}

static void
a_full_gpu_takes_no_more_models(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();
    bool ready;

    make_model("first", "kind: KIND_GPU gpus: [0]");
    make_model("second", "kind: KIND_GPU gpus: [1]");
    fake_cuda_occupy(1, FAKE_CUDA_MEMORY / 2);
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 0.5));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_GPU, 1, 0.5));
    start(o);
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "first", -1,
        &ready));
    assert_true(ready);
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "second", -1,
        &ready));
    assert_false(ready);
}

static void
two_servers_have_one_memory(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();
    TRITONSERVER_Server *second;

    make_model("m", "kind: KIND_GPU");
    start(new_options());
    succeeds(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(o,
        8 << 20));
    succeeds(TRITONSERVER_ServerNew(&second, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    assert_int_equal(inf_memory_pinned_usage(inf_memory_shared()).total,
        1 << 20);
    succeeds(TRITONSERVER_ServerDelete(world.server));
    world.server = second;
    assert_int_equal(inf_memory_pinned_usage(inf_memory_shared()).total,
        1 << 20);
}

static void
metrics_show_pools_and_gpus(void **state)
{
    (void) state;
    void *p;

    tree_dir(world.tree, "models");
    start(new_options());
    succeeds(inf_memory_alloc(inf_memory_shared(), INF_MEMORY_CPU_PINNED, 0,
        1000, &p));
    char *text = metrics_text();
    has_line(text, "nv_pinned_memory_pool_total_bytes 1048576");
    has_line(text, "nv_pinned_memory_pool_used_bytes 1024");
    has_line(text, "# TYPE nv_pinned_memory_pool_used_bytes gauge");
    has_line(text, "nv_gpu_utilization{gpu_uuid=\"GPU-a0a0a0a0-a0a0-a0a0-a0a0"
        "-a0a0a0a0a0a0\"} 0.37");
    has_line(text, "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-a1a1a1a1-a1a1-a1a1"
        "-a1a1-a1a1a1a1a1a1\"} 268435456");
    has_line(text, "# TYPE nv_energy_consumption counter");
    free(text);

    succeeds(inf_memory_release(inf_memory_shared(), p, INF_MEMORY_CPU_PINNED,
        0));
    text = metrics_text();
    has_line(text, "nv_pinned_memory_pool_used_bytes 0");
    free(text);
}

static void
gpu_metrics_can_be_switched_off(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();

    tree_dir(world.tree, "models");
    succeeds(TRITONSERVER_ServerOptionsSetGpuMetrics(o, false));
    start(o);
    char *text = metrics_text();
    assert_null(strstr(text, "gpu"));
    has_line(text, "nv_pinned_memory_pool_total_bytes 1048576");
    free(text);
    assert_int_equal(fake_nvml_open(), 0);
}

#define GPU0 "gpu_uuid=\"GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\","
#define GPU1 "gpu_uuid=\"GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1\","

/* The value of that sample. */
static double
sample(const char *text, const char *name, const char *gpu, const char *more)
{
    char start[256];
    snprintf(start, sizeof(start), "\n%s{%smodel=\"m\",%sversion=\"1\"} ",
        name, gpu, more);
    const char *at = strstr(text, start);

    if (at == NULL) {
        fail_msg("no \"%s\" in:\n%s", start + 1, text);
        return 0;
    }
    return strtod(at + strlen(start), NULL);
}

static double
gpus(const char *text, const char *name, const char *more)
{
    return sample(text, name, GPU0, more) + sample(text, name, GPU1, more);
}

/* Metrics reference, section 2: one more reporter for each GPU. */
static void
instances_on_gpus_have_rows_of_their_own(void **state)
{
    (void) state;
    static const char *const parts[] = {
        "nv_inference_compute_input", "nv_inference_compute_infer",
        "nv_inference_compute_output"
    };
    TRITONSERVER_ServerOptions *o = new_options();
    uint8_t data[SIZE] = { 0 };

    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, NULL,
        "summary_latencies", "true"));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, NULL,
        "histogram_latencies", "true"));
    make_model("m", "kind: KIND_GPU gpus: [ 0, 1 ]");
    start(o);

    for (int i = 0; i < 5; i++) {
        shot_t shot = { .place = TRITONSERVER_MEMORY_CPU };
        TRITONSERVER_InferenceRequest *r = new_request(&shot, "m", 0, 0);
        succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data,
            SIZE, TRITONSERVER_MEMORY_CPU, 0));
        run(&shot, r);
        finish(&shot, r);
    }

    char *text = metrics_text();
    assert_true(gpus(text, "nv_inference_request_success", "") == 5);
    assert_true(gpus(text, "nv_inference_count", "") == 5);
    assert_true(gpus(text, "nv_inference_exec_count", "") == 5);
    assert_true(sample(text, "nv_inference_request_success", "", "") == 0);
    assert_true(gpus(text, "nv_inference_request_failure",
        "reason=\"BACKEND\",") == 0);
    assert_true(sample(text, "nv_inference_request_failure", "",
        "reason=\"OTHER\",") == 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s_duration_us", parts[i]);
        assert_true(gpus(text, name, "") == 5000);
        assert_true(sample(text, name, "", "") == 0);
        snprintf(name, sizeof(name), "%s_summary_us_count", parts[i]);
        assert_true(gpus(text, name, "") == 5);
        assert_true(sample(text, name, "", "") == 0);
        snprintf(name, sizeof(name), "%s_summary_us_sum", parts[i]);
        assert_true(gpus(text, name, "") == 5000);
    }
    assert_true(gpus(text, "nginx_inference_compute_duration_seconds_count",
        "") == 5);
    assert_true(gpus(text, "nginx_inference_compute_duration_seconds_sum",
        "") > 0.0149);

    /* these are the model's */
    assert_true(sample(text, "nv_model_load_duration_secs", "", "") > 0);
    assert_true(gpus(text, "nv_model_load_duration_secs", "") == 0);
    assert_true(sample(text, "nv_inference_first_response_histogram_ms_count",
        "", "") == 5);
    assert_null(strstr(text,
        "nv_inference_first_response_histogram_ms_count{gpu_uuid"));
    free(text);
}

/* Without them an instance on a GPU counts in its model's row. */
static void
without_gpu_metrics_there_is_one_row(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options();
    uint8_t data[SIZE] = { 0 };
    shot_t shot = { .place = TRITONSERVER_MEMORY_CPU };

    succeeds(TRITONSERVER_ServerOptionsSetGpuMetrics(o, false));
    make_model("m", "kind: KIND_GPU gpus: [ 1 ]");
    start(o);
    TRITONSERVER_InferenceRequest *r = new_request(&shot, "m", 0, 0);
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data, SIZE,
        TRITONSERVER_MEMORY_CPU, 0));
    run(&shot, r);
    finish(&shot, r);

    char *text = metrics_text();
    assert_true(sample(text, "nv_inference_request_success", "", "") == 1);
    assert_null(strstr(text, "gpu_uuid"));
    free(text);
}

/* The same server where there is no driver at all. */
/* Whether the index has name in that state, for that reason. */
static bool
is_listed(const char *name, const char *state, const char *reason)
{
    TRITONSERVER_Message *m;
    const char *base;
    size_t size;
    char row[64];

    succeeds(TRITONSERVER_ServerModelIndex(world.server, 0, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
    char *text = strndup(base, size);
    succeeds(TRITONSERVER_MessageDelete(m));
    snprintf(row, sizeof(row), "\"name\":\"%s\"", name);
    char *at = strstr(text, row);
    assert_non_null(at);
    *strchr(at, '}') = '\0';
    bool found = strstr(at, state) != NULL && strstr(at, reason) != NULL;
    free(text);
    return found;
}

/* NULL: the server. */
static bool
is_ready(const char *name)
{
    bool ready;

    succeeds(name != NULL
        ? TRITONSERVER_ServerModelIsReady(world.server, name, -1, &ready)
        : TRITONSERVER_ServerIsReady(world.server, &ready));
    return ready;
}

/* NULL, or the error of the request's response. */
static TRITONSERVER_Error *
ask(shot_t *shot, const char *model, TRITONSERVER_InferenceRequest **r)
{
    static const char data[SIZE];

    *r = new_request(shot, model, 0, 0);
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(*r, "IN", data, SIZE,
        TRITONSERVER_MEMORY_CPU, 0));
    run(shot, *r);
    return TRITONSERVER_InferenceResponseError(shot->response);
}

/* An embedding program has nobody to start it anew: models on that GPU are not
   ready, and everything else serves. */
static void
models_on_a_gpu_that_has_failed_are_not_ready(void **state)
{
    (void) state;
    TRITONSERVER_InferenceRequest *r;
    shot_t shot = { .place = TRITONSERVER_MEMORY_CPU };

    make_model("broken", "kind: KIND_GPU gpus: [1]");
    make_model("good", "kind: KIND_GPU gpus: [0]");
    make_model("host", "kind: KIND_CPU");
    TRITONSERVER_ServerOptions *o = new_options();
    succeeds(TRITONSERVER_ServerOptionsSetStrictReadiness(o, true));
    start(o);
    assert_true(is_ready(NULL));
    assert_true(is_ready("broken"));

    fake_cuda_break(1, 719);
    inf_err_free(inf_memory_check_gpu(inf_memory_shared(), 1));
    assert_false(is_ready(NULL));
    assert_false(is_ready("broken"));
    assert_true(is_ready("good"));
    assert_true(is_ready("host"));
    assert_true(is_listed("broken", "UNAVAILABLE", "GPU 1 has failed"));
    assert_true(is_listed("good", "READY", ""));

    TRITONSERVER_Error *err = ask(&shot, "broken", &r);
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_UNAVAILABLE);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), "GPU 1 has failed,"
        " and answers every call by CUDA_ERROR_LAUNCH_FAILED (719)"));
    TRITONSERVER_ErrorDelete(err);
    finish(&shot, r);
    succeeds(ask(&shot, "good", &r));
    finish(&shot, r);
    fake_cuda_break(1, 0);
}

static void
without_a_driver_everything_is_on_the_cpu(void **state)
{
    (void) state;
    shot_t shot = { .place = TRITONSERVER_MEMORY_CPU };
    uint8_t data[SIZE] = { 1, 2, 3 };
    bool ready;

    setenv(INF_MEMORY_DRIVER_ENV, "/nowhere/libcuda.so.1", 1);
    make_model("auto", "");
    make_model("gpu", "kind: KIND_GPU");
    start(new_options());
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "gpu", -1,
        &ready));
    assert_false(ready);

    TRITONSERVER_InferenceRequest *r = new_request(&shot, "auto", 2, 0);
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data, SIZE,
        TRITONSERVER_MEMORY_CPU, 0));
    run(&shot, r);
    expect_report(&shot, "on CPU 0; scratch CPU; in CPU:0:48; out CPU:0;");
    finish(&shot, r);

    shot.place = TRITONSERVER_MEMORY_GPU;       /* the allocator's error     */
    r = new_request(&shot, "auto", 2, 0);
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data, SIZE,
        TRITONSERVER_MEMORY_CPU, 0));
    run(&shot, r);
    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseError(
        shot.response);
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_UNSUPPORTED);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err),
        "/nowhere/libcuda.so.1"));
    TRITONSERVER_ErrorDelete(err);
    finish(&shot, r);

    char *text = metrics_text();
    has_line(text, "nv_pinned_memory_pool_total_bytes 0");
    assert_null(strstr(text, "nv_gpu"));
    free(text);
}

/* The memory that one step prefers for its output is where the next one reads
   it; the last one's lies where the client puts it. */
static void
tensors_between_steps_lie_where_the_backend_wants_them(void **state)
{
    (void) state;
    shot_t shot = { .place = TRITONSERVER_MEMORY_GPU, .place_id = 1 };
    TRITONSERVER_MemoryType type;
    uint8_t data[SIZE] = { 1, 2, 3 };
    int64_t id;
    size_t size;

    make_model("m", "kind: KIND_GPU gpus: [1]");
    tree_dir(world.tree, "models/e/1");
    tree_file(world.tree, "models/e/config.pbtxt", "platform: 'ensemble'\n"
        "input { name: 'IN' data_type: TYPE_UINT8 dims: -1 }\n"
        "output [ { name: 'DATA' data_type: TYPE_UINT8 dims: -1 },\n"
        "  { name: 'REPORT' data_type: TYPE_STRING dims: 1 } ]\n"
        "ensemble_scheduling { step [ { model_name: 'm' model_version: -1\n"
        "  input_map { key: 'IN' value: 'IN' }\n"
        "  output_map { key: 'DATA' value: 'between' } },\n"
        "{ model_name: 'm' model_version: -1\n"
        "  input_map { key: 'IN' value: 'between' }\n"
        "  output_map { key: 'DATA' value: 'DATA' }\n"
        "  output_map { key: 'REPORT' value: 'REPORT' } } ] }\n");
    start(new_options());

    static const struct {
        int         want, want_id;
        const char *report;
    } asks[] = {
        { 2, 1, "in GPU:1:48; out GPU:1;" },
        { 2, 0, "in GPU:0:48; out GPU:1;" },
        { 1, 0, "in CPU_PINNED:0:48; out GPU:1;" },
        { 0, 0, "in CPU_PINNED:0:48; out GPU:1;" }
    };
    for (size_t i = 0; i < 4; i++) {
        TRITONSERVER_InferenceRequest *r = new_request(&shot, "e",
            asks[i].want, asks[i].want_id);
        succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "IN", data,
            SIZE, TRITONSERVER_MEMORY_CPU, 0));
        run(&shot, r);

        char want[256];
        snprintf(want, sizeof(want), "on GPU 1; scratch CPU CPU_PINNED GPU;"
            " %s", asks[i].report);
        expect_report(&shot, want);
        assert_non_null(output(&shot, "DATA", &size, &type, &id));
        assert_int_equal(type, TRITONSERVER_MEMORY_GPU);
        assert_int_equal(id, 1);
        finish(&shot, r);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(inputs_on_a_gpu_reach_the_backend_as_such),
        T(outputs_lie_where_the_allocator_puts_them),
        T(tensors_between_steps_lie_where_the_backend_wants_them),
        T(options_size_the_pools),
        T(peer_access_is_an_option),
        T(the_least_capability_is_an_option),
        T(a_capability_that_is_no_number_is_rejected),
        T(a_full_gpu_takes_no_more_models),
        T(two_servers_have_one_memory),
        T(metrics_show_pools_and_gpus),
        T(gpu_metrics_can_be_switched_off),
        T(instances_on_gpus_have_rows_of_their_own),
        T(without_gpu_metrics_there_is_one_row),
        T(models_on_a_gpu_that_has_failed_are_not_ready),
        T(without_a_driver_everything_is_on_the_cpu)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
