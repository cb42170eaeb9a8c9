/*
 * dynamic_batcher.h - joins queued requests into payloads: preferred sizes,
 *                     a delay to wait for company, priorities, timeouts.
 *
 * Owner    The model's runner owns it and the requests queued in it; a batch
 *          strategy is the model's.
 * Thread   any, with the runner's lock held; ask: without it, one thread.
 * Units    ns; sizes are rows of the batch dimension.
 * Errors   UNAVAILABLE: the queue is full.
 * Route    runner -> [dynamic batcher] -> payload.
 *
 * The batcher looks along the queue, request by request, and remembers how
 * far it has come and how large a batch could be; a request that comes later
 * is looked at alone.  It starts again when one that it has passed leaves, or
 * when one comes in further ahead.
 */

#ifndef INF_SCHED_DYNAMIC_BATCHER_H
#define INF_SCHED_DYNAMIC_BATCHER_H

#include "core/sched/batch_strategy.h"
#include "core/sched/policy.h"
#include "core/sched/queue.h"

typedef struct {
    inf_queue_options_t         queue;
    const uint32_t             *preferred;  /* copied; empty: limit alone    */
    uint32_t                    preferred_count;
    uint32_t                    limit;      /* 0: one request a batch        */
    uint64_t                    delay_us;
    const inf_config_tensors_t *tensors;    /* NULL: nothing is compared     */
    inf_batch_strategy_t       *strategy;   /* or NULL                       */
    uint32_t                    hold;       /* no batch before so many
                                               requests are queued; once     */
} inf_dynamic_batcher_options_t;

/* Copies options and preferred sizes; tensors and strategy outlive the
   batcher. */
INF_CHECK inf_err_t *inf_dynamic_batcher_new(
    const inf_dynamic_batcher_options_t *options, inf_policy_t **out);

/* As a model's configuration says. */
INF_CHECK inf_err_t *inf_dynamic_batcher_of(inf_model_t *model,
    inf_policy_t **out);

#endif /* INF_SCHED_DYNAMIC_BATCHER_H */
