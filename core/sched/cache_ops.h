/*
 * cache_ops.h - what the response cache asks of a cache; abi fills it in.
 *
 * Owner    The table is static; the cache belongs to whoever opened it and
 *          outlives every model that uses it.
 * Thread   lookup, insert, counts: any, many at once, no lock held.
 * Units    ns, bytes.
 * Errors   insert: ALREADY_EXISTS says that the key is there.  Anything else
 *          is the cache's trouble.
 * Route    response cache -> [cache operations] -> abi -> plug-in
 */

#ifndef INF_SCHED_CACHE_OPS_H
#define INF_SCHED_CACHE_OPS_H

#include "core/tensor/response.h"

/* Counters of the built-in cache; an insertion that failed is not counted. */
typedef struct {
    uint64_t limit;             /* bytes                                     */
    uint64_t used;
    uint64_t entries;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    uint64_t lookup_ns;
    uint64_t insertion_ns;
} inf_cache_counts_t;

/* The caller sets start_ns, the operation end_ns: the clock is read once. */
typedef struct {
    uint64_t start_ns;
    uint64_t end_ns;
} inf_cache_span_t;

typedef struct {
    /* A hit makes *out, a response of factory, filled but not sent; a miss
       makes it NULL and is no error. */
    inf_err_t *(*lookup)(void *cache, const char *key, inf_factory_t *factory,
        inf_response_t **out, inf_cache_span_t *span);

    inf_err_t *(*insert)(void *cache, const char *key,
        const inf_response_t *response, inf_cache_span_t *span);

    /* false: this cache does not say. */
    bool (*counts)(void *cache, inf_cache_counts_t *out);
} inf_cache_ops_t;

#endif /* INF_SCHED_CACHE_OPS_H */
