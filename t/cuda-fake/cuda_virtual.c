/* cuda_virtual.c - ranges of addresses, and memory that is put behind them. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inside.h"

static bool
is_allocation(const inf_cu_allocation_t *what)
{
    return what->type == INF_CU_ALLOCATION_PINNED && what->handle_types == 0
        && what->where.type == INF_CU_LOCATION_DEVICE
        && device_locked(what->where.id) != NULL;
}

result_t
cuMemGetAllocationGranularity(size_t *granularity,
    const inf_cu_allocation_t *what, int option)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (!is_allocation(what)
        || option != INF_CU_GRANULARITY_LEAST))
    {
        rc = wrong_locked(__func__, "arguments", INF_CU_INVALID_VALUE);
    }
    *granularity = FAKE_CUDA_GRANULE;
    return end(rc);
}

result_t
cuMemAddressReserve(inf_cu_ptr_t *base, size_t size, size_t alignment,
    inf_cu_ptr_t at, unsigned long long flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (size == 0 || size % FAKE_CUDA_GRANULE != 0
        || alignment != 0 || at != 0 || flags != 0))
    {
        rc = wrong_locked(__func__, "arguments", INF_CU_INVALID_VALUE);
    }
    for (int i = 0; rc == INF_CU_SUCCESS; i++) {
        assert(i < RESERVES);
        reserve_t *r = &fake.reserves[i];
        if (r->live) {
            continue;
        }

        void *window = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS
            | MAP_NORESERVE, -1, 0);
        if (window == MAP_FAILED) {
            rc = INF_CU_OUT_OF_MEMORY;
            break;
        }
        *r = (reserve_t) { true, (uintptr_t) window, size, mmap(NULL, size,
            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
            | MAP_NORESERVE, -1, 0) };
        assert(r->bytes != MAP_FAILED);
        *base = (inf_cu_ptr_t) r->base;
        break;
    }
    return end(rc);
}

/* The range that all of these addresses are in. */
static reserve_t *
range_locked(inf_cu_ptr_t at, size_t size)
{
    for (int i = 0; i < RESERVES; i++) {
        reserve_t *r = &fake.reserves[i];
        if (r->live && at >= r->base && at - r->base <= r->size
            && size <= r->size - (at - r->base))
        {
            return r;
        }
    }
    return NULL;
}

result_t
cuMemAddressFree(inf_cu_ptr_t base, size_t size)
{
    BEGIN();
    reserve_t *r = range_locked(base, size);

    if (r == NULL || r->base != base || r->size != size) {
        return end(wrong_locked(__func__, "no such range",
            INF_CU_INVALID_VALUE));
    }
    for (size_t i = 0; i < fake.block_top; i++) {
        if (fake.blocks[i].live && fake.blocks[i].base >= base
            && fake.blocks[i].base < base + size)
        {
            wrong_locked(__func__, "memory is still mapped there", 0);
        }
    }
    munmap((void *) r->base, r->size);
    munmap(r->bytes, r->size);
    r->live = false;
    return end(rc);
}

result_t
cuMemCreate(inf_cu_handle_t *handle, size_t size,
    const inf_cu_allocation_t *what, unsigned long long flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (!is_allocation(what) || flags != 0
        || size == 0 || size % FAKE_CUDA_GRANULE != 0))
    {
        rc = wrong_locked(__func__, "arguments", INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS && (size > FAKE_CUDA_MEMORY
        || used_locked(what->where.id) > FAKE_CUDA_MEMORY - size))
    {
        rc = INF_CU_OUT_OF_MEMORY;
    }
    if (rc == INF_CU_SUCCESS) {
        backing_t *b = calloc(1, sizeof(*b));
        assert(b != NULL);
        *b = (backing_t) { what->where.id, size, 1 };
        fake.backings++;
        fake.backed[b->device] += size;
        *handle = (inf_cu_handle_t) (uintptr_t) b;
    }
    return end(rc);
}

static void
drop_backing_locked(backing_t *b)
{
    if (--b->refs == 0) {
        fake.backings--;
        fake.backed[b->device] -= b->size;
        free(b);
    }
}

result_t
cuMemRelease(inf_cu_handle_t handle)
{
    BEGIN();
    drop_backing_locked((backing_t *) (uintptr_t) handle);
    return end(rc);
}

result_t
cuMemMap(inf_cu_ptr_t at, size_t size, size_t offset, inf_cu_handle_t handle,
    unsigned long long flags)
{
    BEGIN();
    backing_t *b = (backing_t *) (uintptr_t) handle;
    const reserve_t *r = range_locked(at, size);

    if (rc == INF_CU_SUCCESS && (r == NULL || offset != 0
        || flags != 0 || size != b->size
        || find_locked((uintptr_t) at, 1) != NULL))
    {
        rc = wrong_locked(__func__, "arguments", INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        char *bytes = r->bytes + ((uintptr_t) at - r->base);

        b->refs++;
        memset(bytes, 0xdd, size);
        add_locked(&(block_t) { .device = b->device, .base = (uintptr_t) at,
            .size = size, .bytes = bytes, .backing = b });
    }
    return end(rc);
}

result_t
cuMemUnmap(inf_cu_ptr_t at, size_t size)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) at);

    if (b == NULL || b->backing == NULL || b->size != size) {
        return end(wrong_locked(__func__, "not mapped as one piece",
            INF_CU_INVALID_VALUE));
    }
    b->live = false;
    drop_backing_locked(b->backing);
    return end(rc);
}

result_t
cuMemSetAccess(inf_cu_ptr_t at, size_t size, const inf_cu_access_t *who,
    size_t count)
{
    BEGIN();
    block_t *b = find_base_locked((uintptr_t) at);

    if (rc == INF_CU_SUCCESS && (b == NULL || b->backing == NULL
        || b->size != size || count != 1
        || who->flags != INF_CU_ACCESS_BOTH
        || who->where.type != INF_CU_LOCATION_DEVICE
        || who->where.id != b->device))
    {
        rc = wrong_locked(__func__, "arguments", INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        b->reachable = true;
    }
    return end(rc);
}
