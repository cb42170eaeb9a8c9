/*
 * model_instances.h - makes the instances of a model and takes them apart.
 *
 * Owner    The model owns instances that are linked to it.
 * Thread   a loader's, one operation on a model at a time; a backend that
 *          says so initialises several instances at once, on more threads.
 * Units    none.
 * Errors   why an instance can't be made, with its name.
 * Route    model load, instance change -> [model instances] -> plug-in
 *          operations, runtime
 */

#ifndef INF_REPOSITORY_MODEL_INSTANCES_H
#define INF_REPOSITORY_MODEL_INSTANCES_H

#include "core/model/config_findings.h"
#include "core/repository/model_load.h"

/* The instances of msg on this machine with that backend; errors in msg go to
   f. */
INF_CHECK inf_err_t *inf_model_settle_groups(const inf_model_load_t *what,
    const inf_backend_t *backend, Inference__ModelConfig *msg,
    inf_findings_t *f);

/* As built says, for a model that is being loaded: initialised instances,
   which are the model's even on error, and their threads. */
INF_CHECK inf_err_t *inf_model_make_instances(const inf_model_load_t *what,
    inf_model_t *model);
INF_CHECK inf_err_t *inf_model_start_runner(const inf_model_load_t *what,
    inf_model_t *model);

/* More for one that serves: initialised and prepared, but they take nothing
   before inf_runner_admit.  On error they are freed. */
INF_CHECK inf_err_t *inf_model_add_instances(const inf_model_load_t *what,
    inf_model_t *model, inf_instance_t *const *instances, uint32_t count);

/* Finalizes and frees instances that have no thread any more, each when its
   requests have come back.  The unload of a whole model finalizes its own. */
void inf_model_drop_instances(const inf_lifecycle_options_t *options,
    inf_model_t *model, inf_instance_t **instances, uint32_t count);

/* GPU instances of one device share a thread. */
bool inf_model_is_device_blocking(const inf_model_t *model);

#endif /* INF_REPOSITORY_MODEL_INSTANCES_H */
