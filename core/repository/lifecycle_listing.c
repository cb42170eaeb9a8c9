/* lifecycle_listing.c - listings of repositories that are still to come. */

#include "core/repository/lifecycle_parts.h"

bool
inf_lifecycle_is_pending(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, const char *space)
{
    bool asked = (edit->who & INF_WANTED_BY_REQUEST) != 0
        || (edit->who & INF_WANTED_ITSELF) == 0;

    if (asked && !edit->at_start && !edit->waited
        && inf_repository_list_any(list, INF_REPOSITORY_FAILED, space))
    {
        inf_lifecycle_relist(lc);
    }
    return inf_repository_list_any(list, INF_REPOSITORY_PENDING, space)
        || !inf_repositories_are(lc->options.repositories, list);
}

void
inf_lifecycle_resume_pending(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->listings++;
    inf_model_set_listed(&lc->set);
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_on_relist(inf_lifecycle_t *lc, void (*relist)(void *userp),
    void *userp)
{
    inf_lock(&lc->lock);
    lc->relist = relist;
    lc->relist_userp = userp;
    inf_unlock(&lc->lock);
}

void
inf_lifecycle_relist(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    void (*relist)(void *userp) = lc->relist;
    void *userp = lc->relist_userp;
    inf_unlock(&lc->lock);

    if (relist != NULL) {
        relist(userp);
    }
}
