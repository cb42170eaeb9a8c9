/* instance.c - see instance.h */

#include "instance.h"

#include <stdlib.h>

static TRITONSERVER_Error *instance_setup(ort_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);

TRITONSERVER_Error *
ort_instance_new(void **out, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    ort_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    TRITONSERVER_Error *err = instance_setup(inst, handle);
    if (err != NULL) {
        ort_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
ort_instance_free(void *instance)
{
    ort_instance_t *inst = instance;

    bk_runner_fini(&inst->runner);
    ort_run_fini(&inst->run);
    ort_session_free(inst->session);
    free(inst);
}

TRITONSERVER_Error *
ort_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    ort_instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
instance_setup(ort_instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device_id = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &device_id);
    }
    if (err == NULL) {
        err = ort_model_open_session(inst->model, kind, device_id,
            &inst->session);
    }
    if (err == NULL) {
        err = ort_run_init(&inst->run, inst->session);
    }
    if (err != NULL) {
        return err;
    }

    const bk_instance_config_t config = {
        .tensors = &inst->session->tensors,
        .batching = inst->model->config.max_batch_size > 0,
        .device_id = kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? device_id
            : BK_NO_DEVICE
    };
    return bk_runner_init(&inst->runner, handle, &config,
        &ort_run_functions, &inst->run);
}
