/*
 * strategy_search.h - finds a model's batch strategy library.
 *
 * Owner    The path belongs to the caller.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: a configured path leaves the model's directory, or the
 *          model has sequence_batching.  NOT_FOUND: no such file.
 * Route    model load -> [strategy search] -> plug-in operations
 *
 * Parameter TRITON_BATCH_STRATEGY_PATH is its path, absolute, in the model's
 * directory, or relative to a directory above that one; otherwise a
 * batchstrategy.so is used from the directory of the version, the model, or
 * the backend (global), in this order.
 */

#ifndef INF_REPOSITORY_STRATEGY_SEARCH_H
#define INF_REPOSITORY_STRATEGY_SEARCH_H

#include "core/model/model.h"
#include "core_config.pb-c.h"

/* Finds the library; config has the directories of backends.  *path NULL: the
   model has none. */
INF_CHECK inf_err_t *inf_strategy_search(const inf_model_t *model,
    const NginxInference__CoreConfig *config, char **path);

#endif /* INF_REPOSITORY_STRATEGY_SEARCH_H */
