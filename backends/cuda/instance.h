/*
 * instance.h - one instance of a model on a GPU.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize
 *          to ModelInstanceFinalize.
 * Thread   new and free on a loader's thread, execute on the instance's,
 *          state on any.
 * Units    none.
 * Errors   execute fails as a whole only before it has touched a request.
 * Route    cuda -> [instance] -> request, batch
 */

#ifndef GPU_INSTANCE_H
#define GPU_INSTANCE_H

#include "batch.h"
#include "model.h"

/* The functions of bk_backend_t (common/entry.h). */
BK_CHECK TRITONSERVER_Error *gpu_instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
void gpu_instance_free(void *instance);

/* Answers and releases all requests, or returns an error and touches none. */
BK_CHECK TRITONSERVER_Error *gpu_instance_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

/* The reason why the instance runs nothing; NULL: it is ready. */
BK_CHECK TRITONSERVER_Error *gpu_instance_ready(void *instance);

#endif /* GPU_INSTANCE_H */
