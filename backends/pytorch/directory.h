/*
 * directory.h - the private directory that a package is unpacked into.
 *
 * Owner    The caller owns one and removes it.  While it lives it is locked:
 *          a later process can tell those that a dead one has left.
 * Thread   any.
 * Units    none.
 * Errors   the system's.
 * Route    package -> [directory] -> library, weights
 */

#ifndef PT_DIRECTORY_H
#define PT_DIRECTORY_H

#include "common/error.h"

typedef struct {
    char *path;                 /* mode 0700, in $TMPDIR or /tmp             */
    int   lock;
} pt_directory_t;

BK_CHECK TRITONSERVER_Error *pt_directory_make(pt_directory_t *d);

/* With all that is in it; d may be all zeros. */
void pt_directory_remove(pt_directory_t *d);

/* Removes those of this user that no process holds any more. */
void pt_directory_sweep(void);

#endif /* PT_DIRECTORY_H */
