/*
 * block_sums.h - what a hash makes of a block of bytes: two sums of products.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    cache key -> [block sums]
 *
 * NH of 32-bit words (as in UMAC), twice: each word plus its own of the
 * secret, neighbours multiplied, the products added up modulo 2^64; the second
 * sum's words of the secret lie INF_BLOCK_STEP bytes behind the first's.
 * Whatever two blocks of one length differ in, the chance over the secrets
 * that both sums are the same is 2^-64.
 *
 * There is a way to do it for each kind of processor; all give the same.
 */

#ifndef INF_SCHED_BLOCK_SUMS_H
#define INF_SCHED_BLOCK_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INF_BLOCK_STEP 32u

typedef struct {
    uint64_t first;
    uint64_t second;
} inf_block_sums_t;

/* len is a multiple of INF_BLOCK_STEP; secret has len + INF_BLOCK_STEP
   bytes. */
typedef inf_block_sums_t (*inf_block_sums_fn_t)(const void *data, size_t len,
    const uint64_t *secret);

/* The fastest way that this processor knows. */
inf_block_sums_fn_t inf_block_sums(void);

/* Each way this processor knows, from the slowest on; NULL: no more.  0 is
   everybody's. */
inf_block_sums_fn_t inf_block_sums_way(unsigned n);

#endif /* INF_SCHED_BLOCK_SUMS_H */
