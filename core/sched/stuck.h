/*
 * stuck.h - which instances are stuck: their execution lasts longer than the
 *           limit.
 *
 * Owner    The server owns the limit; a count is its caller's.
 * Thread   limit: any.  No clock, thread or lock of its own: times in,
 *          decisions out.
 * Units    ns on the monotonic clock.
 * Errors   none.
 * Route    runner -> [stuck] -> readiness, index, metrics
 */

#ifndef INF_SCHED_STUCK_H
#define INF_SCHED_STUCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint64_t ns;        /* relaxed: a setting; 0: none is ever stuck */
} inf_stuck_limit_t;

/* Instances of one model.  All zero: none. */
typedef struct {
    uint32_t serving;
    uint32_t busy;              /* of them, like stuck: execute now          */
    uint32_t stuck;
} inf_stuck_t;

/* Counts instances that serve and share a thread, which has executed since
   begun_ns; 0: it does not execute. */
void inf_stuck_count(inf_stuck_t *s, uint32_t instances, uint64_t begun_ns,
    uint64_t now_ns, uint64_t limit_ns);

/* There are some, and all of them are stuck. */
bool inf_stuck_all(const inf_stuck_t *s);

#endif /* INF_SCHED_STUCK_H */
