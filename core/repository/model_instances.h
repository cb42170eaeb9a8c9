/*
 * model_instances.h - makes and frees the instances of a model.
 *
 * Owner    The model owns instances that are linked to it.
 * Thread   a loader's, one operation on a model at a time; some backends
 *          initialize several instances at once, on more threads.
 * Units    none.
 * Errors   why an instance cannot be made, with its name.
 * Route    model load, instance change -> [model instances] -> plug-in
 *          operations, runtime
 */

#ifndef INF_REPOSITORY_MODEL_INSTANCES_H
#define INF_REPOSITORY_MODEL_INSTANCES_H

#include "core/model/config_findings.h"
#include "core/repository/model_load.h"

/* Prefix of the global backend setting that limits the memory in use on a GPU
   after another instance was made, before the GPU's number. */
#define INF_DEVICE_LIMIT_KEY "model-load-gpu-limit-device-"

/* Sets the instances of msg for this machine and backend; errors in msg go to
   f. */
INF_CHECK inf_err_t *inf_model_settle_groups(const inf_model_load_t *what,
    const inf_backend_t *backend, Inference__ModelConfig *msg,
    inf_findings_t *f);

/* For a model being loaded: makes and initializes the instances of built (the
   model's, even on error), and starts their threads. */
INF_CHECK inf_err_t *inf_model_make_instances(const inf_model_load_t *what,
    inf_model_t *model);
INF_CHECK inf_err_t *inf_model_start_runner(const inf_model_load_t *what,
    inf_model_t *model);

/* Creates an instance of each spec, except those that are met (NULL: none); out
   has room.  After an error there is none. */
INF_CHECK inf_err_t *inf_model_new_instances(inf_model_t *model,
    inf_instance_specs_t *specs, const bool *met, inf_instance_t **out,
    uint32_t *count);

/* Adds instances to a serving model: initialized and prepared, without requests
   until inf_runner_admit.  On error they are freed. */
INF_CHECK inf_err_t *inf_model_add_instances(const inf_model_load_t *what,
    inf_model_t *model, inf_instance_t *const *instances, uint32_t count);

/* Finalizes and frees instances without threads, each after its requests have
   returned.  The unload of a model finalizes its own. */
void inf_model_drop_instances(const inf_lifecycle_options_t *options,
    inf_model_t *model, inf_instance_t **instances, uint32_t count);

/* Whether GPU instances of one device share a thread. */
bool inf_model_is_device_blocking(const inf_model_t *model);

#endif /* INF_REPOSITORY_MODEL_INSTANCES_H */
