/* entry.c - see entry.h */

#include "entry.h"

#include "unused_fields.h"

#include <malloc.h>

static void unused_log(TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *backend_runtime(TRITONBACKEND_Model *model,
    void **runtime);
static TRITONSERVER_Error *instance_model(
    TRITONBACKEND_ModelInstance *instance, void **model);

TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    void *runtime = NULL;

    TRITONSERVER_Error *err = bk_check_api_version();
    if (err == NULL && bk_backend.open != NULL) {
        err = bk_backend.open(&runtime, backend);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_BackendSetState(backend, runtime);
    if (err != NULL && runtime != NULL) {
        bk_backend.close(runtime);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *runtime = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_BackendState(backend, &runtime);
    if (err == NULL && runtime != NULL) {
        bk_backend.close(runtime);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes)
{
    TRITONSERVER_Error *err = NULL;

    (void) backend;
    if (bk_backend.cpu_only) {
        err = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
            attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, NULL, 0);
    }

    return err != NULL ? err
        : TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
            attributes, true);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    void *runtime = NULL;
    void *model = NULL;

    TRITONSERVER_Error *err = backend_runtime(handle, &runtime);
    if (err == NULL) {
        err = bk_backend.model_new(&model, handle, runtime);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelSetState(handle, model);
    if (err != NULL) {
        bk_backend.model_free(model);
        return err;
    }

    unused_log(handle);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    void *model = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelState(handle, &model);
    if (err == NULL && model != NULL) {
        bk_backend.model_free(model);
        /* weights that were freed are the allocator's until now */
        malloc_trim(0);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;
    void *model = NULL;

    TRITONSERVER_Error *err = instance_model(handle, &model);
    if (err == NULL) {
        err = bk_backend.instance_new(&instance, handle, model);
    }
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelInstanceSetState(handle, instance);
    if (err != NULL) {
        bk_backend.instance_free(instance);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle,
        &instance);
    if (err == NULL && instance != NULL) {
        bk_backend.instance_free(instance);
    }

    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle,
        &instance);

    return err != NULL || bk_backend.ready == NULL ? err
        : bk_backend.ready(instance);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
    TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    void *instance = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle,
        &instance);

    return err != NULL ? err
        : bk_backend.execute(instance, requests, request_count);
}

static void
unused_log(TRITONBACKEND_Model *handle)
{
    bk_model_config_t config;

    TRITONSERVER_Error *err = bk_model_config_init(&config, handle);
    if (err != NULL) {
        bk_err_log(err, "fields without effect");
        return;
    }

    bk_config_log_unused(&config, bk_backend.used_fields);
    bk_config_log_unknown(&config, bk_backend.parameters);
    bk_model_config_fini(&config);
}

static TRITONSERVER_Error *
backend_runtime(TRITONBACKEND_Model *model, void **runtime)
{
    TRITONBACKEND_Backend *backend;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(model, &backend);

    return err != NULL ? err : TRITONBACKEND_BackendState(backend, runtime);
}

static TRITONSERVER_Error *
instance_model(TRITONBACKEND_ModelInstance *instance, void **model)
{
    TRITONBACKEND_Model *handle;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(instance,
        &handle);

    return err != NULL ? err : TRITONBACKEND_ModelState(handle, model);
}
