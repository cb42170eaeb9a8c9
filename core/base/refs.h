/*
 * refs.h - gives up one reference of several.
 *
 * Owner    The object whose count it is; the last one to drop frees it.
 * Thread   any.
 * Units    references.
 * Errors   none: aborts where there was no reference left to give up.
 * Route    each room's _unref -> [refs]
 */

#ifndef INF_BASE_REFS_H
#define INF_BASE_REFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* true: that was the last one, and all that others did with the object before
   they dropped theirs is visible. */
static inline bool
inf_refs_drop(_Atomic uint32_t *refs)
{
    uint32_t before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);

    assert(before > 0);
    return before == 1;
}

#endif /* INF_BASE_REFS_H */
