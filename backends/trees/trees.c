/*
 * trees.c - the functions of the trees backend that the core calls.
 *
 * Owner    as common/entry.h says: a runtime, models and instances.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from new and open; per request from execute.
 * Route    core -> common/entry -> [trees] -> runtime, model, instance
 */

#include "instance.h"

#include "common/entry.h"

/* The second half has no effect, which options.c says. */
static const char *const parameters[] = {
    "model_type", "output_class", "predict_proba", "threshold",
    "transfer_threshold", "xgboost_allow_unknown_field",

    "use_experimental_optimizations", "storage_type", "algo",
    "threads_per_tree", "blocks_per_sm", "cpu_nthread", "layout",
    "chunk_size", NULL
};

const bk_backend_t bk_backend = {
    .open = trees_runtime_open,
    .close = trees_runtime_close,
    .model_new = trees_model_new,
    .model_free = trees_model_free,
    .instance_new = trees_instance_new,
    .instance_free = trees_instance_free,
    .execute = trees_instance_execute,
    .parameters = parameters,
    .cpu_only = true
};
