/*
 * ignored_models.h - logs directories that appear in local repositories while
 *                    no new models are loaded.
 *
 * Owner    The intake owns it.
 * Thread   the intake role.
 * Units    none.
 * Errors   new: inotify is not available.  A repository that cannot be watched
 *          is logged at level info.
 * Route    kernel -> [ignored models] -> log
 *
 * Network file systems send no events, and object storage has no directories.
 */

#ifndef INF_REPOSITORY_IGNORED_MODELS_H
#define INF_REPOSITORY_IGNORED_MODELS_H

#include <stddef.h>

#include "core/base/error.h"

/* Maximum of logged names; then the watch ends. */
#define INF_IGNORED_MODELS_MAX 1000u

typedef struct inf_ignored_models_s inf_ignored_models_t;

/* Creates a watch of no repository. */
INF_CHECK inf_err_t *inf_ignored_models_new(inf_ignored_models_t **out);

/* m may be NULL. */
void inf_ignored_models_free(inf_ignored_models_t *m);

/* A descriptor that is readable when inf_ignored_models_take has events. */
int inf_ignored_models_fd(const inf_ignored_models_t *m);

/* Watches the local ones of these repositories, instead of earlier ones. */
void inf_ignored_models_watch(inf_ignored_models_t *m,
    char *const *addresses, size_t count);

/* Reads events without waiting; logs each new directory once. */
void inf_ignored_models_take(inf_ignored_models_t *m);

#endif /* INF_REPOSITORY_IGNORED_MODELS_H */
