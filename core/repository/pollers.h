/*
 * pollers.h - lists remote repositories, each on its own thread while its
 *             listing runs, so that nothing else waits for it.
 *
 * Owner    The server owns it; it borrows the set of repositories.
 * Thread   any; the use of a listing is called on its thread.
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
    INF_LISTED_RECONCILE,       /* after a change, or the first time         */
    INF_LISTED_COMPARE,         /* poll mode: load what differs              */
    INF_LISTED_USES
} inf_listed_use_t;

/* Called when a listing has ended, or could not begin.  first: the repository
   had not been listed before. */
typedef void (*inf_listed_fn)(void *userp, inf_repository_t *item,
    bool first);

/* Creates pollers without threads; repositories outlives them. */
INF_CHECK inf_err_t *inf_pollers_new(inf_repositories_t *repositories,
    inf_pollers_t **out);

/* p may be NULL. */
void inf_pollers_free(inf_pollers_t *p);

/* Sets the callback of a use, before the first begin. */
void inf_pollers_on_listed(inf_pollers_t *p, inf_listed_use_t use,
    inf_listed_fn fn, void *userp);

/* The set passed to new. */
inf_repositories_t *inf_pollers_repositories(const inf_pollers_t *p);

/*
 * Begins to list each remote repository in one of states (bits); a FAILED one
 * becomes PENDING.  If a listing runs, another one follows, unless it is the
 * first or the use is to compare.
 */
void inf_pollers_begin(inf_pollers_t *p, uint32_t states,
    inf_listed_use_t use);

/* Whether listings for INF_LISTED_RECONCILE are running, except first ones. */
bool inf_pollers_pending(inf_pollers_t *p);

/* Waits until none is running, including first ones. */
void inf_pollers_wait(inf_pollers_t *p);

/* Begins no more listings and interrupts running ones. */
void inf_pollers_cancel(inf_pollers_t *p);

/* The same, and waits for the last thread; p may be NULL. */
void inf_pollers_stop(inf_pollers_t *p);

#endif /* INF_REPOSITORY_POLLERS_H */
