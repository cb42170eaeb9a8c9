/*
 * batch_strategy.h - opens a batch strategy library and calls it.
 *
 * Owner    The model owns the strategy; close ends it and closes the library.
 * Thread   open, close: the loader and the destroyer; the rest: one instance
 *          thread at a time, no lock held.
 * Units    none.
 * Errors   NOT_FOUND: the loader's text.  INVALID_ARG: only some of the five
 *          functions are found.  Otherwise the library's error.
 * Route    model load, dynamic batcher -> [batch strategy] -> library.
 */

#ifndef INF_ABI_BATCH_STRATEGY_H
#define INF_ABI_BATCH_STRATEGY_H

#include "core/model/model.h"
#include "core/sched/batch_strategy.h"

/* *out is NULL if the library has none of the functions. */
INF_CHECK inf_err_t *inf_batch_strategy_open(inf_model_t *model,
    const char *library, inf_batch_strategy_t **out);

/* strategy may be NULL. */
void inf_batch_strategy_close(inf_batch_strategy_t *strategy);

#endif /* INF_ABI_BATCH_STRATEGY_H */
