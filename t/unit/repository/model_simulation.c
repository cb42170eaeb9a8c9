/*
 * model_simulation.c - the model set under random repositories, ensembles,
 * listings that come late or fail, requests, overrides, process exits, changes
 * of the configuration and stops, with a virtual clock and loaders that take
 * their time.
 *
 *     unit_repository_model_simulation               a short run of every kind
 *     unit_repository_model_simulation EVENTS [SEED] a long one
 *
 * A failure names the seed of its round; the same seed fails again.
 */

#include "scarce_memory.h"
#include "sched/simulated.h"

#include <limits.h>
#include <string.h>

#include "core/repository/inventory.h"
#include "core/repository/model_set.h"

#define REPOS    3              /* the last one is remote                    */
#define PLAIN    6
#define MODELS   9              /* the rest are ensembles                    */
#define STEPS    2
#define VERSIONS 3
#define LOADERS  4              /* the last one takes unloads                */
#define POOL     4096           /* of lists and sources of a round           */
#define ROUND    400            /* events                                    */
#define MS       UINT64_C(1000000)
#define SECOND   (1000 * MS)

/* The directory in one repository under one name. */
typedef struct {
    bool     present;
    bool     bad;               /* its builds fail                           */
    uint64_t generation;
    uint32_t versions;          /* bit n: version n + 1                      */
    uint32_t steps[STEPS];      /* of an ensemble: models                    */
    int64_t  step_versions[STEPS];
} dir_t;

typedef struct {
    inf_model_source_t source;  /* first                                     */
    dir_t            dir;       /* as it was                                 */
} source_t;

typedef struct {
    source_t *source;
    bool    left;               /* it is out of service                      */
} fake_t;

/* A load or unload by request. */
typedef struct {
    uint32_t model;
    bool     unloads;
    uint32_t answers;
    uint64_t turn;
} call_t;

/* Of one version, in a row. */
typedef struct {
    uint32_t          count;
    uint64_t          at;       /* the last one                              */
    const inf_edit_t *rebuild;  /* that follows                              */
} exits_t;

/* How the last load of a model has ended. */
typedef enum { GOOD, REJECTED, BROKEN, LACKED } end_t;

typedef enum { IDLE, READS, BUILDS, HANGS, UNLOADS } stage_t;

/* A load that was given up, and has not returned. */
typedef struct {
    inf_load_t *load;
    uint64_t    at;             /* when it returns                           */
} late_t;

typedef struct {
    stage_t     stage;
    uint64_t    at;             /* when the stage is over                    */
    inf_edit_t *edit;
    uint64_t    listings;       /* when it was taken                         */
    const inf_repository_list_t *list;
} loader_t;

static struct {
    uint64_t seed;
    uint64_t now;

    inf_model_set_t set;
    dir_t    dirs[REPOS][MODELS];
    inf_repository_t *repos[REPOS];
    bool     in_set[REPOS];
    bool     all;
    bool     wanted[MODELS];    /* unless all                                */
    bool     load_composing;
    inf_repository_list_t *lists[POOL];
    uint32_t list_count;
    source_t  *sources[POOL];
    uint32_t source_count;
    loader_t loaders[LOADERS];
    uint64_t listing_at;        /* the remote one is heard of; 0: it isn't   */
    uint64_t listings;
    uint64_t generation;
    uint64_t turns[MODELS];     /* of the last edit that ended               */
    end_t    ends[MODELS];      /* of the last load, refresh or rebuild      */
    bool     stuck[MODELS];     /* the last load has failed: what served
                                   before goes on                            */
    exits_t  exits[MODELS][VERSIONS];
    call_t   calls[ROUND];
    uint32_t call_count;
    late_t   late[MODELS * INF_MODEL_STUCK_MAX];
    uint32_t late_count;
    uint32_t alive;             /* fake models                               */
    uint64_t events, loads, failures, drained, waits, timeouts;
} sim;

static const inf_storage_ops_t local_ops = { .remote = false };
static const inf_storage_ops_t remote_ops = { .remote = true };
static inf_storage_t local = { .ops = &local_ops };
static inf_storage_t away = { .ops = &remote_ops };

static const char *const names[MODELS] = {
    "a", "b", "c", "d", "e", "f", "p", "q", "r"
};

static void finish(loader_t *l, inf_err_t *err);
static void check_turn(const inf_edit_t *edit);
static void free_load(inf_load_t *l);
static void exit_of(inf_model_record_t *r);

/* Threads hold the lifecycle's lock in between: nothing is allocated. */
static void
lock(void)
{
    countdown = LONG_MAX;
}

static void
unlock(void)
{
    check(countdown == LONG_MAX, "%ld allocations under the lock",
        LONG_MAX - countdown);
    countdown = 0;
}

/* ---- what serves --------------------------------------------------------- */

static void
last_unref(inf_model_t *model)
{
    const fake_t *f = model->owner;

    check(f->left, "%s %lld is destroyed while it serves", model->name,
        (long long) model->version);
    sim.alive--;
    free(model->owner);
    free(model);
}

static const inf_model_ops_t model_ops = { .last_unref = last_unref };

static void
leaves(inf_model_t *model, inf_reason_t *why, inf_link_t *gone)
{
    fake_t *f = model->owner;

    (void) gone;
    check(!f->left, "%s %lld leaves service twice", model->name,
        (long long) model->version);
    f->left = true;
    sim.drained++;
    check(why == NULL || why->msg[0] != '\0', "%s leaves for no reason",
        model->name);
    inf_reason_unref(why);
    inf_model_unref(model);
}

static bool
is_current(void *userp, const inf_repository_list_t *list)
{
    (void) userp;
    return list == sim.lists[sim.list_count - 1];
}

static inf_reconcile_facts_t
facts(void *userp, const inf_repository_list_t *list,
    const inf_model_id_t *id)
{
    return (inf_reconcile_facts_t) {
        .current = is_current(userp, list),
        .states = inf_repository_list_states(list, id->space)
    };
}

static const inf_model_set_ops_t set_ops = {
    .leaves = leaves, .facts = facts
};

static inf_model_t *
build(const char *name, int64_t version, source_t *source)
{
    inf_model_t *model = calloc(1, sizeof(*model));
    fake_t *f = calloc(1, sizeof(*f));

    f->source = source;
    atomic_init(&model->refs, 1);
    model->ops = &model_ops;
    model->owner = f;
    model->name = (char *) (uintptr_t) name;
    model->version = version;
    sim.alive++;
    return model;
}

/* ---- repositories -------------------------------------------------------- */

static inf_repository_list_t *
new_list(void)
{
    inf_repository_list_t *list = calloc(1, sizeof(*list));

    check(sim.list_count < POOL, "too many lists");
    atomic_init(&list->refs, 1u << 30);
    list->items = calloc(REPOS, sizeof(*list->items));
    list->roots = calloc(REPOS, sizeof(*list->roots));
    for (uint32_t i = 0; i < REPOS; i++) {      /* the remote one is the last */
        if (sim.in_set[i]) {
            list->items[list->total++] = sim.repos[i];
            list->count += sim.repos[i]->state == INF_REPOSITORY_LISTED;
        }
    }
    sim.lists[sim.list_count++] = list;
    return list;
}

static uint32_t
repo_index(const inf_repository_t *repo)
{
    uint32_t i = 0;
    while (sim.repos[i] != repo) {
        i++;
    }
    return i;
}

/* How many repositories of list have it, the first of them. */
static uint32_t
find_dir(const inf_repository_list_t *list, uint32_t model, size_t *at)
{
    uint32_t found = 0;

    for (size_t i = list->count; i-- > 0; ) {
        if (sim.dirs[repo_index(list->items[i])][model].present) {
            *at = i;
            found++;
        }
    }
    return found;
}

/* A local repository can't be listed at times: its last listing counts, which
   is as it is now. */
static inf_inventory_t *
new_inventory(const inf_inventory_query_t *q)
{
    inf_inventory_t *l = calloc(1, sizeof(*l));
    const inf_repository_t *remote = sim.repos[REPOS - 1];

    atomic_init(&l->refs, 1);
    inf_arena_init(&l->arena);
    l->list = sim.lists[sim.list_count - 1];
    atomic_fetch_add(&l->list->refs, 1);
    l->q = *q;
    l->names = inf_arena_calloc(&l->arena, MODELS, sizeof(*l->names));
    for (uint32_t m = 0; m < MODELS; m++) {
        size_t at = 0;
        uint32_t found = find_dir(l->list, m, &at);
        bool there = sim.in_set[REPOS - 1]
            && remote->state == INF_REPOSITORY_LISTED
            && sim.dirs[REPOS - 1][m].present;
        if (found > 0) {
            l->names[l->count++] = (inf_repository_name_t) {
                .id = inf_model_id(names[m]),
                .repository = at,
                .duplicate = found > 1,
                .remote = there,
                .polled = there && q->polled == remote
            };
        }
    }
    l->failed = calloc(REPOS, sizeof(bool));
    for (size_t i = 0; q->occasion == INF_INVENTORY_POLL
        && i < l->list->count; i++)
    {
        l->failed[i] = l->list->items[i] != q->polled && one_in(6);
    }
    return l;
}

static inf_model_record_t *
get_record(uint32_t model)
{
    const inf_model_id_t id = inf_model_id(names[model]);
    inf_model_record_t *r = inf_model_set_find(&sim.set, &id);

    if (r == NULL) {
        assert_null(inf_model_record_new(&id, &r));
        inf_model_set_insert(&sim.set, r);
    }
    return r;
}

static uint32_t
model_index(const inf_model_record_t *r)
{
    uint32_t m = 0;
    while (strcmp(names[m], r->name) != 0) {
        m++;
    }
    return m;
}

static inf_edit_t *
new_edit(inf_edit_kind_t kind)
{
    inf_edit_t *edit;

    assert_null(inf_edit_new(kind, &edit));
    return edit;
}

/* In arena memory. */
static inf_desired_t
desired(inf_arena_t *arena, bool all, const bool *wanted)
{
    char **list = inf_arena_calloc(arena, MODELS, sizeof(*list));
    inf_desired_t d = { .all = all, .names = list };

    for (uint32_t m = 0; m < MODELS; m++) {
        if (wanted[m]) {
            list[d.count++] = (char *) (uintptr_t) names[m];
        }
    }
    return d;
}

static inf_edit_t *
new_listed(inf_inventory_t *l)
{
    inf_edit_t *edit = new_edit(INF_EDIT_LISTED);

    edit->inventory = inf_inventory_ref(l);
    return edit;
}

/* As the lifecycle does. */
static void
submit_coming(inf_inventory_t *l, const inf_repository_name_t *n)
{
    check(l->q.occasion != INF_INVENTORY_POLL
        || n->remote == (l->q.polled != NULL), "%s is another poll's",
        n->id.name);
    bool listed = l->q.occasion == INF_INVENTORY_CHANGE
        || l->q.occasion == INF_INVENTORY_FIRST;
    inf_edit_t *edit = listed ? new_listed(l) : new_edit(INF_EDIT_LOAD);
    uint32_t m = 0;

    while (strcmp(names[m], n->id.name) != 0) {
        m++;
    }
    edit->at_start = l->q.occasion == INF_INVENTORY_START;
    edit->who = (listed ? 0 : INF_WANTED_ITSELF)
        | (inf_desired_has(&l->q.desired, n->id.name) ? INF_WANTED_AT_START
            : 0);
    inf_model_set_submit(&sim.set, get_record(m), edit);
}

/* Takes l. */
static void
reconcile(inf_inventory_t *l)
{
    inf_model_record_t *r = NULL;

    while ((r = inf_model_set_next_leaving(&sim.set, l, r)) != NULL) {
        inf_model_set_submit(&sim.set, r, new_listed(l));
    }
    for (size_t i = 0; i < l->count; i++) {
        if (inf_model_set_comes(&sim.set, l, &l->names[i])) {
            submit_coming(l, &l->names[i]);
        }
    }
    for (size_t i = 0; !l->q.desired.all && i < l->q.desired.count; i++) {
        const inf_repository_name_t n = {
            .id = inf_model_id(l->q.desired.names[i])
        };
        if (!inf_inventory_has(l, n.id.name)
            && !inf_desired_names(&l->q.before, n.id.name)
            && inf_model_set_find(&sim.set, &n.id) == NULL)
        {
            submit_coming(l, &n);
        }
    }
    inf_inventory_unref(l);
}

static void
apply_listing(inf_occasion_t occasion, bool was_all, const bool *before)
{
    const inf_inventory_query_t q = { .occasion = occasion };
    inf_inventory_t *l = new_inventory(&q);

    l->q.desired = desired(&l->arena, sim.all, sim.wanted);
    l->q.before = desired(&l->arena, was_all, before);
    reconcile(l);
}

static void
apply_poll(const inf_repository_t *polled)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_POLL, .polled = polled
    };

    reconcile(new_inventory(&q));
}

/* The remote repository has been heard of, or others are in the set. */
static void
tell_listed(void)
{
    sim.listings++;
    inf_model_set_listed(&sim.set);
}

static void
listing_comes(void)
{
    inf_repository_t *remote = sim.repos[REPOS - 1];
    bool fails = one_in(3);

    sim.listing_at = 0;
    remote->state = fails ? INF_REPOSITORY_FAILED : INF_REPOSITORY_LISTED;
    new_list();
    tell_listed();
    apply_listing(INF_INVENTORY_FIRST, sim.all, sim.wanted);
}

static void
ask_again(void)
{
    inf_repository_t *remote = sim.repos[REPOS - 1];

    if (sim.in_set[REPOS - 1] && !sim.set.stopping
        && remote->state == INF_REPOSITORY_FAILED)
    {
        remote->state = INF_REPOSITORY_PENDING;
        sim.listing_at = sim.now + 1 + chance(2 * SECOND);
    }
}

/* ---- loaders ------------------------------------------------------------- */

static source_t *
new_source(inf_repository_t *repo, const dir_t *dir)
{
    source_t *h = calloc(1, sizeof(*h));

    check(sim.source_count < POOL, "too many sources");
    atomic_init(&h->source.refs, 1u << 30);
    h->source.repository = repo;
    h->source.private_dir = repo == NULL ? (void *) h : NULL;
    h->dir = *dir;
    sim.sources[sim.source_count++] = h;
    return h;
}

static bool
is_ensemble(uint32_t model)
{
    return model >= PLAIN;
}

static void
wait_again(loader_t *l, inf_model_state_t state)
{
    inf_edit_t *edit = l->edit;

    if (sim.set.stopping) {
        if (edit->load != NULL) {
            free(inf_graph_drop(&edit->record->graph.asked));
            free_load(edit->load);
            edit->load = NULL;
        }
        finish(l, inf_err_new(INF_ERR_UNAVAILABLE, "stopping"));
        return;
    }

    l->stage = IDLE;
    l->edit = NULL;
    sim.waits++;
    inf_model_set_put_back(&sim.set, edit, state);
}

static void
free_load(inf_load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_err_free(l->versions[i].err);
        inf_reason_unref(l->versions[i].reason);
    }
    for (size_t i = 0; i < l->composing_count; i++) {
        inf_model_unref(l->composing[i]);
    }
    free(l->composing);
    inf_reason_unref(l->lack);
    free(l->versions);
    free(l->released);
    free(l);
}

static void
reject(loader_t *l, const char *why)
{
    bool known = strcmp(why, "nowhere") != 0;
    inf_reason_t *reason = inf_reason_new(why);

    lock();
    inf_model_set_reject(l->edit, known, INF_REJECTED_UNREAD, reason);
    unlock();
    inf_reason_unref(reason);
    sim.ends[model_index(l->edit->record)] = REJECTED;
    sim.stuck[model_index(l->edit->record)] |= l->edit->kind == INF_EDIT_LOAD;
    finish(l, inf_err_new(INF_ERR_INTERNAL, "%s", why));
}

static bool
is_pending(const loader_t *l)
{
    const inf_edit_t *edit = l->edit;
    bool asked = (edit->who & INF_WANTED_BY_REQUEST) != 0
        || (edit->who & INF_WANTED_ITSELF) == 0;

    if (asked && !edit->waited) {
        ask_again();
    }
    return inf_repository_list_any(l->list, INF_REPOSITORY_PENDING, "")
        || !is_current(NULL, l->list);
}

/* The load's source; NULL: it has ended, or waits. */
static source_t *
find_source(loader_t *l)
{
    inf_edit_t *edit = l->edit;
    inf_model_record_t *r = edit->record;
    uint32_t m = model_index(r);
    size_t at = 0;

    if (edit->kind == INF_EDIT_REBUILD
        || (edit->kind == INF_EDIT_REFRESH && r->source != NULL))
    {
        source_t *source = (source_t *) (void *) r->source;
        if (source == NULL) {
            finish(l, NULL);
        }
        return source;
    }
    if (edit->override != NULL) {
        const dir_t dir = {
            .present = true, .bad = one_in(5), .versions = 1,
            .generation = ++sim.generation
        };
        return new_source(NULL, &dir);
    }

    uint32_t found = find_dir(l->list, m, &at);
    if (found == 0 && edit->kind == INF_EDIT_LOAD && is_pending(l)) {
        wait_again(l, l->listings == sim.listings ? INF_MODEL_LISTING
            : INF_MODEL_QUEUED);
        return NULL;
    }
    if (found != 1) {
        reject(l, found == 0 ? "nowhere" : "ambiguous");
        return NULL;
    }
    return new_source(l->list->items[at],
        &sim.dirs[repo_index(l->list->items[at])][m]);
}

static bool
is_same(const inf_model_record_t *r, const source_t *source)
{
    const source_t *now = (const source_t *) (const void *) r->source;
    bool same = now != NULL && now->source.private_dir == NULL
        && now->source.repository == source->source.repository
        && now->dir.generation == source->dir.generation
        && inf_model_record_any_ready(r);

    for (size_t i = 0; same && i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        same = v->state == INF_VERSION_READY
            || v->state == INF_VERSION_UNLOADING
            || inf_record_version_is_unloaded(v);
    }
    return same;
}

static void
choose(inf_load_t *load, const source_t *source)
{
    const inf_model_record_t *r = load->record;

    load->versions = calloc(VERSIONS + r->version_count + 1,
        sizeof(*load->versions));
    if (load->edit->kind != INF_EDIT_REBUILD || load->ensemble) {
        for (uint32_t v = 0; v < VERSIONS; v++) {
            if ((source->dir.versions & (1u << v)) != 0) {
                load->versions[load->count++].version = v + 1;
            }
        }
        return;
    }

    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        bool ready = v->state == INF_VERSION_READY;
        if (ready || v->version == load->edit->version) {
            load->versions[load->count++] = (inf_load_version_t) {
                .version = v->version, .keep = ready
            };
        }
    }
}

static void
submit_member(uint32_t m)
{
    const inf_model_id_t id = inf_model_id(names[m]);
    const inf_model_record_t *r = inf_model_set_find(&sim.set, &id);

    if (sim.set.stopping || (r != NULL && r->state != INF_MODEL_IDLE
        && r->last_kind == INF_EDIT_LOAD))
    {
        return;
    }
    inf_model_set_submit(&sim.set, get_record(m), new_edit(INF_EDIT_LOAD));
}

/* false: it waits. */
static bool
gather(loader_t *l, inf_load_t *load, const source_t *source)
{
    bool circular = false;

    if (load->record->stage == INF_LOAD_READS) {
        inf_graph_plan_t *plan;
        assert_null(inf_graph_plan_new(STEPS, STEPS, &plan));
        for (uint32_t i = 0; i < STEPS; i++) {
            inf_graph_plan_add(plan, names[source->dir.steps[i]],
                source->dir.step_versions[i]);
        }
        inf_model_set_ask(&sim.set, load, plan, &circular);
    }
    if (!circular && sim.load_composing && l->edit->kind == INF_EDIT_LOAD) {
        load->record->stage = INF_LOAD_GATHERS;
        for (uint32_t i = 0; i < STEPS; i++) {
            submit_member(source->dir.steps[i]);
        }
        load->record->stage = INF_LOAD_TAKES;
    }
    if (!inf_model_set_waits(&sim.set, load)) {
        return true;
    }

    wait_again(l, INF_MODEL_COMPOSING);
    return false;
}

static void
renew(inf_reason_room_t *room)
{
    unlock();
    inf_reason_room_renew(room);
    lock();
}

static void
begin_build(loader_t *l, inf_load_t *load)
{
    bool same = false;

    if (load->ensemble) {
        load->composing = calloc(STEPS + 1, sizeof(*load->composing));
        inf_reason_room_t room = { .size = 0 };
        lock();
        while (!inf_model_set_gather(&sim.set, load, &room, &same)) {
            renew(&room);
        }
        unlock();
        inf_reason_room_fini(&room);
        if (load->lack != NULL) {
            inf_load_fail_all(load);
        }
        if (same && !inf_load_is_fresh(load)) {
            free(inf_graph_drop(&load->record->graph.asked));
            l->edit->load = NULL;
            free_load(load);
            finish(l, NULL);
            return;
        }
    }

    l->edit->load = load;
    l->stage = BUILDS;
    l->at = sim.now + 1 + chance(SECOND);
    if (!load->ensemble && one_in(10)) {
        l->stage = HANGS;
        l->at = sim.now + 10 * SECOND;
        load->call.state = INF_CALL_RUNS;
        load->call.version = load->versions[0].version;
    }
}

static void
end_read(loader_t *l)
{
    inf_edit_t *edit = l->edit;
    inf_model_record_t *r = edit->record;
    inf_load_t *load = edit->load;

    if (load != NULL) {                 /* its composing models have ended   */
        begin_build(l, load);
        return;
    }
    if (edit->kind == INF_EDIT_REFRESH) {
        if (inf_graph_verdict(&sim.set.graph, &r->graph) != INF_GRAPH_STALE
            || (r->source == NULL && !r->retry))
        {
            finish(l, NULL);
            return;
        }
        if (r->source == NULL) {
            edit->override = r->override;
            r->override = NULL;
            edit->who = r->who & INF_WANTED_ITSELF;
        }
    }

    if (r->stuck == INF_MODEL_STUCK_MAX) {
        reject(l, "stuck");
        return;
    }
    source_t *source = find_source(l);
    if (source == NULL) {
        return;
    }
    bool ensemble = is_ensemble(model_index(r))
        && source->source.private_dir == NULL;
    if (edit->kind == INF_EDIT_LOAD && edit->override == NULL && !ensemble
        && is_same(r, source))
    {
        inf_model_record_explain(r, NULL);
        finish(l, NULL);
        return;
    }

    load = calloc(1, sizeof(*load));
    *load = (inf_load_t) {
        .edit = edit, .record = r, .source = &source->source,
        .ensemble = ensemble
    };
    if (inf_load_is_fresh(load)) {
        if ((edit->who & INF_WANTED_ITSELF) != 0) {
            r->who |= INF_WANTED_ITSELF;
        } else if (!inf_model_record_is_held(r)) {
            r->who &= ~INF_WANTED_ITSELF;
        }
    }
    choose(load, source);
    if (!sim.set.stopping && one_in(10)) {     /* before it begins          */
        exit_of(r);
    }
    if (load->count == 0) {
        free_load(load);
        finish(l, NULL);
        return;
    }

    size_t most = r->version_count + load->count + 1;
    load->released = calloc(most, sizeof(*load->released));
    inf_model_set_begin(load, calloc(most, sizeof(inf_record_version_t)));
    edit->load = load;
    if (!ensemble || gather(l, load, source)) {
        begin_build(l, load);
    }
}

/* All versions that serve come from one load, but for those rebuilt. */
static void
check_whole(const inf_model_record_t *r)
{
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->model == NULL) {
            check(v->state != INF_VERSION_READY, "%s %lld is READY by nothing",
                r->name, (long long) v->version);
            continue;
        }

        const fake_t *f = v->model->owner;
        check(v->state == INF_VERSION_READY && !f->left,
            "%s %lld serves and doesn't", r->name, (long long) v->version);
        check(&f->source->source == r->source, "%s %lld is half swapped",
            r->name, (long long) v->version);
        check((f->source->dir.versions & (1u << (v->version - 1))) != 0,
            "%s %lld serves though its last load chose others", r->name,
            (long long) v->version);
    }
}

/* Each reason gets room of its own, as threads give it. */
static void
drain(inf_link_t *gone)
{
    inf_reason_room_t room = { .size = 0 };

    lock();
    while (!inf_model_set_drain(&sim.set, gone, &room)) {
        renew(&room);
    }
    unlock();
    inf_reason_room_fini(&room);
}

/* By version. */
static void
note_served(const inf_model_record_t *r, const inf_model_t **out)
{
    for (int64_t v = 1; v <= VERSIONS; v++) {
        const inf_record_version_t *now = inf_model_record_find(r, v);
        out[v - 1] = now != NULL ? now->model : NULL;
    }
}

static void
check_served(const inf_model_record_t *r, const inf_model_t *const *before)
{
    const inf_model_t *now[VERSIONS];

    note_served(r, now);
    for (uint32_t v = 0; v < VERSIONS; v++) {
        check(before[v] == now[v], "a failed load of %s changes what serves",
            r->name);
    }
}

/* The call into the backend has not returned in time. */
static void
time_out(loader_t *l)
{
    inf_edit_t *edit = l->edit;
    inf_model_record_t *r = edit->record;
    const inf_model_t *before[VERSIONS];
    exits_t *x = edit->kind != INF_EDIT_REBUILD ? NULL
        : &sim.exits[model_index(r)][edit->version - 1];
    inf_load_t *load = edit->load;
    inf_edit_t *rebuild = new_edit(INF_EDIT_REBUILD);
    inf_edit_t *spare = rebuild;
    inf_reason_t *reason = inf_reason_new("stuck");
    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL, "stuck");

    note_served(r, before);
    check_turn(edit);
    lock();
    inf_caller_t *caller = inf_model_set_time_out(&sim.set, load, reason, err,
        &spare, sim.now);
    unlock();
    if (spare == NULL) {
        x->count++;
        x->at = sim.now;
        x->rebuild = rebuild;
    } else if (x != NULL && x->rebuild == edit) {
        x->rebuild = NULL;
    }
    check_served(r, before);
    check(r->stuck <= INF_MODEL_STUCK_MAX, "%s has %u stuck loads", r->name,
        r->stuck);
    sim.ends[model_index(r)] = BROKEN;
    sim.stuck[model_index(r)] |= edit->kind == INF_EDIT_LOAD;
    sim.late[sim.late_count++] = (late_t) {
        .load = load, .at = sim.now + 1 + chance(60 * SECOND)
    };
    sim.timeouts++;
    l->stage = IDLE;                    /* another takes its place           */
    l->edit = NULL;
    inf_edit_free(spare);
    inf_reason_unref(reason);
    inf_caller_answer(caller);
}

/* Of the stuck load number i: what serves now stays. */
static void
come_back(uint32_t i)
{
    inf_load_t *load = sim.late[i].load;
    inf_edit_t *edit = load->edit;
    const inf_model_t *before[VERSIONS];
    bool known = false;
    inf_model_record_t *r = NULL;

    sim.late[i] = sim.late[--sim.late_count];
    while (!known && (r = inf_model_set_next(&sim.set, r)) != NULL) {
        known = r == edit->record;
    }
    check(known, "a record has gone before its stuck load came back");
    check(inf_load_is_late(load), "a stuck load of %s may serve", r->name);
    note_served(r, before);
    edit->load = NULL;
    free_load(load);
    inf_edit_free(edit);
    inf_model_set_returned(r);
    check_served(r, before);
}

static void
end_build(loader_t *l)
{
    inf_edit_t *edit = l->edit;
    inf_model_record_t *r = edit->record;
    inf_load_t *load = edit->load;
    source_t *source = (source_t *) (void *) load->source;
    const inf_model_t *before[VERSIONS];
    inf_graph_plan_t *plan;
    inf_link_t gone;
    bool whole = true;

    inf_link_init(&gone);
    note_served(r, before);
    for (size_t i = 0; i < load->count; i++) {
        inf_load_version_t *v = &load->versions[i];
        if (v->err == NULL && !v->keep && (source->dir.bad || one_in(12))) {
            v->err = inf_err_new(INF_ERR_INTERNAL, "the build fails");
            v->reason = inf_reason_of(v->err);
        }
        whole = whole && v->err == NULL;
        if (v->err == NULL && !v->keep) {
            v->model = build(r->name, v->version, source);
        }
    }

    inf_reason_room_t room = { .size = 0 };
    lock();
    while (!inf_model_set_swap(&sim.set, load, &room, &whole, &plan)) {
        renew(&room);
    }
    unlock();
    inf_reason_room_fini(&room);
    drain(&gone);
    sim.ends[model_index(r)] = whole ? GOOD : load->lack != NULL ? LACKED
        : BROKEN;
    if (edit->kind == INF_EDIT_LOAD) {
        sim.stuck[model_index(r)] = !whole;
    }
    check_whole(r);
    if (!whole) {
        check_served(r, before);
    }
    for (size_t i = 0; i < load->count; i++) {
        if (load->versions[i].serves != NULL) {
            inf_model_unref(load->versions[i].serves);
        }
    }
    for (size_t i = 0; i < load->released_count; i++) {
        fake_t *f = load->released[i]->owner;
        check(!f->left, "%s is released twice", r->name);
        f->left = true;
        inf_model_unref(load->released[i]);
    }
    free(plan);
    edit->load = NULL;
    free_load(load);
    sim.loads++;
    sim.failures += !whole;
    if (whole && edit->kind == INF_EDIT_LOAD) {
        r->who |= edit->who & INF_WANTED_BY_REQUEST;
    }
    finish(l, whole ? NULL : inf_err_new(INF_ERR_INTERNAL, "it fails"));
}

static void
end_unload(loader_t *l)
{
    inf_model_record_t *r = l->edit->record;
    inf_link_t gone;

    inf_link_init(&gone);
    lock();
    inf_model_set_unload(&sim.set, l->edit, &gone);
    unlock();
    drain(&gone);
    sim.ends[model_index(r)] = GOOD;
    sim.stuck[model_index(r)] = false;
    check(!inf_model_record_any_ready(r), "%s serves after its unload",
        r->name);
    finish(l, NULL);
}

static void
refresh_all(const inf_model_record_t *r, inf_edit_t *edit)
{
    uint64_t round = inf_model_set_round(&sim.set);
    inf_model_record_t *e;

    while ((e = inf_model_set_stale(&sim.set, r, edit, round)) != NULL) {
        inf_model_set_refresh(&sim.set, e, edit, new_edit(INF_EDIT_REFRESH),
            round);
    }
}

static void
finish(loader_t *l, inf_err_t *err)
{
    inf_edit_t *edit = l->edit;
    inf_model_record_t *r = edit->record;
    inf_model_record_t *gone;
    inf_caller_t *caller;
    uint32_t m = model_index(r);

    l->stage = IDLE;
    l->edit = NULL;
    refresh_all(r, edit);
    for (size_t i = 0; edit->dependents && edit->plan != NULL
        && i < edit->plan->count; i++)
    {
        inf_edit_t *unload = new_edit(INF_EDIT_UNLOAD);
        if (!inf_model_set_unload_orphan(&sim.set, edit, i, unload)) {
            inf_edit_free(unload);
        }
    }
    check_turn(edit);
    exits_t *x = edit->kind == INF_EDIT_REBUILD && edit->version > 0
        ? &sim.exits[m][edit->version - 1] : NULL;
    if (!inf_model_set_end(&sim.set, edit, err, sim.now, &caller, &gone)) {
        if (x != NULL && x->rebuild == edit) {
            x->rebuild = NULL;
        }
        inf_edit_free(edit);
    } else {
        x->count++;
        x->at = sim.now;
        x->rebuild = edit;
    }
    inf_caller_answer(caller);
    inf_model_record_free(gone);
}

static void
check_turn(const inf_edit_t *edit)
{
    uint32_t m = model_index(edit->record);

    check(edit->turn > sim.turns[m], "%s: edits in another order", names[m]);
    sim.turns[m] = edit->turn;
}

/* One second after the second exit in a row, then twice as long each time. */
static void
check_delay(const inf_edit_t *edit)
{
    if (edit->kind != INF_EDIT_REBUILD) {
        return;
    }

    const exits_t *x = &sim.exits[model_index(edit->record)]
        [edit->version - 1];
    uint64_t delay = x->count < 2 ? 0
        : x->count > 7 ? 60 * SECOND : SECOND << (x->count - 2);
    check(sim.now >= x->at + delay, "%s is rebuilt too soon",
        edit->record->name);
    check(inf_model_record_find(edit->record, edit->version)->model == NULL,
        "%s is rebuilt though it serves", edit->record->name);
}

/* It lies nowhere or in two repositories, as far as this poll can tell. */
static void
check_missing(const inf_inventory_t *l, const inf_model_record_t *r)
{
    const inf_repository_t *remote = sim.repos[REPOS - 1];
    const inf_repository_t *from = r->source != NULL ? r->source->repository
        : NULL;
    const inf_repository_name_t *n = inf_inventory_find(l, &r->graph.id);

    check(is_current(NULL, l->list), "%s was missing elsewhere", r->name);
    check(n == NULL || n->duplicate, "%s isn't missing", r->name);
    for (size_t i = 0; i < l->list->count; i++) {
        check(!l->failed[i] || l->list->items[i] != from,
            "%s may be in what can't be listed", r->name);
    }
    check(l->list->total == l->list->count || from != NULL,
        "%s may be in what is still to be listed", r->name);
    check((l->q.polled != NULL) == (n != NULL ? n->remote
        : from == remote && l->list->count > 0
            && l->list->items[l->list->count - 1] == remote),
        "%s is missed by another poll", r->name);
}

/* The reasons for the decision still hold. */
static void
check_unload(const inf_edit_t *edit)
{
    const inf_graph_step_t *at = NULL;

    if (edit->kind != INF_EDIT_UNLOAD) {
        return;
    }
    if (edit->cause == INF_UNLOAD_MISSING) {
        check_missing(edit->inventory, edit->record);
    }
    check(edit->cause != INF_UNLOAD_ORPHAN
        || inf_graph_next_ensemble(&sim.set.graph, &edit->record->graph, &at)
            == NULL, "%s is no orphan", edit->record->name);
}

/* false: there is none, or no loader. */
static bool
take_edit(void)
{
    for (uint32_t i = 0; i < LOADERS; i++) {
        loader_t *l = &sim.loaders[i];
        if (l->stage != IDLE) {
            continue;
        }
        l->edit = inf_model_set_take(&sim.set, i == LOADERS - 1);
        if (l->edit == NULL) {
            continue;
        }

        for (uint32_t k = 0; k < LOADERS; k++) {
            check(k == i || sim.loaders[k].stage == IDLE
                || sim.loaders[k].edit->record != l->edit->record,
                "two loaders have %s", l->edit->record->name);
        }
        l->listings = sim.listings;
        l->list = sim.lists[sim.list_count - 1];
        l->at = sim.now + 1 + chance(one_in(4) ? SECOND : 50 * MS);
        l->stage = l->edit->kind == INF_EDIT_UNLOAD ? UNLOADS : READS;
        check_delay(l->edit);
        check_unload(l->edit);
        if (l->edit->kind == INF_EDIT_ADOPT
            || l->edit->kind == INF_EDIT_NOTHING)
        {
            finish(l, NULL);
        }
        return true;
    }

    return false;
}

static void
end_stage(loader_t *l)
{
    switch (l->stage) {
    case READS:
        end_read(l);
        return;
    case BUILDS:
        end_build(l);
        return;
    case HANGS:
        time_out(l);
        return;
    case UNLOADS:
        end_unload(l);
        return;
    case IDLE:
        return;
    }
}

/* ---- what happens -------------------------------------------------------- */

static void
answered(void *userp, inf_err_t *err)
{
    call_t *c = userp;
    const inf_model_id_t id = inf_model_id(names[c->model]);
    const inf_model_record_t *r = inf_model_set_find(&sim.set, &id);
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;

    check(++c->answers == 1, "a caller is answered twice");
    bool idle = (r == NULL || r->state == INF_MODEL_IDLE)
        && sim.turns[c->model] == c->turn;      /* nothing came after it     */
    bool serves = r != NULL && inf_model_record_any_ready(r);
    check(err != NULL || !c->unloads || !idle || !serves,
        "%s serves after its unload was answered", names[c->model]);
    while (idle && r != NULL && err == NULL && !sim.set.stopping
        && (m = inf_graph_next_ensemble(&sim.set.graph, &r->graph, &at))
            != NULL)
    {
        const inf_model_record_t *e = inf_link_entry(m, inf_model_record_t,
            graph);
        check(e->graph.asked != NULL        /* it takes what serves later    */
            || sim.turns[model_index(e)] > c->turn      /* it has failed     */
            || inf_graph_verdict(&sim.set.graph, m) != INF_GRAPH_STALE
            || at->held == inf_model_record_serves(r, at->version)
            || !inf_model_record_any_ready(e),
            "%s is answered before %s is refreshed", names[c->model],
            e->name);
    }
    inf_err_free(err);
}

static void
request(void)
{
    call_t *c = &sim.calls[sim.call_count++];
    *c = (call_t) {
        .model = (uint32_t) chance(MODELS), .unloads = one_in(3)
    };

    inf_edit_t *edit = new_edit(c->unloads ? INF_EDIT_UNLOAD
        : INF_EDIT_LOAD);
    assert_null(inf_edit_call(edit, answered, c));
    edit->dependents = c->unloads && one_in(2);
    if (!c->unloads) {
        edit->who = INF_WANTED_BY_REQUEST | INF_WANTED_ITSELF;
        if (one_in(6) && !is_ensemble(c->model)) {
            assert_null(inf_override_new(&edit->override));
        }
    }
    inf_model_set_submit(&sim.set, get_record(c->model), edit);
    c->turn = edit->turn;
}

static void
change_dir(void)
{
    uint64_t m = chance(MODELS);
    dir_t *d = &sim.dirs[chance(REPOS)][m];
    dir_t *other = &sim.dirs[chance(REPOS)][m];

    if (d->present && one_in(3)) {
        d->present = false;
        return;
    }
    if (d->present && one_in(3)) {      /* it is moved                       */
        dir_t moved = *d;
        d->present = false;
        *other = moved;
        return;
    }
    d->present = true;
    d->bad = one_in(10);
    d->generation = ++sim.generation;
    d->versions = 1 + (uint32_t) chance((1u << VERSIONS) - 1);
    for (uint32_t i = 0; i < STEPS; i++) {
        d->steps[i] = (uint32_t) chance(one_in(8) ? MODELS : PLAIN);
        d->step_versions[i] = one_in(3) ? 1 + (int64_t) chance(VERSIONS) : -1;
    }
}

/* Directories change places, and nobody is told. */
static void
rearrange(void)
{
    for (uint32_t m = 0; m < MODELS; m++) {
        dir_t *from = &sim.dirs[chance(REPOS)][m];
        dir_t *to = &sim.dirs[chance(REPOS)][m];
        if (from != to && from->present) {
            *to = *from;
            from->present = false;
        }
    }
}

static void
poll(void)
{
    const inf_repository_t *remote = sim.repos[REPOS - 1];

    apply_poll(NULL);
    if (sim.in_set[REPOS - 1] && remote->state == INF_REPOSITORY_LISTED) {
        apply_poll(remote);
    }
}

static void
process_exit(void)
{
    inf_model_record_t *r = NULL;
    uint64_t which = chance(MODELS);

    while ((r = inf_model_set_next(&sim.set, r)) != NULL) {
        if (which-- == 0) {
            exit_of(r);
            return;
        }
    }
}

/* The process of some version, if it serves. */
static void
exit_of(inf_model_record_t *r)
{
    inf_link_t gone;

    if (r->version_count == 0 || r->graph.made != NULL) {
        return;
    }
    inf_record_version_t *v = &r->versions[chance(r->version_count)];
    if (v->model == NULL) {
        return;
    }

    inf_model_t *model = v->model;
    fake_t *f = model->owner;
    exits_t *x = &sim.exits[model_index(r)][v->version - 1];
    x->count = sim.now - x->at > 120 * SECOND ? 1 : x->count + 1;
    x->at = sim.now;
    inf_edit_t *rebuild = new_edit(INF_EDIT_REBUILD);
    rebuild->why = strdup("exit");
    x->rebuild = rebuild;
    inf_reason_t *reason = inf_reason_new("exit");
    check(inf_model_set_exit(&sim.set, r, model, rebuild, reason, sim.now)
        == v, "the exit of %s is not heard of", r->name);
    inf_reason_unref(reason);
    f->left = true;
    inf_model_unref(model);
    inf_link_init(&gone);
    drain(&gone);
    refresh_all(r, NULL);
}

static void
rebuild(void)
{
    inf_model_record_t *r = get_record((uint32_t) chance(MODELS));

    if (inf_model_record_is_empty(r)
        && r->state == INF_MODEL_IDLE)
    {
        inf_edit_t *edit = new_edit(INF_EDIT_UNLOAD);
        inf_model_set_submit(&sim.set, r, edit);    /* it goes again         */
    }
}

/* Other repositories, other lists. */
static void
reconfigure(void)
{
    bool was_all = sim.all;
    bool before[MODELS];

    memcpy(before, sim.wanted, sizeof(before));
    if (one_in(2)) {
        uint64_t i = chance(REPOS);
        sim.in_set[i] = !sim.in_set[i];
        if (i == REPOS - 1 && sim.in_set[i]) {
            sim.repos[i]->state = INF_REPOSITORY_PENDING;
            sim.listing_at = sim.now + 1 + chance(2 * SECOND);
        } else if (i == REPOS - 1) {
            sim.listing_at = 0;
        }
    }
    if (one_in(3)) {
        sim.all = !sim.all;
    }
    for (uint32_t m = 0; m < MODELS; m++) {
        sim.wanted[m] = !sim.all && (one_in(4) ? one_in(2) : sim.wanted[m]);
    }
    new_list();
    tell_listed();
    apply_listing(INF_INVENTORY_CHANGE, was_all, before);
}

static void
happen(void)
{
    switch (chance(16)) {
    case 0: case 1: case 2: case 3: case 4: case 5:
        request();
        return;
    case 6: case 7: case 8: case 9:
        change_dir();
        return;
    case 10: case 11:
        process_exit();
        return;
    case 12:
        poll();
        return;
    case 13:
        rebuild();
        return;
    default:
        reconfigure();
        return;
    }
}

/* ---- a round ------------------------------------------------------------- */

/* No version of a model without an edit is still loading. */
static void
check_idle(const inf_model_record_t *r)
{
    for (size_t i = 0; !sim.set.stopping && r->state == INF_MODEL_IDLE
        && i < r->version_count; i++)
    {
        check(r->versions[i].state != INF_VERSION_LOADING,
            "%s %lld is loaded for ever", r->name,
            (long long) r->versions[i].version);
    }
}

/* The invariants after any event. */
static void
check_always(void)
{
    const inf_model_record_t *r = NULL;

    while ((r = inf_model_set_next(&sim.set, r)) != NULL) {
        check_whole(r);
        check_idle(r);
        check(!inf_model_record_any_ready(r)
            || inf_graph_verdict(&sim.set.graph, &r->graph)
                != INF_GRAPH_INCOMPLETE, "%s serves without its models", r->name);
        if (r->state == INF_MODEL_LISTING) {
            check(sim.listing_at != 0, "%s waits for no listing", r->name);
        }
    }
}

static uint64_t
next_time(uint64_t tick)
{
    uint64_t next = tick;

    for (uint32_t i = 0; i < LOADERS; i++) {
        if (sim.loaders[i].stage != IDLE) {
            next = least(next, sim.loaders[i].at);
        }
    }
    for (uint32_t i = 0; i < sim.late_count; i++) {
        next = least(next, sim.late[i].at);
    }
    return sim.listing_at != 0 ? least(next, sim.listing_at) : next;
}

/* Everything that is due up to until.  false: nothing is to come after. */
static bool
run_until(uint64_t until)
{
    for (;;) {
        uint64_t tick = inf_model_set_tick(&sim.set, sim.now);
        while (take_edit()) {
            continue;
        }
        check_always();
        uint64_t next = next_time(tick);
        if (next > until) {
            sim.now = until == UINT64_MAX ? sim.now : until;
            return next != UINT64_MAX;
        }

        sim.now = next > sim.now ? next : sim.now;
        for (uint32_t i = 0; i < LOADERS; i++) {
            loader_t *l = &sim.loaders[i];
            if (l->stage != IDLE && l->at <= sim.now) {
                end_stage(l);
            }
        }
        for (uint32_t i = sim.late_count; i-- > 0; ) {
            if (sim.late[i].at <= sim.now) {
                come_back(i);
            }
        }
        if (sim.listing_at != 0 && sim.listing_at <= sim.now) {
            listing_comes();
        }
    }
}

/* Builds succeed from now on. */
static void
run_to_quiet(void)
{
    uint64_t end = sim.now + 100000 * SECOND;

    while (sim.set.busy > 0 || sim.listing_at != 0 || sim.late_count > 0) {
        check(sim.now < end, "%u edits never end", sim.set.busy);
        if (!run_until(sim.now + 100 * SECOND) && sim.set.busy > 0
            && next_time(UINT64_MAX) == UINT64_MAX)
        {
            check(false, "%u edits wait for ever", sim.set.busy);
        }
    }
}

/* An ensemble serves just when it can, of what serves. */
static void
check_ensembles(void)
{
    const inf_model_record_t *r = NULL;

    while ((r = inf_model_set_next(&sim.set, r)) != NULL) {
        bool serves = inf_model_record_any_ready(r);
        check(r->graph.made == NULL
            || inf_graph_verdict(&sim.set.graph, &r->graph)
                == (serves ? INF_GRAPH_FINE : INF_GRAPH_INCOMPLETE)
            || sim.ends[model_index(r)] == REJECTED
            || sim.ends[model_index(r)] == BROKEN,
            "%s is not made of what serves", r->name);
    }
}

/* Actual is what is desired. */
static void
check_quiet(void)
{
    const inf_repository_list_t *list = sim.lists[sim.list_count - 1];
    const inf_model_record_t *r = NULL;

    check(sim.set.starting == 0, "%u of the start", sim.set.starting);
    while ((r = inf_model_set_next(&sim.set, r)) != NULL) {
        size_t at = 0;

        check(r->state == INF_MODEL_IDLE && inf_list_empty(&r->edits),
            "%s is not idle", r->name);
        check(r->stuck == 0, "%s counts %u stuck loads", r->name, r->stuck);
        check(r->graph.asked == NULL && r->stage == INF_LOAD_READS,
            "a load of %s is half done", r->name);
        check(!inf_model_record_is_empty(r), "%s is kept for nothing",
            r->name);
        for (size_t i = 0; i < r->version_count; i++) {
            check(r->versions[i].exited == NULL
                || r->versions[i].rebuild != NULL,
                "%s is never rebuilt", r->name);
        }
        check(r->source == NULL || r->source->private_dir != NULL
            || inf_repository_list_has(list, r->source->repository)
            || sim.stuck[model_index(r)],
            "%s serves from a repository that has gone", r->name);
        if (sim.all && r->source != NULL && r->source->private_dir == NULL
            && find_dir(list, model_index(r), &at) == 1)
        {
            check(list->items[at] == r->source->repository
                || sim.stuck[model_index(r)],
                "%s serves from elsewhere", r->name);
        }
        bool named = sim.all || sim.wanted[model_index(r)];
        check(named || (r->who & INF_WANTED_AT_START) == 0
            || (r->who & INF_WANTED_BY_REQUEST) != 0,
            "%s is wanted by nobody", r->name);
    }
    for (uint32_t m = 0; sim.all && m < MODELS; m++) {
        const inf_model_id_t id = inf_model_id(names[m]);
        size_t at = 0;
        check(find_dir(list, m, &at) != 1
            || inf_model_set_find(&sim.set, &id) != NULL,
            "%s was never loaded", names[m]);
    }
    for (uint32_t i = 0; i < sim.call_count; i++) {
        check(sim.calls[i].answers == 1, "%s: a caller has no answer",
            names[sim.calls[i].model]);
    }
}

static void
stop(void)
{
    inf_link_t dropped;
    inf_link_t *link;

    inf_link_init(&dropped);
    inf_model_set_stop(&sim.set, &dropped);
    while ((link = inf_list_pop_front(&dropped)) != NULL) {
        inf_edit_t *edit = inf_link_entry(link, inf_edit_t, link);
        inf_caller_t *caller = inf_model_set_end_dropped(&sim.set, edit,
            inf_err_new(INF_ERR_UNAVAILABLE, "stopping"));
        if (edit->load != NULL) {
            free(inf_graph_drop(&edit->record->graph.asked));
            free_load(edit->load);
        }
        edit->load = NULL;
        inf_edit_free(edit);
        inf_caller_answer(caller);
    }
}

static void
end_round(void)
{
    inf_model_record_t *r = NULL;

    while ((r = inf_model_set_next(&sim.set, r)) != NULL) {
        for (size_t i = 0; i < r->version_count; i++) {
            inf_model_t *model = inf_record_version_withdraw(&r->versions[i]);
            if (model != NULL) {
                fake_t *f = model->owner;
                f->left = true;
                inf_model_unref(model);
            }
        }
    }
    inf_model_set_fini(&sim.set);
    check(sim.alive == 0, "%u models are left", sim.alive);
    for (uint32_t i = 0; i < sim.list_count; i++) {
        free(sim.lists[i]->items);
        free(sim.lists[i]->roots);
        free(sim.lists[i]);
    }
    for (uint32_t i = 0; i < sim.source_count; i++) {
        free(sim.sources[i]);
    }
    for (uint32_t i = 0; i < REPOS; i++) {
        free(sim.repos[i]);
    }
}

static void
begin_round(uint64_t seed)
{
    bool none[MODELS] = { false };

    memset(&sim, 0, sizeof(sim));
    sim.seed = seed;
    chance_state = seed;
    sim.now = SECOND;
    inf_model_set_init(&sim.set, &set_ops, NULL);
    for (uint32_t i = 0; i < REPOS; i++) {
        sim.repos[i] = calloc(1, sizeof(*sim.repos[i]));
        sim.in_set[i] = !one_in(4);
        atomic_init(&sim.repos[i]->refs, 1u << 30);
        inf_lock_init(&sim.repos[i]->lock, 63);
        sim.repos[i]->state = INF_REPOSITORY_LISTED;
        sim.repos[i]->storage = i == REPOS - 1 ? &away : &local;
    }
    if (sim.in_set[REPOS - 1]) {
        sim.repos[REPOS - 1]->state = INF_REPOSITORY_PENDING;
        sim.listing_at = sim.now + 1 + chance(2 * SECOND);
    }
    sim.load_composing = one_in(2);
    sim.all = one_in(2);
    for (uint32_t m = 0; m < MODELS; m++) {
        sim.wanted[m] = !sim.all && one_in(2);
    }
    for (int i = 0; i < 12; i++) {
        change_dir();
    }
    new_list();
    apply_listing(INF_INVENTORY_START, false, none);
}

static void
run_round(uint64_t seed, uint64_t events)
{
    begin_round(seed);
    uint64_t gap = 1 + chance(one_in(2) ? SECOND : 50 * MS);
    bool stops = one_in(4);

    for (uint64_t i = 0; i < events; i++) {
        happen();
        sim.events++;
        run_until(sim.now + chance(2 * gap));
    }
    if (stops) {
        stop();
        sim.listing_at = 0;
    } else {
        /* the last configuration has its say about what came meanwhile */
        run_to_quiet();
        check_ensembles();
        rearrange();
        apply_listing(INF_INVENTORY_CHANGE, sim.all, sim.wanted);
    }
    run_to_quiet();
    if (stops) {
        for (uint32_t i = 0; i < sim.call_count; i++) {
            check(sim.calls[i].answers == 1, "%s: a caller has no answer"
                " after the stop", names[sim.calls[i].model]);
        }
    } else {
        check_ensembles();
        check_quiet();
    }
    end_round();
}

static void
rounds_of_every_kind_end_as_desired(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        run_round(seed, seed % 8 == 0 ? ROUND - 1 : ROUND / 4);
    }
}

static void
run_long(uint64_t events, uint64_t seed)
{
    uint64_t done = 0, loads = 0, failures = 0, waits = 0, drained = 0;
    uint64_t timeouts = 0;

    while (done < events) {
        run_round(seed++, ROUND - 1);
        done += ROUND - 1;
        loads += sim.loads;
        failures += sim.failures;
        waits += sim.waits;
        drained += sim.drained;
        timeouts += sim.timeouts;
    }
    printf("%llu events: %llu builds, %llu of them failed, %llu waits, %llu"
        " versions drained or unloaded, %llu loads given up\n",
        (unsigned long long) done,
        (unsigned long long) loads, (unsigned long long) failures,
        (unsigned long long) waits, (unsigned long long) drained,
        (unsigned long long) timeouts);
}

static int
nothing(void **state)
{
    (void) state;
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_every_kind_end_as_desired),
    };
    const simulation_t simulation = {
        .setup = nothing, .teardown = nothing,
        .tests = tests, .test_count = 1,
        .run_long = run_long
    };

    return simulation_main(&simulation, argc, argv);
}
