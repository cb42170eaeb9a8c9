/*
 * watch.h - detects changes in local repositories by inotify.
 *
 * Owner    The poll owns it; it has copies of the watched paths.
 * Thread   one at a time.
 * Units    none.
 * Errors   none: a directory that cannot be watched is only polled at
 *          intervals; this is logged once.
 * Route    kernel -> [watch] -> poll
 *
 * Network file systems send no events, object storage has no directories: an
 * event means that a poll is worthwhile, no event does not mean that nothing
 * has changed.
 */

#ifndef INF_STORAGE_WATCH_H
#define INF_STORAGE_WATCH_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/model/config_storage.h"

/* Limit of watched directories; repositories come first, then models, then
   versions. */
#define INF_WATCH_MAX 16384u

typedef struct inf_watch_s inf_watch_t;

/* A repository: its path in its storage. */
typedef struct {
    const inf_storage_t *storage;
    const char          *path;
} inf_watch_root_t;

/* Watches nothing yet; max: limit of directories, at most INF_WATCH_MAX. */
INF_CHECK inf_err_t *inf_watch_new(size_t max, inf_watch_t **out);

/* w may be NULL. */
void inf_watch_free(inf_watch_t *w);

/* A descriptor to poll for reading; -1: nothing is watched. */
int inf_watch_fd(const inf_watch_t *w);

/*
 * Reads pending events and, if directories came or went or the local roots
 * changed, watches all directories that now exist.  Later changes make the
 * descriptor readable.
 */
void inf_watch_renew(inf_watch_t *w, const inf_watch_root_t *roots,
    size_t count);

/* The number of watched directories. */
size_t inf_watch_count(const inf_watch_t *w);

/* Removes all watches. */
void inf_watch_stop(inf_watch_t *w);

#endif /* INF_STORAGE_WATCH_H */
