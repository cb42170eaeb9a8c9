/*
 * directory.h - a private directory of this process, into which files are
 *               unpacked.
 *
 * Owner    The caller owns the directory and removes it.  The directory is
 *          locked until then, so that a later process can tell one that a
 *          dead process has left.
 * Thread   any.
 * Units    seconds.
 * Errors   INTERNAL: the system's reason.
 * Route    package, environment -> [directory] -> library, interpreter
 */

#ifndef BACKEND_DIRECTORY_H
#define BACKEND_DIRECTORY_H

#include "error.h"

typedef struct {
    char *path;                 /* parent/prefixXXXXXX, mode 0700             */
    int   lock;
} bk_directory_t;

/* Makes a new, empty directory.  After an error d is empty. */
BK_CHECK TRITONSERVER_Error *bk_directory_make(bk_directory_t *d,
    const char *parent, const char *prefix);

/* Removes the directory and its contents; d may be all zeros. */
void bk_directory_remove(bk_directory_t *d);

/* Removes the directories of this user with that prefix that no process has
 * locked and that are at least older_s old. */
void bk_directory_sweep(const char *parent, const char *prefix, long older_s);

#endif /* BACKEND_DIRECTORY_H */
