/*
 * bare.c - what the driver alone takes: a launch of an empty kernel and the
 *          wait for it, and copies of pinned memory to a device.
 *
 * Prints one JSON object.  The server's figures of the same run are compared
 * with these (table.py).  Ends with 77 and the reason where there is no GPU.
 *
 *   gpu_bare KERNELS.ptx [DEVICE]
 *
 * INFERENCE_CUDA_DRIVER names another driver than libcuda.so.1.  With the fake
 * one the program runs too, says "fake": true, and its figures mean nothing.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/tensor/cuda_functions.h"

#define NO_GPU    77
#define WARM_UP   200
#define LAUNCHES  3000
#define COPIES    40
#define SMALL     64u
#define SOURCE    65536
#define MIB       (UINT64_C(1) << 20)

/* Functions that the core does not call: the kernel. */
#define KERNEL_FUNCTIONS(ROW)                                                 \
    ROW(module_load, cuModuleLoadDataEx, (void **module, const void *image,  \
        unsigned count, int *options, void **values))                        \
    ROW(module_unload, cuModuleUnload, (void *module))                       \
    ROW(function, cuModuleGetFunction, (void **function, void *module,       \
        const char *name))                                                   \
    ROW(launch, cuLaunchKernel, (void *function, unsigned grid_x,            \
        unsigned grid_y, unsigned grid_z, unsigned block_x,                  \
        unsigned block_y, unsigned block_z, unsigned shared_bytes,           \
        inf_cu_stream_t stream, void **arguments, void **extra))

static struct {
#define FIELD(field, symbol, parameters) inf_cu_result_t (*field) parameters;
    INF_CU_FUNCTIONS(FIELD)
    KERNEL_FUNCTIONS(FIELD)
#undef FIELD
} cu;

typedef struct {
    inf_cu_stream_t stream;
    void           *kernel;
    inf_cu_ptr_t    device;
    char           *host;       /* pinned, 64 MiB                            */
} world_t;

static void *open_driver(void);
static void check(inf_cu_result_t rc, const char *what);
static char *read_source(const char *path);
static void launch(const world_t *w);
static void launch_and_wait(const world_t *w, uint64_t size);
static void copy_and_wait(const world_t *w, uint64_t size);
static void request(const world_t *w, uint64_t size);
static double median_us(const world_t *w,
    void (*what)(const world_t *w, uint64_t size), uint64_t size, int times);
static double now_us(void);
static int by_value(const void *a, const void *b);

int
main(int argc, char **argv)
{
    static const uint64_t sizes[] = { 1, 16, 64 };
    inf_cu_context_t context;
    char name[128] = "";
    void *module, *host;
    world_t w;
    int count = 0, device;
    int ordinal = argc > 2 ? atoi(argv[2]) : 0;

    if (argc < 2) {
        fprintf(stderr, "usage: %s KERNELS.ptx [DEVICE]\n", argv[0]);
        return 2;
    }

    void *driver = open_driver();
    inf_cu_result_t rc = cu.init(0);
    if (rc == INF_CU_SUCCESS) {
        rc = cu.device_count(&count);
    }
    if (rc != INF_CU_SUCCESS || count <= ordinal) {
        printf("no GPU %d: the driver answers %d and has %d\n", ordinal,
            (int) rc, count);
        return NO_GPU;
    }

    check(cu.device_get(&device, ordinal), "device");
    check(cu.device_name(name, sizeof(name), device), "name");
    check(cu.context_retain(&context, device), "context");
    check(cu.context_push(context), "context");
    check(cu.stream_create(&w.stream, INF_CU_STREAM_NON_BLOCK), "stream");
    char *source = read_source(argv[1]);
    check(cu.module_load(&module, source, 0, NULL, NULL), "module");
    free(source);
    check(cu.function(&w.kernel, module, "empty"), "kernel");
    check(cu.alloc(&w.device, sizes[2] * MIB), "device memory");
    check(cu.alloc_host(&host, sizes[2] * MIB, INF_CU_HOST_PORTABLE),
        "pinned memory");
    w.host = host;
    memset(w.host, 1, sizes[2] * MIB);

    double launch_us = median_us(&w, launch_and_wait, 0, LAUNCHES);
    double request_us = median_us(&w, request, SMALL, LAUNCHES);
    printf("{\"device\": \"%s\", \"fake\": %s, \"launch_us\": %.2f,"
        " \"request_us\": %.2f, \"copy_gbs\": {", name,
        dlsym(driver, "fake_cuda_reset") != NULL ? "true" : "false",
        launch_us, request_us);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t size = sizes[i] * MIB;
        printf("%s\"%d\": %.2f", i == 0 ? "" : ", ", (int) sizes[i],
            (double) size / 1e3 / median_us(&w, copy_and_wait, size, COPIES));
    }
    printf("}}\n");

    check(cu.free_host(w.host), "pinned memory");
    check(cu.free(w.device), "device memory");
    check(cu.module_unload(module), "module");
    check(cu.stream_destroy(w.stream), "stream");
    check(cu.context_pop(&context), "context");
    check(cu.context_release(device), "context");
    return 0;
}

static void *
open_driver(void)
{
    const char *path = getenv("INFERENCE_CUDA_DRIVER");
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);

    if (driver == NULL) {
        printf("no driver: %s\n", dlerror());
        exit(NO_GPU);
    }

#define FIND(field, symbol, parameters)                                       \
    *(void **) &cu.field = dlsym(driver, #symbol);                           \
    if (cu.field == NULL) {                                                  \
        printf("the driver has no %s\n", #symbol);                           \
        exit(NO_GPU);                                                        \
    }
    INF_CU_FUNCTIONS(FIND)
    KERNEL_FUNCTIONS(FIND)
#undef FIND
    return driver;
}

static void
check(inf_cu_result_t rc, const char *what)
{
    const char *text = NULL;

    if (rc != INF_CU_SUCCESS) {
        cu.error_string(rc, &text);
        fprintf(stderr, "%s: %d, %s\n", what, (int) rc, text != NULL ? text
            : "");
        exit(1);
    }
}

static char *
read_source(const char *path)
{
    char *text = calloc(1, SOURCE + 1);
    FILE *f = fopen(path, "r");

    if (text == NULL || f == NULL || fread(text, 1, SOURCE, f) == 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    return text;
}

static void
launch(const world_t *w)
{
    inf_cu_ptr_t out = w->device;
    void *arguments[] = { &out };

    check(cu.launch(w->kernel, 1, 1, 1, 1, 1, 1, 0, w->stream, arguments,
        NULL), "launch");
}

static void
launch_and_wait(const world_t *w, uint64_t size)
{
    (void) size;
    launch(w);
    check(cu.stream_sync(w->stream), "wait");
}

static void
copy_and_wait(const world_t *w, uint64_t size)
{
    check(cu.copy_to_device(w->device, w->host, size, w->stream), "copy");
    check(cu.stream_sync(w->stream), "wait");
}

/* The least a backend does: in, launch, out, one wait. */
static void
request(const world_t *w, uint64_t size)
{
    check(cu.copy_to_device(w->device, w->host, size, w->stream), "copy");
    launch(w);
    check(cu.copy_to_host(w->host, w->device, size, w->stream), "copy");
    check(cu.stream_sync(w->stream), "wait");
}

static double
median_us(const world_t *w, void (*what)(const world_t *w, uint64_t size),
    uint64_t size, int times)
{
    double *all = calloc((size_t) times, sizeof(*all));

    if (all == NULL) {
        exit(1);
    }
    for (int i = -(times < WARM_UP ? times / 4 : WARM_UP); i < times; i++) {
        double began = now_us();
        what(w, size);
        if (i >= 0) {
            all[i] = now_us() - began;
        }
    }
    qsort(all, (size_t) times, sizeof(*all), by_value);
    double middle = all[times / 2];
    free(all);
    return middle;
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}
