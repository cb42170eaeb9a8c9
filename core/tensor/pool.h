/*
 * pool.h - hands out stretches of a range of memory that it never touches.
 *
 * Owner    The caller owns the memory, which may be a GPU's: a pool knows
 *          offsets only.  Its notes on them are in memory of its own.
 * Thread   one at a time; the caller's lock.  Nothing here allocates but init.
 * Units    bytes from the start of the range.  Offsets and sizes are
 *          multiples of the granule, at least INF_POOL_GRANULE.
 * Errors   false: no stretch is long enough; free: none begins there.
 * Route    memory.c: allocate -> [pool] -> base + offset
 */

#ifndef INF_TENSOR_POOL_H
#define INF_TENSOR_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* A pool of more than INF_POOL_GRANULES of these has longer granules. */
#define INF_POOL_GRANULE  256u
#define INF_POOL_GRANULES (1u << 20)

/* Free lists: one for each power of two, divided into this many steps. */
#define INF_POOL_ORDERS 21
#define INF_POOL_STEPS  8

typedef struct inf_pool_block_s inf_pool_block_t;

typedef struct {
    inf_pool_block_t *blocks;           /* one a granule                     */
    uint32_t          count;            /* of granules                       */
    uint32_t          shift;            /* log2 of a granule                 */
    uint64_t          used;             /* bytes handed out                  */
    uint32_t          orders;           /* bit n: steps[n] is not 0          */
    uint8_t           steps[INF_POOL_ORDERS];
    uint32_t          lists[INF_POOL_ORDERS][INF_POOL_STEPS];
} inf_pool_t;

/* A range of size bytes, less what is no whole granule.  INVALID_ARG: too
   short, or beyond 2^52. */
INF_CHECK inf_err_t *inf_pool_init(inf_pool_t *pool, uint64_t size);
void inf_pool_fini(inf_pool_t *pool);

/* A stretch of at least size bytes (0 gets one, too). */
bool inf_pool_alloc(inf_pool_t *pool, uint64_t size, uint64_t *offset);

/* Takes back what begins at offset; false: nothing handed out does. */
bool inf_pool_free(inf_pool_t *pool, uint64_t offset);

/* The bytes that may be handed out altogether. */
static inline uint64_t
inf_pool_size(const inf_pool_t *pool)
{
    return (uint64_t) pool->count << pool->shift;
}

#endif /* INF_TENSOR_POOL_H */
