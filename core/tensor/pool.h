/*
 * pool.h - an allocator of blocks in a range of memory that it does not
 *          access.
 *
 * Owner    The caller owns the memory, which may be a GPU's: a pool handles
 *          offsets only.  The bookkeeping is in the pool's own memory.
 * Thread   one at a time, under the caller's lock.  Only init allocates.
 * Units    bytes from the start of the range.  Offsets and sizes are multiples
 *          of the granule, at least INF_POOL_GRANULE.
 * Errors   false: no block is large enough; free: none begins there.
 * Route    memory.c: allocate -> [pool] -> base + offset
 */

#ifndef INF_TENSOR_POOL_H
#define INF_TENSOR_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* The granule of a pool; larger if the pool would have more than
   INF_POOL_GRANULES. */
#define INF_POOL_GRANULE  256u
#define INF_POOL_GRANULES (1u << 20)

/* Free lists: one for each power of two and step within it. */
#define INF_POOL_ORDERS 21
#define INF_POOL_STEPS  8

typedef struct inf_pool_block_s inf_pool_block_t;

typedef struct {
    inf_pool_block_t *blocks;           /* one per granule                   */
    uint32_t          count;            /* of granules                       */
    uint32_t          shift;            /* log2 of a granule                 */
    uint64_t          used;             /* allocated bytes                   */
    uint32_t          orders;           /* bit n: steps[n] is not 0          */
    uint8_t           steps[INF_POOL_ORDERS];
    uint32_t          lists[INF_POOL_ORDERS][INF_POOL_STEPS];
} inf_pool_t;

/* Manages a range of size bytes, rounded down to whole granules.  INVALID_ARG:
   too short, or above 2^52. */
INF_CHECK inf_err_t *inf_pool_init(inf_pool_t *pool, uint64_t size);
void inf_pool_fini(inf_pool_t *pool);

/* Allocates a block of at least size bytes (also for 0). */
bool inf_pool_alloc(inf_pool_t *pool, uint64_t size, uint64_t *offset);

/* Frees the block at offset; false: no allocated block begins there. */
bool inf_pool_free(inf_pool_t *pool, uint64_t offset);

/* The total of bytes that can be allocated. */
static inline uint64_t
inf_pool_size(const inf_pool_t *pool)
{
    return (uint64_t) pool->count << pool->shift;
}

#endif /* INF_TENSOR_POOL_H */
