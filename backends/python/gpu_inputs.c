/* gpu_inputs.c - see gpu_inputs.h */

#include "gpu_inputs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../common/gpu_driver.h"

struct py_gpus_s {
    pthread_mutex_t  lock;      /* guards driver                             */
    gpu_driver_t    *driver;    /* NULL: not opened yet                      */
};

static TRITONSERVER_Error *buffer_copy(py_gpus_t *gpus,
    const bk_buffer_t *from, void *dst);
static TRITONSERVER_Error *device_find(py_gpus_t *gpus, int64_t id,
    gpu_device_t **device);
static TRITONSERVER_Error *device_copy(gpu_device_t *device,
    const bk_buffer_t *from, void *dst);

TRITONSERVER_Error *
py_gpus_new(py_gpus_t **out)
{
    py_gpus_t *gpus = calloc(1, sizeof(*gpus));

    if (gpus == NULL) {
        return bk_err_nomem("the backend");
    }

    pthread_mutex_init(&gpus->lock, NULL);
    *out = gpus;
    return NULL;
}

void
py_gpus_free(py_gpus_t *gpus)
{
    if (gpus != NULL) {
        gpu_driver_close(gpus->driver);
        pthread_mutex_destroy(&gpus->lock);
        free(gpus);
    }
}

TRITONSERVER_Error *
py_input_copy(py_gpus_t *gpus, const bk_input_t *in, void *dst)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        bk_buffer_t from;

        TRITONSERVER_Error *err = bk_input_buffer(in, i, &from);
        if (err == NULL && from.len_bytes > in->len_bytes - done) {
            err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "its buffers hold more than its size");
        }
        if (err == NULL && from.len_bytes > 0) {
            err = buffer_copy(gpus, &from, (char *) dst + done);
        }
        if (err != NULL) {
            return bk_err_add(err, "input \"%s\"", in->name);
        }
        done += from.len_bytes;
    }

    return done == in->len_bytes ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the buffers of input \"%s\" hold less than its size", in->name);
}

TRITONSERVER_Error *
py_input_view(const bk_input_t *in, const void **data)
{
    bk_buffer_t buffer;

    *data = NULL;
    if (in->buffer_count != 1) {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_input_buffer(in, 0, &buffer);
    if (err == NULL && buffer.type != TRITONSERVER_MEMORY_GPU) {
        err = bk_input_view(in, data);
    }
    return err;
}

static TRITONSERVER_Error *
buffer_copy(py_gpus_t *gpus, const bk_buffer_t *from, void *dst)
{
    gpu_device_t *device;

    if (from->type != TRITONSERVER_MEMORY_GPU) {
        memcpy(dst, from->base, from->len_bytes);
        return NULL;
    }

    TRITONSERVER_Error *err = device_find(gpus, from->id, &device);
    if (err == NULL) {
        err = gpu_enter(device);
    }
    if (err != NULL) {
        return err;
    }

    err = device_copy(device, from, dst);
    gpu_leave(device);
    return err;
}

static TRITONSERVER_Error *
device_find(py_gpus_t *gpus, int64_t id, gpu_device_t **device)
{
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&gpus->lock);
    if (gpus->driver == NULL) {
        err = gpu_driver_open(&gpus->driver);
    }
    if (err == NULL) {
        err = gpu_device_get(gpus->driver, id, device);
    }
    pthread_mutex_unlock(&gpus->lock);
    return err;
}

static TRITONSERVER_Error *
device_copy(gpu_device_t *device, const bk_buffer_t *from, void *dst)
{
    const gpu_functions_t *f = device->f;
    gpu_stream_t stream;

    TRITONSERVER_Error *err = gpu_check(device,
        f->stream_create(&stream, GPU_STREAM_NON_BLOCKING),
        "cannot create a stream");
    if (err != NULL) {
        return err;
    }

    err = gpu_check(device, f->copy_to_host(dst,
        (gpu_ptr_t) (uintptr_t) from->base, from->len_bytes, stream),
        "cannot copy it from the GPU");
    TRITONSERVER_Error *late = gpu_check(device, f->stream_sync(stream),
        "cannot copy it from the GPU");
    if (err == NULL) {
        err = late;
    } else {
        bk_err_drop(late);
    }
    bk_err_log(gpu_check(device, f->stream_destroy(stream),
        "cannot destroy a stream"), "an input of a GPU");
    return err;
}
