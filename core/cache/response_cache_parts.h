/*
 * response_cache_parts.h - declarations shared by response_cache.c and
 *                          cache_run.c: the cache, and the gate of a model.
 *
 * Owner    As response_cache.h says; the gate owns its runs, spare or not.
 * Thread   as each field says.
 * Units    ns, bytes.
 * Errors   as response_cache.h.
 * Route    response cache -> [parts] <- cache run
 */

#ifndef INF_CACHE_RESPONSE_CACHE_PARTS_H
#define INF_CACHE_RESPONSE_CACHE_PARTS_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/cache/cache_executions.h"
#include "core/cache/response_cache.h"

#define INF_CACHE_SLOW_THREADS 4u   /* lookups that may wait                 */

typedef struct inf_cache_run_s    inf_cache_run_t;
typedef struct inf_cached_model_s inf_cached_model_t;

struct inf_response_cache_s {
    const inf_cache_ops_t *ops;         /* set in new(), then constant       */
    void                  *cache;
    bool                   quick;
    inf_cache_hash_t      *hash;        /* keyed with the secret             */
    bool                   shared;      /* secret is known outside           */
    _Atomic uint64_t       loads;       /* seq_cst: cached models created so
                                           far                               */
    _Atomic uint64_t       log_next_ns; /* relaxed: earliest next log line   */
    _Atomic uint64_t       unlogged;    /* relaxed: errors since             */

    inf_lock_t             lock;        /* rank 27; guards the next two      */
    inf_link_t             models;      /* with requests to look up          */
    bool                   stopping;
    inf_cond_t             work;        /* models, stopping                  */
    pthread_t              threads[INF_CACHE_SLOW_THREADS]; /* new, free     */
    uint32_t               thread_count;                    /* set in new()  */
};

struct inf_cached_model_s {
    inf_gate_t             gate;        /* set in new(), then constant       */
    inf_response_cache_t  *cache;
    inf_model_t           *model;
    inf_buf_t              key;         /* prefix of its keys                */
    _Atomic uint64_t       largest;     /* relaxed: largest stored response  */

    inf_link_t             link;        /* in cache->models; cache's lock    */

    inf_timekeeper_t      *timekeeper;  /* NULL: no timeouts                 */
    inf_timer_t            timer;       /* the timekeeper's lock             */

    inf_lock_t             lock;        /* rank 26; guards the next seven    */
    inf_cache_executions_t executions;
    inf_link_t             lookups;     /* requests for the cache's threads  */
    inf_heap_t             timeouts;    /* of requests waiting here          */
    uint64_t               armed_ns;    /* time of the timekeeper's next call */
    uint32_t               waiting;     /* requests waiting here             */
    bool                   scheduled;   /* in cache->models or with a thread,
                                           with a reference of the model     */
    inf_cache_run_t       *spare;
    _Atomic(inf_cache_run_t *) returned;    /* release push, acquire take    */
};

/* Notes that req no longer waits here. */
static inline void inf_cached_unwatch_locked(inf_cached_model_t *gate,
    inf_request_t *req) INF_NEEDS(gate->lock);

static inline void
inf_cached_unwatch_locked(inf_cached_model_t *gate, inf_request_t *req)
{
    gate->waiting--;
    inf_heap_remove(&gate->timeouts, &req->timeout);
}

/* Answers req by a hit; start and took are those of the lookup, or of the copy
   of a response that req waited for.  Takes req and response. */
void inf_cached_answer(inf_request_t *req, inf_response_t *response,
    uint64_t start_ns, uint64_t took_ns);

/* Takes both. */
void inf_cached_answer_error(inf_request_t *req, inf_err_t *err);

/* Adds a miss and the time of its lookup to the model's statistics. */
void inf_cached_count_miss(inf_model_t *model, uint64_t took_ns);

/* Logs an error of the cache, behind what, at a limited rate; takes err. */
void inf_cached_log_trouble(inf_cached_model_t *gate, inf_err_t *err,
    const char *what);

#endif /* INF_CACHE_RESPONSE_CACHE_PARTS_H */
