/*
 * process_exit.h - lets a process exit that a model needs, without a process.
 *
 * Owner    The test's lifecycle.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    unit tests only
 */

#ifndef INF_T_REPOSITORY_PROCESS_EXIT_H
#define INF_T_REPOSITORY_PROCESS_EXIT_H

#include "core/repository/lifecycle_parts.h"

/* Of a version (-1: the latest), if it serves and is no ensemble. */
static inline void
process_exit_of(inf_lifecycle_t *lc, const inf_model_id_t *id, int64_t version)
{
    inf_lock(&lc->lock);
    const inf_model_record_t *r = inf_model_set_find(&lc->set, id);
    inf_model_t *model = r == NULL || r->graph.made != NULL ? NULL
        : inf_model_record_serves(r, version);
    if (model != NULL) {
        inf_model_ref(model);
    }
    inf_unlock(&lc->lock);

    if (model != NULL) {
        inf_lifecycle_child_died(lc, model, "its process died");
        inf_model_unref(model);
    }
}

#endif /* INF_T_REPOSITORY_PROCESS_EXIT_H */
