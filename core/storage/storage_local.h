/*
 * storage_local.h - repositories on a local file system, used in place.
 *
 * Owner    The storage is opened and closed like any other.
 * Thread   any.
 * Units    bytes, ns since 1970.
 * Errors   as in core/model/config_storage.h.
 * Route    storage -> [local]
 */

#ifndef INF_STORAGE_STORAGE_LOCAL_H
#define INF_STORAGE_STORAGE_LOCAL_H

#include "core/base/error.h"
#include "core/model/config_storage.h"

/* Fails only for lack of memory: paths are opened when read. */
INF_CHECK inf_err_t *inf_storage_local_open(inf_storage_t **out);

/*
 * Whether path, with links resolved, is dir or below it.  A path that does not
 * exist is compared as text; a dangling link is outside.
 */
INF_CHECK inf_err_t *inf_local_contain(const char *dir, const char *path);

#endif /* INF_STORAGE_STORAGE_LOCAL_H */
