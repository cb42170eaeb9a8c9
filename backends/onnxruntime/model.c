/* model.c - see model.h */

#include "model.h"

#include "complete.h"
#include "external_data.h"
#include "fit.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_FILENAME "model.onnx"

static TRITONSERVER_Error *model_setup(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *model_find_runtime(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *model_find_file(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *model_complete(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *session_make(ort_model_t *m,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id,
    ort_session_t **out);

TRITONSERVER_Error *
ort_model_new(ort_model_t **out, TRITONBACKEND_Model *handle)
{
    ort_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of an onnxruntime model");
    }

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        ort_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
ort_model_free(ort_model_t *m)
{
    if (m == NULL) {
        return;
    }

    ort_session_free(atomic_exchange(&m->spare, NULL));
    bk_model_config_fini(&m->config);
    free(m->path);
    free(m);
}

TRITONSERVER_Error *
ort_model_open_session(ort_model_t *m, TRITONSERVER_InstanceGroupKind kind,
    int32_t device_id, ort_session_t **out)
{
    ort_session_t *s = atomic_exchange(&m->spare, NULL);

    if (s != NULL && kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        ort_session_free(s);
        s = NULL;
    }

    if (s == NULL) {
        TRITONSERVER_Error *err = session_make(m, kind, device_id, &s);
        if (err != NULL) {
            return err;
        }
    }

    TRITONSERVER_Error *err = ort_config_fits(&m->config, s);
    if (err != NULL) {
        ort_session_free(s);
        return err;
    }

    ort_config_apply(&m->config, s);
    *out = s;
    return NULL;
}

static TRITONSERVER_Error *
model_setup(ort_model_t *m, TRITONBACKEND_Model *handle)
{
    bool may_complete = false;

    TRITONSERVER_Error *err = model_find_runtime(m, handle);
    if (err != NULL) {
        return err;
    }

    err = bk_model_config_init(&m->config, handle);
    if (err != NULL) {
        return err;
    }

    err = model_find_file(m, handle);
    if (err != NULL) {
        return err;
    }

    err = ort_external_data_check_file(m->path, &m->format);
    if (err != NULL) {
        return bk_err_add(err, "model \"%s\"", m->config.name);
    }

    err = TRITONBACKEND_ModelAutoCompleteConfig(handle, &may_complete);
    if (err != NULL || !may_complete || ort_config_is_complete(&m->config)) {
        return err;
    }

    return model_complete(m, handle);
}

static TRITONSERVER_Error *
model_find_runtime(ort_model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONBACKEND_Backend *backend;
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(handle, &backend);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_BackendState(backend, &state);
    m->rt = state;
    return err;
}

/* <model>/<version>/<filename>, or model.onnx in it if that is a directory */
static TRITONSERVER_Error *
model_find_file(ort_model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONBACKEND_ArtifactType type;
    const char *directory;
    uint64_t version;
    struct stat st;
    char *path = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(handle, &type,
        &directory);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelVersion(handle, &version);
    if (err != NULL) {
        return err;
    }

    const char *filename = bk_json_string(bk_json_member(m->config.root,
        "default_model_filename"), "");
    if (filename[0] == '\0') {
        filename = DEFAULT_FILENAME;
    }
    if (!ort_external_data_is_inner(filename, strlen(filename))) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "model \"%s\":"
            " default_model_filename \"%s\" leads out of the version's"
            " directory", m->config.name, filename);
    }

    if (asprintf(&path, "%s/%" PRIu64 "/%s", directory, version,
        filename) < 0)
    {
        return bk_err_nomem("path of a model");
    }

    m->path = path;
    if (stat(path, &st) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
            "model \"%s\": there is no file \"%s\"", m->config.name, path);
    }

    if (S_ISDIR(st.st_mode)) {
        if (asprintf(&m->path, "%s/" DEFAULT_FILENAME, path) < 0) {
            m->path = path;
            return bk_err_nomem("path of a model");
        }
        free(path);
    }

    return NULL;
}

static TRITONSERVER_Error *
model_complete(ort_model_t *m, TRITONBACKEND_Model *handle)
{
    ort_session_t *s = NULL;

    TRITONSERVER_Error *err = session_make(m,
        TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, &s);
    if (err != NULL) {
        return err;
    }

    err = ort_config_complete(&m->config, s, handle);
    if (err != NULL) {
        ort_session_free(s);
        return err;
    }

    atomic_store(&m->spare, s);
    return NULL;
}

static TRITONSERVER_Error *
session_make(ort_model_t *m, TRITONSERVER_InstanceGroupKind kind,
    int32_t device_id, ort_session_t **out)
{
    ort_options_t options;

    TRITONSERVER_Error *err = ort_options_new(&options, m->rt, &m->config,
        kind, device_id);
    if (err == NULL) {
        /* read as what it was checked as; its name does not count */
        err = ort_err(m->rt, m->rt->api->AddSessionConfigEntry(
            options.session, "session.load_model_format", m->format),
            "session.load_model_format");
        if (err == NULL) {
            err = ort_session_new(out, m->rt, m->path, options.session,
                options.run, kind == TRITONSERVER_INSTANCEGROUPKIND_GPU
                ? device_id : ORT_NO_DEVICE);
        }
        if (err == NULL) {
            options.run = NULL;
        }
        ort_options_free(&options, m->rt);
    }

    return err == NULL ? NULL : bk_err_add(err, "model \"%s\"",
        m->config.name);
}
