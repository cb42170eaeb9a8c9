/*
 * watch.h - learns from the kernel that something in local repositories has
 *           changed.
 *
 * Owner    The poll owns it; it has copies of the paths that it watches.
 * Thread   one at a time.
 * Units    none.
 * Errors   None: a directory that can't be watched, for any reason, is
 *          polled when its time comes.  The log says so once.
 * Route    kernel -> [watch] -> poll
 *
 * Network file systems send no events, object storage has no directories: a
 * watch only tells that a poll is worth while, never that it isn't.
 */

#ifndef INF_STORAGE_WATCH_H
#define INF_STORAGE_WATCH_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/model/config_storage.h"

/* Directories in all; repositories come first, then models, then versions. */
#define INF_WATCH_MAX 16384u

typedef struct inf_watch_s inf_watch_t;

/* A repository: its path in its storage. */
typedef struct {
    const inf_storage_t *storage;
    const char          *path;
} inf_watch_root_t;

/* Watches nothing yet; max bounds the directories, INF_WATCH_MAX or less. */
INF_CHECK inf_err_t *inf_watch_new(size_t max, inf_watch_t **out);

/* w may be NULL. */
void inf_watch_free(inf_watch_t *w);

/* To be polled for reading; -1: nothing is watched. */
int inf_watch_fd(const inf_watch_t *w);

/*
 * Reads what there is and, if directories came or went or the local ones of
 * roots are others than before, watches all directories that there are now.
 * Changes from then on make the descriptor readable.
 */
void inf_watch_renew(inf_watch_t *w, const inf_watch_root_t *roots,
    size_t count);

/* How many directories are watched. */
size_t inf_watch_count(const inf_watch_t *w);

/* Watches nothing. */
void inf_watch_stop(inf_watch_t *w);

#endif /* INF_STORAGE_WATCH_H */
