/*
 * far_storage.h - a storage on another machine, as far as anybody can tell:
 *                 folders of the local disk whose answers a test holds back,
 *                 lets fail and counts.
 *
 * Owner    The test: far_reset first.  far_open goes to
 *          inf_repositories_open_with.
 * Thread   any: what it does is under a mutex.
 * Units    none.
 * Errors   as told; a test fails when nobody asks within a minute.
 * Route    unit tests only
 *
 * An address in which "far" stands is such a storage; others are local.
 */

#ifndef INF_T_REPOSITORY_FAR_STORAGE_H
#define INF_T_REPOSITORY_FAR_STORAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "repository/temp_tree.h"

#include "core/repository/storage.h"

#define FAR_MAX 8

typedef struct {
    inf_storage_t  base;
    inf_storage_t *local;
    char          *root;
    bool           cancelled;
} far_storage_t;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    const char     *held;       /* roots that end like this don't answer     */
    const char     *failing;    /* and these only say that they can't        */
    unsigned        waiting;    /* who is held                               */
    unsigned        asked;      /* how often anybody wanted to know anything */
    unsigned        opened;     /* storages now                              */
} far_t;

static far_t far = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER
};

static inline void
far_reset(void)
{
    pthread_mutex_lock(&far.lock);
    far.held = NULL;
    far.failing = NULL;
    far.waiting = 0;
    far.asked = 0;
    far.opened = 0;
    pthread_mutex_unlock(&far.lock);
}

/* NULL: all answer again, or none fails any more. */
static inline void
far_set(const char *held, const char *failing)
{
    pthread_mutex_lock(&far.lock);
    far.held = held;
    far.failing = failing;
    pthread_cond_broadcast(&far.changed);
    pthread_mutex_unlock(&far.lock);
}

static inline unsigned
far_asked(void)
{
    pthread_mutex_lock(&far.lock);
    unsigned asked = far.asked;
    pthread_mutex_unlock(&far.lock);
    return asked;
}

static inline unsigned
far_opened(void)
{
    pthread_mutex_lock(&far.lock);
    unsigned opened = far.opened;
    pthread_mutex_unlock(&far.lock);
    return opened;
}

/* Until so many are held. */
static inline void
far_wait_for(unsigned count)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&far.lock);
    while (far.waiting != count && rc == 0) {
        rc = pthread_cond_timedwait(&far.changed, &far.lock, &until);
    }
    pthread_mutex_unlock(&far.lock);
    assert_int_equal(rc, 0);
}

static inline bool
far_is(const char *root, const char *end)
{
    size_t len = end != NULL ? strlen(end) : 0;
    return end != NULL && strlen(root) >= len
        && strcmp(root + strlen(root) - len, end) == 0;
}

/* The answer, when it may come. */
static inline inf_err_t *
far_answer(const far_storage_t *f)
{
    pthread_mutex_lock(&far.lock);
    far.asked++;
    far.waiting++;
    pthread_cond_broadcast(&far.changed);
    while (far_is(f->root, far.held) && !f->cancelled) {
        pthread_cond_wait(&far.changed, &far.lock);
    }
    far.waiting--;
    pthread_cond_broadcast(&far.changed);
    bool fails = f->cancelled || far_is(f->root, far.failing);
    pthread_mutex_unlock(&far.lock);
    return fails ? inf_err_new(INF_ERR_UNAVAILABLE, "no answer") : NULL;
}

static inline void
far_close(inf_storage_t *st)
{
    far_storage_t *f = (far_storage_t *) st;

    pthread_mutex_lock(&far.lock);
    far.opened--;
    pthread_mutex_unlock(&far.lock);
    inf_storage_close(f->local);
    free(f->root);
    free(f);
}

static inline inf_err_t *
far_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    const far_storage_t *f = (const far_storage_t *) st;
    inf_err_t *err = far_answer(f);
    return err != NULL ? err : inf_storage_list(f->local, dir, out);
}

static inline inf_err_t *
far_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    const far_storage_t *f = (const far_storage_t *) st;
    inf_err_t *err = far_answer(f);
    return err != NULL ? err : inf_storage_stat(f->local, path, out);
}

static inline inf_err_t *
far_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    const far_storage_t *f = (const far_storage_t *) st;
    inf_err_t *err = far_answer(f);
    return err != NULL ? err
        : inf_storage_read(f->local, path, limit, data, len);
}

static inline inf_err_t *
far_contain(const inf_storage_t *st, const char *dir, const char *path)
{
    return inf_storage_contain(((const far_storage_t *) st)->local, dir,
        path);
}

static inline inf_err_t *
far_localize(inf_storage_t *st, const char *dir, char **local)
{
    const far_storage_t *f = (const far_storage_t *) st;
    inf_err_t *err = far_answer(f);
    return err != NULL ? err : inf_storage_localize(f->local, dir, local);
}

static inline void
far_release(inf_storage_t *st, char *local)
{
    inf_storage_release(((far_storage_t *) st)->local, local);
}

static inline void
far_cancel(inf_storage_t *st)
{
    pthread_mutex_lock(&far.lock);
    ((far_storage_t *) st)->cancelled = true;
    pthread_cond_broadcast(&far.changed);
    pthread_mutex_unlock(&far.lock);
}

static inline inf_err_t *
far_open(const char *address, inf_storage_t **out, char **root)
{
    static const inf_storage_ops_t ops = {
        .close = far_close,
        .list = far_list,
        .stat = far_stat,
        .read = far_read,
        .contain = far_contain,
        .localize = far_localize,
        .release = far_release,
        .remote = true,
        .cancel = far_cancel
    };

    if (strstr(address, "far") == NULL) {
        return inf_storage_open(address, out, root);
    }

    far_storage_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->base.ops = &ops;
    assert_ok(inf_storage_open(address, &f->local, root));
    f->root = strdup(*root);
    pthread_mutex_lock(&far.lock);
    far.opened++;
    pthread_mutex_unlock(&far.lock);
    *out = &f->base;
    return NULL;
}

#endif /* INF_T_REPOSITORY_FAR_STORAGE_H */
