/*
 * cuda.c - the entry points of the cuda backend.
 *
 * Owner    State pointers of backend, model and instance own a runtime, a
 *          model and an instance; after a failed initialize they are NULL.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from initialize; per request from execute.
 * Route    core -> [cuda] -> runtime, model, instance
 */

#include "instance.h"

TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    gpu_runtime_t *rt = NULL;

    TRITONSERVER_Error *err = bk_check_api_version();
    if (err == NULL) {
        err = gpu_runtime_open(&rt, backend);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_BackendSetState(backend, rt);
    if (err != NULL) {
        gpu_runtime_close(rt);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_BackendState(backend, &state);
    if (err == NULL) {
        gpu_runtime_close(state);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes)
{
    (void) backend;

    return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        attributes, true);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    gpu_model_t *m = NULL;

    TRITONSERVER_Error *err = gpu_model_new(&m, model);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelSetState(model, m);
    if (err != NULL) {
        gpu_model_free(m);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelState(model, &state);
    if (err == NULL) {
        gpu_model_free(state);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    gpu_instance_t *inst = NULL;

    TRITONSERVER_Error *err = gpu_instance_new(&inst, instance);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelInstanceSetState(instance, inst);
    if (err != NULL) {
        gpu_instance_free(inst);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    if (err == NULL) {
        gpu_instance_free(state);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);

    return err != NULL ? err : gpu_instance_state(state);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);

    return err != NULL ? err
        : gpu_instance_execute(state, requests, request_count);
}
