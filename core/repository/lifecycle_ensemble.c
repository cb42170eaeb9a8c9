/*
 * lifecycle_ensemble.c - models that are made of others: when they are made,
 *                        made again, and taken out of service.
 *
 * What follows from what is the graph's to say (ensemble_graph.h); here its
 * decisions become operations.  A load that has to wait for other models'
 * operations is parked: no thread waits.
 */

#include "core/repository/lifecycle_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/sched/entrance.h"

#define REASON_MAX 4096u        /* bytes of others' reasons, about           */

static const void *serves(const inf_graph_model_t *m, int64_t version);
static inf_err_t *make_plan(const inf_load_t *l, inf_graph_plan_t **out);
static bool ask_plan(inf_load_t *l, bool *circular);
static bool await_members(inf_load_t *l);
static bool load_members(inf_load_t *l, const inf_repository_list_t *list);
static bool find_space(const inf_load_t *l, const inf_repository_list_t *list,
    inf_model_id_t *id, bool *nowhere);
static bool is_loading_locked(const inf_lifecycle_t *lc,
    const inf_model_id_t *id) INF_NEEDS(lc->lock);
static bool park_locked(inf_load_t *l);
static bool take_all_locked(inf_load_t *l);
static char *lack_locked(inf_lifecycle_t *lc, inf_model_record_t *e,
    const inf_graph_plan_t *plan);
static void add_failure(inf_buf_t *text, const inf_model_record_t *r);
static void withdraw_locked(inf_lifecycle_t *lc, inf_model_record_t *e,
    inf_link_t *gone) INF_NEEDS(lc->lock);
static void note_lack(inf_record_version_t *v, const char *lack, bool waits);
static bool must_renew_locked(const inf_lifecycle_t *lc,
    const inf_model_record_t *e, const inf_lifecycle_op_t *op)
    INF_NEEDS(lc->lock);
static inf_model_record_t *next_to_renew_locked(const inf_lifecycle_t *lc,
    const inf_model_record_t *r, const inf_lifecycle_op_t *op,
    uint64_t round) INF_NEEDS(lc->lock);
static bool is_orphan_locked(inf_lifecycle_t *lc,
    const inf_model_record_t *r) INF_NEEDS(lc->lock);

const inf_graph_ops_t inf_lifecycle_graph_ops = {
    .serves = serves
};

static inline inf_model_record_t *
record_of(const inf_graph_model_t *m)
{
    return inf_link_entry((inf_graph_model_t *) (uintptr_t) m,
        inf_model_record_t, graph);
}

bool
inf_lifecycle_gather(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    bool circular = false;

    if (!l->awaits && !ask_plan(l, &circular)) {
        return false;
    }
    if (!circular && lc->options.load_members
        && l->op->kind == INF_OP_LOAD && await_members(l))
    {
        return true;
    }

    inf_lock(&lc->lock);
    bool parked = park_locked(l);
    inf_unlock(&lc->lock);
    return parked;
}

void
inf_lifecycle_take_members(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_graph_model_t *m = &l->record->graph;
    size_t count = m->asked != NULL ? m->asked->count : 0;

    l->members = calloc(count + 1, sizeof(inf_model_t *));
    if (l->members == NULL || m->asked == NULL) {
        l->lack = strdup("out of memory");
        inf_lifecycle_fail_all(l);
        return;
    }

    inf_lock(&lc->lock);
    bool taken = take_all_locked(l) && !inf_graph_closes(&lc->graph, m);
    if (!taken) {
        l->lack = lack_locked(lc, l->record, m->asked);
    }
    bool same = taken && inf_graph_verdict(&lc->graph, m) == INF_GRAPH_FINE
        && m->made != NULL;
    inf_unlock(&lc->lock);

    if (!taken) {
        inf_lifecycle_fail_all(l);
    }
    for (size_t i = 0; !same && i < l->count; i++) {
        l->versions[i].keep = false;
    }
}

bool
inf_lifecycle_members_left_locked(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_graph_model_t *m = &l->record->graph;

    if (!l->ensemble || (!inf_graph_closes(&lc->graph, m)
        && inf_graph_compare(&lc->graph, m, m->asked,
            (const void *const *) l->members) != INF_GRAPH_LOST))
    {
        return false;
    }

    l->lack = lack_locked(lc, l->record, m->asked);
    return true;
}

inf_graph_plan_t *
inf_lifecycle_settle_locked(inf_load_t *l, bool whole)
{
    inf_model_record_t *r = l->record;
    inf_graph_model_t *m = &r->graph;

    if (!l->ensemble) {
        return whole && l->fresh ? inf_graph_drop_made(m) : NULL;
    }
    if (!whole && inf_model_record_any_ready(r)) {
        return inf_graph_drop_asked(m);
    }

    inf_graph_plan_t *before = inf_graph_settle(m, whole
        ? (const void *const *) l->members : NULL);
    for (size_t i = 0; whole && i < l->count; i++) {
        if (inf_model_record_find(r, l->versions[i].version)->model == NULL) {
            inf_graph_unmake(m);
        }
    }

    if (l->fresh) {                     /* how it is tried again             */
        inf_override_free(r->override);
        r->override = whole ? NULL : l->op->override;
        l->op->override = whole ? l->op->override : NULL;
        r->retry = !whole;
        l->left = whole ? NULL : r->home;
        r->home = whole ? r->home : NULL;
    }
    return before;
}

void
inf_lifecycle_withdraw_dependents_locked(inf_lifecycle_t *lc,
    const inf_model_record_t *r, inf_link_t *gone)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    while ((m = inf_graph_next_ensemble(&lc->graph, &r->graph, &at)) != NULL) {
        if (inf_graph_verdict(&lc->graph, m) == INF_GRAPH_LOST) {
            withdraw_locked(lc, record_of(m), gone);
        }
    }
}

void
inf_lifecycle_let_go(inf_link_t *gone)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(gone)) != NULL) {
        inf_loaded_t *loaded = inf_link_entry(link, inf_loaded_t, gone);
        inf_log(INF_LOG_INFO, "model=%s version=%lld is being unloaded%s%s",
            loaded->record->title, (long long) loaded->model->version,
            loaded->why != NULL ? ": " : "",
            loaded->why != NULL ? loaded->why : "");
        inf_entrance_close_door(loaded->model);
        inf_model_unref(loaded->model);
    }
}

void
inf_lifecycle_renew(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_lifecycle_op_t *op)
{
    inf_lock(&lc->lock);
    uint64_t round = ++lc->rounds;
    inf_unlock(&lc->lock);

    for (;;) {
        inf_lifecycle_op_t *renew;

        inf_lock(&lc->lock);
        bool any = !lc->stopping
            && next_to_renew_locked(lc, r, op, round) != NULL;
        inf_unlock(&lc->lock);
        if (!any) {
            return;
        }

        inf_err_t *err = inf_lifecycle_op_new(INF_OP_RENEW, NULL, NULL,
            &renew);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "ensembles of \"%s\" are not made"
                " again", r->name));
            return;
        }

        inf_lock(&lc->lock);
        inf_model_record_t *e = lc->stopping ? NULL
            : next_to_renew_locked(lc, r, op, round);
        if (e != NULL) {
            e->renewed = round;
            inf_lifecycle_adopt_locked(op, renew);
            inf_lifecycle_submit_locked(lc, e, renew);
        }
        inf_unlock(&lc->lock);
        if (e == NULL) {
            inf_lifecycle_op_end(lc, renew, NULL);
            return;
        }
        inf_cond_broadcast(&lc->work);
    }
}

void
inf_lifecycle_unload_orphans(inf_lifecycle_t *lc, inf_lifecycle_op_t *op)
{
    for (size_t i = 0; op->dependents && op->plan != NULL
        && i < op->plan->count; i++)
    {
        inf_lifecycle_op_t *unload;
        inf_graph_model_t *m;

        inf_err_t *err = inf_lifecycle_op_new(INF_OP_UNLOAD, NULL, NULL,
            &unload);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "model \"%s\" is not unloaded",
                op->plan->steps[i].name));
            return;
        }

        unload->dependents = true;
        unload->orphan = true;
        inf_lock(&lc->lock);
        inf_graph_find(&lc->graph, &op->record->graph, &op->plan->steps[i],
            &m);
        bool lonely = m != NULL && !lc->stopping
            && is_orphan_locked(lc, record_of(m));
        if (lonely) {
            inf_lifecycle_adopt_locked(op, unload);
            inf_lifecycle_submit_locked(lc, record_of(m), unload);
        }
        inf_unlock(&lc->lock);

        if (lonely) {
            inf_cond_broadcast(&lc->work);
        } else {
            inf_lifecycle_op_end(lc, unload, NULL);
        }
    }
}

bool
inf_lifecycle_is_orphan(inf_lifecycle_t *lc, inf_model_record_t *r)
{
    inf_lock(&lc->lock);
    bool orphan = is_orphan_locked(lc, r);
    inf_unlock(&lc->lock);
    return orphan;
}

void
inf_lifecycle_wake_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    while ((m = inf_graph_next_ensemble(&lc->graph, &r->graph, &at)) != NULL) {
        inf_model_record_t *e = record_of(m);
        if (e->parked && (!inf_graph_waits(&lc->graph, m)
            || inf_graph_circular(&lc->graph, m)))
        {
            inf_lifecycle_resume_locked(lc, e);
        }
    }
}

bool
inf_lifecycle_await_locked(inf_lifecycle_t *lc, inf_model_record_t *own,
    const char *name)
{
    bool endless = false;

    own->graph.awaits = name;
    for (inf_graph_model_t *m = NULL; !endless
        && (m = inf_graph_next_named(&lc->graph, name, m)) != NULL; )
    {
        endless = m->turn != 0
            && inf_graph_leads(&lc->graph, m, &own->graph);
    }
    if (endless) {
        own->graph.awaits = NULL;
    }
    return endless;
}

void
inf_lifecycle_awaited_locked(inf_model_record_t *own)
{
    own->graph.awaits = NULL;
}

static const void *
serves(const inf_graph_model_t *m, int64_t version)
{
    const inf_model_record_t *r = record_of(m);

    for (size_t i = r->version_count; i-- > 0; ) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->model != NULL && (version == -1 || v->version == version)) {
            return v->model;
        }
    }

    return NULL;
}

static inf_err_t *
make_plan(const inf_load_t *l, inf_graph_plan_t **out)
{
    const Inference__ModelEnsembling *e =
        l->home->config->msg->ensemble_scheduling;
    size_t len = 0;

    for (size_t i = 0; i < e->n_step; i++) {
        len += strlen(e->step[i]->model_name);
    }

    inf_err_t *err = inf_graph_plan_new(e->n_step, len, out);
    for (size_t i = 0; err == NULL && i < e->n_step; i++) {
        inf_graph_plan_add(*out, e->step[i]->model_name,
            e->step[i]->model_version);
    }
    return err;
}

/* false: why is said when it takes its members. */
static bool
ask_plan(inf_load_t *l, bool *circular)
{
    inf_lifecycle_t *lc = l->lc;
    inf_graph_model_t *m = &l->record->graph;
    inf_graph_plan_t *plan;

    inf_err_t *err = make_plan(l, &plan);
    if (err != NULL) {
        inf_err_free(err);
        return false;
    }

    inf_lock(&lc->lock);
    inf_graph_ask(&lc->graph, m, plan);
    l->record->awaits = false;
    *circular = inf_graph_circular(&lc->graph, m);
    inf_unlock(&lc->lock);
    return true;
}

/* Has them loaded.  true: one may lie in a repository that is to come, l is
   somebody else's now. */
static bool
await_members(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_absence_t absence = INF_ABSENCE_AGAIN;

    /* before the first of them can be there */
    inf_lock(&lc->lock);
    l->record->awaits = true;
    inf_unlock(&lc->lock);

    while (absence == INF_ABSENCE_AGAIN) {
        inf_repository_list_t *list = inf_repositories_take(
            lc->options.repositories);
        l->awaits = true;
        absence = load_members(l, list)
            ? inf_lifecycle_absent(lc, l->op, list, "") : INF_ABSENCE_FINAL;
        inf_repository_list_unref(list);
    }
    if (absence == INF_ABSENCE_PARKED) {
        return true;
    }

    l->awaits = false;
    inf_lock(&lc->lock);
    l->record->awaits = false;
    inf_unlock(&lc->lock);
    return false;
}

/* As they lie there now, unless such a load is on its way.  true: one lies
   nowhere, and doesn't wait by itself. */
static bool
load_members(inf_load_t *l, const inf_repository_list_t *list)
{
    inf_lifecycle_t *lc = l->lc;
    const inf_graph_plan_t *plan = l->record->graph.asked;
    bool nowhere = false;

    for (size_t i = 0; i < plan->count; i++) {
        inf_model_id_t id = inf_model_id(plan->steps[i].name);
        inf_lifecycle_op_t *op;

        if (lc->options.repositories->namespacing
            && !find_space(l, list, &id, &nowhere))
        {
            continue;
        }

        inf_lock(&lc->lock);
        bool loading = is_loading_locked(lc, &id);
        inf_unlock(&lc->lock);
        if (loading || (l->op->start && inf_lifecycle_is_barred(lc, &id))) {
            continue;
        }

        inf_err_t *err = inf_lifecycle_op_new(INF_OP_LOAD, NULL, NULL, &op);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "model \"%s\" is not loaded",
                id.name));
            continue;
        }
        op->implicit = true;
        op->start = l->op->start;
        inf_lifecycle_submit(lc, &id, op);
    }
    return nowhere;
}

/* The model of that name in the ensemble's repository, else the only one.
   *nowhere: there is none. */
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
    *nowhere = *nowhere || scan.model_count == 0;
    for (size_t i = 0; space != NULL && i < list->count; i++) {
        if (strcmp(list->roots[i].space, space) == 0) {
            id->space = list->roots[i].space;       /* lives longer          */
        }
    }
    inf_scan_fini(&scan);
    return space != NULL;
}

static bool
is_loading_locked(const inf_lifecycle_t *lc, const inf_model_id_t *id)
{
    const inf_model_record_t *r = inf_lifecycle_find_locked(lc, id);
    return r != NULL && r->busy && r->last_kind == INF_OP_LOAD;
}

/* Back to the front of the queue, until those that it needs have had theirs. */
static bool
park_locked(inf_load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_model_record_t *r = l->record;

    r->graph.until = lc->turns;
    if (lc->stopping || !inf_graph_waits(&lc->graph, &r->graph)
        || inf_graph_circular(&lc->graph, &r->graph))
    {
        r->graph.until = 0;
        return false;
    }

    inf_list_push_front(&r->ops, &l->op->link);
    r->parked = true;
    return true;
}

/* false: one is missing. */
static bool
take_all_locked(inf_load_t *l)
{
    const inf_graph_model_t *m = &l->record->graph;

    for (size_t i = 0; i < m->asked->count; i++) {
        const inf_graph_step_t *step = &m->asked->steps[i];
        inf_graph_model_t *target;
        if (inf_graph_find(&l->lc->graph, m, step, &target)
            != INF_GRAPH_SERVES)
        {
            return false;
        }

        const void *model = serves(target, step->version);
        l->members[l->member_count++] = (inf_model_t *) (uintptr_t) model;
        inf_model_ref(l->members[i]);
    }

    return true;
}

void
inf_lifecycle_fail_all(inf_load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_load_version_t *v = &l->versions[i];
        v->keep = false;
        inf_err_free(v->err);
        v->err = inf_err_new(INF_ERR_INVALID_ARG, "%s", l->lack != NULL
            ? l->lack : "out of memory");
        free(v->reason);
        v->reason = inf_reason_text(v->err);
    }
}

/* Why e can't be made; malloc'ed, or NULL. */
static char *
lack_locked(inf_lifecycle_t *lc, inf_model_record_t *e,
    const inf_graph_plan_t *plan)
{
    inf_graph_model_t *target;
    inf_buf_t text;
    size_t unknown = 0;

    if (inf_graph_circular(&lc->graph, &e->graph)
        || inf_graph_closes(&lc->graph, &e->graph))
    {
        return inf_graph_circle_text(&e->graph);
    }

    inf_buf_init(&text);
    for (size_t i = 0; i < plan->count; i++) {
        switch (inf_graph_find(&lc->graph, &e->graph, &plan->steps[i],
            &target))
        {
        case INF_GRAPH_UNKNOWN:
        case INF_GRAPH_AMBIGUOUS:
            if (unknown++ == 0) {
                inf_buf_printf(&text, "ensemble %s contains models that are"
                    " not available or ambiguous: ", e->name);
            }
            inf_buf_printf(&text, "%s%s", unknown > 1 ? ", " : "",
                plan->steps[i].name);
            break;
        case INF_GRAPH_SERVES:
        case INF_GRAPH_NONE:
        case INF_GRAPH_NO_VERSION:
            break;
        }
    }

    for (size_t i = 0; unknown == 0 && text.len == 0 && i < plan->count; i++) {
        const inf_graph_step_t *step = &plan->steps[i];
        inf_graph_found_t found = inf_graph_find(&lc->graph, &e->graph, step,
            &target);
        if (found == INF_GRAPH_NO_VERSION) {
            inf_buf_printf(&text, "ensemble '%s' depends on '%s' whose"
                " required version %lld is not loaded.", e->name, step->name,
                (long long) step->version);
        } else if (found == INF_GRAPH_NONE) {
            const inf_model_record_t *r = record_of(target);
            inf_buf_printf(&text, "ensemble '%s' depends on '%s' which %s.",
                e->name, step->name, r->graph.made != NULL ? "is not valid"
                : "has no loaded version");
            add_failure(&text, r);
        }
    }

    if (text.failed || text.len == 0) {
        inf_buf_fini(&text);
        return NULL;
    }
    return inf_buf_give(&text, NULL);
}

/* What went wrong with a model that isn't just unloaded. */
static void
add_failure(inf_buf_t *text, const inf_model_record_t *r)
{
    const char *begin = r->graph.made != NULL ? "failed" : "loading failed";

    if (r->version_count == 0 && r->reason != NULL) {
        inf_buf_printf(text, " Model '%s' %s with error: %s", r->name, begin,
            r->reason);
    }
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->state != INF_VERSION_UNAVAILABLE || v->reason == NULL
            || strcmp(v->reason, INF_REASON_UNLOADED) == 0)
        {
            continue;
        }
        if (text->len > REASON_MAX) {
            inf_buf_puts(text, " ...");
            return;
        }
        inf_buf_printf(text, " Model '%s' %s with error: version %lld is at"
            " UNAVAILABLE state: %s;", r->name, begin,
            (long long) v->version, v->reason);
    }
}

/* And what is made of it. */
static void
withdraw_locked(inf_lifecycle_t *lc, inf_model_record_t *e, inf_link_t *gone)
{
    char *lack = lack_locked(lc, e, e->graph.made);
    bool any = false;

    for (size_t i = 0; i < e->version_count; i++) {
        inf_record_version_t *v = &e->versions[i];
        inf_model_t *model = v->model;

        if (model == NULL && v->state == INF_VERSION_UNAVAILABLE
            && (v->missing != NULL || e->retry))
        {
            note_lack(v, lack, v->missing != NULL);
        }
        if (model == NULL) {
            continue;
        }

        inf_loaded_t *loaded = model->owner;
        v->model = NULL;
        v->state = INF_VERSION_UNAVAILABLE;
        loaded->why = lack != NULL ? strdup(lack) : NULL;
        note_lack(v, lack, true);
        inf_lifecycle_drop_locked(model, gone);
        any = true;
    }
    free(lack);

    if (any) {
        inf_graph_unmake(&e->graph);
        inf_lifecycle_withdraw_dependents_locked(lc, e, gone);
    }
}

/* waits: it is the only reason. */
static void
note_lack(inf_record_version_t *v, const char *lack, bool waits)
{
    char *reason;

    if (lack == NULL || asprintf(&reason, "%s: %s",
            inf_err_code_string(INF_ERR_INVALID_ARG), lack) < 0)
    {
        return;
    }

    free(v->reason);
    v->reason = reason;
    if (waits) {
        free(v->missing);
        v->missing = strdup(lack);
    }
}

/* One that is being made of what served before has to be looked at again. */
static bool
must_renew_locked(const inf_lifecycle_t *lc, const inf_model_record_t *e,
    const inf_lifecycle_op_t *op)
{
    if (e->graph.asked != NULL) {
        return !e->awaits               /* then it takes them when it goes on */
            && (!e->parked || (op != NULL && op->done != NULL));
    }

    return inf_graph_verdict(&lc->graph, &e->graph) == INF_GRAPH_STALE;
}

/* Those of this round have been seen to. */
static inf_model_record_t *
next_to_renew_locked(const inf_lifecycle_t *lc, const inf_model_record_t *r,
    const inf_lifecycle_op_t *op, uint64_t round)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    while ((m = inf_graph_next_ensemble(&lc->graph, &r->graph, &at)) != NULL) {
        inf_model_record_t *e = record_of(m);
        if (e != r && e->renewed != round && must_renew_locked(lc, e, op)) {
            return e;
        }
    }

    return NULL;
}

static bool
is_orphan_locked(inf_lifecycle_t *lc, const inf_model_record_t *r)
{
    return !r->graph.by_request && inf_model_record_is_held(r)
        && !inf_graph_needed(&lc->graph, &r->graph);
}
