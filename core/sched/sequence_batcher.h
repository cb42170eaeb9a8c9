/*
 * sequence_batcher.h - keeps the requests of a sequence together, in order, in
 *                      one slot of one instance.
 *
 * Owner    The model's runner owns it and the requests queued in it.
 * Thread   as policy.h.
 * Units    ns; configured times in us.  A slot holds one sequence at a time.
 * Errors   push: INVALID_ARG for what breaks a rule of sequences, UNAVAILABLE
 *          for a new sequence while the model stops.
 * Route    runner -> [sequence batcher] -> payload.
 *
 * A sequence without a free slot waits in the backlog, in the order of first
 * requests.  Direct: a payload has one row per slot, from slot 0 to the last
 * one with a request; rows without a request get padding requests.  Oldest: the
 * first requests of an instance's slots enter a dynamic batcher of the
 * instance; the next one of a sequence enters when the previous one is
 * released.
 *
 * Differences from Triton: a sequence is idle only while none of its requests
 * is queued or running; a cancel or a timeout takes effect at once; if inputs
 * of slots differ (Direct), the slot that waits longest decides what runs.
 */

#ifndef INF_SCHED_SEQUENCE_BATCHER_H
#define INF_SCHED_SEQUENCE_BATCHER_H

#include "core/sched/policy.h"

struct inf_sequence_inputs_s;

typedef struct {
    const char                 *model;      /* model name for errors; kept   */
    bool                        oldest;     /* otherwise direct              */
    uint32_t                    slots;      /* per instance; at least 1      */
    uint32_t                    limit;      /* max_batch_size; 0: one row    */
    uint64_t                    delay_us;
    double                      utilization;    /* direct; 0: no delay       */
    const uint32_t             *preferred;      /* oldest; copied            */
    uint32_t                    preferred_count;
    uint64_t                    idle_us;    /* not 0                         */
    bool                        iterative;
    const inf_config_tensors_t *tensors;    /* NULL: no comparison           */
    const struct inf_sequence_inputs_s *inputs;     /* NULL: no controls,
                                                       states or padding     */
    uint32_t                    hold;       /* requests in slots before the
                                               first payload                 */
    uint32_t                    backlog_hold;   /* and in the backlog; each
                                                   applies once              */
} inf_sequence_batcher_options_t;

/* Creates the batcher.  Copies options and preferred sizes; the rest outlives
   it. */
INF_CHECK inf_err_t *inf_sequence_batcher_new(
    const inf_sequence_batcher_options_t *options, inf_policy_t **out);

/* Creates the batcher of the model's configuration. */
INF_CHECK inf_err_t *inf_sequence_batcher_of(inf_model_t *model,
    inf_policy_t **out);

/* Counts sequences; p is a sequence batcher. */
void inf_sequence_batcher_count(const inf_policy_t *p,
    inf_sequence_counts_t *out);

#endif /* INF_SCHED_SEQUENCE_BATCHER_H */
