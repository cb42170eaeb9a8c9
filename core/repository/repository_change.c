#include "core/repository/repository_change.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#define CHANGE_RANK 61

typedef struct {
    char   **addresses;
    size_t   count;
} wish_t;

struct inf_repository_change_s {
    inf_repository_change_options_t options;
    _Atomic bool                    pending;

    inf_lock_t                      lock;   /* rank 61; guards what follows  */
    inf_cond_t                      wake;
    wish_t                         *wish;   /* NULL: none waits              */
    bool                            busy;
    bool                            stopping;
    bool                            started;
    pthread_t                       thread;
};

static inf_err_t *wish_new(char *const *addresses, size_t count,
    wish_t **out);
static void wish_free(wish_t *w);
static inf_err_t *start_locked(inf_repository_change_t *c);
static void *change_main(void *arg);
static void fulfil(inf_repository_change_t *c, const wish_t *w);

inf_err_t *
inf_repository_change_new(const inf_repository_change_options_t *options,
    inf_repository_change_t **out)
{
    inf_repository_change_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->options = *options;
    atomic_init(&c->pending, false);
    inf_lock_init(&c->lock, CHANGE_RANK);
    inf_cond_init(&c->wake);
    *out = c;
    return NULL;
}

void
inf_repository_change_free(inf_repository_change_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_repository_change_stop(c);
    wish_free(c->wish);
    inf_cond_fini(&c->wake);
    inf_lock_fini(&c->lock);
    free(c);
}

inf_err_t *
inf_repository_change_ask(inf_repository_change_t *c, char *const *addresses,
    size_t count)
{
    wish_t *w = NULL;

    inf_lock(&c->lock);
    bool idle = !c->busy && c->wish == NULL;
    inf_unlock(&c->lock);
    if (idle && inf_repositories_named(c->options.repositories, addresses,
            count))
    {
        return NULL;
    }

    inf_err_t *err = wish_new(addresses, count, &w);
    if (err != NULL) {
        return err;
    }

    inf_lock(&c->lock);
    err = start_locked(c);
    if (err == NULL) {
        wish_t *older = c->wish;
        c->wish = w;
        w = older;
        atomic_store(&c->pending, true);
    }
    inf_unlock(&c->lock);

    inf_cond_broadcast(&c->wake);
    wish_free(w);
    return err;
}

bool
inf_repository_change_pending(const inf_repository_change_t *c)
{
    return atomic_load(&c->pending);
}

void
inf_repository_change_wait(inf_repository_change_t *c)
{
    inf_lock(&c->lock);
    while (!c->stopping && (c->busy || c->wish != NULL)) {
        inf_cond_wait(&c->wake, &c->lock);
    }
    inf_unlock(&c->lock);
}

void
inf_repository_change_stop(inf_repository_change_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_lock(&c->lock);
    c->stopping = true;
    bool join = c->started;
    c->started = false;
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->wake);

    if (join) {
        pthread_join(c->thread, NULL);
    }
}

static inf_err_t *
wish_new(char *const *addresses, size_t count, wish_t **out)
{
    wish_t *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return inf_err_nomem();
    }

    w->addresses = calloc(count + 1, sizeof(*w->addresses));
    for (size_t i = 0; w->addresses != NULL && i < count; i++) {
        w->addresses[i] = strdup(addresses[i]);
        if (w->addresses[i] == NULL) {
            break;
        }
        w->count++;
    }
    if (w->addresses == NULL || w->count < count) {
        wish_free(w);
        return inf_err_nomem();
    }

    *out = w;
    return NULL;
}

static void
wish_free(wish_t *w)
{
    if (w == NULL) {
        return;
    }

    for (size_t i = 0; i < w->count; i++) {
        free(w->addresses[i]);
    }
    free(w->addresses);
    free(w);
}

static inf_err_t *
start_locked(inf_repository_change_t *c)
{
    if (c->stopping) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "the server is stopping");
    }
    if (c->started) {
        return NULL;
    }

    int rc = pthread_create(&c->thread, NULL, change_main, c);
    if (rc != 0) {
        return inf_err_os(rc, "cannot start the thread that changes the"
            " repositories");
    }

    pthread_setname_np(c->thread, "repositories");
    c->started = true;
    return NULL;
}

static void *
change_main(void *arg)
{
    inf_repository_change_t *c = arg;

    inf_lock(&c->lock);
    while (!c->stopping) {
        wish_t *w = c->wish;
        if (w == NULL) {
            inf_cond_wait(&c->wake, &c->lock);
            continue;
        }

        c->wish = NULL;
        c->busy = true;
        inf_unlock(&c->lock);
        fulfil(c, w);
        wish_free(w);
        inf_lock(&c->lock);
        c->busy = false;
        atomic_store(&c->pending, c->wish != NULL);
        inf_cond_broadcast(&c->wake);
    }
    inf_unlock(&c->lock);
    return NULL;
}

static void
fulfil(inf_repository_change_t *c, const wish_t *w)
{
    const inf_repository_change_options_t *o = &c->options;
    bool changed;

    inf_err_t *err = inf_repositories_replace(o->repositories, w->addresses,
        w->count, &changed);
    if (err == NULL && changed) {
        inf_log(INF_LOG_INFO, "the repositories have changed");
        err = inf_lifecycle_follow(o->lifecycle, o->all);
    }
    inf_err_log(inf_err_add(err, "models don't follow the change of the"
        " repositories"));
}
