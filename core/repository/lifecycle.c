#include "core/repository/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/model/config_load.h"
#include "core/model/versions.h"
#include "core/repository/backend_table.h"
#include "core/repository/model_load.h"

#define LIFECYCLE_RANK 10
#define PUBLISH_RANK   5
#define LOADERS_MAX    64u

typedef struct {
    int64_t              version;
    inf_version_state_t  state;
    char                *reason;        /* NULL: none                        */
    inf_model_t         *model;         /* a reference while READY           */
} lifecycle_version_t;

typedef struct {
    inf_link_t           link;          /* in lc->models, by name            */
    char                *name;
    char                *dir;
    bool                 refused;       /* there will be no version          */
    char                *reason;        /* why; NULL: out of memory          */
    inf_storage_t       *storage;
    int64_t             *found;         /* what the directory holds          */
    size_t               found_count;
    lifecycle_version_t *versions;
    size_t               version_count;
} lifecycle_model_t;

typedef struct {
    inf_link_t         link;
    lifecycle_model_t *model;
} lifecycle_job_t;

/* A thread that takes one model apart. */
typedef struct {
    inf_link_t   link;                  /* in lc->destroyers                 */
    inf_model_t *model;
    pthread_t    thread;
    bool         done;                  /* nothing is left but to join it    */
} lifecycle_destroyer_t;

struct inf_lifecycle_s {
    inf_lifecycle_options_t  options;
    inf_backend_table_t     *backends;

    inf_lock_t               publish_lock;  /* rank 5: one snapshot at a
                                               time                          */
    inf_lock_t               lock;      /* rank 10; guards what follows      */
    inf_cond_t               work;      /* jobs or stopping                  */
    inf_cond_t               idle;      /* busy or alive went down           */
    inf_link_t               models;
    size_t                   model_count;
    inf_link_t               jobs;
    uint32_t                 busy;      /* jobs queued or running            */
    uint64_t                 alive;     /* model objects not yet destroyed   */
    inf_link_t               destroyers;
    bool                     stopping;

    pthread_t                loaders[LOADERS_MAX];
    uint32_t                 loader_count;
};

static inf_err_t *start_loaders(inf_lifecycle_t *lc);
static void stop_loaders(inf_lifecycle_t *lc);
static void *loader_main(void *arg);
static void load_model(inf_lifecycle_t *lc, lifecycle_model_t *m);
static void refuse_model(inf_lifecycle_t *lc, lifecycle_model_t *m,
    inf_err_t *err);
static inf_err_t *choose_versions(inf_lifecycle_t *lc, lifecycle_model_t *m,
    int64_t **chosen, size_t *count);
static void load_version(inf_lifecycle_t *lc, lifecycle_model_t *m,
    int64_t version);
static inf_err_t *load_watched(const inf_model_load_t *what,
    inf_model_t **out);
static void set_version(inf_lifecycle_t *lc, lifecycle_model_t *m,
    int64_t version, inf_version_state_t state, inf_model_t *model,
    const inf_err_t *err);
static void publish(inf_lifecycle_t *lc);
static bool model_entry_locked(const lifecycle_model_t *m,
    inf_registry_entry_t *e);
static inf_err_t *snapshot_entries(inf_lifecycle_t *lc,
    inf_registry_entry_t **out, uint32_t *count);
static lifecycle_model_t *model_new(const char *name, const char *dir);
static void model_free(lifecycle_model_t *m);
static void model_insert_locked(inf_lifecycle_t *lc, lifecycle_model_t *m);
static void reap(inf_lifecycle_t *lc);
static void last_unref(inf_model_t *model);
static void *destroy_main(void *arg);

static const inf_model_ops_t lifecycle_model_ops = {
    .last_unref = last_unref
};

const char *
inf_version_state_name(inf_version_state_t state)
{
    switch (state) {
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
    inf_lock_init(&lc->publish_lock, PUBLISH_RANK);
    inf_lock_init(&lc->lock, LIFECYCLE_RANK);
    inf_cond_init(&lc->work);
    inf_cond_init(&lc->idle);
    inf_link_init(&lc->models);
    inf_link_init(&lc->jobs);
    inf_link_init(&lc->destroyers);

    inf_err_t *err = inf_backend_table_new(&lc->options, &lc->backends);
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

    stop_loaders(lc);
    reap(lc);

    inf_link_t *link;
    while ((link = inf_list_pop_front(&lc->models)) != NULL) {
        model_free(inf_link_entry(link, lifecycle_model_t, link));
    }

    inf_backend_table_free(lc->backends);
    inf_cond_fini(&lc->work);
    inf_cond_fini(&lc->idle);
    inf_lock_fini(&lc->lock);
    inf_lock_fini(&lc->publish_lock);
    free(lc);
}

inf_err_t *
inf_lifecycle_load(inf_lifecycle_t *lc, inf_storage_t *storage,
    const char *name, const char *dir, const int64_t *versions,
    size_t version_count)
{
    lifecycle_model_t *m = model_new(name, dir);
    lifecycle_job_t *job = calloc(1, sizeof(*job));
    int64_t *found = calloc(version_count + 1, sizeof(*found));

    if (m == NULL || job == NULL || found == NULL) {
        model_free(m);
        free(job);
        free(found);
        return inf_err_nomem();
    }

    if (version_count > 0) {
        memcpy(found, versions, version_count * sizeof(*found));
    }
    m->found = found;
    m->found_count = version_count;
    m->storage = storage;
    job->model = m;

    inf_lock(&lc->lock);
    bool stopping = lc->stopping;
    if (!stopping) {
        model_insert_locked(lc, m);
        inf_list_push_back(&lc->jobs, &job->link);
        lc->busy++;
    }
    inf_unlock(&lc->lock);

    if (stopping) {
        model_free(m);
        free(job);
        return inf_err_new(INF_ERR_UNAVAILABLE, "model \"%s\" is not loaded:"
            " the server is stopping", name);
    }

    inf_cond_signal(&lc->work);
    return NULL;
}

inf_err_t *
inf_lifecycle_refuse(inf_lifecycle_t *lc, const char *name,
    const char *reason)
{
    lifecycle_model_t *m = model_new(name, "");
    char *why = strdup(reason);
    if (m == NULL || why == NULL) {
        model_free(m);
        free(why);
        return inf_err_nomem();
    }

    m->refused = true;
    m->reason = why;
    inf_lock(&lc->lock);
    model_insert_locked(lc, m);
    inf_unlock(&lc->lock);
    publish(lc);
    return NULL;
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
    bool settled = lc->busy == 0;
    inf_unlock(&lc->lock);
    return settled;
}

bool
inf_lifecycle_all_ready(inf_lifecycle_t *lc)
{
    bool ready = true;

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; ready && l != &lc->models;
        l = l->next)
    {
        lifecycle_model_t *m = inf_link_entry(l, lifecycle_model_t, link);
        ready = !m->refused && m->version_count > 0;
        for (size_t i = 0; ready && i < m->version_count; i++) {
            ready = m->versions[i].state == INF_VERSION_READY;
        }
    }
    inf_unlock(&lc->lock);

    return ready;
}

void
inf_lifecycle_index(inf_lifecycle_t *lc, inf_lifecycle_row_fn fn, void *userp)
{
    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        lifecycle_model_t *m = inf_link_entry(l, lifecycle_model_t, link);

        if (m->version_count == 0) {
            fn(userp, m->name, -1, m->refused
                ? INF_VERSION_UNAVAILABLE : INF_VERSION_LOADING,
                m->reason != NULL ? m->reason
                : m->refused ? "out of memory" : "");
        }
        for (size_t i = 0; i < m->version_count; i++) {
            lifecycle_version_t *v = &m->versions[i];
            fn(userp, m->name, v->version, v->state,
                v->reason != NULL ? v->reason : "");
        }
    }
    inf_unlock(&lc->lock);
}

bool
inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns)
{
    uint64_t until = inf_clock_ns() + timeout_ns;
    stop_loaders(lc);

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        lifecycle_model_t *m = inf_link_entry(l, lifecycle_model_t, link);
        for (size_t i = 0; i < m->version_count; i++) {
            lifecycle_version_t *v = &m->versions[i];
            inf_model_t *model = v->model;
            if (model == NULL) {
                continue;
            }

            v->model = NULL;
            v->state = INF_VERSION_UNLOADING;
            inf_unlock(&lc->lock);
            inf_runner_close(model->runner);
            inf_model_unref(model);
            inf_lock(&lc->lock);
        }
    }
    inf_unlock(&lc->lock);
    publish(lc);

    inf_lock(&lc->lock);
    while (lc->alive > 0) {
        if (!inf_cond_wait_until(&lc->idle, &lc->lock, until)) {
            break;
        }
    }
    bool done = lc->alive == 0;
    inf_unlock(&lc->lock);
    return done;
}

static inf_err_t *
start_loaders(inf_lifecycle_t *lc)
{
    uint32_t count = lc->options.load_threads;
    if (count == 0 || count > LOADERS_MAX) {
        count = count == 0 ? 1 : LOADERS_MAX;
    }

    for (uint32_t i = 0; i < count; i++) {
        int rc = pthread_create(&lc->loaders[i], NULL, loader_main, lc);
        if (rc != 0) {
            return inf_err_os(rc, "cannot start a loader thread");
        }
        pthread_setname_np(lc->loaders[i], "loader");
        lc->loader_count++;
    }

    return NULL;
}

/* A load in progress finishes first; queued ones are dropped. */
static void
stop_loaders(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    lc->stopping = true;
    inf_link_t *link;
    while ((link = inf_list_pop_front(&lc->jobs)) != NULL) {
        free(inf_link_entry(link, lifecycle_job_t, link));
        lc->busy--;
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);
    inf_cond_broadcast(&lc->idle);

    for (uint32_t i = 0; i < lc->loader_count; i++) {
        pthread_join(lc->loaders[i], NULL);
    }
    lc->loader_count = 0;
}

static void *
loader_main(void *arg)
{
    inf_lifecycle_t *lc = arg;

    inf_lock(&lc->lock);
    for (;;) {
        inf_link_t *link = inf_list_pop_front(&lc->jobs);
        if (link == NULL) {
            if (lc->stopping) {
                break;
            }
            inf_cond_wait(&lc->work, &lc->lock);
            continue;
        }
        inf_unlock(&lc->lock);

        lifecycle_job_t *job = inf_link_entry(link, lifecycle_job_t, link);
        load_model(lc, job->model);
        free(job);
        publish(lc);

        inf_lock(&lc->lock);
        lc->busy--;
        inf_cond_broadcast(&lc->idle);
    }
    inf_unlock(&lc->lock);
    return NULL;
}

static void
load_model(inf_lifecycle_t *lc, lifecycle_model_t *m)
{
    int64_t *chosen = NULL;
    size_t count = 0;

    inf_err_t *err = choose_versions(lc, m, &chosen, &count);
    lifecycle_version_t *versions = err == NULL
        ? calloc(count, sizeof(*versions)) : NULL;
    if (err == NULL && versions == NULL) {
        err = inf_err_nomem();
    }
    if (err != NULL) {
        refuse_model(lc, m, err);
        free(chosen);
        return;
    }

    for (size_t i = 0; i < count; i++) {
        versions[i].version = chosen[i];
        versions[i].state = INF_VERSION_LOADING;
    }

    inf_lock(&lc->lock);
    m->versions = versions;
    m->version_count = count;
    inf_unlock(&lc->lock);
    publish(lc);

    for (size_t i = 0; i < count; i++) {
        load_version(lc, m, chosen[i]);
    }
    free(chosen);
}

/* No version of m can be loaded; takes err. */
static void
refuse_model(inf_lifecycle_t *lc, lifecycle_model_t *m, inf_err_t *err)
{
    char *why = strdup(inf_err_msg(err));

    inf_lock(&lc->lock);
    m->refused = true;
    m->reason = why;
    inf_unlock(&lc->lock);

    inf_err_log(inf_err_add(err, "model \"%s\" is not loaded", m->name));
}

static inf_err_t *
choose_versions(inf_lifecycle_t *lc, lifecycle_model_t *m, int64_t **chosen,
    size_t *count)
{
    inf_config_options_t opt = {
        .auto_complete = lc->options.auto_complete,
        .config_name = lc->options.config_name
    };
    inf_model_config_t *config;

    inf_err_t *err = inf_model_config_read(m->storage, m->dir, m->name, &opt,
        &config);
    if (err != NULL) {
        return err;
    }

    *chosen = calloc(m->found_count + 1, sizeof(**chosen));
    if (*chosen == NULL) {
        inf_model_config_unref(config);
        return inf_err_nomem();
    }

    if (m->found_count > 0) {
        memcpy(*chosen, m->found, m->found_count * sizeof(**chosen));
    }
    err = inf_versions_choose(config->msg->version_policy, m->name, *chosen,
        m->found_count, count);
    inf_model_config_unref(config);
    return err;
}

static void
load_version(inf_lifecycle_t *lc, lifecycle_model_t *m, int64_t version)
{
    const inf_model_load_t what = {
        .options = &lc->options,
        .backends = lc->backends,
        .storage = m->storage,
        .name = m->name,
        .dir = m->dir,
        .version = version,
        .ops = &lifecycle_model_ops,
        .owner = lc
    };
    inf_model_t *model = NULL;
    uint64_t start = inf_clock_ns();

    inf_err_t *err = load_watched(&what, &model);
    if (err != NULL) {
        inf_log(INF_LOG_ERROR, "model=%s version=%lld failed to load: %s",
            m->name, (long long) version, inf_err_msg(err));
        set_version(lc, m, version, INF_VERSION_UNAVAILABLE, NULL, err);
        inf_err_free(err);
        return;
    }

    inf_lock(&lc->lock);
    lc->alive++;
    inf_unlock(&lc->lock);

    inf_log(INF_LOG_INFO, "model=%s version=%lld is ready after %llu ms",
        m->name, (long long) version,
        (unsigned long long) ((inf_clock_ns() - start) / 1000000));
    set_version(lc, m, version, INF_VERSION_READY, model, NULL);
}

static inf_err_t *
load_watched(const inf_model_load_t *what, inf_model_t **out)
{
    const inf_lifecycle_options_t *o = what->options;
    void *mark = NULL;

    if (o->watch == NULL) {
        return inf_model_load(what, out);
    }

    inf_err_t *err = o->watch->begin(o->watch_userp, what->name,
        what->version, &mark);
    if (err == NULL) {
        err = inf_model_load(what, out);
        o->watch->end(o->watch_userp, mark);
    }

    return err;
}

static void
set_version(inf_lifecycle_t *lc, lifecycle_model_t *m, int64_t version,
    inf_version_state_t state, inf_model_t *model, const inf_err_t *err)
{
    inf_buf_t reason;
    inf_buf_init(&reason);
    if (err != NULL) {
        inf_buf_printf(&reason, "%s: %s",
            inf_err_code_string(inf_err_code(err)), inf_err_msg(err));
    }
    char *why = err != NULL ? inf_buf_give(&reason, NULL) : NULL;

    inf_lock(&lc->lock);
    for (size_t i = 0; i < m->version_count; i++) {
        lifecycle_version_t *v = &m->versions[i];
        if (v->version == version) {
            char *old = v->reason;
            v->state = state;
            v->reason = why;
            v->model = model;
            why = old;
        }
    }
    inf_unlock(&lc->lock);
    free(why);
    publish(lc);
}

/* What is READY now becomes the snapshot that requests are served from. */
static void
publish(inf_lifecycle_t *lc)
{
    inf_registry_entry_t *entries = NULL;
    uint32_t count = 0;

    inf_lock(&lc->publish_lock);
    inf_err_t *err = snapshot_entries(lc, &entries, &count);
    if (err == NULL) {
        err = inf_registry_publish(lc->options.registry, entries, count);
    }
    inf_unlock(&lc->publish_lock);

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "cannot publish the models"));
        return;
    }

    lc->options.changed(lc->options.userp);
}

/* Versions that were found count as not ready until they are chosen. */
static bool
model_entry_locked(const lifecycle_model_t *m, inf_registry_entry_t *e)
{
    bool waiting = m->version_count == 0;
    size_t count = waiting ? m->found_count : m->version_count;

    e->loading = waiting;
    e->name = strdup(m->name);
    e->versions = calloc(count + 1, sizeof(*e->versions));
    if (e->name == NULL || e->versions == NULL) {
        return false;
    }

    for (size_t i = 0; i < count; i++) {
        inf_registry_version_t *v = &e->versions[e->version_count++];
        if (waiting) {
            v->version = m->found[i];
            continue;
        }

        v->version = m->versions[i].version;
        v->model = m->versions[i].model;
        e->loading |= m->versions[i].state == INF_VERSION_LOADING;
        if (v->model != NULL) {
            inf_model_ref(v->model);
        }
    }

    return true;
}

static inf_err_t *
snapshot_entries(inf_lifecycle_t *lc, inf_registry_entry_t **out,
    uint32_t *count)
{
    inf_lock(&lc->lock);

    uint32_t n = 0;
    inf_registry_entry_t *entries = calloc(lc->model_count + 1,
        sizeof(*entries));
    bool ok = entries != NULL;

    for (inf_link_t *l = lc->models.next; ok && l != &lc->models; l = l->next) {
        lifecycle_model_t *m = inf_link_entry(l, lifecycle_model_t, link);
        if (m->version_count == 0 && m->refused) {
            continue;           /* a name that never had a version           */
        }

        inf_registry_entry_t *e = &entries[n++];
        ok = model_entry_locked(m, e);
    }

    inf_unlock(&lc->lock);

    if (!ok) {
        for (uint32_t i = 0; entries != NULL && i < n; i++) {
            for (uint32_t j = 0; j < entries[i].version_count; j++) {
                inf_model_unref(entries[i].versions[j].model);
            }
            free(entries[i].name);
            free(entries[i].versions);
        }
        free(entries);
        return inf_err_nomem();
    }

    *out = entries;
    *count = n;
    return NULL;
}

static lifecycle_model_t *
model_new(const char *name, const char *dir)
{
    lifecycle_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }

    inf_link_init(&m->link);
    m->name = strdup(name);
    m->dir = strdup(dir);
    if (m->name == NULL || m->dir == NULL) {
        model_free(m);
        return NULL;
    }

    return m;
}

static void
model_free(lifecycle_model_t *m)
{
    if (m == NULL) {
        return;
    }

    for (size_t i = 0; i < m->version_count; i++) {
        free(m->versions[i].reason);
        inf_model_unref(m->versions[i].model);
    }
    free(m->versions);
    free(m->found);
    free(m->reason);
    free(m->name);
    free(m->dir);
    free(m);
}

static void
model_insert_locked(inf_lifecycle_t *lc, lifecycle_model_t *m)
{
    /* scans come sorted: the place is nearly always the end */
    inf_link_t *at = lc->models.prev;
    while (at != &lc->models
        && strcmp(inf_link_entry(at, lifecycle_model_t, link)->name, m->name)
            > 0)
    {
        at = at->prev;
    }

    inf_link_insert(at->next, &m->link);
    lc->model_count++;
}

/* Joins the destroyers that have finished. */
static void
reap(inf_lifecycle_t *lc)
{
    inf_link_t finished;
    inf_link_init(&finished);

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->destroyers.next; l != &lc->destroyers; ) {
        lifecycle_destroyer_t *d = inf_link_entry(l, lifecycle_destroyer_t,
            link);
        l = l->next;
        if (d->done) {
            inf_link_remove(&d->link);
            inf_list_push_back(&finished, &d->link);
        }
    }
    inf_unlock(&lc->lock);

    inf_link_t *link;
    while ((link = inf_list_pop_front(&finished)) != NULL) {
        lifecycle_destroyer_t *d = inf_link_entry(link, lifecycle_destroyer_t,
            link);
        pthread_join(d->thread, NULL);
        free(d);
    }
}

/* May run inside the backend's own call stack: destroy on a fresh thread. */
static void
last_unref(inf_model_t *model)
{
    inf_lifecycle_t *lc = model->owner;
    reap(lc);

    lifecycle_destroyer_t *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        inf_err_log(inf_err_add(inf_err_nomem(), "model \"%s\" stays in"
            " memory", model->name));
        return;
    }
    d->model = model;

    inf_lock(&lc->lock);
    inf_list_push_back(&lc->destroyers, &d->link);
    int rc = pthread_create(&d->thread, NULL, destroy_main, d);
    if (rc != 0) {
        inf_link_remove(&d->link);
    }
    inf_unlock(&lc->lock);

    if (rc != 0) {
        free(d);
        inf_err_log(inf_err_os(rc, "model \"%s\" stays in memory: cannot"
            " start a thread to destroy it", model->name));
    }
}

static void *
destroy_main(void *arg)
{
    lifecycle_destroyer_t *d = arg;
    inf_model_t *model = d->model;
    inf_lifecycle_t *lc = model->owner;

    inf_log(INF_LOG_INFO, "model=%s version=%lld is unloaded", model->name,
        (long long) model->version);
    inf_model_unload(model, lc->options.plugins);

    inf_lock(&lc->lock);
    lc->alive--;
    d->done = true;
    inf_cond_broadcast(&lc->idle);
    inf_unlock(&lc->lock);
    return NULL;
}
