/*
 * ignored_models.h - names in the log the directories that come to local
 *                    repositories while nothing loads new models.
 *
 * Owner    The intake owns it.
 * Thread   the intake role.
 * Units    none.
 * Errors   new: inotify is not available.  A repository that can't be watched
 *          is a line of level info.
 * Route    kernel -> [ignored models] -> log
 *
 * Network file systems send no events, object storage has no directories.
 */

#ifndef INF_REPOSITORY_IGNORED_MODELS_H
#define INF_REPOSITORY_IGNORED_MODELS_H

#include <stddef.h>

#include "core/base/error.h"

/* Names in the log; then the watch ends. */
#define INF_IGNORED_MODELS_MAX 1000u

typedef struct inf_ignored_models_s inf_ignored_models_t;

/* Watches nothing yet. */
INF_CHECK inf_err_t *inf_ignored_models_new(inf_ignored_models_t **out);

/* m may be NULL. */
void inf_ignored_models_free(inf_ignored_models_t *m);

/* Readable: inf_ignored_models_take has something to do. */
int inf_ignored_models_fd(const inf_ignored_models_t *m);

/* Watches the local ones of these repositories, and no others any more. */
void inf_ignored_models_watch(inf_ignored_models_t *m,
    char *const *addresses, size_t count);

/* Reads events once, without waiting; each directory is named once. */
void inf_ignored_models_take(inf_ignored_models_t *m);

#endif /* INF_REPOSITORY_IGNORED_MODELS_H */
