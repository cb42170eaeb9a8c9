#include "core/repository/reconcile.h"

#include <string.h>

#define SECOND_NS   UINT64_C(1000000000)
#define DELAY_MAX   (60 * SECOND_NS)
#define CALM_NS     (2 * DELAY_MAX)     /* after that the count restarts     */

static bool is_registered(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n);
static inf_step_t listed_at_start(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n, bool barred);
static inf_step_t listed_all(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    const inf_reconcile_facts_t *now);
static inf_step_t listed_by_name(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    const inf_reconcile_facts_t *now);
static inf_step_t polled(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    const inf_reconcile_facts_t *now);
static bool is_polled(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n);
static bool may_lie_unseen(const inf_inventory_t *l,
    const inf_model_record_t *r, const char *space, bool missing);
static bool comes_from(const inf_model_record_t *r,
    const inf_repository_t *item, bool unknown);
static inf_step_t unload(inf_unload_cause_t cause,
    const inf_repository_name_t *n);
static bool is_pending(const inf_repository_name_t *n,
    const inf_reconcile_facts_t *now);
static bool stays(const inf_inventory_t *l, const inf_model_record_t *r);

static const inf_step_t nothing = { .kind = INF_STEP_NONE };
static const inf_step_t build = { .kind = INF_STEP_BUILD };

inf_step_t
inf_reconcile_listed(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_reconcile_facts_t *now)
{
    bool lies = n != NULL && n->problem == NULL;
    if (l->q.occasion == INF_INVENTORY_POLL) {
        return polled(l, r, n, now);
    }
    if (l->q.occasion == INF_INVENTORY_START) {
        return listed_at_start(l, r, lies ? n : NULL, now->barred);
    }
    if (l->q.occasion == INF_INVENTORY_FIRST && r != NULL
        && r->source == NULL && !lies)
    {
        return nothing;                 /* reported by its load              */
    }

    return l->q.desired.all ? listed_all(l, r, lies ? n : NULL, now)
        : listed_by_name(l, r, lies ? n : NULL, now);
}

bool
inf_reconcile_wants(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_step_t *step, const char *name)
{
    bool loaded = r != NULL && r->source != NULL;

    if (!inf_reconcile_desires(l, r, n, name)
        || (n != NULL && n->problem == NULL ? n->duplicate : loaded))
    {
        return false;
    }
    return step->kind == INF_STEP_BUILD
        || (step->kind == INF_STEP_NONE && loaded && !l->q.desired.all);
}

bool
inf_reconcile_is_stale(inf_ensemble_graph_t *g, const inf_model_record_t *e,
    bool caller)
{
    if (e->graph.asked == NULL) {
        return inf_graph_verdict(g, &e->graph) == INF_GRAPH_STALE;
    }

    /* the running load takes the serving models when it continues; a caller of
       the ensemble does not wait for a listing */
    return e->stage == INF_LOAD_TAKES
        && (caller || e->state == INF_MODEL_RUNNING);
}

bool
inf_reconcile_is_orphan(const inf_ensemble_graph_t *g,
    const inf_model_record_t *r)
{
    return (r->who & INF_WANTED_ITSELF) == 0 && inf_model_record_is_held(r)
        && !inf_graph_needed(g, &r->graph);
}

uint64_t
inf_reconcile_delay_ns(uint32_t exits)
{
    if (exits <= 1) {
        return 0;
    }

    uint64_t delay = exits < 8 ? SECOND_NS << (exits - 2) : DELAY_MAX;
    return delay < DELAY_MAX ? delay : DELAY_MAX;
}

uint32_t
inf_reconcile_exits(const inf_record_version_t *v, uint64_t now_ns)
{
    return now_ns - v->exit_ns > CALM_NS ? 1 : v->exits + 1;
}

/* The step at the start.  A model in two repositories fails, with a reason. */
static inf_step_t
listed_at_start(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, bool barred)
{
    return r == NULL && n != NULL && !barred
        && inf_reconcile_desires(l, NULL, n, n->id.name) ? build : nothing;
}

bool
inf_reconcile_desires(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const char *name)
{
    const inf_desired_t *d = &l->q.desired;

    return inf_desired_has(d, name)
        && (!inf_desired_is_all(d) || !is_registered(l, r, n));
}

/* Whether the model, in its repository or as it was loaded, is of registered
   repositories alone. */
static bool
is_registered(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n)
{
    bool found = n != NULL && n->registered;
    bool loaded = stays(l, r);
    bool as_loaded = loaded && r->source->private_dir == NULL
        && r->source->repository->registered;

    return n == NULL ? as_loaded : found && (as_loaded || !loaded);
}

/* The step if every model present is desired. */
static inf_step_t
listed_all(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_reconcile_facts_t *now)
{
    bool loaded = r != NULL && r->source != NULL;
    bool known = r != NULL && (loaded || r->version_count > 0 || n != NULL
        || (r->who & INF_WANTED_AT_START) != 0);

    if (loaded ? r->source->private_dir != NULL : is_registered(l, r, n)) {
        return nothing;
    }
    if (n == NULL && stays(l, r)) {
        return nothing;                 /* its directory may reappear        */
    }
    if (loaded && is_pending(n, now)) {
        return build;                   /* serves while its load waits       */
    }
    if (n == NULL || n->duplicate) {
        return known && now->current ? unload(INF_UNLOAD_MOVED, n) : nothing;
    }
    return stays(l, r) && l->list->items[n->repository] == r->source->repository
        ? nothing : build;
}

/* The step for named models.  A model unloaded by request stays unloaded. */
static inf_step_t
listed_by_name(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_reconcile_facts_t *now)
{
    const char *name = r != NULL ? r->name : n->id.name;
    bool named = inf_reconcile_desires(l, r, n, name);
    bool fresh = named && !inf_desired_names(&l->q.before, name);
    bool narrowed = l->q.before.all;
    bool found = n != NULL && !n->duplicate;

    if (r == NULL) {
        return (l->q.at_start ? named && !now->barred : fresh) && found ? build
            : nothing;
    }

    bool loaded = r->source != NULL;
    bool wanted = (r->who & INF_WANTED_AT_START) != 0;
    bool alone = !named && (r->who & INF_WANTED_BY_REQUEST) == 0;
    bool adopt = alone && narrowed && loaded && stays(l, r);
    bool drop = alone && !adopt && (narrowed || wanted);

    if (l->q.at_start && n != NULL && n->duplicate && loaded
        && r->source->private_dir == NULL)
    {
        return now->current ? unload(INF_UNLOAD_AMBIGUOUS, n) : nothing;
    }
    if (adopt) {
        return (inf_step_t) { .kind = INF_STEP_ADOPT };
    }
    if (loaded && !stays(l, r)) {
        return named && (found || is_pending(n, now)) ? build
            : drop ? unload(INF_UNLOAD_DROPPED, NULL)
            : now->current ? unload(INF_UNLOAD_REMOVED, n) : nothing;
    }
    if (drop) {
        return unload(INF_UNLOAD_DROPPED, NULL);
    }
    if (named && !loaded && (fresh || wanted)) {
        return build;
    }
    return !loaded && n == NULL && !wanted && now->current
        ? unload(INF_UNLOAD_REMOVED, n) : nothing;
}

/* The step of a poll: unloads a model in no repository, or in two, unless it
   may be found soon. */
static inf_step_t
polled(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_reconcile_facts_t *now)
{
    if (n != NULL && n->problem == NULL && !n->duplicate) {
        return is_polled(l, r, n) && !may_lie_unseen(l, r, n->id.space, false)
            ? build : nothing;
    }
    if (r == NULL || !inf_model_record_is_held(r) || !now->current
        || (n != NULL && n->problem != NULL && n->unsure)
        || !is_polled(l, r, n) || may_lie_unseen(l, r, r->space, true))
    {
        return nothing;
    }
    if (comes_from(r, NULL, true)
        && (now->states & INF_REPOSITORY_NEVER_LISTED) != 0)
    {
        return nothing;
    }
    return unload(INF_UNLOAD_MISSING, n);
}

/* Whether this poll decides the model: one found both locally and remotely is
   the remote poll's, which has seen both listings; one that lies nowhere is
   decided where it came from. */
static bool
is_polled(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n)
{
    if (n != NULL && n->problem == NULL) {
        return l->q.polled != NULL ? n->polled : !n->remote;
    }
    if (l->q.polled != NULL) {
        return comes_from(r, l->q.polled, false);
    }

    for (size_t i = 0; i < l->list->count; i++) {
        if (inf_repository_is_remote(l->list->items[i])
            && comes_from(r, l->list->items[i], false))
        {
            return false;
        }
    }
    return true;
}

/* Whether it may be in a repository that cannot be listed now.  A new model
   does not wait for a remote one. */
static bool
may_lie_unseen(const inf_inventory_t *l, const inf_model_record_t *r,
    const char *space, bool missing)
{
    for (size_t i = 0; i < l->list->count; i++) {
        const inf_repository_t *item = l->list->items[i];
        const char *own = l->list->roots[i].space;
        if (l->failed[i] && (own != NULL ? strcmp(own, space) == 0
            : comes_from(r, item, missing
                || !inf_repository_is_remote(item))))
        {
            return true;
        }
    }

    return false;
}

/* Whether it was loaded from item (NULL: by request).  unknown: the result if
   it is not loaded. */
static bool
comes_from(const inf_model_record_t *r, const inf_repository_t *item,
    bool unknown)
{
    return r == NULL || r->source == NULL ? unknown
        : r->source->repository == item;
}

static inf_step_t
unload(inf_unload_cause_t cause, const inf_repository_name_t *n)
{
    return (inf_step_t) {
        .kind = INF_STEP_UNLOAD,
        .cause = cause,
        .place = cause == INF_UNLOAD_DROPPED ? NULL
            : n == NULL ? "no repository"
            : n->duplicate ? "two repositories" : "another repository"
    };
}

/* Whether it may be in a repository that is not listed yet. */
static bool
is_pending(const inf_repository_name_t *n, const inf_reconcile_facts_t *now)
{
    return n == NULL && (now->states & INF_REPOSITORY_PENDING) != 0;
}

/* Whether the files it was loaded from are present. */
static bool
stays(const inf_inventory_t *l, const inf_model_record_t *r)
{
    return r != NULL && r->source != NULL && (r->source->private_dir != NULL
        || inf_repository_list_has(l->list, r->source->repository));
}
