/*
 * model.h - a model of the pytorch backend: its file and configuration.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize; instances borrow it.
 * Thread   written by new and free, but for the shared engines, which
 *          instances take and add under the lock while they load in parallel.
 * Units    none.
 * Errors   as engine, package and names have them, with the model's name.
 * Route    ModelInitialize -> [model] -> instance
 */

#ifndef PT_MODEL_H
#define PT_MODEL_H

#include "engine.h"
#include "package.h"

#include "common/tensors.h"

#include <pthread.h>

typedef struct pt_shared_s pt_shared_t;

/* Set in new, then read by anyone, but for what the lock guards. */
typedef struct {
    bk_model_config_t  config;      /* set in new                            */
    pt_options_t       options;     /* set in new                            */
    bk_tensors_t       tensors;     /* set in new                            */
    char              *path;        /* set in new: the model's file          */
    bool               compiled;    /* set in new: a package, not TorchScript */
    pt_package_t       package;     /* set in new, where compiled            */
    pthread_mutex_t    lock;        /* guards shared                         */
    pt_shared_t       *shared;      /* with ENABLE_WEIGHT_SHARING            */
} pt_model_t;

/* As common/entry.h has them; *out, model: a pt_model_t. */
BK_CHECK TRITONSERVER_Error *pt_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void pt_model_free(void *model);

/* An engine on that device; *own says whether it is the caller's. */
BK_CHECK TRITONSERVER_Error *pt_model_open(pt_model_t *m, int device,
    pt_engine_t **out, bool *own);

#endif /* PT_MODEL_H */
