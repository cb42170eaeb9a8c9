/*
 * local_cache.h - the built-in response cache: this process's memory, a bound
 *                 on bytes, least recently used first out.
 *
 * Owner    The caller of initialize finalizes it; no call is running then.
 * Thread   any, many at once.  A shard's lock is held for the list work only,
 *          never while bytes are copied.
 * Units    bytes, ns.
 * Errors   initialize: INVALID_ARG, no size or one that is too small.
 *          insert: INVALID_ARG, larger than the cache; ALREADY_EXISTS.
 * Route    cache plug-in -> [local cache], through the interface of a cache
 *          library
 *
 * Keys are dealt to shards, each with its own lock and order of use; the
 * bound is one for all.  The item longest unused of all shards is evicted
 * first, exactly so while one thread is at it.  An item is charged with its
 * key and its own record too.
 */

#ifndef INF_ABI_LOCAL_CACHE_H
#define INF_ABI_LOCAL_CACHE_H

#include "core/cache/cache_ops.h"
#include "triton/core/tritoncache.h"

/* The entry points of a cache library. */
typedef struct {
    TRITONSERVER_Error *(*initialize)(TRITONCACHE_Cache **cache,
        const char *config);
    TRITONSERVER_Error *(*finalize)(TRITONCACHE_Cache *cache);
    TRITONSERVER_Error *(*insert)(TRITONCACHE_Cache *cache, const char *key,
        TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
    TRITONSERVER_Error *(*lookup)(TRITONCACHE_Cache *cache, const char *key,
        TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
} inf_cache_entry_points_t;

extern const inf_cache_entry_points_t inf_local_cache;

/* These are of a cache that inf_local_cache.initialize made. */

/* Its lookup and insert for the core: the time is span's, and a miss is *hit
   false and no error. */
INF_CHECK inf_err_t *inf_local_cache_lookup(TRITONCACHE_Cache *cache,
    const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, inf_cache_span_t *span, bool *hit);
INF_CHECK inf_err_t *inf_local_cache_insert(TRITONCACHE_Cache *cache,
    const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, inf_cache_span_t *span);

/* Adds up all shards; the sums are of slightly different moments. */
void inf_local_cache_counts(TRITONCACHE_Cache *cache,
    inf_cache_counts_t *out);

#endif /* INF_ABI_LOCAL_CACHE_H */
