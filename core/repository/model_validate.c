#include "core/repository/model_validate.h"

#include <string.h>

#include "core/model/private_inputs.h"
#include "core/proto/message.h"
#include "core/sched/sequence_inputs.h"

static inf_err_t *tell(inf_err_t *err, inf_model_problem_fn fn, void *userp);

inf_err_t *
inf_model_draft(const inf_model_load_t *what, inf_model_t **out)
{
    inf_model_t *model = inf_model_new(what->name, what->version, what->dir);
    if (model == NULL) {
        return inf_err_nomem();
    }

    model->ops = what->ops;
    model->owner = what->owner;
    model->server = what->options->server;
    model->host_policies = &what->core_config->host_policies;
    model->auto_complete = what->core_config->values->auto_complete;

    inf_err_t *err = NULL;
    if (what->space != NULL && what->space[0] != '\0') {
        model->space = strdup(what->space);
        err = model->space != NULL ? NULL : inf_err_nomem();
    }
    if (err == NULL) {                  /* each version completes its own    */
        err = inf_model_config_copy(what->config->msg, what->config,
            &model->config);
    }
    if (err != NULL) {
        inf_model_free(model);
        return err;
    }

    *out = model;
    return NULL;
}

inf_err_t *
inf_model_find_backend(const inf_model_load_t *what, const inf_model_t *model,
    inf_backend_location_t *out)
{
    const NginxInference__CoreConfig *config = what->core_config->values;
    const inf_backend_query_t query = {
        .model_name = model->name,
        .model_dir = model->dir,
        .version = model->version,
        .backend = model->config->msg->backend,
        .runtime = model->config->msg->runtime,
        .global_dirs = (const char *const *) config->backend_directories,
        .global_count = config->n_backend_directories
    };

    return inf_backend_search(&query, out);
}

inf_err_t *
inf_model_fix_config(inf_model_t *model)
{
    ProtobufCMessage *built;

    inf_err_t *err = inf_message_clone(&model->config->msg->base, &built);
    if (err != NULL) {
        return err;
    }

    model->built = (Inference__ModelConfig *) (void *) built;
    model->decoupled = model->built->model_transaction_policy != NULL
        && model->built->model_transaction_policy->decoupled;
    model->sequential = model->built->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING;
    return NULL;
}

inf_err_t *
inf_model_make_tables(const inf_model_load_t *what, inf_model_t *model,
    inf_model_problem_fn fn, void *userp)
{
    /* the others need this one */
    inf_err_t *err = inf_config_tensors_new(model->built, &model->tensors);
    if (err == NULL) {
        err = tell(inf_labels_load(what->storage, what->dir, model->built,
            &model->labels), fn, userp);
    }
    if (err == NULL) {
        err = tell(inf_sequence_inputs_new(what->storage, what->dir, model,
            &model->sched.sequence_inputs), fn, userp);
    }
    if (err == NULL) {
        model->own_gpu_inputs = inf_private_inputs_own_gpu(model->built);
        err = tell(inf_private_inputs_wanted(model->built,
            &model->private_inputs), fn, userp);
    }
    return err;
}

/* Gives an error to fn, if there is one; otherwise returns the error. */
static inf_err_t *
tell(inf_err_t *err, inf_model_problem_fn fn, void *userp)
{
    if (err == NULL || fn == NULL) {
        return err;
    }

    fn(userp, err);
    return NULL;
}
