/*
 * plugin_ops.h - functions on backends, for the lifecycle; set by abi.
 *
 * Owner    The table is static.  The lifecycle owns backends it opened.
 * Thread   open, close: one at a time; the rest: loader threads, and the
 *          thread that destroys a model.
 * Units    none.
 * Errors   The plug-in's error, or why it could not be called.
 * Route    lifecycle -> [plug-in operations] -> abi -> backend.
 */

#ifndef INF_REPOSITORY_PLUGIN_OPS_H
#define INF_REPOSITORY_PLUGIN_OPS_H

#include "core/model/model.h"
#include "core/sched/executor.h"

/* A backend setting, as on Triton's command line. */
typedef struct {
    const char *key;
    const char *value;
} inf_plugin_setting_t;

typedef struct {
    inf_err_t *(*open)(const char *name, const char *library, const char *dir,
        const inf_plugin_setting_t *settings, size_t count,
        inf_backend_t **out);
    void (*close)(inf_backend_t *backend);

    inf_err_t *(*model_init)(inf_model_t *model);
    void (*model_fini)(inf_model_t *model);

    inf_err_t *(*instance_init)(inf_instance_t *instance);
    void (*instance_fini)(inf_instance_t *instance);
    inf_err_t *(*instance_ready)(inf_instance_t *instance);

    /* Whether the model's backend exports ModelInstanceReady, which may
       block. */
    bool (*has_ready_check)(const inf_model_t *model);

    /* Opens a batch strategy; *out NULL: the library has none of its
       functions. */
    inf_err_t *(*strategy_open)(inf_model_t *model, const char *library,
        struct inf_batch_strategy_s **out);
    void (*strategy_close)(struct inf_batch_strategy_s *strategy);

    const inf_executor_t *executor;
} inf_plugin_ops_t;

#endif /* INF_REPOSITORY_PLUGIN_OPS_H */
