/*
 * repository_change.h - puts other repositories, other models to be loaded of
 *                       them, or other options for loads into effect in a
 *                       running server, and has models reconciled with that
 *                       and with what remote listings find.
 *
 * Owner    The server owns it; it borrows the lifecycle and the pollers.
 * Thread   any, ask: one at a time; what takes time runs on a thread of its
 *          own, which the first event starts.
 * Units    none.
 * Errors   ask: out of memory, no thread; nothing has changed then.  Later
 *          errors are logged.
 * Route    service, pollers -> [repository change] -> repositories, lifecycle
 */

#ifndef INF_REPOSITORY_REPOSITORY_CHANGE_H
#define INF_REPOSITORY_REPOSITORY_CHANGE_H

#include "core/repository/lifecycle.h"
#include "core/repository/pollers.h"

typedef struct inf_repository_change_s inf_repository_change_t;

/* The desired configuration. */
typedef struct {
    char *const           *addresses;
    size_t                 count;
    inf_desired_t          models;
    inf_core_config_t     *core_config;     /* for loads; NULL: as it is     */
} inf_repository_desired_t;

/* desired: what is in effect at the start, without core_config. */
INF_CHECK inf_err_t *inf_repository_change_new(inf_lifecycle_t *lc,
    inf_pollers_t *pollers, const inf_repository_desired_t *desired,
    inf_repository_change_t **out);

/* The start has queued what it loads: begins the first listings. */
void inf_repository_change_begin(inf_repository_change_t *c);

/* After stop, when the pollers have stopped, too; c may be NULL. */
void inf_repository_change_free(inf_repository_change_t *c);

/*
 * Puts desired (copied; of core_config a reference) into effect; returns at
 * once.  A later one that is asked for before the turn has come replaces
 * it.  Without any change nothing happens.
 */
INF_CHECK inf_err_t *inf_repository_change_ask(inf_repository_change_t *c,
    const inf_repository_desired_t *desired);

/* Whether models have still to be told of a change, or of a listing that it
   has begun; what they then want is in the lifecycle. */
bool inf_repository_change_pending(const inf_repository_change_t *c);

/* Until nothing is under way, listings included. */
void inf_repository_change_wait(inf_repository_change_t *c);

/* A change in progress ends first; listings are cut short.  c may be NULL. */
void inf_repository_change_stop(inf_repository_change_t *c);

#endif /* INF_REPOSITORY_REPOSITORY_CHANGE_H */
