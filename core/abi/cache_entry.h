/*
 * cache_entry.h - arguments of a cache call: the list of buffers, and the
 *                 allocator that copies them.
 *
 * Owner    The core creates both for one call and ends them after it; buffers
 *          belong to the cache.
 * Thread   the thread of the call.
 * Units    bytes.
 * Errors   INVALID_ARG: the cache passed invalid buffers.  INTERNAL: the data
 *          does not fit.
 * Route    cache plug-in -> TRITONCACHE_* -> [cache entry] -> packed response
 */

#ifndef INF_ABI_CACHE_ENTRY_H
#define INF_ABI_CACHE_ENTRY_H

#include "core/abi/objects.h"
#include "triton/core/tritoncache.h"

typedef struct {
    void                    *base;
    size_t                   size;
    TRITONSERVER_MemoryType  memory_type;
    int64_t                  memory_id;
} inf_cache_buffer_t;

struct TRITONCACHE_CacheEntry {
    inf_cache_buffer_t *buffers;
    size_t              count;
    size_t              cap;
    inf_cache_buffer_t  one;            /* the usual single buffer           */
};

/* One response, being inserted or looked up. */
struct TRITONCACHE_Allocator {
    const inf_response_t *from;         /* insert; NULL: lookup              */
    inf_factory_t        *factory;      /* lookup: creates the response      */
    inf_response_t       *response;     /* lookup: created by Copy           */
    bool                  copied;
    bool                  cold;         /* insert: see packed_response.h     */
};

/* init: uses the caller's memory, sets only the list; fini frees the list, not
   the buffers' memory. */
void inf_cache_entry_init(TRITONCACHE_CacheEntry *entry);
void inf_cache_entry_fini(TRITONCACHE_CacheEntry *entry);

/* Appends a copy of buffer to the list. */
INF_CHECK inf_err_t *inf_cache_entry_add(TRITONCACHE_CacheEntry *entry,
    const inf_cache_buffer_t *buffer);

#endif /* INF_ABI_CACHE_ENTRY_H */
