/*
 * cache_ops.h - functions to open a cache, and its functions for the response
 *               cache; set by abi.
 *
 * Owner    The table is static; the cache belongs to its opener and outlives
 *          all models that use it.
 * Thread   lookup, insert, counts: any number of threads, no lock held.
 * Units    ns, bytes.
 * Errors   insert: ALREADY_EXISTS: the key is present.  Otherwise the cache's
 *          error.
 * Route    response cache -> [cache operations] -> abi -> plug-in
 */

#ifndef INF_CACHE_CACHE_OPS_H
#define INF_CACHE_CACHE_OPS_H

#include "core/tensor/response.h"

/* Counters of the built-in cache; failed insertions are not counted. */
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

/* The caller sets start_ns, the operation end_ns, so that the clock is read
   once for each. */
typedef struct {
    uint64_t start_ns;
    uint64_t end_ns;
} inf_cache_span_t;

typedef struct {
    /* A hit sets *out to a response of factory, filled but not sent; a miss
       sets it to NULL and is no error. */
    inf_err_t *(*lookup)(void *cache, const char *key, inf_factory_t *factory,
        inf_response_t **out, inf_cache_span_t *span);

    inf_err_t *(*insert)(void *cache, const char *key,
        const inf_response_t *response, inf_cache_span_t *span);

    /* false: the cache has no counters. */
    bool (*counts)(void *cache, inf_cache_counts_t *out);
} inf_cache_ops_t;

/* An open cache: a library, or the built-in one. */
typedef struct inf_cache_plugin_s inf_cache_plugin_t;

typedef struct {
    const char        *name;
    const char        *config;          /* JSON, passed on unparsed          */
    const char *const *dirs;
    size_t             dir_count;
} inf_cache_spec_t;

typedef struct {
    inf_err_t *(*open)(const inf_cache_spec_t *spec, inf_cache_plugin_t **out);

    /* Checks whether it can be opened, without loading a library. */
    inf_err_t *(*check)(const inf_cache_spec_t *spec);

    /* plugin may be NULL. */
    void (*close)(inf_cache_plugin_t *plugin);

    /* Whether it is the built-in cache, which never waits. */
    bool (*is_builtin)(const inf_cache_plugin_t *plugin);

    const inf_cache_ops_t *ops;         /* the first argument is the plug-in */
} inf_cache_opener_t;

#endif /* INF_CACHE_CACHE_OPS_H */
