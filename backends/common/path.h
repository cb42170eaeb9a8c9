/*
 * path.h - checks file names from configurations and model files.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    model_file, a model's file -> [path]
 */

#ifndef BK_PATH_H
#define BK_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether path is relative, is not empty, and has no NUL and no part ".." or
 * "*", which some libraries read as an address in memory. */
bool bk_path_is_inner(const char *path, size_t len);

#endif /* BK_PATH_H */
