/*
 * batch_strategy.h - a plug-in that decides which requests share a batch; set
 *                    by abi.
 *
 * Owner    The model owns its strategy; close frees it.
 * Thread   begin, include, end: one thread at a time, no lock held.
 * Units    none.
 * Errors   The plug-in's errors; the caller logs them.
 * Route    dynamic batcher -> [batch strategy] -> plug-in.
 */

#ifndef INF_SCHED_BATCH_STRATEGY_H
#define INF_SCHED_BATCH_STRATEGY_H

#include <stdbool.h>

#include "core/tensor/request.h"

typedef struct inf_batch_strategy_s inf_batch_strategy_t;

typedef struct {
    /* Begins a batch; *batch (may stay NULL) is passed to the next two. */
    inf_err_t *(*begin)(inf_batch_strategy_t *s, void **batch);

    /* Sets *joins: whether req joins the batch; false closes the batch. */
    inf_err_t *(*include)(inf_batch_strategy_t *s, void *batch,
        inf_request_t *req, bool *joins);

    /* Ends a batch that was sent or dropped. */
    inf_err_t *(*end)(inf_batch_strategy_t *s, void *batch);
} inf_batch_strategy_ops_t;

struct inf_batch_strategy_s {
    const inf_batch_strategy_ops_t *ops;
};

#endif /* INF_SCHED_BATCH_STRATEGY_H */
