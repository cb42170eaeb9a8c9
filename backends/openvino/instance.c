/* instance.c - see instance.h */

#include "instance.h"

#include "run.h"

#include "common/runner.h"

#include <stdlib.h>

typedef struct {
    vino_model_t *model;
    vino_run_t    run;
    bk_runner_t   runner;
} instance_t;

static TRITONSERVER_Error *instance_setup(instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *check_kind(TRITONBACKEND_ModelInstance *handle,
    const char *model);

TRITONSERVER_Error *
vino_instance_new(void **out, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    TRITONSERVER_Error *err = instance_setup(inst, handle);
    if (err != NULL) {
        vino_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
vino_instance_free(void *instance)
{
    instance_t *inst = instance;

    if (inst == NULL) {
        return;
    }

    bk_runner_fini(&inst->runner);
    vino_run_fini(&inst->run);
    free(inst);
}

TRITONSERVER_Error *
vino_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
instance_setup(instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_Error *err = check_kind(handle, inst->model->config.name);
    if (err == NULL) {
        err = vino_model_compile(inst->model);
    }
    if (err == NULL) {
        err = vino_run_init(&inst->run, inst->model->network,
            inst->model->options.padding);
    }
    if (err == NULL) {
        bk_instance_config_t config = {
            .tensors = &inst->model->network->tensors,
            .batching = inst->model->config.max_batch_size > 0,
            .device_id = BK_NO_DEVICE
        };

        err = bk_runner_init(&inst->runner, handle, &config,
            &vino_run_functions, &inst->run);
    }

    return err;
}

static TRITONSERVER_Error *
check_kind(TRITONBACKEND_ModelInstance *handle, const char *model)
{
    TRITONSERVER_InstanceGroupKind kind;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err != NULL || kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return err;
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "unable to load model "
        "'%s', Triton openVINO backend supports only CPU device; for others "
        "an instance of KIND_CPU has the parameter 'TARGET_DEVICE'", model);
}
