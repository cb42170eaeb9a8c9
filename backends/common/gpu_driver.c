/* gpu_driver.c - see gpu_driver.h */

#include "gpu_driver.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_functions.h"

#define TEXT_MAX 512

struct gpu_driver_s {
    /* set while the driver is opened, then read by anyone */
    gpu_functions_t f;
    int             version;
    int             count;

    pthread_mutex_t lock;               /* guards opening a device           */
    gpu_device_t    devices[GPU_DEVICES_MAX];   /* with atomics of their own */
};

static TRITONSERVER_Error *load(gpu_driver_t *d);
static TRITONSERVER_Error *start(gpu_driver_t *d);
static TRITONSERVER_Error *device_open_locked(gpu_driver_t *d,
    gpu_device_t *device);
static void ask_whether_it_lives(gpu_device_t *device, gpu_result_t rc);
static TRITONSERVER_Error *device_read(gpu_device_t *device);
static const char *name_of(const gpu_functions_t *f, gpu_result_t rc);
static const char *words_of(const gpu_functions_t *f, gpu_result_t rc);

TRITONSERVER_Error *
gpu_driver_open(gpu_driver_t **out)
{
    gpu_driver_t *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return bk_err_nomem("state of the CUDA driver");
    }

    pthread_mutex_init(&d->lock, NULL);
    TRITONSERVER_Error *err = load(d);
    if (err == NULL) {
        err = start(d);
    }
    if (err != NULL) {
        gpu_driver_close(d);
        return bk_err_add(err, "no CUDA driver");
    }

    *out = d;
    return NULL;
}

/* The library stays: threads of the driver may run in it. */
void
gpu_driver_close(gpu_driver_t *d)
{
    if (d == NULL) {
        return;
    }

    for (int i = 0; i < d->count; i++) {
        if (d->devices[i].opened) {
            (void) d->f.context_release(d->devices[i].handle);
        }
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

int
gpu_driver_version(const gpu_driver_t *d)
{
    return d->version;
}

TRITONSERVER_Error *
gpu_device_get(gpu_driver_t *d, int64_t ordinal, gpu_device_t **out)
{
    if (ordinal < 0 || ordinal >= d->count) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
            "there is no GPU %" PRId64 ": the driver has %d", ordinal,
            d->count);
    }

    gpu_device_t *device = &d->devices[ordinal];
    TRITONSERVER_Error *err = NULL;

    *out = device;
    if (atomic_load_explicit(&device->opened, memory_order_acquire)) {
        return NULL;
    }

    pthread_mutex_lock(&d->lock);
    if (!device->opened) {
        err = device_open_locked(d, device);
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

TRITONSERVER_Error *
gpu_enter(gpu_device_t *device)
{
    return gpu_check(device, device->f->context_push(device->context),
        "cannot use GPU %d", device->ordinal);
}

void
gpu_leave(gpu_device_t *device)
{
    gpu_context_t left;

    (void) device->f->context_pop(&left);
}

bool
gpu_enter_to_free(gpu_device_t *device, const char *what)
{
    gpu_result_t rc = device->f->context_push(device->context);
    if (rc != GPU_SUCCESS) {
        rc = device->f->context_push(device->context);
    }

    bk_err_log(gpu_check(device, rc, "memory of %s stays on GPU %d", what,
        device->ordinal), "cuda");
    return rc == GPU_SUCCESS;
}

TRITONSERVER_Error *
gpu_check(gpu_device_t *device, gpu_result_t rc, const char *fmt, ...)
{
    char what[TEXT_MAX];
    va_list args;

    if (rc == GPU_SUCCESS) {
        return NULL;
    }

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    ask_whether_it_lives(device, rc);
    if (gpu_device_has_failed(device)) {
        rc = atomic_load_explicit(&device->failed, memory_order_relaxed);
    }

    const char *name = name_of(device->f, rc);
    const char *words = words_of(device->f, rc);
    if (gpu_device_has_failed(device)) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s: GPU %d has"
            " failed: %s (%d): %s; nothing runs on it until the core is"
            " restarted", what, device->ordinal, name, rc, words);
    }

    return bk_err_new(rc == GPU_OUT_OF_MEMORY ? TRITONSERVER_ERROR_UNAVAILABLE
        : TRITONSERVER_ERROR_INTERNAL, "%s: %s (%d): %s", what, name, rc,
        words);
}

bool
gpu_device_has_failed(const gpu_device_t *device)
{
    return atomic_load_explicit(&device->failed, memory_order_relaxed) != 0;
}

TRITONSERVER_Error *
gpu_device_state(gpu_device_t *device)
{
    int rc = atomic_load_explicit(&device->failed, memory_order_relaxed);

    return rc == 0 ? NULL : gpu_check(device, rc, "earlier");
}

static TRITONSERVER_Error *
load(gpu_driver_t *d)
{
    char why[TEXT_MAX];

    return gpu_functions_open(&d->f, why, sizeof(why)) ? NULL
        : bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "%s", why);
}

static TRITONSERVER_Error *
start(gpu_driver_t *d)
{
    int count = 0;

    gpu_result_t rc = d->f.init(0);
    if (rc == GPU_SUCCESS) {
        rc = d->f.driver_version(&d->version);
    }
    if (rc == GPU_SUCCESS) {
        rc = d->f.device_count(&count);
    }
    if (rc != GPU_SUCCESS) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "%s (%d): %s",
            name_of(&d->f, rc), rc, words_of(&d->f, rc));
    }

    d->count = count < GPU_DEVICES_MAX ? count : GPU_DEVICES_MAX;
    for (int i = 0; i < d->count; i++) {
        d->devices[i] = (gpu_device_t) {
            .driver = d, .f = &d->f, .ordinal = i
        };
    }
    return NULL;
}

static TRITONSERVER_Error *
device_open_locked(gpu_driver_t *d, gpu_device_t *device)
{
    TRITONSERVER_Error *err = gpu_check(device,
        d->f.device_get(&device->handle, device->ordinal), "GPU %d",
        device->ordinal);
    if (err == NULL) {
        err = device_read(device);
    }
    if (err == NULL) {
        err = gpu_check(device, d->f.context_retain(&device->context,
            device->handle), "cannot use GPU %d", device->ordinal);
    }
    if (err == NULL) {
        atomic_store_explicit(&device->opened, true, memory_order_release);
    }
    return err;
}

static TRITONSERVER_Error *
device_read(gpu_device_t *device)
{
    int major = 0, minor = 0;
    const struct {
        int *to;
        int  attribute;
    } rows[] = {
        { &major, GPU_CAPABILITY_MAJOR },
        { &minor, GPU_CAPABILITY_MINOR },
        { &device->threads_most, GPU_MAX_THREADS_PER_BLOCK },
        { &device->grid_most[0], GPU_MAX_GRID_X },
        { &device->grid_most[1], GPU_MAX_GRID_X + 1 },
        { &device->grid_most[2], GPU_MAX_GRID_X + 2 },
        { &device->shared_most, GPU_SHARED_PER_BLOCK_OPTIN }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        TRITONSERVER_Error *err = gpu_check(device,
            device->f->device_attribute(rows[i].to, rows[i].attribute,
            device->handle), "attribute %d of GPU %d", rows[i].attribute,
            device->ordinal);
        if (err != NULL) {
            return err;
        }
    }

    device->capability = major * 10 + minor;
    return NULL;
}

/* After a call that said rc.  Drivers add numbers of errors, and some are both
   of one call and of a failed device (docs/decisions/0072-a-gpu-that-fails-
   ends-the-core.md): a failed device answers every call by an error.  How much
   memory is free may be asked at any time, also while a stream captures. */
static void
ask_whether_it_lives(gpu_device_t *device, gpu_result_t rc)
{
    gpu_context_t left;
    size_t unused, all;
    int none = 0;

    if (rc == GPU_INVALID_VALUE || rc == GPU_OUT_OF_MEMORY
        || device->context == NULL || gpu_device_has_failed(device)
        || device->f->context_push(device->context) != GPU_SUCCESS)
    {
        return;
    }

    rc = device->f->memory_info(&unused, &all);
    (void) device->f->context_pop(&left);
    if (rc != GPU_SUCCESS) {
        (void) atomic_compare_exchange_strong(&device->failed, &none, rc);
    }
}

static const char *
name_of(const gpu_functions_t *f, gpu_result_t rc)
{
    const char *text = NULL;

    return f->error_name(rc, &text) == GPU_SUCCESS && text != NULL ? text
        : "CUDA error";
}

static const char *
words_of(const gpu_functions_t *f, gpu_result_t rc)
{
    const char *text = NULL;

    return f->error_string(rc, &text) == GPU_SUCCESS && text != NULL ? text
        : "the driver has no words for it";
}
