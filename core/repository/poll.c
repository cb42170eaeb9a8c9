#include "core/repository/poll.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define POLL_LOOK_RANK 2
#define POLL_RANK      9
#define POLL_PATIENCE  5        /* looks at what doesn't hold still          */

struct inf_poll_s {
    inf_lifecycle_t          *lc;
    const inf_repositories_t *repositories;
    uint64_t                  settle_ns;
    uint64_t                  interval_ns;

    inf_lock_t                look_lock;    /* rank 2: one look at a time    */
    inf_lock_t                lock;         /* rank 9; guards stopping, and
                                               what a tally has left         */
    inf_cond_t                wake;
    bool                      stopping;
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

static void *poll_main(void *arg);
static bool pause_for(inf_poll_t *poll, uint64_t ns);
static inf_err_t *look(look_t *l, tally_t *tally);
static inf_err_t *find_candidates(look_t *l);
static bool take_stamp(const look_t *l, const inf_model_id_t *id,
    size_t repository, inf_model_stamp_t *stamp, bool *differs);
static size_t settle(look_t *l);
static void load_settled(look_t *l, tally_t *tally);
static inf_err_t *unload_missing(look_t *l, tally_t *tally);
static void known_id(void *userp, const inf_model_id_t *id);
static bool is_hidden(const look_t *l, const inf_model_id_t *id);
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
    inf_lock_init(&poll->look_lock, POLL_LOOK_RANK);
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
    inf_cond_fini(&poll->wake);
    inf_lock_fini(&poll->lock);
    inf_lock_fini(&poll->look_lock);
    free(poll);
}

inf_err_t *
inf_poll_start(inf_poll_t *poll, uint64_t interval_ns)
{
    poll->interval_ns = interval_ns;
    int rc = pthread_create(&poll->thread, NULL, poll_main, poll);
    if (rc != 0) {
        return inf_err_os(rc, "cannot start the thread that polls");
    }

    pthread_setname_np(poll->thread, "poll");
    poll->started = true;
    return NULL;
}

void
inf_poll_stop(inf_poll_t *poll)
{
    if (poll == NULL) {
        return;
    }

    inf_lock(&poll->lock);
    poll->stopping = true;
    inf_unlock(&poll->lock);
    inf_cond_broadcast(&poll->wake);

    if (poll->started) {
        pthread_join(poll->thread, NULL);
        poll->started = false;
    }
}

inf_err_t *
inf_poll_look(inf_poll_t *poll, bool wait)
{
    look_t l = { .poll = poll };
    tally_t tally = { .poll = poll };

    inf_arena_init(&l.arena);
    inf_lock(&poll->look_lock);
    l.list = inf_repositories_take(poll->repositories);
    l.failed = calloc(l.list->count + 1, sizeof(*l.failed));
    inf_err_t *err = l.failed != NULL ? look(&l, wait ? &tally : NULL)
        : inf_err_nomem();
    inf_unlock(&poll->look_lock);
    tally_wait(&tally);

    for (size_t i = 0; i < l.count; i++) {
        inf_model_stamp_fini(&l.candidates[i].stamp);
    }
    free(l.candidates);
    free(l.known);
    free(l.failed);
    inf_repository_list_unref(l.list);
    inf_arena_fini(&l.arena);
    return err;
}

static void *
poll_main(void *arg)
{
    inf_poll_t *poll = arg;

    while (pause_for(poll, poll->interval_ns)) {
        inf_err_log(inf_err_add(inf_poll_look(poll, false),
            "cannot look through the repositories"));
    }

    return NULL;
}

/* false: it was stopped. */
static bool
pause_for(inf_poll_t *poll, uint64_t ns)
{
    uint64_t until = inf_clock_ns() + ns;

    inf_lock(&poll->lock);
    while (!poll->stopping
        && inf_cond_wait_until(&poll->wake, &poll->lock, until))
    {
        continue;
    }
    bool on = !poll->stopping;
    inf_unlock(&poll->lock);
    return on;
}

static inf_err_t *
look(look_t *l, tally_t *tally)
{
    inf_err_t *err = inf_repositories_names(l->list, &l->arena, l->failed,
        &l->names, &l->name_count);
    if (err == NULL) {
        err = find_candidates(l);
    }
    if (err == NULL) {
        err = unload_missing(l, tally);
    }
    if (err == NULL && memchr(l->failed, true, l->list->count) == NULL) {
        inf_lifecycle_listed(l->poll->lc, l->failed, l->list->count);
    }
    if (err != NULL || l->count == 0) {
        return err;
    }

    for (int i = 0; i < POLL_PATIENCE; i++) {
        if (!pause_for(l->poll, l->poll->settle_ns)) {
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

    for (size_t i = 0; i < l->name_count; i++) {
        const inf_repository_name_t *n = &l->names[i];
        candidate_t c = { .id = n->id, .repository = n->repository };
        bool differs;

        if (n->duplicate || n->problem != NULL || is_hidden(l, &n->id)
            || !take_stamp(l, &n->id, n->repository, &c.stamp, &differs))
        {
            continue;
        }
        if (differs) {
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

    for (size_t i = 0; i < l->count; i++) {
        candidate_t *c = &l->candidates[i];
        if (!c->settled) {
            l->candidates[left++] = *c;
            continue;
        }

        tally_add(tally);
        inf_lifecycle_load_id_async(l->poll->lc, &c->id,
            tally != NULL ? one_ended : NULL, tally);
        inf_model_stamp_fini(&c->stamp);
    }

    l->count = left;
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
        if (is_there(l, id) || is_hidden(l, id)) {
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

/* Whether it may well be there, in a repository that can't be listed now. */
static bool
is_hidden(const look_t *l, const inf_model_id_t *id)
{
    for (size_t i = 0; i < l->list->count; i++) {
        const char *space = l->list->roots[i].space;
        if (l->failed[i] && (space != NULL ? strcmp(space, id->space) == 0
            : inf_lifecycle_comes_from(l->poll->lc, id, l->list->items[i])))
        {
            return true;
        }
    }

    return false;
}

/* Or may well be: what can't be followed for now. */
static bool
is_there(const look_t *l, const inf_model_id_t *id)
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

    if (low == l->name_count || !inf_model_id_equal(&l->names[low].id, id)) {
        return false;
    }

    const inf_repository_name_t *n = &l->names[low];
    return !n->duplicate && (n->problem == NULL || n->unsure);
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
