/*
 * object_address.h - parses the address of a repository in object storage into
 *                    service, bucket and prefix.
 *
 * Owner    The caller calls fini.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG names the address and what is missing in it.
 * Route    directive, storage -> [address] -> object client
 *
 * Forms: s3://bucket/path, s3://host:port/bucket/path,
 * s3://http://host:port/bucket/path, s3://https://host:port/bucket/path,
 * gs://bucket/path, as://account/container/path,
 * as://account.blob.core.windows.net/container/path, and the last two with
 * ?query: a shared access signature, which is a secret.
 * Slashes at the end, and several in a row, are treated as in a file's path.
 */

#ifndef INF_BASE_OBJECT_ADDRESS_H
#define INF_BASE_OBJECT_ADDRESS_H

#include <stdbool.h>
#include <string.h>

#include "core/base/error.h"

#define INF_S3_SCHEME "s3://"
#define INF_GS_SCHEME "gs://"
#define INF_AS_SCHEME "as://"

#define INF_AS_DOMAIN ".blob.core.windows.net"      /* after an account     */

typedef struct {
    char *endpoint;         /* "http://host:port"; NULL: the provider's own */
    char *account;          /* of as://; NULL: none                         */
    char *bucket;           /* of as://: a container                        */
    char *prefix;           /* "" or "a/b": no slash at either end          */
    char *query;            /* of as://; NULL: none                         */
} inf_object_address_t;

/* Whether the text begins with the scheme of a service; inline, for programs
   that link nothing of the core. */
static inline bool
inf_object_address_has_scheme(const char *text)
{
    return strncmp(text, INF_S3_SCHEME, strlen(INF_S3_SCHEME)) == 0
        || strncmp(text, INF_GS_SCHEME, strlen(INF_GS_SCHEME)) == 0
        || strncmp(text, INF_AS_SCHEME, strlen(INF_AS_SCHEME)) == 0;
}

/* The length of what may be shown and logged of an address or a local path:
   all but a query. */
static inline size_t
inf_object_address_shown(const char *text)
{
    return strncmp(text, INF_AS_SCHEME, strlen(INF_AS_SCHEME)) == 0
        ? strcspn(text, "?") : strlen(text);
}

/* On success out owns its texts until fini. */
INF_CHECK inf_err_t *inf_object_address_parse(const char *address,
    inf_object_address_t *out);
void inf_object_address_fini(inf_object_address_t *a);

/*
 * The address, which has a scheme, without repeated and final slashes and
 * without a query: the prefix of paths of this storage.  malloc'ed; NULL: out
 * of memory.
 */
char *inf_object_address_root(const char *address);

#endif /* INF_BASE_OBJECT_ADDRESS_H */
