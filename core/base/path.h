/*
 * path.h - paths as words: joined, and judged without a look at any disk.
 *
 * Owner    Strings given out are the caller's to free.
 * Thread   any.
 * Units    none.
 * Errors   NULL: out of memory.
 * Route    storages, configuration, private directories -> [path]
 */

#ifndef INF_BASE_PATH_H
#define INF_BASE_PATH_H

#include <stdbool.h>

/* "dir/name", malloc'ed; NULL when out of memory. */
char *inf_path_join(const char *dir, const char *name);

/*
 * Whether a relative path can't leave its directory by its words alone: not
 * empty, not absolute, no ".." component.  Links are contain's job.
 */
bool inf_path_is_inner(const char *path);

#endif /* INF_BASE_PATH_H */
