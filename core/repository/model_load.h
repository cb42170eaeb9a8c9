/*
 * model_load.h - loads one model version, from its directory to a running
 *                object.
 *
 * Owner    The caller gets one reference.
 * Thread   a loader's; unload: the destroyer's.
 * Units    none.
 * Errors   why the version cannot serve; everything done is undone.
 * Route    lifecycle -> [model load] -> plug-in operations, runtime
 */

#ifndef INF_REPOSITORY_MODEL_LOAD_H
#define INF_REPOSITORY_MODEL_LOAD_H

#include "core/repository/backend_table.h"
#include "core/sched/runtime.h"

typedef struct {
    const inf_lifecycle_options_t *options;
    const inf_core_config_t       *core_config; /* outlives the model        */
    inf_backend_table_t           *backends;
    inf_timekeeper_t              *timekeeper;
    inf_storage_t                 *storage;
    const char                    *name;
    const char                    *space;       /* of the model; "": none    */
    const char                    *title;       /* both, for the log         */
    const char                    *dir;
    inf_model_config_t            *config;      /* copied                    */
    bool                           overridden;  /* config is not from a file */
    bool                           bounded;     /* config is a request's:
                                                   checked by code_upload.h  */
    int64_t                        version;
    inf_model_t *const            *composing;   /* of an ensemble, by step   */
    size_t                         composing_count;
    const inf_model_ops_t         *ops;
    void                          *owner;
    const _Atomic bool            *stopping;    /* seq_cst; stops warm-up;
                                                   NULL: never               */
    uint64_t                       load;        /* number for
                                                   options->threads          */
} inf_model_load_t;

/* Builds a version, warmed up and ready to serve; it may take minutes, so no
   lock is held.  *out is a reference; after an error nothing is left. */
INF_CHECK inf_err_t *inf_model_load(const inf_model_load_t *what,
    inf_model_t **out);

/* Stops the threads, calls the finalizers in order and frees the model. */
void inf_model_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    struct inf_children_s *children);

/*
 * Unloads a model whose process has exited and that has references left, which
 * a backend may hold for ever, because that process would have released them:
 * finalizes the backend first, and then answers with why and returns what the
 * backend still holds.  model is out of the registry; the caller's reference
 * stays, and inf_model_unload then only frees memory.  Called on a thread of
 * its own: finalizers may block.
 */
void inf_model_force_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    struct inf_children_s *children, const char *why);

#endif /* INF_REPOSITORY_MODEL_LOAD_H */
