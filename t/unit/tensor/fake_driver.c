/* The fake driver itself, where it is easy to get wrong: other tests are only
   as good as it is. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/common/gpu_driver_functions.h"
#include "fake_cuda.h"
#include "fake_kernels.h"
#include "tensor/cuda.h"

#define DECLARE(field, symbol, parameters) gpu_result_t symbol parameters;
GPU_FUNCTIONS(DECLARE)
GPU_IPC_FUNCTIONS(DECLARE)
GPU_LATER_FUNCTIONS(DECLARE)

#define COUNT 8u

typedef struct {
    gpu_context_t  context;
    gpu_stream_t   stream;
    gpu_module_t   module;
    gpu_function_t add;
    gpu_ptr_t      values;      /* COUNT of int                              */
} world_t;

static const char text[] =
    "//\n.version 8.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add_all(\n  .param .u64 add_all_0,\n"
    "  .param .u32 add_all_1\n)\n.maxntid 256, 1, 1\n{\n"
    "  .shared .align 4 .b8 tile[1024];\n  ret;\n}\n"
    ".visible .entry idle()\n{\n  ret;\n}\n";

/* values[i] += n, where fewer than a whole one are left: a wrong address. */
static void
add_all(const fake_cuda_launch_t *l)
{
    gpu_ptr_t values;
    int n;
    size_t bytes;

    memcpy(&values, l->arguments[0], sizeof(values));
    memcpy(&n, l->arguments[1], sizeof(n));
    int *v = fake_cuda_range((void *) (uintptr_t) values, &bytes);
    for (unsigned i = 0; i < l->grid[0] * l->block[0]; i++) {
        if ((i + 1) * sizeof(*v) > bytes) {
            fake_cuda_fault(GPU_ILLEGAL_ADDRESS);
            return;
        }
        v[i] += n;
    }
}

static world_t
begin(void)
{
    static const size_t sizes[] = { 8, 4 };
    world_t w;

    fake_cuda_register("add_all", add_all, sizes, 2);
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&w.context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(w.context), 0);
    assert_int_equal(cuStreamCreate(&w.stream, GPU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(cuModuleLoadDataEx(&w.module, text, 0, NULL, NULL), 0);
    assert_int_equal(cuModuleGetFunction(&w.add, w.module, "add_all"), 0);
    assert_int_equal(cuMemAlloc_v2(&w.values, COUNT * sizeof(int)), 0);
    assert_int_equal(cuMemsetD8Async(w.values, 0, COUNT * sizeof(int),
        w.stream), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    return w;
}

/* Of a broken device everything can be given back, with an error. */
static void
finish(world_t *w)
{
    gpu_context_t popped;

    cuMemFree_v2(w->values);
    cuModuleUnload(w->module);
    cuStreamDestroy_v2(w->stream);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
    cuDevicePrimaryCtxRelease_v2(0);
}

static gpu_result_t
launch(world_t *w, int n, unsigned threads)
{
    void *arguments[] = { &w->values, &n };

    return cuLaunchKernel(w->add, 1, 1, 1, threads, 1, 1, 0, w->stream,
        arguments, NULL);
}

static int
value_of(const world_t *w, unsigned i)
{
    const int *v = fake_cuda_bytes((void *) (uintptr_t) w->values);
    return v[i];
}

/* That many uses were wrong, of which the last was of this kind. */
static void
was_wrong(size_t count, const char *text_in_it)
{
    const char *what;

    assert_int_equal(fake_cuda_wrong(&what), count);
    if (strstr(what, text_in_it) == NULL) {
        fail_msg("%s", what);
    }
    fake_cuda_reset();
}

static void
work_of_a_stream_is_done_in_order_when_it_is_waited_for(void **state)
{
    (void) state;
    world_t w = begin();
    int seen[COUNT], again[COUNT];

    assert_int_equal(launch(&w, 5, COUNT), 0);
    assert_int_equal(cuMemcpyDtoHAsync_v2(seen, w.values, sizeof(seen),
        w.stream), 0);
    assert_int_equal(launch(&w, 2, COUNT), 0);
    assert_int_equal(cuMemcpyDtoHAsync_v2(again, w.values, sizeof(again),
        w.stream), 0);
    assert_int_equal(value_of(&w, 0), 0);
    assert_int_equal(fake_cuda_queued(), 4);

    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(seen[COUNT - 1], 5);
    assert_int_equal(again[COUNT - 1], 7);
    assert_int_equal(fake_cuda_ran("add_all"), 2);
    assert_int_equal(fake_cuda_count("cuLaunchKernel"), 2);
    assert_int_equal(fake_cuda_moved(FAKE_CUDA_TO_HOST), 2 * sizeof(seen));
    assert_int_equal(fake_cuda_pageable(), 2);
    finish(&w);
}

static void
an_argument_is_the_value_of_when_it_was_queued(void **state)
{
    (void) state;
    world_t w = begin();
    int n = 3;
    void *arguments[] = { &w.values, &n };

    assert_int_equal(cuLaunchKernel(w.add, 1, 1, 1, 1, 1, 1, 0, w.stream,
        arguments, NULL), 0);
    n = 1000;
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(value_of(&w, 0), 3);
    assert_int_equal(value_of(&w, 1), 0);
    finish(&w);
}

static void
a_stream_that_is_asked_often_enough_is_done(void **state)
{
    (void) state;
    world_t w = begin();

    assert_int_equal(cuStreamQuery(w.stream), 0);
    assert_int_equal(launch(&w, 1, COUNT), 0);
    assert_int_equal(cuStreamQuery(w.stream), GPU_NOT_READY);
    assert_int_equal(value_of(&w, 0), 0);

    int asked = 1;
    while (cuStreamQuery(w.stream) == GPU_NOT_READY) {
        assert_true(++asked < 100);
    }
    assert_int_equal(value_of(&w, 0), 1);
    finish(&w);
}

static void
an_event_is_reached_with_the_work_before_it_alone(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_event_t event;

    assert_int_equal(cuEventCreate(&event, GPU_EVENT_NO_TIMING), 0);
    assert_int_equal(cuEventQuery(event), 0);       /* never recorded        */
    assert_int_equal(launch(&w, 1, COUNT), 0);
    assert_int_equal(cuEventRecord(event, w.stream), 0);
    assert_int_equal(launch(&w, 10, COUNT), 0);
    assert_int_equal(cuEventQuery(event), GPU_NOT_READY);

    assert_int_equal(cuEventSynchronize(event), 0);
    assert_int_equal(value_of(&w, 0), 1);
    assert_int_equal(cuEventQuery(event), 0);
    assert_int_equal(cuStreamQuery(w.stream), GPU_NOT_READY);

    /* recorded again: the later place counts */
    assert_int_equal(cuEventRecord(event, w.stream), 0);
    assert_int_equal(launch(&w, 100, COUNT), 0);
    assert_int_equal(cuEventRecord(event, w.stream), 0);
    assert_int_equal(cuEventSynchronize(event), 0);
    assert_int_equal(value_of(&w, 0), 111);
    assert_int_equal(fake_cuda_queued(), 0);
    assert_int_equal(cuEventDestroy_v2(event), 0);
    finish(&w);
}

static void
images_are_of_three_kinds_and_for_some_devices(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_module_t module;
    gpu_function_t function;
    char log[64] = "";
    int options[] = { GPU_JIT_ERROR_LOG, GPU_JIT_ERROR_LOG_SIZE };
    void *values[] = { log, (void *) (uintptr_t) sizeof(log) };
    unsigned char elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1 };

    assert_int_equal(cuModuleLoadDataEx(&module, "nonsense", 0, NULL, NULL),
        GPU_INVALID_IMAGE);
    assert_int_equal(cuModuleLoadDataEx(&module, ".version 99.0\n", 2,
        options, values), GPU_UNSUPPORTED_PTX);
    assert_non_null(strstr(log, "99.0"));
    assert_int_equal((uintptr_t) values[1], strlen(log));
    assert_int_equal(cuModuleLoadDataEx(&module, ".version 8.0\n"
        ".target sm_50\n.entry f() {\n", 0, NULL, NULL), GPU_INVALID_PTX);
    assert_int_equal(cuModuleLoadDataEx(&module, ".version 8.0\n"
        ".target sm_90\n.entry f() { }\n", 0, NULL, NULL), GPU_INVALID_PTX);

    elf[18] = 190;
    elf[48] = 80;
    assert_int_equal(cuModuleLoadDataEx(&module, elf, 0, NULL, NULL), 0);
    assert_int_equal(cuModuleGetFunction(&function, module, "f"),
        GPU_NOT_FOUND);
    assert_int_equal(cuModuleUnload(module), 0);
    elf[48] = 90;
    assert_int_equal(cuModuleLoadDataEx(&module, elf, 0, NULL, NULL),
        GPU_NO_BINARY_FOR_GPU);

    assert_int_equal(cuModuleGetFunction(&function, w.module, "add"),
        GPU_NOT_FOUND);
    finish(&w);
}

static void
a_function_says_what_it_takes(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_function_t idle;
    size_t offset, size;
    int value;

    assert_int_equal(cuFuncGetParamInfo(w.add, 1, &offset, &size), 0);
    assert_int_equal(offset, 8);
    assert_int_equal(size, 4);
    assert_int_equal(cuFuncGetParamInfo(w.add, 2, &offset, &size),
        GPU_INVALID_VALUE);
    assert_int_equal(cuFuncGetAttribute(&value, GPU_FUNCTION_MAX_THREADS,
        w.add), 0);
    assert_int_equal(value, 256);
    assert_int_equal(cuFuncGetAttribute(&value, GPU_FUNCTION_SHARED_STATIC,
        w.add), 0);
    assert_int_equal(value, 1024);

    assert_int_equal(cuModuleGetFunction(&idle, w.module, "idle"), 0);
    assert_int_equal(cuFuncGetParamInfo(idle, 0, &offset, &size),
        GPU_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(idle, 1, 1, 1, 1, 1, 1, 0, w.stream, NULL,
        NULL), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    finish(&w);
}

static void
a_launch_of_too_much_fails(void **state)
{
    (void) state;
    world_t w = begin();
    int n = 1;
    void *arguments[] = { &w.values, &n };

    assert_int_equal(launch(&w, 1, 257), GPU_LAUNCH_OUT_OF_RESOURCES);
    was_wrong(1, "more threads");
    assert_int_equal(cuLaunchKernel(w.add, 1, 1, 1, 1, 1, 1, 49152, w.stream,
        arguments, NULL), GPU_INVALID_VALUE);
    was_wrong(1, "shared memory");

    /* as much as the device has, when it is asked for */
    assert_int_equal(cuFuncSetAttribute(w.add, GPU_FUNCTION_MAX_DYNAMIC,
        200000), GPU_INVALID_VALUE);
    assert_int_equal(cuFuncSetAttribute(w.add, GPU_FUNCTION_MAX_DYNAMIC,
        100000), 0);
    assert_int_equal(cuLaunchKernel(w.add, 1, 1, 1, 1, 1, 1, 100000, w.stream,
        arguments, NULL), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    finish(&w);
}

static gpu_graph_exec_t
capture(world_t *w, int *in, int *out)
{
    gpu_graph_t graph;
    gpu_graph_exec_t exec;

    assert_int_equal(cuStreamBeginCapture_v2(w->stream,
        GPU_CAPTURE_THREAD_LOCAL), 0);
    assert_int_equal(cuMemcpyHtoDAsync_v2(w->values, in, sizeof(int),
        w->stream), 0);
    assert_int_equal(launch(w, 1, 1), 0);
    assert_int_equal(cuMemcpyDtoHAsync_v2(out, w->values, sizeof(int),
        w->stream), 0);
    assert_int_equal(cuStreamEndCapture(w->stream, &graph), 0);
    assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(cuGraphDestroy(graph), 0);
    return exec;
}

static void
a_graph_reads_the_memory_of_the_moment_of_each_launch(void **state)
{
    (void) state;
    world_t w = begin();
    int in = 10, out = 0;
    gpu_graph_exec_t exec = capture(&w, &in, &out);

    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(out, 0);                       /* captured, not done    */
    assert_int_equal(fake_cuda_ran("add_all"), 0);

    in = 20;
    assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(out, 21);
    in = 30;
    assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
    in = 40;                                        /* read at the sync      */
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(out, 41);

    assert_int_equal(cuGraphExecDestroy(exec), 0);
    finish(&w);
}

static void
what_may_not_be_captured_voids_the_capture(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_ptr_t memory;
    gpu_graph_t graph;

    assert_int_equal(cuStreamBeginCapture_v2(w.stream,
        GPU_CAPTURE_THREAD_LOCAL), 0);
    assert_int_equal(launch(&w, 1, 1), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), 900);
    was_wrong(1, "captures");
    assert_int_equal(launch(&w, 1, 1), 901);
    assert_int_equal(cuStreamEndCapture(w.stream, &graph), 901);
    assert_null(graph);

    assert_int_equal(cuStreamBeginCapture_v2(w.stream,
        GPU_CAPTURE_THREAD_LOCAL), 0);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), 900);
    was_wrong(1, "cuMemAlloc");
    assert_int_equal(cuStreamEndCapture(w.stream, &graph), 901);

    assert_int_equal(launch(&w, 1, 1), 0);          /* as before             */
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    assert_int_equal(value_of(&w, 0), 1);
    finish(&w);
}

static void
a_kernel_that_faults_breaks_its_device_alone(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_context_t other, popped;
    gpu_ptr_t memory;
    int seen[COUNT] = { 0 };

    assert_int_equal(launch(&w, 1, COUNT + 1), 0);
    assert_int_equal(cuMemcpyDtoHAsync_v2(seen, w.values, sizeof(seen),
        w.stream), 0);
    assert_int_equal(cuStreamSynchronize(w.stream), GPU_ILLEGAL_ADDRESS);
    assert_int_equal(seen[0], 0);
    assert_int_equal(cuStreamQuery(w.stream), GPU_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), GPU_ILLEGAL_ADDRESS);
    assert_int_equal(launch(&w, 1, 1), GPU_ILLEGAL_ADDRESS);

    assert_int_equal(cuDevicePrimaryCtxRetain(&other, 1), 0);
    assert_int_equal(cuCtxPushCurrent_v2(other), 0);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), 0);
    assert_int_equal(cuMemFree_v2(memory), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(1), 0);
    finish(&w);
}

static void
a_rule_fails_the_nth_call_once_and_only_some_codes_stay(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_ptr_t memory;

    fake_cuda_fail_rules("cuMemAlloc_v2:2:2,cuStreamQuery:719:1:0");
    assert_int_equal(cuMemAlloc_v2(&memory, 4), 0);
    assert_int_equal(cuMemFree_v2(memory), 0);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), GPU_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), 0);
    assert_int_equal(cuMemFree_v2(memory), 0);

    assert_int_equal(cuStreamQuery(w.stream), GPU_LAUNCH_FAILED);
    assert_int_equal(cuMemAlloc_v2(&memory, 4), GPU_LAUNCH_FAILED);
    finish(&w);
}

static void *
wait_for(void *stream)
{
    return (void *) (intptr_t) cuStreamSynchronize(stream);
}

static void
a_kernel_that_never_ends_holds_its_stream_alone(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_stream_t other;
    pthread_t thread;
    void *rc;

    fake_cuda_hang("add_all");
    assert_int_equal(launch(&w, 1, COUNT), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(cuStreamQuery(w.stream), GPU_NOT_READY);
    }
    assert_int_equal(pthread_create(&thread, NULL, wait_for, w.stream), 0);

    assert_int_equal(cuStreamCreate(&other, GPU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(cuMemsetD8Async(w.values, 1, 4, other), 0);
    assert_int_equal(cuStreamSynchronize(other), 0);
    assert_int_equal(value_of(&w, 0), 0x01010101);
    assert_int_equal(cuStreamDestroy_v2(other), 0);

    fake_cuda_hang(NULL);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_null(rc);
    assert_int_equal(value_of(&w, 0), 0x01010102);
    finish(&w);
}

static void
work_that_nobody_waited_for_is_wrong(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_stream_t other;

    assert_int_equal(cuStreamCreate(&other, GPU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(cuMemsetD8Async(w.values, 1, 4, other), 0);
    assert_int_equal(cuStreamDestroy_v2(other), 0);
    was_wrong(1, "never waited for");
    assert_int_equal(value_of(&w, 0), 0);

    assert_int_equal(launch(&w, 1, 1), 0);
    assert_int_equal(cuModuleUnload(w.module), GPU_INVALID_VALUE);
    was_wrong(1, "its kernels wait");
    assert_int_equal(cuStreamSynchronize(w.stream), 0);
    finish(&w);
}

/* In the child: what it sees of the parent's, and changes. */
static int
open_and_change(gpu_ipc_t handle, size_t size)
{
    gpu_ptr_t base;

    if (cuIpcOpenMemHandle_v2(&base, handle, GPU_IPC_LAZY_PEER) != 0) {
        return 1;
    }

    int *v = fake_cuda_bytes((void *) (uintptr_t) base);
    if (v[COUNT - 1] != 5) {
        return 2;
    }
    if (cuMemsetD8Async(base, 1, size, NULL) != 0
        || cuStreamSynchronize(NULL) != 0 || cuIpcCloseMemHandle(base) != 0)
    {
        return 3;
    }
    handle.bytes[0]++;                          /* none of a driver's        */
    return cuIpcOpenMemHandle_v2(&base, handle, GPU_IPC_LAZY_PEER)
        == GPU_INVALID_VALUE ? 0 : 4;
}

static void
a_handle_opens_the_memory_of_another_process(void **state)
{
    (void) state;
    world_t w = begin();
    gpu_ipc_t handle;
    int status;

    assert_int_equal(launch(&w, 5, COUNT), 0);
    assert_int_equal(cuCtxSynchronize(), 0);
    assert_int_equal(fake_cuda_queued(), 0);
    assert_int_equal(cuIpcGetMemHandle(&handle, w.values), 0);

    pid_t child = fork();
    if (child == 0) {
        _exit(open_and_change(handle, COUNT * sizeof(int)));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(value_of(&w, COUNT - 1), 0x01010101);
    finish(&w);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(work_of_a_stream_is_done_in_order_when_it_is_waited_for),
        TEST(an_argument_is_the_value_of_when_it_was_queued),
        TEST(a_stream_that_is_asked_often_enough_is_done),
        TEST(an_event_is_reached_with_the_work_before_it_alone),
        TEST(images_are_of_three_kinds_and_for_some_devices),
        TEST(a_function_says_what_it_takes),
        TEST(a_launch_of_too_much_fails),
        TEST(a_graph_reads_the_memory_of_the_moment_of_each_launch),
        TEST(what_may_not_be_captured_voids_the_capture),
        TEST(a_kernel_that_faults_breaks_its_device_alone),
        TEST(a_rule_fails_the_nth_call_once_and_only_some_codes_stay),
        TEST(a_kernel_that_never_ends_holds_its_stream_alone),
        TEST(work_that_nobody_waited_for_is_wrong),
        TEST(a_handle_opens_the_memory_of_another_process)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
