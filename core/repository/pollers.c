#include "core/repository/pollers.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/base/queue.h"

#define POLLERS_RANK 56
#define USE(use)     (1u << (use))

/* A repository being listed. */
typedef struct {
    inf_link_t        link;         /* in pollers->active                    */
    inf_pollers_t    *pollers;
    inf_repository_t *item;         /* a reference                           */
    pthread_t         thread;

    /* under the lock of pollers */
    uint32_t          wanted;       /* uses of the next listing              */
    uint32_t          serves;       /* remaining uses of this one            */
    bool              first;        /* this listing is the first             */
    bool              ended;        /* to be joined                          */
} poller_t;

struct inf_pollers_s {
    inf_repositories_t *repositories;   /* set in new()                      */

    /* set in on_listed(), before the first listing */
    inf_listed_fn       listed[INF_LISTED_USES];
    void               *userp[INF_LISTED_USES];

    inf_lock_t          lock;       /* rank 56; guards the rest              */
    inf_cond_t          changed;
    inf_link_t          active;
    bool                stopping;
};

static void begin_one(inf_pollers_t *p, inf_repository_t *item,
    inf_listed_use_t use);
static inf_err_t *start_locked(inf_pollers_t *p, inf_repository_t *item,
    inf_listed_use_t use) INF_NEEDS(p->lock);
static poller_t *find_locked(const inf_pollers_t *p,
    const inf_repository_t *item) INF_NEEDS(p->lock);
static void *poller_main(void *arg);
static bool take_wanted(poller_t *w);
static void report(poller_t *w, bool listed);
static bool reconciles_locked(const inf_pollers_t *p, bool first)
    INF_NEEDS(p->lock);
static void join_ended(inf_pollers_t *p, bool all);
static void poller_free(poller_t *w);

inf_err_t *
inf_pollers_new(inf_repositories_t *repositories, inf_pollers_t **out)
{
    inf_pollers_t *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return inf_err_nomem();
    }

    p->repositories = repositories;
    inf_lock_init(&p->lock, POLLERS_RANK);
    inf_cond_init(&p->changed);
    inf_link_init(&p->active);
    *out = p;
    return NULL;
}

void
inf_pollers_free(inf_pollers_t *p)
{
    if (p == NULL) {
        return;
    }

    inf_pollers_stop(p);
    inf_cond_fini(&p->changed);
    inf_lock_fini(&p->lock);
    free(p);
}

void
inf_pollers_on_listed(inf_pollers_t *p, inf_listed_use_t use,
    inf_listed_fn fn, void *userp)
{
    p->listed[use] = fn;
    p->userp[use] = userp;
}

inf_repositories_t *
inf_pollers_repositories(const inf_pollers_t *p)
{
    return p->repositories;
}

void
inf_pollers_begin(inf_pollers_t *p, uint32_t states, inf_listed_use_t use)
{
    join_ended(p, false);

    inf_repository_list_t *list = inf_repositories_take(p->repositories);
    for (size_t i = 0; i < list->total; i++) {
        if (inf_repository_is_remote(list->items[i])
            && inf_repository_is_in(list->items[i], states))
        {
            begin_one(p, list->items[i], use);
        }
    }
    inf_repository_list_unref(list);
}

static void
begin_one(inf_pollers_t *p, inf_repository_t *item, inf_listed_use_t use)
{
    inf_err_t *err = NULL;

    inf_lock(&p->lock);
    poller_t *w = find_locked(p, item);
    bool pending = inf_repository_is_in(item, INF_REPOSITORY_PENDING);
    bool first = inf_repository_is_in(item, INF_REPOSITORY_NEVER_LISTED);
    if (!p->stopping) {
        inf_repository_retry(item);
    }
    if (!p->stopping && w == NULL) {
        err = start_locked(p, item, use);
    } else if (w != NULL && use == INF_LISTED_RECONCILE && !pending) {
        w->wanted |= USE(use);
    }
    if (err != NULL) {
        inf_repository_settle(item, NULL, err);
    }
    inf_unlock(&p->lock);

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model repository '%s' can't be listed",
            item->root));
        if (use == INF_LISTED_RECONCILE) {
            p->listed[use](p->userp[use], item, first);
        }
    }
}

static inf_err_t *
start_locked(inf_pollers_t *p, inf_repository_t *item, inf_listed_use_t use)
{
    poller_t *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&w->link);
    w->pollers = p;
    w->item = inf_repository_ref(item);
    w->wanted = USE(use);
    inf_err_t *err = inf_thread_start(&w->thread, "poller", poller_main, w);
    if (err != NULL) {
        poller_free(w);
        return err;
    }

    inf_list_push_back(&p->active, &w->link);
    return NULL;
}

static poller_t *
find_locked(const inf_pollers_t *p, const inf_repository_t *item)
{
    for (inf_link_t *l = p->active.next; l != &p->active; l = l->next) {
        poller_t *w = inf_link_entry(l, poller_t, link);
        if (w->item == item && !w->ended) {
            return w;
        }
    }

    return NULL;
}

static void *
poller_main(void *arg)
{
    poller_t *w = arg;

    while (take_wanted(w)) {
        inf_err_t *err = inf_repositories_poll(w->pollers->repositories,
            w->item);
        bool listed = err == NULL;
        if (atomic_load(&w->pollers->repositories->cancelled)) {
            inf_err_free(err);
        } else {
            inf_err_log(inf_err_add(err,
                "model repository '%s' can't be listed", w->item->root));
            report(w, listed);
        }
    }
    return NULL;
}

static bool
take_wanted(poller_t *w)
{
    inf_pollers_t *p = w->pollers;

    inf_lock(&p->lock);
    w->serves = p->stopping ? 0 : w->wanted;
    w->wanted = 0;
    w->first = inf_repository_is_in(w->item, INF_REPOSITORY_NEVER_LISTED);
    w->ended = w->serves == 0;
    inf_cond_broadcast(&p->changed);
    inf_unlock(&p->lock);
    return !w->ended;
}

/* Calls the uses' callbacks; a failed listing is not compared. */
static void
report(poller_t *w, bool listed)
{
    inf_pollers_t *p = w->pollers;

    for (inf_listed_use_t use = 0; use < INF_LISTED_USES; use++) {
        if ((w->serves & USE(use)) != 0
            && (listed || use == INF_LISTED_RECONCILE))
        {
            p->listed[use](p->userp[use], w->item, w->first);
        }

        inf_lock(&p->lock);
        w->serves &= ~USE(use);
        inf_cond_broadcast(&p->changed);
        inf_unlock(&p->lock);
    }
}

bool
inf_pollers_pending(inf_pollers_t *p)
{
    inf_lock(&p->lock);
    bool pending = reconciles_locked(p, false);
    inf_unlock(&p->lock);
    return pending;
}

void
inf_pollers_wait(inf_pollers_t *p)
{
    inf_lock(&p->lock);
    while (reconciles_locked(p, true)) {
        inf_cond_wait(&p->changed, &p->lock);
    }
    inf_unlock(&p->lock);
}

/* Whether a listing for reconciliation runs; first: or a first listing. */
static bool
reconciles_locked(const inf_pollers_t *p, bool first)
{
    for (inf_link_t *l = p->active.next; l != &p->active; l = l->next) {
        const poller_t *w = inf_link_entry(l, poller_t, link);
        if (((w->wanted | w->serves) & USE(INF_LISTED_RECONCILE)) != 0
            && (first || inf_repository_is_in(w->item,
                    INF_REPOSITORY_WAS_LISTED)))
        {
            return true;
        }
    }

    return false;
}

void
inf_pollers_cancel(inf_pollers_t *p)
{
    inf_lock(&p->lock);
    p->stopping = true;
    inf_unlock(&p->lock);
    inf_repositories_cancel(p->repositories);
}

void
inf_pollers_stop(inf_pollers_t *p)
{
    if (p != NULL) {
        inf_pollers_cancel(p);
        join_ended(p, true);
    }
}

/* Joins ended threads; all: waits for the others. */
static void
join_ended(inf_pollers_t *p, bool all)
{
    inf_link_t ended;
    inf_link_t *link;
    inf_link_init(&ended);

    inf_lock(&p->lock);
    for (inf_link_t *l = p->active.next; l != &p->active; ) {
        poller_t *w = inf_link_entry(l, poller_t, link);
        l = l->next;
        if (all || w->ended) {
            inf_link_remove(&w->link);
            inf_list_push_back(&ended, &w->link);
        }
    }
    inf_unlock(&p->lock);

    while ((link = inf_list_pop_front(&ended)) != NULL) {
        poller_t *w = inf_link_entry(link, poller_t, link);
        pthread_join(w->thread, NULL);
        poller_free(w);
    }
}

static void
poller_free(poller_t *w)
{
    inf_repository_unref(w->item);
    free(w);
}
