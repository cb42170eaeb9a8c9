/*
 * lifecycle_ensemble.c - loads of ensembles: they wait for composing models
 *                        without a thread, and follow their changes.
 *
 * The graph decides (ensemble_graph.h); this file submits the edits.
 */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/sched/entrance.h"

/* A load of a composing model. */
typedef struct {
    inf_model_id_t      id;
    inf_edit_t         *edit;       /* NULL: none is needed, or submitted    */
    inf_model_record_t *record;     /* for a model without one; NULL: taken  */
} composing_t;

static bool ask_plan(inf_load_t *l, bool *circular, bool *waits);
static bool loads_composing(const inf_load_t *l);
static inf_run_t load_composing(inf_load_t *l);
static bool find_composing(const inf_load_t *l,
    const inf_repository_list_t *list, const char *name, composing_t *m);
static void submit_composing_locked(inf_lifecycle_t *lc, const inf_load_t *l,
    composing_t *m) INF_NEEDS(lc->lock);
static bool find_space(const inf_load_t *l, const inf_repository_list_t *list,
    inf_model_id_t *id, bool *nowhere);

inf_run_t
inf_lifecycle_gather(inf_load_t *l)
{
    bool circular = false;
    bool waits = false;

    if (l->record->stage == INF_LOAD_READS
        && !ask_plan(l, &circular, &waits))
    {
        return INF_RUN_UNCHANGED;
    }
    return !circular && loads_composing(l) ? load_composing(l)
        : waits ? INF_RUN_COMPOSING : INF_RUN_UNCHANGED;
}

static bool
loads_composing(const inf_load_t *l)
{
    return l->lc->options.load_composing && l->edit->kind == INF_EDIT_LOAD;
}

void
inf_lifecycle_take_composing(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_graph_model_t *m = &l->record->graph;
    size_t count = m->asked != NULL ? m->asked->count : 0;
    inf_reason_room_t room = { .size = 0 };
    bool same = false;

    l->composing = calloc(count + 1, sizeof(inf_model_t *));
    if (l->composing == NULL || m->asked == NULL) {
        l->lack = inf_reason_ref(&inf_reason_nomem);
        inf_load_fail_all(l);
        return;
    }

    inf_lock(&lc->lock);
    while (!inf_model_set_gather(&lc->set, l, &room, &same)) {
        inf_lifecycle_renew_locked(lc, &room);
    }
    inf_unlock(&lc->lock);

    inf_reason_room_fini(&room);
    if (l->lack != NULL) {
        inf_load_fail_all(l);
    }
    for (size_t i = 0; !same && i < l->count; i++) {
        l->versions[i].keep = false;
    }
}

void
inf_lifecycle_renew_locked(inf_lifecycle_t *lc, inf_reason_room_t *room)
{
    inf_unlock(&lc->lock);
    inf_reason_room_renew(room);
    inf_lock(&lc->lock);
}

void
inf_lifecycle_drain_locked(inf_lifecycle_t *lc, inf_link_t *gone,
    inf_reason_room_t *room)
{
    while (!inf_model_set_drain(&lc->set, gone, room)) {
        inf_lifecycle_renew_locked(lc, room);
    }
}

void
inf_lifecycle_let_go(inf_link_t *gone)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(gone)) != NULL) {
        inf_loaded_t *loaded = inf_link_entry(link, inf_loaded_t, link);
        inf_log(INF_LOG_NOTICE, "model=%s version=%lld is being unloaded%s%s",
            loaded->record->title, (long long) loaded->model->version,
            loaded->why != NULL ? ": " : "",
            loaded->why != NULL ? loaded->why->msg : "");
        inf_entrance_drop_user(loaded->model);
        inf_model_unref(loaded->model);
    }
}

void
inf_lifecycle_refresh(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_edit_t *edit)
{
    inf_edit_t *refresh = NULL;
    bool any = true;

    inf_lock(&lc->lock);
    uint64_t round = inf_model_set_round(&lc->set);
    inf_unlock(&lc->lock);

    while (any) {
        inf_lock(&lc->lock);
        inf_model_record_t *e = inf_model_set_stale(&lc->set, r, edit, round);
        any = e != NULL;
        if (any && refresh != NULL) {
            inf_model_set_refresh(&lc->set, e, edit, refresh, round);
            refresh = NULL;
        }
        inf_unlock(&lc->lock);

        if (any && refresh == NULL) {
            inf_err_t *err = inf_edit_new(INF_EDIT_REFRESH, &refresh);
            if (err != NULL) {
                inf_err_log(inf_err_add(err, "ensembles of \"%s\" are not"
                    " rebuilt", r->name));
                return;
            }
        }
    }

    inf_edit_free(refresh);
    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_unload_orphans(inf_lifecycle_t *lc, inf_edit_t *edit)
{
    for (size_t i = 0; edit->dependents && edit->plan != NULL
        && i < edit->plan->count; i++)
    {
        inf_edit_t *unload;

        inf_err_t *err = inf_edit_new(INF_EDIT_UNLOAD, &unload);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "model \"%s\" is not unloaded",
                edit->plan->steps[i].name));
            return;
        }

        inf_lock(&lc->lock);
        bool submitted = inf_model_set_unload_orphan(&lc->set, edit, i,
            unload);
        inf_unlock(&lc->lock);
        if (!submitted) {
            inf_edit_free(unload);
        }
    }
    inf_cond_broadcast(&lc->work);
}

/* Sets the ensemble's plan; false: the reason follows when it takes its
   composing models.  *waits: unless it loads these, it waits for them. */
static bool
ask_plan(inf_load_t *l, bool *circular, bool *waits)
{
    inf_graph_plan_t *plan;

    inf_err_t *err = inf_graph_plan_of(
        l->source->config->msg->ensemble_scheduling, &plan);
    if (err != NULL) {
        inf_err_free(err);
        return false;
    }

    inf_lock(&l->lc->lock);
    inf_model_set_ask(&l->lc->set, l, plan, circular);
    if (!*circular && loads_composing(l)) {
        l->record->stage = INF_LOAD_GATHERS;
    } else {
        *waits = inf_model_set_waits(&l->lc->set, l);
    }
    inf_unlock(&l->lc->lock);
    return true;
}

/* Loads the composing models, all at one time: an unload comes before that or
   after the ensemble's load.  LISTING: one may be in a repository that is not
   listed yet. */
static inf_run_t
load_composing(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    const inf_graph_plan_t *plan = l->record->graph.asked;
    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    composing_t *models = calloc(plan->count + 1, sizeof(*models));
    size_t count = models != NULL ? plan->count : 0;
    bool nowhere = false;

    if (models == NULL) {
        inf_err_log(inf_err_add(inf_err_nomem(), "composing models of \"%s\""
            " are not loaded", l->record->name));
    }
    for (size_t i = 0; i < count; i++) {
        nowhere |= find_composing(l, list, plan->steps[i].name, &models[i]);
    }
    bool listing = nowhere && inf_lifecycle_is_pending(lc, l->edit, list, "");

    inf_lock(&lc->lock);
    for (size_t i = 0; i < count; i++) {
        submit_composing_locked(lc, l, &models[i]);
    }
    l->record->stage = listing ? INF_LOAD_GATHERS : INF_LOAD_TAKES;
    bool waits = !listing && inf_model_set_waits(&lc->set, l);
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);

    for (size_t i = 0; i < count; i++) {
        inf_edit_free(models[i].edit);
        inf_model_record_free(models[i].record);
    }
    free(models);
    inf_repository_list_unref(list);
    return listing ? INF_RUN_LISTING
        : waits ? INF_RUN_COMPOSING : INF_RUN_UNCHANGED;
}

/* Prepares the load of a composing model.  true: the model is in no repository,
   and its load does not wait for a listing. */
static bool
find_composing(const inf_load_t *l, const inf_repository_list_t *list,
    const char *name, composing_t *m)
{
    bool nowhere = false;

    m->id = inf_model_id(name);
    if (l->lc->options.repositories->namespacing
        && !find_space(l, list, &m->id, &nowhere))
    {
        return nowhere;
    }

    inf_err_t *err = inf_model_record_new(&m->id, &m->record);
    if (err == NULL) {
        err = inf_edit_new(INF_EDIT_LOAD, &m->edit);
    }
    inf_err_log(inf_err_add(err, "model \"%s\" is not loaded", name));
    return false;
}

/* Submits the load, unless one is queued. */
static void
submit_composing_locked(inf_lifecycle_t *lc, const inf_load_t *l,
    composing_t *m)
{
    inf_model_record_t *r = inf_model_set_find(&lc->set, &m->id);
    bool loading = r != NULL && r->state != INF_MODEL_IDLE
        && r->last_kind == INF_EDIT_LOAD;

    if (m->edit == NULL || lc->set.stopping || loading
        || (l->edit->at_start && inf_model_ids_has(&lc->barred, &m->id)))
    {
        return;
    }

    if (r == NULL) {
        r = m->record;
        m->record = NULL;
        inf_model_set_insert(&lc->set, r);
    }
    m->edit->at_start = l->edit->at_start;
    m->edit->requested = l->edit->requested;
    inf_model_set_submit(&lc->set, r, m->edit);
    m->edit = NULL;
}

/* Finds the model of that name in the ensemble's repository, otherwise the only
   one. *nowhere: there is none. */
static bool
find_space(const inf_load_t *l, const inf_repository_list_t *list,
    inf_model_id_t *id, bool *nowhere)
{
    const char *space = NULL;
    inf_scan_t scan;

    inf_err_t *err = inf_scan_one(list->roots, list->count, id->name, &scan);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model \"%s\" is not loaded", id->name));
        return false;
    }

    for (size_t i = 0; i < scan.model_count; i++) {
        if (strcmp(scan.models[i].space, l->record->space) == 0) {
            space = scan.models[i].space;
        }
    }
    if (space == NULL && scan.model_count == 1) {
        space = scan.models[0].space;
    }
    *nowhere = scan.model_count == 0;
    for (size_t i = 0; space != NULL && i < list->count; i++) {
        if (strcmp(list->roots[i].space, space) == 0) {
            id->space = list->roots[i].space;       /* lives longer          */
        }
    }
    inf_scan_fini(&scan);
    return space != NULL;
}
