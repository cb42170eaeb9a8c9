/*
 * cache_run.h - the execution of a miss: the sink of its factory; its first
 *               response is passed to the waiting requests.
 *
 * Owner    The gate owns spare runs.  A run that has begun belongs to its
 *          factory, whose end returns it.
 * Thread   _locked: the gate's lock is held.  All else: any, no lock held.
 * Units    ns, bytes.
 * Errors   begin: the runner's.
 * Route    response cache -> [run] -> entrance; backend -> [run] -> the cache,
 *          waiting requests, the submitter's sink
 */

#ifndef INF_CACHE_CACHE_RUN_H
#define INF_CACHE_CACHE_RUN_H

#include "core/cache/response_cache_parts.h"

struct inf_cache_run_s {
    inf_cache_execution_t   execution;  /* gate's lock                       */
    inf_cache_run_t        *next;       /* on a list of spare runs           */
    inf_cached_model_t     *gate;
    const inf_sink_ops_t   *sink;       /* the submitter's                   */
    void                   *userp;
    inf_factory_t          *factory;
    inf_cache_key_t         key;
    uint64_t                lookup_ns;
    _Atomic bool            settled;    /* acq_rel: the first response was
                                           sent                              */
};

/* A run that is not listed, whose key the caller sets; NULL: out of memory. */
inf_cache_run_t *inf_cache_run_take(inf_cached_model_t *gate);

/* Takes a spare run; NULL: none. */
static inline inf_cache_run_t *inf_cache_run_pop_locked(
    inf_cached_model_t *gate) INF_NEEDS(gate->lock);

/* Makes a run spare that has not begun. */
static inline void inf_cache_run_keep_locked(inf_cached_model_t *gate,
    inf_cache_run_t *run) INF_NEEDS(gate->lock);

/* Submits req, whose execution is the run's, to the runner.  Takes run; on
   error the caller owns req, and each waiting request is executed by itself. */
INF_CHECK inf_err_t *inf_cache_run_begin(inf_cache_run_t *run,
    inf_request_t *req);

/* Frees all spare runs; none has begun. */
void inf_cache_runs_free(inf_cached_model_t *gate);

static inline inf_cache_run_t *
inf_cache_run_pop_locked(inf_cached_model_t *gate)
{
    inf_cache_run_t *run = gate->spare;
    if (run == NULL) {
        run = atomic_exchange_explicit(&gate->returned, NULL,
            memory_order_acquire);
    }
    if (run != NULL) {
        gate->spare = run->next;
        run->next = NULL;
    }
    return run;
}

static inline void
inf_cache_run_keep_locked(inf_cached_model_t *gate, inf_cache_run_t *run)
{
    run->next = gate->spare;
    gate->spare = run;
}

#endif /* INF_CACHE_CACHE_RUN_H */
