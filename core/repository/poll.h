/*
 * poll.h - looks through the repositories and has loaded what is new or has
 *          changed, unloaded what is gone.
 *
 * Owner    The server owns it; it borrows the lifecycle and the repositories.
 * Thread   look: any, one at a time.  start, stop: the server's.
 * Units    ns.
 * Errors   look: out of memory.  A repository that can't be listed now says
 *          nothing about its models: they stay.
 * Route    repositories -> [poll] -> lifecycle
 *
 * What has changed is loaded when two looks, some time apart, see the same:
 * files may still be on their way.  A model that failed is tried again by each
 * look.
 */

#ifndef INF_REPOSITORY_POLL_H
#define INF_REPOSITORY_POLL_H

#include "core/repository/lifecycle.h"

#define INF_POLL_SETTLE_NS UINT64_C(1000000000)

typedef struct inf_poll_s inf_poll_t;

INF_CHECK inf_err_t *inf_poll_new(inf_lifecycle_t *lc,
    const inf_repositories_t *repositories, uint64_t settle_ns,
    inf_poll_t **out);

/* After the lifecycle has stopped; poll may be NULL. */
void inf_poll_free(inf_poll_t *poll);

/* A thread that looks again and again, interval_ns after the last look. */
INF_CHECK inf_err_t *inf_poll_start(inf_poll_t *poll, uint64_t interval_ns);

/* A look in progress is given up; poll may be NULL, or not started. */
void inf_poll_stop(inf_poll_t *poll);

/*
 * One look.  It gives up on what doesn't hold still (the next will see it) and
 * returns when all is queued, or with wait, when all has been tried.
 */
INF_CHECK inf_err_t *inf_poll_look(inf_poll_t *poll, bool wait);

#endif /* INF_REPOSITORY_POLL_H */
