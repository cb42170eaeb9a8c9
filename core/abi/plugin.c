#include "core/abi/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/batch_strategy.h"
#include "core/abi/execute.h"
#include "core/abi/guard.h"
#include "core/abi/host_policy_json.h"
#include "core/abi/objects.h"
#include "core/abi/plugin_library.h"
#include "core/base/buf.h"
#include "core/base/log.h"
#include "core/proto/message_json.h"

#define INITIALIZE          "TRITONBACKEND_Initialize"
#define FINALIZE            "TRITONBACKEND_Finalize"
#define ATTRIBUTE           "TRITONBACKEND_GetBackendAttribute"
#define MODEL_INITIALIZE    "TRITONBACKEND_ModelInitialize"
#define MODEL_FINALIZE      "TRITONBACKEND_ModelFinalize"
#define INSTANCE_INITIALIZE "TRITONBACKEND_ModelInstanceInitialize"
#define INSTANCE_FINALIZE   "TRITONBACKEND_ModelInstanceFinalize"
#define INSTANCE_READY      "TRITONBACKEND_ModelInstanceReady"
#define INSTANCE_EXECUTE    "TRITONBACKEND_ModelInstanceExecute"

#define WHO(backend, entry) ((inf_guard_who_t) { (backend)->name, entry })

typedef struct inf_plugin_s {
    void                   *handle;
    inf_guard_backend_fn    initialize;
    inf_guard_backend_fn    finalize;
    inf_guard_attribute_fn  attribute;
    inf_guard_model_fn      model_initialize;
    inf_guard_model_fn      model_finalize;
    inf_guard_instance_fn   instance_initialize;
    inf_guard_instance_fn   instance_finalize;
    inf_guard_instance_fn   instance_ready;
    inf_guard_execute_fn    execute;
} inf_plugin_t;

static inf_err_t *plugin_open(const char *name, const char *library,
    const char *dir, const inf_plugin_setting_t *settings, size_t count,
    inf_backend_t **out);
static inf_err_t *plugin_start_locked(inf_backend_t *backend);
static void plugin_close(inf_backend_t *backend);
static inf_err_t *plugin_model_init(inf_model_t *model);
static void plugin_model_fini(inf_model_t *model);
static inf_err_t *plugin_instance_init(inf_instance_t *instance);
static void plugin_instance_fini(inf_instance_t *instance);
static inf_err_t *plugin_instance_ready(inf_instance_t *instance);
static bool plugin_has_ready_check(const inf_model_t *model);
static inf_err_t *plugin_load(const char *library, inf_plugin_t **out);
static inf_err_t *backend_config(const inf_plugin_setting_t *settings,
    size_t count, inf_json_text_t **out);
static inf_err_t *host_policy_message(const inf_instance_t *instance,
    inf_json_text_t **out);
static void backend_free(inf_backend_t *backend);
static void log_finalizer(inf_err_t *err, const char *what, const char *name);

const inf_plugin_ops_t inf_plugin_ops = {
    .open = plugin_open,
    .close = plugin_close,
    .model_init = plugin_model_init,
    .model_fini = plugin_model_fini,
    .instance_init = plugin_instance_init,
    .instance_fini = plugin_instance_fini,
    .instance_ready = plugin_instance_ready,
    .has_ready_check = plugin_has_ready_check,
    .strategy_open = inf_batch_strategy_open,
    .strategy_close = inf_batch_strategy_close,
    .executor = &inf_backend_executor
};

/* Serializes the start of libraries in this process; many libraries rely on
   it. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static inf_err_t *
plugin_open(const char *name, const char *library, const char *dir,
    const inf_plugin_setting_t *settings, size_t count, inf_backend_t **out)
{
    *out = NULL;
    inf_backend_t *backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        return inf_err_nomem();
    }

    inf_json_text_t *config = NULL;
    inf_err_t *err = NULL;

    backend->name = strdup(name);
    backend->library = strdup(library);
    backend->dir = strdup(dir);
    if (backend->name == NULL || backend->library == NULL
        || backend->dir == NULL)
    {
        err = inf_err_nomem();
        goto fail;
    }

    err = backend_config(settings, count, &config);
    if (err != NULL) {
        goto fail;
    }
    backend->abi.config = config;

    pthread_mutex_lock(&open_lock);
    err = plugin_start_locked(backend);
    pthread_mutex_unlock(&open_lock);
    if (err != NULL) {
        goto fail;
    }

    const inf_plugin_t *plugin = backend->abi.plugin;
    if (plugin->attribute != NULL) {
        inf_err_free(inf_guard_attribute(WHO(backend, ATTRIBUTE),
            plugin->attribute, inf_abi_as_backend(backend),
            (TRITONBACKEND_BackendAttribute *) (void *) backend));
    }

    inf_log(INF_LOG_NOTICE, "backend \"%s\" loaded from %s", name, library);
    *out = backend;
    return NULL;

fail:

    backend_free(backend);
    return inf_err_add(err, "cannot load backend \"%s\"", name);
}

/* Opens the library and calls Initialize. */
static inf_err_t *
plugin_start_locked(inf_backend_t *backend)
{
    inf_plugin_t *plugin = NULL;
    inf_err_t *err = plugin_load(backend->library, &plugin);
    if (err != NULL) {
        return err;
    }

    backend->abi.plugin = plugin;
    if (plugin->initialize == NULL) {
        return NULL;
    }

    err = inf_guard_backend(WHO(backend, INITIALIZE), plugin->initialize,
        inf_abi_as_backend(backend));
    if (err != NULL && plugin->finalize != NULL) {
        log_finalizer(inf_guard_backend(WHO(backend, FINALIZE),
            plugin->finalize, inf_abi_as_backend(backend)), "backend",
            backend->name);
    }
    return err;
}

static void
plugin_close(inf_backend_t *backend)
{
    inf_plugin_t *plugin = backend->abi.plugin;
    if (plugin->finalize != NULL) {
        log_finalizer(inf_guard_backend(WHO(backend, FINALIZE),
            plugin->finalize, inf_abi_as_backend(backend)), "backend",
            backend->name);
    }

    backend_free(backend);
}

static inf_err_t *
plugin_model_init(inf_model_t *model)
{
    const inf_plugin_t *plugin = model->backend->abi.plugin;
    if (plugin->model_initialize == NULL) {
        return NULL;
    }

    inf_err_t *err = inf_guard_model(WHO(model->backend, MODEL_INITIALIZE),
        plugin->model_initialize, inf_abi_as_model(model));
    if (err != NULL) {
        plugin_model_fini(model);
    }

    return err;
}

static void
plugin_model_fini(inf_model_t *model)
{
    const inf_plugin_t *plugin = model->backend->abi.plugin;
    if (plugin->model_finalize != NULL) {
        log_finalizer(inf_guard_model(WHO(model->backend, MODEL_FINALIZE),
            plugin->model_finalize, inf_abi_as_model(model)), "model",
            model->name);
    }
}

static inf_err_t *
plugin_instance_init(inf_instance_t *instance)
{
    const inf_plugin_t *plugin = instance->model->backend->abi.plugin;

    inf_json_text_t *message;
    inf_err_t *err = host_policy_message(instance, &message);
    if (err != NULL) {
        return err;
    }
    instance->abi.host_policy = message;
    instance->abi.initialized = true;

    if (plugin->instance_initialize == NULL) {
        return NULL;
    }

    err = inf_guard_instance(WHO(instance->model->backend,
        INSTANCE_INITIALIZE), plugin->instance_initialize,
        inf_abi_as_instance(instance));
    if (err != NULL) {
        plugin_instance_fini(instance);
    }

    return err;
}

static void
plugin_instance_fini(inf_instance_t *instance)
{
    if (!instance->abi.initialized) {
        return;
    }

    instance->abi.initialized = false;
    const inf_plugin_t *plugin = instance->model->backend->abi.plugin;
    if (plugin->instance_finalize != NULL) {
        log_finalizer(inf_guard_instance(WHO(instance->model->backend,
            INSTANCE_FINALIZE), plugin->instance_finalize,
            inf_abi_as_instance(instance)), "instance", instance->spec->name);
    }

    inf_json_text_free(instance->abi.host_policy);
    instance->abi.host_policy = NULL;
    inf_execution_free(instance->abi.execution);
    instance->abi.execution = NULL;
}

static inf_err_t *
plugin_instance_ready(inf_instance_t *instance)
{
    const inf_plugin_t *plugin = instance->model->backend->abi.plugin;
    return plugin->instance_ready != NULL
        ? inf_guard_instance(WHO(instance->model->backend, INSTANCE_READY),
            plugin->instance_ready, inf_abi_as_instance(instance)) : NULL;
}

static bool
plugin_has_ready_check(const inf_model_t *model)
{
    const inf_plugin_t *plugin = model->backend != NULL
        ? model->backend->abi.plugin : NULL;
    return plugin != NULL && plugin->instance_ready != NULL;
}

inf_err_t *
inf_plugin_execute(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count)
{
    const inf_plugin_t *plugin = instance->model->backend->abi.plugin;
    return inf_guard_execute(WHO(instance->model->backend, INSTANCE_EXECUTE),
        plugin->execute, inf_abi_as_instance(instance),
        (TRITONBACKEND_Request **) (void *) requests, count);
}

static inf_err_t *
plugin_load(const char *library, inf_plugin_t **out)
{
    void *handle;
    void *execute;

    inf_err_t *err = inf_plugin_library_open(library, &handle);
    if (err != NULL) {
        return err;
    }

    err = inf_plugin_library_require(handle, library, INSTANCE_EXECUTE,
        &execute);
    inf_plugin_t *plugin = err == NULL ? calloc(1, sizeof(*plugin)) : NULL;
    if (plugin == NULL) {
        dlclose(handle);
        return err != NULL ? err : inf_err_nomem();
    }

    plugin->handle = handle;
    plugin->execute = (inf_guard_execute_fn) execute;
    plugin->initialize = (inf_guard_backend_fn) dlsym(handle, INITIALIZE);
    plugin->finalize = (inf_guard_backend_fn) dlsym(handle, FINALIZE);
    plugin->attribute = (inf_guard_attribute_fn) dlsym(handle, ATTRIBUTE);
    plugin->model_initialize = (inf_guard_model_fn)
        dlsym(handle, MODEL_INITIALIZE);
    plugin->model_finalize = (inf_guard_model_fn) dlsym(handle, MODEL_FINALIZE);
    plugin->instance_initialize = (inf_guard_instance_fn)
        dlsym(handle, INSTANCE_INITIALIZE);
    plugin->instance_finalize = (inf_guard_instance_fn)
        dlsym(handle, INSTANCE_FINALIZE);
    plugin->instance_ready = (inf_guard_instance_fn)
        dlsym(handle, INSTANCE_READY);

    *out = plugin;
    return NULL;
}

/* Creates the backend's configuration, which always has the core's four
   settings. */
static inf_err_t *
backend_config(const inf_plugin_setting_t *settings, size_t count,
    inf_json_text_t **out)
{
    inf_buf_t json;
    inf_buf_init(&json);
    inf_buf_puts(&json, "{\"cmdline\":{");

    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            inf_buf_putc(&json, ',');
        }
        inf_json_put_string(&json, inf_slice_str(settings[i].key));
        inf_buf_putc(&json, ':');
        inf_json_put_string(&json, inf_slice_str(settings[i].value));
    }

    inf_buf_puts(&json, "}}");
    *out = inf_json_text_new(inf_buf_slice(&json).data, json.len);
    inf_err_t *err = inf_buf_status(&json);
    inf_buf_fini(&json);
    return err != NULL ? err : *out != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
host_policy_message(const inf_instance_t *instance, inf_json_text_t **out)
{
    inf_buf_t json;
    inf_buf_init(&json);
    inf_host_policy_json(instance->model->host_policies,
        instance->spec->host_policy, &json);

    *out = inf_json_text_new(inf_buf_slice(&json).data, json.len);
    inf_err_t *err = inf_buf_status(&json);
    inf_buf_fini(&json);
    return err != NULL ? err : *out != NULL ? NULL : inf_err_nomem();
}

static void
backend_free(inf_backend_t *backend)
{
    for (uint32_t i = 0; i < backend->preferred_count; i++) {
        free((void *) backend->preferred[i].gpus);
    }

    free(backend->preferred);
    inf_json_text_free(backend->abi.config);
    free(backend->abi.plugin);
    free(backend->name);
    free(backend->library);
    free(backend->dir);
    free(backend);
}

static void
log_finalizer(inf_err_t *err, const char *what, const char *name)
{
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "finalizing %s \"%s\"", what, name));
    }
}
