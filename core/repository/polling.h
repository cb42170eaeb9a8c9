/*
 * polling.h - polls the repositories: loads new and changed models, and unloads
 *             missing ones.
 *
 * Owner    The server owns it; it borrows the lifecycle and the pollers.
 * Thread   once: any.  set, stop: the server's.
 * Units    ns.
 * Errors   once: out of memory.  Models of a repository that cannot be listed
 *          now are left as they are.
 * Route    poll schedule -> [poll] -> pollers, comparison -> lifecycle
 *
 * A changed model is loaded when two comparisons, some time apart, see the same
 * files.  A model that failed is tried again by each full poll; an early poll
 * skips it if its files have not changed since.
 */

#ifndef INF_REPOSITORY_POLLING_H
#define INF_REPOSITORY_POLLING_H

#include "core/repository/lifecycle.h"
#include "core/repository/pollers.h"

#define INF_POLL_SETTLE_NS UINT64_C(1000000000)

typedef struct inf_poll_s inf_poll_t;

/* Creates the poller, without a thread before inf_poll_set; models are stable
   when equal after settle_ns.  Uses INF_LISTED_COMPARE of the pollers. */
INF_CHECK inf_err_t *inf_poll_new(inf_lifecycle_t *lc,
    inf_pollers_t *pollers, uint64_t settle_ns, inf_poll_t **out);

/* Called after lifecycle and pollers have stopped; poll may be NULL. */
void inf_poll_free(inf_poll_t *poll);

/*
 * Polls on a thread, interval_ns (0: never) after the last poll; watch: earlier
 * when the kernel reports a change in a local repository.  Can be changed at
 * any time; with 0 a running poll queues nothing more.  Returns at once.
 */
INF_CHECK inf_err_t *inf_poll_set(inf_poll_t *poll, uint64_t interval_ns,
    bool watch);

/* Makes an early poll due. */
void inf_poll_hasten(inf_poll_t *poll);

/* Stops for good, and gives up a running poll.  poll may be NULL. */
void inf_poll_stop(inf_poll_t *poll);

/* Number of finished polls of the thread, and of early ones. */
void inf_poll_counts(inf_poll_t *poll, uint64_t *polls, uint64_t *early);

/*
 * Polls once.  Models that are not stable are left to the next poll.  Returns
 * when all is queued or, with wait, when all has been tried.
 */
INF_CHECK inf_err_t *inf_poll_once(inf_poll_t *poll, bool wait);

#endif /* INF_REPOSITORY_POLLING_H */
