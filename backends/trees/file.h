/*
 * file.h - maps a model's file, for checks before treelite reads it.
 *
 * Owner    The caller closes the file.
 * Thread   any.
 * Units    bytes.
 * Errors   NOT_FOUND, INTERNAL: the file cannot be read.
 * Route    model file -> [file] -> checkpoint, lightgbm and the
 *          checks of XGBoost's files
 */

#ifndef TREES_FILE_H
#define TREES_FILE_H

#include "common/error.h"

#include <stddef.h>

typedef struct {
    const void *data;                   /* read-only; never NULL             */
    size_t      len;
} trees_file_t;

/* Maps the file read-only. */
BK_CHECK TRITONSERVER_Error *trees_file_open(trees_file_t *file,
    const char *path);
void trees_file_close(trees_file_t *file);

#endif /* TREES_FILE_H */
