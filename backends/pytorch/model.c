/* model.c - see model.h */

#include "model.h"

#include "aoti.h"
#include "runtime.h"
#include "script.h"
#include "tables.h"

#include "common/config_check.h"
#include "common/model_file.h"

#include <stdlib.h>
#include <string.h>

/* An engine that all instances on its device use. */
struct pt_shared_s {
    pt_shared_t *next;
    int          device;
    pt_engine_t *engine;
};

static TRITONSERVER_Error *model_setup(pt_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *platform_read(pt_model_t *m);
static TRITONSERVER_Error *engine_make(pt_model_t *m, int device,
    uint32_t runs, pt_engine_t **out);
static TRITONSERVER_Error *shared_find(pt_model_t *m, int device,
    pt_engine_t **out);
static uint32_t instances_count(const bk_model_config_t *config);

TRITONSERVER_Error *
pt_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;

    pt_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of a pytorch model");
    }

    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        pt_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
pt_model_free(void *model)
{
    pt_model_t *m = model;

    while (m->shared != NULL) {
        pt_shared_t *first = m->shared;

        m->shared = first->next;
        pt_engine_free(first->engine);
        free(first);
    }

    pt_package_close(&m->package);
    bk_tensors_fini(&m->tensors);
    bk_model_config_fini(&m->config);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m);
}

TRITONSERVER_Error *
pt_model_open(pt_model_t *m, int device, pt_engine_t **out, bool *own)
{
    *own = !m->options.weight_sharing;
    TRITONSERVER_Error *err = device < 0 ? NULL : pt_gpu_check(device);
    if (err == NULL) {
        err = *own ? engine_make(m, device, 1, out)
            : shared_find(m, device, out);
    }

    return err;
}

static TRITONSERVER_Error *
model_setup(pt_model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = platform_read(m);
    }
    if (err == NULL) {
        err = pt_options_read(&m->options, &m->config);
    }
    if (err == NULL) {
        err = pt_tables_read(&m->tensors, &m->config);
    }
    if (err == NULL) {
        err = bk_config_check(&m->config, &m->tensors);
    }
    if (err == NULL) {
        bk_tensors_apply_config(&m->tensors, &m->config);
        err = bk_model_file(handle, &m->config, m->compiled ? "model.pt2"
            : "model.pt", &m->path);
    }
    if (err == NULL && m->compiled) {
        err = pt_package_open(&m->package, m->path);
    }
    if (err == NULL && !m->compiled) {
        pt_options_log(&m->options, m->config.name);
    }
    if (err == NULL) {
        pt_runtime_inter_op(m->options.inter_threads, m->config.name);
    }

    return err;
}

/* A file called *.pt2 is a package under either platform: the core fills in
   "pytorch_libtorch" where a configuration has none. */
static TRITONSERVER_Error *
platform_read(pt_model_t *m)
{
    const char *platform = bk_json_string(bk_json_member(m->config.root,
        "platform"), "");
    const char *file = bk_json_string(bk_json_member(m->config.root,
        "default_model_filename"), "");
    size_t len = strlen(file);

    if (platform[0] != '\0' && strcmp(platform, "pytorch_libtorch") != 0
        && strcmp(platform, "torch_aoti") != 0)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "platform \"%s\" is not one of pytorch_libtorch and torch_aoti",
            platform);
    }

    m->compiled = strcmp(platform, "torch_aoti") == 0
        || (len > 4 && strcmp(file + len - 4, ".pt2") == 0);
    return NULL;
}

static TRITONSERVER_Error *
engine_make(pt_model_t *m, int device, uint32_t runs, pt_engine_t **out)
{
    return m->compiled ? pt_aoti_open(out, &m->package, device,
        m->config.max_batch_size > 0, runs)
        : pt_script_open(out, m->config.name, m->path, &m->options, device);
}

/* The lock is held while the first instance on a device loads: the others
   wait for its engine. */
static TRITONSERVER_Error *
shared_find(pt_model_t *m, int device, pt_engine_t **out)
{
    pt_shared_t *s;

    pthread_mutex_lock(&m->lock);
    for (s = m->shared; s != NULL && s->device != device; s = s->next) {
    }

    TRITONSERVER_Error *err = NULL;
    if (s != NULL && !m->compiled) {
        bk_log(TRITONSERVER_LOG_INFO, "Reusing TorchScript model for instance "
            "'%s'", m->config.name);
    }
    if (s == NULL) {
        s = calloc(1, sizeof(*s));
        err = s == NULL ? bk_err_nomem("a shared engine")
            : engine_make(m, device, instances_count(&m->config),
                &s->engine);
        if (err == NULL) {
            s->device = device;
            s->next = m->shared;
            m->shared = s;

        } else {
            free(s);
            s = NULL;
        }
    }
    pthread_mutex_unlock(&m->lock);

    if (err == NULL) {
        *out = s->engine;
    }
    return err;
}

static uint32_t
instances_count(const bk_model_config_t *config)
{
    const bk_json_t *groups = bk_json_member(config->root, "instance_group");
    int64_t sum = 0;

    for (size_t i = 0; i < bk_json_count(groups); i++) {
        sum += bk_json_int(bk_json_member(bk_json_at(groups, i), "count"), 1);
    }

    return sum < 1 ? 1 : sum > 1024 ? 1024 : (uint32_t) sum;
}
