/*
 * response_cache.h - answers repeated requests from a cache: the gate between
 *                    a submit and the runner of a model with a response cache.
 *
 * Owner    The server owns the cache, which outlives all models.  A model owns
 *          its gate; the gate owns the requests that wait there.
 * Thread   submit, cancel: any, without a lock.  A response is stored on the
 *          thread that sends the response, before the response goes on.
 * Units    ns, bytes.
 * Errors   submit: the runner's.  Errors of a cache are logged, at most one
 *          line a second, and the request is executed without the cache.
 * Route    service -> [response cache] -> runner -> backend -> [response
 *          cache, as the factory's sink] -> sink
 *
 * Lookups: hashing and copying cost time in proportion to the bytes, and a
 * plug-in may wait for a network.  A nonblocking submitter (the intake) looks
 * up only requests of few bytes, in the built-in cache, and passes other
 * lookups to threads of the cache.  A program's own thread always looks up.
 *
 * A hit is answered at once, regardless of queue, priority and order.
 *
 * A miss is executed, and identical requests wait for its response.  When the
 * executed request is cancelled or times out in the queue, the next of them is
 * executed and the others wait on.  When the executed request fails, each of
 * them is executed by itself.  Only successes are stored.
 *
 * A request of a sequence of an ensemble is executed without the cache: its
 * response depends on earlier requests, and names the sequence.
 *
 * A request that waits here times out as in the model's queue.  The wait counts
 * as time in that queue after the request is passed on.
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

/* Creates the cache.  options->cache stays the caller's and outlives *out. */
INF_CHECK inf_err_t *inf_response_cache_new(
    const inf_response_cache_options_t *options, inf_response_cache_t **out);

/* Frees a cache that no model uses; may be NULL. */
void inf_response_cache_free(inf_response_cache_t *cache);

/* The counters of the cache; false: the cache has none. */
bool inf_response_cache_counts(const inf_response_cache_t *cache,
    inf_cache_counts_t *out);

/* Creates the gate of a model that is being loaded, after its runner.
   timekeeper NULL: requests do not time out at the gate. */
INF_CHECK inf_err_t *inf_cached_model_new(inf_response_cache_t *cache,
    inf_model_t *model, inf_timekeeper_t *timekeeper, inf_gate_t **out);

/* Frees the gate, at which no request waits; gate may be NULL. */
void inf_cached_model_free(inf_gate_t *gate);

#endif /* INF_CACHE_RESPONSE_CACHE_H */
