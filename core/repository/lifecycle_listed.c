/* lifecycle_listed.c - listings of repositories, and the lists of what is
   wanted: what is desired of models changes with them. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/repository/inventory.h"

/* What follows from an inventory. */
typedef struct {
    inf_lifecycle_t *lc;
    inf_inventory_t *inventory;         /* a reference                       */
    inf_model_id_t  *leaving;           /* as far as one can tell            */
    size_t           leaving_count;
    inf_model_id_t  *coming;
    size_t           coming_count;
} change_t;

static inf_err_t *change(change_t *c);
static void report_duplicates(const inf_inventory_t *l);
static inf_err_t *sort_out(change_t *c);
static bool sort_one(const inf_lifecycle_t *lc, const inf_inventory_t *l,
    inf_model_record_t *r, const inf_repository_name_t *n);
static inf_err_t *add_missing(change_t *c);
static inf_err_t *copy_id(change_t *c, const inf_model_id_t *id,
    inf_model_id_t *out);
static inf_err_t *submit_all(change_t *c, const inf_model_id_t *ids,
    size_t count, bool coming);
static bool says_what_is_missing(const inf_inventory_t *l);

inf_err_t *
inf_lifecycle_follow(inf_lifecycle_t *lc, const inf_follow_t *want)
{
    change_t c = { .lc = lc };

    inf_err_t *err = inf_inventory_new(lc->options.repositories, want,
        &c.inventory);
    if (err == NULL) {
        err = change(&c);
    }
    free(c.leaving);
    free(c.coming);
    inf_inventory_unref(c.inventory);
    return err;
}

void
inf_lifecycle_listed(inf_lifecycle_t *lc, const inf_repository_list_t *list,
    const bool *failed)
{
    bool unseen = list->total > list->count;
    bool unlisted = inf_repository_list_any(list, INF_REPOSITORY_PENDING,
        "");

    for (size_t i = 0; i < list->count; i++) {
        unseen = unseen || failed[i];
    }

    inf_lock(&lc->lock);
    lc->unseen = unseen;
    lc->unlisted = unlisted;
    inf_unlock(&lc->lock);
    atomic_store(&lc->options.registry->incomplete, unlisted);
}

void
inf_lifecycle_arrived(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->listings++;
    inf_model_set_listed(&lc->set);
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

bool
inf_lifecycle_is_pending(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, const char *space)
{
    bool asked = (edit->who & INF_WANTED_BY_REQUEST) != 0
        || (edit->who & INF_WANTED_ITSELF) == 0;

    if (asked && !edit->at_start && !edit->waited
        && inf_repository_list_any(list, INF_REPOSITORY_FAILED, space))
    {
        inf_lifecycle_ask_again(lc);
    }
    return inf_repository_list_any(list, INF_REPOSITORY_PENDING, space)
        || !inf_repositories_are(lc->options.repositories, list);
}

static inf_err_t *
change(change_t *c)
{
    inf_lifecycle_t *lc = c->lc;

    report_duplicates(c->inventory);
    inf_err_t *err = sort_out(c);
    inf_lifecycle_hold(lc);
    if (err == NULL) {                  /* they make room                    */
        err = submit_all(c, c->leaving, c->leaving_count, false);
    }
    if (err == NULL) {
        err = submit_all(c, c->coming, c->coming_count, true);
    }
    inf_lifecycle_release(lc);
    if (err == NULL && says_what_is_missing(c->inventory)) {
        inf_lifecycle_listed(lc, c->inventory->list, c->inventory->failed);
    }
    if (err == NULL && c->coming_count > 0) {
        inf_lifecycle_publish(lc);      /* they are known, not ready         */
    }
    return err;
}

static void
report_duplicates(const inf_inventory_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->names[i].duplicate) {
            inf_log(INF_LOG_ERROR, "model '%s' appears in two or more"
                " repositories", l->names[i].id.name);
        }
    }
}

/* Not where models that nobody named don't count. */
static bool
says_what_is_missing(const inf_inventory_t *l)
{
    const inf_follow_t *w = &l->want;
    bool any = l->list->total > l->list->count
        || memchr(l->failed, true, l->list->count) != NULL;

    return w->all || !any
        || (w->at_start && w->count == 1 && strcmp(w->names[0], "*") == 0);
}

/* A model that is what the inventory says is in neither list. */
static inf_err_t *
sort_out(change_t *c)
{
    inf_lifecycle_t *lc = c->lc;
    const inf_inventory_t *l = c->inventory;
    inf_err_t *err = NULL;
    size_t i = 0;

    inf_lock(&lc->lock);
    size_t most = l->count + lc->set.model_count + l->want.count + 1;
    c->leaving = calloc(most, sizeof(*c->leaving));
    c->coming = calloc(most, sizeof(*c->coming));
    if (c->leaving == NULL || c->coming == NULL) {
        err = inf_err_nomem();
    }

    inf_model_record_t *r = inf_model_set_next(&lc->set, NULL);
    while (err == NULL && (i < l->count || r != NULL)) {
        const inf_model_id_t id = r != NULL ? inf_model_record_id(r)
            : inf_model_id("");
        int order = i == l->count ? 1 : r == NULL ? -1
            : inf_model_id_compare(&l->names[i].id, &id);
        const inf_repository_name_t *n = order <= 0
            && l->names[i].problem == NULL ? &l->names[i] : NULL;
        const inf_model_id_t *which = order <= 0 ? &l->names[i].id : &id;

        if ((order >= 0 || n != NULL)
            && sort_one(lc, l, order >= 0 ? r : NULL, n))
        {
            bool coming = n != NULL && !n->duplicate;
            err = copy_id(c, which, coming ? &c->coming[c->coming_count]
                : &c->leaving[c->leaving_count]);
            c->coming_count += coming;
            c->leaving_count += !coming;
        }

        i += order <= 0;
        r = order >= 0 ? inf_model_set_next(&lc->set, r) : r;
    }
    if (err == NULL && !l->want.all) {
        err = add_missing(c);
    }
    inf_unlock(&lc->lock);
    return err;
}

/* Whether something has to be done; of a model with edits under way that is
   decided when its turn comes.  Under the lifecycle's lock. */
static bool
sort_one(const inf_lifecycle_t *lc, const inf_inventory_t *l,
    inf_model_record_t *r, const inf_repository_name_t *n)
{
    bool barred = n != NULL && inf_lifecycle_is_barred(lc, &n->id);

    if (l->want.arrival && r != NULL && r->source == NULL && n == NULL) {
        return false;                   /* its load says so itself           */
    }
    if (r != NULL && r->state != INF_MODEL_IDLE) {
        return true;
    }

    const inf_step_t step = inf_reconcile_listed(l, r, n, true, barred);
    if (r != NULL && inf_reconcile_wants(l, r, n, &step, r->name)) {
        r->who |= INF_WANTED_AT_START;
    }
    return step.kind != INF_STEP_NONE;
}

/* What is newly named and lies nowhere is a model that failed.  Under the
   lifecycle's lock. */
static inf_err_t *
add_missing(change_t *c)
{
    const inf_inventory_t *l = c->inventory;
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < l->want.count; i++) {
        const inf_model_id_t id = inf_model_id(l->want.names[i]);
        if (!inf_inventory_has(l, id.name) && strcmp(id.name, "*") != 0
            && !inf_inventory_wanted_before(l, id.name)
            && inf_model_set_find(&c->lc->set, &id) == NULL)
        {
            err = copy_id(c, &id, &c->coming[c->coming_count++]);
        }
    }
    return err;
}

/* The record of an id may go before its edit comes. */
static inf_err_t *
copy_id(change_t *c, const inf_model_id_t *id, inf_model_id_t *out)
{
    inf_arena_t *arena = &c->inventory->arena;

    out->space = inf_arena_strdup(arena, id->space, strlen(id->space));
    out->name = inf_arena_strdup(arena, id->name, strlen(id->name));
    return out->space != NULL && out->name != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
submit_all(change_t *c, const inf_model_id_t *ids, size_t count, bool coming)
{
    inf_inventory_t *l = c->inventory;

    for (size_t i = 0; i < count; i++) {
        inf_edit_t *edit;
        inf_err_t *err = inf_edit_new(INF_EDIT_LISTED, &edit);
        if (err != NULL) {
            return err;
        }

        edit->inventory = inf_inventory_ref(l);
        edit->at_start = l->want.at_start;
        edit->waited = l->want.at_start;
        edit->who = coming && (l->want.all
            || inf_inventory_wants(l, ids[i].name)) ? INF_WANTED_AT_START : 0;
        inf_lifecycle_submit(c->lc, &ids[i], edit);
    }

    return NULL;
}
