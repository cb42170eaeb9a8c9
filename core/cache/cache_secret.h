/*
 * cache_secret.h - reads the secret of a response cache's keys from a file.
 *
 * Owner    none; bytes.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   the file cannot be read, or is too short or too long.
 * Route    server cache -> [cache secret] -> response cache
 */

#ifndef INF_CACHE_CACHE_SECRET_H
#define INF_CACHE_CACHE_SECRET_H

#include "core/cache/cache_hash.h"

#define INF_CACHE_SECRET_LEAST 16u      /* bytes of the file                 */
#define INF_CACHE_SECRET_MOST  4096u

/* Reads the file; a line end at its end is ignored. */
INF_CHECK inf_err_t *inf_cache_secret_read(const char *path,
    unsigned char secret[INF_CACHE_HASH_BYTES]);

#endif /* INF_CACHE_CACHE_SECRET_H */
