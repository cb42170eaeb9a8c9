/* cuda.c - a CUDA driver without a GPU, strict where a driver is lenient:
   devices and contexts. */

#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
fake_t fake = { .count = 2 };

static _Thread_local device_t *contexts[CONTEXTS];
static _Thread_local uint32_t context_count;

/* ---- the inside ---------------------------------------------------------- */

result_t
wrong_locked(const char *function, const char *what, result_t rc)
{
    fake.wrong++;
    snprintf(fake.wrong_text, sizeof(fake.wrong_text), "%s: %s", function,
        what);
    return rc;
}

result_t
call_locked(const char *function, int device)
{
    read_environment_locked();
    fake.calls++;
    count_locked(fake.functions, function);

    result_t rc = ordered_locked(function, device);

    fake.failures += rc != INF_CU_SUCCESS;
    if (!fake.initialized && strcmp(function, "cuInit") != 0) {
        return wrong_locked(function, "before cuInit", INF_CU_NOT_INITIALIZED);
    }
    return rc;
}

result_t
end(result_t rc)
{
    if (fake.report && fake.counts_path != NULL) {
        write_counts_locked();
    }
    fake.report = false;
    pthread_mutex_unlock(&fake_lock);
    return rc;
}

device_t *
device_locked(int handle)
{
    return handle >= 0 && handle < fake.count ? &fake.devices[handle] : NULL;
}

device_t *
current(void)
{
    return context_count > 0 ? contexts[context_count - 1] : NULL;
}

int
number_of(const device_t *d)
{
    return (int) (d - fake.devices);
}

/* ---- the driver's functions ---------------------------------------------- */

result_t
cuInit(unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        rc = flags != 0 ? wrong_locked(__func__, "flags",
                INF_CU_INVALID_VALUE)
            : fake.count == 0 ? INF_CU_NO_DEVICE : INF_CU_SUCCESS;
        fake.initialized = rc == INF_CU_SUCCESS;
    }
    return end(rc);
}

/* FAKE_CUDA_DRIVER_VERSION: 12020 is 12.2; without it 13.0. */
result_t
cuDriverGetVersion(int *version)
{
    const char *text = getenv("FAKE_CUDA_DRIVER_VERSION");

    *version = text != NULL ? atoi(text) : 13000;
    return INF_CU_SUCCESS;
}

static const struct {
    result_t    rc;
    const char *name;
    const char *text;
} errors[] = {
    { INF_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { INF_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { INF_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE",
      "no CUDA-capable device is detected" },
    { INF_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE",
      "invalid device ordinal" },
    { GPU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE",
      "device kernel image is invalid" },
    { INF_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT",
      "invalid device context" },
    { GPU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
      "no kernel image is available for execution on the device" },
    { GPU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX",
      "a PTX JIT compilation failed" },
    { GPU_UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain" },
    { GPU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { GPU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
    { GPU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
      "an illegal memory access was encountered" },
    { GPU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
      "too many resources requested for launch" },
    { GPU_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT",
      "the launch timed out and was terminated" },
    { GPU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED",
      "unspecified launch failure" },
    { NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
      "operation not permitted when stream is capturing" },
    { CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" }
};

static result_t
text_of(result_t rc, const char **text, bool name)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        if (errors[i].rc == rc) {
            *text = name ? errors[i].name : errors[i].text;
        }
    }
    return *text != NULL ? INF_CU_SUCCESS : INF_CU_INVALID_VALUE;
}

result_t
cuGetErrorName(result_t error, const char **text)
{
    return text_of(error, text, true);
}

result_t
cuGetErrorString(result_t error, const char **text)
{
    return text_of(error, text, false);
}

result_t
cuDeviceGetCount(int *count)
{
    BEGIN();
    *count = fake.count;
    return end(rc);
}

result_t
cuDeviceGet(int *device, int ordinal)
{
    BEGIN();
    *device = ordinal;
    return end(rc != INF_CU_SUCCESS ? rc
        : device_locked(ordinal) == NULL ? INF_CU_INVALID_DEVICE : rc);
}

result_t
cuDeviceGetName(char *name, int len, int device)
{
    BEGIN_FOR(device_locked(device) != NULL ? device : -1);
    snprintf(name, (size_t) len, "Fake GPU %d", device);
    return end(rc);
}

result_t
cuDeviceGetUuid(inf_cu_uuid_t *uuid, int device)
{
    BEGIN_FOR(device_locked(device) != NULL ? device : -1);
    memset(uuid->bytes, 0xa0 + device, sizeof(uuid->bytes));
    return end(rc);
}

/* Every device has the limits of its generation: 163 KiB of shared memory for
   a block that asks for it on 8.0, 227 KiB on 9.0 and later. */
static bool
attribute_of(const device_t *d, int attribute, int *value)
{
    switch (attribute) {
    case GPU_MAX_THREADS_PER_BLOCK:
    case 2:                     /* block, x                                  */
    case 3:                     /* y                                         */
        *value = 1024;
        return true;
    case 4:                     /* z                                         */
        *value = 64;
        return true;
    case GPU_MAX_GRID_X:
        *value = 2147483647;
        return true;
    case GPU_MAX_GRID_X + 1:
    case GPU_MAX_GRID_X + 2:
        *value = 65535;
        return true;
    case GPU_SHARED_PER_BLOCK:
        *value = 49152;
        return true;
    case GPU_SHARED_PER_BLOCK_OPTIN:
        *value = d->major >= 9 ? 232448 : d->major >= 8 ? 166912 : 49152;
        return true;
    case 10:                    /* threads of a warp                         */
        *value = 32;
        return true;
    case 16:                    /* multiprocessors                           */
        *value = 4;
        return true;
    case INF_CU_CAPABILITY_MAJOR:
        *value = d->major;
        return true;
    case INF_CU_CAPABILITY_MINOR:
        *value = d->minor;
        return true;
    case READ_ONLY_REGISTER:
        *value = d->major >= 8;
        return true;
    default:
        return false;
    }
}

result_t
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN_FOR(device_locked(device) != NULL ? device : -1);
    const device_t *d = device_locked(device);

    if (rc == INF_CU_SUCCESS && d == NULL) {
        rc = INF_CU_INVALID_DEVICE;
    }
    if (rc == INF_CU_SUCCESS) {
        rc = attribute_of(d, attribute, value) ? INF_CU_SUCCESS
            : wrong_locked(__func__, "attribute", INF_CU_INVALID_VALUE);
    }
    return end(rc);
}

result_t
cuDevicePrimaryCtxRetain(inf_cu_context_t *c, int device)
{
    BEGIN_FOR(device_locked(device) != NULL ? device : -1);
    device_t *d = device_locked(device);

    if (rc == INF_CU_SUCCESS && d == NULL) {
        rc = INF_CU_INVALID_DEVICE;
    }
    if (rc == INF_CU_SUCCESS && d != NULL) {
        map_locked(d);
        d->retained++;
        *c = d;
    }
    return end(rc);
}

result_t
cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN_FOR(device_locked(device) != NULL ? device : -1);
    device_t *d = &fake.devices[device];

    fake.report = true;

    if (d->retained == 0) {
        return end(wrong_locked(__func__, "not retained",
            INF_CU_INVALID_CONTEXT));
    }
    d->retained--;
    return end(rc);
}

result_t
cuCtxPushCurrent_v2(inf_cu_context_t context)
{
    BEGIN();
    device_t *d = context;

    if (d == NULL || d->retained == 0) {
        rc = wrong_locked(__func__, "a context that is gone",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        assert(context_count < CONTEXTS);
        contexts[context_count++] = d;
    }
    return end(rc);
}

result_t
cuCtxPopCurrent_v2(inf_cu_context_t *context)
{
    BEGIN();
    if (context_count == 0) {
        return end(wrong_locked(__func__, "nothing pushed",
            INF_CU_INVALID_CONTEXT));
    }
    *context = contexts[--context_count];
    return end(rc);
}

result_t
cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    BEGIN();
    *can = device_locked(device) != NULL && device_locked(peer) != NULL
        && device != peer
        && !(device + peer == 5 && device * peer == 6); /* 2 and 3 can't     */
    return end(rc);
}

result_t
cuCtxEnablePeerAccess(inf_cu_context_t peer, unsigned f)
{
    BEGIN();
    device_t *d = current();

    if (d == NULL || f != 0) {
        rc = wrong_locked(__func__, "no context, or flags",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        bool *reaches = &d->reaches[number_of(peer)];
        rc = *reaches ? INF_CU_PEER_ALREADY_ON : INF_CU_SUCCESS;
        *reaches = true;
    }
    return end(rc);
}

