/* lifecycle_end.c - the reaper, which destroys models after their last use,
   replaces busy loaders and publishes again; callbacks of the model set. */

#include "core/base/os/thread.h"
#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/model_load.h"
#include "core/sched/ensemble.h"
#include "core/sched/entrance.h"
#include "core/sched/runtime.h"

#define AGAIN_NS UINT64_C(1000000000)   /* next try without thread or
                                           memory                           */
#define CHECK_NS UINT64_C(20000000)     /* while sequences end               */

static void leaves(inf_model_t *model, inf_reason_t *why, inf_link_t *gone);
static inf_reconcile_facts_t facts(void *userp,
    const inf_repository_list_t *list, const inf_model_id_t *id);
static uint64_t sequences_locked(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
static void last_unref(inf_model_t *model);
static void *reaper_main(void *arg);
static void publish_again(inf_lifecycle_t *lc);
static uint64_t next_check_locked(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
static uint64_t replace_stuck_locked(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
static bool replace_locked(inf_lifecycle_t *lc, inf_loader_t *l)
    INF_NEEDS(lc->lock);
static bool start_destroy_locked(inf_loaded_t *loaded);
static inf_loaded_t *find_locked(inf_lifecycle_t *lc, inf_loaded_state_t state)
    INF_NEEDS(lc->lock);
static void *destroy_main(void *arg);
static void note_unloaded(inf_loaded_t *loaded);

const inf_model_set_ops_t inf_lifecycle_set_ops = {
    .leaves = leaves,
    .facts = facts
};

const inf_model_ops_t inf_lifecycle_model_ops = {
    .last_unref = last_unref
};

static void
leaves(inf_model_t *model, inf_reason_t *why, inf_link_t *gone)
{
    inf_loaded_t *loaded = model->owner;

    loaded->model = model;
    loaded->why = why;
    inf_list_push_back(gone, &loaded->link);
}

static inf_reconcile_facts_t
facts(void *userp, const inf_repository_list_t *list,
    const inf_model_id_t *id)
{
    const inf_lifecycle_t *lc = userp;

    return (inf_reconcile_facts_t) {
        .current = inf_repositories_are(lc->options.repositories, list),
        .barred = inf_model_ids_has(&lc->barred, id),
        .states = inf_repository_list_states(list, id->space)
    };
}

void
inf_lifecycle_end_sequences(inf_lifecycle_t *lc, uint64_t timeout_ns)
{
    uint64_t until = inf_clock_ns() + timeout_ns;
    uint64_t now;

    inf_lock(&lc->lock);
    while (sequences_locked(lc) > 0 && (now = inf_clock_ns()) < until) {
        uint64_t next = now + CHECK_NS;
        inf_cond_wait_until(&lc->idle, &lc->lock, next < until ? next : until);
    }
    inf_unlock(&lc->lock);
}

/* Rejects new sequences of serving models; returns the number of live ones. */
static uint64_t
sequences_locked(inf_lifecycle_t *lc)
{
    const inf_model_record_t *r = NULL;
    uint64_t n = 0;

    while ((r = inf_model_set_next(&lc->set, r)) != NULL) {
        for (size_t i = 0; i < r->version_count; i++) {
            inf_model_t *model = r->versions[i].model;
            if (model == NULL) {
                continue;
            }
            if (model->sched.ensemble != NULL && model->sequential) {
                inf_ensemble_end_sequences(model->sched.ensemble);
            } else if (model->sched.sequence_inputs != NULL) {
                inf_entrance_close(model);
                n += inf_runner_sequences(model->sched.runner);
            }
        }
    }

    return n;
}

void
inf_lifecycle_attend(inf_lifecycle_t *lc, bool attended)
{
    const inf_model_record_t *r = NULL;

    inf_lock(&lc->lock);
    while ((r = inf_model_set_next(&lc->set, r)) != NULL) {
        for (size_t i = 0; i < r->version_count; i++) {
            const inf_model_t *model = r->versions[i].model;
            if (model != NULL && model->sched.runner != NULL) {
                inf_runner_attend(model->sched.runner, attended);
            }
        }
    }
    inf_unlock(&lc->lock);
}

inf_err_t *
inf_lifecycle_start_reaper(inf_lifecycle_t *lc)
{
    inf_err_t *err = inf_thread_start(&lc->reaper, "reaper", reaper_main, lc);
    if (err != NULL) {
        return err;
    }

    inf_lock(&lc->lock);
    lc->reaper_state = INF_REAPER_RUNS;
    inf_unlock(&lc->lock);
    return NULL;
}

void
inf_lifecycle_stop_reaper(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    bool join = lc->reaper_state == INF_REAPER_RUNS;
    if (join) {
        lc->reaper_state = INF_REAPER_ENDS;
    }
    inf_unlock(&lc->lock);
    if (join) {
        inf_cond_broadcast(&lc->reap);
        pthread_join(lc->reaper, NULL);
    }
}

/* Signals the reaper.  May run inside the backend's own call stack, and on any
   thread that serves requests. */
static void
last_unref(inf_model_t *model)
{
    inf_loaded_t *loaded = model->owner;
    inf_lifecycle_t *lc = loaded->lc;

    inf_lock(&lc->lock);
    loaded->model = model;
    loaded->state = INF_LOADED_UNUSED;
    inf_list_push_back(&lc->destroyed, &loaded->link);
    inf_cond_signal(&lc->reap);
    inf_unlock(&lc->lock);
}

/* Starts threads that destroy, which inherit name and processors of this thread
   instead of those of the thread with the last reference. */
static void *
reaper_main(void *arg)
{
    inf_lifecycle_t *lc = arg;
    inf_loaded_t *loaded;

    for (;;) {
        publish_again(lc);
        inf_lifecycle_give_up_stuck(lc);
        inf_lock(&lc->lock);
        loaded = find_locked(lc, INF_LOADED_ENDED);
        if (loaded != NULL) {
            inf_link_remove(&loaded->link);
            inf_unlock(&lc->lock);
            pthread_join(loaded->thread, NULL);
            free(loaded);
            continue;
        }

        loaded = find_locked(lc, INF_LOADED_UNUSED);
        if (loaded == NULL) {
            if (lc->reaper_state == INF_REAPER_ENDS) {
                break;
            }
            uint64_t until = next_check_locked(lc);
            (void) inf_cond_wait_until(&lc->reap, &lc->lock, until);
        } else if (!start_destroy_locked(loaded)) {
            if (lc->reaper_state == INF_REAPER_ENDS) {
                break;
            }
            (void) inf_cond_wait_until(&lc->reap, &lc->lock,
                inf_clock_ns() + AGAIN_NS);
        }
        inf_unlock(&lc->lock);
    }
    inf_unlock(&lc->lock);
    return NULL;
}

/* Publishes again after a failure, without waiting for the next load or
   unload. */
static void
publish_again(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    bool needed = lc->unpublished;
    inf_unlock(&lc->lock);

    if (needed) {
        inf_lifecycle_publish(lc);
    }
}

/* Queues due rebuilds; returns the time of the next check. */
static uint64_t
next_check_locked(inf_lifecycle_t *lc)
{
    uint64_t now = inf_clock_ns();
    uint64_t until = replace_stuck_locked(lc);
    uint32_t busy = lc->set.busy;
    uint64_t rebuild = inf_model_set_tick(&lc->set, now);

    if (lc->set.busy != busy) {
        inf_cond_broadcast(&lc->work);
    }
    uint64_t stuck = inf_lifecycle_next_stuck_locked(lc, now);
    until = rebuild < until ? rebuild : until;
    until = stuck < until ? stuck : until;
    return lc->unpublished && now + AGAIN_NS < until ? now + AGAIN_NS : until;
}

/* Replaces each loader whose load was given up; a failed attempt is repeated
   at the next check.  Also replaces one loader that has been busy with one load
   for patience_ns while others wait.  Returns the time of the next check. */
static uint64_t
replace_stuck_locked(inf_lifecycle_t *lc)
{
    inf_loader_t *first = NULL;

    for (uint32_t i = 0; i < INF_LOADERS_MAX; i++) {
        inf_loader_t *l = &lc->loaders[i];
        if (l->state == INF_LOADER_STUCK && !l->replaced) {
            (void) replace_locked(lc, l);
        }
        if (l->edit != NULL && !l->unloads && !l->replaced
            && (first == NULL || l->busy_ns < first->busy_ns))
        {
            first = l;
        }
    }
    if (first == NULL) {
        return UINT64_MAX;
    }

    uint64_t now = inf_clock_ns();
    uint64_t at = first->busy_ns + lc->patience_ns;
    if (at > now) {
        return at;
    }
    if (inf_list_empty(&lc->set.loads) || lc->set.stopping) {
        return now + lc->patience_ns / 10;      /* nothing waits             */
    }

    if (replace_locked(lc, first)) {
        inf_log(INF_LOG_WARN, "loader busy for %llu s with model=%s; starting"
            " another loader for the queue", (unsigned long long)
            (lc->patience_ns / 1000000000), first->edit->record->title);
    }
    return now + lc->patience_ns / 10;
}

static bool
replace_locked(inf_lifecycle_t *lc, inf_loader_t *l)
{
    inf_err_t *err = inf_lifecycle_add_loader_locked(lc, false);
    l->replaced = err == NULL;
    inf_err_free(err);
    return l->replaced;
}

static bool
start_destroy_locked(inf_loaded_t *loaded)
{
    loaded->state = INF_LOADED_ENDS;
    inf_err_t *err = inf_thread_start(&loaded->thread, "destroyer",
        destroy_main, loaded);
    if (err != NULL) {
        loaded->state = INF_LOADED_UNUSED;
        inf_err_log(inf_err_add(err, "model \"%s\" stays in memory for now",
            loaded->model->name));
        return false;
    }

    return true;
}

static inf_loaded_t *
find_locked(inf_lifecycle_t *lc, inf_loaded_state_t state)
{
    for (inf_link_t *l = lc->destroyed.next; l != &lc->destroyed; l = l->next) {
        inf_loaded_t *loaded = inf_link_entry(l, inf_loaded_t, link);
        if (loaded->state == state) {
            return loaded;
        }
    }

    return NULL;
}

static void *
destroy_main(void *arg)
{
    inf_loaded_t *loaded = arg;
    inf_model_t *model = loaded->model;
    inf_loading_place_t place;

    inf_loading_place_enter(&place, &loaded->core_config->host_policies);
    inf_log(INF_LOG_NOTICE, "model=%s version=%lld is unloaded",
        loaded->record->title, (long long) model->version);
    inf_model_unload(model, loaded->lc->options.plugins,
        loaded->lc->options.children);
    inf_model_source_unref(loaded->source);
    inf_core_config_unref(loaded->core_config);
    inf_loading_place_leave(&place);
    note_unloaded(loaded);
    return NULL;
}

/* The thread's last use of loaded. */
static void
note_unloaded(inf_loaded_t *loaded)
{
    inf_lifecycle_t *lc = loaded->lc;
    inf_model_record_t *r = loaded->record;

    inf_lock(&lc->lock);
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->leaving == loaded) {
            v->leaving = NULL;
            inf_record_version_move(v, INF_VERSION_UNAVAILABLE);
            v->reason = inf_reason_ref(&inf_reason_unloaded);
        }
    }
    inf_reason_unref(loaded->why);
    lc->alive--;
    loaded->state = INF_LOADED_ENDED;
    inf_cond_broadcast(&lc->idle);
    inf_cond_signal(&lc->reap);
    inf_unlock(&lc->lock);
}
