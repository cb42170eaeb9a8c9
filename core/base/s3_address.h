/*
 * s3_address.h - parses an s3:// address into service, bucket and prefix.
 *
 * Owner    The caller calls fini.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG names the address and what is missing in it.
 * Route    directive, storage -> [address] -> S3 client
 *
 * Forms: s3://bucket/path, s3://host:port/bucket/path,
 * s3://http://host:port/bucket/path, s3://https://host:port/bucket/path.
 * Slashes at the end, and several in a row, are treated as in a file's path.
 */

#ifndef INF_BASE_S3_ADDRESS_H
#define INF_BASE_S3_ADDRESS_H

#include "core/base/error.h"

#define INF_S3_SCHEME "s3://"

typedef struct {
    char *endpoint;         /* "http://host:port"; NULL: the provider's own */
    char *bucket;
    char *prefix;           /* "" or "a/b": no slash at either end          */
} inf_s3_address_t;

/* On success out owns its texts until fini. */
INF_CHECK inf_err_t *inf_s3_address_parse(const char *address,
    inf_s3_address_t *out);
void inf_s3_address_fini(inf_s3_address_t *a);

/*
 * The address without repeated and final slashes, the prefix of paths of this
 * storage.  malloc'ed; NULL: out of memory.
 */
char *inf_s3_address_root(const char *address);

#endif /* INF_BASE_S3_ADDRESS_H */
