/* model.c - see model.h */

#include "model.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpreter.h"

#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S     86400
#define OPEN_DIRS         16

static TRITONSERVER_Error *backend_read(py_backend_t *b,
    const bk_json_t *settings);
static TRITONSERVER_Error *package_find(py_backend_t *b);
static TRITONSERVER_Error *model_open(py_model_t *m);
static TRITONSERVER_Error *find_files(py_model_t *m);
static TRITONSERVER_Error *find_backend_dir(py_model_t *m);
static TRITONSERVER_Error *read_parameters(py_model_t *m);
static TRITONSERVER_Error *complete(py_model_t *m);
static int remove_one(const char *path, const struct stat *st, int kind,
    struct FTW *at);
static bool print(char **out, const char *fmt, ...) BK_PRINTF(2, 3);

TRITONSERVER_Error *
py_backend_new(py_backend_t **out, TRITONBACKEND_Backend *backend)
{
    TRITONSERVER_Message *message;
    bk_json_t *config = NULL;
    const char *text;
    size_t len;

    py_backend_t *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return bk_err_nomem("the backend");
    }

    b->timeout_s = TIMEOUT_DEFAULT_S;
    TRITONSERVER_Error *err = TRITONBACKEND_BackendConfig(backend, &message);
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &len);
    }
    if (err == NULL) {
        err = bk_json_parse(text, len, &config);
    }
    if (err == NULL) {
        err = backend_read(b, bk_json_member(config, "cmdline"));
    }
    bk_json_free(config);
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
        free(b->interpreter);
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
    TRITONSERVER_Error *err = model_open(m);
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

    if (m->private_dir != NULL) {
        (void) nftw(m->private_dir, remove_one, OPEN_DIRS, FTW_DEPTH
            | FTW_PHYS);
    }
    bk_model_config_fini(&m->config);
    free(m->version_dir);
    free(m->backend_dir);
    free(m->file);
    free(m->environment);
    free(m->private_dir);
    free(m);
}

static TRITONSERVER_Error *
backend_read(py_backend_t *b, const bk_json_t *settings)
{
    static const char *const unused[] = {
        "shm-default-byte-size", "shm-growth-byte-size",
        "shm-region-prefix-name", "shm_message_queue_size", "thread-pool-size"
    };

    for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
        if (bk_json_member(settings, unused[i]) != NULL) {
            bk_log(TRITONSERVER_LOG_INFO, "backend python: setting %s has no "
                "effect: memory grows as it is needed", unused[i]);
        }
    }

    const char *text = bk_json_string(bk_json_member(settings,
        "stub-timeout-seconds"), NULL);
    if (text != NULL) {
        char *end;
        b->timeout_s = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || b->timeout_s < 1
            || b->timeout_s > TIMEOUT_MAX_S)
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "setting "
                "stub-timeout-seconds of backend python is \"%s\", not a "
                "number from 1 to %d", text, TIMEOUT_MAX_S);
        }
    }

    text = bk_json_string(bk_json_member(settings, "interpreter"), "python3");
    return print(&b->interpreter, "%s", text) ? NULL
        : bk_err_nomem("the backend");
}

/* It lies where this library does. */
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
        err = read_parameters(m);
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
        || strchr(name, '/') != NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "model \"%s\": its "
            "file \"%s\" must be in the version's directory and end in .py",
            m->name, name);
    }

    if (!print(&m->file, "%s/%s", m->backend_dir != NULL ? m->backend_dir
        : m->version_dir, name))
    {
        return bk_err_nomem("a model");
    }
    if (access(m->file, R_OK) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
            "model \"%s\": cannot read %s", m->name, m->file);
    }
    return NULL;
}

/* A backend of another name is a model.py in its own directory. */
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

static TRITONSERVER_Error *
read_parameters(py_model_t *m)
{
    const char *force = bk_model_config_parameter(&m->config,
        "FORCE_CPU_ONLY_INPUT_TENSORS");
    const char *environment = bk_model_config_parameter(&m->config,
        "EXECUTION_ENV_PATH");

    if (force != NULL && strcmp(force, "yes") != 0 && strcmp(force, "no") != 0)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "model \"%s\": "
            "parameter FORCE_CPU_ONLY_INPUT_TENSORS is \"%s\", neither yes "
            "nor no", m->name, force);
    }

    if (environment != NULL) {
        const char *tmp = getenv("TMPDIR");

        if (!print(&m->environment, "%s", environment)
            || !print(&m->private_dir, "%s/inference-python-XXXXXX",
                tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp"))
        {
            return bk_err_nomem("a model");
        }
        if (mkdtemp(m->private_dir) == NULL) {
            TRITONSERVER_Error *err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "model \"%s\": cannot make a directory %s for its "
                "environment", m->name, m->private_dir);
            free(m->private_dir);
            m->private_dir = NULL;
            return err;
        }
    }

    return bk_model_config_parameter_bool(&m->config, "ZERO_COPY_INPUTS",
        &m->zero_copy);
}

/* By the model's own auto_complete_config, in a process that ends. */
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

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void) st;
    (void) kind;
    (void) at;
    (void) remove(path);
    return 0;
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
