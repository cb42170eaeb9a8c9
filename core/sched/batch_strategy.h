/*
 * batch_strategy.h - a plug-in's word on which requests share a batch; abi
 *                    fills it in.
 *
 * Owner    The model owns its strategy; close ends it.
 * Thread   begin, include, end: one thread at a time, no lock held.
 * Units    none.
 * Errors   what the plug-in returned; the caller logs it.
 * Route    dynamic batcher -> [batch strategy] -> plug-in.
 */

#ifndef INF_SCHED_BATCH_STRATEGY_H
#define INF_SCHED_BATCH_STRATEGY_H

#include <stdbool.h>

#include "core/tensor/request.h"

typedef struct inf_batch_strategy_s inf_batch_strategy_t;

typedef struct {
    /* A new batch; *batch (may stay NULL) goes to the next two. */
    inf_err_t *(*begin)(inf_batch_strategy_t *s, void **batch);

    /* Whether req joins; false closes the batch. */
    inf_err_t *(*include)(inf_batch_strategy_t *s, void *batch,
        inf_request_t *req, bool *joins);

    /* The batch is sent or given up. */
    inf_err_t *(*end)(inf_batch_strategy_t *s, void *batch);
} inf_batch_strategy_ops_t;

struct inf_batch_strategy_s {
    const inf_batch_strategy_ops_t *ops;
};

#endif /* INF_SCHED_BATCH_STRATEGY_H */
