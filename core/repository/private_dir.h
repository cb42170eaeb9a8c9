/*
 * private_dir.h - directories of our own below $TMPDIR (/tmp), for the files
 *                 that came with a request or that repository agents made.
 *
 * Owner    The caller owns one and removes it.  While it lives it is locked:
 *          a later process can tell those that a dead one has left.
 * Thread   any.
 * Units    none.
 * Errors   the system's.
 * Route    model home, agents -> [private directory]
 */

#ifndef INF_REPOSITORY_PRIVATE_DIR_H
#define INF_REPOSITORY_PRIVATE_DIR_H

#include "core/base/error.h"

typedef struct {
    char *path;             /* mode 0700                                     */
    int   lock_fd;
} inf_private_dir_t;

INF_CHECK inf_err_t *inf_private_dir_new(inf_private_dir_t **out);

/* Removes it with all that is in it; d may be NULL. */
void inf_private_dir_free(inf_private_dir_t *d);

/* Removes those of this user that nobody holds any more. */
void inf_private_dir_sweep(void);

#endif /* INF_REPOSITORY_PRIVATE_DIR_H */
