#include "core/repository/repository_change.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/os/thread.h"

#define CHANGE_RANK 61

/* Kinds of listings not applied to models yet; bits. */
#define FIRST    1u
#define AT_START 2u             /* FIRST, of a repository of the start       */
#define LATER    4u

typedef enum {
    CHANGE_NO_THREAD,
    CHANGE_IDLE,                /* the thread waits                          */
    CHANGE_BUSY
} change_state_t;

/* A desired configuration; all except core_config is in the arena. */
typedef struct {
    inf_arena_t              arena;
    inf_repository_desired_t it;
} desired_t;

struct inf_repository_change_s {
    inf_lifecycle_t *lifecycle;     /* these are set in new()                */
    inf_pollers_t   *pollers;

    _Atomic bool     pending;       /* seq_cst: desired, listings or busy    */

    inf_lock_t       lock;          /* rank 61; guards what follows          */
    inf_cond_t       wake;
    desired_t       *desired;       /* NULL: none                            */
    desired_t       *actual;        /* last put into effect; the thread's while
                                       busy                                  */
    uint32_t         listings;
    change_state_t   state;
    bool             stopping;
    pthread_t        thread;
};

static bool is_needless(inf_repository_change_t *c,
    const inf_repository_desired_t *d);
static bool same_models(const inf_desired_t *a, const inf_desired_t *b);
static bool any_in(const inf_repository_change_t *c, uint32_t states);
static inf_err_t *desired_new(const inf_repository_desired_t *from,
    desired_t **out);
static void desired_free(desired_t *d);
static inf_err_t *start_locked(inf_repository_change_t *c) INF_NEEDS(c->lock);
static void *change_main(void *arg);
static void update_pending_locked(inf_repository_change_t *c)
    INF_NEEDS(c->lock);
static void listed(void *userp, inf_repository_t *item, bool first);
static void relist(void *userp);
static inf_err_t *apply(inf_repository_change_t *c, desired_t *d);
static inf_err_t *reconcile_listings(inf_repository_change_t *c,
    uint32_t listings);

inf_err_t *
inf_repository_change_new(inf_lifecycle_t *lc, inf_pollers_t *pollers,
    const inf_repository_desired_t *desired, inf_repository_change_t **out)
{
    inf_repository_change_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = desired_new(desired, &c->actual);
    if (err != NULL) {
        free(c);
        return err;
    }

    c->lifecycle = lc;
    c->pollers = pollers;
    atomic_init(&c->pending, false);
    inf_lock_init(&c->lock, CHANGE_RANK);
    inf_cond_init(&c->wake);
    inf_pollers_on_listed(pollers, INF_LISTED_RECONCILE, listed, c);
    inf_lifecycle_on_relist(lc, relist, c);
    *out = c;
    return NULL;
}

void
inf_repository_change_begin(inf_repository_change_t *c)
{
    inf_pollers_begin(c->pollers, INF_REPOSITORY_PENDING,
        INF_LISTED_RECONCILE);
}

void
inf_repository_change_free(inf_repository_change_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_repository_change_stop(c);
    inf_lifecycle_on_relist(c->lifecycle, NULL, NULL);
    desired_free(c->desired);
    desired_free(c->actual);
    inf_cond_fini(&c->wake);
    inf_lock_fini(&c->lock);
    free(c);
}

inf_err_t *
inf_repository_change_ask(inf_repository_change_t *c,
    const inf_repository_desired_t *desired)
{
    desired_t *d = NULL;

    if (is_needless(c, desired)) {
        return NULL;
    }

    inf_err_t *err = desired_new(desired, &d);
    if (err != NULL) {
        return err;
    }

    inf_lock(&c->lock);
    err = start_locked(c);
    if (err == NULL) {
        desired_t *older = c->desired;
        if (older != NULL && d->it.core_config == NULL) {
            d->it.core_config = older->it.core_config;
            older->it.core_config = NULL;
        }
        c->desired = d;
        d = older;
        update_pending_locked(c);
    }
    inf_unlock(&c->lock);

    inf_cond_broadcast(&c->wake);
    desired_free(d);
    return err;
}

static bool
is_needless(inf_repository_change_t *c, const inf_repository_desired_t *d)
{
    inf_lock(&c->lock);
    bool same = c->state != CHANGE_BUSY && c->desired == NULL
        && same_models(&c->actual->it.models, &d->models);
    inf_unlock(&c->lock);

    return same && d->core_config == NULL
        && !any_in(c, (uint32_t) INF_REPOSITORY_FAILED | INF_REPOSITORY_STALE)
        && inf_repositories_named(inf_pollers_repositories(c->pollers),
            d->addresses, d->count);
}

static bool
same_models(const inf_desired_t *a, const inf_desired_t *b)
{
    if (a->all || b->all) {
        return a->all == b->all;
    }

    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        same = strcmp(a->names[i], b->names[i]) == 0;
    }
    return same;
}

/* Whether any repository is in one of states. */
static bool
any_in(const inf_repository_change_t *c, uint32_t states)
{
    inf_repository_list_t *list = inf_repositories_take(
        inf_pollers_repositories(c->pollers));
    bool any = inf_repository_list_any(list, states, "");

    inf_repository_list_unref(list);
    return any;
}

bool
inf_repository_change_pending(const inf_repository_change_t *c)
{
    return inf_pollers_pending(c->pollers) || atomic_load(&c->pending);
}

void
inf_repository_change_wait(inf_repository_change_t *c)
{
    for (int i = 0; i < 2; i++) {
        inf_lock(&c->lock);
        while (!c->stopping && atomic_load(&c->pending)) {
            inf_cond_wait(&c->wake, &c->lock);
        }
        inf_unlock(&c->lock);
        if (i == 0) {
            inf_pollers_wait(c->pollers);
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
    bool join = !c->stopping && c->state != CHANGE_NO_THREAD;
    c->stopping = true;
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->wake);

    inf_pollers_cancel(c->pollers);
    if (join) {
        pthread_join(c->thread, NULL);
    }
}

static inf_err_t *
desired_new(const inf_repository_desired_t *from, desired_t **out)
{
    desired_t *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return inf_err_nomem();
    }

    inf_arena_init(&d->arena);
    d->it = *from;
    if (from->core_config != NULL) {
        inf_core_config_ref(from->core_config);
    }
    d->it.addresses = inf_arena_strdup_all(&d->arena, from->addresses,
        from->count);
    d->it.models.names = inf_arena_strdup_all(&d->arena, from->models.names,
        from->models.count);
    if (d->it.addresses == NULL || d->it.models.names == NULL) {
        desired_free(d);
        return inf_err_nomem();
    }

    *out = d;
    return NULL;
}

static void
desired_free(desired_t *d)
{
    if (d != NULL) {
        inf_core_config_unref(d->it.core_config);
        inf_arena_fini(&d->arena);
        free(d);
    }
}

static inf_err_t *
start_locked(inf_repository_change_t *c)
{
    if (c->stopping) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "the server is stopping");
    }
    if (c->state != CHANGE_NO_THREAD) {
        return NULL;
    }

    inf_err_t *err = inf_thread_start(&c->thread, "repositories", change_main,
        c);
    if (err == NULL) {
        c->state = CHANGE_IDLE;
    }
    return err;
}

/* The thread: puts configurations into effect.  A failed one is not tried again
   until another one comes. */
static void *
change_main(void *arg)
{
    inf_repository_change_t *c = arg;

    inf_lock(&c->lock);
    while (!c->stopping) {
        desired_t *d = c->desired;
        uint32_t listings = c->listings;
        if (d == NULL && listings == 0) {
            inf_cond_wait(&c->wake, &c->lock);
            continue;
        }

        c->state = CHANGE_BUSY;
        c->desired = NULL;
        c->listings = d != NULL ? listings : 0;
        inf_unlock(&c->lock);
        if (d != NULL) {
            inf_err_log(inf_err_add(apply(c, d), "the change of the"
                " configuration has no effect on models"));
            desired_free(c->actual);
            c->actual = d;
        } else {
            inf_err_log(inf_err_add(reconcile_listings(c, listings),
                "models of a repository are not loaded"));
        }
        inf_lock(&c->lock);
        c->state = CHANGE_IDLE;
        update_pending_locked(c);
        inf_cond_broadcast(&c->wake);
    }
    inf_unlock(&c->lock);
    return NULL;
}

static void
update_pending_locked(inf_repository_change_t *c)
{
    atomic_store(&c->pending, c->state == CHANGE_BUSY || c->desired != NULL
        || c->listings != 0);
}

/* Called after a listing; edits that waited for a first listing continue. */
static void
listed(void *userp, inf_repository_t *item, bool first)
{
    inf_repository_change_t *c = userp;
    inf_err_t *err = NULL;

    inf_lock(&c->lock);
    c->listings |= !first ? LATER : item->at_start ? FIRST | AT_START : FIRST;
    update_pending_locked(c);
    if (!c->stopping) {
        err = start_locked(c);
    }
    inf_unlock(&c->lock);

    inf_cond_broadcast(&c->wake);
    if (first) {
        inf_lifecycle_resume_pending(c->lifecycle);
    }
    inf_err_log(inf_err_add(err, "models of a repository are not loaded"));
}

/* Lists failed repositories again, because a model is missing. */
static void
relist(void *userp)
{
    inf_repository_change_t *c = userp;
    inf_pollers_begin(c->pollers, INF_REPOSITORY_NEVER_LISTED,
        INF_LISTED_RECONCILE);
}

/* Puts d into effect: reconciles models of local repositories at once, and
   lists remote ones again, whose models follow then. */
static inf_err_t *
apply(inf_repository_change_t *c, desired_t *d)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE,
        .desired = d->it.models,
        .before = c->actual->it.models
    };
    bool other = d->it.core_config != NULL
        || !same_models(&q.before, &q.desired);
    bool changed;

    if (d->it.core_config != NULL) {
        inf_lifecycle_reconfigure(c->lifecycle, d->it.core_config);
        inf_core_config_unref(d->it.core_config);
        d->it.core_config = NULL;
    }
    inf_err_t *err = inf_repositories_replace(inf_pollers_repositories(
        c->pollers), d->it.addresses, d->it.count, &changed);
    if (err == NULL && changed) {
        inf_log(INF_LOG_NOTICE, "the repositories have changed");
    }
    relist(c);
    if (changed) {                      /* an awaited repository may be gone */
        inf_lifecycle_resume_pending(c->lifecycle);
    }
    if (err != NULL || (!changed && !other
            && !any_in(c, INF_REPOSITORY_STALE)))
    {
        return err;
    }

    err = inf_lifecycle_reconcile(c->lifecycle, &q);
    if (err == NULL) {
        inf_pollers_begin(c->pollers, INF_REPOSITORY_WAS_LISTED,
            INF_LISTED_RECONCILE);
    }
    return err;
}

static inf_err_t *
reconcile_listings(inf_repository_change_t *c, uint32_t listings)
{
    inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_CHANGE,
        .desired = c->actual->it.models,
        .before = c->actual->it.models
    };

    inf_err_t *err = (listings & LATER) == 0 ? NULL
        : inf_lifecycle_reconcile(c->lifecycle, &q);
    if (err == NULL && (listings & FIRST) != 0) {
        q.occasion = INF_INVENTORY_FIRST;
        q.at_start = (listings & AT_START) != 0;
        err = inf_lifecycle_reconcile(c->lifecycle, &q);
    }
    return err;
}
