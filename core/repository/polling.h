/*
 * polling.h - looks through the repositories, has models loaded that are new or
 *             have changed, and unloaded that are gone.
 *
 * Owner    The server owns it; it borrows the lifecycle and the repositories.
 * Thread   look: any, one at a time.  set, stop: the server's.
 * Units    ns.
 * Errors   look: out of memory.  A repository that can't be listed now says
 *          nothing about its models: they stay.
 * Route    repositories -> [poll] -> lifecycle
 *
 * What has changed is loaded when two looks, some time apart, see the same:
 * files may still be on their way.  A model that failed is tried again by each
 * look that comes when the interval has passed; one that comes earlier, because
 * something there has changed, leaves out what is as it was when it failed.
 */

#ifndef INF_REPOSITORY_POLLING_H
#define INF_REPOSITORY_POLLING_H

#include "core/repository/lifecycle.h"

#define INF_POLL_SETTLE_NS UINT64_C(1000000000)

/* Between the end of a look and the next one, however much changes; and so
   many times as long as a look took, which bounds the CPU they need. */
#define INF_POLL_GAP_NS    UINT64_C(1000000000)
#define INF_POLL_GAP_LOOKS 20u

typedef struct inf_poll_s inf_poll_t;

INF_CHECK inf_err_t *inf_poll_new(inf_lifecycle_t *lc,
    const inf_repositories_t *repositories, uint64_t settle_ns,
    inf_poll_t **out);

/* After the lifecycle has stopped; poll may be NULL. */
void inf_poll_free(inf_poll_t *poll);

/*
 * A thread looks again and again, interval_ns (0: never) after the last look;
 * watch: earlier when the kernel tells of a change in a local repository.
 * May be set again at any time; what a look in progress has not yet queued is
 * given up when there shall be none.  Returns at once.
 */
INF_CHECK inf_err_t *inf_poll_set(inf_poll_t *poll, uint64_t interval_ns,
    bool watch);

/* The next look comes as soon as one may. */
void inf_poll_hasten(inf_poll_t *poll);

/* Forever; a look in progress is given up.  poll may be NULL. */
void inf_poll_stop(inf_poll_t *poll);

/* Looks that the thread has taken, and how many of them came early. */
void inf_poll_counts(inf_poll_t *poll, uint64_t *looks, uint64_t *early);

/*
 * One look.  It gives up on what doesn't hold still (the next will see it) and
 * returns when all is queued, or with wait, when all has been tried.
 */
INF_CHECK inf_err_t *inf_poll_look(inf_poll_t *poll, bool wait);

#endif /* INF_REPOSITORY_POLLING_H */
