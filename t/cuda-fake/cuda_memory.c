/* cuda_memory.c - memory of devices and of the host, and handles to it. */

#include "inside.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void
map_locked(device_t *d)
{
    if (d->window != NULL) {
        return;
    }

    d->window = mmap(NULL, FAKE_CUDA_MEMORY, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->file = memfd_create("fake-gpu", MFD_CLOEXEC);
    assert(d->file != -1 && ftruncate(d->file, FAKE_CUDA_MEMORY) == 0);
    d->bytes = mmap(NULL, FAKE_CUDA_MEMORY, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, d->file, 0);
    assert(d->window != MAP_FAILED && d->bytes != MAP_FAILED);
}

block_t *
find_locked(uintptr_t at, size_t size)
{
    for (size_t i = 0; i < fake.block_top; i++) {
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
    for (size_t i = 0; i < fake.block_top; i++) {
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
            fake.block_top = i < fake.block_top ? fake.block_top : i + 1;
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

    for (size_t i = 0; i < fake.block_top; i++) {
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

    for (size_t i = 0; i < fake.block_top; i++) {
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
    size_t bytes_left;

    return fake_cuda_range(address, &bytes_left);
}

/* Pieces that are mapped one after the other are one memory. */
EXPORTED void *
fake_cuda_range(const void *address, size_t *bytes_left)
{
    uintptr_t at = (uintptr_t) address;

    pthread_mutex_lock(&fake_lock);
    const block_t *b = find_locked(at, 1);
    if (b == NULL) {
        b = find_locked(at, 0);
    }
    char *bytes = b == NULL || b->device < 0 ? NULL
        : b->bytes + (at - b->base);
    uintptr_t until = bytes != NULL ? b->base + b->size : at;
    while (bytes != NULL && b->backing != NULL
        && (b = find_base_locked(until)) != NULL)
    {
        until = b->base + b->size;
    }
    *bytes_left = until - at;
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

    if (rc == INF_CU_SUCCESS && forbidden_locked(__func__)) {
        rc = CAPTURE_UNSUPPORTED;
    }
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

    fake.report = true;
    if (b == NULL || b->device < 0 || b->alias || b->backing != NULL
        || current() == NULL)
    {
        return end(wrong_locked(__func__, "no such memory, or no context",
            INF_CU_INVALID_VALUE));
    }
    if (forbidden_locked(__func__)) {
        return end(CAPTURE_UNSUPPORTED);
    }
    b->live = false;
    return end(rc);
}

result_t
cuMemHostAlloc(void **base, size_t size, unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && forbidden_locked(__func__)) {
        rc = CAPTURE_UNSUPPORTED;
    }
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

    fake.report = true;
    if (b == NULL || b->device >= 0 || b->registered) {
        return end(wrong_locked(__func__, "no such memory",
            INF_CU_INVALID_VALUE));
    }
    munmap(base, b->size);
    b->live = false;
    return end(rc);
}

static bool
overlaps_locked(uintptr_t base, size_t size)
{
    for (size_t i = 0; i < fake.block_top; i++) {
        const block_t *b = &fake.blocks[i];
        if (b->live && base < b->base + b->size && b->base < base + size) {
            return true;
        }
    }
    return false;
}

/* Until there is no such file as the variable names. */
static void
wait_for(const char *variable)
{
    const char *gate = getenv(variable);

    while (gate != NULL && access(gate, F_OK) == 0) {
        usleep(1000);
    }
}

/* Pieces of memory may be registered beside each other, not one over another.
   Read-only where the device has that. */
result_t
cuMemHostRegister_v2(void *base, size_t size, unsigned f)
{
    wait_for("FAKE_CUDA_PIN_GATE");
    BEGIN();
    bool read_only = (f & HOST_READ_ONLY) != 0;

    if (rc == INF_CU_SUCCESS && forbidden_locked(__func__)) {
        rc = CAPTURE_UNSUPPORTED;
    }
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || (f & ~HOST_READ_ONLY) != INF_CU_HOST_PORTABLE || size == 0
        || overlaps_locked((uintptr_t) base, size)))
    {
        rc = wrong_locked(__func__, "no context, flags, or pinned already",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS && read_only && current()->major < 8) {
        rc = NOT_SUPPORTED;
    }
    if (rc == INF_CU_SUCCESS) {
        add_locked(&(block_t) { .device = -1, .base = (uintptr_t) base,
            .size = size, .bytes = base, .registered = true,
            .read_only = read_only });
    }
    return end(rc);
}

result_t
cuMemHostUnregister(void *base)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) base);

    fake.report = true;
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
            .size = b->size,
            .file = fake.devices[b->device].file
        };
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &h, sizeof(h));
    }
    return end(rc);
}

/* Maps what another process has behind the handle; NULL: nothing. */
static char *
bytes_of_other(const handle_t *h)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->pid, h->file);
    int fd = h->file == 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    char *bytes = MAP_FAILED;
    if (fd != -1 && fstat(fd, &st) == 0 && st.st_size == FAKE_CUDA_MEMORY
        && h->offset <= FAKE_CUDA_MEMORY && h->size <= FAKE_CUDA_MEMORY
        - h->offset)
    {
        bytes = mmap(NULL, FAKE_CUDA_MEMORY, PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (fd != -1) {
        close(fd);
    }
    return bytes == MAP_FAILED ? NULL : bytes + h->offset;
}

/* Unlike the real one, also where the handle was made.  A handle of process 0
   is good in any. */
result_t
cuIpcOpenMemHandle_v2(inf_cu_ptr_t *base, inf_cu_ipc_t handle, unsigned flags)
{
    wait_for("FAKE_CUDA_IPC_GATE");
    BEGIN();
    handle_t h;

    memcpy(&h, &handle, sizeof(h));
    bool foreign = h.pid != 0 && h.pid != (int) getpid();
    char *bytes = NULL;

    if (rc == INF_CU_SUCCESS && (memcmp(h.magic, "fakeipc", 8) != 0
        || device_locked(h.device) == NULL
        || current() != &fake.devices[h.device]
        || flags != INF_CU_IPC_LAZY_PEER
        || (foreign && (bytes = bytes_of_other(&h)) == NULL)))
    {
        rc = INF_CU_INVALID_VALUE;
    }
    if (rc == INF_CU_SUCCESS) {
        void *window = mmap(NULL, h.size, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert(window != MAP_FAILED);
        add_locked(&(block_t) { .device = h.device, .alias = true,
            .base = (uintptr_t) window, .size = h.size,
            .start = foreign ? bytes - h.offset : NULL,
            .bytes = foreign ? bytes
                : fake.devices[h.device].bytes + h.offset });
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
    if (b->start != NULL) {
        munmap(b->start, FAKE_CUDA_MEMORY);
    }
    b->live = false;
    return end(rc);
}

