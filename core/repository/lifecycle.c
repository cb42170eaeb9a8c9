#include "core/repository/lifecycle.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/repository/repository_names.h"
#include "core/sched/entrance.h"

#define LIFECYCLE_RANK 10
#define PUBLISH_RANK   5

/* Finalizers that wait for a process that is gone: so long we wait for them,
   and so often we look. */
#define MERCY_NS       UINT64_C(3000000000)
#define LOOK_NS        UINT64_C(100000000)
#define PATIENCE_NS    UINT64_C(60000000000)

static bool wait_for_the_end(inf_lifecycle_t *lc, uint64_t until);
static inf_err_t *start_loaders(inf_lifecycle_t *lc);
static bool stop_loaders(inf_lifecycle_t *lc, uint64_t until);
static void *loader_main(void *arg);
static inf_model_record_t *take_turn_locked(inf_lifecycle_t *lc,
    const inf_loader_t *loader) INF_NEEDS(lc->lock);
static void run(inf_lifecycle_t *lc, inf_lifecycle_op_t *op);
static void end_turn_locked(inf_lifecycle_t *lc, inf_model_record_t *r,
    const inf_lifecycle_op_t *op, inf_model_record_t **gone)
    INF_NEEDS(lc->lock);
static void queue_turn_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
    INF_NEEDS(lc->lock);
static bool take_note_of_asking(inf_lifecycle_t *lc,
    const inf_lifecycle_op_t *op);
static void note(const inf_lifecycle_t *lc, const inf_lifecycle_op_t *op);
static bool reload_is_queued_locked(const inf_model_record_t *r,
    int64_t version);

const char *
inf_version_state_name(inf_version_state_t state)
{
    switch (state) {
    case INF_VERSION_UNKNOWN:
        return "UNKNOWN";
    case INF_VERSION_LOADING:
        return "LOADING";
    case INF_VERSION_READY:
        return "READY";
    case INF_VERSION_UNLOADING:
        return "UNLOADING";
    case INF_VERSION_UNAVAILABLE:
        return "UNAVAILABLE";
    }

    return "UNKNOWN";
}

inf_err_t *
inf_lifecycle_new(const inf_lifecycle_options_t *options,
    inf_lifecycle_t **out)
{
    inf_lifecycle_t *lc = calloc(1, sizeof(*lc));
    if (lc == NULL) {
        return inf_err_nomem();
    }

    lc->options = *options;
    lc->options.registry->namespacing = options->repositories->namespacing;
    inf_lock_init(&lc->publish_lock, PUBLISH_RANK);
    inf_lock_init(&lc->lock, LIFECYCLE_RANK);
    inf_cond_init(&lc->work);
    inf_cond_init(&lc->idle);
    inf_cond_init(&lc->reap);
    lc->patience_ns = PATIENCE_NS;
    inf_link_init(&lc->models);
    inf_link_init(&lc->loads);
    inf_link_init(&lc->unloads);
    inf_link_init(&lc->destroyers);
    inf_link_init(&lc->losses);
    inf_timekeeper_init(&lc->timekeeper);
    inf_ensemble_graph_init(&lc->graph, &inf_lifecycle_graph_ops);

    inf_err_t *err = inf_children_new(inf_lifecycle_child_died, lc,
        &lc->options.children);
    if (err == NULL) {
        err = inf_lifecycle_terms_new(&lc->options, NULL, NULL, &lc->terms);
    }
    if (err == NULL) {
        err = inf_backend_table_new(&lc->options, &lc->backends);
    }
    if (err == NULL) {
        err = inf_agent_table_new(options->agents, options->agent_dirs,
            options->agent_dir_count, &lc->agents);
    }
    if (err == NULL) {
        err = inf_lifecycle_start_reaper(lc);
    }
    if (err == NULL) {
        err = start_loaders(lc);
    }
    if (err != NULL) {
        inf_lifecycle_free(lc);
        return err;
    }

    *out = lc;
    return NULL;
}

void
inf_lifecycle_free(inf_lifecycle_t *lc)
{
    if (lc == NULL) {
        return;
    }

    inf_children_stop(lc->options.children);
    (void) stop_loaders(lc, UINT64_MAX);
    inf_lifecycle_reap_losses(lc, true);
    inf_lifecycle_stop_reaper(lc);
    inf_children_free(lc->options.children);

    inf_link_t *link;
    while ((link = inf_list_pop_front(&lc->models)) != NULL) {
        inf_model_record_free(inf_link_entry(link, inf_model_record_t, link));
    }

    inf_lifecycle_unbar(lc);
    inf_timekeeper_fini(&lc->timekeeper);
    inf_agent_table_free(lc->agents);
    inf_backend_table_free(lc->backends);
    inf_lifecycle_terms_unref(lc->terms);
    inf_cond_fini(&lc->work);
    inf_cond_fini(&lc->idle);
    inf_cond_fini(&lc->reap);
    inf_lock_fini(&lc->lock);
    inf_lock_fini(&lc->publish_lock);
    free(lc);
}

void
inf_lifecycle_hold(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->holds++;
    inf_unlock(&lc->lock);
}

void
inf_lifecycle_release(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->holds--;
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_load_async(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override, inf_lifecycle_done_fn done, void *userp)
{
    inf_lifecycle_op_t *op;

    inf_err_t *err = inf_lifecycle_op_new(lc->options.repositories->namespacing
        ? INF_OP_NAMED : INF_OP_LOAD, done, userp, &op);
    if (err != NULL) {
        inf_override_free(override);
        inf_lifecycle_tell(done, userp, err);
        return;
    }

    const inf_model_id_t id = inf_model_id(name);
    op->override = override;
    op->asked = true;
    inf_lifecycle_submit(lc, &id, op);
}

void
inf_lifecycle_load_id_async(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_lifecycle_done_fn done, void *userp)
{
    inf_lifecycle_op_t *op;

    inf_err_t *err = inf_lifecycle_op_new(INF_OP_LOAD, done, userp, &op);
    if (err != NULL) {
        inf_lifecycle_tell(done, userp, err);
        return;
    }

    inf_lifecycle_submit(lc, id, op);
}

void
inf_lifecycle_unload_async(inf_lifecycle_t *lc, const char *name,
    bool dependents, inf_lifecycle_done_fn done, void *userp)
{
    inf_lifecycle_op_t *op;

    inf_err_t *err = inf_lifecycle_op_new(lc->options.repositories->namespacing
        ? INF_OP_NAMED : INF_OP_UNLOAD, done, userp, &op);
    if (err != NULL) {
        inf_lifecycle_tell(done, userp, err);
        return;
    }

    const inf_model_id_t id = inf_model_id(name);
    op->dependents = dependents;
    op->unload = true;
    inf_lifecycle_submit(lc, &id, op);
}

void
inf_lifecycle_unload_missing(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_repository_list_t *list, inf_lifecycle_done_fn done, void *userp)
{
    inf_lifecycle_op_t *op;

    inf_err_t *err = inf_lifecycle_op_new(INF_OP_UNLOAD, done, userp, &op);
    if (err != NULL) {
        inf_lifecycle_tell(done, userp, err);
        return;
    }

    op->list = inf_repository_list_ref(list);
    inf_lifecycle_submit(lc, id, op);
}

void
inf_lifecycle_reload(inf_lifecycle_t *lc, const inf_model_id_t *id,
    int64_t version, const char *reason)
{
    inf_lifecycle_op_t *op;

    inf_lock(&lc->lock);
    inf_model_record_t *r = inf_lifecycle_find_locked(lc, id);
    bool needed = r != NULL && !lc->stopping
        && (inf_model_record_any_ready(r) || inf_model_record_any_lost(r))
        && !reload_is_queued_locked(r, version);
    inf_unlock(&lc->lock);
    if (!needed) {
        return;
    }

    inf_err_t *err = inf_lifecycle_op_new(INF_OP_RELOAD, NULL, NULL, &op);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model \"%s\" is not loaded again",
            id->name));
        return;
    }

    inf_log(INF_LOG_WARN, "model=%s%s%s is loaded again: %s", id->space,
        id->space[0] != '\0' ? "::" : "", id->name, reason);
    op->version = version;
    inf_lifecycle_submit(lc, id, op);
}

bool
inf_lifecycle_differs(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_repository_t *repository, const char *dir,
    const inf_model_stamp_t *stamp)
{
    inf_lock(&lc->lock);
    const inf_model_record_t *r = inf_lifecycle_find_locked(lc, id);
    bool differs = r == NULL || (!r->busy && (r->home == NULL
        || r->home->repository != repository
        || strcmp(r->home->dir, dir) != 0
        || !inf_model_stamp_equal(&r->home->stamp, stamp)));
    inf_unlock(&lc->lock);
    return differs;
}

bool
inf_lifecycle_comes_from(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_repository_t *repository, bool sure)
{
    inf_lock(&lc->lock);
    const inf_model_record_t *r = inf_lifecycle_find_locked(lc, id);
    bool from = r == NULL || r->home == NULL ? !sure
        : r->home->repository == repository;
    inf_unlock(&lc->lock);
    return from;
}

void
inf_lifecycle_wait(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    while (lc->busy > 0) {
        inf_cond_wait(&lc->idle, &lc->lock);
    }
    inf_unlock(&lc->lock);
}

bool
inf_lifecycle_settled(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    bool settled = lc->starting == 0 && !lc->unlisted;
    inf_unlock(&lc->lock);
    return settled;
}

bool
inf_lifecycle_all_ready(inf_lifecycle_t *lc)
{
    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    bool ready = !lc->unseen;
    for (inf_link_t *l = lc->models.next; ready && l != &lc->models;
        l = l->next)
    {
        ready = inf_model_record_content(inf_link_entry(l, inf_model_record_t,
            link));
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);

    return ready;
}

void
inf_lifecycle_known(inf_lifecycle_t *lc,
    void (*fn)(void *userp, const inf_model_id_t *id), void *userp)
{
    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        const inf_model_record_t *r = inf_link_entry(l, inf_model_record_t,
            link);
        const inf_model_id_t id = inf_model_record_id(r);
        if (inf_model_record_is_held(r)) {
            fn(userp, &id);
        }
    }
    inf_unlock(&lc->lock);
}

void
inf_lifecycle_index(inf_lifecycle_t *lc, inf_lifecycle_row_fn fn, void *userp)
{
    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        inf_model_record_rows(inf_link_entry(l, inf_model_record_t, link),
            false, fn, userp);
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);
}

inf_err_t *
inf_lifecycle_repository_index(inf_lifecycle_t *lc, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp)
{
    inf_repository_name_t *names = NULL;
    inf_arena_t arena;
    size_t count = 0;
    size_t i = 0;

    inf_arena_init(&arena);
    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    inf_err_t *err = inf_repository_list_failure(list, "");
    if (err == NULL) {
        err = inf_repositories_names(list, &arena, NULL, &names, &count);
        if (err != NULL && inf_err_code(err) == INF_ERR_NOT_FOUND) {
            err = inf_err_recode(err, INF_ERR_INTERNAL);    /* not the call  */
        }
    } else {
        inf_lifecycle_ask_again(lc);
    }
    inf_repository_list_unref(list);

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    inf_link_t *l = lc->models.next;
    while (err == NULL && (i < count || l != &lc->models)) {
        inf_model_record_t *r = l != &lc->models
            ? inf_link_entry(l, inf_model_record_t, link) : NULL;
        const inf_model_id_t id = r != NULL ? inf_model_record_id(r)
            : inf_model_id("");
        int order = i == count ? 1 : r == NULL ? -1
            : inf_model_id_compare(&names[i].id, &id);

        if (order > 0) {            /* its directory is gone; one that the
                                       start asked for is told of            */
            if (r->wanted && r->version_count == 0) {
                inf_model_record_rows(r, ready_only, fn, userp);
            }
        } else if (names[i].problem != NULL
            && (order != 0 || !inf_model_record_any_ready(r)))
        {
            if (!ready_only) {
                fn(userp, names[i].id.name, -1, INF_VERSION_UNAVAILABLE,
                    names[i].problem);
            }
        } else if (names[i].duplicate) {
            fn(userp, names[i].id.name, -1, INF_VERSION_UNAVAILABLE,
                "model appears in two or more repositories");
        } else if (order == 0 && (r->version_count > 0 || r->rejected
            || r->wanted))
        {
            inf_model_record_rows(r, ready_only, fn, userp);
        } else if (!ready_only) {
            fn(userp, names[i].id.name, -1, INF_VERSION_UNKNOWN, "");
        }

        i += order <= 0;
        l = order >= 0 ? l->next : l;
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);

    inf_arena_fini(&arena);
    return err;
}

bool
inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns)
{
    uint64_t until = inf_clock_ns() + timeout_ns;
    inf_children_stop(lc->options.children);
    if (!stop_loaders(lc, until)) {
        return false;                   /* it may still touch every model    */
    }

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        inf_model_record_t *r = inf_link_entry(l, inf_model_record_t, link);
        inf_model_home_t *home = r->home;
        r->home = NULL;
        inf_unlock(&lc->lock);
        inf_model_home_leave(home);
        inf_lock(&lc->lock);
        for (size_t i = 0; i < r->version_count; i++) {
            inf_model_t *model = inf_lifecycle_withdraw_locked(
                &r->versions[i]);
            if (model == NULL) {
                continue;
            }

            inf_unlock(&lc->lock);
            inf_entrance_close(model);
            inf_entrance_close_door(model);
            inf_model_unref(model);
            inf_lock(&lc->lock);
        }
    }
    inf_unlock(&lc->lock);
    inf_lifecycle_publish(lc);

    return wait_for_the_end(lc, until);
}

/* Not for models that nothing can end any more. */
static bool
wait_for_the_end(inf_lifecycle_t *lc, uint64_t until)
{
    uint64_t stranded_ns = 0;       /* seen first                            */

    inf_lock(&lc->lock);
    while (lc->alive > 0) {
        uint64_t now = inf_clock_ns();
        bool stranded = inf_lifecycle_stranded(lc);
        stranded_ns = !stranded ? 0 : stranded_ns == 0 ? now : stranded_ns;
        if (now >= until || (stranded && now - stranded_ns > MERCY_NS)) {
            break;
        }

        uint64_t look = now + LOOK_NS;
        inf_cond_wait_until(&lc->idle, &lc->lock, look < until ? look : until);
    }
    bool done = lc->alive == 0;
    inf_unlock(&lc->lock);

    if (!done) {
        inf_lifecycle_forget_stranded(lc);
    }
    return done;
}

static inf_err_t *
start_loaders(inf_lifecycle_t *lc)
{
    uint32_t count = lc->options.load_threads;
    count = count == 0 ? 1 : count;
    count = count > INF_LOADERS_MAX / 2 ? INF_LOADERS_MAX / 2 : count;

    inf_lock(&lc->lock);
    inf_err_t *err = inf_lifecycle_add_loader_locked(lc, true);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = inf_lifecycle_add_loader_locked(lc, false);
    }
    inf_unlock(&lc->lock);
    return err;
}

inf_err_t *
inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc, bool unloads)
{
    inf_loader_t *l = lc->loaders;
    if (lc->stopping) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "the server is stopping");
    }

    while (l < lc->loaders + INF_LOADERS_MAX && l->state == INF_LOADER_RUNS) {
        l++;
    }
    if (l == lc->loaders + INF_LOADERS_MAX) {
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE,
            "too many loaders are busy"), INF_CAUSE_FULL);
    }

    if (l->state == INF_LOADER_ENDED) {
        pthread_join(l->thread, NULL);      /* it has given up the lock      */
        l->state = INF_LOADER_FREE;
    }

    l->lc = lc;
    l->unloads = unloads;
    int rc = pthread_create(&l->thread, NULL, loader_main, l);
    if (rc != 0) {
        return inf_err_os(rc, "cannot start a loader thread");
    }

    pthread_setname_np(l->thread, unloads ? "unloader" : "loader");
    l->state = INF_LOADER_RUNS;
    lc->running += !unloads;
    lc->enough += !unloads;
    return NULL;
}

/* A load in progress finishes first; queued operations are dropped.  false: it
   does not finish. */
static bool
stop_loaders(inf_lifecycle_t *lc, uint64_t until)
{
    inf_lock(&lc->lock);
    lc->stopping = true;
    inf_unlock(&lc->lock);
    inf_lifecycle_drop_ops(lc);
    inf_cond_broadcast(&lc->work);

    inf_lock(&lc->lock);
    while (lc->busy > 0 && inf_cond_wait_until(&lc->idle, &lc->lock, until)) {
        continue;
    }
    bool ended = lc->busy == 0;
    inf_unlock(&lc->lock);

    for (uint32_t i = 0; i < INF_LOADERS_MAX; i++) {
        inf_loader_t *l = &lc->loaders[i];
        inf_lock(&lc->lock);
        bool join = l->state == INF_LOADER_ENDED
            || (ended && l->state == INF_LOADER_RUNS);
        inf_unlock(&lc->lock);
        if (join) {
            pthread_join(l->thread, NULL);
            inf_lock(&lc->lock);
            l->state = INF_LOADER_FREE;
            inf_unlock(&lc->lock);
        }
    }

    return ended;
}

static void *
loader_main(void *arg)
{
    inf_loader_t *loader = arg;
    inf_lifecycle_t *lc = loader->lc;

    inf_lock(&lc->lock);
    for (;;) {
        if (!loader->unloads && lc->running > lc->enough) {
            break;                          /* it was one more for a while   */
        }

        inf_model_record_t *r = take_turn_locked(lc, loader);
        if (r == NULL) {
            if (lc->stopping) {
                break;
            }
            inf_cond_wait(&lc->work, &lc->lock);
            continue;
        }

        inf_lifecycle_op_t *op = inf_link_entry(inf_list_pop_front(&r->ops),
            inf_lifecycle_op_t, link);
        loader->busy_ns = inf_clock_ns();
        inf_cond_signal(&lc->reap);
        inf_unlock(&lc->lock);
        run(lc, op);
        inf_lock(&lc->lock);
        loader->busy_ns = 0;
        if (loader->replaced) {
            loader->replaced = false;
            lc->enough--;
            inf_cond_broadcast(&lc->work);      /* one that waits may go     */
        }
    }
    lc->running -= !loader->unloads;
    loader->state = INF_LOADER_ENDED;
    inf_unlock(&lc->lock);
    return NULL;
}

static inf_model_record_t *
take_turn_locked(inf_lifecycle_t *lc, const inf_loader_t *loader)
{
    inf_link_t *link = lc->holds > 0 ? NULL
        : inf_list_pop_front(loader->unloads ? &lc->unloads : &lc->loads);
    return link != NULL ? inf_link_entry(link, inf_model_record_t, turn)
        : NULL;
}

/* Takes op. */
static void
run(inf_lifecycle_t *lc, inf_lifecycle_op_t *op)
{
    inf_model_record_t *r = op->record;
    inf_model_record_t *gone = NULL;
    inf_err_t *err = NULL;
    bool changed = false;
    bool parked = false;
    inf_loading_place_t place;

    inf_lifecycle_terms_t *terms = inf_lifecycle_take_terms(lc);
    inf_loading_place_enter(&place, &terms->options.host_policies);
    inf_lifecycle_terms_unref(terms);
    inf_lifecycle_op_runs(op);
    op->place = &place;
    if (op->kind == INF_OP_FOLLOW) {
        err = inf_lifecycle_run_follow(lc, op);
    } else if (op->kind == INF_OP_NAMED) {
        err = inf_lifecycle_run_named(lc, op, &parked);
    }
    switch (parked ? INF_OP_NAMED : op->kind) {
    case INF_OP_LOAD:
    case INF_OP_RELOAD:
    case INF_OP_RENEW:
        err = inf_lifecycle_run_load(lc, op, &changed, &parked);
        break;
    case INF_OP_UNLOAD:
        if ((op->list == NULL
                || inf_repositories_are(lc->options.repositories, op->list))
            && (!op->orphan || inf_lifecycle_is_orphan(lc, r)))
        {
            inf_lifecycle_run_unload(lc, op);
            changed = true;
        }
        break;
    case INF_OP_NAMED:                  /* others do it                      */
    case INF_OP_FOLLOW:                 /* there is nothing to do            */
        break;
    }
    inf_lifecycle_op_runs(NULL);
    inf_loading_place_leave(&place);
    if (parked) {
        return;                         /* op is somebody else's now         */
    }
    if (err == NULL && (take_note_of_asking(lc, op) || changed || op->adopt)) {
        note(lc, op);
    }
    inf_lifecycle_renew(lc, r, op);
    inf_lifecycle_unload_orphans(lc, op);

    /* whoever is told that it ended finds the model idle */
    inf_lock(&lc->lock);
    bool start = op->start;
    end_turn_locked(lc, r, op, &gone);
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);
    inf_cond_broadcast(&lc->work);

    if (start) {
        lc->options.changed(lc->options.userp);
    }
    inf_lifecycle_op_end(lc, op, err);
    inf_model_record_free(gone);
}

/* Whether it is new that a request has loaded the model. */
static bool
take_note_of_asking(inf_lifecycle_t *lc, const inf_lifecycle_op_t *op)
{
    if (op->kind != INF_OP_LOAD || !op->asked) {
        return false;
    }

    inf_lock(&lc->lock);
    bool fresh = !op->record->asked;
    op->record->asked = true;
    inf_unlock(&lc->lock);
    return fresh;
}

/* What only repeats what was, or is so at every start, is not worth a note. */
static void
note(const inf_lifecycle_t *lc, const inf_lifecycle_op_t *op)
{
    const inf_load_note_ops_t *notes = lc->options.notes;
    const inf_model_id_t id = inf_model_record_id(op->record);
    if (notes == NULL || op->start || op->ambiguous) {
        return;
    }

    switch (op->kind) {
    case INF_OP_LOAD:
        if (op->asked || op->implicit) {
            notes->loaded(lc->options.notes_userp, &id, op->override,
                op->implicit);
        } else {
            notes->forgotten(lc->options.notes_userp, &id);
        }
        return;
    case INF_OP_UNLOAD:
        if (op->all || op->dropped || op->list != NULL) {
            notes->forgotten(lc->options.notes_userp, &id);
        } else {
            notes->unloaded(lc->options.notes_userp, &id, op->implicit);
        }
        return;
    case INF_OP_RENEW:
        if (op->made_good) {
            notes->loaded(lc->options.notes_userp, &id, op->override,
                op->implicit);
        }
        return;
    case INF_OP_FOLLOW:
        notes->loaded(lc->options.notes_userp, &id, NULL, false);
        return;
    case INF_OP_NAMED:
    case INF_OP_RELOAD:
        return;
    }
}

/* *gone: a record that nothing needs any more, for the caller to free. */
static void
end_turn_locked(inf_lifecycle_t *lc, inf_model_record_t *r,
    const inf_lifecycle_op_t *op, inf_model_record_t **gone)
{
    lc->busy--;
    lc->starting -= op->start;

    if (!inf_list_empty(&r->ops)) {
        queue_turn_locked(lc, r);
        inf_lifecycle_wake_locked(lc, r);
        return;
    }

    r->busy = false;
    r->graph.turn = 0;
    inf_lifecycle_wake_locked(lc, r);
    if (r->version_count == 0 && !r->rejected && !r->wanted
        && r->graph.made == NULL)
    {
        inf_link_remove(&r->link);
        inf_graph_remove(&r->graph);
        lc->model_count--;
        *gone = r;
    }
}

static void
queue_turn_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
{
    const inf_lifecycle_op_t *op = inf_link_entry(r->ops.next,
        inf_lifecycle_op_t, link);
    bool unloads = op->kind == INF_OP_UNLOAD
        || (op->kind == INF_OP_NAMED && op->unload);
    r->graph.turn = op->turn;
    inf_list_push_back(unloads ? &lc->unloads : &lc->loads, &r->turn);
}

void
inf_lifecycle_resume_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
{
    r->parked = false;
    r->graph.until = 0;
    queue_turn_locked(lc, r);
}

void
inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_lifecycle_op_t *op)
{
    inf_model_record_t *fresh;

    inf_err_t *err = inf_model_record_new(id, &fresh);
    if (err != NULL) {
        inf_lifecycle_op_end(lc, op, err);
        return;
    }

    inf_lock(&lc->lock);
    bool stopping = lc->stopping;
    if (!stopping) {
        inf_model_record_t *r = inf_lifecycle_find_locked(lc, id);
        if (r == NULL) {
            r = fresh;
            fresh = NULL;
            inf_lifecycle_insert_locked(lc, r);
        }

        inf_lifecycle_submit_locked(lc, r, op);
    }
    inf_unlock(&lc->lock);

    inf_model_record_free(fresh);
    if (stopping) {
        inf_lifecycle_op_end(lc, op, inf_err_new(INF_ERR_UNAVAILABLE,
            "model \"%s\" is not loaded or unloaded: the server is stopping",
            id->name));
        return;
    }

    inf_cond_broadcast(&lc->work);
}

void
inf_lifecycle_submit_locked(inf_lifecycle_t *lc, inf_model_record_t *r,
    inf_lifecycle_op_t *op)
{
    op->record = r;
    op->turn = ++lc->turns;
    r->last_kind = op->kind;
    r->wanted = r->wanted || op->wanted;
    r->asked = r->asked || (op->start && op->asked);
    inf_list_push_back(&r->ops, &op->link);
    lc->busy++;
    lc->starting += op->start;
    if (!r->busy) {
        r->busy = true;
        queue_turn_locked(lc, r);
    }
}

inf_model_record_t *
inf_lifecycle_find_locked(const inf_lifecycle_t *lc, const inf_model_id_t *id)
{
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        inf_model_record_t *r = inf_link_entry(l, inf_model_record_t, link);
        const inf_model_id_t at = inf_model_record_id(r);
        if (inf_model_id_equal(&at, id)) {
            return r;
        }
    }

    return NULL;
}

void
inf_lifecycle_insert_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
{
    const inf_model_id_t id = inf_model_record_id(r);

    /* scans come sorted: the place is nearly always the end */
    inf_link_t *at = lc->models.prev;
    while (at != &lc->models) {
        const inf_model_id_t before = inf_model_record_id(
            inf_link_entry(at, inf_model_record_t, link));
        if (inf_model_id_compare(&before, &id) < 0) {
            break;
        }
        at = at->prev;
    }

    inf_link_insert(at->next, &r->link);
    inf_graph_add(&lc->graph, &r->graph, &id);
    lc->model_count++;
}

static bool
reload_is_queued_locked(const inf_model_record_t *r, int64_t version)
{
    for (inf_link_t *l = r->ops.next; l != &r->ops; l = l->next) {
        const inf_lifecycle_op_t *op = inf_link_entry(l, inf_lifecycle_op_t,
            link);
        if (op->kind == INF_OP_RELOAD
            && (op->version == -1 || op->version == version))
        {
            return true;
        }
    }

    return false;
}
