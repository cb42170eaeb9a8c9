/* model.c - see model.h */

#include "model.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/common/path.h"
#include "interpreter.h"

static TRITONSERVER_Error *package_find(py_backend_t *b);
static TRITONSERVER_Error *model_open(py_model_t *m);
static TRITONSERVER_Error *find_files(py_model_t *m);
static TRITONSERVER_Error *find_backend_dir(py_model_t *m);
static TRITONSERVER_Error *complete(py_model_t *m);
static bool print(char **out, const char *fmt, ...) BK_PRINTF(2, 3);

TRITONSERVER_Error *
py_backend_new(py_backend_t **out, TRITONBACKEND_Backend *backend)
{
    TRITONSERVER_Message *message;
    const char *text;
    size_t len;

    py_backend_t *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return bk_err_nomem("the backend");
    }

    TRITONSERVER_Error *err = TRITONBACKEND_BackendConfig(backend, &message);
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &len);
    }
    if (err == NULL) {
        err = py_settings_init(&b->settings, text, len);
    }
    if (err == NULL) {
        const py_environment_options_t options = {
            .archive_bytes = b->settings.environment_bytes,
            .activate_s = (unsigned) (b->settings.start_timeout_ns
                / 1000000000)
        };
        err = py_environments_new(&options, &b->environments);
    }
    if (err == NULL) {
        err = py_gpus_new(&b->gpus);
    }
    if (err == NULL) {
        err = package_find(b);
    }
    if (err != NULL) {
        py_backend_free(b);
        return err;
    }

    *out = b;
    return NULL;
}

void
py_backend_free(py_backend_t *b)
{
    if (b != NULL) {
        py_gpus_unref(b->gpus);
        py_environments_free(b->environments);
        py_settings_fini(&b->settings);
        free(b->package);
        free(b);
    }
}

TRITONSERVER_Error *
py_model_new(py_model_t **out, TRITONBACKEND_Model *handle)
{
    py_model_t *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        return bk_err_nomem("a model");
    }

    m->handle = handle;
    m->serving = calloc(1, sizeof(*m->serving));
    TRITONSERVER_Error *err = m->serving == NULL ? bk_err_nomem("a model")
        : model_open(m);
    if (err != NULL) {
        py_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
py_model_free(py_model_t *m)
{
    if (m == NULL) {
        return;
    }

    py_environment_close(m->environment);
    bk_model_config_fini(&m->config);
    free(m->version_dir);
    free(m->backend_dir);
    free(m->file);
    free(m->serving);
    free(m);
}

/* Finds the package, beside this library. */
static TRITONSERVER_Error *
package_find(py_backend_t *b)
{
    Dl_info info;

    if (dladdr((void *) (uintptr_t) py_backend_new, &info) == 0
        || info.dli_fname == NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "backend python does not find its own directory");
    }

    char *path = realpath(info.dli_fname, NULL);
    char *slash = path == NULL ? NULL : strrchr(path, '/');
    if (slash == NULL) {
        free(path);
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "backend python does not find its own directory");
    }

    *slash = '\0';
    b->package = path;
    return NULL;
}

static TRITONSERVER_Error *
model_open(py_model_t *m)
{
    TRITONBACKEND_ArtifactType type;
    TRITONBACKEND_Backend *backend;
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(m->handle, &backend);
    if (err == NULL) {
        err = TRITONBACKEND_BackendState(backend, &state);
    }
    if (err == NULL) {
        m->backend = state;
        err = TRITONBACKEND_ModelName(m->handle, &m->name);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelVersion(m->handle, &m->version);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelRepository(m->handle, &type, &m->directory);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelServer(m->handle, &m->server);
    }
    if (err == NULL) {
        err = bk_model_config_init(&m->config, m->handle);
    }
    if (err == NULL) {
        err = find_files(m);
    }
    if (err == NULL) {
        err = py_model_settings_read(&m->settings, &m->config);
    }
    if (err == NULL) {
        err = py_environment_open(m->backend->environments,
            m->settings.environment, m->directory,
            m->backend->settings.interpreter, &m->environment);
    }
    if (err == NULL) {
        err = complete(m);
    }
    if (err != NULL) {
        return err;
    }

    m->batching = m->config.max_batch_size > 0;
    m->decoupled = bk_json_bool(bk_json_member(bk_json_member(m->config.root,
        "model_transaction_policy"), "decoupled"), false);
    return NULL;
}

static TRITONSERVER_Error *
find_files(py_model_t *m)
{
    const char *name = bk_json_string(bk_json_member(m->config.root,
        "default_model_filename"), "");

    if (!print(&m->version_dir, "%s/%llu", m->directory,
        (unsigned long long) m->version))
    {
        return bk_err_nomem("a model");
    }

    TRITONSERVER_Error *err = find_backend_dir(m);
    if (err != NULL) {
        return err;
    }

    name = m->backend_dir != NULL || name[0] == '\0' ? "model.py" : name;
    size_t len = strlen(name);
    if (len < 4 || strcmp(name + len - 3, ".py") != 0
        || !bk_path_is_inner(name, len))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "Model name must "
            "end with '.py'. Model name is \"%s\". It is a file in the "
            "version's directory.", name);
    }

    if (!print(&m->file, "%s/%s", m->backend_dir != NULL ? m->backend_dir
        : m->version_dir, name))
    {
        return bk_err_nomem("a model");
    }
    if (access(m->file, R_OK) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, errno == ENOENT
            ? "%s does not exist in the model repository path: %s"
            : "%s cannot be read: %s", name, m->file);
    }
    return NULL;
}

/* Finds the directory of a backend with another name, which is a model.py
   there. */
static TRITONSERVER_Error *
find_backend_dir(py_model_t *m)
{
    TRITONBACKEND_ArtifactType type;
    TRITONBACKEND_Backend *backend;
    const char *name, *location;
    char *file = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(m->handle, &backend);
    if (err == NULL) {
        err = TRITONBACKEND_BackendName(backend, &name);
    }
    if (err == NULL) {
        err = TRITONBACKEND_BackendArtifacts(backend, &type, &location);
    }
    if (err != NULL || strcmp(name, "python") == 0) {
        return err;
    }

    if (!print(&file, "%s/model.py", location)) {
        return bk_err_nomem("a model");
    }
    bool based = access(file, F_OK) == 0;
    free(file);
    return !based || print(&m->backend_dir, "%s", location) ? NULL
        : bk_err_nomem("a model");
}

/* Completes the configuration by the model's auto_complete_config, in a process
   that ends.  Without that function it is set as it is, so that a model without
   a configuration loads. */
static TRITONSERVER_Error *
complete(py_model_t *m)
{
    TRITONSERVER_Message *message;
    char *text = NULL;
    bool wanted = false;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(m->handle,
        &wanted);
    if (err == NULL && wanted) {
        err = py_interpreter_complete(m, &text);
    }
    if (err != NULL || text == NULL) {
        return err;
    }

    err = TRITONSERVER_MessageNewFromSerializedJson(&message, text,
        strlen(text));
    free(text);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelSetConfig(m->handle, 1, message);
    bk_err_log(TRITONSERVER_MessageDelete(message), "a configuration");
    if (err != NULL) {
        return err;
    }

    bk_model_config_fini(&m->config);
    return bk_model_config_init(&m->config, m->handle);
}

static bool
print(char **out, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vasprintf(out, fmt, args);
    va_end(args);
    if (n < 0) {
        *out = NULL;
    }
    return n >= 0;
}
