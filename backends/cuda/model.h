/*
 * model.h - one version of a model: its configuration, and its code on each
 *           device that has instances of it.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize.  Instances borrow what gpu_model_load gives until
 *          the model is freed.
 * Thread   new and free: one; load: any loader's.
 * Units    none.
 * Errors   every one names the model's file; requests' its name.
 * Route    cuda -> [model] -> program, model file, loaded, library
 */

#ifndef GPU_MODEL_STATE_H
#define GPU_MODEL_STATE_H

#include "library.h"
#include "loaded.h"

typedef struct gpu_model_s gpu_model_t;

BK_CHECK TRITONSERVER_Error *gpu_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void gpu_model_free(void *model);

const gpu_program_t *gpu_model_program(const gpu_model_t *m);

/* NULL: the model has kernels. */
const gpu_library_t *gpu_model_library(const gpu_model_t *m);

/* Fills in all that a library is told of the model; pointers are the
 * model's. */
void gpu_model_describe(const gpu_model_t *m, gpu_model_options_t *options);

/* The code on that device, loaded at the first call for it. */
BK_CHECK TRITONSERVER_Error *gpu_model_load(gpu_model_t *m, int64_t device,
    gpu_loaded_t **out);

/* Puts the model's file in front of err; NULL stays NULL. */
BK_CHECK TRITONSERVER_Error *gpu_model_blame(const gpu_model_t *m,
    TRITONSERVER_Error *err);

/* The same with its name, for clients: paths are the server's own matter. */
BK_CHECK TRITONSERVER_Error *gpu_model_blame_by_name(const gpu_model_t *m,
    TRITONSERVER_Error *err);

#endif /* GPU_MODEL_STATE_H */
