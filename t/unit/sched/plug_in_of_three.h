/*
 * plug_in_of_three.h - a batch strategy that takes three requests at most and
 *                      ends the program if two threads ask it.
 *
 * Owner    one plug-in in each program.
 * Thread   instance threads.
 * Units    none.
 * Errors   the program ends.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_PLUG_IN_OF_THREE_H
#define INF_T_SCHED_PLUG_IN_OF_THREE_H

#include "sched/job.h"

#include "core/sched/batch_strategy.h"

static _Atomic int open_batches, inside_plug_in;

/* Each of its calls ends with one of this; may be NULL. */
static void (*plug_in_called)(bool includes);

static inline void
plug_in_calls(bool includes)
{
    if (plug_in_called != NULL) {
        plug_in_called(includes);
    }
}

static inf_err_t *
plug_in_begin(inf_batch_strategy_t *s, void **batch)
{
    (void) s;
    must(atomic_fetch_add(&open_batches, 1) == 0);
    *batch = calloc(1, sizeof(int));
    plug_in_calls(false);
    return NULL;
}

static inf_err_t *
plug_in_include(inf_batch_strategy_t *s, void *batch, inf_request_t *req,
    bool *joins)
{
    (void) s;
    must(atomic_fetch_add(&inside_plug_in, 1) == 0);
    must(req->state == INF_REQUEST_PENDING);
    *joins = ++*(int *) batch <= 3;
    plug_in_calls(true);
    atomic_fetch_sub(&inside_plug_in, 1);
    return NULL;
}

static inf_err_t *
plug_in_end(inf_batch_strategy_t *s, void *batch)
{
    (void) s;
    must(atomic_fetch_sub(&open_batches, 1) == 1);
    free(batch);
    plug_in_calls(false);
    return NULL;
}

static const inf_batch_strategy_ops_t plug_in_ops = {
    .begin = plug_in_begin, .include = plug_in_include, .end = plug_in_end
};
static inf_batch_strategy_t plug_in = { .ops = &plug_in_ops };

#endif /* INF_T_SCHED_PLUG_IN_OF_THREE_H */
