#include "core/repository/polling.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/queue.h"
#include "core/repository/repository_names.h"
#include "core/repository/tried.h"
#include "core/repository/watch.h"

#define POLL_FAR_RANK  1
#define POLL_LOOK_RANK 2
#define POLL_RANK      9
#define POLL_PATIENCE  5        /* looks at what doesn't hold still          */

/* What the thread is to do. */
typedef struct {
    uint64_t interval_ns;       /* 0: nothing                                */
    bool     watch;
    bool     soon;              /* once                                      */
    bool     stopping;
} orders_t;

/* The thread's own. */
typedef struct {
    uint64_t whole_ns;          /* end of the last look that wasn't early    */
    uint64_t end_ns;            /* of the last look                          */
    uint64_t took_ns;           /* that one, but for its pauses              */
    bool     early;             /* the next one has a reason to be           */
    bool     far;               /* other machines are asked for one, too     */
} pace_t;

/* Who looks at what lies here, or at one repository of another machine: that
   may take long, so each has its own. */
typedef struct {
    inf_link_t        link;         /* in poll->far                          */
    inf_poll_t       *poll;
    inf_repository_t *item;         /* a reference; NULL: what lies here     */
    uint32_t          refs;         /* under far_lock, like what follows     */
    bool              running;      /* its thread looks; far stays           */
    bool              joinable;
    pthread_t         thread;       /* of its last look                      */

    inf_lock_t        lock;         /* rank 2: one look at a time; guards
                                       tried                                 */
    inf_tried_t       tried;
} looker_t;

struct inf_poll_s {
    inf_lifecycle_t          *lc;
    const inf_repositories_t *repositories;
    uint64_t                  settle_ns;
    int                       bell;         /* rung when orders change       */
    looker_t                  near;
    inf_lock_t                far_lock;     /* rank 1; guards far            */
    inf_link_t                far;          /* the others                    */

    inf_lock_t                lock;         /* rank 9; guards the rest, and
                                               what a tally has left         */
    inf_cond_t                wake;
    orders_t                  orders;
    bool                      off;          /* the thread's looks are over   */
    uint64_t                  looks;
    uint64_t                  early;
    bool                      started;
    pthread_t                 thread;
};

/* A model that differs from what is loaded. */
typedef struct {
    inf_model_id_t     id;
    size_t             repository;
    inf_model_stamp_t  stamp;
    bool               settled;
} candidate_t;

/* One look. */
typedef struct {
    inf_poll_t            *poll;
    looker_t              *looker;
    bool                   early;           /* the interval hasn't passed    */
    bool                   own;             /* the thread's                  */
    uint64_t               paused_ns;       /* while files held still        */
    inf_repository_list_t *list;            /* a reference                   */
    inf_arena_t            arena;
    bool                  *failed;          /* by repository                 */
    inf_repository_name_t *names;
    size_t                 name_count;
    candidate_t           *candidates;
    size_t                 count;
    inf_model_id_t        *known;           /* to the lifecycle, sorted      */
    size_t                 known_count;
    bool                   out_of_memory;
} look_t;

/* Loads that somebody waits for. */
typedef struct {
    inf_poll_t *poll;
    size_t      left;           /* under poll->lock                          */
} tally_t;

static void looker_init(looker_t *o, inf_poll_t *poll,
    inf_repository_t *item);
static void looker_fini(looker_t *o);
static inf_err_t *find_looker(inf_poll_t *poll, inf_repository_t *item,
    looker_t **out);
static void release_looker(looker_t *o);
static void drop_lookers(inf_poll_t *poll, const inf_repository_list_t *list);
static void join_far(inf_poll_t *poll);
static inf_err_t *look_far(inf_poll_t *poll);
static inf_err_t *start_look(looker_t *o);
static void *far_main(void *arg);
static void *poll_main(void *arg);
static void pass_orders(inf_poll_t *poll, const orders_t *orders);
static orders_t take_orders(inf_poll_t *poll);
static void renew_watch(inf_poll_t *poll, inf_watch_t *watch);
static void own_look(inf_poll_t *poll, inf_watch_t *watch, pace_t *pace);
static bool wait_for_turn(inf_poll_t *poll, const orders_t *orders,
    const inf_watch_t *watch, pace_t *pace);
static bool sleep_until(inf_poll_t *poll, uint64_t until, int fd,
    bool *readable);
static bool pause_for(look_t *l, uint64_t ns);
static bool is_over(const look_t *l);
static inf_err_t *run_look(look_t *l, bool wait);
static inf_err_t *look(look_t *l, tally_t *tally);
static inf_err_t *find_candidates(look_t *l);
static bool take_stamp(const look_t *l, const inf_model_id_t *id,
    size_t repository, inf_model_stamp_t *stamp, bool *differs);
static size_t settle(look_t *l);
static void load_settled(look_t *l, tally_t *tally);
static bool is_still_there(void *userp, const inf_model_id_t *id);
static inf_err_t *unload_missing(look_t *l, tally_t *tally);
static void known_id(void *userp, const inf_model_id_t *id);
static bool is_hidden(const look_t *l, const inf_model_id_t *id,
    bool known);
static bool is_mine(const look_t *l, const inf_repository_name_t *n);
static bool is_mine_to_unload(const look_t *l, const inf_model_id_t *id);
static const inf_repository_name_t *find_name(const look_t *l,
    const inf_model_id_t *id);
static bool may_come(const look_t *l, const inf_model_id_t *id);
static bool is_there(const look_t *l, const inf_model_id_t *id);
static void tally_add(tally_t *tally);
static void one_ended(void *userp, inf_err_t *err);
static void tally_wait(tally_t *tally);

inf_err_t *
inf_poll_new(inf_lifecycle_t *lc, const inf_repositories_t *repositories,
    uint64_t settle_ns, inf_poll_t **out)
{
    inf_poll_t *poll = calloc(1, sizeof(*poll));
    if (poll == NULL) {
        return inf_err_nomem();
    }

    poll->lc = lc;
    poll->repositories = repositories;
    poll->settle_ns = settle_ns;
    poll->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poll->bell < 0) {
        inf_err_t *err = inf_err_os(errno, "eventfd");
        free(poll);
        return err;
    }
    looker_init(&poll->near, poll, NULL);
    inf_lock_init(&poll->far_lock, POLL_FAR_RANK);
    inf_link_init(&poll->far);
    inf_lock_init(&poll->lock, POLL_RANK);
    inf_cond_init(&poll->wake);
    *out = poll;
    return NULL;
}

void
inf_poll_free(inf_poll_t *poll)
{
    if (poll == NULL) {
        return;
    }

    inf_poll_stop(poll);
    drop_lookers(poll, NULL);
    looker_fini(&poll->near);
    close(poll->bell);
    inf_cond_fini(&poll->wake);
    inf_lock_fini(&poll->lock);
    inf_lock_fini(&poll->far_lock);
    free(poll);
}

inf_err_t *
inf_poll_set(inf_poll_t *poll, uint64_t interval_ns, bool watch)
{
    const orders_t orders = { .interval_ns = interval_ns, .watch = watch };

    inf_lock(&poll->lock);
    bool start = interval_ns > 0 && !poll->started && !poll->orders.stopping;
    inf_unlock(&poll->lock);

    pass_orders(poll, &orders);
    if (!start) {
        return NULL;
    }

    int rc = pthread_create(&poll->thread, NULL, poll_main, poll);
    if (rc != 0) {
        return inf_err_os(rc, "cannot start the thread that polls");
    }

    pthread_setname_np(poll->thread, "poll");
    poll->started = true;
    return NULL;
}

void
inf_poll_hasten(inf_poll_t *poll)
{
    inf_lock(&poll->lock);
    orders_t orders = poll->orders;
    inf_unlock(&poll->lock);

    orders.soon = true;
    pass_orders(poll, &orders);
}

void
inf_poll_stop(inf_poll_t *poll)
{
    const orders_t orders = { .stopping = true };
    if (poll == NULL) {
        return;
    }

    pass_orders(poll, &orders);
    if (poll->started) {
        pthread_join(poll->thread, NULL);
        poll->started = false;
    }
    join_far(poll);
}

void
inf_poll_counts(inf_poll_t *poll, uint64_t *looks, uint64_t *early)
{
    inf_lock(&poll->lock);
    *looks = poll->looks;
    *early = poll->early;
    inf_unlock(&poll->lock);
}

inf_err_t *
inf_poll_look(inf_poll_t *poll, bool wait)
{
    look_t l = { .poll = poll, .looker = &poll->near };
    inf_err_t *err = run_look(&l, wait);
    inf_repository_list_t *list = inf_repositories_take(poll->repositories);

    for (size_t i = 0; err == NULL && i < list->count; i++) {
        looker_t *looker = NULL;
        if (inf_storage_is_remote(list->items[i]->storage)) {
            err = find_looker(poll, list->items[i], &looker);
        }
        if (looker != NULL) {
            l = (look_t) { .poll = poll, .looker = looker };
            err = run_look(&l, wait);
            release_looker(looker);
        }
    }

    inf_repository_list_unref(list);
    return err;
}

static void
looker_init(looker_t *o, inf_poll_t *poll, inf_repository_t *item)
{
    inf_link_init(&o->link);
    o->poll = poll;
    o->item = item != NULL ? inf_repository_ref(item) : NULL;
    o->refs = 1;
    inf_lock_init(&o->lock, POLL_LOOK_RANK);
}

/* Its last look has ended. */
static void
looker_fini(looker_t *o)
{
    inf_tried_fini(&o->tried);
    inf_lock_fini(&o->lock);
    inf_repository_unref(o->item);
}

static inf_err_t *
find_looker(inf_poll_t *poll, inf_repository_t *item, looker_t **out)
{
    looker_t *fresh = calloc(1, sizeof(*fresh));
    if (fresh == NULL) {
        return inf_err_nomem();
    }
    looker_init(fresh, poll, item);

    inf_lock(&poll->far_lock);
    *out = NULL;
    for (inf_link_t *l = poll->far.next; l != &poll->far; l = l->next) {
        looker_t *o = inf_link_entry(l, looker_t, link);
        *out = o->item == item ? o : *out;
    }
    if (*out == NULL) {
        *out = fresh;
        inf_list_push_back(&poll->far, &fresh->link);
        fresh = NULL;
    }
    (*out)->refs++;
    inf_unlock(&poll->far_lock);

    if (fresh != NULL) {
        looker_fini(fresh);
        free(fresh);
    }
    return NULL;
}

static void
release_looker(looker_t *o)
{
    inf_poll_t *poll = o->poll;

    inf_lock(&poll->far_lock);
    bool last = --o->refs == 0;
    inf_unlock(&poll->far_lock);
    if (last) {
        looker_fini(o);
        free(o);
    }
}

/* Those of repositories that list hasn't; NULL: all. */
static void
drop_lookers(inf_poll_t *poll, const inf_repository_list_t *list)
{
    inf_link_t gone;
    inf_link_t *link;
    inf_link_init(&gone);

    inf_lock(&poll->far_lock);
    for (inf_link_t *l = poll->far.next; l != &poll->far; ) {
        looker_t *o = inf_link_entry(l, looker_t, link);
        l = l->next;
        if (!o->running
            && (list == NULL || !inf_repository_list_has(list, o->item)))
        {
            inf_link_remove(&o->link);
            inf_list_push_back(&gone, &o->link);
        }
    }
    inf_unlock(&poll->far_lock);

    while ((link = inf_list_pop_front(&gone)) != NULL) {
        looker_t *o = inf_link_entry(link, looker_t, link);
        if (o->joinable) {
            pthread_join(o->thread, NULL);
        }
        release_looker(o);
    }
}

/* Nobody begins another look. */
static void
join_far(inf_poll_t *poll)
{
    for (;;) {
        looker_t *next = NULL;

        inf_lock(&poll->far_lock);
        for (inf_link_t *l = poll->far.next; l != &poll->far; l = l->next) {
            looker_t *o = inf_link_entry(l, looker_t, link);
            next = o->joinable ? o : next;
        }
        if (next != NULL) {
            next->joinable = false;
        }
        inf_unlock(&poll->far_lock);

        if (next == NULL) {
            return;
        }
        pthread_join(next->thread, NULL);
    }
}

/* On threads of their own; where the last look is still under way no other
   begins.  What was never listed is asked for again. */
static inf_err_t *
look_far(inf_poll_t *poll)
{
    inf_repository_list_t *list = inf_repositories_take(poll->repositories);
    inf_err_t *err = NULL;

    drop_lookers(poll, list);
    if (inf_repository_list_lacks(list, INF_REPOSITORY_FAILED, "")) {
        inf_lifecycle_ask_again(poll->lc);
    }
    for (size_t i = 0; err == NULL && i < list->count; i++) {
        looker_t *o = NULL;
        if (inf_storage_is_remote(list->items[i]->storage)) {
            err = find_looker(poll, list->items[i], &o);
        }
        if (o != NULL) {
            err = start_look(o);
            release_looker(o);
        }
    }

    inf_repository_list_unref(list);
    return err;
}

static inf_err_t *
start_look(looker_t *o)
{
    inf_poll_t *poll = o->poll;
    int rc = 0;

    inf_lock(&poll->far_lock);
    bool idle = !o->running;
    if (idle && o->joinable) {
        pthread_join(o->thread, NULL);      /* it has given up the lock      */
        o->joinable = false;
    }
    if (idle) {
        rc = pthread_create(&o->thread, NULL, far_main, o);
        o->running = rc == 0;
        o->joinable = rc == 0;
    }
    inf_unlock(&poll->far_lock);
    return rc == 0 ? NULL : inf_err_os(rc, "cannot start a thread");
}

static void *
far_main(void *arg)
{
    looker_t *o = arg;
    look_t l = { .poll = o->poll, .looker = o, .own = true };

    pthread_setname_np(pthread_self(), "poll far");
    inf_err_log(inf_err_add(run_look(&l, false),
        "cannot look through the repositories"));
    inf_lock(&o->poll->far_lock);
    o->running = false;
    inf_unlock(&o->poll->far_lock);
    return NULL;
}
static inf_err_t *
run_look(look_t *l, bool wait)
{
    inf_poll_t *poll = l->poll;
    tally_t tally = { .poll = poll };

    inf_arena_init(&l->arena);
    inf_lock(&l->looker->lock);
    l->list = inf_repositories_take(poll->repositories);
    l->failed = calloc(l->list->count + 1, sizeof(*l->failed));
    inf_err_t *err = l->failed != NULL ? look(l, wait ? &tally : NULL)
        : inf_err_nomem();
    inf_unlock(&l->looker->lock);
    tally_wait(&tally);

    for (size_t i = 0; i < l->count; i++) {
        inf_model_stamp_fini(&l->candidates[i].stamp);
    }
    free(l->candidates);
    free(l->known);
    free(l->failed);
    inf_repository_list_unref(l->list);
    inf_arena_fini(&l->arena);
    return err;
}

static void
pass_orders(inf_poll_t *poll, const orders_t *orders)
{
    const uint64_t one = 1;

    inf_lock(&poll->lock);
    if (!poll->orders.stopping) {
        poll->orders = *orders;
    }
    poll->off = poll->orders.interval_ns == 0;
    inf_unlock(&poll->lock);

    inf_cond_broadcast(&poll->wake);
    while (write(poll->bell, &one, sizeof(one)) < 0 && errno == EINTR) {
        continue;
    }
}

static orders_t
take_orders(inf_poll_t *poll)
{
    uint64_t rung;

    while (read(poll->bell, &rung, sizeof(rung)) > 0) {
        continue;
    }
    inf_lock(&poll->lock);
    orders_t orders = poll->orders;
    poll->orders.soon = false;
    inf_unlock(&poll->lock);
    return orders;
}

static void *
poll_main(void *arg)
{
    inf_poll_t *poll = arg;
    inf_watch_t *watch = NULL;
    uint64_t start = inf_clock_ns();
    pace_t pace = { .whole_ns = start, .end_ns = start };

    for (;;) {
        orders_t orders = take_orders(poll);
        if (orders.stopping) {
            break;
        }
        pace.early |= orders.soon;
        pace.far |= orders.soon;
        if (orders.watch && orders.interval_ns > 0 && watch == NULL) {
            inf_err_log(inf_watch_new(INF_WATCH_MAX, &watch));
            if (watch != NULL) {
                renew_watch(poll, watch);   /* and a look at what was before */
                pace.early = true;
            }
        } else if (watch != NULL
            && (!orders.watch || orders.interval_ns == 0))
        {
            inf_watch_free(watch);
            watch = NULL;
        }

        if (wait_for_turn(poll, &orders, watch, &pace)) {
            own_look(poll, watch, &pace);
        }
    }

    inf_watch_free(watch);
    return NULL;
}

static void
renew_watch(inf_poll_t *poll, inf_watch_t *watch)
{
    inf_repository_list_t *list = inf_repositories_take(poll->repositories);
    inf_watch_renew(watch, list);
    inf_repository_list_unref(list);
}

/* What changes during the look makes another one worth while. */
static void
own_look(inf_poll_t *poll, inf_watch_t *watch, pace_t *pace)
{
    look_t l = {
        .poll = poll, .looker = &poll->near, .early = pace->early, .own = true
    };
    uint64_t start = inf_clock_ns();

    if (!l.early || pace->far) {
        inf_err_log(inf_err_add(look_far(poll),
            "cannot look through the repositories of other machines"));
        pace->far = false;
    }

    if (watch != NULL) {
        renew_watch(poll, watch);
    }
    inf_err_log(inf_err_add(run_look(&l, false),
        "cannot look through the repositories"));

    inf_lock(&poll->lock);
    poll->looks++;
    poll->early += l.early;
    inf_unlock(&poll->lock);

    pace->end_ns = inf_clock_ns();
    pace->took_ns = pace->end_ns - start - l.paused_ns;
    pace->whole_ns = l.early ? pace->whole_ns : pace->end_ns;
    pace->early = false;
}

/* false: there are other orders.  Events are not even looked at before another
   look may come; early looks don't put off the others. */
static bool
wait_for_turn(inf_poll_t *poll, const orders_t *orders,
    const inf_watch_t *watch, pace_t *pace)
{
    if (orders->interval_ns == 0) {
        return sleep_until(poll, UINT64_MAX, -1, NULL);
    }

    uint64_t turn = pace->whole_ns + orders->interval_ns;
    uint64_t gap = pace->took_ns * INF_POLL_GAP_LOOKS;
    uint64_t soonest = pace->end_ns + (gap > INF_POLL_GAP_NS ? gap
        : INF_POLL_GAP_NS);

    if (!sleep_until(poll, soonest < turn ? soonest : turn, -1, NULL)) {
        return false;
    }
    if (!pace->early && soonest < turn && !sleep_until(poll, turn,
            watch != NULL ? inf_watch_fd(watch) : -1, &pace->early))
    {
        return false;
    }

    pace->early = pace->early && inf_clock_ns() < turn;
    return true;
}

/* false: other orders came.  fd -1: none; *readable: that's why it ended. */
static bool
sleep_until(inf_poll_t *poll, uint64_t until, int fd, bool *readable)
{
    struct pollfd fds[2] = {
        { .fd = poll->bell, .events = POLLIN },
        { .fd = fd, .events = POLLIN }
    };

    for (;;) {
        uint64_t now = inf_clock_ns();
        if (now >= until) {
            return true;
        }

        uint64_t left = until - now;
        struct timespec ts = {
            .tv_sec = (time_t) (left / 1000000000 < INT32_MAX
                ? left / 1000000000 : INT32_MAX),
            .tv_nsec = (long) (left % 1000000000)
        };
        int n = ppoll(fds, 2, &ts, NULL);
        if (n > 0 && fds[0].revents != 0) {
            return false;
        }
        if (n > 0 && fds[1].revents != 0) {
            *readable = true;
            return true;
        }
    }
}

/* false: the look is over. */
static bool
pause_for(look_t *l, uint64_t ns)
{
    inf_poll_t *poll = l->poll;
    uint64_t start = inf_clock_ns();
    uint64_t until = start + ns;
    bool waiting = true;

    inf_lock(&poll->lock);
    while (waiting && !poll->orders.stopping && !(l->own && poll->off)) {
        waiting = inf_cond_wait_until(&poll->wake, &poll->lock, until);
    }
    inf_unlock(&poll->lock);
    l->paused_ns += inf_clock_ns() - start;
    return !is_over(l);
}

/* Others' looks end with the server, the thread's own with its orders. */
static bool
is_over(const look_t *l)
{
    inf_poll_t *poll = l->poll;

    inf_lock(&poll->lock);
    bool over = poll->orders.stopping || (l->own && poll->off);
    inf_unlock(&poll->lock);
    return over;
}

static inf_err_t *
look(look_t *l, tally_t *tally)
{
    inf_err_t *err = inf_repositories_names_seen(l->list, l->looker->item,
        &l->arena, l->failed, &l->names, &l->name_count);
    if (err == NULL) {
        err = find_candidates(l);
    }
    if (err == NULL && !is_over(l)) {
        err = unload_missing(l, tally);
    }
    if (err == NULL && memchr(l->failed, true, l->list->count) == NULL) {
        inf_lifecycle_listed(l->poll->lc, l->list, l->failed);
    }
    if (err != NULL || l->count == 0) {
        return err;
    }

    for (int i = 0; i < POLL_PATIENCE; i++) {
        if (!pause_for(l, l->poll->settle_ns)) {
            return NULL;
        }
        size_t restless = settle(l);
        load_settled(l, tally);
        if (restless == 0) {
            break;
        }
    }
    return NULL;
}

static inf_err_t *
find_candidates(look_t *l)
{
    l->candidates = calloc(l->name_count + 1, sizeof(*l->candidates));
    if (l->candidates == NULL) {
        return inf_err_nomem();
    }
    inf_tried_forget(&l->looker->tried, is_still_there, l);

    for (size_t i = 0; i < l->name_count; i++) {
        const inf_repository_name_t *n = &l->names[i];
        candidate_t c = { .id = n->id, .repository = n->repository };
        bool differs;

        if (n->duplicate || n->problem != NULL || !is_mine(l, n)
            || is_hidden(l, &n->id, false)
            || !take_stamp(l, &n->id, n->repository, &c.stamp, &differs))
        {
            continue;
        }
        if (differs && !inf_tried_is(&l->looker->tried, &c.id, &c.stamp)) {
            l->candidates[l->count++] = c;
        } else {
            inf_model_stamp_fini(&c.stamp);
        }
    }

    return NULL;
}

/* false: it can't be looked at now. */
static bool
take_stamp(const look_t *l, const inf_model_id_t *id, size_t repository,
    inf_model_stamp_t *stamp, bool *differs)
{
    const inf_scan_root_t *root = &l->list->roots[repository];
    char *dir = inf_path_join(root->root, id->name);
    inf_err_t *err = dir == NULL ? inf_err_nomem()
        : inf_model_stamp_take(root->storage, dir, stamp);

    if (err == NULL) {
        *differs = inf_lifecycle_differs(l->poll->lc, id,
            l->list->items[repository], dir, stamp);
    }
    free(dir);

    bool taken = err == NULL;
    if (!taken && inf_err_code(err) != INF_ERR_NOT_FOUND) {
        inf_log(INF_LOG_WARN, "model=%s can't be looked at: %s", id->name,
            inf_err_msg(err));
    }
    inf_err_free(err);
    return taken;
}

/* Another look at what differs; returns how much of it still moves. */
static size_t
settle(look_t *l)
{
    size_t restless = 0;

    for (size_t i = 0; i < l->count; i++) {
        candidate_t *c = &l->candidates[i];
        inf_model_stamp_t now;
        bool differs;

        if (!take_stamp(l, &c->id, c->repository, &now, &differs)) {
            c->settled = false;
            restless++;
            continue;
        }

        c->settled = inf_model_stamp_equal(&c->stamp, &now);
        restless += !c->settled;
        inf_model_stamp_fini(&c->stamp);
        c->stamp = now;
    }

    return restless;
}

/* Those that still move stay candidates. */
static void
load_settled(look_t *l, tally_t *tally)
{
    size_t left = 0;

    inf_lifecycle_hold(l->poll->lc);
    for (size_t i = 0; i < l->count; i++) {
        candidate_t *c = &l->candidates[i];
        if (!c->settled) {
            l->candidates[left++] = *c;
            continue;
        }

        tally_add(tally);
        inf_lifecycle_load_id_async(l->poll->lc, &c->id,
            tally != NULL ? one_ended : NULL, tally);
        inf_tried_note(&l->looker->tried, &c->id, &c->stamp);
    }

    l->count = left;
    inf_lifecycle_release(l->poll->lc);
}

/* In an early look. */
static bool
is_still_there(void *userp, const inf_model_id_t *id)
{
    const look_t *l = userp;
    return l->early && is_there(l, id);
}

/* A name in two repositories is as good as gone: neither may serve. */
static inf_err_t *
unload_missing(look_t *l, tally_t *tally)
{
    inf_lifecycle_known(l->poll->lc, known_id, l);
    if (l->out_of_memory) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < l->known_count; i++) {
        const inf_model_id_t *id = &l->known[i];
        if (is_there(l, id) || !is_mine_to_unload(l, id)
            || is_hidden(l, id, true) || may_come(l, id))
        {
            continue;
        }

        tally_add(tally);
        inf_log(INF_LOG_INFO, "model=%s is in no repository now, or in two:"
            " it is unloaded", id->name);
        inf_lifecycle_unload_missing(l->poll->lc, id, l->list,
            tally != NULL ? one_ended : NULL, tally);
    }

    return NULL;
}

static void
known_id(void *userp, const inf_model_id_t *id)
{
    look_t *l = userp;
    if (l->out_of_memory) {
        return;
    }

    inf_model_id_t *wider = realloc(l->known,
        (l->known_count + 1) * sizeof(*wider));
    const char *space = inf_arena_strdup(&l->arena, id->space,
        strlen(id->space));
    const char *name = inf_arena_strdup(&l->arena, id->name,
        strlen(id->name));
    l->known = wider != NULL ? wider : l->known;
    if (wider == NULL || space == NULL || name == NULL) {
        l->out_of_memory = true;
        return;
    }
    l->known[l->known_count++] = (inf_model_id_t) {
        .space = space, .name = name
    };
}

/* Whether it may well be there, in a repository that can't be listed now.
   What is new is not held up by another machine. */
static bool
is_hidden(const look_t *l, const inf_model_id_t *id, bool known)
{
    for (size_t i = 0; i < l->list->count; i++) {
        const inf_scan_root_t *root = &l->list->roots[i];
        bool sure = !known && inf_storage_is_remote(root->storage);
        if (l->failed[i] && (root->space != NULL
            ? strcmp(root->space, id->space) == 0
            : inf_lifecycle_comes_from(l->poll->lc, id, l->list->items[i],
                sure)))
        {
            return true;
        }
    }

    return false;
}

/* What is here and there is judged by who looks there: he has seen both. */
static bool
is_mine(const look_t *l, const inf_repository_name_t *n)
{
    return l->looker->item != NULL ? n->asked : !n->far;
}

/* One that is in no repository, or in two; what lies nowhere is judged where
   it came from. */
static bool
is_mine_to_unload(const look_t *l, const inf_model_id_t *id)
{
    const inf_repository_name_t *n = find_name(l, id);
    if (n != NULL && n->problem == NULL) {
        return is_mine(l, n);
    }
    if (l->looker->item != NULL) {
        return inf_lifecycle_comes_from(l->poll->lc, id, l->looker->item,
            true);
    }

    for (size_t i = 0; i < l->list->count; i++) {
        if (inf_storage_is_remote(l->list->items[i]->storage)
            && inf_lifecycle_comes_from(l->poll->lc, id, l->list->items[i],
                true))
        {
            return false;
        }
    }
    return true;
}

/* Whether it waits for a repository that was never listed. */
static bool
may_come(const look_t *l, const inf_model_id_t *id)
{
    return (inf_repository_list_lacks(l->list, INF_REPOSITORY_AWAITED,
            id->space)
        || inf_repository_list_lacks(l->list, INF_REPOSITORY_FAILED,
            id->space))
        && inf_lifecycle_comes_from(l->poll->lc, id, NULL, false);
}

/* Or may well be: what can't be followed for now. */
static bool
is_there(const look_t *l, const inf_model_id_t *id)
{
    const inf_repository_name_t *n = find_name(l, id);
    return n != NULL && !n->duplicate && (n->problem == NULL || n->unsure);
}

/* NULL: it lies nowhere. */
static const inf_repository_name_t *
find_name(const look_t *l, const inf_model_id_t *id)
{
    size_t low = 0;
    size_t high = l->name_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (inf_model_id_compare(&l->names[mid].id, id) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low < l->name_count && inf_model_id_equal(&l->names[low].id, id)
        ? &l->names[low] : NULL;
}

/* tally may be NULL: nobody waits. */
static void
tally_add(tally_t *tally)
{
    if (tally != NULL) {
        inf_lock(&tally->poll->lock);
        tally->left++;
        inf_unlock(&tally->poll->lock);
    }
}

static void
one_ended(void *userp, inf_err_t *err)
{
    tally_t *tally = userp;

    inf_err_free(err);                  /* the lifecycle has logged it       */
    inf_poll_t *poll = tally->poll;
    inf_lock(&poll->lock);
    tally->left--;
    inf_cond_broadcast(&poll->wake);
    inf_unlock(&poll->lock);
}

static void
tally_wait(tally_t *tally)
{
    inf_poll_t *poll = tally->poll;

    inf_lock(&poll->lock);
    while (tally->left > 0) {
        inf_cond_wait(&poll->wake, &poll->lock);
    }
    inf_unlock(&poll->lock);
}
