/* model.c - see model.h */

#include "model.h"

#include "common/auto_complete.h"
#include "common/device.h"
#include "common/config_check.h"
#include "common/model_file.h"
#include "external_data.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DEFAULT_FILENAME "model.onnx"

struct ort_shared_s {
    ort_shared_t *next;
    int32_t       device_id;                /* or BK_NO_DEVICE               */
    OrtSession   *handle;
};

static TRITONSERVER_Error *model_setup(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *model_find_file(const ort_model_t *m,
    int32_t device_id, char **out);
static TRITONSERVER_Error *model_complete(ort_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *session_open(ort_model_t *m,
    const char *path, const char *format, TRITONSERVER_InstanceGroupKind kind,
    int32_t device_id, ort_session_t **out);
static TRITONSERVER_Error *shared_find(ort_model_t *m, const char *path,
    const OrtSessionOptions *options, int32_t device_id, OrtSession **out);
static TRITONSERVER_Error *session_make(ort_model_t *m,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id,
    ort_session_t **out);

TRITONSERVER_Error *
ort_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    ort_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of an onnxruntime model");
    }

    m->rt = runtime;
    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        ort_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
ort_model_free(void *model)
{
    ort_model_t *m = model;

    ort_session_free(atomic_exchange(&m->spare, NULL));
    while (m->shared != NULL) {
        ort_shared_t *first = m->shared;

        m->shared = first->next;
        m->rt->api->ReleaseSession(first->handle);
        free(first);
    }
    pthread_mutex_destroy(&m->lock);
    bk_model_config_fini(&m->config);
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

    TRITONSERVER_Error *err = bk_config_check(&m->config, &s->tensors);
    if (err != NULL) {
        ort_session_free(s);
        return err;
    }

    bk_tensors_apply_config(&s->tensors, &m->config);
    *out = s;
    return NULL;
}

static TRITONSERVER_Error *
model_setup(ort_model_t *m, TRITONBACKEND_Model *handle)
{
    bool may_complete = false;

    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err != NULL) {
        return err;
    }

    m->handle = handle;
    err = bk_model_config_parameter_bool(&m->config,
        "share_session_between_instances", &m->share);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelAutoCompleteConfig(handle, &may_complete);
    if (err != NULL || !may_complete || bk_config_is_complete(&m->config)) {
        return err;
    }

    return model_complete(m, handle);
}

static TRITONSERVER_Error *
model_find_file(const ort_model_t *m, int32_t device_id, char **out)
{
    struct stat st;
    char *path;

    TRITONSERVER_Error *err = device_id == BK_NO_DEVICE
        ? bk_model_file(m->handle, &m->config, DEFAULT_FILENAME, &path)
        : bk_model_file_of_gpu(m->handle, &m->config, device_id,
        DEFAULT_FILENAME, &path);
    if (err != NULL) {
        return err;
    }

    *out = path;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return NULL;
    }

    if (asprintf(out, "%s/" DEFAULT_FILENAME, path) < 0) {
        *out = NULL;
        err = bk_err_nomem("path of a model");
    }
    free(path);
    return err;
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

    err = bk_config_auto_complete(&m->config, &s->tensors,
        m->rt->default_max_batch_size, handle);
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
    const char *format;
    char *path = NULL;

    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        device_id = BK_NO_DEVICE;
    }

    TRITONSERVER_Error *err = model_find_file(m, device_id, &path);
    if (err != NULL) {
        return err;
    }

    err = ort_external_data_check_file(path, &format);
    if (err == NULL) {
        err = session_open(m, path, format, kind, device_id, out);
    }

    free(path);
    return err;
}

static TRITONSERVER_Error *
session_open(ort_model_t *m, const char *path, const char *format,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id,
    ort_session_t **out)
{
    OrtSession *handle = NULL;
    ort_options_t options;

    TRITONSERVER_Error *err = ort_options_new(&options, m->rt, &m->config,
        kind, device_id);
    if (err != NULL) {
        return err;
    }

    /* read as what it was checked as; its name does not count */
    err = ort_err(m->rt, m->rt->api->AddSessionConfigEntry(options.session,
        "session.load_model_format", format), "session.load_model_format");
    if (err == NULL) {
        err = m->share ? shared_find(m, path, options.session, device_id,
            &handle) : ort_session_load(&handle, m->rt, path,
            options.session);
    }
    if (err == NULL) {
        err = ort_session_new(out, m->rt, path, handle, m->share, options.run,
            device_id);
    }
    if (err == NULL) {
        options.run = NULL;
    } else if (handle != NULL && !m->share) {
        m->rt->api->ReleaseSession(handle);
    }

    ort_options_free(&options, m->rt);
    return err;
}

/* The lock is held while the first instance on a device loads: the others
 * wait for its session. */
static TRITONSERVER_Error *
shared_find(ort_model_t *m, const char *path,
    const OrtSessionOptions *options, int32_t device_id, OrtSession **out)
{
    TRITONSERVER_Error *err = NULL;
    ort_shared_t *s;

    pthread_mutex_lock(&m->lock);
    for (s = m->shared; s != NULL && s->device_id != device_id; s = s->next) {
    }

    if (s != NULL) {
        bk_log(TRITONSERVER_LOG_INFO, "Reusing session for instance of model "
            "'%s'", m->config.name);

    } else {
        s = calloc(1, sizeof(*s));
        err = s == NULL ? bk_err_nomem("a shared session")
            : ort_session_load(&s->handle, m->rt, path, options);
        if (err == NULL) {
            s->device_id = device_id;
            s->next = m->shared;
            m->shared = s;

        } else {
            free(s);
        }
    }
    if (err == NULL) {
        *out = s->handle;
    }
    pthread_mutex_unlock(&m->lock);
    return err;
}
