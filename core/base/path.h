/*
 * path.h - functions on paths as texts, without file system access.
 *
 * Owner    Returned strings are freed by the caller.
 * Thread   any.
 * Units    none.
 * Errors   NULL: out of memory.
 * Route    storages, configuration, private directories -> [path]
 */

#ifndef INF_BASE_PATH_H
#define INF_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* "dir/name", malloc'ed; NULL: out of memory. */
char *inf_path_join(const char *dir, const char *name);

/* The length of a path or URL without the slashes at its end; one of slashes
   alone keeps the first. */
size_t inf_path_len(const char *path);

/*
 * Whether a relative path stays in its directory by its text: not empty, not
 * absolute, no ".." component.  Links are checked by inf_storage_contain.
 */
bool inf_path_is_inner(const char *path);

#endif /* INF_BASE_PATH_H */
