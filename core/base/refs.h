/*
 * refs.h - drops a reference of a reference count.
 *
 * Owner    The object of the count; the caller that drops the last reference
 *          frees it.
 * Thread   any.
 * Units    references.
 * Errors   none: aborts if the count is already zero.
 * Route    _unref functions -> [refs]
 */

#ifndef INF_BASE_REFS_H
#define INF_BASE_REFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* true: it was the last reference, and all accesses before other drops are
   visible. */
static inline bool
inf_refs_drop(_Atomic uint32_t *refs)
{
    uint32_t before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);

    assert(before > 0);
    return before == 1;
}

#endif /* INF_BASE_REFS_H */
