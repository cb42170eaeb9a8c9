/* lifecycle_submit.c - gives edits to the model set, rejects them, and holds
   them back. */

#include "core/repository/lifecycle_parts.h"

void
inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_edit_t *edit)
{
    inf_model_record_t *fresh;

    inf_err_t *err = inf_model_record_new(id, &fresh);
    if (err != NULL) {
        inf_lifecycle_reject(lc, edit, err);
        return;
    }

    inf_lock(&lc->lock);
    bool stopping = lc->set.stopping;
    if (!stopping) {
        inf_model_record_t *r = inf_model_set_find(&lc->set, id);
        if (r == NULL) {
            r = fresh;
            fresh = NULL;
            inf_model_set_insert(&lc->set, r);
        }

        inf_model_set_submit(&lc->set, r, edit);
    }
    inf_unlock(&lc->lock);

    inf_model_record_free(fresh);
    if (stopping) {
        inf_lifecycle_reject(lc, edit, inf_lifecycle_stopping(id->name));
        return;
    }

    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_reject(inf_lifecycle_t *lc, inf_edit_t *edit, inf_err_t *err)
{
    inf_lock(&lc->lock);
    inf_caller_t *caller = inf_edit_leave_caller(edit, err);
    inf_unlock(&lc->lock);

    inf_edit_free(edit);
    inf_caller_answer(caller);
}

inf_err_t *
inf_lifecycle_stopping(const char *name)
{
    return inf_err_new(INF_ERR_UNAVAILABLE, "model \"%s\" is not loaded or"
        " unloaded: the server is stopping", name);
}

void
inf_lifecycle_hold(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->set.holds++;
    inf_unlock(&lc->lock);
}

void
inf_lifecycle_release(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->set.holds--;
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);
}
