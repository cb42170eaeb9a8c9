/*
 * cache_key.h - which requests the same answer serves: a hash of 128 bits
 *               over all that the answer depends on.
 *
 * Owner    nobody; values.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    request -> [cache key] -> cache, flights
 *
 * It covers the model's name, namespace, version and load, the requested outputs, each
 * input (in the order of their names) with name, datatype, shape and bytes,
 * and the parameters in their order.  It does not cover id, priority, timeout
 * and correlation id.
 *
 * Every key depends on a secret.  A random one makes keys that nobody outside
 * can predict, so that nobody can make a request that collides with another's;
 * they mean nothing to another process.  The constant one is for caches that
 * several servers share.
 *
 * The hash is a universal one, as UMAC's and VMAC's: of each block of 2 KiB two
 * sums of products (block_sums.h), and over these a polynomial modulo
 * 2^127 - 1 at a secret point.  Whatever the two requests, the chance over the
 * secrets that they collide is about n / 2^61 for n blocks.  With the same
 * secret a request has the same key on all processors of one byte order.
 */

#ifndef INF_SCHED_CACHE_KEY_H
#define INF_SCHED_CACHE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/model/model.h"
#include "core/sched/block_sums.h"
#include "core/tensor/request.h"

#define INF_CACHE_KEY_TEXT 33       /* 32 hexadecimal digits and a NUL       */

typedef struct {
    uint64_t hi;
    uint64_t lo;
} inf_cache_key_t;

#define INF_CACHE_KEY_BLOCK    2048u
#define INF_CACHE_SECRET_WORDS \
    ((INF_CACHE_KEY_BLOCK + INF_BLOCK_STEP) / sizeof(uint64_t))

typedef struct {
    /* of a block; no load of them crosses a line */
    _Alignas(64) uint64_t words[INF_CACHE_SECRET_WORDS];
    uint64_t              point[2];     /* of the polynomial                 */
    inf_block_sums_fn_t   block_sums;   /* the processor's; no secret        */
} inf_cache_secret_t;

INF_CHECK inf_err_t *inf_cache_secret_random(inf_cache_secret_t *secret);
void inf_cache_secret_constant(inf_cache_secret_t *secret);

/* The bytes of all inputs; false: some can't be read here (device memory), or
   there are others for some instances (host policies): no key. */
bool inf_cache_key_bytes(const inf_request_t *req, uint64_t *bytes);

/* What all keys of a model begin with; load tells one load of a version from
   the next. */
void inf_cache_key_model(const inf_model_t *model, uint64_t load,
    inf_buf_t *out);

/* The request is normalised and inf_cache_key_bytes said true. */
inf_cache_key_t inf_cache_key(const inf_cache_secret_t *secret,
    inf_slice_t model, const inf_request_t *req);

void inf_cache_key_write(inf_cache_key_t key, char text[INF_CACHE_KEY_TEXT]);

static inline bool
inf_cache_key_eq(inf_cache_key_t a, inf_cache_key_t b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

#endif /* INF_SCHED_CACHE_KEY_H */
