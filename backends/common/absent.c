/*
 * absent.c - stands in for a backend whose runtime was missing when it was
 *            built: its models fail to load, and say what to install.
 */

#include "entry.h"

static TRITONSERVER_Error *absent_open(void **runtime,
    TRITONBACKEND_Backend *backend);
static TRITONSERVER_Error *absent_new(void **model,
    TRITONBACKEND_Model *handle, void *runtime);
static TRITONSERVER_Error *absent_instance(void **instance,
    TRITONBACKEND_ModelInstance *handle, void *model);
static void absent_free(void *object);
static TRITONSERVER_Error *absent_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

const bk_backend_t bk_backend = {
    .open = absent_open,
    .close = absent_free,
    .model_new = absent_new,
    .model_free = absent_free,
    .instance_new = absent_instance,
    .instance_free = absent_free,
    .execute = absent_execute
};

static TRITONSERVER_Error *
absent_open(void **runtime, TRITONBACKEND_Backend *backend)
{
    (void) runtime;
    (void) backend;

    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s", BK_ABSENT);
}

/* Nothing below is called after open has failed. */
static TRITONSERVER_Error *
absent_new(void **model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) handle;

    return absent_open(model, runtime);
}

static TRITONSERVER_Error *
absent_instance(void **instance, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    (void) handle;

    return absent_open(instance, model);
}

static void
absent_free(void *object)
{
    (void) object;
}

static TRITONSERVER_Error *
absent_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    (void) requests;
    (void) count;

    return absent_open(instance, NULL);
}
