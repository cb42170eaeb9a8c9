/*
 * storage.h - opens the storage of a repository's address.
 *
 * Owner    The caller closes the storage (inf_storage_close) and frees the
 *          root path.
 * Thread   any.
 * Units    none.
 * Errors   UNSUPPORTED: this build lacks the storage.  INVALID_ARG: an empty
 *          address.
 * Route    settings -> [storage] -> scan, configuration, labels
 *
 * The functions of an open storage are in core/model/config_storage.h.
 */

#ifndef INF_STORAGE_STORAGE_H
#define INF_STORAGE_STORAGE_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/model/config_storage.h"

/*
 * address: a local path, or scheme://... *root is the repository's path in the
 * storage's notation, without trailing slashes.
 */
INF_CHECK inf_err_t *inf_storage_open(const char *address,
    inf_storage_t **out, char **root);

/* Whether inf_storage_open would open a remote storage. */
bool inf_storage_address_is_remote(const char *address);

#endif /* INF_STORAGE_STORAGE_H */
