/* gpus.c - see gpus.h */

#include "gpus.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct py_gpus_s {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    pthread_mutex_t  lock;      /* guards driver                             */
    gpu_driver_t    *driver;    /* NULL: not opened yet                      */
};

static TRITONSERVER_Error *copy_on(gpu_device_t *device, gpu_device_t *peer,
    const bk_buffer_t *to, const bk_buffer_t *from);
static gpu_result_t copy_queue(const gpu_device_t *device,
    const gpu_device_t *peer, const bk_buffer_t *to, const bk_buffer_t *from,
    gpu_stream_t stream);
static bool is_on_gpu(const bk_buffer_t *b);
static gpu_ptr_t address_of(const bk_buffer_t *b);

TRITONSERVER_Error *
py_gpus_new(py_gpus_t **out)
{
    py_gpus_t *gpus = calloc(1, sizeof(*gpus));

    if (gpus == NULL) {
        return bk_err_nomem("the backend");
    }

    atomic_init(&gpus->refs, 1);
    pthread_mutex_init(&gpus->lock, NULL);
    *out = gpus;
    return NULL;
}

py_gpus_t *
py_gpus_ref(py_gpus_t *gpus)
{
    atomic_fetch_add_explicit(&gpus->refs, 1, memory_order_relaxed);
    return gpus;
}

void
py_gpus_unref(py_gpus_t *gpus)
{
    if (gpus == NULL || atomic_fetch_sub_explicit(&gpus->refs, 1,
        memory_order_acq_rel) != 1)
    {
        return;
    }

    gpu_driver_close(gpus->driver);
    pthread_mutex_destroy(&gpus->lock);
    free(gpus);
}

TRITONSERVER_Error *
py_gpus_device(py_gpus_t *gpus, int64_t id, gpu_device_t **device)
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

/* The work is the source's GPU's, or, of the host's memory, the target's. */
TRITONSERVER_Error *
py_gpus_copy(py_gpus_t *gpus, const bk_buffer_t *to, const bk_buffer_t *from)
{
    gpu_device_t *device = NULL, *peer = NULL;
    TRITONSERVER_Error *err = NULL;

    if (!is_on_gpu(to) && !is_on_gpu(from)) {
        memcpy(to->base, from->base, to->len_bytes);
        return NULL;
    }

    if (is_on_gpu(to)) {
        err = py_gpus_device(gpus, to->id, &peer);
        device = peer;
    }
    if (err == NULL && is_on_gpu(from)) {
        err = py_gpus_device(gpus, from->id, &device);
    }
    if (err == NULL) {
        err = gpu_enter(device);
    }
    if (err != NULL) {
        return err;
    }

    err = copy_on(device, peer, to, from);
    gpu_leave(device);
    return err;
}

static TRITONSERVER_Error *
copy_on(gpu_device_t *device, gpu_device_t *peer, const bk_buffer_t *to,
    const bk_buffer_t *from)
{
    const gpu_functions_t *f = device->f;
    const char *what = !is_on_gpu(to) ? "cannot copy it from the GPU"
        : "cannot copy it to the GPU";
    gpu_stream_t stream;

    TRITONSERVER_Error *err = gpu_check(device,
        f->stream_create(&stream, GPU_STREAM_NON_BLOCKING),
        "cannot create a stream");
    if (err != NULL) {
        return err;
    }

    err = gpu_check(device, copy_queue(device, peer, to, from, stream), "%s",
        what);
    TRITONSERVER_Error *late = gpu_check(device, f->stream_sync(stream), "%s",
        what);
    if (err == NULL) {
        err = late;
    } else {
        bk_err_drop(late);
    }
    bk_err_log(gpu_check(device, f->stream_destroy(stream),
        "cannot destroy a stream"), "a tensor of a GPU");
    return err;
}

static gpu_result_t
copy_queue(const gpu_device_t *device, const gpu_device_t *peer,
    const bk_buffer_t *to, const bk_buffer_t *from, gpu_stream_t stream)
{
    const gpu_functions_t *f = device->f;
    uint64_t len = to->len_bytes;

    if (!is_on_gpu(to)) {
        return f->copy_to_host(to->base, address_of(from), len, stream);
    }
    if (!is_on_gpu(from)) {
        return f->copy_to_device(address_of(to), from->base, len, stream);
    }
    return device == peer
        ? f->copy_on_device(address_of(to), address_of(from), len, stream)
        : f->copy_to_peer(address_of(to), peer->context, address_of(from),
            device->context, len, stream);
}

static bool
is_on_gpu(const bk_buffer_t *b)
{
    return b->type == TRITONSERVER_MEMORY_GPU;
}

static gpu_ptr_t
address_of(const bk_buffer_t *b)
{
    return (gpu_ptr_t) (uintptr_t) b->base;
}
