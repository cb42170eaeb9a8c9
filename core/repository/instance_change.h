/*
 * instance_change.h - changes the instances of a model that goes on serving.
 *
 * Owner    The change holds a reference of the model; prepare gives the change
 *          to the caller, commit and abort take it.
 * Thread   a loader's; one change of a model at a time, though instances
 *          removed by an earlier one may still be busy.
 * Units    none.
 * Errors   as of a load; the model is unchanged.
 * Route    lifecycle -> [instance change] -> model instances -> runtime
 *
 * An instance stays if the new configuration has one with the same device and
 * group settings; the group's name and count do not matter, and the instance
 * keeps its name.  Missing instances are made and prepared before anything else
 * changes.
 */

#ifndef INF_REPOSITORY_INSTANCE_CHANGE_H
#define INF_REPOSITORY_INSTANCE_CHANGE_H

#include "core/repository/model_load.h"

typedef struct inf_instance_change_s inf_instance_change_t;

/* Prepares the change to what->config's instance groups and version policy;
   storage and dir of what are those the model was loaded from. */
INF_CHECK inf_err_t *inf_instance_change_prepare(const inf_model_load_t *what,
    inf_model_t *model, inf_instance_change_t **out);

/* Puts the change into effect; removed instances finish on their own thread. */
void inf_instance_change_commit(inf_instance_change_t *change);

/* change may be NULL. */
void inf_instance_change_abort(inf_instance_change_t *change);

#endif /* INF_REPOSITORY_INSTANCE_CHANGE_H */
