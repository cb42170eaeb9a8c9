#include "core/repository/repository_change.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/repository/arrivals.h"

#define CHANGE_RANK 61

/* Owns what it points to. */
typedef struct {
    char                 **addresses;
    size_t                 count;
    bool                   all;
    char                 **names;
    size_t                 name_count;
    inf_lifecycle_terms_t *terms;           /* NULL: as they are             */
} wish_t;

struct inf_repository_change_s {
    inf_lifecycle_t    *lifecycle;
    inf_repositories_t *repositories;
    inf_arrivals_t     *arrivals;
    _Atomic bool        pending;

    inf_lock_t          lock;               /* rank 61; guards what follows  */
    inf_cond_t          wake;
    wish_t             *wish;               /* NULL: none waits              */
    wish_t             *now;                /* fulfilled last; while busy the
                                               thread's                      */
    bool                busy;
    bool                arrived;            /* a repository, or its failure  */
    bool                at_start;           /* one that the start waited for */
    bool                stopping;
    bool                started;
    pthread_t           thread;
};

static bool needless(inf_repository_change_t *c,
    const inf_repository_wish_t *w);
static bool same_list(const wish_t *a, const inf_repository_wish_t *b);
static inf_err_t *wish_new(const inf_repository_wish_t *from, wish_t **out);
static char **copy_list(char *const *list, size_t count);
static void free_list(char **list, size_t count);
static void wish_free(wish_t *w);
static inf_err_t *start_locked(inf_repository_change_t *c) INF_NEEDS(c->lock);
static void *change_main(void *arg);
static bool next_locked(inf_repository_change_t *c, wish_t **w,
    inf_follow_t *f) INF_NEEDS(c->lock);
static void arrived(void *userp, const inf_repository_t *item);
static void again(void *userp);
static void fulfil(inf_repository_change_t *c, wish_t *w);
static inf_err_t *change(inf_repository_change_t *c, wish_t *w);
static bool any_unseen(const inf_repository_change_t *c);
static bool any_far(const inf_repository_change_t *c);

inf_err_t *
inf_repository_change_new(inf_lifecycle_t *lc,
    inf_repositories_t *repositories, const inf_repository_wish_t *wish,
    inf_repository_change_t **out)
{
    inf_repository_change_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = wish_new(wish, &c->now);
    if (err == NULL) {
        err = inf_arrivals_new(repositories, arrived, c, &c->arrivals);
    }
    if (err != NULL) {
        wish_free(c->now);
        free(c);
        return err;
    }

    c->lifecycle = lc;
    c->repositories = repositories;
    atomic_init(&c->pending, false);
    inf_lock_init(&c->lock, CHANGE_RANK);
    inf_cond_init(&c->wake);
    inf_lifecycle_on_absence(lc, again, c);
    *out = c;
    return NULL;
}

void
inf_repository_change_begin(inf_repository_change_t *c)
{
    inf_arrivals_begin(c->arrivals, false);
}

void
inf_repository_change_free(inf_repository_change_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_repository_change_stop(c);
    inf_lifecycle_on_absence(c->lifecycle, NULL, NULL);
    inf_arrivals_free(c->arrivals);
    wish_free(c->wish);
    wish_free(c->now);
    inf_cond_fini(&c->wake);
    inf_lock_fini(&c->lock);
    free(c);
}

inf_err_t *
inf_repository_change_ask(inf_repository_change_t *c,
    const inf_repository_wish_t *wish)
{
    wish_t *w = NULL;

    if (needless(c, wish)) {
        return NULL;
    }

    inf_err_t *err = wish_new(wish, &w);
    if (err != NULL) {
        inf_lifecycle_terms_unref(wish->terms);
        return err;
    }

    inf_lock(&c->lock);
    err = start_locked(c);
    if (err == NULL) {
        wish_t *older = c->wish;
        if (older != NULL && w->terms == NULL) {
            w->terms = older->terms;
            older->terms = NULL;
        }
        c->wish = w;
        w = older;
        atomic_store(&c->pending, true);
    }
    inf_unlock(&c->lock);

    inf_cond_broadcast(&c->wake);
    wish_free(w);
    return err;
}

static bool
needless(inf_repository_change_t *c, const inf_repository_wish_t *w)
{
    inf_lock(&c->lock);
    bool idle = !c->busy && c->wish == NULL && same_list(c->now, w);
    inf_unlock(&c->lock);

    inf_repository_list_t *list = inf_repositories_take(c->repositories);
    bool failed = inf_repository_list_lacks(list, INF_REPOSITORY_FAILED, "")
        || inf_repository_list_unseen(list);
    inf_repository_list_unref(list);

    return idle && !failed && w->terms == NULL
        && inf_repositories_named(c->repositories, w->addresses, w->count);
}

static bool
same_list(const wish_t *a, const inf_repository_wish_t *b)
{
    if (a->all || b->all) {
        return a->all == b->all;
    }

    bool same = a->name_count == b->name_count;
    for (size_t i = 0; same && i < a->name_count; i++) {
        same = strcmp(a->names[i], b->names[i]) == 0;
    }
    return same;
}

bool
inf_repository_change_pending(const inf_repository_change_t *c)
{
    return atomic_load(&c->pending);
}

void
inf_repository_change_wait(inf_repository_change_t *c)
{
    for (int i = 0; i < 2; i++) {
        inf_lock(&c->lock);
        while (!c->stopping && (c->busy || c->arrived || c->wish != NULL)) {
            inf_cond_wait(&c->wake, &c->lock);
        }
        inf_unlock(&c->lock);
        if (i == 0) {
            inf_arrivals_wait(c->arrivals);
        }
    }
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

    inf_arrivals_stop(c->arrivals);
    inf_repositories_cancel(c->repositories);
    if (join) {
        pthread_join(c->thread, NULL);
    }
}

/* Takes from's terms on success. */
static inf_err_t *
wish_new(const inf_repository_wish_t *from, wish_t **out)
{
    wish_t *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return inf_err_nomem();
    }

    w->all = from->all;
    w->count = from->count;
    w->name_count = from->name_count;
    w->addresses = copy_list(from->addresses, from->count);
    w->names = copy_list(from->names, from->name_count);
    if (w->addresses == NULL || w->names == NULL) {
        wish_free(w);
        return inf_err_nomem();
    }

    w->terms = from->terms;
    *out = w;
    return NULL;
}

static char **
copy_list(char *const *list, size_t count)
{
    char **copy = calloc(count + 1, sizeof(*copy));

    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(list[i]);
        if (copy[i] == NULL) {
            free_list(copy, i);
            return NULL;
        }
    }

    return copy;
}

static void
free_list(char **list, size_t count)
{
    for (size_t i = 0; list != NULL && i < count; i++) {
        free(list[i]);
    }
    free(list);
}

static void
wish_free(wish_t *w)
{
    if (w == NULL) {
        return;
    }

    free_list(w->addresses, w->count);
    free_list(w->names, w->name_count);
    inf_lifecycle_terms_unref(w->terms);
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
        inf_follow_t f;
        wish_t *w;
        if (!next_locked(c, &w, &f)) {
            inf_cond_wait(&c->wake, &c->lock);
            continue;
        }

        c->busy = true;
        inf_unlock(&c->lock);
        if (w != NULL) {
            fulfil(c, w);
        } else {
            inf_err_log(inf_err_add(inf_lifecycle_follow(c->lifecycle, &f),
                "models of a repository are not loaded"));
        }
        inf_lock(&c->lock);
        c->busy = false;
        atomic_store(&c->pending, c->wish != NULL || c->arrived);
        inf_cond_broadcast(&c->wake);
    }
    inf_unlock(&c->lock);
    return NULL;
}

/* *w NULL: a repository has come, models follow as f says.  false: there is
   nothing to do. */
static bool
next_locked(inf_repository_change_t *c, wish_t **w, inf_follow_t *f)
{
    *w = c->wish;
    if (*w != NULL) {
        c->wish = NULL;
        return true;
    }
    if (!c->arrived) {
        return false;
    }

    *f = (inf_follow_t) {
        .all = c->now->all,
        .names = c->now->names,
        .count = c->now->name_count,
        .before = c->now->names,
        .before_count = c->now->name_count,
        .near = true,
        .arrival = true,
        .at_start = c->at_start
    };
    c->arrived = false;
    c->at_start = false;
    return true;
}

/* Operations that waited for it go on at once. */
static void
arrived(void *userp, const inf_repository_t *item)
{
    inf_repository_change_t *c = userp;
    inf_err_t *err = NULL;

    inf_lock(&c->lock);
    c->arrived = true;
    c->at_start |= item->at_start;
    atomic_store(&c->pending, true);
    if (!c->stopping) {
        err = start_locked(c);
    }
    inf_unlock(&c->lock);

    inf_cond_broadcast(&c->wake);
    inf_lifecycle_arrived(c->lifecycle);
    inf_err_log(inf_err_add(err, "models of a repository are not loaded"));
}

/* Somebody misses what may lie in a repository that has failed. */
static void
again(void *userp)
{
    inf_repository_change_t *c = userp;
    inf_arrivals_begin(c->arrivals, true);
}

/* Takes w: what couldn't be done is not tried again by a wish that is the
   same, but by the next that differs. */
static void
fulfil(inf_repository_change_t *c, wish_t *w)
{
    inf_err_log(inf_err_add(change(c, w), "models don't follow the change of"
        " the configuration"));
    wish_free(c->now);
    c->now = w;
}

static inf_err_t *
change(inf_repository_change_t *c, wish_t *w)
{
    const inf_repository_wish_t list = {
        .all = w->all, .names = w->names, .name_count = w->name_count
    };
    inf_follow_t follow = {
        .near = true,
        .all = w->all,
        .names = w->names,
        .count = w->name_count,
        .before = c->now->names,
        .before_count = c->now->name_count,
        .adopt = c->now->all && !w->all
    };
    bool changed = false;
    bool other = w->terms != NULL || !same_list(c->now, &list);

    inf_err_t *err = NULL;
    if (w->terms != NULL) {
        err = inf_lifecycle_set_terms(c->lifecycle, w->terms);
        w->terms = NULL;
    }
    if (err == NULL) {
        err = inf_repositories_replace(c->repositories, w->addresses,
            w->count, &changed);
    }
    if (err == NULL && changed) {
        inf_log(INF_LOG_INFO, "the repositories have changed");
    }
    inf_arrivals_begin(c->arrivals, true);
    if (changed) {                      /* what is waited for may be gone    */
        inf_lifecycle_arrived(c->lifecycle);
    }
    if (err != NULL || (!changed && !other && !any_unseen(c))) {
        return err;
    }

    /* other machines may take long to say what they have by now */
    err = inf_lifecycle_follow(c->lifecycle, &follow);
    if (err == NULL && any_far(c)) {
        follow.near = false;
        follow.before = follow.names;
        follow.before_count = follow.count;
        follow.adopt = false;
        err = inf_lifecycle_follow(c->lifecycle, &follow);
    }
    return err;
}

static bool
any_unseen(const inf_repository_change_t *c)
{
    inf_repository_list_t *list = inf_repositories_take(c->repositories);
    bool any = inf_repository_list_unseen(list);

    inf_repository_list_unref(list);
    return any;
}

static bool
any_far(const inf_repository_change_t *c)
{
    inf_repository_list_t *list = inf_repositories_take(c->repositories);
    bool any = false;

    for (size_t i = 0; i < list->count; i++) {
        any = any || inf_storage_is_remote(list->items[i]->storage);
    }
    inf_repository_list_unref(list);
    return any;
}
