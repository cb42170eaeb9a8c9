/*
 * cache_secret.h - the secret of a response cache's keys, out of a file.
 *
 * Owner    nobody; bytes.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   the file can't be read, or holds too little or too much.
 * Route    server cache -> [cache secret] -> response cache
 */

#ifndef INF_CACHE_CACHE_SECRET_H
#define INF_CACHE_CACHE_SECRET_H

#include "core/cache/cache_hash.h"

#define INF_CACHE_SECRET_LEAST 16u      /* of the file, like the next        */
#define INF_CACHE_SECRET_MOST  4096u

/* All of the file counts, but for a line end behind it. */
INF_CHECK inf_err_t *inf_cache_secret_read(const char *path,
    unsigned char secret[INF_CACHE_HASH_BYTES]);

#endif /* INF_CACHE_CACHE_SECRET_H */
