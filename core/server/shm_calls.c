#include "core/server/shm_calls.h"

#include "core/include/channel.h"

typedef Inference__SystemSharedMemoryStatusResponse__RegionsEntry
    system_entry_t;
typedef Inference__SystemSharedMemoryStatusResponse__RegionStatus
    system_row_t;
typedef Inference__CudaSharedMemoryStatusResponse__RegionsEntry cuda_entry_t;
typedef Inference__CudaSharedMemoryStatusResponse__RegionStatus cuda_row_t;

static inf_err_t *register_system(inf_shm_regions_t *set,
    const Inference__SystemSharedMemoryRegisterRequest *q);
static inf_err_t *register_cuda(inf_shm_regions_t *set,
    const Inference__CudaSharedMemoryRegisterRequest *q);
static inf_err_t *check_name(const char *name, const char *kind);

inf_err_t *
inf_shm_call(inf_shm_regions_t *set, uint16_t method,
    const ProtobufCMessage *m)
{
    const Inference__SystemSharedMemoryUnregisterRequest *system =
        (const void *) m;
    const Inference__CudaSharedMemoryUnregisterRequest *cuda =
        (const void *) m;

    switch (method) {
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        return register_system(set, (const void *) m);
    case INF_METHOD_CUDA_SHM_REGISTER:
        return register_cuda(set, (const void *) m);
    case INF_METHOD_SYSTEM_SHM_UNREGISTER:
        inf_shm_unregister(set, INF_SHM_SYSTEM, system->name);
        return NULL;
    case INF_METHOD_CUDA_SHM_UNREGISTER:
        inf_shm_unregister(set, INF_SHM_CUDA, cuda->name);
        return NULL;
    default:
        return inf_err_new(INF_ERR_INTERNAL,
            "method %u is not about shared memory", method);
    }
}

inf_err_t *
inf_shm_system_status(inf_shm_region_t *const *list, size_t count,
    inf_arena_t *arena, Inference__SystemSharedMemoryStatusResponse *r)
{
    inference__system_shared_memory_status_response__init(r);
    r->regions = inf_arena_calloc(arena, count + 1, sizeof(*r->regions));
    system_entry_t *entries = inf_arena_calloc(arena, count + 1,
        sizeof(*entries));
    system_row_t *rows = inf_arena_calloc(arena, count + 1, sizeof(*rows));
    if (r->regions == NULL || entries == NULL || rows == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        inference__system_shared_memory_status_response__region_status__init(
            &rows[i]);
        inference__system_shared_memory_status_response__regions_entry__init(
            &entries[i]);
        rows[i].name = list[i]->name;
        rows[i].key = list[i]->key;
        rows[i].offset = list[i]->offset;
        rows[i].byte_size = list[i]->byte_size;
        entries[i].key = list[i]->name;
        entries[i].value = &rows[i];
        r->regions[r->n_regions++] = &entries[i];
    }
    return NULL;
}

inf_err_t *
inf_shm_cuda_status(inf_shm_region_t *const *list, size_t count,
    inf_arena_t *arena, Inference__CudaSharedMemoryStatusResponse *r)
{
    inference__cuda_shared_memory_status_response__init(r);
    r->regions = inf_arena_calloc(arena, count + 1, sizeof(*r->regions));
    cuda_entry_t *entries = inf_arena_calloc(arena, count + 1,
        sizeof(*entries));
    cuda_row_t *rows = inf_arena_calloc(arena, count + 1, sizeof(*rows));
    if (r->regions == NULL || entries == NULL || rows == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        inference__cuda_shared_memory_status_response__region_status__init(
            &rows[i]);
        inference__cuda_shared_memory_status_response__regions_entry__init(
            &entries[i]);
        rows[i].name = list[i]->name;
        rows[i].device_id = (uint64_t) list[i]->device;
        rows[i].byte_size = list[i]->byte_size;
        entries[i].key = list[i]->name;
        entries[i].value = &rows[i];
        r->regions[r->n_regions++] = &entries[i];
    }
    return NULL;
}

static inf_err_t *
register_system(inf_shm_regions_t *set,
    const Inference__SystemSharedMemoryRegisterRequest *q)
{
    inf_err_t *err = check_name(q->name, "system");
    return err != NULL ? err : inf_shm_register_system(set, q->name, q->key,
        q->offset, q->byte_size);
}

static inf_err_t *
register_cuda(inf_shm_regions_t *set,
    const Inference__CudaSharedMemoryRegisterRequest *q)
{
    inf_err_t *err = check_name(q->name, "cuda");
    return err != NULL ? err : inf_shm_register_cuda(set, q->name,
        inf_slice((const char *) q->raw_handle.data, q->raw_handle.len),
        q->device_id, q->byte_size);
}

static inf_err_t *
check_name(const char *name, const char *kind)
{
    return name[0] != '\0' ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "'region name' is necessary to register %s shared memory region",
        kind);
}
