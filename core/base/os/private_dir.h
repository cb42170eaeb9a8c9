/*
 * private_dir.h - directories of our own, for the files that came with a
 *                 request, that repository agents made or that were fetched.
 *
 * Owner    The caller owns one and removes it.  While it lives it is locked:
 *          a later process can tell those that a dead one has left.
 * Thread   any.
 * Units    none.
 * Errors   the system's.
 * Route    model home, agents, S3 cache -> [private directory]
 */

#ifndef INF_BASE_OS_PRIVATE_DIR_H
#define INF_BASE_OS_PRIVATE_DIR_H

#include "core/base/error.h"

typedef struct {
    char *path;             /* mode 0700                                     */
    int   lock_fd;
} inf_private_dir_t;

/* In parent; NULL: in $TMPDIR or /tmp. */
INF_CHECK inf_err_t *inf_private_dir_new(const char *parent,
    inf_private_dir_t **out);

/* Removes it with all that is in it; d may be NULL. */
void inf_private_dir_free(inf_private_dir_t *d);

/* Removes those of this user in parent that nobody holds any more. */
void inf_private_dir_sweep(const char *parent);

/* Removes a directory with all that is in it; what stays is logged. */
void inf_private_dir_remove_tree(const char *path);

#endif /* INF_BASE_OS_PRIVATE_DIR_H */
