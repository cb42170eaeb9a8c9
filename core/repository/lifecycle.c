#include "core/repository/lifecycle.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/sched/entrance.h"

#define LIFECYCLE_RANK 10
#define PUBLISH_RANK   5

/* How long the stop waits for finalizers that wait for an exited process, and
   how often it checks. */
#define GRACE_NS       UINT64_C(3000000000)
#define CHECK_NS       UINT64_C(100000000)
#define PATIENCE_NS    UINT64_C(60000000000)

/* Time for a backend to notice that a process of its load has failed. */
#define FAILED_NS      UINT64_C(10000000000)

static inf_err_t *rows_of(inf_lifecycle_t *lc, inf_occasion_t occasion,
    bool ready_only, inf_lifecycle_row_fn fn, void *userp);
static void index_rows(const inf_repository_name_t *n,
    const inf_model_record_t *r, bool ready_only, inf_lifecycle_row_fn fn,
    void *userp);
static bool wait_for_the_end(inf_lifecycle_t *lc, uint64_t until);

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
    lc->core_config = inf_core_config_ref(options->core_config);
    lc->options.registry->namespacing = options->repositories->namespacing;
    inf_lock_init(&lc->publish_lock, PUBLISH_RANK);
    inf_lock_init(&lc->lock, LIFECYCLE_RANK);
    inf_cond_init(&lc->work);
    inf_cond_init(&lc->idle);
    inf_cond_init(&lc->reap);
    lc->patience_ns = PATIENCE_NS;
    lc->failed_patience_ns = FAILED_NS;
    inf_link_init(&lc->calls);
    inf_load_threads_init(&lc->threads);
    lc->options.threads = &lc->threads;
    inf_link_init(&lc->destroyed);
    inf_link_init(&lc->exits);
    inf_timekeeper_init(&lc->timekeeper);
    inf_model_set_init(&lc->set, &inf_lifecycle_set_ops, lc);

    inf_err_t *err = inf_children_new(inf_lifecycle_child_died, lc,
        &lc->options.children);
    if (err == NULL) {
        err = inf_backend_table_new(options->plugins, &lc->backends);
    }
    if (err == NULL) {
        err = inf_agent_table_new(options->agents, &lc->agents);
    }
    if (err == NULL) {
        err = inf_lifecycle_start_reaper(lc);
    }
    if (err == NULL) {
        err = inf_lifecycle_start_loaders(lc);
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
    (void) inf_lifecycle_stop_loaders(lc, UINT64_MAX);
    inf_lifecycle_reap_exits(lc, true);
    inf_lifecycle_stop_reaper(lc);
    inf_children_free(lc->options.children);

    inf_model_set_fini(&lc->set);
    inf_model_ids_fini(&lc->barred);
    inf_timekeeper_fini(&lc->timekeeper);
    inf_agent_table_free(lc->agents);
    inf_backend_table_free(lc->backends);
    inf_core_config_unref(lc->core_config);
    inf_cond_fini(&lc->work);
    inf_cond_fini(&lc->idle);
    inf_cond_fini(&lc->reap);
    inf_load_threads_fini(&lc->threads);
    inf_lock_fini(&lc->lock);
    inf_lock_fini(&lc->publish_lock);
    free(lc);
}

void
inf_lifecycle_reconfigure(inf_lifecycle_t *lc, inf_core_config_t *core_config)
{
    char changed[512];

    inf_core_config_ref(core_config);
    inf_lock(&lc->lock);
    inf_core_config_t *old = lc->core_config;
    lc->core_config = core_config;
    inf_unlock(&lc->lock);

    inf_core_config_differences(old, core_config, INF_RELOAD_LOADS, changed,
        sizeof(changed));
    if (changed[0] != '\0') {
        inf_log(INF_LOG_NOTICE, "models loaded from now on use the changed %s;"
            " loaded models keep their settings", changed);
    }

    inf_core_config_unref(old);
    inf_backend_table_compare(lc->backends, core_config->values);
}

bool
inf_lifecycle_differs(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_repository_t *repository, const char *dir,
    const inf_model_stamp_t *stamp)
{
    inf_lock(&lc->lock);
    const inf_model_record_t *r = inf_model_set_find(&lc->set, id);
    bool differs = r == NULL || (r->state == INF_MODEL_IDLE
        && (r->source == NULL || r->source->repository != repository
        || strcmp(r->source->dir, dir) != 0
        || !inf_model_stamp_equal(&r->source->stamp, stamp)));
    inf_unlock(&lc->lock);
    return differs;
}

void
inf_lifecycle_wait(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    while (lc->set.busy > 0) {
        inf_cond_wait(&lc->idle, &lc->lock);
    }
    inf_unlock(&lc->lock);
}

bool
inf_lifecycle_settled(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    bool settled = lc->set.starting == 0
        && lc->listing != INF_LISTING_PENDING;
    inf_unlock(&lc->lock);
    return settled;
}

bool
inf_lifecycle_is_starting(inf_lifecycle_t *lc, inf_slice_t name)
{
    inf_lock(&lc->lock);
    bool starting = lc->listing == INF_LISTING_PENDING
        || inf_model_set_is_starting(&lc->set, name,
            lc->options.load_composing);
    inf_unlock(&lc->lock);
    return starting;
}

bool
inf_lifecycle_all_ready(inf_lifecycle_t *lc)
{
    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    bool ready = lc->listing == INF_LISTING_WHOLE;
    const inf_model_record_t *r = NULL;
    while (ready && (r = inf_model_set_next(&lc->set, r)) != NULL) {
        ready = inf_model_record_content(r);
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);

    return ready;
}

inf_err_t *
inf_lifecycle_repository_index(inf_lifecycle_t *lc, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp)
{
    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    inf_err_t *err = inf_repository_list_failure(list, "");
    if (err == NULL) {
        err = rows_of(lc, INF_INVENTORY_INDEX, ready_only, fn, userp);
        if (err != NULL && inf_err_code(err) == INF_ERR_NOT_FOUND) {
            err = inf_err_recode(err, INF_ERR_INTERNAL);    /* not an error of
                                                               the call      */
        }
    } else {
        inf_lifecycle_relist(lc);
    }
    inf_repository_list_unref(list);
    return err;
}

inf_err_t *
inf_lifecycle_status_rows(inf_lifecycle_t *lc, inf_lifecycle_row_fn fn,
    void *userp)
{
    return rows_of(lc, INF_INVENTORY_STATUS, false, fn, userp);
}

static inf_err_t *
rows_of(inf_lifecycle_t *lc, inf_occasion_t occasion, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp)
{
    const inf_inventory_query_t q = { .occasion = occasion };
    inf_inventory_t *l;
    size_t i = 0;

    inf_err_t *err = inf_inventory_new(lc->options.repositories, &q, &l);
    if (err != NULL) {
        return err;
    }

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    const inf_model_record_t *r = inf_model_set_next(&lc->set, NULL);
    while (i < l->count || r != NULL) {
        const inf_repository_name_t *n = i < l->count ? &l->names[i] : NULL;
        int order = n == NULL ? 1 : r == NULL ? -1
            : inf_model_id_compare(&n->id, &r->graph.id);

        index_rows(order <= 0 ? n : NULL, order >= 0 ? r : NULL, ready_only,
            fn, userp);
        i += order <= 0;
        r = order >= 0 ? inf_model_set_next(&lc->set, r) : r;
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);

    inf_inventory_unref(l);
    return NULL;
}

/* The rows of one model.  n NULL: no directory; r NULL: never loaded. */
static void
index_rows(const inf_repository_name_t *n, const inf_model_record_t *r,
    bool ready_only, inf_lifecycle_row_fn fn, void *userp)
{
    bool at_start = r != NULL && (r->who & INF_WANTED_AT_START) != 0;

    if (n == NULL) {
        if (at_start && r->version_count == 0) {
            inf_model_record_rows(r, ready_only, fn, userp);
        }
    } else if (n->problem != NULL
        && (r == NULL || !inf_model_record_any_ready(r)))
    {
        if (!ready_only) {
            fn(userp, n->id.name, -1, INF_VERSION_UNAVAILABLE, n->problem);
        }
    } else if (n->duplicate) {
        fn(userp, n->id.name, -1, INF_VERSION_UNAVAILABLE,
            inf_reason_ambiguous.text);
    } else if (at_start
        || (r != NULL && (r->version_count > 0 || r->rejected)))
    {
        inf_model_record_rows(r, ready_only, fn, userp);
    } else if (!ready_only) {
        fn(userp, n->id.name, -1, INF_VERSION_UNKNOWN, "");
    }
}

void
inf_lifecycle_end_loads(inf_lifecycle_t *lc, uint64_t timeout_ns)
{
    (void) inf_lifecycle_stop_loaders(lc, inf_clock_ns() + timeout_ns);
}

bool
inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns)
{
    uint64_t until = inf_clock_ns() + timeout_ns;
    inf_children_stop(lc->options.children);
    if (!inf_lifecycle_stop_loaders(lc, until)) {
        return false;                   /* it may still use models           */
    }

    inf_model_record_t *r = NULL;
    inf_lock(&lc->lock);
    while ((r = inf_model_set_next(&lc->set, r)) != NULL) {
        inf_model_source_t *source = r->source;
        r->source = NULL;
        inf_unlock(&lc->lock);
        inf_model_source_leave(source);
        inf_lock(&lc->lock);
        for (size_t i = 0; i < r->version_count; i++) {
            inf_model_t *model = inf_record_version_withdraw(
                &r->versions[i]);
            if (model == NULL) {
                continue;
            }

            inf_unlock(&lc->lock);
            inf_entrance_close(model);
            inf_entrance_drop_user(model);
            inf_model_unref(model);
            inf_lock(&lc->lock);
        }
    }
    inf_unlock(&lc->lock);
    inf_lifecycle_publish(lc);

    return wait_for_the_end(lc, until);
}

/* Waits until no model is alive, except models that nothing can end. */
static bool
wait_for_the_end(inf_lifecycle_t *lc, uint64_t until)
{
    uint64_t stranded_ns = 0;       /* first seen                            */

    inf_lock(&lc->lock);
    while (lc->alive > 0) {
        uint64_t now = inf_clock_ns();
        bool stranded = inf_lifecycle_stranded(lc);
        stranded_ns = !stranded ? 0 : stranded_ns == 0 ? now : stranded_ns;
        if (now >= until || (stranded && now - stranded_ns > GRACE_NS)) {
            break;
        }

        uint64_t next = now + CHECK_NS;
        inf_cond_wait_until(&lc->idle, &lc->lock, next < until ? next : until);
    }
    bool done = lc->alive == 0;
    inf_unlock(&lc->lock);

    if (!done) {
        inf_lifecycle_forget_stranded(lc);
    }
    return done && inf_lifecycle_stuck_loads(lc) == 0;
}
