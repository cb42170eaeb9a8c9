/*
 * instances.h - which instances a model has: they come and go while it serves.
 *
 * Owner    The model owns its instances; each owns its spec.  Names stay as
 *          long as the model, because requests carry them further than the
 *          instance goes.
 * Thread   new, link: one operation on the model at a time (its load, then
 *          changes); leave, unlink: that, or a thread that ends them; visit
 *          and the sums: any.
 * Units    none.
 * Errors   out of memory.
 * Route    model load, instance change -> [instances] -> runner, statistics
 */

#ifndef INF_MODEL_INSTANCES_H
#define INF_MODEL_INSTANCES_H

#include "core/model/model.h"

/* Not linked yet; takes what spec refers to and empties it, on success. */
INF_CHECK inf_err_t *inf_instance_new(inf_model_t *model,
    inf_instance_spec_t *spec, inf_instance_t **out);

/* One that is not linked, or not any more; instance may be NULL. */
void inf_instance_free(inf_instance_t *instance);

/* The model's last ones from now on. */
INF_CHECK inf_err_t *inf_instances_link(inf_model_t *model,
    inf_instance_t *const *instances, uint32_t count);

/* No visit begins any more; idle: none is left, and no work. */
void inf_instance_leave(inf_instance_t *instance);
bool inf_instance_is_idle(inf_instance_t *instance);

/* Takes it out of the model; what it has counted stays, with another instance
   on its GPU if there is one. */
void inf_instance_unlink(inf_instance_t *instance);

/* All that the model has. */
void inf_instances_free(inf_model_t *model);

/* The first after `after` (NULL: of all); it stays until it is passed as
   `after`, or to inf_instance_visited.  NULL: there is none. */
inf_instance_t *inf_instance_visit_next(inf_model_t *model,
    inf_instance_t *after);
void inf_instance_visited(inf_instance_t *instance);

/* A GPU that has failed and that an instance is on; -1: there is none. */
int64_t inf_instances_failed_gpu(inf_model_t *model);

/* Around calls that initialise or finalise instances of a model that serves:
   no two at a time. */
void inf_instances_begin(inf_model_t *model);
void inf_instances_end(inf_model_t *model);

/* Adds up what the model and its instances have counted; and the responses
   of that index, false: there were none. */
void inf_model_sum_statistics(inf_model_t *model, inf_statistics_t *sum);
bool inf_model_sum_responses(inf_model_t *model, uint32_t index,
    inf_response_stat_t *sum);

/* Adds up statistics, one by one, at one moment; spec NULL: no instance's.  fn
   calls nothing but the adding. */
typedef void (*inf_statistics_fn)(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s);

/* Calls fn for the model, then for each instance. */
void inf_model_each_statistics(inf_model_t *model, inf_statistics_fn fn,
    void *userp);

#endif /* INF_MODEL_INSTANCES_H */
