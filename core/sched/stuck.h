/*
 * stuck.h - counts stuck instances, whose execution lasts longer than the
 *           limit.
 *
 * Owner    The server owns the limit; the caller owns a count.
 * Thread   limit: any.  Without clock, thread or lock: times in, decisions out.
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
    _Atomic uint64_t ns;        /* relaxed: a setting; 0: no limit           */
} inf_stuck_limit_t;

/* Counts of a model's instances; all zero: none. */
typedef struct {
    uint32_t serving;
    uint32_t busy;              /* executing, or stuck                       */
    uint32_t stuck;
} inf_stuck_t;

/* Counts instances that serve and share a thread, which executes since
   begun_ns; 0: it does not. */
void inf_stuck_count(inf_stuck_t *s, uint32_t instances, uint64_t begun_ns,
    uint64_t now_ns, uint64_t limit_ns);

/* Whether there are instances and all of them are stuck. */
bool inf_stuck_all(const inf_stuck_t *s);

#endif /* INF_SCHED_STUCK_H */
