/*
 * instance_change.h - other instances for a model that goes on serving.
 *
 * Owner    The change has a reference of the model; prepare gives it to the
 *          caller, commit and abort take it.
 * Thread   a loader's; one change of a model at a time, though instances that
 *          an earlier one sent away may still be busy.
 * Units    none.
 * Errors   as a load's; the model is as it was.
 * Route    lifecycle -> [instance change] -> model instances -> runtime
 *
 * An instance stays if the new configuration asks for one with the same device
 * and group settings; the group's name and count do not matter.  The instance
 * keeps its name.  Missing instances are made and prepared before
 * anything is touched.
 */

#ifndef INF_REPOSITORY_INSTANCE_CHANGE_H
#define INF_REPOSITORY_INSTANCE_CHANGE_H

#include "core/repository/model_load.h"

typedef struct inf_instance_change_s inf_instance_change_t;

/* To what what->config says of instance groups and version policy; its
   storage and dir are those that the model was loaded from. */
INF_CHECK inf_err_t *inf_instance_change_prepare(const inf_model_load_t *what,
    inf_model_t *model, inf_instance_change_t **out);

/* Removed instances finish their executions on a thread of their own. */
void inf_instance_change_commit(inf_instance_change_t *change);

/* change may be NULL. */
void inf_instance_change_abort(inf_instance_change_t *change);

#endif /* INF_REPOSITORY_INSTANCE_CHANGE_H */
