/*
 * instances.h - the instances of a model, which can be added and removed while
 *               it serves.
 *
 * Owner    The model owns its instances; each owns its spec.  Names stay as
 *          long as the model, because requests use them longer than the
 *          instance exists.
 * Thread   new, link: one operation on the model at a time (its load, then
 *          changes); leave, unlink: that operation, or a thread that ends
 *          instances; visit and the sums: any.
 * Units    none.
 * Errors   out of memory.
 * Route    model load, instance change -> [instances] -> runner, statistics
 */

#ifndef INF_MODEL_INSTANCES_H
#define INF_MODEL_INSTANCES_H

#include "core/model/model.h"

/* Creates an unlinked instance; on success takes the contents of spec and
   empties it. */
INF_CHECK inf_err_t *inf_instance_new(inf_model_t *model,
    inf_instance_spec_t *spec, inf_instance_t **out);

/* Frees an instance that is not linked; it may be NULL. */
void inf_instance_free(inf_instance_t *instance);

/* Adds instances behind the model's others. */
INF_CHECK inf_err_t *inf_instances_link(inf_model_t *model,
    inf_instance_t *const *instances, uint32_t count);

/* leave: lets no more visits begin.  idle: whether no visit and no work is
   left. */
void inf_instance_leave(inf_instance_t *instance);
bool inf_instance_is_idle(inf_instance_t *instance);

/* Removes it from the model; its counts go to another instance on its GPU, or
   to the model. */
void inf_instance_unlink(inf_instance_t *instance);

/* Frees all instances of the model. */
void inf_instances_free(inf_model_t *model);

/* The instance after `after` (NULL: the first), which stays until it is passed
   as `after` or to inf_instance_visited.  NULL: end. */
inf_instance_t *inf_instance_visit_next(inf_model_t *model,
    inf_instance_t *after);
void inf_instance_visited(inf_instance_t *instance);

/* A failed GPU of an instance; -1: none. */
int64_t inf_instances_failed_gpu(inf_model_t *model);

/* Enclose calls that initialize or finalize instances of a serving model, one
   at a time. */
void inf_instances_begin(inf_model_t *model);
void inf_instances_end(inf_model_t *model);

/* Add up the counts of the model and its instances; the second, for responses
   of an index; false: none. */
void inf_model_sum_statistics(inf_model_t *model, inf_statistics_t *sum);
bool inf_model_sum_responses(inf_model_t *model, uint32_t index,
    inf_response_stat_t *sum);

/* Receives statistics one by one at one moment; spec NULL: not an instance's.
   fn only adds them up. */
typedef void (*inf_statistics_fn)(void *userp, const inf_instance_spec_t *spec,
    const inf_statistics_t *s);

/* Calls fn for the model, then for each instance. */
void inf_model_each_statistics(inf_model_t *model, inf_statistics_fn fn,
    void *userp);

#endif /* INF_MODEL_INSTANCES_H */
