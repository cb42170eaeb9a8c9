/* model.c - see model.h */

#include "model.h"

#include "model_path.h"

#include "common/auto_complete.h"
#include "common/config_check.h"

#include <stdlib.h>

static TRITONSERVER_Error *model_setup(vino_model_t *m);
static TRITONSERVER_Error *model_complete(vino_model_t *m);
static TRITONSERVER_Error *count_instances(const vino_model_t *m,
    uint32_t *count);

TRITONSERVER_Error *
vino_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    vino_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of a model");
    }

    m->rt = runtime;
    m->handle = handle;
    pthread_mutex_init(&m->lock, NULL);
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = model_setup(m);
    }
    if (err != NULL) {
        vino_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
vino_model_free(void *model)
{
    vino_model_t *m = model;

    if (m == NULL) {
        return;
    }

    vino_network_free(m->network);
    bk_model_config_fini(&m->config);
    pthread_mutex_destroy(&m->lock);
    free(m->path);
    free(m);
}

TRITONSERVER_Error *
vino_model_compile(vino_model_t *m)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t instances = 1;

    pthread_mutex_lock(&m->lock);
    if (m->network->options == NULL) {
        err = count_instances(m, &instances);
        if (err == NULL) {
            vino_options_properties(&m->options, instances);
            err = vino_network_compile(m->network, &m->config, &m->options);
        }
    }
    pthread_mutex_unlock(&m->lock);

    return err;
}

static TRITONSERVER_Error *
model_setup(vino_model_t *m)
{
    bool may_complete = false;

    TRITONSERVER_Error *err = vino_options_read(&m->options, &m->config);
    if (err == NULL) {
        err = vino_model_path_find(m->handle, &m->config, &m->path);
    }
    if (err == NULL) {
        err = vino_model_path_check(m->path);
    }
    if (err == NULL) {
        err = vino_network_read(&m->network, m->rt, &m->config, &m->options,
            m->path);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelAutoCompleteConfig(m->handle,
            &may_complete);
    }
    if (err == NULL && may_complete && !bk_config_is_complete(&m->config)) {
        err = model_complete(m);
    }
    if (err == NULL) {
        err = vino_network_adapt(m->network, &m->config, &m->options);
    }
    if (err == NULL) {
        err = bk_config_check(&m->config, &m->network->tensors);
    }
    if (err == NULL) {
        bk_tensors_apply_config(&m->network->tensors, &m->config);
    }

    return err;
}

/* With a configured batch, the network gets its batch dimension before its
 * tensors are described.  The options point into the configuration, so they
 * are read again after its completion. */
static TRITONSERVER_Error *
model_complete(vino_model_t *m)
{
    TRITONSERVER_Error *err = NULL;

    if (m->config.max_batch_size > 0) {
        err = vino_network_adapt(m->network, &m->config, &m->options);
    }

    if (err == NULL) {
        err = bk_config_auto_complete(&m->config, &m->network->tensors,
            m->rt->default_max_batch_size, m->handle);
    }

    return err != NULL ? err : vino_options_read(&m->options, &m->config);
}

/* Reads the configuration again: the core has completed its groups by now. */
static TRITONSERVER_Error *
count_instances(const vino_model_t *m, uint32_t *count)
{
    bk_model_config_t now;
    int64_t sum = 0;

    TRITONSERVER_Error *err = bk_model_config_init(&now, m->handle);
    if (err != NULL) {
        return err;
    }

    const bk_json_t *groups = bk_json_member(now.root, "instance_group");
    for (size_t i = 0; i < bk_json_count(groups) && sum < INT16_MAX; i++) {
        sum += bk_json_int(bk_json_member(bk_json_at(groups, i), "count"), 1);
    }
    bk_model_config_fini(&now);

    *count = sum < 1 ? 1 : sum > INT16_MAX ? INT16_MAX : (uint32_t) sum;
    return NULL;
}
