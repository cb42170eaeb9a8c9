/*
 * python.c - the functions of the python backend that the core calls.
 *
 * Owner    as common/entry.h says: settings, models and interpreters.
 * Thread   as the core calls; instances load in parallel.
 * Units    none.
 * Errors   returned to the core from open and new; per request from execute.
 * Route    core -> common/entry -> [python] -> model, interpreter
 */

#include "../common/entry.h"
#include "../common/unused_fields.h"
#include "interpreter.h"
#include "threads.h"

#define CALLS_WAIT_S 10

static TRITONSERVER_Error *backend_open(void **runtime,
    TRITONBACKEND_Backend *backend);
static void backend_close(void *runtime);
static TRITONSERVER_Error *model_new(void **model,
    TRITONBACKEND_Model *handle, void *runtime);
static void model_free(void *model);
static TRITONSERVER_Error *instance_new(void **instance,
    TRITONBACKEND_ModelInstance *handle, void *model);
static void instance_free(void *instance);
static TRITONSERVER_Error *execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);
static TRITONSERVER_Error *ready(void *instance);

/* models get the configuration and may use any field, but keep no states */
static const char *const used_fields[] = {
    BK_FIELD_GRAPH, BK_FIELD_PRIORITY, BK_FIELD_CUDA, BK_FIELD_ACCELERATORS,
    BK_FIELD_CC_FILENAMES, BK_FIELD_OPERATIONS, BK_FIELD_PROFILE,
    BK_FIELD_SECONDARY, NULL
};

const bk_backend_t bk_backend = {
    .open = backend_open,
    .close = backend_close,
    .model_new = model_new,
    .model_free = model_free,
    .instance_new = instance_new,
    .instance_free = instance_free,
    .execute = execute,
    .ready = ready,
    .used_fields = used_fields
};

static TRITONSERVER_Error *
backend_open(void **runtime, TRITONBACKEND_Backend *backend)
{
    py_backend_t *b = NULL;

    TRITONSERVER_Error *err = py_backend_new(&b, backend);
    *runtime = b;
    return err;
}

static void
backend_close(void *runtime)
{
    py_threads_end(CALLS_WAIT_S);
    py_backend_free(runtime);
}

/* Creates a model; it finds the backend's settings by its handle. */
static TRITONSERVER_Error *
model_new(void **model, TRITONBACKEND_Model *handle, void *runtime)
{
    py_model_t *m = NULL;

    (void) runtime;
    TRITONSERVER_Error *err = py_model_new(&m, handle);
    *model = m;
    return err;
}

static void
model_free(void *model)
{
    py_model_free(model);
}

static TRITONSERVER_Error *
instance_new(void **instance, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    py_interpreter_t *in = NULL;
    TRITONSERVER_InstanceGroupKind kind;
    py_instance_name_t name = { 0 };

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceName(handle,
        &name.name);
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &name.device);
    }
    if (err == NULL) {
        name.kind = TRITONSERVER_InstanceGroupKindString(kind);
        err = py_interpreter_new(&in, model, handle, &name);
    }

    *instance = in;
    return err;
}

static void
instance_free(void *instance)
{
    py_interpreter_free(instance);
}

static TRITONSERVER_Error *
execute(void *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    py_interpreter_run(instance, requests, count);
    return NULL;
}

static TRITONSERVER_Error *
ready(void *instance)
{
    return py_interpreter_ready(instance);
}
