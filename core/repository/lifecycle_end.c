/* lifecycle_end.c - how models come into service and how they go. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/repository/model_load.h"

/* A thread that takes one model apart. */
typedef struct {
    inf_link_t   link;                  /* in lc->destroyers                 */
    inf_model_t *model;
    pthread_t    thread;
    bool         done;                  /* nothing is left but to join it    */
} lifecycle_destroyer_t;

static inf_err_t *snapshot_entries(inf_lifecycle_t *lc,
    inf_registry_entry_t **out, uint32_t *count);
static bool serves_locked(const inf_model_record_t *r);
static void last_unref(inf_model_t *model);
static void *destroy_main(void *arg);
static void note_unloaded(inf_loaded_t *loaded, lifecycle_destroyer_t *d);

const inf_model_ops_t inf_lifecycle_model_ops = {
    .last_unref = last_unref
};

void
inf_lifecycle_publish(inf_lifecycle_t *lc)
{
    inf_lock(&lc->publish_lock);
    inf_lifecycle_publish_unlock(lc);
}

void
inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
{
    inf_registry_entry_t *entries = NULL;
    uint32_t count = 0;

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

inf_model_t *
inf_lifecycle_withdraw_locked(inf_record_version_t *v)
{
    inf_model_t *model = v->model;
    if (model == NULL) {
        return NULL;
    }

    v->model = NULL;
    v->leaving = model->owner;
    v->state = INF_VERSION_UNLOADING;
    free(v->reason);
    v->reason = NULL;
    return model;
}

void
inf_lifecycle_drop_locked(inf_model_t *model, inf_link_t *gone)
{
    if (model == NULL) {
        return;
    }

    inf_loaded_t *loaded = model->owner;
    loaded->model = model;
    inf_list_push_back(gone, &loaded->gone);
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

    for (inf_link_t *l = lc->models.next; ok && l != &lc->models;
        l = l->next)
    {
        inf_model_record_t *r = inf_link_entry(l, inf_model_record_t, link);
        if (serves_locked(r)) {
            ok = inf_model_record_entry(r, &entries[n++]);
        }
    }

    inf_unlock(&lc->lock);

    if (!ok) {
        for (uint32_t i = 0; entries != NULL && i < n; i++) {
            for (uint32_t j = 0; j < entries[i].version_count; j++) {
                inf_model_unref(entries[i].versions[j].model);
            }
            free(entries[i].name);
            free(entries[i].space);
            free(entries[i].lost);
            free(entries[i].versions);
        }
        free(entries);
        return inf_err_nomem();
    }

    *out = entries;
    *count = n;
    return NULL;
}

/* A name that has, had or will have a version. */
static bool
serves_locked(const inf_model_record_t *r)
{
    return r->version_count > 0 || (r->wanted && !r->refused);
}

void
inf_lifecycle_reap(inf_lifecycle_t *lc)
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

const inf_model_t *
inf_lifecycle_next_leaving_locked(const inf_lifecycle_t *lc,
    const inf_link_t **at)
{
    const inf_link_t *l = *at == NULL ? lc->destroyers.next : (*at)->next;

    for (; l != &lc->destroyers; l = l->next) {
        const lifecycle_destroyer_t *d = inf_link_entry(l,
            lifecycle_destroyer_t, link);
        if (!d->done) {
            *at = l;
            return d->model;
        }
    }

    return NULL;
}

/* May run inside the backend's own call stack: destroy on a fresh thread. */
static void
last_unref(inf_model_t *model)
{
    inf_loaded_t *loaded = model->owner;
    inf_lifecycle_t *lc = loaded->lc;
    inf_lifecycle_reap(lc);

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
    inf_loaded_t *loaded = model->owner;

    inf_log(INF_LOG_INFO, "model=%s version=%lld is unloaded",
        loaded->record->title, (long long) model->version);
    inf_model_unload(model, loaded->lc->options.plugins,
        loaded->lc->options.children);
    inf_model_home_unref(loaded->home);
    inf_lifecycle_terms_unref(loaded->terms);
    note_unloaded(loaded, d);
    return NULL;
}

/* The last that is done with loaded and d. */
static void
note_unloaded(inf_loaded_t *loaded, lifecycle_destroyer_t *d)
{
    inf_lifecycle_t *lc = loaded->lc;
    inf_model_record_t *r = loaded->record;
    char *reason = strdup(INF_REASON_UNLOADED);

    inf_lock(&lc->lock);
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->leaving == loaded) {
            v->leaving = NULL;
            v->state = INF_VERSION_UNAVAILABLE;
            v->reason = reason;
            reason = NULL;
        }
    }
    free(loaded->why);
    free(loaded);
    lc->alive--;
    d->done = true;
    inf_cond_broadcast(&lc->idle);
    inf_unlock(&lc->lock);
    free(reason);
}
