/*
 * budget.h - a bound on a number of bytes shared by several users.
 *
 * Owner    A field of the object whose bytes are counted.
 * Thread   any; the counters do not order other memory accesses.
 * Units    bytes.
 * Errors   none: the caller makes the error.
 * Route    regions, copies of inputs -> [budget] -> metrics
 */

#ifndef INF_BASE_BUDGET_H
#define INF_BASE_BUDGET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct {
    _Atomic uint64_t bound;         /* relaxed; may change                   */
    _Atomic uint64_t used;          /* relaxed                               */
} inf_budget_t;

typedef enum {
    INF_BUDGET_TAKEN,
    INF_BUDGET_IN_USE,              /* would fit if others released bytes    */
    INF_BUDGET_TOO_MUCH             /* never fits                            */
} inf_budget_answer_t;

static inline void
inf_budget_set(inf_budget_t *b, uint64_t bound)
{
    atomic_store_explicit(&b->bound, bound, memory_order_relaxed);
}

static inline uint64_t
inf_budget_bound(const inf_budget_t *b)
{
    return atomic_load_explicit(&b->bound, memory_order_relaxed);
}

static inline uint64_t
inf_budget_used(const inf_budget_t *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed);
}

/* Takes bytes; after TAKEN the caller calls give. */
static inline inf_budget_answer_t
inf_budget_take(inf_budget_t *b, uint64_t bytes)
{
    uint64_t bound = inf_budget_bound(b);
    uint64_t used = inf_budget_used(b);

    if (bytes == 0) {
        return INF_BUDGET_TAKEN;
    }
    if (bytes > bound) {
        return INF_BUDGET_TOO_MUCH;
    }

    do {
        if (used > bound || bytes > bound - used) {
            return INF_BUDGET_IN_USE;
        }
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used,
        used + bytes, memory_order_relaxed, memory_order_relaxed));

    return INF_BUDGET_TAKEN;
}

static inline void
inf_budget_give(inf_budget_t *b, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&b->used, bytes,
        memory_order_relaxed);

    assert(before >= bytes);
    (void) before;
}

#endif /* INF_BASE_BUDGET_H */
