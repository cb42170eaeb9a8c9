/* model_swap.c - changes of the serving versions: begin and end of a load, an
   unload, a process exit, and their effect on ensembles. */

#include "core/repository/model_set.h"

#include <stdlib.h>

#define REASON_MAX 4096u        /* approximate limit of quoted reasons       */

static void merge_versions(inf_load_t *l, inf_record_version_t *merged);
static void take_all(inf_model_set_t *set, inf_load_t *l);
static bool composing_left(inf_model_set_t *set, const inf_load_t *l);
static void take_over(inf_load_t *l);
static void give_up(inf_load_t *l);
static void release(inf_load_t *l, inf_model_t *model);
static inf_graph_plan_t *settle_plan(inf_load_t *l, bool whole);
static void leave(inf_model_set_t *set, inf_model_record_t *r);
static void find_to_leave(inf_model_set_t *set);
static bool withdraw(inf_model_set_t *set, inf_model_record_t *e,
    inf_link_t *gone, inf_reason_room_t *room);
static void explain_lack(inf_record_version_t *v, inf_reason_t *lack,
    bool waits);
static bool tell_lack(inf_model_set_t *set, inf_model_record_t *e,
    const inf_graph_plan_t *plan, inf_reason_room_t *room,
    inf_reason_t **out);
static void put_lack(inf_model_set_t *set, inf_model_record_t *e,
    const inf_graph_plan_t *plan, inf_buf_t *text);
static void add_failure(inf_buf_t *text, const inf_model_record_t *r);

bool
inf_model_set_begin(inf_load_t *l, inf_record_version_t *merged)
{
    inf_model_record_t *r = l->record;
    bool shown = false;

    merge_versions(l, merged);
    for (size_t i = 0; i < l->count; i++) {
        inf_record_version_t *v = inf_model_record_find(r,
            l->versions[i].version);
        /* kept, but its process has exited since: it is rebuilt later */
        bool exited = l->versions[i].keep && !l->ensemble;
        if (v->state != INF_VERSION_READY && !exited) {
            inf_record_version_move(v, INF_VERSION_LOADING);
            l->versions[i].waited = v->missing;
            if (l->edit->kind != INF_EDIT_REBUILD) {
                inf_record_version_settle(v);
            }
            v->leaving = NULL;
            inf_reason_unref(v->reason);
            v->reason = NULL;
            shown = true;
        }
    }
    r->rejected = INF_REJECTED_NOT;
    r->unloaded = false;
    inf_reason_unref(r->reason);
    r->reason = NULL;
    return shown;
}

static void
merge_versions(inf_load_t *l, inf_record_version_t *merged)
{
    inf_model_record_t *r = l->record;
    size_t n = 0;
    size_t i = 0;
    size_t k = 0;

    while (i < r->version_count || k < l->count) {
        if (k == l->count || (i < r->version_count
            && r->versions[i].version <= l->versions[k].version))
        {
            k += k < l->count
                && r->versions[i].version == l->versions[k].version;
            merged[n++] = r->versions[i++];
            continue;
        }
        merged[n++].version = l->versions[k++].version;
    }

    free(r->versions);
    r->versions = merged;
    r->version_count = n;
}

void
inf_model_set_reject(inf_edit_t *edit, bool known, inf_rejection_t rejection,
    inf_reason_t *reason)
{
    inf_model_record_t *r = edit->record;

    if (known || r->version_count > 0 || (r->who & INF_WANTED_AT_START) != 0) {
        r->rejected = inf_model_record_any_ready(r) ? INF_REJECTED_NOT
            : rejection;
        inf_model_record_explain(r, reason);
    }
    if (edit->kind == INF_EDIT_REFRESH && r->override == NULL) {
        r->override = edit->override;       /* used by the next try          */
        edit->override = NULL;
    }
}

void
inf_model_set_ask(inf_model_set_t *set, inf_load_t *l, inf_graph_plan_t *plan,
    bool *circular)
{
    inf_graph_ask(&set->graph, &l->record->graph, plan);
    l->record->stage = INF_LOAD_TAKES;
    *circular = inf_graph_circular(&set->graph, &l->record->graph);
}

bool
inf_model_set_waits(inf_model_set_t *set, inf_load_t *l)
{
    inf_graph_model_t *m = &l->record->graph;

    m->until = set->turns;
    bool waits = !set->stopping && inf_graph_waits(&set->graph, m);
    m->until = waits ? m->until : 0;
    return waits;
}

bool
inf_model_set_gather(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *same)
{
    inf_graph_model_t *m = &l->record->graph;
    bool serve = inf_graph_compare(&set->graph, m, m->asked, NULL)
        != INF_GRAPH_INCOMPLETE && !inf_graph_closes(&set->graph, m);

    if (!serve && !tell_lack(set, l->record, m->asked, room, &l->lack)) {
        return false;
    }
    if (serve) {
        take_all(set, l);
    }
    *same = serve && m->made != NULL
        && inf_graph_verdict(&set->graph, m) == INF_GRAPH_FINE;
    return true;
}

/* Puts all versions of l into service. */
static void
take_all(inf_model_set_t *set, inf_load_t *l)
{
    const inf_graph_model_t *m = &l->record->graph;

    for (size_t i = 0; i < m->asked->count; i++) {
        const inf_graph_step_t *step = &m->asked->steps[i];
        inf_graph_model_t *target;

        inf_graph_find(&set->graph, m, step, &target);
        inf_model_t *model = inf_model_record_serves(
            inf_model_record_of(target), step->version);
        l->composing[l->composing_count++] = model;
        inf_model_ref(model);
    }
}

bool
inf_model_set_swap(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *whole, inf_graph_plan_t **plan)
{
    if (*whole && composing_left(set, l)) {
        if (!tell_lack(set, l->record, l->record->graph.asked, room, &l->lack))
        {
            return false;
        }
        *whole = false;
    }
    if (*whole) {
        take_over(l);
    } else {
        give_up(l);
    }

    *plan = settle_plan(l, *whole);
    leave(set, l->record);
    return true;
}

/* Whether a model that l was made of has stopped serving meanwhile, or is now
   made of l's. */
static bool
composing_left(inf_model_set_t *set, const inf_load_t *l)
{
    inf_graph_model_t *m = &l->record->graph;

    return l->ensemble && (inf_graph_closes(&set->graph, m)
        || inf_graph_compare(&set->graph, m, m->asked,
            (const void *const *) l->composing) == INF_GRAPH_INCOMPLETE);
}

static void
take_over(inf_load_t *l)
{
    inf_model_record_t *r = l->record;

    for (size_t i = 0, k = 0; i < r->version_count; i++) {
        inf_record_version_t *now = &r->versions[i];
        inf_load_version_t *v = k < l->count
            && l->versions[k].version == now->version ? &l->versions[k++]
            : NULL;

        if (v == NULL) {                /* not wanted any more               */
            release(l, inf_record_version_withdraw(now));
            if (now->exited != NULL && inf_load_is_fresh(l)) {
                inf_record_version_settle(now);
                inf_record_version_forget(now);
            }
            continue;
        }
        if (v->keep && now->model == NULL) {
            continue;                   /* its process has exited meanwhile  */
        }

        inf_reason_unref(now->reason);
        now->reason = NULL;
        if (!v->keep) {
            release(l, now->model);
            now->model = v->model;
            inf_record_version_move(now, INF_VERSION_READY);
            inf_record_version_settle(now);
            v->serves = v->model;
            inf_model_ref(v->serves);
            v->model = NULL;
        }
    }

    if (l->in_place) {
        inf_model_source_swap_settings(r->source, l->source);
        return;
    }

    inf_model_source_t *old = r->source;
    r->source = l->source;
    l->source = old;
}

/* Fails l: serving versions go on, with the reason of their successors; of an
   ensemble that lacks a composing model, all versions fail. */
static void
give_up(inf_load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_load_version_t *v = &l->versions[i];
        inf_record_version_t *now = inf_model_record_find(l->record,
            v->version);
        bool failed = l->lack != NULL || v->err != NULL;

        if (failed) {
            inf_reason_unref(now->reason);
            now->reason = inf_reason_ref(l->lack != NULL ? l->lack
                : v->reason);
            if (now->state != INF_VERSION_READY) {
                inf_record_version_move(now, INF_VERSION_UNAVAILABLE);
                now->missing = v->waited && l->lack != NULL;
            }
        }
        if (v->model != NULL) {
            if (now->state != INF_VERSION_READY && !failed) {
                inf_record_version_move(now, INF_VERSION_UNLOADING);
                now->leaving = v->model->owner;
            }
            release(l, v->model);
            v->model = NULL;
        }
    }
}

/* Adds model, which may be NULL, to the released ones; there is room. */
static void
release(inf_load_t *l, inf_model_t *model)
{
    if (model != NULL) {
        l->released[l->released_count++] = model;
    }
}

/* Updates the graph after the load.  Returns a plan to be freed, or NULL. */
static inf_graph_plan_t *
settle_plan(inf_load_t *l, bool whole)
{
    inf_model_record_t *r = l->record;
    inf_graph_model_t *m = &r->graph;
    bool fresh = inf_load_is_fresh(l);

    if (!l->ensemble) {
        return whole && fresh ? inf_graph_drop(&m->made) : NULL;
    }
    if (!whole && inf_model_record_any_ready(r)) {
        return inf_graph_drop(&m->asked);
    }

    inf_graph_plan_t *before = inf_graph_settle(m, whole
        ? (const void *const *) l->composing : NULL);
    for (size_t i = 0; whole && i < l->count; i++) {
        if (inf_model_record_find(r, l->versions[i].version)->model == NULL) {
            inf_graph_unmake(m);
        }
    }

    if (fresh) {                        /* for the next try                  */
        inf_override_free(r->override);
        r->override = whole ? NULL : l->edit->override;
        l->edit->override = whole ? l->edit->override : NULL;
        r->retry = !whole;
        l->left = whole ? NULL : r->source;
        r->source = whole ? r->source : NULL;
    }
    return before;
}

inf_model_source_t *
inf_model_set_unload(inf_model_set_t *set, inf_edit_t *edit, inf_link_t *gone)
{
    inf_model_record_t *r = edit->record;
    inf_model_source_t *source = r->source;
    bool ambiguous = edit->cause == INF_UNLOAD_AMBIGUOUS;
    bool forget = inf_model_record_never_made(r)
        || edit->cause == INF_UNLOAD_MOVED
        || edit->cause == INF_UNLOAD_REMOVED
        || edit->cause == INF_UNLOAD_DROPPED || ambiguous;

    inf_reason_unref(r->reason);
    r->reason = ambiguous ? inf_reason_ref(&inf_reason_ambiguous) : NULL;
    r->rejected = ambiguous ? INF_REJECTED_UNREAD : INF_REJECTED_NOT;
    r->retry = false;
    r->unloaded = true;
    r->source = NULL;
    edit->who = source != NULL && (r->who & INF_WANTED_ITSELF) == 0 ? 0
        : INF_WANTED_ITSELF;
    r->who = ambiguous ? r->who & INF_WANTED_AT_START : 0;
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        inf_model_t *model = inf_record_version_withdraw(v);
        if (model != NULL) {
            set->ops->leaves(model, NULL, gone);
        }
        if (forget || v->missing) {
            inf_record_version_forget(v);
        }
        inf_record_version_settle(v);
    }
    edit->plan = inf_graph_drop(&r->graph.made);
    leave(set, r);
    return source;
}

/* Marks r for the drain of ensembles, because a version may have left
   service. */
static void
leave(inf_model_set_t *set, inf_model_record_t *r)
{
    if (inf_list_empty(&r->left)) {
        inf_list_push_back(&set->left, &r->left);
    }
}

bool
inf_model_set_drain(inf_model_set_t *set, inf_link_t *gone,
    inf_reason_room_t *room)
{
    for (;;) {
        find_to_leave(set);
        if (inf_list_empty(&set->to_leave)) {
            return true;
        }

        inf_model_record_t *e = inf_link_entry(set->to_leave.next,
            inf_model_record_t, to_leave);
        if (inf_graph_verdict(&set->graph, &e->graph) == INF_GRAPH_INCOMPLETE
            && !withdraw(set, e, gone, room))
        {
            return false;
        }
        inf_link_remove(&e->to_leave);
    }
}

/* Finds ensembles of models that left service. */
static void
find_to_leave(inf_model_set_t *set)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(&set->left)) != NULL) {
        const inf_model_record_t *r = inf_link_entry(link,
            inf_model_record_t, left);
        const inf_graph_step_t *at = NULL;
        inf_graph_model_t *m;

        while ((m = inf_graph_next_ensemble(&set->graph, &r->graph, &at))
            != NULL)
        {
            inf_model_record_t *e = inf_model_record_of(m);
            if (inf_graph_verdict(&set->graph, m) == INF_GRAPH_INCOMPLETE
                && inf_list_empty(&e->to_leave))
            {
                inf_list_push_back(&set->to_leave, &e->to_leave);
            }
        }
    }
}

/* Withdraws an ensemble; false: its reason needs more room. */
static bool
withdraw(inf_model_set_t *set, inf_model_record_t *e, inf_link_t *gone,
    inf_reason_room_t *room)
{
    inf_reason_t *lack;
    bool any = false;

    if (!tell_lack(set, e, e->graph.made, room, &lack)) {
        return false;
    }
    for (size_t i = 0; i < e->version_count; i++) {
        inf_record_version_t *v = &e->versions[i];
        inf_model_t *model = v->model;

        if (model == NULL && v->state == INF_VERSION_UNAVAILABLE
            && (v->missing || e->retry))
        {
            explain_lack(v, lack, v->missing);
        }
        if (model == NULL) {
            continue;
        }

        v->model = NULL;
        inf_record_version_move(v, INF_VERSION_UNAVAILABLE);
        explain_lack(v, lack, true);
        set->ops->leaves(model, inf_reason_ref(lack), gone);
        any = true;
    }
    inf_reason_unref(lack);

    if (any) {
        inf_graph_unmake(&e->graph);
        leave(set, e);
    }
    return true;
}

/* Sets the reason lack; waits: it is the only one. */
static void
explain_lack(inf_record_version_t *v, inf_reason_t *lack, bool waits)
{
    inf_reason_unref(v->reason);
    v->reason = inf_reason_ref(lack);
    v->missing = v->missing || waits;
}

inf_record_version_t *
inf_model_set_exit(inf_model_set_t *set, inf_model_record_t *r,
    const inf_model_t *model, inf_edit_t *rebuild, inf_reason_t *reason,
    uint64_t now_ns)
{
    for (size_t i = 0; !set->stopping && i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->model != model) {
            continue;
        }

        set->exits++;
        v->exits = inf_reconcile_exits(v, now_ns);
        v->exit_ns = now_ns;
        v->due_ns = now_ns + inf_reconcile_delay_ns(v->exits);
        v->model = NULL;
        inf_record_version_move(v, INF_VERSION_UNAVAILABLE);
        inf_reason_unref(v->reason);
        v->reason = inf_reason_ref(reason);
        v->exited = inf_reason_ref(reason);
        rebuild->version = v->version;
        v->rebuild = rebuild;
        leave(set, r);
        return v;
    }

    return NULL;
}

void
inf_load_give_up(const inf_load_t *l, inf_reason_t *reason)
{
    for (size_t i = 0; i < l->count; i++) {
        const inf_load_version_t *v = &l->versions[i];
        inf_record_version_t *now = inf_model_record_find(l->record,
            v->version);

        if (now->state == INF_VERSION_LOADING) {
            inf_record_version_move(now, INF_VERSION_UNAVAILABLE);
        } else if (now->state != INF_VERSION_READY
            || v->version != l->call.version)
        {
            continue;
        }
        inf_reason_unref(now->reason);
        now->reason = inf_reason_ref(reason);
    }
}

void
inf_load_fail_all(inf_load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_load_version_t *v = &l->versions[i];
        v->keep = false;
        inf_err_free(v->err);
        v->err = inf_err_new(INF_ERR_INVALID_ARG, "%s", l->lack->msg);
    }
}

/* Sets *out to the reason, a reference, why e cannot be made of plan.  false:
   it needs more room. */
static bool
tell_lack(inf_model_set_t *set, inf_model_record_t *e,
    const inf_graph_plan_t *plan, inf_reason_room_t *room, inf_reason_t **out)
{
    char *data = inf_reason_room_text(room);
    size_t code_len = 0;
    inf_buf_t text;

    if (room->reason == NULL) {
        return false;
    }
    if (data != NULL) {
        inf_buf_init_fixed(&text, data, room->size);
        inf_buf_printf(&text, "%s: ", inf_err_code_string(
            INF_ERR_INVALID_ARG));
        code_len = text.len;
        put_lack(set, e, plan, &text);
        if (text.failed) {
            return false;
        }
    }
    *out = inf_reason_room_take(room, code_len);
    return true;
}

static void
put_lack(inf_model_set_t *set, inf_model_record_t *e,
    const inf_graph_plan_t *plan, inf_buf_t *text)
{
    inf_ensemble_graph_t *g = &set->graph;
    inf_graph_model_t *target;
    size_t at;

    if (inf_graph_circular(g, &e->graph) || inf_graph_closes(g, &e->graph)) {
        inf_graph_circle_text(&e->graph, text);
        return;
    }

    if (inf_graph_lack(g, &e->graph, plan, text, &at) == INF_GRAPH_NONE) {
        inf_graph_find(g, &e->graph, &plan->steps[at], &target);
        const inf_model_record_t *r = inf_model_record_of(target);
        inf_buf_printf(text, "ensemble '%s' depends on '%s' which %s.",
            e->name, plan->steps[at].name, r->graph.made != NULL
            ? "is not valid" : "has no loaded version");
        add_failure(text, r);
    }
}

/* Appends the reason of a failed (not unloaded) model. */
static void
add_failure(inf_buf_t *text, const inf_model_record_t *r)
{
    const char *begin = r->graph.made != NULL ? "failed" : "loading failed";

    if (r->version_count == 0 && r->reason != NULL) {
        inf_buf_printf(text, " Model '%s' %s with error: %s", r->name, begin,
            r->reason->msg);
    }
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->state != INF_VERSION_UNAVAILABLE || v->reason == NULL
            || inf_record_version_is_unloaded(v))
        {
            continue;
        }
        if (text->len > REASON_MAX) {
            inf_buf_puts(text, " ...");
            return;
        }
        inf_buf_printf(text, " Model '%s' %s with error: version %lld is at"
            " UNAVAILABLE state: %s;", r->name, begin,
            (long long) v->version, v->reason->text);
    }
}
