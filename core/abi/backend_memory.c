/* backend_memory.c - the memory manager's functions for backends. */

#include "core/abi/objects.h"

static inf_memory_t *manager_of(TRITONBACKEND_MemoryManager *manager);

TRITONSERVER_Error *
TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_MemoryManager **manager)
{
    (void) backend;
    *manager = inf_abi_as_memory(inf_memory_shared());
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager,
    void **buffer, const TRITONSERVER_MemoryType memory_type,
    const int64_t memory_type_id, const uint64_t byte_size)
{
    return inf_memory_alloc(manager_of(manager),
        (inf_memory_type_t) memory_type, memory_type_id, byte_size, buffer);
}

TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager,
    void *buffer, const TRITONSERVER_MemoryType memory_type,
    const int64_t memory_type_id)
{
    return inf_memory_release(manager_of(manager), buffer,
        (inf_memory_type_t) memory_type, memory_type_id);
}

/* The process has one manager; a backend may pass NULL. */
static inf_memory_t *
manager_of(TRITONBACKEND_MemoryManager *manager)
{
    return manager != NULL ? inf_as_memory(manager) : inf_memory_shared();
}
