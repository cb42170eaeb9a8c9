/*
 * repository_change.h - other repositories, other models to be loaded of them,
 *                       or other terms for loads, in a running server: puts
 *                       them in place and lets the models follow.
 *
 * Owner    The server owns it; it borrows the lifecycle and the repositories.
 * Thread   any, ask: one at a time; what takes time runs on a thread of its
 *          own, which the first change starts.  Repositories on other machines
 *          are listed on threads of theirs; models follow when they have come.
 * Units    none.
 * Errors   ask: out of memory, no thread; nothing has changed then.  What goes
 *          wrong later is logged.
 * Route    service -> [repository change] -> repositories, lifecycle
 */

#ifndef INF_REPOSITORY_REPOSITORY_CHANGE_H
#define INF_REPOSITORY_REPOSITORY_CHANGE_H

#include "core/repository/lifecycle.h"

typedef struct inf_repository_change_s inf_repository_change_t;

typedef struct {
    char *const           *addresses;
    size_t                 count;
    bool                   all;     /* of whatever lies there, each model is
                                       loaded                                */
    char *const           *names;   /* else those; "*" alone: as above       */
    size_t                 name_count;
    inf_lifecycle_terms_t *terms;   /* a reference; NULL: as they are        */
} inf_repository_wish_t;

/* wish: what is in place at the start, without terms. */
INF_CHECK inf_err_t *inf_repository_change_new(inf_lifecycle_t *lc,
    inf_repositories_t *repositories, const inf_repository_wish_t *wish,
    inf_repository_change_t **out);

/* The start has queued what it loads: begins to list what is awaited. */
void inf_repository_change_begin(inf_repository_change_t *c);

/* After stop; c may be NULL. */
void inf_repository_change_free(inf_repository_change_t *c);

/*
 * From now on it is as wish (copied; terms are taken, also on error) says;
 * returns at once.  Who asks again before the turn has come is the one who
 * counts; without any change nothing happens.
 */
INF_CHECK inf_err_t *inf_repository_change_ask(inf_repository_change_t *c,
    const inf_repository_wish_t *wish);

/* Whether models have still to be told of a change; what they then want is in
   the lifecycle. */
bool inf_repository_change_pending(const inf_repository_change_t *c);

/* Until nothing is under way, listings included. */
void inf_repository_change_wait(inf_repository_change_t *c);

/* A change in progress ends first; nobody waits for another machine any more.
   c may be NULL. */
void inf_repository_change_stop(inf_repository_change_t *c);

#endif /* INF_REPOSITORY_REPOSITORY_CHANGE_H */
