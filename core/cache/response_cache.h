/*
 * response_cache.h - answers repeated requests from a cache: the gate between
 *                    a submit and the runner of a model with a response cache.
 *
 * Owner    The server owns the cache, which outlives its models.  A model owns
 *          its cached model, which owns requests that wait at the gate.
 * Thread   submit, cancel: any, no lock held.  A response is stored by the
 *          thread that sends it, before it goes on.
 * Units    ns, bytes.
 * Errors   submit: the runner's.  A cache's own errors are logged, at most one
 *          line a second, and the request is served without it.
 * Route    service -> [response cache] -> runner -> backend -> [response
 *          cache, as the factory's sink] -> sink
 *
 * Hashing and copying are O(bytes), and a plug-in may wait for a network, so a
 * nonblocking submitter (the intake) looks up only requests with few bytes, in
 * the built-in cache; other lookups are passed to threads of the cache.  A
 * program's own thread always does the lookup itself.
 *
 * A hit is answered at once, regardless of queue, priority and order.  A miss
 * is executed; identical requests meanwhile wait for its response.  If the
 * first is cancelled or times out in the queue, the next one is executed and
 * the others keep waiting; if it fails, each is executed by itself.  Only
 * successes are stored.  A request that waits here, for a lookup or another
 * request, times out as in the model's queue, and keeps its age when it is
 * passed on.
 */

#ifndef INF_CACHE_RESPONSE_CACHE_H
#define INF_CACHE_RESPONSE_CACHE_H

#include "core/cache/cache_key.h"
#include "core/cache/cache_ops.h"
#include "core/sched/gate.h"
#include "core/sched/timekeeper.h"
#include "core/tensor/request.h"

typedef struct inf_response_cache_s inf_response_cache_t;

typedef struct {
    const inf_cache_ops_t *ops;
    void                  *cache;
    bool                   quick;   /* lookups never wait                    */
    const void            *secret;  /* of the keys, the same for servers that
                                       share the cache; NULL: random         */
    size_t                 secret_len;
} inf_response_cache_options_t;

/* The options' cache stays the caller's and outlives the result. */
INF_CHECK inf_err_t *inf_response_cache_new(
    const inf_response_cache_options_t *options, inf_response_cache_t **out);

/* Frees a cache that no model uses; may be NULL. */
void inf_response_cache_free(inf_response_cache_t *cache);

/* false: the cache has no counters. */
bool inf_response_cache_counts(const inf_response_cache_t *cache,
    inf_cache_counts_t *out);

/* Creates the gate of a model that is being loaded and has its runner: requests
   wait there for a lookup, or for an identical request.  timekeeper NULL:
   requests do not time out here. */
INF_CHECK inf_err_t *inf_cached_model_new(inf_response_cache_t *cache,
    inf_model_t *model, inf_timekeeper_t *timekeeper, inf_gate_t **out);

/* Frees a gate of inf_cached_model_new at which no request waits; may be
   NULL. */
void inf_cached_model_free(inf_gate_t *gate);

#endif /* INF_CACHE_RESPONSE_CACHE_H */
