/*
 * polling.h - polls the repositories: has models loaded that are new or have
 *             changed, and unloaded that are gone.
 *
 * Owner    The server owns it; it borrows the lifecycle and the pollers.
 * Thread   once: any.  set, stop: the server's.
 * Units    ns.
 * Errors   once: out of memory.  A repository that can't be listed now says
 *          nothing about its models: they stay.
 * Route    poll schedule -> [poll] -> pollers, comparison -> lifecycle
 *
 * A changed model is loaded when two comparisons, some time apart, see the
 * same files: others may still be on their way.  A model that failed is tried
 * again by each poll that comes when the interval has passed; an early one,
 * because something there has changed, leaves out a model whose files are as
 * they were when it failed.
 */

#ifndef INF_REPOSITORY_POLLING_H
#define INF_REPOSITORY_POLLING_H

#include "core/repository/lifecycle.h"
#include "core/repository/pollers.h"

#define INF_POLL_SETTLE_NS UINT64_C(1000000000)

typedef struct inf_poll_s inf_poll_t;

/* No thread until inf_poll_set; models hold still when they are the same
   settle_ns later.  Takes the pollers' use INF_LISTED_COMPARE. */
INF_CHECK inf_err_t *inf_poll_new(inf_lifecycle_t *lc,
    inf_pollers_t *pollers, uint64_t settle_ns, inf_poll_t **out);

/* After the lifecycle and the pollers have stopped; poll may be NULL. */
void inf_poll_free(inf_poll_t *poll);

/*
 * A thread polls again and again, interval_ns (0: never) after the last poll;
 * watch: earlier when the kernel tells of a change in a local repository.
 * May be set again at any time; what a poll in progress has not yet queued is
 * given up when there shall be none.  Returns at once.
 */
INF_CHECK inf_err_t *inf_poll_set(inf_poll_t *poll, uint64_t interval_ns,
    bool watch);

/* The next poll comes as soon as one may. */
void inf_poll_hasten(inf_poll_t *poll);

/* Forever; a poll in progress is given up.  poll may be NULL. */
void inf_poll_stop(inf_poll_t *poll);

/* Polls that the thread has ended, and how many of them came early. */
void inf_poll_counts(inf_poll_t *poll, uint64_t *polls, uint64_t *early);

/*
 * One poll.  It gives up on what doesn't hold still (the next will see it) and
 * returns when all is queued, or with wait, when all has been tried.
 */
INF_CHECK inf_err_t *inf_poll_once(inf_poll_t *poll, bool wait);

#endif /* INF_REPOSITORY_POLLING_H */
