/*
 * cache_key.h - a keyed hash over all parts of a request that determine its
 *               response.
 *
 * Owner    none; keys are values.
 * Thread   any, one at a time per request.
 * Units    bytes.
 * Errors   out of memory: there is no key.
 * Route    request -> [cache key] -> cache, executions
 *
 * The key covers the model's name, namespace, version and load, the requested
 * outputs, each input (sorted by name) with name, datatype, shape and bytes,
 * and the parameters in their order.  Id, priority, timeout and correlation id
 * are not covered.
 *
 * Without the secret it is not feasible to predict a request's key, or to make
 * a request whose key collides with another's.  With the same secret a request
 * has the same key in all processes of one byte order.
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

/* The number of the client's bytes that the key covers; false: no key, since
   some bytes cannot be read (device memory) or differ by instance (host
   policies). */
bool inf_cache_key_bytes(const inf_request_t *req, uint64_t *bytes);

/* The prefix of all keys of a model; load distinguishes loads of a version. */
void inf_cache_key_model(const inf_model_t *model, uint64_t load,
    inf_buf_t *out);

/* The request is normalised and inf_cache_key_bytes returned true.  false: no
   memory. */
INF_CHECK bool inf_cache_key(const inf_cache_hash_t *hash, inf_slice_t model,
    inf_request_t *req, inf_cache_key_t *key);

/* Writes hexadecimal digits, NUL-terminated. */
void inf_cache_key_write(const inf_cache_key_t *key,
    char text[INF_CACHE_KEY_TEXT]);

static inline bool
inf_cache_key_eq(const inf_cache_key_t *a, const inf_cache_key_t *b)
{
    return memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

#endif /* INF_CACHE_CACHE_KEY_H */
