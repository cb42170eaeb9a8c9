/*
 * remote_storage.h - a remote storage, as far as the code under test can tell:
 *                    directories of the local disk whose answers a test holds
 *                    back, lets fail and counts.
 *
 * Owner    The test: remote_reset first.  remote_open goes to
 *          inf_repositories_open.
 * Thread   any: what it does is under a mutex.
 * Units    none.
 * Errors   as told; a test fails when no question comes within a minute.
 * Route    unit tests only
 *
 * An address that contains "remote" is such a storage; others are local.
 */

#ifndef INF_T_REPOSITORY_REMOTE_STORAGE_H
#define INF_T_REPOSITORY_REMOTE_STORAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "temp_tree.h"

#include "core/storage/storage.h"

typedef struct {
    inf_storage_t  base;
    inf_storage_t *local;
    char          *root;
    bool           cancelled;
} remote_storage_t;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    const char     *held;       /* roots, and paths in them, that end like this
                                   don't answer                              */
    const char     *failing;    /* and these only say that they can't        */
    unsigned        waiting;    /* questions that are held                   */
    unsigned        asked;      /* questions                                 */
    unsigned        opened;     /* storages now                              */
} remote_t;

static remote_t remote = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER
};

static inline void
remote_reset(void)
{
    pthread_mutex_lock(&remote.lock);
    remote.held = NULL;
    remote.failing = NULL;
    remote.waiting = 0;
    remote.asked = 0;
    remote.opened = 0;
    pthread_mutex_unlock(&remote.lock);
}

/* NULL: all answer again, or none fails any more. */
static inline void
remote_set(const char *held, const char *failing)
{
    pthread_mutex_lock(&remote.lock);
    remote.held = held;
    remote.failing = failing;
    pthread_cond_broadcast(&remote.changed);
    pthread_mutex_unlock(&remote.lock);
}

static inline unsigned
remote_asked(void)
{
    pthread_mutex_lock(&remote.lock);
    unsigned asked = remote.asked;
    pthread_mutex_unlock(&remote.lock);
    return asked;
}

static inline unsigned
remote_opened(void)
{
    pthread_mutex_lock(&remote.lock);
    unsigned opened = remote.opened;
    pthread_mutex_unlock(&remote.lock);
    return opened;
}

/* Until so many are held. */
static inline void
remote_wait_for(unsigned count)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&remote.lock);
    while (remote.waiting != count && rc == 0) {
        rc = pthread_cond_timedwait(&remote.changed, &remote.lock, &until);
    }
    pthread_mutex_unlock(&remote.lock);
    assert_int_equal(rc, 0);
}

static inline bool
remote_is(const char *root, const char *end)
{
    size_t len = end != NULL ? strlen(end) : 0;
    return end != NULL && strlen(root) >= len
        && strcmp(root + strlen(root) - len, end) == 0;
}

/* The answer, when it may come. */
static inline inf_err_t *
remote_answer(const remote_storage_t *f, const char *path)
{
    pthread_mutex_lock(&remote.lock);
    remote.asked++;
    remote.waiting++;
    pthread_cond_broadcast(&remote.changed);
    while ((remote_is(f->root, remote.held) || remote_is(path, remote.held))
        && !f->cancelled)
    {
        pthread_cond_wait(&remote.changed, &remote.lock);
    }
    remote.waiting--;
    pthread_cond_broadcast(&remote.changed);
    bool fails = f->cancelled || remote_is(f->root, remote.failing);
    pthread_mutex_unlock(&remote.lock);
    return fails ? inf_err_new(INF_ERR_UNAVAILABLE, "no answer") : NULL;
}

static inline void
remote_close(inf_storage_t *st)
{
    remote_storage_t *f = (remote_storage_t *) st;

    pthread_mutex_lock(&remote.lock);
    remote.opened--;
    pthread_mutex_unlock(&remote.lock);
    inf_storage_close(f->local);
    free(f->root);
    free(f);
}

static inline inf_err_t *
remote_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    const remote_storage_t *f = (const remote_storage_t *) st;
    inf_err_t *err = remote_answer(f, dir);
    return err != NULL ? err : inf_storage_list(f->local, dir, out);
}

static inline inf_err_t *
remote_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    const remote_storage_t *f = (const remote_storage_t *) st;
    inf_err_t *err = remote_answer(f, path);
    return err != NULL ? err : inf_storage_stat(f->local, path, out);
}

static inline inf_err_t *
remote_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    const remote_storage_t *f = (const remote_storage_t *) st;
    inf_err_t *err = remote_answer(f, path);
    return err != NULL ? err
        : inf_storage_read(f->local, path, limit, data, len);
}

static inline inf_err_t *
remote_contain(const inf_storage_t *st, const char *dir, const char *path)
{
    return inf_storage_contain(((const remote_storage_t *) st)->local, dir,
        path);
}

static inline inf_err_t *
remote_localize(inf_storage_t *st, const char *dir, char **local)
{
    const remote_storage_t *f = (const remote_storage_t *) st;
    inf_err_t *err = remote_answer(f, dir);
    return err != NULL ? err : inf_storage_localize(f->local, dir, local);
}

static inline void
remote_release(inf_storage_t *st, char *local)
{
    inf_storage_release(((remote_storage_t *) st)->local, local);
}

static inline void
remote_cancel(inf_storage_t *st)
{
    pthread_mutex_lock(&remote.lock);
    ((remote_storage_t *) st)->cancelled = true;
    pthread_cond_broadcast(&remote.changed);
    pthread_mutex_unlock(&remote.lock);
}

static inline inf_err_t *
remote_open(const char *address, inf_storage_t **out, char **root)
{
    static const inf_storage_ops_t ops = {
        .close = remote_close,
        .list = remote_list,
        .stat = remote_stat,
        .read = remote_read,
        .contain = remote_contain,
        .localize = remote_localize,
        .release = remote_release,
        .remote = true,
        .cancel = remote_cancel
    };

    if (strstr(address, "remote") == NULL) {
        return inf_storage_open(address, out, root);
    }

    remote_storage_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->base.ops = &ops;
    assert_ok(inf_storage_open(address, &f->local, root));
    f->root = strdup(*root);
    pthread_mutex_lock(&remote.lock);
    remote.opened++;
    pthread_mutex_unlock(&remote.lock);
    *out = &f->base;
    return NULL;
}

#endif /* INF_T_REPOSITORY_REMOTE_STORAGE_H */
