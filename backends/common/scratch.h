/*
 * scratch.h - memory that an instance keeps from one run to the next.
 *
 * Owner    An instance; zeroed memory is an empty scratch, and bk_scratch_fini
 *          frees it.
 * Thread   one scratch, one thread.
 * Units    bytes.
 * Errors   UNAVAILABLE: no memory for what; the scratch stays as it was.
 * Route    batch, an instance -> [scratch]
 */

#ifndef BK_SCRATCH_H
#define BK_SCRATCH_H

#include "error.h"

#include <stddef.h>

#define BK_SCRATCH_ALIGNMENT 64u

typedef struct {
    void  *data;                        /* BK_SCRATCH_ALIGNMENT; NULL: none  */
    size_t cap;
} bk_scratch_t;

/* Makes room for size bytes, at least 0; a scratch that grows loses its
 * contents, and never shrinks. */
BK_CHECK TRITONSERVER_Error *bk_scratch_reserve(bk_scratch_t *s,
    uint64_t size, const char *what);

/* Frees the memory; s is then empty and can be used again. */
void bk_scratch_fini(bk_scratch_t *s);

#endif /* BK_SCRATCH_H */
