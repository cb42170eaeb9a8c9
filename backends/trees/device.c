/* device.c - see device.h */

#include "device.h"

#include <inttypes.h>
#include <stdlib.h>

#define BLOCK       128                 /* threads                           */
#define ROWS_MOST   4096
#define LEAVES_MOST (1 << 24)           /* rows times trees                  */

/* kernels.cu, which CMakeLists.txt names */
extern const char trees_kernels[];
__asm__(".section .rodata\n.global trees_kernels\n.hidden trees_kernels\n"
    ".type trees_kernels, @object\ntrees_kernels:\n"
    ".incbin \"" TREES_KERNELS "\"\n.byte 0\n"
    ".size trees_kernels, . - trees_kernels\n.previous\n");

enum {
    NODES, TREES, LISTS, CATEGORIES, VALUES, ROWS, LEAVES, SUMS, BUFFER_COUNT
};

/* As kernels.cu has it. */
typedef struct {
    uint32_t root, depth, column, stride, values, special;
} device_tree_t;

struct trees_device_s {
    const trees_forest_t *forest;
    gpu_device_t         *gpu;
    gpu_stream_t          stream;
    gpu_module_t          module;
    gpu_function_t        walk;
    gpu_function_t        sum;
    gpu_ptr_t             buffers[BUFFER_COUNT];
    uint64_t              rows_most;
};

static TRITONSERVER_Error *set_up(trees_device_t *d,
    const gpu_compiler_t *compiler);
static TRITONSERVER_Error *load_kernels(trees_device_t *d,
    const gpu_compiler_t *compiler);
static TRITONSERVER_Error *find_kernel(trees_device_t *d, const char *name,
    gpu_function_t *out);
static TRITONSERVER_Error *copy_forest(trees_device_t *d);
static TRITONSERVER_Error *make_buffer(trees_device_t *d, int which,
    const void *data, uint64_t count, size_t size);
static TRITONSERVER_Error *walk(trees_device_t *d, const float *rows,
    bool on_device, uint64_t count, void *sums, uint32_t *nodes);
static TRITONSERVER_Error *launch_walk(trees_device_t *d, gpu_ptr_t rows,
    uint64_t count);
static TRITONSERVER_Error *launch_sum(trees_device_t *d, uint64_t count);
static TRITONSERVER_Error *launch(trees_device_t *d, gpu_function_t function,
    uint64_t threads, void **arguments);

TRITONSERVER_Error *
trees_device_new(trees_device_t **out, const trees_forest_t *forest,
    gpu_device_t *gpu, const gpu_compiler_t *compiler)
{
    trees_device_t *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return bk_err_nomem("state of a device");
    }

    d->forest = forest;
    d->gpu = gpu;
    d->rows_most = LEAVES_MOST / ((uint64_t) forest->tree_count + 1);
    d->rows_most = d->rows_most < 1 ? 1 : d->rows_most > ROWS_MOST ? ROWS_MOST
        : d->rows_most;

    TRITONSERVER_Error *err = gpu_enter(gpu);
    if (err == NULL) {
        err = set_up(d, compiler);
        gpu_leave(gpu);
    }
    if (err != NULL) {
        trees_device_free(d);
        return err;
    }

    *out = d;
    return NULL;
}

void
trees_device_free(trees_device_t *d)
{
    if (d == NULL) {
        return;
    }

    if (gpu_enter_to_free(d->gpu, "a forest")) {
        const gpu_functions_t *f = d->gpu->f;

        for (int i = 0; i < BUFFER_COUNT; i++) {
            if (d->buffers[i] != 0) {
                (void) f->free(d->buffers[i]);
            }
        }
        if (d->module != NULL) {
            (void) f->module_unload(d->module);
        }
        if (d->stream != NULL) {
            (void) f->stream_destroy(d->stream);
        }
        gpu_leave(d->gpu);
    }
    free(d);
}

uint64_t
trees_device_rows_most(const trees_device_t *d)
{
    return d->rows_most;
}

TRITONSERVER_Error *
trees_device_walk(trees_device_t *d, const float *rows, bool on_device,
    uint64_t count, void *sums, uint32_t *nodes)
{
    TRITONSERVER_Error *err = gpu_enter(d->gpu);
    if (err == NULL) {
        err = walk(d, rows, on_device, count, sums, nodes);
        gpu_leave(d->gpu);
    }

    return err;
}

TRITONSERVER_Error *
trees_device_put(trees_device_t *d, void *to, const void *from,
    uint64_t len_bytes)
{
    const gpu_functions_t *f = d->gpu->f;

    TRITONSERVER_Error *err = gpu_enter(d->gpu);
    if (err != NULL) {
        return err;
    }

    err = gpu_check(d->gpu, f->copy_to_device((gpu_ptr_t) (uintptr_t) to,
        from, len_bytes, d->stream), "cannot copy an output");
    if (err == NULL) {
        err = gpu_check(d->gpu, f->stream_sync(d->stream),
            "cannot copy an output");
    }
    gpu_leave(d->gpu);
    return err;
}

static TRITONSERVER_Error *
set_up(trees_device_t *d, const gpu_compiler_t *compiler)
{
    TRITONSERVER_Error *err = load_kernels(d, compiler);
    if (err == NULL) {
        err = gpu_check(d->gpu, d->gpu->f->stream_create(&d->stream,
            GPU_STREAM_NON_BLOCKING), "cannot make a stream");
    }
    if (err == NULL) {
        err = copy_forest(d);
    }

    return err;
}

static TRITONSERVER_Error *
load_kernels(trees_device_t *d, const gpu_compiler_t *compiler)
{
    gpu_source_t source = {
        .path = (char *) (uintptr_t) "kernels.cu",
        .text = (char *) (uintptr_t) trees_kernels
    };
    char arch[GPU_ARCH_MAX];
    char *code = NULL;
    size_t len = 0;

    TRITONSERVER_Error *err = gpu_compiler_arch(compiler, d->gpu->capability,
        arch);
    if (err == NULL) {
        err = gpu_compiler_run(compiler, &source, arch, "", &code, &len);
    }
    if (err == NULL) {
        err = gpu_check(d->gpu, d->gpu->f->module_load(&d->module, code, 0,
            NULL, NULL), "cannot load the kernels");
    }

    free(code);
    if (err == NULL) {
        err = find_kernel(d, "trees_walk", &d->walk);
    }
    if (err == NULL) {
        err = find_kernel(d, d->forest->doubles ? "trees_sum_doubles"
            : "trees_sum_floats", &d->sum);
    }
    return err;
}

static TRITONSERVER_Error *
find_kernel(trees_device_t *d, const char *name, gpu_function_t *out)
{
    return gpu_check(d->gpu, d->gpu->f->module_function(out, d->module,
        name), "cannot find kernel %s", name);
}

static TRITONSERVER_Error *
copy_forest(trees_device_t *d)
{
    const trees_forest_t *f = d->forest;
    size_t number = f->doubles ? sizeof(double) : sizeof(float);

    device_tree_t *trees = calloc((size_t) f->tree_count + 1,
        sizeof(*trees));
    if (trees == NULL) {
        return bk_err_nomem("trees of a device");
    }
    for (uint32_t i = 0; i < f->tree_count; i++) {
        const trees_tree_t *t = &f->trees[i];

        trees[i] = (device_tree_t) {
            t->root, t->depth, t->column, t->stride, t->values, t->special
        };
    }

    TRITONSERVER_Error *err = make_buffer(d, TREES, trees, f->tree_count,
        sizeof(*trees));
    if (err == NULL) {
        err = make_buffer(d, NODES, f->nodes, f->node_count,
            sizeof(*f->nodes));
    }
    if (err == NULL) {
        err = make_buffer(d, LISTS, f->lists, f->list_count,
            sizeof(*f->lists));
    }
    if (err == NULL) {
        err = make_buffer(d, CATEGORIES, f->categories, f->category_count,
            sizeof(*f->categories));
    }
    if (err == NULL) {
        err = make_buffer(d, VALUES, f->leaves, f->leaf_count, number);
    }
    if (err == NULL) {
        err = make_buffer(d, ROWS, NULL, d->rows_most * f->features,
            sizeof(float));
    }
    if (err == NULL) {
        err = make_buffer(d, LEAVES, NULL, d->rows_most * f->tree_count,
            sizeof(uint32_t));
    }
    if (err == NULL) {
        err = make_buffer(d, SUMS, NULL, d->rows_most * f->columns, number);
    }
    if (err == NULL) {                  /* trees lives until here            */
        err = gpu_check(d->gpu, d->gpu->f->stream_sync(d->stream),
            "cannot copy a forest");
    }

    free(trees);
    return err;
}

/* data NULL: only the memory is made.  There is always some. */
static TRITONSERVER_Error *
make_buffer(trees_device_t *d, int which, const void *data, uint64_t count,
    size_t size)
{
    const gpu_functions_t *f = d->gpu->f;
    uint64_t bytes = count * size;

    TRITONSERVER_Error *err = gpu_check(d->gpu, f->alloc(&d->buffers[which],
        bytes + size), "no memory for %" PRIu64 " bytes of a forest", bytes);
    if (err == NULL && data != NULL && bytes != 0) {
        err = gpu_check(d->gpu, f->copy_to_device(d->buffers[which], data,
            bytes, d->stream), "cannot copy a forest");
    }

    return err;
}

static TRITONSERVER_Error *
walk(trees_device_t *d, const float *rows, bool on_device, uint64_t count,
    void *sums, uint32_t *nodes)
{
    const trees_forest_t *forest = d->forest;
    const gpu_functions_t *f = d->gpu->f;
    size_t number = forest->doubles ? sizeof(double) : sizeof(float);
    gpu_ptr_t in = on_device ? (gpu_ptr_t) (uintptr_t) rows
        : d->buffers[ROWS];
    TRITONSERVER_Error *err = NULL;

    if (!on_device) {
        err = gpu_check(d->gpu, f->copy_to_device(in, rows, count
            * forest->features * sizeof(*rows), d->stream),
            "cannot copy rows");
    }
    if (err == NULL) {
        err = launch_walk(d, in, count);
    }
    if (err == NULL && sums != NULL) {
        err = launch_sum(d, count);
    }
    if (err == NULL && sums != NULL) {
        err = gpu_check(d->gpu, f->copy_to_host(sums, d->buffers[SUMS],
            count * forest->columns * number, d->stream),
            "cannot copy sums");
    }
    if (err == NULL && nodes != NULL && forest->tree_count != 0) {
        err = gpu_check(d->gpu, f->copy_to_host(nodes, d->buffers[LEAVES],
            count * forest->tree_count * sizeof(*nodes), d->stream),
            "cannot copy leaves");
    }

    /* nothing of the caller's is read or written after a failure, either */
    TRITONSERVER_Error *late = gpu_check(d->gpu, f->stream_sync(d->stream),
        "cannot walk the trees");
    if (err != NULL) {
        bk_err_drop(late);
        return err;
    }
    return late;
}

static TRITONSERVER_Error *
launch_walk(trees_device_t *d, gpu_ptr_t rows, uint64_t count)
{
    int trees = (int) d->forest->tree_count;
    int features = (int) d->forest->features;
    int n = (int) count;
    void *arguments[] = {
        &d->buffers[NODES], &d->buffers[TREES], &d->buffers[LISTS],
        &d->buffers[CATEGORIES], &rows, &d->buffers[LEAVES], &trees,
        &features, &n
    };

    return launch(d, d->walk, count * d->forest->tree_count, arguments);
}

static TRITONSERVER_Error *
launch_sum(trees_device_t *d, uint64_t count)
{
    int trees = (int) d->forest->tree_count;
    int columns = (int) d->forest->columns;
    int n = (int) count;
    void *arguments[] = {
        &d->buffers[NODES], &d->buffers[TREES], &d->buffers[VALUES],
        &d->buffers[LEAVES], &d->buffers[SUMS], &trees, &columns, &n
    };

    return launch(d, d->sum, count * d->forest->columns, arguments);
}

static TRITONSERVER_Error *
launch(trees_device_t *d, gpu_function_t function, uint64_t threads,
    void **arguments)
{
    uint64_t blocks = (threads + BLOCK - 1) / BLOCK;

    if (blocks == 0) {
        return NULL;
    }
    if (blocks > INT32_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%" PRIu64
            " threads are too many for a device", threads);
    }

    return gpu_check(d->gpu, d->gpu->f->launch(function, (unsigned) blocks,
        1, 1, BLOCK, 1, 1, 0, d->stream, arguments, NULL),
        "cannot walk the trees");
}
