/*
 * instance.h - one instance of a model: a request of the library, and the
 *              tensors of its runs.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize to
 *          ModelInstanceFinalize.
 * Thread   new and free on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   INVALID_ARG: an unsupported kind of instance, or a batch of another
 *          size than the model's fixed one.  INTERNAL: the library's message
 *          on a run.
 * Route    instance thread -> runner -> [instance] -> the library
 */

#ifndef VINO_INSTANCE_H
#define VINO_INSTANCE_H

#include "model.h"

/* The functions of bk_backend_t (common/entry.h). */
BK_CHECK TRITONSERVER_Error *vino_instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
void vino_instance_free(void *instance);

/* Answers and releases all requests, or returns an error and touches none. */
BK_CHECK TRITONSERVER_Error *vino_instance_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* VINO_INSTANCE_H */
