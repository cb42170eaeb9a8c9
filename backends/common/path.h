/*
 * path.h - names of files that come from outside.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    model_file, a model's file -> [path]
 */

#ifndef BK_PATH_H
#define BK_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Relative, not empty, without NUL, ".." and "*" as a part: some libraries
 * take "*" for an address in memory. */
bool bk_path_is_inner(const char *path, size_t len);

#endif /* BK_PATH_H */
