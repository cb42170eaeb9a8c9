/* api_allocator.c - response allocators: a client's callbacks for buffers of
   responses. */

#include "core/abi/api.h"

#include <stdlib.h>

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn)
{
    *allocator = NULL;
    if (alloc_fn == NULL || release_fn == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a response allocator needs"
            " an alloc and a release function");
    }

    TRITONSERVER_ResponseAllocator *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return inf_err_nomem();
    }

    a->alloc = alloc_fn;
    a->release = release_fn;
    a->start = start_fn;
    *allocator = a;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn)
{
    allocator->attributes = buffer_attributes_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorQueryFn_t query_fn)
{
    allocator->query = query_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator)
{
    free(allocator);
    return NULL;
}
