/* cuda_modules.c - modules, their functions, and launches. */

#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

#define THREADS_MAX 1024
#define SHARED_MAX  49152       /* of a launch that asked for no more        */

/* ---- modules ------------------------------------------------------------- */

/* Gives text to the log of that kind, if there is one. */
static void
log_to(int kind, const char *text, unsigned count, const int *options,
    void **values)
{
    char *log = NULL;
    size_t size = 0;
    void **size_value = NULL;

    for (unsigned i = 0; i < count; i++) {
        if (options[i] == kind) {
            log = values[i];
        }
        if (options[i] == kind + 1) {
            size = (uint32_t) (uintptr_t) values[i];
            size_value = &values[i];
        }
    }
    if (log != NULL && size > 0) {
        snprintf(log, size, "%s", text);
        *size_value = (void *) (uintptr_t) strlen(log);
    }
}

static bool
are_options(unsigned count, const int *options)
{
    for (unsigned i = 0; i < count; i++) {
        if (options[i] < 0 || options[i] > 30) {
            return false;
        }
    }
    return true;
}

result_t
cuModuleLoadDataEx(gpu_module_t *module, const void *bytes, unsigned count,
    int *options, void **values)
{
    BEGIN();
    image_t image = { .bytes = bytes };

    if (rc == INF_CU_SUCCESS && forbidden_locked(__func__)) {
        rc = CAPTURE_UNSUPPORTED;
    }
    if (rc == INF_CU_SUCCESS && (current() == NULL || bytes == NULL
        || !are_options(count, options)))
    {
        rc = wrong_locked(__func__, "no context, image, or options",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = read_image(&image, current());
        log_to(rc == INF_CU_SUCCESS ? GPU_JIT_INFO_LOG : GPU_JIT_ERROR_LOG,
            image.log, count, options, values);
    }
    if (rc == INF_CU_SUCCESS) {
        module_t *m = calloc(1, sizeof(*m));
        assert(m != NULL);
        m->device = number_of(current());
        m->size = image.size;
        m->image = malloc(image.size);
        assert(m->image != NULL);
        memcpy(m->image, bytes, image.size);
        fake.objects++;
        *module = m;
    }
    return end(rc);
}

result_t
cuModuleUnload(gpu_module_t module)
{
    BEGIN();
    module_t *m = module;

    fake.report = true;
    if (m->queued > 0
        && fake.devices[m->device].broken == INF_CU_SUCCESS)
    {
        wrong_locked(__func__, "its kernels wait, or are in a graph", 0);
    }
    if (m->queued > 0) {
        return end(rc != INF_CU_SUCCESS ? rc : INF_CU_INVALID_VALUE);
    }
    while (m->functions != NULL) {
        function_t *next = m->functions->next;
        free(m->functions);
        m->functions = next;
    }
    free(m->image);
    free(m);
    fake.objects--;
    return end(rc);
}

/* ---- functions ----------------------------------------------------------- */

static function_t *
function_locked(module_t *m, const char *name)
{
    function_t *f = m->functions;

    while (f != NULL && strcmp(f->name, name) != 0) {
        f = f->next;
    }
    if (f != NULL || strlen(name) >= NAME) {
        return f;
    }

    f = calloc(1, sizeof(*f));
    assert(f != NULL);
    strcpy(f->name, name);
    f->module = m;
    f->max_threads = THREADS_MAX;
    if (!describe(m, f)) {
        free(f);
        return NULL;
    }
    f->max_dynamic = SHARED_MAX - f->shared_static;
    f->next = m->functions;
    m->functions = f;
    return f;
}

result_t
cuModuleGetFunction(gpu_function_t *function, gpu_module_t module,
    const char *name)
{
    open_kernels();

    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        function_t *f = function_locked(module, name);
        *function = f;
        rc = f == NULL ? GPU_NOT_FOUND : INF_CU_SUCCESS;
    }
    return end(rc);
}

/* The most that a launch may ask for, with what the kernel has in itself. */
static int
shared_limit(const function_t *f)
{
    const device_t *d = &fake.devices[f->module->device];
    int limit = d->major >= 9 ? 232448 : d->major >= 8 ? 166912 : SHARED_MAX;

    return limit - f->shared_static;
}

result_t
cuFuncGetAttribute(int *value, int attribute, gpu_function_t function)
{
    BEGIN();
    const function_t *f = function;

    if (rc == INF_CU_SUCCESS) {
        switch (attribute) {
        case GPU_FUNCTION_MAX_THREADS:
            *value = f->max_threads;
            break;
        case GPU_FUNCTION_SHARED_STATIC:
            *value = f->shared_static;
            break;
        case GPU_FUNCTION_MAX_DYNAMIC:
            *value = f->max_dynamic;
            break;
        default:
            rc = wrong_locked(__func__, "attribute", INF_CU_INVALID_VALUE);
        }
    }
    return end(rc);
}

result_t
cuFuncSetAttribute(gpu_function_t function, int attribute, int value)
{
    BEGIN();
    function_t *f = function;

    if (rc == INF_CU_SUCCESS && attribute != GPU_FUNCTION_MAX_DYNAMIC) {
        rc = wrong_locked(__func__, "attribute", INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS && (value < 0 || value > shared_limit(f))) {
        rc = INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        f->max_dynamic = value;
    }
    return end(rc);
}

/* Those of a host function, or of the image; false: neither is known. */
static bool
arguments_locked(const function_t *f, const size_t **sizes, size_t *count)
{
    const kernel_t *k = kernel_locked(f->name);

    *sizes = k != NULL ? k->sizes : f->sizes;
    *count = k != NULL ? k->count : f->count;
    return k != NULL || f->described;
}

/* As the compiler lays them out: each at a multiple of its size. */
static size_t
offset_of(const size_t *sizes, size_t index)
{
    size_t at = 0;

    for (size_t i = 0;; i++) {
        size_t alignment = sizes[i] >= 8 ? 8 : sizes[i] > 0 ? sizes[i] : 1;
        at = (at + alignment - 1) / alignment * alignment;
        if (i == index) {
            return at;
        }
        at += sizes[i];
    }
}

result_t
cuFuncGetParamInfo(gpu_function_t function, size_t index, size_t *offset,
    size_t *size)
{
    BEGIN();
    const size_t *sizes;
    size_t count;

    if (rc == INF_CU_SUCCESS) {
        bool known = arguments_locked(function, &sizes, &count);
        rc = known && index < count ? INF_CU_SUCCESS : INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        *offset = offset_of(sizes, index);
        *size = sizes[index];
    }
    return end(rc);
}

/* ---- launches ------------------------------------------------------------ */

static bool
is_shape(const unsigned *grid, const unsigned *block)
{
    return grid[0] > 0 && grid[1] > 0 && grid[2] > 0 && grid[0] <= 2147483647
        && grid[1] <= 65535 && grid[2] <= 65535
        && block[0] > 0 && block[1] > 0 && block[2] > 0
        && block[0] <= THREADS_MAX && block[1] <= THREADS_MAX
        && block[2] <= 64
        && (uint64_t) block[0] * block[1] * block[2] <= THREADS_MAX;
}

/* Counted as wrong, and fails as the driver does: too much of something. */
static result_t
check_launch_locked(const function_t *f, const fake_cuda_launch_t *l)
{
    static const char who[] = "cuLaunchKernel";

    if (!is_shape(l->grid, l->block)) {
        return wrong_locked(who, "grid or block", INF_CU_INVALID_VALUE);
    }
    if (l->block[0] * l->block[1] * l->block[2] > (unsigned) f->max_threads) {
        return wrong_locked(who, "more threads than the function takes",
            GPU_LAUNCH_OUT_OF_RESOURCES);
    }
    if (l->shared_bytes > (unsigned) f->max_dynamic) {
        return wrong_locked(who, "more shared memory than was asked for",
            INF_CU_INVALID_VALUE);
    }
    return INF_CU_SUCCESS;
}

/* NULL, and wrong: the arguments are not those of the image. */
static launch_t *
new_launch_locked(function_t *f, const fake_cuda_launch_t *shape,
    void **arguments)
{
    const kernel_t *k = kernel_locked(f->name);
    const size_t *sizes;
    launch_t *l = calloc(1, sizeof(*l));

    assert(l != NULL);
    arguments_locked(f, &sizes, &l->count);
    if ((l->count > 0 && arguments == NULL) || (k != NULL && f->described
        && (k->count != f->count
            || memcmp(k->sizes, f->sizes, sizeof(k->sizes)) != 0)))
    {
        wrong_locked("cuLaunchKernel", "arguments, or a host function that "
            "takes others than the kernel", 0);
        free(l);
        return NULL;
    }

    strcpy(l->name, f->name);
    l->module = f->module;
    l->fn = k != NULL ? k->fn : NULL;
    l->shape = *shape;
    for (size_t i = 0; i < l->count; i++) {
        l->offsets[i] = (l->size + 7) & ~(size_t) 7;
        l->size = l->offsets[i] + sizes[i];
        assert(l->size <= sizeof(l->values));
        memcpy(l->values + l->offsets[i], arguments[i], sizes[i]);
        l->arguments[i] = l->values + l->offsets[i];
    }
    l->shape.arguments = l->arguments;
    l->module->queued++;
    return l;
}

result_t
cuLaunchKernel(gpu_function_t function, unsigned grid_x, unsigned grid_y,
    unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
    unsigned shared_bytes, gpu_stream_t stream, void **arguments, void **extra)
{
    BEGIN();
    function_t *f = function;
    stream_t *s = stream_locked(stream);
    fake_cuda_launch_t shape = {
        { grid_x, grid_y, grid_z }, { block_x, block_y, block_z },
        shared_bytes, NULL
    };

    if (rc == INF_CU_SUCCESS && (s == NULL || current() == NULL
        || s->device != number_of(current())
        || f->module->device != s->device || extra != NULL))
    {
        rc = wrong_locked(__func__, "no context, another device's, or extra",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = check_launch_locked(f, &shape);
    }
    if (rc != INF_CU_SUCCESS) {
        return end(rc);
    }

    launch_t *l = new_launch_locked(f, &shape, arguments);
    rc = l == NULL ? INF_CU_INVALID_VALUE
        : queue_locked(__func__, s, (work_t) { .kind = WORK_LAUNCH,
            .launch = l });
    if (rc != INF_CU_SUCCESS && l != NULL) {
        l->module->queued--;
        free(l);
    }
    return end(rc);
}
