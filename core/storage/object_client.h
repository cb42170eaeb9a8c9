/*
 * object_client.h - one bucket of a service of object storage: lists and
 *                   fetches objects.
 *
 * Owner    The storage owns it; listings and bytes belong to the caller.
 * Thread   any; each request uses one of the client's connections.
 * Units    bytes.
 * Errors   The text has bucket and key.  Temporary errors (no connection,
 *          truncated, 5xx, 429) are retried a few times.  INVALID_ARG: the
 *          object was replaced meanwhile.
 * Route    storage -> [client] -> service, object_http
 */

#ifndef INF_STORAGE_OBJECT_CLIENT_H
#define INF_STORAGE_OBJECT_CLIENT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/object_address.h"
#include "core/storage/object_listing.h"
#include "core/storage/object_service.h"

typedef struct inf_object_client_s inf_object_client_t;

/* Makes no request.  INVALID_ARG: no address of a service. */
INF_CHECK inf_err_t *inf_object_client_new(const char *address,
    inf_object_client_t **out);
void inf_object_client_free(inf_object_client_t *c);

/* Ends requests in progress, and rejects further ones: UNAVAILABLE. */
void inf_object_client_cancel(inf_object_client_t *c);

/* The parts of the client's address. */
const inf_object_address_t *inf_object_client_address(
    const inf_object_client_t *c);

/*
 * Lists objects whose key begins with prefix, at most limit (0: all).  Not
 * recursive: keys with a slash after the prefix give one entry per directory,
 * which ends in the slash.
 */
INF_CHECK inf_err_t *inf_object_client_list(inf_object_client_t *c,
    const char *prefix, bool recursive, size_t limit,
    inf_object_listing_t *out);

/* Reads the object's bytes, NUL-terminated. */
INF_CHECK inf_err_t *inf_object_client_read(inf_object_client_t *c,
    const char *key, size_t limit, char **data, size_t *len);

/* An object to fetch into an empty file, which is open only while a part of it
   is fetched. */
typedef struct {
    const inf_object_t *object;
    const char         *path;
} inf_object_fetch_t;

/* Fetches all of them, in parts and in parallel. */
INF_CHECK inf_err_t *inf_object_client_fetch(inf_object_client_t *c,
    const inf_object_fetch_t *files, size_t count);

#endif /* INF_STORAGE_OBJECT_CLIENT_H */
