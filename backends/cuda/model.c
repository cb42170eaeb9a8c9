/* model.c - see model.h */

#include "model.h"

#include <pthread.h>
#include <stdlib.h>

struct gpu_model_s {
    /* set in new, then read by anyone */
    gpu_runtime_t    *rt;
    bk_model_config_t config;
    char             *config_text;
    gpu_program_t     program;
    gpu_model_file_t  file;
    gpu_library_t     library;          /* of a model.so                     */

    pthread_mutex_t   lock;             /* guards loaded                     */
    gpu_loaded_t     *loaded[GPU_DEVICES_MAX];  /* by device                 */
};

static TRITONSERVER_Error *model_setup(gpu_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *check_kernels(const gpu_model_t *m);

TRITONSERVER_Error *
gpu_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    gpu_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of a cuda model");
    }

    m->rt = runtime;
    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        gpu_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
gpu_model_free(void *model)
{
    gpu_model_t *m = model;

    if (m == NULL) {
        return;
    }

    for (int i = 0; i < GPU_DEVICES_MAX; i++) {
        gpu_loaded_free(m->loaded[i]);
    }
    gpu_library_close(&m->library);
    gpu_model_file_fini(&m->file);
    gpu_program_fini(&m->program);
    bk_model_config_fini(&m->config);
    pthread_mutex_destroy(&m->lock);
    free(m->config_text);
    free(m);
}

const gpu_program_t *
gpu_model_program(const gpu_model_t *m)
{
    return &m->program;
}

const gpu_library_t *
gpu_model_library(const gpu_model_t *m)
{
    return m->library.handle != NULL ? &m->library : NULL;
}

void
gpu_model_describe(const gpu_model_t *m, gpu_model_options_t *options)
{
    options->name = m->config.name;
    options->directory = m->file.directory;
    options->config = m->config_text;
    options->rows_most = m->program.rows_most;
}

/* The lock is held while code is compiled: other instances of this model need
   the same code. */
TRITONSERVER_Error *
gpu_model_load(gpu_model_t *m, int64_t device, gpu_loaded_t **out)
{
    gpu_driver_t *driver;
    gpu_device_t *on;

    TRITONSERVER_Error *err = gpu_runtime_driver(m->rt, &driver);
    if (err == NULL) {
        err = gpu_device_get(driver, device, &on);
    }
    if (err == NULL) {
        err = gpu_device_state(on);
    }
    if (err != NULL) {
        return err;
    }

    pthread_mutex_lock(&m->lock);
    if (m->loaded[device] == NULL) {
        err = gpu_loaded_new(&m->loaded[device], m->rt, on, &m->file,
            &m->program);
    }
    *out = m->loaded[device];
    pthread_mutex_unlock(&m->lock);
    return err;
}

TRITONSERVER_Error *
gpu_model_blame(const gpu_model_t *m, TRITONSERVER_Error *err)
{
    return err == NULL || m->file.path == NULL ? err
        : bk_err_add(err, "cannot run \"%s\"", m->file.path);
}

TRITONSERVER_Error *
gpu_model_blame_by_name(const gpu_model_t *m, TRITONSERVER_Error *err)
{
    return err == NULL ? NULL
        : bk_err_add(err, "cannot run model \"%s\"", m->config.name);
}

static TRITONSERVER_Error *
model_setup(gpu_model_t *m, TRITONBACKEND_Model *handle)
{
    gpu_driver_t *driver;

    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = gpu_model_file_find(&m->file, handle, &m->config);
    }
    if (err != NULL) {
        return err;
    }

    err = gpu_program_load(&m->program, &m->config, &m->file);
    if (err == NULL) {
        err = check_kernels(m);
    }
    if (err == NULL) {
        m->config_text = bk_json_dump(m->config.root);
        err = m->config_text == NULL ? bk_err_nomem("configuration") : NULL;
    }
    if (err == NULL) {
        err = gpu_runtime_driver(m->rt, &driver);
    }
    if (err == NULL && m->file.kind == GPU_FILE_LIBRARY) {
        err = gpu_library_open(&m->library, m->file.path);
    }
    return gpu_model_blame(m, err);
}

static TRITONSERVER_Error *
check_kernels(const gpu_model_t *m)
{
    bool library = m->file.kind == GPU_FILE_LIBRARY;

    if (library && m->program.kernel_count > 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a library launches"
            " its kernels itself; the configuration names kernel_1");
    }
    if (!library && m->program.kernel_count == 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the configuration"
            " names no kernel: parameter \"kernel_1\" is missing");
    }
    return NULL;
}
