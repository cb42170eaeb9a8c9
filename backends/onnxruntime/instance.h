/*
 * instance.h - one instance of a model: a session and its runner.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize
 *          to ModelInstanceFinalize.
 * Thread   new and free on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   execute fails as a whole only before it has touched a request.
 * Route    instance thread -> [instance] -> common/runner -> run
 */

#ifndef ORT_INSTANCE_H
#define ORT_INSTANCE_H

#include "model.h"
#include "run.h"

#include "common/runner.h"

typedef struct {
    ort_model_t   *model;
    ort_session_t *session;
    ort_run_t      run;
    bk_runner_t    runner;
} ort_instance_t;

/* As common/entry.h has them; *out, instance: an ort_instance_t. */
BK_CHECK TRITONSERVER_Error *ort_instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
void ort_instance_free(void *instance);
BK_CHECK TRITONSERVER_Error *ort_instance_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* ORT_INSTANCE_H */
