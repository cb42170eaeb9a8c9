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
 * A sequence that finds no free slot waits in the backlog, in order of first
 * requests.  Direct: a payload has one row per slot, from slot 0 to the last
 * one that has a request; those between without one are filled.  Oldest: the
 * first requests of an instance's slots enter a dynamic batcher of its own,
 * the next of a sequence when the one before is released.
 *
 * Unlike in Triton, a sequence is idle only while none of its requests is
 * queued or running; a cancel or a timeout takes effect at once; where inputs
 * of slots differ (Direct) the one that waits longest says what runs.
 */

#ifndef INF_SCHED_SEQUENCE_BATCHER_H
#define INF_SCHED_SEQUENCE_BATCHER_H

#include "core/sched/policy.h"

struct inf_sequence_inputs_s;

typedef struct {
    const char                 *model;      /* its name, for errors; kept    */
    bool                        oldest;     /* else direct                   */
    uint32_t                    slots;      /* of each instance; at least 1  */
    uint32_t                    limit;      /* max_batch_size; 0: one row    */
    uint64_t                    delay_us;
    double                      utilization;    /* direct; 0: no delay       */
    const uint32_t             *preferred;      /* oldest; copied            */
    uint32_t                    preferred_count;
    uint64_t                    idle_us;    /* not 0                         */
    bool                        iterative;
    const inf_config_tensors_t *tensors;    /* NULL: nothing is compared     */
    const struct inf_sequence_inputs_s *inputs;     /* NULL: requests run as
                                               they came, nothing is filled  */
    uint32_t                    hold;       /* no payload before so many
                                               requests are queued in slots  */
    uint32_t                    backlog_hold;   /* nor before so many are in
                                               the backlog; both once        */
} inf_sequence_batcher_options_t;

/* Copies options and preferred sizes; the rest outlives the batcher. */
INF_CHECK inf_err_t *inf_sequence_batcher_new(
    const inf_sequence_batcher_options_t *options, inf_policy_t **out);

/* As a model's configuration says. */
INF_CHECK inf_err_t *inf_sequence_batcher_of(inf_model_t *model,
    inf_policy_t **out);

/* p is a sequence batcher. */
void inf_sequence_batcher_count(const inf_policy_t *p,
    inf_sequence_counts_t *out);

#endif /* INF_SCHED_SEQUENCE_BATCHER_H */
