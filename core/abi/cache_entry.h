/*
 * cache_entry.h - what a cache is given with each call: the list of buffers,
 *                 and the one who copies them.
 *
 * Owner    The core makes both for one call and ends them after it; buffers
 *          stay the cache's.
 * Thread   the thread of the call.
 * Units    bytes.
 * Errors   INVALID_ARG: what a cache handed over can't be.  INTERNAL: it does
 *          not fit.
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

/* One response, on its way into the cache or out of it. */
struct TRITONCACHE_Allocator {
    const inf_response_t *from;         /* insert; NULL: lookup              */
    inf_factory_t        *factory;      /* lookup: makes the response        */
    inf_response_t       *response;     /* lookup: what Copy made            */
    bool                  copied;
    bool                  cold;         /* insert: see packed_response.h     */
};

/* The caller's memory and the other fields; fini frees the list of buffers,
   not what they point at. */
void inf_cache_entry_init(TRITONCACHE_CacheEntry *entry);
void inf_cache_entry_fini(TRITONCACHE_CacheEntry *entry);

/* A place for size bytes that the cache is to fill in. */
INF_CHECK inf_err_t *inf_cache_entry_add(TRITONCACHE_CacheEntry *entry,
    const inf_cache_buffer_t *buffer);

#endif /* INF_ABI_CACHE_ENTRY_H */
