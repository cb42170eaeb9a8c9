/*
 * pollers.h - lists remote repositories, each on a thread of its own while its
 *             listing runs, so that nothing else waits for it.
 *
 * Owner    The server owns it; it borrows the set of repositories.
 * Thread   any; what a listing is for is done on the thread that has listed.
 * Units    none.
 * Errors   A listing that fails is logged, and is the repository's state.
 * Route    repository change, poll -> [pollers] -> repositories
 */

#ifndef INF_REPOSITORY_POLLERS_H
#define INF_REPOSITORY_POLLERS_H

#include "core/repository/repositories.h"

typedef struct inf_pollers_s inf_pollers_t;

/* The use of a listing. */
typedef enum {
    INF_LISTED_RECONCILE,       /* after a change, or for the first time     */
    INF_LISTED_COMPARE,         /* poll mode: what differs is loaded         */
    INF_LISTED_USES
} inf_listed_use_t;

/* A listing has ended, or couldn't begin.  first: until now the repository had
   never been listed. */
typedef void (*inf_listed_fn)(void *userp, inf_repository_t *item,
    bool first);

/* No thread yet; repositories outlives the pollers. */
INF_CHECK inf_err_t *inf_pollers_new(inf_repositories_t *repositories,
    inf_pollers_t **out);

/* p may be NULL. */
void inf_pollers_free(inf_pollers_t *p);

/* Sets what a use is; before the first begin. */
void inf_pollers_on_listed(inf_pollers_t *p, inf_listed_use_t use,
    inf_listed_fn fn, void *userp);

/* The set given to new. */
inf_repositories_t *inf_pollers_repositories(const inf_pollers_t *p);

/*
 * Begins to list each remote repository that is in one of states (bits); one
 * that has failed is pending then.  Where a listing is under way another one
 * comes after it, unless it is the first or the use is to compare.
 */
void inf_pollers_begin(inf_pollers_t *p, uint32_t states,
    inf_listed_use_t use);

/* Whether listings to be reconciled with are under way, the first ones
   aside. */
bool inf_pollers_pending(inf_pollers_t *p);

/* Until none is, the first ones included. */
void inf_pollers_wait(inf_pollers_t *p);

/* No other listing begins, and those under way are cut short. */
void inf_pollers_cancel(inf_pollers_t *p);

/* The same, until the last thread has ended; p may be NULL. */
void inf_pollers_stop(inf_pollers_t *p);

#endif /* INF_REPOSITORY_POLLERS_H */
