/*
 * lifecycle_absence.c - loads of models that lie nowhere as far as one can
 *                       see, while a repository is still to be listed, and
 *                       of ensembles of such models.
 *
 * Such a load goes back to the front of its model's operations and is tried
 * again when the repository has come, has failed or was taken out.  A
 * repository changes its state before inf_lifecycle_arrived takes the lock,
 * and is looked at under the lock: no load is forgotten.
 */

#include "core/repository/lifecycle_parts.h"

static inf_err_t *name_failure(inf_err_t *err,
    const inf_repository_list_t *list, const char *space);

/* Renewed ensembles that couldn't be made don't wait: what they would be made
   from isn't kept meanwhile. */
inf_err_t *
inf_lifecycle_look(inf_load_t *l)
{
    inf_lifecycle_op_t *op = l->op;
    inf_absence_t absence = INF_ABSENCE_AGAIN;
    inf_err_t *err = NULL;

    while (absence == INF_ABSENCE_AGAIN) {
        inf_repository_list_t *list = inf_repositories_take(
            l->terms->options.repositories);
        const inf_home_query_t q = {
            .list = list,
            .name = l->record->name,
            .space = l->record->space,
            .override = op->override,
            .auto_complete = l->terms->options.auto_complete,
            .quiet = op->start && !op->late
        };
        bool absent;

        inf_err_free(err);
        err = inf_model_home_open(&q, &l->home, &absent);
        absence = INF_ABSENCE_FINAL;
        if (err != NULL && absent && op->kind == INF_OP_LOAD) {
            op->load = NULL;
            absence = inf_lifecycle_absent(l->lc, op, list,
                l->record->space);
        }
        if (absent && absence == INF_ABSENCE_FINAL) {
            err = name_failure(err, list, l->record->space);
        }
        inf_repository_list_unref(list);
    }

    l->parked = absence == INF_ABSENCE_PARKED;
    if (l->parked) {
        inf_err_free(err);
        return NULL;
    }
    op->load = l;
    return err;
}

/* Takes err.  A listing that failed after the model was looked for is the
   reason, too, once the load waits for none. */
static inf_err_t *
name_failure(inf_err_t *err, const inf_repository_list_t *list,
    const char *space)
{
    inf_err_t *failure = inf_err_code(err) == INF_ERR_NOT_FOUND
        ? inf_repository_list_failure(list, space) : NULL;

    if (failure == NULL) {
        return err;
    }

    inf_err_free(err);
    return failure;
}

inf_absence_t
inf_lifecycle_absent(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    const inf_repository_list_t *list, const char *space)
{
    inf_model_record_t *r = op->record;
    inf_absence_t absence;

    if ((op->asked || op->implicit) && !op->start && !op->late
        && inf_repository_list_lacks(list, INF_REPOSITORY_FAILED, space))
    {
        inf_lifecycle_ask_again(lc);
    }

    inf_lock(&lc->lock);
    bool awaited = inf_repository_list_lacks(list, INF_REPOSITORY_AWAITED,
        space);
    bool stopping = lc->stopping;
    if (!stopping && !inf_repositories_are(lc->options.repositories, list)) {
        absence = INF_ABSENCE_AGAIN;
    } else if (awaited) {
        absence = INF_ABSENCE_PARKED;
        op->late = true;
        r->absent = true;
        inf_list_push_front(&r->ops, &op->link);
    } else {
        absence = INF_ABSENCE_FINAL;
    }
    inf_unlock(&lc->lock);

    if (stopping && absence == INF_ABSENCE_PARKED) {
        inf_lifecycle_drop_ops(lc);     /* those before it are dropped       */
    }
    return absence;
}

void
inf_lifecycle_arrived(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        inf_model_record_t *r = inf_link_entry(l, inf_model_record_t, link);
        if (r->absent) {
            r->absent = false;
            inf_lifecycle_resume_locked(lc, r);
        }
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_on_absence(inf_lifecycle_t *lc, void (*again)(void *userp),
    void *userp)
{
    inf_lock(&lc->lock);
    lc->again = again;
    lc->again_userp = userp;
    inf_unlock(&lc->lock);
}

void
inf_lifecycle_ask_again(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    void (*again)(void *userp) = lc->again;
    void *userp = lc->again_userp;
    inf_unlock(&lc->lock);

    if (again != NULL) {
        again(userp);
    }
}
