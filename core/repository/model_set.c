#include "core/repository/model_set.h"

#include <assert.h>

static const void *serves(const inf_graph_model_t *m, int64_t version);
static void move(inf_model_record_t *r, inf_model_state_t to);
static void queue(inf_model_set_t *set, inf_model_record_t *r);
static inf_model_record_t *next_turn(inf_model_set_t *set,
    const inf_link_t *head);
static bool is_held_back(inf_model_set_t *set, const inf_model_record_t *r);
static bool is_being_taken(inf_model_set_t *set, const inf_model_record_t *r,
    uint64_t turn);
static bool will_take(inf_model_set_t *set, inf_model_record_t *e,
    const inf_model_record_t *r, uint64_t turn);
static void decide(inf_model_set_t *set, inf_edit_t *edit);
static bool is_lacking(const inf_edit_t *rebuild);
static void decide_listed(inf_model_set_t *set, inf_edit_t *edit);
static bool needs_edit(const inf_model_set_t *set, const inf_inventory_t *l,
    inf_model_record_t *r, const inf_repository_name_t *n);
static inf_step_t listed_now(const inf_model_set_t *set,
    const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n);
static void wake_dependents(inf_model_set_t *set,
    const inf_model_record_t *r);
static inf_caller_t *end_turn(inf_model_set_t *set, inf_edit_t *edit,
    inf_err_t *err);
static bool retry_later(inf_model_set_t *set, const inf_edit_t *edit,
    inf_edit_t *rebuild, uint64_t now_ns);
static bool serves_stale(inf_model_set_t *set, inf_model_record_t *r,
    uint64_t round);
static void share(inf_edit_t *parent, inf_edit_t *child);

/* Permitted changes of state; an edit put back is QUEUED at once if it need not
   wait. */
#define BIT(state) (1u << (state))
static const uint32_t may_become[] = {
    [INF_MODEL_IDLE] = BIT(INF_MODEL_QUEUED),
    [INF_MODEL_QUEUED] = BIT(INF_MODEL_RUNNING) | BIT(INF_MODEL_IDLE),
    [INF_MODEL_RUNNING] = BIT(INF_MODEL_IDLE) | BIT(INF_MODEL_QUEUED)
        | BIT(INF_MODEL_LISTING) | BIT(INF_MODEL_COMPOSING),
    [INF_MODEL_LISTING] = BIT(INF_MODEL_QUEUED) | BIT(INF_MODEL_IDLE),
    [INF_MODEL_COMPOSING] = BIT(INF_MODEL_QUEUED) | BIT(INF_MODEL_IDLE)
};

static inline inf_edit_t *
first_edit(const inf_model_record_t *r)
{
    return inf_link_entry(r->edits.next, inf_edit_t, link);
}

void
inf_model_set_init(inf_model_set_t *set, const inf_model_set_ops_t *ops,
    void *userp)
{
    *set = (inf_model_set_t) { .ops = ops, .userp = userp };
    inf_link_init(&set->models);
    inf_link_init(&set->loads);
    inf_link_init(&set->unloads);
    inf_link_init(&set->left);
    inf_link_init(&set->to_leave);
    inf_ensemble_graph_init(&set->graph, serves);
}

void
inf_model_set_fini(inf_model_set_t *set)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(&set->models)) != NULL) {
        inf_model_record_free(inf_link_entry(link, inf_model_record_t, link));
    }
}

inf_model_record_t *
inf_model_set_find(const inf_model_set_t *set, const inf_model_id_t *id)
{
    inf_graph_model_t *m = NULL;

    while ((m = inf_graph_next_named(&set->graph, id->name, m)) != NULL) {
        if (inf_model_id_equal(&m->id, id)) {
            return inf_model_record_of(m);
        }
    }

    return NULL;
}

inf_model_record_t *
inf_model_set_next(const inf_model_set_t *set, const inf_model_record_t *r)
{
    const inf_link_t *l = r != NULL ? r->link.next : set->models.next;

    return l == &set->models ? NULL
        : inf_link_entry((inf_link_t *) (uintptr_t) l, inf_model_record_t,
            link);
}

void
inf_model_set_insert(inf_model_set_t *set, inf_model_record_t *r)
{
    /* listings are sorted: usually the end */
    inf_link_t *at = set->models.prev;
    while (at != &set->models) {
        const inf_model_record_t *before = inf_link_entry(at,
            inf_model_record_t, link);
        if (inf_model_id_compare(&before->graph.id, &r->graph.id) < 0) {
            break;
        }
        at = at->prev;
    }

    inf_link_insert(at->next, &r->link);
    inf_graph_add(&set->graph, &r->graph, &r->graph.id);
    set->model_count++;
}

/* The only function that writes r->state. */
static void
move(inf_model_record_t *r, inf_model_state_t to)
{
    assert((may_become[r->state] & BIT(to)) != 0);
    if (r->state == INF_MODEL_QUEUED) {
        inf_link_remove(&r->turn);
    }
    r->state = to;
}

static void
queue(inf_model_set_t *set, inf_model_record_t *r)
{
    const inf_edit_t *edit = first_edit(r);

    move(r, INF_MODEL_QUEUED);
    r->graph.turn = edit->turn;
    r->graph.unloads = inf_edit_unloads(edit);
    r->graph.until = 0;
    inf_list_push_back(r->graph.unloads ? &set->unloads : &set->loads,
        &r->turn);
}

void
inf_model_set_submit(inf_model_set_t *set, inf_model_record_t *r,
    inf_edit_t *edit)
{
    assert(!set->stopping);
    edit->record = r;
    edit->turn = ++set->turns;
    r->last_kind = edit->kind;
    if (edit->at_start) {               /* missing before its turn           */
        r->who |= edit->who & INF_WANTED_BY_REQUEST;
    }
    if (edit->kind != INF_EDIT_LOAD_NAME) {     /* that one is not a model   */
        r->who |= edit->who & INF_WANTED_AT_START;
    }
    inf_list_push_back(&r->edits, &edit->link);
    set->busy++;
    set->starting += edit->at_start;
    if (r->state == INF_MODEL_IDLE) {
        queue(set, r);
    }
}

bool
inf_model_set_comes(inf_model_set_t *set, const inf_inventory_t *l,
    const inf_repository_name_t *n)
{
    bool starts = l->q.occasion == INF_INVENTORY_START;
    inf_model_record_t *r = inf_model_set_find(set, &n->id);

    if (n->problem != NULL || (n->duplicate && !starts)) {
        return false;
    }
    if (r != NULL) {
        return needs_edit(set, l, r, n);
    }
    return listed_now(set, l, NULL, n).kind == INF_STEP_BUILD;
}

inf_model_record_t *
inf_model_set_next_leaving(inf_model_set_t *set, const inf_inventory_t *l,
    inf_model_record_t *r)
{
    while ((r = inf_model_set_next(set, r)) != NULL) {
        const inf_repository_name_t *n = inf_inventory_find(l, &r->graph.id);
        bool lies = n != NULL && n->problem == NULL && !n->duplicate;
        if (!lies && needs_edit(set, l, r, n)) {
            return r;
        }
    }

    return NULL;
}

/* Whether an edit is needed now; for a model with edits LISTED decides in its
   turn. */
static bool
needs_edit(const inf_model_set_t *set, const inf_inventory_t *l,
    inf_model_record_t *r, const inf_repository_name_t *n)
{
    const inf_step_t step = listed_now(set, l, r, n);
    bool changes = l->q.occasion == INF_INVENTORY_CHANGE
        || l->q.occasion == INF_INVENTORY_FIRST;

    if (changes && r->state != INF_MODEL_IDLE) {
        return l->q.occasion == INF_INVENTORY_CHANGE || r->source != NULL
            || (n != NULL && n->problem == NULL);
    }
    if (inf_reconcile_wants(l, r, n, &step, r->name)) {
        r->who |= INF_WANTED_AT_START;
    }
    return step.kind != INF_STEP_NONE;
}

/* The step for an inventory whose repositories count as the current ones. */
static inf_step_t
listed_now(const inf_model_set_t *set, const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n)
{
    inf_reconcile_facts_t now = set->ops->facts(set->userp, l->list,
        r != NULL ? &r->graph.id : &n->id);

    now.current = true;
    return inf_reconcile_listed(l, r, n, &now);
}

inf_edit_t *
inf_model_set_take(inf_model_set_t *set, bool unloads)
{
    const inf_link_t *head = unloads ? &set->unloads : &set->loads;
    inf_model_record_t *r = set->holds > 0 ? NULL : next_turn(set, head);
    if (r == NULL) {
        return NULL;
    }

    inf_edit_t *edit = first_edit(r);
    move(r, INF_MODEL_RUNNING);
    inf_link_remove(&edit->link);
    decide(set, edit);
    return edit;
}

/* The first record in that queue whose edit may begin, or NULL. */
static inf_model_record_t *
next_turn(inf_model_set_t *set, const inf_link_t *head)
{
    for (const inf_link_t *l = head->next; l != head; l = l->next) {
        inf_model_record_t *r = inf_link_entry((inf_link_t *) (uintptr_t) l,
            inf_model_record_t, turn);
        if (!is_held_back(set, r)) {
            return r;
        }
    }

    return NULL;
}

/* Whether a request unloads r, and a load that came before takes it. */
static bool
is_held_back(inf_model_set_t *set, const inf_model_record_t *r)
{
    const inf_edit_t *edit = first_edit(r);

    return edit->kind == INF_EDIT_UNLOAD && edit->cause == INF_UNLOAD_REQUEST
        && is_being_taken(set, r, edit->turn);
}

/* Whether the load of an ensemble that came before turn takes, or will take,
   what r serves, or another ensemble that is made of it. */
static bool
is_being_taken(inf_model_set_t *set, const inf_model_record_t *r,
    uint64_t turn)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    while ((m = inf_graph_next_ensemble(&set->graph, &r->graph, &at)) != NULL) {
        inf_model_record_t *e = inf_model_record_of(m);
        if (inf_graph_asks(m, at) ? will_take(set, e, r, turn)
            : at->held != NULL && is_being_taken(set, e, turn))
        {
            return true;
        }
    }

    return false;
}

/* Whether the load of e came before turn, and goes on without the unloads from
   then on.  Each unload held back came after all unloads that its load waits
   for: no circle. */
static bool
will_take(inf_model_set_t *set, inf_model_record_t *e,
    const inf_model_record_t *r, uint64_t turn)
{
    if (e->stage != INF_LOAD_TAKES || e->graph.turn >= turn) {
        return false;
    }
    return e->state == INF_MODEL_QUEUED || e->state == INF_MODEL_RUNNING
        || (e->state == INF_MODEL_COMPOSING
            && inf_graph_means(&set->graph, &e->graph, &r->graph)
            && inf_graph_goes_on(&set->graph, &e->graph, turn));
}

/* Decides whether the edit is still needed. */
static void
decide(inf_model_set_t *set, inf_edit_t *edit)
{
    if (edit->kind == INF_EDIT_LISTED) {
        decide_listed(set, edit);
    } else if ((edit->kind == INF_EDIT_UNLOAD
            && edit->cause == INF_UNLOAD_ORPHAN
            && !inf_reconcile_is_orphan(&set->graph, edit->record))
        || (edit->kind == INF_EDIT_REBUILD && !is_lacking(edit)))
    {
        edit->kind = INF_EDIT_NOTHING;
    }
}

/* Whether the version still needs the rebuild; false: it was loaded since, or
   its process has exited again and another rebuild waits. */
static bool
is_lacking(const inf_edit_t *rebuild)
{
    const inf_record_version_t *v = inf_model_record_find(rebuild->record,
        rebuild->version);

    return v != NULL && v->exited != NULL && v->rebuild == NULL;
}

static void
decide_listed(inf_model_set_t *set, inf_edit_t *edit)
{
    inf_model_record_t *r = edit->record;
    const inf_inventory_t *l = edit->inventory;
    const inf_repository_name_t *n = inf_inventory_find(l, &r->graph.id);
    const inf_reconcile_facts_t now = set->ops->facts(set->userp, l->list,
        &r->graph.id);
    const inf_step_t step = inf_reconcile_listed(l, r, n, &now);

    if (inf_reconcile_wants(l, r, n, &step, r->name)) {
        r->who |= INF_WANTED_AT_START;
    }
    switch (step.kind) {
    case INF_STEP_BUILD:
        edit->kind = INF_EDIT_LOAD;
        edit->who = INF_WANTED_ITSELF;
        return;
    case INF_STEP_UNLOAD:
        edit->kind = INF_EDIT_UNLOAD;
        edit->cause = step.cause;
        edit->place = step.place;
        return;
    case INF_STEP_ADOPT:
        edit->kind = INF_EDIT_ADOPT;
        r->who = (r->who | INF_WANTED_BY_REQUEST) & ~INF_WANTED_AT_START;
        return;
    case INF_STEP_NONE:
        edit->kind = INF_EDIT_NOTHING;
        return;
    }
}

void
inf_model_set_put_back(inf_model_set_t *set, inf_edit_t *edit,
    inf_model_state_t state)
{
    inf_model_record_t *r = edit->record;

    edit->waited = edit->waited || state == INF_MODEL_LISTING;
    inf_list_push_front(&r->edits, &edit->link);
    move(r, state == INF_MODEL_QUEUED ? INF_MODEL_IDLE : state);
    if (state != INF_MODEL_LISTING && (state != INF_MODEL_COMPOSING
            || !inf_graph_waits(&set->graph, &r->graph)))
    {
        queue(set, r);
    }
}

void
inf_model_set_listed(inf_model_set_t *set)
{
    inf_model_record_t *r = NULL;

    while ((r = inf_model_set_next(set, r)) != NULL) {
        if (r->state == INF_MODEL_LISTING) {
            queue(set, r);
        }
    }
}

bool
inf_model_set_end(inf_model_set_t *set, inf_edit_t *edit, inf_err_t *err,
    uint64_t now_ns, inf_caller_t **caller, inf_model_record_t **gone)
{
    inf_model_record_t *r = edit->record;

    *gone = NULL;
    *caller = end_turn(set, edit, err);
    bool kept = retry_later(set, edit, edit, now_ns);
    if (!set->stopping && inf_model_record_is_empty(r)) {
        inf_link_remove(&r->link);
        inf_link_remove(&r->left);
        inf_link_remove(&r->to_leave);
        inf_graph_remove(&r->graph);
        set->model_count--;
        *gone = r;
    }
    return kept;
}

inf_caller_t *
inf_model_set_time_out(inf_model_set_t *set, inf_load_t *l,
    inf_reason_t *reason, inf_err_t *err, inf_edit_t **rebuild,
    uint64_t now_ns)
{
    assert(l->call.state == INF_CALL_RUNS && l->count > 0);
    l->call.state = INF_CALL_LATE;
    l->record->stuck++;
    inf_load_give_up(l, reason);

    inf_caller_t *caller = end_turn(set, l->edit, err);
    if (retry_later(set, l->edit, *rebuild, now_ns)) {
        *rebuild = NULL;
    }
    return caller;
}

void
inf_model_set_returned(inf_model_record_t *r)
{
    assert(r->stuck > 0);
    r->stuck--;
}

static inf_caller_t *
end_turn(inf_model_set_t *set, inf_edit_t *edit, inf_err_t *err)
{
    inf_model_record_t *r = edit->record;
    inf_caller_t *caller = inf_edit_leave_caller(edit, err);

    set->busy--;
    set->starting -= edit->at_start;
    r->stage = INF_LOAD_READS;
    move(r, INF_MODEL_IDLE);
    r->graph.turn = 0;
    if (!inf_list_empty(&r->edits)) {
        queue(set, r);
    }
    wake_dependents(set, r);
    return caller;
}

/* Wakes loads that waited for r's turn. */
static void
wake_dependents(inf_model_set_t *set, const inf_model_record_t *r)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    while ((m = inf_graph_next_ensemble(&set->graph, &r->graph, &at)) != NULL) {
        inf_model_record_t *e = inf_model_record_of(m);
        if (e->state == INF_MODEL_COMPOSING
            && !inf_graph_waits(&set->graph, m))
        {
            queue(set, e);
        }
    }
}

/* Queues rebuild after a delay, until the version serves or is loaded or
   unloaded otherwise. */
static bool
retry_later(inf_model_set_t *set, const inf_edit_t *edit, inf_edit_t *rebuild,
    uint64_t now_ns)
{
    inf_record_version_t *v = edit->kind != INF_EDIT_REBUILD ? NULL
        : inf_model_record_find(edit->record, edit->version);

    if (set->stopping || v == NULL || v->exited == NULL || v->rebuild != NULL) {
        return false;
    }

    v->exits++;
    v->exit_ns = now_ns;
    v->due_ns = now_ns + inf_reconcile_delay_ns(v->exits);
    v->rebuild = rebuild;
    rebuild->version = edit->version;
    rebuild->at_start = false;
    return true;
}

void
inf_model_set_stop(inf_model_set_t *set, inf_link_t *dropped)
{
    inf_model_record_t *r = NULL;
    inf_link_t *link;

    set->stopping = true;
    while ((r = inf_model_set_next(set, r)) != NULL) {
        while ((link = inf_list_pop_front(&r->edits)) != NULL) {
            inf_list_push_back(dropped, link);
        }
        if (r->state != INF_MODEL_RUNNING && r->state != INF_MODEL_IDLE) {
            move(r, INF_MODEL_IDLE);
        }
    }
}

inf_caller_t *
inf_model_set_end_dropped(inf_model_set_t *set, inf_edit_t *edit,
    inf_err_t *err)
{
    set->busy--;
    set->starting -= edit->at_start;
    return inf_edit_leave_caller(edit, err);
}

bool
inf_model_set_is_starting(const inf_model_set_t *set, inf_slice_t name,
    bool composing)
{
    const inf_model_record_t *r = NULL;
    bool starting = false;

    while (set->starting > 0 && !starting
        && (r = inf_model_set_next(set, r)) != NULL)
    {
        starting = r->state != INF_MODEL_IDLE
            && (inf_slice_eq(inf_slice_str(r->name), name)
                || (composing && r->version_count == 0 && !r->rejected));
    }
    return starting;
}

uint64_t
inf_model_set_tick(inf_model_set_t *set, uint64_t now_ns)
{
    inf_model_record_t *r = NULL;
    uint64_t next_ns = UINT64_MAX;

    while (!set->stopping && set->exits > 0
        && (r = inf_model_set_next(set, r)) != NULL)
    {
        for (size_t i = 0; i < r->version_count; i++) {
            inf_record_version_t *v = &r->versions[i];
            if (v->rebuild == NULL) {
                continue;
            }
            if (v->due_ns > now_ns) {
                next_ns = v->due_ns < next_ns ? v->due_ns : next_ns;
                continue;
            }

            inf_edit_t *edit = v->rebuild;
            v->rebuild = NULL;
            inf_model_set_submit(set, r, edit);
        }
    }

    return next_ns;
}

uint64_t
inf_model_set_round(inf_model_set_t *set)
{
    return ++set->rounds;
}

inf_model_record_t *
inf_model_set_stale(inf_model_set_t *set, const inf_model_record_t *r,
    const inf_edit_t *edit, uint64_t round)
{
    const inf_graph_step_t *at = NULL;
    bool caller = edit != NULL && edit->caller != NULL
        && !edit->caller->inside;
    inf_graph_model_t *m;

    if (!set->stopping && edit != NULL && edit->kind == INF_EDIT_LOAD
        && serves_stale(set, edit->record, round))
    {
        return edit->record;
    }
    while (!set->stopping && (m = inf_graph_next_ensemble(&set->graph,
            &r->graph, &at)) != NULL)
    {
        inf_model_record_t *e = inf_model_record_of(m);
        if (e != r && e->refreshed != round
            && inf_reconcile_is_stale(&set->graph, e, caller))
        {
            return e;
        }
    }

    return NULL;
}

/* Whether r serves versions of older composing models, because its last load
   failed while these changed. */
static bool
serves_stale(inf_model_set_t *set, inf_model_record_t *r, uint64_t round)
{
    return r->refreshed != round && inf_model_record_any_ready(r)
        && r->graph.asked == NULL
        && inf_graph_verdict(&set->graph, &r->graph) == INF_GRAPH_STALE;
}

void
inf_model_set_refresh(inf_model_set_t *set, inf_model_record_t *e,
    inf_edit_t *edit, inf_edit_t *refresh, uint64_t round)
{
    e->refreshed = round;
    share(edit, refresh);
    inf_model_set_submit(set, e, refresh);
}

bool
inf_model_set_unload_orphan(inf_model_set_t *set, inf_edit_t *edit, size_t i,
    inf_edit_t *unload)
{
    inf_graph_model_t *m;

    inf_graph_find(&set->graph, &edit->record->graph, &edit->plan->steps[i],
        &m);
    if (m == NULL || set->stopping
        || !inf_reconcile_is_orphan(&set->graph, inf_model_record_of(m)))
    {
        return false;
    }

    unload->cause = INF_UNLOAD_ORPHAN;
    unload->dependents = true;
    share(edit, unload);
    inf_model_set_submit(set, inf_model_record_of(m), unload);
    return true;
}

/* Makes the caller of parent wait for child, too, unless a load is that caller:
   an edit that a load waits for must not wait for the load. */
static void
share(inf_edit_t *parent, inf_edit_t *child)
{
    if (parent == NULL
        || (parent->caller != NULL && parent->caller->inside))
    {
        return;
    }

    child->at_start = parent->at_start;
    inf_edit_share_caller(parent, child, INF_EDIT_UNHEARD);
}

bool
inf_model_set_await(inf_model_set_t *set, inf_model_record_t *own,
    const char *name)
{
    bool endless = false;

    own->graph.awaits = name;
    for (inf_graph_model_t *m = NULL; !endless
        && (m = inf_graph_next_named(&set->graph, name, m)) != NULL; )
    {
        endless = m->turn != 0
            && inf_graph_leads(&set->graph, m, &own->graph);
    }
    if (endless) {
        own->graph.awaits = NULL;
    }
    return endless;
}

void
inf_model_set_awaited(inf_model_record_t *own)
{
    own->graph.awaits = NULL;
}

static const void *
serves(const inf_graph_model_t *m, int64_t version)
{
    return inf_model_record_serves(inf_model_record_of(m), version);
}
