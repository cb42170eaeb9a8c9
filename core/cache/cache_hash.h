/*
 * cache_hash.h - keyed BLAKE2b of 256 bits, by libcrypto.
 *
 * Owner    The caller of new frees the hash.  A sum belongs to the caller of
 *          begin until end.
 * Thread   begin: any number of threads; a sum: one.
 * Units    bytes.
 * Errors   new: libcrypto lacks BLAKE2b, or no memory.  end: false, a step
 *          failed for lack of memory.
 * Route    cache key -> [cache hash] -> libcrypto
 */

#ifndef INF_CACHE_CACHE_HASH_H
#define INF_CACHE_CACHE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_CACHE_HASH_BYTES  32u
#define INF_CACHE_SECRET_MAX  64u       /* BLAKE2b's key                     */

typedef struct inf_cache_hash_s inf_cache_hash_t;

/* A sum in progress; small pieces are collected in tail. */
typedef struct {
    void         *state;                /* NULL: failed                      */
    size_t        fill;                 /* of tail                           */
    unsigned char tail[512];
} inf_cache_sum_t;

/* secret: 1 to INF_CACHE_SECRET_MAX bytes. */
INF_CHECK inf_err_t *inf_cache_hash_new(const void *secret, size_t len,
    inf_cache_hash_t **out);
void inf_cache_hash_free(inf_cache_hash_t *hash);       /* may be NULL       */

/* s is valid as long as hash; each begin must be followed by an end. */
void inf_cache_sum_begin(inf_cache_sum_t *s, const inf_cache_hash_t *hash);

/* The sum depends on the bytes alone, not on how they are split. */
void inf_cache_sum_put(inf_cache_sum_t *s, const void *data, size_t len);

/* Ends s in any case.  false: out of memory, out is not set. */
INF_CHECK bool inf_cache_sum_end(inf_cache_sum_t *s,
    unsigned char out[INF_CACHE_HASH_BYTES]);

#endif /* INF_CACHE_CACHE_HASH_H */
