/* lifecycle_desired.c - loads and unloads without a request: at the start,
   after changes of the configuration, and after listings. */

#include "core/repository/lifecycle_parts.h"

#include <string.h>

#include "core/base/log.h"

static bool is_known(inf_lifecycle_t *lc, const inf_model_id_t *id);
static inf_err_t *submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_edit_kind_t kind, bool at_start, uint32_t who,
    inf_override_t *override);
static void report(const inf_inventory_t *l);
static inf_err_t *submit_leaving(inf_lifecycle_t *lc, inf_inventory_t *l,
    inf_lifecycle_done_fn done, void *userp, size_t *count);
static inf_err_t *new_listed(inf_inventory_t *l, inf_edit_t **out);
static inf_err_t *submit_coming(inf_lifecycle_t *lc, inf_inventory_t *l,
    size_t *count);
static inf_err_t *submit_missing(inf_lifecycle_t *lc,
    const inf_inventory_t *l, size_t *count);
static bool is_left_out(const inf_lifecycle_t *lc, const char *name);
static void note_listings(inf_lifecycle_t *lc, const inf_inventory_t *l);

inf_err_t *
inf_lifecycle_start(inf_lifecycle_t *lc, bool all, char *const *names,
    size_t count, const inf_model_id_t *except, size_t except_count)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_START,
        .desired = { .all = all, .names = names, .count = count }
    };

    inf_err_t *err = inf_model_ids_copy(&lc->barred, except, except_count);
    return err != NULL || (!all && count == 0) ? err
        : inf_lifecycle_reconcile(lc, &q);
}

inf_err_t *
inf_lifecycle_restore(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_override_t *override, bool implicit)
{
    bool namespacing = lc->options.repositories->namespacing;
    const inf_model_id_t bare = inf_model_id(id->name);
    uint32_t who = INF_WANTED_AT_START | INF_WANTED_BY_REQUEST
        | (implicit ? 0 : INF_WANTED_ITSELF);

    if (namespacing && id->space[0] == '\0'
        && !inf_override_has_files(override))
    {
        /* loaded without namespacing before */
        return submit(lc, id, INF_EDIT_LOAD_NAME, true, who, override);
    }
    if (!namespacing && is_known(lc, &bare)) {
        inf_override_free(override);        /* of another namespace          */
        return NULL;
    }
    return submit(lc, namespacing ? id : &bare, INF_EDIT_LOAD, true, who,
        override);
}

static bool
is_known(inf_lifecycle_t *lc, const inf_model_id_t *id)
{
    inf_lock(&lc->lock);
    bool known = inf_model_set_find(&lc->set, id) != NULL;
    inf_unlock(&lc->lock);
    return known;
}

/* Submits a load.  Takes override. */
static inf_err_t *
submit(inf_lifecycle_t *lc, const inf_model_id_t *id, inf_edit_kind_t kind,
    bool at_start, uint32_t who, inf_override_t *override)
{
    inf_edit_t *edit;

    inf_err_t *err = inf_edit_new(kind, &edit);
    if (err != NULL) {
        inf_override_free(override);
        return err;
    }

    edit->override = override;
    edit->at_start = at_start;
    edit->who = who;
    inf_lifecycle_submit(lc, id, edit);
    return NULL;
}

inf_err_t *
inf_lifecycle_reconcile(inf_lifecycle_t *lc, const inf_inventory_query_t *q)
{
    size_t coming = 0;
    size_t leaving;
    inf_inventory_t *l;

    inf_err_t *err = inf_inventory_new(lc->options.repositories, q, &l);
    if (err != NULL) {
        return err;
    }

    report(l);
    inf_lifecycle_hold(lc);
    err = submit_leaving(lc, l, NULL, NULL, &leaving);
    if (err == NULL) {                  /* first, to make room               */
        err = submit_coming(lc, l, &coming);
    }
    if (err == NULL && !q->desired.all) {
        err = submit_missing(lc, l, &coming);
    }
    inf_lifecycle_release(lc);
    if (err == NULL) {
        note_listings(lc, l);
    }
    if (err == NULL && coming > 0) {
        inf_lifecycle_publish(lc);      /* known, not ready                  */
    }
    inf_inventory_unref(l);
    return err;
}

static void
report(const inf_inventory_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const inf_repository_name_t *n = &l->names[i];
        if (n->duplicate) {
            inf_log(INF_LOG_ERROR, "model '%s' appears in two or more"
                " repositories: '%s' and '%s'", n->id.name,
                l->list->items[n->repository]->shown,
                l->list->items[n->other]->shown);
        } else if (n->problem != NULL
            && l->q.occasion == INF_INVENTORY_START)
        {
            inf_log(INF_LOG_ERROR, "%s", n->problem);
        }
    }
}

bool
inf_lifecycle_comes(inf_lifecycle_t *lc, const inf_inventory_t *l,
    const inf_repository_name_t *n)
{
    inf_lock(&lc->lock);
    bool comes = inf_model_set_comes(&lc->set, l, n);
    inf_unlock(&lc->lock);
    return comes;
}

inf_err_t *
inf_lifecycle_unload_missing(inf_lifecycle_t *lc, inf_inventory_t *l,
    inf_lifecycle_done_fn done, void *userp, size_t *count)
{
    inf_err_t *err = submit_leaving(lc, l, done, userp, count);

    if (err == NULL) {
        note_listings(lc, l);
    }
    return err;
}

static inf_err_t *
submit_leaving(inf_lifecycle_t *lc, inf_inventory_t *l,
    inf_lifecycle_done_fn done, void *userp, size_t *count)
{
    inf_model_record_t *r = NULL;
    inf_err_t *err = NULL;
    inf_edit_t *edit;

    *count = 0;
    inf_lifecycle_hold(lc);             /* keeps records with edits          */
    do {
        err = new_listed(l, &edit);
        if (err == NULL) {
            err = inf_edit_call(edit, done, userp);
        }
        if (err != NULL) {
            inf_edit_free(edit);
            break;
        }

        inf_lock(&lc->lock);
        r = lc->set.stopping ? NULL
            : inf_model_set_next_leaving(&lc->set, l, r);
        if (r != NULL) {
            inf_model_set_submit(&lc->set, r, edit);
        }
        inf_unlock(&lc->lock);
        *count += 1;
    } while (r != NULL);
    inf_lifecycle_release(lc);

    if (err == NULL) {
        inf_lifecycle_reject(lc, edit, NULL);       /* one too many          */
    }
    return err;
}

static inf_err_t *
new_listed(inf_inventory_t *l, inf_edit_t **out)
{
    inf_err_t *err = inf_edit_new(INF_EDIT_LISTED, out);

    if (err == NULL) {
        (*out)->inventory = inf_inventory_ref(l);
        (*out)->at_start = l->q.at_start;
        (*out)->waited = l->q.at_start;
    }
    return err;
}

static inf_err_t *
submit_coming(inf_lifecycle_t *lc, inf_inventory_t *l, size_t *count)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < l->count; i++) {
        const inf_repository_name_t *n = &l->names[i];
        inf_edit_t *edit;

        if (!inf_lifecycle_comes(lc, l, n)) {
            continue;
        }
        *count += 1;
        if (l->q.occasion == INF_INVENTORY_START) {
            err = submit(lc, &n->id, INF_EDIT_LOAD, true,
                INF_WANTED_AT_START | INF_WANTED_ITSELF, NULL);
            continue;
        }

        err = new_listed(l, &edit);
        if (err == NULL) {
            edit->who = inf_reconcile_desires(l, NULL, n, n->id.name)
                ? INF_WANTED_AT_START : 0;
            inf_lifecycle_submit(lc, &n->id, edit);
        }
    }
    return err;
}

/* Submits failures of newly named models in no repository, unless they wait for
   a listing. */
static inf_err_t *
submit_missing(inf_lifecycle_t *lc, const inf_inventory_t *l, size_t *count)
{
    bool starts = l->q.occasion == INF_INVENTORY_START;
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < l->q.desired.count; i++) {
        const inf_model_id_t id = inf_model_id(l->q.desired.names[i]);

        if (inf_inventory_has(l, id.name) || strcmp(id.name, "*") == 0
            || inf_desired_names(&l->q.before, id.name) || is_known(lc, &id)
            || (starts && is_left_out(lc, id.name)))
        {
            continue;
        }

        err = submit(lc, &id, lc->options.repositories->namespacing
            ? INF_EDIT_LOAD_NAME : INF_EDIT_LOAD, starts,
            INF_WANTED_AT_START | INF_WANTED_ITSELF, NULL);
        *count += 1;
    }
    return err;
}

/* Whether the start left out a model of that name, in any namespace. */
static bool
is_left_out(const inf_lifecycle_t *lc, const char *name)
{
    for (size_t i = 0; i < lc->barred.count; i++) {
        if (strcmp(lc->barred.items[i].name, name) == 0) {
            return true;
        }
    }

    return false;
}

/* Sets lc->listing.  A repository that was never listed prevents readiness, and
   a pending listing delays the end of the start; except where only named models
   count, and for a listing that fails later. */
static void
note_listings(inf_lifecycle_t *lc, const inf_inventory_t *l)
{
    const inf_inventory_query_t *q = &l->q;
    bool starts = q->occasion == INF_INVENTORY_START || q->at_start;
    bool failed = memchr(l->failed, true, l->list->count) != NULL;
    bool partial = failed || l->list->total > l->list->count;
    bool counts = q->occasion == INF_INVENTORY_POLL ? !failed
        : !partial || q->desired.all
            || (starts && inf_desired_is_all(&q->desired));
    bool unlisted = inf_repository_list_any(l->list, INF_REPOSITORY_PENDING,
        "");
    if (!counts) {
        return;
    }

    inf_lock(&lc->lock);
    lc->listing = unlisted ? INF_LISTING_PENDING
        : partial ? INF_LISTING_PARTIAL : INF_LISTING_WHOLE;
    inf_unlock(&lc->lock);
    atomic_store(&lc->options.registry->incomplete, unlisted);
}
