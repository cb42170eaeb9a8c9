/*
 * arrivals.h - lists repositories on other machines for the first time, each
 *              on a thread of its own, so that nothing else waits for it.
 *
 * Owner    The change of the repositories owns it; it borrows the set.
 * Thread   any; arrived is called on the thread that has listed.
 * Units    none.
 * Errors   A listing that fails is logged: the repository has failed, until
 *          somebody wants another try.
 * Route    repository change -> [arrivals] -> repositories, lifecycle
 */

#ifndef INF_REPOSITORY_ARRIVALS_H
#define INF_REPOSITORY_ARRIVALS_H

#include "core/repository/repositories.h"

typedef struct inf_arrivals_s inf_arrivals_t;

/* arrived: item may be looked into now, or has failed, or is none any more. */
INF_CHECK inf_err_t *inf_arrivals_new(inf_repositories_t *repositories,
    void (*arrived)(void *userp, const inf_repository_t *item), void *userp,
    inf_arrivals_t **out);

/* After stop; a may be NULL. */
void inf_arrivals_free(inf_arrivals_t *a);

/* Begins to list what is awaited; gives up what was taken out of the set.
   retry: what has failed, too. */
void inf_arrivals_begin(inf_arrivals_t *a, bool retry);

/* Until nothing is being listed. */
void inf_arrivals_wait(inf_arrivals_t *a);

/* Requests under way are cut short; a may be NULL. */
void inf_arrivals_stop(inf_arrivals_t *a);

#endif /* INF_REPOSITORY_ARRIVALS_H */
