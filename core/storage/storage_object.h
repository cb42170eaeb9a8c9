/*
 * storage_object.h - repositories in S3-compatible object storage.
 *
 * Owner    The storage is opened and closed like any other.
 * Thread   any.
 * Units    bytes, ns since 1970 (whole seconds from most services).
 * Errors   as in core/model/config_storage.h; the text has address and key.
 * Route    storage -> [object storage] -> client, cache
 *
 * Objects are files, key parts before a slash are directories, and objects
 * whose key ends in a slash are ignored.
 */

#ifndef INF_STORAGE_STORAGE_OBJECT_H
#define INF_STORAGE_STORAGE_OBJECT_H

#include "core/base/error.h"
#include "core/model/config_storage.h"

/* Makes no request; root as in inf_storage_open. */
INF_CHECK inf_err_t *inf_storage_object_open(const char *address,
    inf_storage_t **out, char **root);

#endif /* INF_STORAGE_STORAGE_OBJECT_H */
