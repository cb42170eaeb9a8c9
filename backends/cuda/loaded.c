/* loaded.c - see loaded.h */

#include "loaded.h"

#include "wait.h"

#include <stdint.h>
#include <stdlib.h>

#define LOG_BYTES 4096

static TRITONSERVER_Error *load_module(gpu_loaded_t *l, gpu_runtime_t *rt,
    const gpu_model_file_t *file, const gpu_program_t *program);
static TRITONSERVER_Error *explain(gpu_loaded_t *l, gpu_result_t rc,
    const char *log);
static TRITONSERVER_Error *find_kernel(gpu_loaded_t *l, uint32_t i,
    const gpu_kernel_t *kernel);
static TRITONSERVER_Error *read_limits(gpu_loaded_t *l, uint32_t i,
    const gpu_kernel_t *kernel);
static TRITONSERVER_Error *check_parameters(gpu_loaded_t *l, uint32_t i,
    const gpu_kernel_t *kernel);
static TRITONSERVER_Error *load_weights(gpu_loaded_t *l, uint32_t i,
    const gpu_model_file_t *file, const gpu_buffer_t *buffer);
static TRITONSERVER_Error *copy_weights(gpu_loaded_t *l, uint32_t i,
    const char *data, size_t len, const char *path, bool *ended);

/* The device's context is current from the first call to the last. */
TRITONSERVER_Error *
gpu_loaded_new(gpu_loaded_t **out, gpu_runtime_t *rt, gpu_device_t *device,
    const gpu_model_file_t *file, const gpu_program_t *program)
{
    gpu_loaded_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return bk_err_nomem("state of a model on a GPU");
    }

    l->device = device;
    l->buffer_count = program->buffer_count;
    l->kernels = calloc(program->kernel_count + 1, sizeof(*l->kernels));
    l->weights = calloc(program->buffer_count + 1, sizeof(*l->weights));
    TRITONSERVER_Error *err = l->kernels == NULL || l->weights == NULL
        ? bk_err_nomem("state of a model on a GPU") : gpu_enter(device);
    if (err == NULL) {
        err = load_module(l, rt, file, program);
        for (uint32_t i = 0; err == NULL && i < program->kernel_count; i++) {
            err = find_kernel(l, i, &program->kernels[i]);
        }
        for (uint32_t i = 0; err == NULL && i < program->buffer_count; i++) {
            err = load_weights(l, i, file, &program->buffers[i]);
        }
        gpu_leave(device);
    }
    if (err != NULL) {
        gpu_loaded_free(l);
        return err;
    }

    *out = l;
    return NULL;
}

void
gpu_loaded_free(gpu_loaded_t *l)
{
    if (l == NULL) {
        return;
    }

    if (gpu_enter_to_free(l->device, "a model")) {
        for (uint32_t i = 0; l->weights != NULL && i < l->buffer_count; i++) {
            if (l->weights[i] != 0) {
                (void) l->device->f->free(l->weights[i]);
            }
        }
        if (l->module != NULL) {
            (void) l->device->f->module_unload(l->module);
        }
        gpu_leave(l->device);
    }
    free(l->kernels);
    free(l->weights);
    free(l);
}

/* A model.so contains its own code: nothing is loaded. */
static TRITONSERVER_Error *
load_module(gpu_loaded_t *l, gpu_runtime_t *rt, const gpu_model_file_t *file,
    const gpu_program_t *program)
{
    char words[LOG_BYTES] = "";
    int options[] = { GPU_JIT_ERROR_LOG, GPU_JIT_ERROR_LOG_SIZE };
    void *values[] = { words, (void *) (uintptr_t) (sizeof(words) - 1) };
    char *code = NULL;

    if (file->kind == GPU_FILE_LIBRARY) {
        return NULL;
    }

    TRITONSERVER_Error *err = gpu_image_make(rt, file,
        program->compile_options, l->device, &code);
    if (err == NULL) {
        err = explain(l, l->device->f->module_load(&l->module, code, 2,
            options, values), words);
    }
    free(code);
    return err;
}

static TRITONSERVER_Error *
explain(gpu_loaded_t *l, gpu_result_t rc, const char *log)
{
    int version = gpu_driver_version(l->device->driver);

    if (rc == GPU_UNSUPPORTED_PTX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "the driver, of"
            " CUDA %d.%d, is older than the toolkit that made this code",
            version / 1000, version % 1000 / 10);
    }
    if (rc == GPU_NO_BINARY_FOR_GPU) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "there is no code"
            " for GPU %d, of compute capability %d.%d", l->device->ordinal,
            l->device->capability / 10, l->device->capability % 10);
    }

    return gpu_check(l->device, rc, "the driver does not take the code%s%s",
        log[0] != '\0' ? ": " : "", log);
}

static TRITONSERVER_Error *
find_kernel(gpu_loaded_t *l, uint32_t i, const gpu_kernel_t *kernel)
{
    gpu_result_t rc = l->device->f->module_function(&l->kernels[i].handle,
        l->module, kernel->name);

    if (rc == GPU_NOT_FOUND) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "there is no kernel"
            " \"%s\" in the code; in C++ it must be extern \"C\" __global__",
            kernel->name);
    }

    TRITONSERVER_Error *err = gpu_check(l->device, rc, "kernel \"%s\"",
        kernel->name);
    if (err == NULL) {
        err = read_limits(l, i, kernel);
    }
    return err != NULL ? err : check_parameters(l, i, kernel);
}

/* The driver gives more than 48 KiB of dynamic shared memory only on request,
 * so all that the device has is requested. */
static TRITONSERVER_Error *
read_limits(gpu_loaded_t *l, uint32_t i, const gpu_kernel_t *kernel)
{
    const gpu_functions_t *f = l->device->f;
    gpu_loaded_kernel_t *k = &l->kernels[i];
    int fixed = 0;

    TRITONSERVER_Error *err = gpu_check(l->device, f->function_attribute(
        &k->threads_most, GPU_FUNCTION_MAX_THREADS, k->handle),
        "kernel \"%s\"", kernel->name);
    if (err == NULL) {
        err = gpu_check(l->device, f->function_attribute(&fixed,
            GPU_FUNCTION_SHARED_STATIC, k->handle), "kernel \"%s\"",
            kernel->name);
    }
    if (err == NULL && fixed > l->device->shared_most) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "kernel \"%s\" has"
            " %d bytes of shared memory; GPU %d has %d for a block",
            kernel->name, fixed, l->device->ordinal, l->device->shared_most);
    }
    if (err != NULL || kernel->shared.count == 0) {
        return err;
    }

    k->shared_most = l->device->shared_most - fixed;
    return gpu_check(l->device, f->function_set(k->handle,
        GPU_FUNCTION_MAX_DYNAMIC, k->shared_most),
        "shared memory of kernel \"%s\"", kernel->name);
}

/* Drivers before CUDA 12.4 cannot list parameters. */
static TRITONSERVER_Error *
check_parameters(gpu_loaded_t *l, uint32_t i, const gpu_kernel_t *kernel)
{
    const gpu_functions_t *f = l->device->f;
    uint32_t count = 0;
    size_t offset, size;

    if (f->parameter_info == NULL) {
        return NULL;
    }

    while (count <= GPU_ARGUMENTS_MAX && f->parameter_info(
        l->kernels[i].handle, count, &offset, &size) == GPU_SUCCESS)
    {
        if (count < kernel->argument_count && size
            != gpu_argument_size(kernel->arguments[count].kind))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter %u"
                " of kernel \"%s\" has %zu bytes, the configuration's"
                " argument %u", count + 1, kernel->name, size,
                gpu_argument_size(kernel->arguments[count].kind));
        }
        count++;
    }

    return count == kernel->argument_count ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "kernel \"%s\" takes %u"
            " arguments, the configuration gives %u", kernel->name, count,
            kernel->argument_count);
}

static TRITONSERVER_Error *
load_weights(gpu_loaded_t *l, uint32_t i, const gpu_model_file_t *file,
    const gpu_buffer_t *buffer)
{
    char *path = NULL;
    char *data = NULL;
    bool ended = true;
    size_t len;

    if (buffer->file == NULL) {
        return NULL;
    }

    TRITONSERVER_Error *err = gpu_model_file_beside(file, buffer->file,
        &path);
    if (err == NULL) {
        err = gpu_file_read(path, &data, &len);
    }
    if (err == NULL && len != (size_t) buffer->file_bytes) {
        err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "\"%s\" changes"
            " while the model is loaded", path);
    }
    if (err == NULL) {
        err = copy_weights(l, i, data, len, path, &ended);
    }
    if (ended) {                        /* otherwise a copy may still run   */
        free(data);
    }
    free(path);
    return err;
}

static TRITONSERVER_Error *
copy_weights(gpu_loaded_t *l, uint32_t i, const char *data, size_t len,
    const char *path, bool *ended)
{
    const gpu_functions_t *f = l->device->f;
    gpu_stream_t stream;

    *ended = true;
    if (len == 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is empty",
            path);
    }

    TRITONSERVER_Error *err = gpu_check(l->device, f->alloc(&l->weights[i],
        len), "memory on GPU %d for \"%s\"", l->device->ordinal, path);
    if (err != NULL) {
        l->weights[i] = 0;
        return err;
    }

    err = gpu_check(l->device, f->stream_create(&stream,
        GPU_STREAM_NON_BLOCKING), "a stream for \"%s\"", path);
    if (err != NULL) {
        return err;
    }

    err = gpu_check(l->device, f->copy_to_device(l->weights[i], data, len,
        stream), "cannot copy to GPU %d", l->device->ordinal);
    TRITONSERVER_Error *late = gpu_wait_long(l->device, stream, ended);
    if (*ended) {
        (void) f->stream_destroy(stream);
    }
    if (err == NULL) {
        err = late;
    } else {
        bk_err_drop(late);
    }
    return err == NULL ? NULL : bk_err_add(err, "\"%s\"", path);
}
