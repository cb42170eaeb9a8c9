/*
 * private_dir.h - private temporary directories for uploaded files, files of
 *                 repository agents and fetched files.
 *
 * Owner    The caller owns a directory and removes it.  A directory in use is
 *          locked, so that a later process can recognize those of an ended
 *          process.
 * Thread   any.
 * Units    none.
 * Errors   the system's.
 * Route    model home, agents, object cache -> [private directory]
 */

#ifndef INF_BASE_OS_PRIVATE_DIR_H
#define INF_BASE_OS_PRIVATE_DIR_H

#include "core/base/error.h"

typedef struct {
    char *path;             /* mode 0700                                     */
    int   lock_fd;
} inf_private_dir_t;

/* Creates a directory in parent; NULL: in $TMPDIR or /tmp. */
INF_CHECK inf_err_t *inf_private_dir_new(const char *parent,
    inf_private_dir_t **out);

/* Removes the directory and its contents; d may be NULL. */
void inf_private_dir_free(inf_private_dir_t *d);

/* Removes the directories of this user in parent that are not locked. */
void inf_private_dir_sweep(const char *parent);

/* Removes a directory and its contents; failures are logged. */
void inf_private_dir_remove_tree(const char *path);

#endif /* INF_BASE_OS_PRIVATE_DIR_H */
