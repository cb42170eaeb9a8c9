#include "core/repository/arrivals.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/log.h"
#include "core/base/queue.h"

#define ARRIVALS_RANK 58

/* One listing. */
typedef struct {
    inf_link_t        link;
    inf_arrivals_t   *arrivals;
    inf_repository_t *item;         /* a reference                           */
    bool              listed;       /* or has failed                         */
    bool              ended;        /* the thread needs only to be joined    */
    pthread_t         thread;
} arrival_t;

struct inf_arrivals_s {
    inf_repositories_t *repositories;
    void              (*arrived)(void *userp, const inf_repository_t *item);
    void               *userp;

    inf_lock_t          lock;       /* rank 58; guards the rest              */
    inf_cond_t          ended;
    inf_link_t          all;
    bool                stopping;
};

static void begin_one(inf_arrivals_t *a, inf_repository_t *item);
static bool is_listed_now_locked(const inf_arrivals_t *a,
    const inf_repository_t *item) INF_NEEDS(a->lock);
static void give_up_removed(inf_arrivals_t *a);
static bool is_in(const inf_repository_list_t *list,
    const inf_repository_t *item);
static void *arrival_main(void *arg);
static void reap(inf_arrivals_t *a, bool all);
static void arrival_free(arrival_t *t);

inf_err_t *
inf_arrivals_new(inf_repositories_t *repositories,
    void (*arrived)(void *userp, const inf_repository_t *item), void *userp,
    inf_arrivals_t **out)
{
    inf_arrivals_t *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return inf_err_nomem();
    }

    a->repositories = repositories;
    a->arrived = arrived;
    a->userp = userp;
    inf_lock_init(&a->lock, ARRIVALS_RANK);
    inf_cond_init(&a->ended);
    inf_link_init(&a->all);
    *out = a;
    return NULL;
}

void
inf_arrivals_free(inf_arrivals_t *a)
{
    if (a == NULL) {
        return;
    }

    inf_arrivals_stop(a);
    inf_cond_fini(&a->ended);
    inf_lock_fini(&a->lock);
    free(a);
}

void
inf_arrivals_begin(inf_arrivals_t *a, bool retry)
{
    give_up_removed(a);
    reap(a, false);

    inf_repository_list_t *list = inf_repositories_take(a->repositories);
    for (size_t i = 0; i < list->awaited_count; i++) {
        inf_repository_t *item = list->awaited[i];
        if (retry) {
            inf_repository_retry(item);
        }
        begin_one(a, item);
    }
    inf_repository_list_unref(list);
}

void
inf_arrivals_wait(inf_arrivals_t *a)
{
    inf_lock(&a->lock);
    for (inf_link_t *l = a->all.next; l != &a->all; ) {
        if (!inf_link_entry(l, arrival_t, link)->ended) {
            inf_cond_wait(&a->ended, &a->lock);
            l = a->all.next;                /* others may have gone          */
        } else {
            l = l->next;
        }
    }
    inf_unlock(&a->lock);
}

void
inf_arrivals_stop(inf_arrivals_t *a)
{
    if (a == NULL) {
        return;
    }

    inf_lock(&a->lock);
    a->stopping = true;
    for (inf_link_t *l = a->all.next; l != &a->all; l = l->next) {
        inf_storage_cancel(inf_link_entry(l, arrival_t, link)->item->storage);
    }
    inf_unlock(&a->lock);
    reap(a, true);
}

/* Unless it is being listed, or isn't awaited at all. */
static void
begin_one(inf_arrivals_t *a, inf_repository_t *item)
{
    arrival_t *t = calloc(1, sizeof(*t));
    inf_err_t *err = t == NULL ? inf_err_nomem() : NULL;
    bool begun = false;

    if (t != NULL) {
        inf_link_init(&t->link);
        t->arrivals = a;
        t->item = inf_repository_ref(item);
    }

    inf_lock(&a->lock);
    bool needed = !a->stopping && !is_listed_now_locked(a, item)
        && atomic_load(&item->state) == INF_REPOSITORY_AWAITED;
    if (needed && err == NULL) {
        int rc = pthread_create(&t->thread, NULL, arrival_main, t);
        err = rc == 0 ? NULL : inf_err_os(rc, "cannot start a thread");
        begun = rc == 0;
    }
    if (begun) {
        pthread_setname_np(t->thread, "arrival");
        inf_list_push_back(&a->all, &t->link);
    }
    inf_unlock(&a->lock);

    if (!begun) {
        arrival_free(t);
    }
    if (needed && !begun) {
        inf_repository_note_failure(item, err);
        atomic_store(&item->state, INF_REPOSITORY_FAILED);
        inf_err_log(inf_err_add(err, "model repository '%s' can't be listed",
            item->root));
        a->arrived(a->userp, item);
    } else {
        inf_err_free(err);
    }
}

static bool
is_listed_now_locked(const inf_arrivals_t *a, const inf_repository_t *item)
{
    for (inf_link_t *l = a->all.next; l != &a->all; l = l->next) {
        const arrival_t *t = inf_link_entry(l, arrival_t, link);
        if (t->item == item && !t->listed) {
            return true;
        }
    }

    return false;
}

/* What is being listed was in the set before: under the lock, whatever isn't
   there now was taken out. */
static void
give_up_removed(inf_arrivals_t *a)
{
    inf_lock(&a->lock);
    inf_repository_list_t *list = inf_repositories_take(a->repositories);
    for (inf_link_t *l = a->all.next; l != &a->all; l = l->next) {
        const arrival_t *t = inf_link_entry(l, arrival_t, link);
        if (!t->listed && !is_in(list, t->item)) {
            inf_storage_cancel(t->item->storage);
        }
    }
    inf_unlock(&a->lock);
    inf_repository_list_unref(list);
}

static bool
is_in(const inf_repository_list_t *list, const inf_repository_t *item)
{
    for (size_t i = 0; i < list->awaited_count; i++) {
        if (list->awaited[i] == item) {
            return true;
        }
    }

    return inf_repository_list_has(list, item);
}

static void *
arrival_main(void *arg)
{
    arrival_t *t = arg;
    inf_arrivals_t *a = t->arrivals;

    inf_err_t *err = inf_repositories_admit(a->repositories, t->item);
    if (err != NULL) {
        inf_repository_note_failure(t->item, err);
    }

    inf_lock(&a->lock);
    bool told = !a->stopping;
    t->listed = true;
    if (err != NULL && told) {      /* another try finds this one over; at
                                       the end what waits is told of that    */
        atomic_store(&t->item->state, INF_REPOSITORY_FAILED);
    }
    inf_unlock(&a->lock);

    if (told) {
        inf_err_log(inf_err_add(err, "model repository '%s' can't be listed",
            t->item->root));
        a->arrived(a->userp, t->item);
    } else {
        inf_err_free(err);
    }

    inf_lock(&a->lock);
    t->ended = true;
    inf_unlock(&a->lock);
    inf_cond_broadcast(&a->ended);
    return NULL;
}

/* all: waits for those that haven't ended. */
static void
reap(inf_arrivals_t *a, bool all)
{
    inf_link_t ended;
    inf_link_t *link;
    inf_link_init(&ended);

    inf_lock(&a->lock);
    for (inf_link_t *l = a->all.next; l != &a->all; ) {
        arrival_t *t = inf_link_entry(l, arrival_t, link);
        l = l->next;
        if (all || t->ended) {
            inf_link_remove(&t->link);
            inf_list_push_back(&ended, &t->link);
        }
    }
    inf_unlock(&a->lock);

    while ((link = inf_list_pop_front(&ended)) != NULL) {
        arrival_t *t = inf_link_entry(link, arrival_t, link);
        pthread_join(t->thread, NULL);
        arrival_free(t);
    }
}

/* t may be NULL. */
static void
arrival_free(arrival_t *t)
{
    if (t != NULL) {
        inf_repository_unref(t->item);
        free(t);
    }
}
