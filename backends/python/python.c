/*
 * python.c - the entry points of the python backend.
 *
 * Owner    State pointers of backend, model and instance own settings, a
 *          model and an interpreter; after a failed initialize they are NULL.
 * Thread   as the core calls; instances load in parallel.
 * Units    none.
 * Errors   returned to the core from initialize; per request from execute.
 * Route    core -> [python] -> model, interpreter
 */

#include "control.h"
#include "interpreter.h"

#define CONTROL_WAIT_S 10

static TRITONSERVER_Error *interpreter_of(TRITONBACKEND_ModelInstance *instance,
    py_interpreter_t **out);

TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    py_backend_t *b = NULL;

    TRITONSERVER_Error *err = bk_check_api_version();
    if (err == NULL) {
        err = py_backend_new(&b, backend);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_BackendSetState(backend, b);
    if (err != NULL) {
        py_backend_free(b);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_BackendState(backend, &state);
    if (err == NULL) {
        py_control_wait(CONTROL_WAIT_S);
        py_backend_free(state);
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
    py_model_t *m = NULL;

    TRITONSERVER_Error *err = py_model_new(&m, model);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelSetState(model, m);
    if (err != NULL) {
        py_model_free(m);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelState(model, &state);
    if (err == NULL) {
        py_model_free(state);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    py_interpreter_t *in = NULL;
    TRITONSERVER_InstanceGroupKind kind;
    py_instance_name_t name = { 0 };
    TRITONBACKEND_Model *model;
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(instance,
        &model);
    if (err == NULL) {
        err = TRITONBACKEND_ModelState(model, &state);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceName(instance, &name.name);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceKind(instance, &kind);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &name.device);
    }
    if (err == NULL) {
        name.kind = TRITONSERVER_InstanceGroupKindString(kind);
        err = py_interpreter_new(&in, state, instance, &name);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelInstanceSetState(instance, in);
    if (err != NULL) {
        py_interpreter_free(in);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    py_interpreter_t *in;

    TRITONSERVER_Error *err = interpreter_of(instance, &in);
    if (err == NULL) {
        py_interpreter_free(in);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    py_interpreter_t *in;

    TRITONSERVER_Error *err = interpreter_of(instance, &in);
    if (err == NULL) {
        py_interpreter_run(in, requests, request_count);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    py_interpreter_t *in;

    TRITONSERVER_Error *err = interpreter_of(instance, &in);
    return err != NULL ? err : py_interpreter_ready(in);
}

static TRITONSERVER_Error *
interpreter_of(TRITONBACKEND_ModelInstance *instance, py_interpreter_t **out)
{
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    *out = state;
    return err;
}
