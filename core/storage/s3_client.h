/*
 * s3_client.h - one bucket of an S3 service: lists and fetches its objects.
 *
 * Owner    The storage owns it; listings and bytes belong to the caller.
 * Thread   any; each request borrows a connection of the client's.
 * Units    bytes.
 * Errors   Text names bucket and key.  Errors that may pass (no connection,
 *          cut off, 5xx, 429) are tried again a few times first.  INVALID_ARG:
 *          the object was replaced meanwhile.
 * Route    storage -> [client] -> s3_http
 */

#ifndef INF_STORAGE_S3_CLIENT_H
#define INF_STORAGE_S3_CLIENT_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/storage/s3_address.h"
#include "core/storage/s3_listing.h"

typedef struct inf_s3_client_s inf_s3_client_t;

/* No request is made yet. */
INF_CHECK inf_err_t *inf_s3_client_new(const char *address,
    inf_s3_client_t **out);
void inf_s3_client_free(inf_s3_client_t *c);

/* Requests under way end, others are not made any more: UNAVAILABLE. */
void inf_s3_client_cancel(inf_s3_client_t *c);

/* The parts of the address given to new; c's. */
const inf_s3_address_t *inf_s3_client_address(const inf_s3_client_t *c);

/*
 * Objects whose key begins with prefix, at most limit of them (0: all).  Not
 * recursive: keys with a slash behind the prefix come as one entry per
 * directory, which ends in the slash.
 */
INF_CHECK inf_err_t *inf_s3_client_list(inf_s3_client_t *c,
    const char *prefix, bool recursive, size_t limit, inf_s3_listing_t *out);

/* The object's bytes, NUL-terminated. */
INF_CHECK inf_err_t *inf_s3_client_read(inf_s3_client_t *c, const char *key,
    size_t limit, char **data, size_t *len);

/* One object into an empty file. */
typedef struct {
    const inf_s3_object_t *object;
    int                    fd;
} inf_s3_fetch_t;

/* All of them, in parts and in parallel. */
INF_CHECK inf_err_t *inf_s3_client_fetch(inf_s3_client_t *c,
    const inf_s3_fetch_t *files, size_t count);

#endif /* INF_STORAGE_S3_CLIENT_H */
