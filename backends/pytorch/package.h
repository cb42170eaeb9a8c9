/*
 * package.h - an AOTInductor package: a zip archive with a compiled model.
 *
 * Owner    The model owns the package.  Its files lie in a private directory
 *          until pt_package_close.
 * Thread   written by open and close, read by anyone between.
 * Units    bytes.
 * Errors   INVALID_ARG: no such archive, or one that a model may not be: an
 *          entry that leads out of the directory, that is no plain file, or
 *          more than the archive's size can account for.  UNSUPPORTED: it
 *          was compiled for another processor.
 * Route    model -> [package] -> aoti
 */

#ifndef PT_PACKAGE_H
#define PT_PACKAGE_H

#include "common/directory.h"

typedef struct {
    char           *path;       /* the archive                               */
    bk_directory_t  directory;
    char           *library;    /* the compiled model                        */
    char           *device;     /* "cpu", "cuda"                             */
} pt_package_t;

/* Unpacks the archive.  After an error nothing is left to close. */
BK_CHECK TRITONSERVER_Error *pt_package_open(pt_package_t *p,
    const char *path);
void pt_package_close(pt_package_t *p);

/* Removes directories that dead processes have left. */
void pt_packages_sweep(void);

#endif /* PT_PACKAGE_H */
