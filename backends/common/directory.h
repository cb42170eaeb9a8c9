/*
 * directory.h - a private directory of this process, into which files are
 *               unpacked.
 *
 * Owner    The caller owns one and removes it.  While it lives it is locked:
 *          a later process can tell those that a dead one has left.
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

/* A new, empty one; the texts stay the caller's.  After an error d is empty. */
BK_CHECK TRITONSERVER_Error *bk_directory_make(bk_directory_t *d,
    const char *parent, const char *prefix);

/* With all that is in it; d may be all zeros. */
void bk_directory_remove(bk_directory_t *d);

/* Removes those of this user with that prefix that no process holds and that
 * are as old, or older. */
void bk_directory_sweep(const char *parent, const char *prefix, long older_s);

#endif /* BACKEND_DIRECTORY_H */
