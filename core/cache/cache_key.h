/*
 * cache_key.h - which requests the same answer serves: a keyed hash over all
 *               that the answer depends on.
 *
 * Owner    nobody; values.
 * Thread   any, one at a time per request.
 * Units    bytes.
 * Errors   out of memory: there is no key.
 * Route    request -> [cache key] -> cache, executions
 *
 * It covers the model's name, namespace, version and load, the requested
 * outputs, each input (in the order of their names) with name, datatype, shape
 * and bytes, and the parameters in their order.  It does not cover id,
 * priority, timeout and correlation id.
 *
 * Nobody without the secret can say what key a request has, nor make one that
 * collides with another's.  With the same secret a request has the same key in
 * all processes of one byte order.
 */

#ifndef INF_CACHE_CACHE_KEY_H
#define INF_CACHE_CACHE_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/cache/cache_hash.h"
#include "core/model/model.h"
#include "core/tensor/request.h"

#define INF_CACHE_KEY_TEXT 65u      /* 64 hexadecimal digits and a NUL       */

typedef struct {
    uint64_t words[INF_CACHE_HASH_BYTES / sizeof(uint64_t)];
} inf_cache_key_t;

/* How many bytes of the client's its key is made of; false: some can't be read
   here (device memory), or there are others for some instances (host
   policies): no key. */
bool inf_cache_key_bytes(const inf_request_t *req, uint64_t *bytes);

/* The start of all keys of a model; load tells one load of a version from the
   next. */
void inf_cache_key_model(const inf_model_t *model, uint64_t load,
    inf_buf_t *out);

/* The request is normalised and inf_cache_key_bytes said true.  false: no
   memory. */
INF_CHECK bool inf_cache_key(const inf_cache_hash_t *hash, inf_slice_t model,
    inf_request_t *req, inf_cache_key_t *key);

/* In hexadecimal digits, NUL-terminated. */
void inf_cache_key_write(const inf_cache_key_t *key,
    char text[INF_CACHE_KEY_TEXT]);

static inline bool
inf_cache_key_eq(const inf_cache_key_t *a, const inf_cache_key_t *b)
{
    return memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

#endif /* INF_CACHE_CACHE_KEY_H */
