/* cuda.c - a CUDA driver without a GPU, strict where a driver is lenient. */

#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
fake_t fake = { .count = 2 };

static _Thread_local device_t *contexts[CONTEXTS];
static _Thread_local uint32_t context_count;

/* ---- what tests say ------------------------------------------------------ */

EXPORTED void
fake_cuda_reset(void)
{
    pthread_mutex_lock(&fake_lock);
    fake.count = 2;
    fake.counted = true;
    fake.waits = 0;
    fake.calls = 0;
    fake.failures = 0;
    fake.fail_at = 0;
    fake.fail_function = NULL;
    fake.wrong = 0;
    for (int i = 0; i < DEVICES; i++) {
        fake.devices[i].occupied = 0;
        memset(fake.devices[i].reaches, 0, sizeof(fake.devices[i].reaches));
    }
    pthread_mutex_unlock(&fake_lock);
}

EXPORTED void
fake_cuda_set_devices(int count)
{
    assert(count >= 0 && count <= DEVICES);
    fake.counted = true;
    fake.count = count;
}

EXPORTED void
fake_cuda_fail_nth(uint64_t n, int rc)
{
    pthread_mutex_lock(&fake_lock);
    fake.fail_at = n == 0 ? 0 : fake.calls + n;
    fake.fail_rc = rc;
    pthread_mutex_unlock(&fake_lock);
}

EXPORTED void
fake_cuda_fail(const char *function, int rc)
{
    fake.fail_function = function;
    fake.fail_function_rc = rc;
}

EXPORTED uint64_t
fake_cuda_calls(void)
{
    return fake.calls;
}

EXPORTED uint64_t
fake_cuda_failures(void)
{
    return fake.failures;
}

EXPORTED size_t
fake_cuda_live(void)
{
    size_t live = fake.streams + fake.backings;

    for (size_t i = 0; i < BLOCKS; i++) {
        live += fake.blocks[i].live;
    }
    for (int i = 0; i < DEVICES; i++) {
        live += fake.devices[i].retained;
    }
    for (int i = 0; i < RESERVES; i++) {
        live += fake.reserves[i].live;
    }
    return live;
}

EXPORTED size_t
fake_cuda_wrong(const char **what)
{
    *what = fake.wrong > 0 ? fake.wrong_text : "";
    return fake.wrong;
}

EXPORTED size_t
fake_cuda_queued(void)
{
    return fake.queued;
}

EXPORTED size_t
fake_cuda_waits(void)
{
    return fake.waits;
}

EXPORTED bool
fake_cuda_reaches(int device, int peer)
{
    return fake.devices[device].reaches[peer];
}

EXPORTED void
fake_cuda_occupy(int device, uint64_t bytes)
{
    fake.devices[device].occupied = bytes;
}

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
call_locked(const char *function)
{
    result_t rc = INF_CU_SUCCESS;

    fake.calls++;
    if (fake.calls == fake.fail_at) {
        rc = fake.fail_rc;
    }
    if (fake.fail_function != NULL
        && strcmp(fake.fail_function, function) == 0)
    {
        rc = fake.fail_function_rc;
    }
    fake.failures += rc != INF_CU_SUCCESS;
    if (!fake.initialized && strcmp(function, "cuInit") != 0) {
        return wrong_locked(function, "before cuInit", INF_CU_NOT_INITIALIZED);
    }
    return rc;
}

result_t
end(result_t rc)
{
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

static bool
map_locked(device_t *d)
{
    if (d->window != NULL) {
        return true;
    }

    d->window = mmap(NULL, FAKE_CUDA_MEMORY, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->bytes = mmap(NULL, FAKE_CUDA_MEMORY, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(d->window != MAP_FAILED && d->bytes != MAP_FAILED);
    return true;
}

block_t *
find_locked(uintptr_t at, size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        block_t *b = &fake.blocks[i];
        if (b->live && at >= b->base && at - b->base <= b->size
            && size <= b->size - (at - b->base))
        {
            return b;
        }
    }
    return NULL;
}

block_t *
find_base_locked(uintptr_t base)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        if (fake.blocks[i].live && fake.blocks[i].base == base) {
            return &fake.blocks[i];
        }
    }
    return NULL;
}

block_t *
add_locked(const block_t *what)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        if (!fake.blocks[i].live) {
            fake.blocks[i] = *what;
            fake.blocks[i].live = true;
            return &fake.blocks[i];
        }
    }
    abort();
}

uint64_t
used_locked(int device)
{
    uint64_t used = fake.devices[device].occupied
        + fake.backed[device];

    for (size_t i = 0; i < BLOCKS; i++) {
        const block_t *b = &fake.blocks[i];
        used += b->live && b->device == device && !b->alias
            && b->backing == NULL ? b->size : 0;
    }
    return used;
}

/* The first gap; slow and sure. */
static bool
place_locked(device_t *d, size_t size, uintptr_t *out)
{
    uintptr_t at = (uintptr_t) d->window;
    uintptr_t end_of = at + FAKE_CUDA_MEMORY;

    for (size_t i = 0; i < BLOCKS; i++) {
        const block_t *b = &fake.blocks[i];
        if (b->live && b->device == number_of(d) && !b->alias
            && b->backing == NULL && at < b->base + b->size
            && b->base < at + size)
        {
            at = (b->base + b->size + ALIGNMENT - 1)
                & ~(uintptr_t) (ALIGNMENT - 1);
            i = (size_t) -1;            /* look at all of them again         */
        }
    }

    *out = at;
    return at + size <= end_of;
}

EXPORTED void *
fake_cuda_bytes(const void *address)
{
    pthread_mutex_lock(&fake_lock);
    const block_t *b = find_locked((uintptr_t) address, 0);
    char *bytes = b == NULL || b->device < 0 ? NULL
        : b->bytes + ((uintptr_t) address - b->base);
    pthread_mutex_unlock(&fake_lock);
    return bytes;
}

EXPORTED bool
fake_cuda_is_pinned(const void *base)
{
    pthread_mutex_lock(&fake_lock);
    const block_t *b = find_locked((uintptr_t) base, 0);
    pthread_mutex_unlock(&fake_lock);
    return b != NULL && b->device < 0;
}

/* ---- the driver's functions ---------------------------------------------- */


result_t
cuInit(unsigned flags)
{
    static const int capabilities[DEVICES][2] = {
        { 8, 0 }, { 5, 2 }, { 7, 5 }, { 9, 0 }
    };
    BEGIN();
    const char *env = getenv("FAKE_CUDA_DEVICES");

    if (!fake.counted && env != NULL && atoi(env) >= 0
        && atoi(env) <= DEVICES)
    {
        fake.count = atoi(env);
    }
    for (int i = 0; i < DEVICES; i++) {
        fake.devices[i].major = capabilities[i][0];
        fake.devices[i].minor = capabilities[i][1];
    }
    if (rc == INF_CU_SUCCESS) {
        rc = flags != 0 ? wrong_locked(__func__, "flags",
                INF_CU_INVALID_VALUE)
            : fake.count == 0 ? INF_CU_NO_DEVICE : INF_CU_SUCCESS;
        fake.initialized = rc == INF_CU_SUCCESS;
    }
    return end(rc);
}

result_t
cuGetErrorName(result_t error, const char **text)
{
    *text = error == INF_CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
        : error == INF_CU_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
        : error == 999 ? "CUDA_ERROR_UNKNOWN" : NULL;
    return *text != NULL ? INF_CU_SUCCESS : INF_CU_INVALID_VALUE;
}

result_t
cuGetErrorString(result_t error, const char **text)
{
    *text = error == INF_CU_OUT_OF_MEMORY ? "out of memory"
        : error == INF_CU_INVALID_VALUE ? "invalid argument"
        : error == 999 ? "unknown error" : NULL;
    return *text != NULL ? INF_CU_SUCCESS : INF_CU_INVALID_VALUE;
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
    BEGIN();
    snprintf(name, (size_t) len, "Fake GPU %d", device);
    return end(rc);
}

result_t
cuDeviceGetUuid(inf_cu_uuid_t *uuid, int device)
{
    BEGIN();
    memset(uuid->bytes, 0xa0 + device, sizeof(uuid->bytes));
    return end(rc);
}

result_t
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN();
    const device_t *d = device_locked(device);

    if (rc == INF_CU_SUCCESS && d == NULL) {
        rc = INF_CU_INVALID_DEVICE;
    }
    if (rc == INF_CU_SUCCESS) {
        switch (attribute) {
        case INF_CU_CAPABILITY_MAJOR:
            *value = d->major;
            break;
        case INF_CU_CAPABILITY_MINOR:
            *value = d->minor;
            break;
        default:
            rc = wrong_locked(__func__, "attribute", INF_CU_INVALID_VALUE);
        }
    }
    return end(rc);
}

result_t
cuDevicePrimaryCtxRetain(inf_cu_context_t *c, int device)
{
    BEGIN();
    device_t *d = device_locked(device);

    if (rc == INF_CU_SUCCESS && d == NULL) {
        rc = INF_CU_INVALID_DEVICE;
    }
    if (rc == INF_CU_SUCCESS && map_locked(d)) {
        d->retained++;
        *c = d;
    }
    return end(rc);
}

result_t
cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN();
    device_t *d = &fake.devices[device];

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
        && device != peer && device + peer != 5;    /* 2 and 3 can't         */
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

result_t
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && current() == NULL) {
        rc = wrong_locked(__func__, "no context", INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        *total_bytes = FAKE_CUDA_MEMORY;
        *free_bytes = FAKE_CUDA_MEMORY - used_locked(number_of(current()));
    }
    return end(rc);
}

result_t
cuMemAlloc_v2(inf_cu_ptr_t *base, size_t size)
{
    BEGIN();
    device_t *d = current();
    uintptr_t at;

    if (rc == INF_CU_SUCCESS && (d == NULL || size == 0)) {
        rc = wrong_locked(__func__, "no context, or no size",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS && (size > FAKE_CUDA_MEMORY
        || used_locked(number_of(d)) > FAKE_CUDA_MEMORY - size
        || !place_locked(d, size, &at)))
    {
        rc = INF_CU_OUT_OF_MEMORY;
    }
    if (rc == INF_CU_SUCCESS) {
        add_locked(&(block_t) { .device = number_of(d), .base = at,
            .size = size, .bytes = d->bytes + (at - (uintptr_t) d->window) });
        memset(d->bytes + (at - (uintptr_t) d->window), 0xdd,
            size < 4096 ? size : 4096);
        *base = at;
    }
    return end(rc);
}

result_t
cuMemFree_v2(inf_cu_ptr_t base)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) base);

    if (b == NULL || b->device < 0 || b->alias || b->backing != NULL
        || current() == NULL)
    {
        return end(wrong_locked(__func__, "no such memory, or no context",
            INF_CU_INVALID_VALUE));
    }
    b->live = false;
    return end(rc);
}

result_t
cuMemHostAlloc(void **base, size_t size, unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || flags != INF_CU_HOST_PORTABLE))
    {
        rc = wrong_locked(__func__, "no context, or flags",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        void *p = size > FAKE_CUDA_MEMORY ? MAP_FAILED : mmap(NULL, size,
            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
            | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            return end(INF_CU_OUT_OF_MEMORY);
        }
        add_locked(&(block_t) { .device = -1, .base = (uintptr_t) p,
            .size = size, .bytes = p });
        *base = p;
    }
    return end(rc);
}

result_t
cuMemFreeHost(void *base)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) base);

    if (b == NULL || b->device >= 0 || b->registered) {
        return end(wrong_locked(__func__, "no such memory",
            INF_CU_INVALID_VALUE));
    }
    munmap(base, b->size);
    b->live = false;
    return end(rc);
}

result_t
cuMemHostRegister_v2(void *base, size_t size, unsigned f)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || f != INF_CU_HOST_PORTABLE || size == 0
        || find_locked((uintptr_t) base, 1) != NULL))
    {
        rc = wrong_locked(__func__, "no context, flags, or pinned already",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        add_locked(&(block_t) { .device = -1, .base = (uintptr_t) base,
            .size = size, .bytes = base, .registered = true });
    }
    return end(rc);
}

result_t
cuMemHostUnregister(void *base)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) base);

    if (b == NULL || !b->registered) {
        return end(wrong_locked(__func__, "not registered",
            INF_CU_INVALID_VALUE));
    }
    b->live = false;
    return end(rc);
}

result_t
cuIpcGetMemHandle(inf_cu_ipc_t *handle, inf_cu_ptr_t base)
{
    BEGIN();
    const block_t *b = find_base_locked((uintptr_t) base);

    if (rc == INF_CU_SUCCESS && (b == NULL || b->device < 0)) {
        rc = INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        const handle_t h = {
            .magic = "fakeipc",
            .device = b->device,
            .pid = (int) getpid(),
            .offset = b->base - (uintptr_t) fake.devices[b->device].window,
            .size = b->size
        };
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &h, sizeof(h));
    }
    return end(rc);
}

/* Unlike the real one, also where the handle was made: there is no other
   process's GPU memory to open.  A handle of process 0 is good in any. */
result_t
cuIpcOpenMemHandle_v2(inf_cu_ptr_t *base, inf_cu_ipc_t handle, unsigned flags)
{
    const char *gate = getenv("FAKE_CUDA_IPC_GATE");
    while (gate != NULL && access(gate, F_OK) == 0) {
        usleep(1000);
    }

    BEGIN();
    handle_t h;

    memcpy(&h, &handle, sizeof(h));
    if (rc == INF_CU_SUCCESS && (memcmp(h.magic, "fakeipc", 8) != 0
        || (h.pid != 0 && h.pid != (int) getpid()) || device_locked(h.device) == NULL
        || current() != &fake.devices[h.device]
        || flags != INF_CU_IPC_LAZY_PEER))
    {
        rc = INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        void *window = mmap(NULL, h.size, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert(window != MAP_FAILED);
        add_locked(&(block_t) { .device = h.device, .alias = true,
            .base = (uintptr_t) window, .size = h.size,
            .bytes = fake.devices[h.device].bytes + h.offset });
        *base = (inf_cu_ptr_t) (uintptr_t) window;
    }
    return end(rc);
}

result_t
cuMemGetAddressRange_v2(inf_cu_ptr_t *base, size_t *size, inf_cu_ptr_t at)
{
    BEGIN();
    const block_t *b = find_locked((uintptr_t) at, 1);

    if (rc == INF_CU_SUCCESS && (b == NULL || b->device < 0)) {
        rc = INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        *base = (inf_cu_ptr_t) b->base;
        *size = b->size;
    }
    return end(rc);
}

result_t
cuIpcCloseMemHandle(inf_cu_ptr_t base)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) base);

    if (b == NULL || !b->alias) {
        return end(wrong_locked(__func__, "not opened",
            INF_CU_INVALID_VALUE));
    }
    munmap((void *) (uintptr_t) base, b->size);
    b->live = false;
    return end(rc);
}

