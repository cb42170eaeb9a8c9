#include "core/repository/polling.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/repository/comparison.h"
#include "core/repository/poll_schedule.h"
#include "core/storage/watch.h"

#define POLL_RANK 9

typedef struct {
    uint64_t interval_ns;       /* 0: no polls                               */
    bool     watch;
    bool     soon;              /* once                                      */
    bool     stopping;
} settings_t;

struct inf_poll_s {
    inf_lifecycle_t *lc;        /* these are set in new()                    */
    inf_pollers_t   *pollers;
    uint64_t         settle_ns;
    int              notify;    /* an eventfd: the settings have changed     */

    bool             started;   /* used by set and stop alone                */
    pthread_t        thread;    /* likewise                                  */

    inf_lock_t       lock;      /* rank 9; guards the rest, and what a tally
                                   counts                                    */
    inf_cond_t       changed;
    settings_t       settings;
    uint64_t         polls;
    uint64_t         early;
};

/* Used by the polling thread only. */
typedef struct {
    inf_poll_schedule_t schedule;
    inf_last_attempts_t attempts;
    inf_watch_t        *watch;  /* NULL: none                                */
} own_t;

/* Loads and unloads that a caller waits for. */
typedef struct {
    inf_poll_t *poll;
    size_t      ended;          /* under poll->lock                          */
} tally_t;

static void pass_settings(inf_poll_t *poll, const settings_t *settings);
static settings_t take_settings(inf_poll_t *poll);
static void *poll_main(void *arg);
static void set_watch(inf_poll_t *poll, own_t *own, bool wanted);
static void renew_watch(inf_poll_t *poll, inf_watch_t *watch);
static bool wait_for_event(inf_poll_t *poll, uint64_t until_ns, int fd);
static void poll_own(inf_poll_t *poll, own_t *own,
    const inf_poll_decision_t *d);
static void compare_remote(void *userp, inf_repository_t *item, bool first);
static inf_err_t *poll_now(inf_poll_t *poll, inf_repository_t *remote,
    bool own, bool wait);
static inf_err_t *run(inf_poll_t *poll, inf_poll_schedule_t *s,
    inf_comparison_t *c, bool own);
static bool pause_until(inf_poll_t *poll, uint64_t until_ns, bool own);
static bool is_over_locked(const inf_poll_t *poll, bool own)
    INF_NEEDS(poll->lock);
static void one_ended(void *userp, inf_err_t *err);
static void tally_wait(tally_t *tally, size_t queued);

inf_err_t *
inf_poll_new(inf_lifecycle_t *lc, inf_pollers_t *pollers, uint64_t settle_ns,
    inf_poll_t **out)
{
    inf_poll_t *poll = calloc(1, sizeof(*poll));
    if (poll == NULL) {
        return inf_err_nomem();
    }

    poll->lc = lc;
    poll->pollers = pollers;
    poll->settle_ns = settle_ns;
    poll->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poll->notify < 0) {
        inf_err_t *err = inf_err_os(errno, "eventfd");
        free(poll);
        return err;
    }

    inf_lock_init(&poll->lock, POLL_RANK);
    inf_cond_init(&poll->changed);
    inf_pollers_on_listed(pollers, INF_LISTED_COMPARE, compare_remote, poll);
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
    close(poll->notify);
    inf_cond_fini(&poll->changed);
    inf_lock_fini(&poll->lock);
    free(poll);
}

inf_err_t *
inf_poll_set(inf_poll_t *poll, uint64_t interval_ns, bool watch)
{
    const settings_t settings = { .interval_ns = interval_ns, .watch = watch };

    inf_lock(&poll->lock);
    bool stopping = poll->settings.stopping;
    inf_unlock(&poll->lock);

    pass_settings(poll, &settings);
    if (interval_ns == 0 || poll->started || stopping) {
        return NULL;
    }

    inf_err_t *err = inf_thread_start(&poll->thread, "poll", poll_main, poll);
    poll->started = err == NULL;
    return err;
}

void
inf_poll_hasten(inf_poll_t *poll)
{
    inf_lock(&poll->lock);
    settings_t settings = poll->settings;
    inf_unlock(&poll->lock);

    settings.soon = true;
    pass_settings(poll, &settings);
}

void
inf_poll_stop(inf_poll_t *poll)
{
    const settings_t settings = { .stopping = true };
    if (poll == NULL) {
        return;
    }

    pass_settings(poll, &settings);
    if (poll->started) {
        pthread_join(poll->thread, NULL);
        poll->started = false;
    }
}

void
inf_poll_counts(inf_poll_t *poll, uint64_t *polls, uint64_t *early)
{
    inf_lock(&poll->lock);
    *polls = poll->polls;
    *early = poll->early;
    inf_unlock(&poll->lock);
}

inf_err_t *
inf_poll_once(inf_poll_t *poll, bool wait)
{
    inf_repositories_t *repositories = inf_pollers_repositories(
        poll->pollers);
    inf_err_t *err = poll_now(poll, NULL, false, wait);
    inf_repository_list_t *list = inf_repositories_take(repositories);

    for (size_t i = 0; err == NULL && i < list->count; i++) {
        inf_repository_t *item = list->items[i];
        if (!inf_repository_is_remote(item)) {
            continue;
        }

        inf_err_t *failure = inf_repositories_poll(repositories, item);
        if (failure == NULL) {
            err = poll_now(poll, item, false, wait);
        }
        inf_err_log(inf_err_add(failure,
            "model repository '%s' can't be listed", item->root));
    }

    inf_repository_list_unref(list);
    return err;
}

static void
pass_settings(inf_poll_t *poll, const settings_t *settings)
{
    const uint64_t one = 1;

    inf_lock(&poll->lock);
    if (!poll->settings.stopping) {
        poll->settings = *settings;
    }
    inf_unlock(&poll->lock);

    inf_cond_broadcast(&poll->changed);
    while (write(poll->notify, &one, sizeof(one)) < 0 && errno == EINTR) {
        continue;
    }
}

static settings_t
take_settings(inf_poll_t *poll)
{
    uint64_t count;

    while (read(poll->notify, &count, sizeof(count)) > 0) {
        continue;
    }
    inf_lock(&poll->lock);
    settings_t settings = poll->settings;
    poll->settings.soon = false;
    inf_unlock(&poll->lock);
    return settings;
}

static void *
poll_main(void *arg)
{
    inf_poll_t *poll = arg;
    own_t own = { .watch = NULL };
    settings_t settings;

    inf_poll_schedule_init(&own.schedule, poll->settle_ns, inf_clock_ns());
    while (settings = take_settings(poll), !settings.stopping) {
        inf_poll_schedule_set_interval(&own.schedule, settings.interval_ns);
        if (settings.soon) {
            inf_poll_schedule_hasten(&own.schedule, true);
        }
        set_watch(poll, &own, settings.watch && settings.interval_ns > 0);

        const inf_poll_decision_t d = inf_poll_schedule_next(&own.schedule,
            inf_clock_ns());
        if (d.action == INF_POLL_BEGIN) {
            poll_own(poll, &own, &d);
        } else if (wait_for_event(poll, d.until_ns, d.events
                && own.watch != NULL ? inf_watch_fd(own.watch) : -1))
        {
            inf_poll_schedule_hasten(&own.schedule, false);
        }
    }

    inf_last_attempts_fini(&own.attempts);
    inf_watch_free(own.watch);
    return NULL;
}

/* Starts or ends the watch; an early poll finds changes from before it. */
static void
set_watch(inf_poll_t *poll, own_t *own, bool wanted)
{
    if (!wanted) {
        inf_watch_free(own->watch);
        own->watch = NULL;
    } else if (own->watch == NULL) {
        inf_err_log(inf_watch_new(INF_WATCH_MAX, &own->watch));
        if (own->watch != NULL) {
            renew_watch(poll, own->watch);
            inf_poll_schedule_hasten(&own->schedule, false);
        }
    }
}

static void
renew_watch(inf_poll_t *poll, inf_watch_t *watch)
{
    inf_repository_list_t *list = inf_repositories_take(
        inf_pollers_repositories(poll->pollers));
    inf_watch_root_t *roots = calloc(list->count + 1, sizeof(*roots));
    size_t count = 0;

    for (size_t i = 0; roots != NULL && i < list->count; i++) {
        if (!list->items[i]->listed_once) {
            roots[count++] = (inf_watch_root_t) {
                list->roots[i].storage, list->roots[i].root
            };
        }
    }
    if (roots != NULL) {
        inf_watch_renew(watch, roots, count);
    } else {
        inf_err_log(inf_err_nomem());
        inf_watch_stop(watch);
    }

    free(roots);
    inf_repository_list_unref(list);
}

/* Waits until fd (-1: none) is readable; false: until_ns has come, or the
   settings have changed. */
static bool
wait_for_event(inf_poll_t *poll, uint64_t until_ns, int fd)
{
    struct pollfd fds[2] = {
        { .fd = poll->notify, .events = POLLIN },
        { .fd = fd, .events = POLLIN }
    };
    uint64_t now_ns = inf_clock_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec ts = {
        .tv_sec = (time_t) (left_ns / 1000000000 < INT32_MAX
            ? left_ns / 1000000000 : INT32_MAX),
        .tv_nsec = (long) (left_ns % 1000000000)
    };

    return ppoll(fds, 2, &ts, NULL) > 0 && fds[1].revents != 0;
}

/* Polls; a change meanwhile makes another poll due. */
static void
poll_own(inf_poll_t *poll, own_t *own, const inf_poll_decision_t *d)
{
    inf_comparison_t c = {
        .lc = poll->lc, .attempts = &own->attempts, .early = d->early
    };

    if (d->remote) {
        inf_pollers_begin(poll->pollers, INF_REPOSITORY_FAILED,
            INF_LISTED_RECONCILE);
        inf_pollers_begin(poll->pollers, INF_REPOSITORY_WAS_LISTED,
            INF_LISTED_COMPARE);
    }
    if (own->watch != NULL) {
        renew_watch(poll, own->watch);
    }
    inf_err_log(inf_err_add(run(poll, &own->schedule, &c, true),
        "cannot poll the repositories"));
    inf_comparison_fini(&c);

    inf_lock(&poll->lock);
    poll->polls++;
    poll->early += d->early;
    inf_unlock(&poll->lock);
}

/* Callback on the lister's thread. */
static void
compare_remote(void *userp, inf_repository_t *item, bool first)
{
    inf_poll_t *poll = userp;

    (void) first;
    inf_err_log(inf_err_add(poll_now(poll, item, true, false),
        "cannot compare the models of '%s'", item->root));
}

/* Polls; remote: the repository just listed; NULL: local ones. */
static inf_err_t *
poll_now(inf_poll_t *poll, inf_repository_t *remote, bool own, bool wait)
{
    tally_t tally = { .poll = poll };
    inf_comparison_t c = {
        .lc = poll->lc,
        .remote = remote,
        .done = wait ? one_ended : NULL,
        .done_userp = &tally
    };
    inf_poll_schedule_t s;

    inf_poll_schedule_init(&s, poll->settle_ns, inf_clock_ns());
    inf_poll_schedule_begin(&s, inf_clock_ns());
    inf_err_t *err = run(poll, &s, &c, own);
    if (wait) {
        tally_wait(&tally, c.queued);
    }
    inf_comparison_fini(&c);
    return err;
}

/* Carries out a poll until it ends or is given up.  own: on this object's
   threads; a caller's poll is independent of the settings. */
static inf_err_t *
run(inf_poll_t *poll, inf_poll_schedule_t *s, inf_comparison_t *c, bool own)
{
    inf_err_t *err = inf_comparison_find(c, inf_pollers_repositories(
        poll->pollers));
    if (err == NULL && pause_until(poll, 0, own)) {
        err = inf_comparison_unload(c);
    }
    inf_poll_schedule_compared(s, err == NULL ? c->count : 0,
        inf_clock_ns());

    while (s->phase == INF_POLL_SETTLING) {
        const inf_poll_decision_t d = inf_poll_schedule_next(s,
            inf_clock_ns());
        if (d.action == INF_POLL_COMPARE) {
            inf_comparison_load(c);
            inf_poll_schedule_compared(s, c->count, inf_clock_ns());
        } else if (!pause_until(poll, d.until_ns, own)) {
            inf_poll_schedule_give_up(s, inf_clock_ns());
        }
    }
    return err;
}

/* Waits; false: the poll is over. */
static bool
pause_until(inf_poll_t *poll, uint64_t until_ns, bool own)
{
    bool waiting = true;

    inf_lock(&poll->lock);
    while (waiting && !is_over_locked(poll, own)) {
        waiting = inf_cond_wait_until(&poll->changed, &poll->lock, until_ns);
    }
    bool over = is_over_locked(poll, own);
    inf_unlock(&poll->lock);
    return !over;
}

static bool
is_over_locked(const inf_poll_t *poll, bool own)
{
    return poll->settings.stopping
        || (own && poll->settings.interval_ns == 0);
}

static void
one_ended(void *userp, inf_err_t *err)
{
    tally_t *tally = userp;

    inf_err_free(err);                  /* logged by the lifecycle           */
    inf_poll_t *poll = tally->poll;
    inf_lock(&poll->lock);
    tally->ended++;
    inf_cond_broadcast(&poll->changed);
    inf_unlock(&poll->lock);
}

static void
tally_wait(tally_t *tally, size_t queued)
{
    inf_poll_t *poll = tally->poll;

    inf_lock(&poll->lock);
    while (tally->ended < queued) {
        inf_cond_wait(&poll->changed, &poll->lock);
    }
    inf_unlock(&poll->lock);
}
