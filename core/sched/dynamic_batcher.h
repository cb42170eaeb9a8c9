/*
 * dynamic_batcher.h - joins queued requests into payloads by preferred sizes, a
 *                     delay, priorities and timeouts.
 *
 * Owner    The model's runner owns it and the requests queued in it; a batch
 *          strategy is the model's.
 * Thread   any, with the runner's lock held; ask: without it, one thread.
 * Units    ns; sizes are rows of the batch dimension.
 * Errors   UNAVAILABLE: the queue is full.
 * Route    runner -> [dynamic batcher] -> payload.
 *
 * The batcher scans the queue, request by request, and remembers its position
 * and the largest batch so far; a new request is scanned alone.  The scan
 * starts again when a scanned request leaves, or when a request is inserted
 * before its position.
 */

#ifndef INF_SCHED_DYNAMIC_BATCHER_H
#define INF_SCHED_DYNAMIC_BATCHER_H

#include "core/sched/batch_strategy.h"
#include "core/sched/policy.h"
#include "core/sched/queue.h"

typedef struct {
    inf_queue_options_t         queue;
    const uint32_t             *preferred;  /* copied; empty: only limit     */
    uint32_t                    preferred_count;
    uint32_t                    limit;      /* 0: one request per batch      */
    uint64_t                    delay_us;
    const inf_config_tensors_t *tensors;    /* NULL: no comparison           */
    inf_batch_strategy_t       *strategy;   /* or NULL                       */
    uint32_t                    hold;       /* queued requests before the first
                                               batch; applies once           */
} inf_dynamic_batcher_options_t;

/* Copies options and preferred sizes; tensors and strategy outlive the
   batcher. */
INF_CHECK inf_err_t *inf_dynamic_batcher_new(
    const inf_dynamic_batcher_options_t *options, inf_policy_t **out);

/* Creates a batcher from the model's configuration. */
INF_CHECK inf_err_t *inf_dynamic_batcher_of(inf_model_t *model,
    inf_policy_t **out);

#endif /* INF_SCHED_DYNAMIC_BATCHER_H */
