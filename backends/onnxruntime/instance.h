/*
 * instance.h - one instance of a model: a session and room for a batch.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize
 *          to ModelInstanceFinalize.
 * Thread   new and free on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   execute fails as a whole only before it has touched a request.
 * Route    instance thread -> [instance] -> slot, batch
 */

#ifndef ORT_INSTANCE_H
#define ORT_INSTANCE_H

#include "batch.h"

typedef struct {
    ort_model_t                 *model;
    TRITONBACKEND_ModelInstance *handle;
    ort_session_t               *session;
    ort_batch_t                  batch;
    ort_slot_t                  *slots;
    bk_input_t                  *slot_inputs;
    bool                        *slot_wanted;
    uint32_t                     slot_cap;
} ort_instance_t;

BK_CHECK TRITONSERVER_Error *ort_instance_new(ort_instance_t **out,
    TRITONBACKEND_ModelInstance *handle);
void ort_instance_free(ort_instance_t *inst);

BK_CHECK TRITONSERVER_Error *ort_instance_execute(ort_instance_t *inst,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* ORT_INSTANCE_H */
