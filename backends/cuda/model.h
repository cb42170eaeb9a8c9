/*
 * model.h - one version of a model: its configuration, and its code on each
 *           device that has instances of it.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize.  Instances borrow the results of gpu_model_load
 *          until the model is freed.
 * Thread   new and free: one; load: any loader's.
 * Units    none.
 * Errors   Errors of loads name the model's file, those of requests its name.
 * Route    cuda -> [model] -> program, model file, loaded, library
 */

#ifndef GPU_MODEL_STATE_H
#define GPU_MODEL_STATE_H

#include "library.h"
#include "loaded.h"

typedef struct gpu_model_s gpu_model_t;

/* The functions of bk_backend_t (common/entry.h). */
BK_CHECK TRITONSERVER_Error *gpu_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void gpu_model_free(void *model);

/* The model's kernels, tensors and buffers. */
const gpu_program_t *gpu_model_program(const gpu_model_t *m);

/* NULL: the model has kernels. */
const gpu_library_t *gpu_model_library(const gpu_model_t *m);

/* Fills in the description of the model for a library; pointers are the
 * model's. */
void gpu_model_describe(const gpu_model_t *m, gpu_model_options_t *options);

/* The code on that device, loaded at the first call for it. */
BK_CHECK TRITONSERVER_Error *gpu_model_load(gpu_model_t *m, int64_t device,
    gpu_loaded_t **out);

/* Adds the name of the model's file to err, which may be NULL. */
BK_CHECK TRITONSERVER_Error *gpu_model_blame(const gpu_model_t *m,
    TRITONSERVER_Error *err);

/* Adds the model's name to err, for clients, who do not learn paths. */
BK_CHECK TRITONSERVER_Error *gpu_model_blame_by_name(const gpu_model_t *m,
    TRITONSERVER_Error *err);

#endif /* GPU_MODEL_STATE_H */
