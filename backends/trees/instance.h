/*
 * instance.h - one instance of a model: room for sums and its runner.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize
 *          to ModelInstanceFinalize; the forest is the model's.
 * Thread   new and free on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   new: as common/gpu_driver has them, for instances of KIND_GPU.
 * Route    instance thread -> [instance] -> common/runner -> predict
 */

#ifndef TREES_INSTANCE_H
#define TREES_INSTANCE_H

#include "model.h"

#include "common/runner.h"

typedef struct {
    trees_model_t   *model;
    trees_device_t  *device;            /* NULL: none                        */
    trees_predict_t  predict;
    bk_runner_t      runner;
    bk_scratch_t     room[TREES_OUTPUT_COUNT];  /* for outputs that the
                                                 * runner has no memory for  */
} trees_instance_t;

/* As common/entry.h has them; *out, instance: a trees_instance_t. */
BK_CHECK TRITONSERVER_Error *trees_instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
void trees_instance_free(void *instance);
BK_CHECK TRITONSERVER_Error *trees_instance_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* TREES_INSTANCE_H */
