#include "core/model/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/model/instances.h"
#include "core/proto/message.h"
#include "core/tensor/ledger.h"

#define MODEL_CONFIG_RANK 20
#define MODEL_USAGE_RANK  21

inf_model_t *
inf_model_new(const char *name, int64_t version, const char *dir)
{
    inf_model_t *model = calloc(1, sizeof(*model));
    if (model == NULL) {
        return NULL;
    }

    atomic_init(&model->refs, 1);
    atomic_init(&model->sched.users, 1);
    inf_lock_init(&model->config_lock, MODEL_CONFIG_RANK);
    inf_lock_init(&model->usage_lock, MODEL_USAGE_RANK);
    model->name = strdup(name);
    model->dir = strdup(dir);
    model->version = version;

    if (model->name == NULL || model->dir == NULL) {
        inf_model_free(model);
        return NULL;
    }

    return model;
}

void
inf_model_free(inf_model_t *model)
{
    if (model == NULL) {
        return;
    }

    inf_instances_free(model);
    inf_statistics_fini(&model->statistics);
    inf_latencies_free(model->latencies);
    free(model->memory.rows);
    inf_labels_unref(model->labels);
    inf_config_tensors_free(model->tensors);
    inf_message_free((ProtobufCMessage *) model->built);
    inf_model_config_free(model->config);
    inf_lock_fini(&model->config_lock);
    inf_lock_fini(&model->usage_lock);
    inf_ledger_free(model->ledger);
    free(model->space);
    free(model->name);
    free(model->dir);
    free(model);
}

const char *
inf_model_backend_name(const inf_model_t *model)
{
    return model != NULL && model->backend != NULL ? model->backend->name : "";
}

bool
inf_model_is_decoupled(const inf_model_t *model)
{
    return model->decoupled;
}

bool
inf_model_enter(inf_model_t *model)
{
    atomic_fetch_add(&model->visitors, 1);
    if (!atomic_load(&model->unloaded)) {
        return true;
    }

    inf_model_leave(model);
    return false;
}

void
inf_model_leave(inf_model_t *model)
{
    atomic_fetch_sub(&model->visitors, 1);
}

/* Waits by polling: visits are rare and short, and this call is rarer. */
void
inf_model_close(inf_model_t *model)
{
    atomic_store(&model->unloaded, true);
    while (atomic_load(&model->visitors) > 0) {
        usleep(1000);
    }
}

void
inf_model_ref(inf_model_t *model)
{
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
}

void
inf_model_unref(inf_model_t *model)
{
    if (model == NULL) {
        return;
    }

    uint64_t before = atomic_fetch_sub_explicit(&model->refs, 1,
        memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        model->ops->last_unref(model);
    }
}
