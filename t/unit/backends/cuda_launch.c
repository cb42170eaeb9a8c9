/* kernel lines, the launches made of them, and their graphs; the driver's
   functions are the test's own, which count */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/cuda/buffer.c"
#include "backends/cuda/expression.c"
#include "backends/cuda/expression_read.c"
#include "backends/cuda/graphs.c"
#include "backends/cuda/kernel.c"
#include "backends/cuda/launch.c"
#include "backends/cuda/reader.c"

static const int64_t x_dims[] = { 8 };
static const gpu_tensor_t tensors[] = {
    { .name = "x", .dims = x_dims, .dims_count = 1, .size = 4 },
    { .name = "y", .dims = x_dims, .dims_count = 1, .size = 4 }
};
static gpu_buffer_t buffers[] = {
    { .name = "tmp" }, { .name = "w", .file = "w.bin" }
};
static const gpu_names_t names = {
    .tensors = tensors, .tensor_count = 2, .buffers = buffers,
    .buffer_count = 2
};
static gpu_shape_t shapes[] = {
    { .dims = { 8 }, .elements = 40, .bytes = 160 },
    { .dims = { 8 }, .elements = 40, .bytes = 160 }
};
static const gpu_shapes_t batch = { .batch = 5, .tensors = shapes };
static const gpu_ptr_t tensor_places[] = { 0x1000, 0x2000 };
static const gpu_ptr_t buffer_places[] = { 0x3000, 0x4000 };
static const gpu_addresses_t addresses = {
    .tensors = tensor_places, .buffers = buffer_places
};

/* ---- a driver that counts */

static struct {
    int  launched, captured, played, destroyed, live;
    int  fail_capture;
    bool capturing;
} seen;

static gpu_result_t
fake_launch(gpu_function_t f, unsigned gx, unsigned gy, unsigned gz,
    unsigned bx, unsigned by, unsigned bz, unsigned shared, gpu_stream_t s,
    void **arguments, void **extra)
{
    (void) f; (void) gx; (void) gy; (void) gz; (void) bx; (void) by;
    (void) bz; (void) shared; (void) s; (void) arguments; (void) extra;
    seen.launched += !seen.capturing;
    return GPU_SUCCESS;
}

static gpu_result_t
fake_begin(gpu_stream_t s, int mode)
{
    (void) s;
    assert_int_equal(mode, GPU_CAPTURE_THREAD_LOCAL);
    seen.capturing = seen.fail_capture != 1;
    return seen.fail_capture == 1 ? 900 : GPU_SUCCESS;
}

static gpu_result_t
fake_end(gpu_stream_t s, gpu_graph_t *graph)
{
    (void) s;
    seen.capturing = false;
    *graph = seen.fail_capture == 2 ? NULL : &seen;
    return seen.fail_capture == 2 ? 901 : GPU_SUCCESS;
}

static gpu_result_t
fake_instantiate(gpu_graph_exec_t *exec, gpu_graph_t graph,
    unsigned long long flags)
{
    (void) graph; (void) flags;
    *exec = seen.fail_capture == 3 ? NULL : &seen;
    seen.captured += *exec != NULL;
    seen.live += *exec != NULL;
    return seen.fail_capture == 3 ? GPU_OUT_OF_MEMORY : GPU_SUCCESS;
}

static gpu_result_t
fake_play(gpu_graph_exec_t exec, gpu_stream_t s)
{
    (void) exec; (void) s;
    seen.played++;
    return GPU_SUCCESS;
}

static gpu_result_t
fake_graph_destroy(gpu_graph_t graph)
{
    (void) graph;
    seen.destroyed++;
    return GPU_SUCCESS;
}

static gpu_result_t
fake_exec_destroy(gpu_graph_exec_t exec)
{
    (void) exec;
    seen.live--;
    return GPU_SUCCESS;
}

static const gpu_functions_t functions = {
    .launch = fake_launch, .capture_begin = fake_begin,
    .capture_end = fake_end, .graph_instantiate = fake_instantiate,
    .graph_launch = fake_play, .graph_destroy = fake_graph_destroy,
    .graph_exec_destroy = fake_exec_destroy
};

TRITONSERVER_Error *
gpu_check(gpu_device_t *device, gpu_result_t rc, const char *fmt, ...)
{
    (void) device; (void) fmt;
    return rc == GPU_SUCCESS ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %d", fmt, rc);
}

static gpu_device_t device = {
    .f = &functions, .grid_most = { 1000, 65535, 65535 },
    .threads_most = 1024, .shared_most = 4096
};

/* ---- a program of count kernels, all by text */

typedef struct {
    gpu_kernel_t        kernels[3];
    gpu_loaded_kernel_t on_device[3];
    gpu_program_t       program;
    gpu_loaded_t        loaded;
    gpu_launch_t        launches[3];
    uint32_t            launch_count;
} world_t;

static TRITONSERVER_Error *
world_init(world_t *w, const char *text, uint32_t count)
{
    TRITONSERVER_Error *err = NULL;

    *w = (world_t) { .launch_count = 0 };
    w->program = (gpu_program_t) {
        .kernels = w->kernels, .kernel_count = count, .graphs_most = 2
    };
    w->loaded = (gpu_loaded_t) {
        .device = &device, .kernels = w->on_device
    };
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        w->on_device[i] = (gpu_loaded_kernel_t) {
            .threads_most = 512, .shared_most = 2048
        };
        err = gpu_kernel_read(&w->kernels[i], "kernel_1", text, &names);
    }
    return err != NULL ? err : gpu_launches_make(w->launches,
        &w->launch_count, &w->program, &w->loaded, &batch, &addresses);
}

static void
world_fini(world_t *w)
{
    for (uint32_t i = 0; i < w->program.kernel_count; i++) {
        gpu_kernel_fini(&w->kernels[i]);
    }
}

static void
expect_error(const char *text, const char *words)
{
    world_t w;

    TRITONSERVER_Error *err = world_init(&w, text, 1);
    if (err == NULL || strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("%s: \"%s\" lacks \"%s\"", text, err == NULL ? "(passes)"
            : TRITONSERVER_ErrorMessage(err), words);
    }
    TRITONSERVER_ErrorDelete(err);
    world_fini(&w);
}

static void
a_line_becomes_a_launch(void **state)
{
    world_t w;
    float half;

    (void) state;
    assert_null(world_init(&w, "run <<< dim3(ceildiv(elements(x), 32), 2),"
        " dim3(32, 1, batch), 4 * x[0] >>> (x, y, tmp, w, int(elements(x)),"
        " long(-batch), float(0.5), double(-1e300))", 1));
    assert_int_equal(w.launch_count, 1);

    const gpu_launch_t *l = &w.launches[0];
    assert_string_equal(w.kernels[0].name, "run");
    assert_int_equal(l->grid[0], 2);
    assert_int_equal(l->grid[1], 2);
    assert_int_equal(l->grid[2], 1);
    assert_int_equal(l->block[0], 32);
    assert_int_equal(l->block[2], 5);
    assert_int_equal(l->shared, 32);
    assert_int_equal(l->values[0], 0x1000);
    assert_int_equal(l->values[1], 0x2000);
    assert_int_equal(l->values[2], 0x3000);
    assert_int_equal(l->values[3], 0x4000);
    assert_int_equal(*(const int32_t *) &l->values[4], 40);
    assert_int_equal(*(const int64_t *) &l->values[5], -5);
    memcpy(&half, &l->values[6], sizeof(half));
    assert_true(half == 0.5f);
    assert_true(memcmp(&l->values[7], &(double) { -1e300 }, 8) == 0);
    world_fini(&w);

    assert_null(world_init(&w, "empty<<<1,1>>>()", 1));
    assert_int_equal(w.kernels[0].argument_count, 0);
    world_fini(&w);
}

static void
a_grid_of_no_blocks_is_not_launched(void **state)
{
    world_t w;

    (void) state;
    assert_null(world_init(&w, "run<<<batch - 5, 1>>>(x)", 2));
    assert_int_equal(w.launch_count, 0);
    world_fini(&w);
}

static void
bad_lines_and_launches_are_errors(void **state)
{
    (void) state;
    expect_error("", "the kernel's name is missing");
    expect_error("run", "\"<<<\" is missing");
    expect_error("run<<<1>>>(x)", "\",\" is missing");
    expect_error("run<<<1,1>>(x)", "\">>>\" is missing");
    expect_error("run<<<1,1>>>", "\"(\" is missing");
    expect_error("run<<<1,1>>>(x", "\")\" is missing");
    expect_error("run<<<1,1>>>(x) y", "behind its end");
    expect_error("run<<<dim3(1,1,1,1),1>>>(x)", "\")\" is missing");
    expect_error("run<<<1,1>>>(z)", "no tensor or buffer \"z\"");
    expect_error("run<<<1,1>>>(4)", "an argument is missing");
    expect_error("run<<<1,1>>>(short(4))", "no type \"short\"");
    expect_error("run<<<1,1>>>(float(x))", "a number is missing");
    expect_error("run<<<1,1>>>(x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,"
        "x,x,x,x,x,x,x,x,x,x,x)", "more than 32 arguments");

    expect_error("run<<<-1,1>>>(x)", "kernel \"run\", grid.x: -1 is not");
    expect_error("run<<<1001,1>>>(x)", "from 0 to 1000");
    expect_error("run<<<1,0>>>(x)", "block.x: 0 is not from 1 to 512");
    expect_error("run<<<1,dim3(1,1,65)>>>(x)", "block.z: 65 is not from 1 to"
        " 64");
    expect_error("run<<<1,dim3(512,2)>>>(x)", "a block of 1024 threads");
    expect_error("run<<<1,1,2049>>>(x)", "shared memory on GPU 0: 2049 is not"
        " from 0 to 2048");
    expect_error("run<<<1,1,-1>>>(x)", "shared memory");
    expect_error("run<<<1/(batch-5),1>>>(x)", "division by zero");
    expect_error("run<<<1,1>>>(int(4294967296))", "argument 1 of kernel"
        " \"run\": 4294967296 is beyond 32 bits");
}

/* ---- graphs */

static void
play(gpu_graphs_t *g, world_t *w, unsigned grid)
{
    for (uint32_t i = 0; i < w->launch_count; i++) {
        w->launches[i].grid[0] = grid;
    }
    assert_null(gpu_graphs_run(g, w->launches, w->launch_count, &seen));
}

static void
launches_that_come_again_are_captured(void **state)
{
    gpu_graphs_t g;
    world_t w;

    (void) state;
    memset(&seen, 0, sizeof(seen));
    assert_null(world_init(&w, "run<<<1,1>>>(x)", 2));
    assert_null(gpu_graphs_init(&g, &w.program, &w.loaded));

    play(&g, &w, 1);                    /* first time: one by one            */
    assert_int_equal(seen.launched, 2);
    assert_int_equal(seen.captured, 0);
    play(&g, &w, 1);
    play(&g, &w, 1);
    assert_int_equal(seen.captured, 1);
    assert_int_equal(seen.played, 2);
    assert_int_equal(seen.launched, 2);
    assert_int_equal(seen.destroyed, 1);

    /* two entries: 1 was used last when 3 comes, so 2 goes */
    play(&g, &w, 2);
    play(&g, &w, 2);
    play(&g, &w, 1);
    play(&g, &w, 3);
    assert_int_equal(seen.live, 1);
    play(&g, &w, 1);
    assert_int_equal(seen.captured, 2);
    play(&g, &w, 2);                    /* unknown again                     */
    assert_int_equal(seen.launched, 2 + 2 + 2 + 2);

    gpu_graphs_fini(&g);
    assert_int_equal(seen.live, 0);
    world_fini(&w);
}

static void
single_kernels_and_graphs_0_are_launched(void **state)
{
    gpu_graphs_t g;
    world_t w;

    (void) state;
    for (int i = 0; i < 2; i++) {
        memset(&seen, 0, sizeof(seen));
        assert_null(world_init(&w, "run<<<1,1>>>(x)", i == 0 ? 1 : 2));
        w.program.graphs_most = i == 0 ? 2 : 0;
        assert_null(gpu_graphs_init(&g, &w.program, &w.loaded));
        for (int k = 0; k < 3; k++) {
            play(&g, &w, 1);
        }
        assert_int_equal(seen.captured, 0);
        assert_int_equal(seen.launched, i == 0 ? 3 : 6);
        gpu_graphs_fini(&g);
        world_fini(&w);
    }
}

static void
without_a_capture_kernels_still_run(void **state)
{
    (void) state;
    for (int way = 1; way <= 3; way++) {
        gpu_graphs_t g;
        world_t w;

        memset(&seen, 0, sizeof(seen));
        seen.fail_capture = way;
        assert_null(world_init(&w, "run<<<1,1>>>(x)", 2));
        assert_null(gpu_graphs_init(&g, &w.program, &w.loaded));
        for (int k = 0; k < 4; k++) {
            play(&g, &w, 1);
        }
        assert_int_equal(seen.played, 0);
        assert_int_equal(seen.launched, 8);
        assert_int_equal(seen.live, 0);
        gpu_graphs_fini(&g);
        world_fini(&w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_becomes_a_launch),
        cmocka_unit_test(a_grid_of_no_blocks_is_not_launched),
        cmocka_unit_test(bad_lines_and_launches_are_errors),
        cmocka_unit_test(launches_that_come_again_are_captured),
        cmocka_unit_test(single_kernels_and_graphs_0_are_launched),
        cmocka_unit_test(without_a_capture_kernels_still_run)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
