/*
 * local_cache.h - the built-in response cache in the process's memory, bounded
 *                 in bytes; the least recently used item is evicted first.
 *
 * Owner    The caller of initialize calls finalize, when no call is running.
 * Thread   any number of threads.  A shard's lock is held for list operations
 *          only, never while bytes are copied.
 * Units    bytes, ns.
 * Errors   initialize: INVALID_ARG, size missing or too small.  insert:
 *          INVALID_ARG, larger than the cache; ALREADY_EXISTS.
 * Route    cache plug-in -> [local cache], through the interface of a cache
 *          library
 *
 * Keys are distributed over shards, each with its own lock and order of use;
 * the limit is for all shards together.  The least recently used item of all
 * shards is evicted first; concurrent evictions may deviate from that order.
 * The charge of an item includes its key and its record.
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

/* The functions below take a cache from inf_local_cache.initialize. */

/* lookup and insert for the core: span gets the times, and a miss is *hit false
   without an error. */
INF_CHECK inf_err_t *inf_local_cache_lookup(TRITONCACHE_Cache *cache,
    const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, inf_cache_span_t *span, bool *hit);
INF_CHECK inf_err_t *inf_local_cache_insert(TRITONCACHE_Cache *cache,
    const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, inf_cache_span_t *span);

/* Adds up all shards; the shards are read one after another. */
void inf_local_cache_counts(TRITONCACHE_Cache *cache,
    inf_cache_counts_t *out);

#endif /* INF_ABI_LOCAL_CACHE_H */
