/*
 * repository_change.h - applies changes of the repositories, of desired models
 *                       or of load options in a running server, and reconciles
 *                       models with these and with remote listings.
 *
 * Owner    The server owns it; it borrows the lifecycle and the pollers.
 * Thread   any, ask: one at a time; long work runs on its own thread, started
 *          by the first event.
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
    inf_core_config_t     *core_config;     /* for loads; NULL: unchanged    */
} inf_repository_desired_t;

/* desired: in effect at the start, without core_config. */
INF_CHECK inf_err_t *inf_repository_change_new(inf_lifecycle_t *lc,
    inf_pollers_t *pollers, const inf_repository_desired_t *desired,
    inf_repository_change_t **out);

/* Begins the first listings, after the start has queued its loads. */
void inf_repository_change_begin(inf_repository_change_t *c);

/* Called after stop, and after the pollers have stopped; c may be NULL. */
void inf_repository_change_free(inf_repository_change_t *c);

/*
 * Puts desired (copied; a reference of core_config) into effect; returns at
 * once.  A later call before its turn replaces it.  Without changes nothing
 * happens.
 */
INF_CHECK inf_err_t *inf_repository_change_ask(inf_repository_change_t *c,
    const inf_repository_desired_t *desired);

/* Whether a change, or a listing begun by it, has not been applied to models
   yet.  Afterwards the lifecycle has their edits. */
bool inf_repository_change_pending(const inf_repository_change_t *c);

/* Waits until nothing is running, including listings. */
void inf_repository_change_wait(inf_repository_change_t *c);

/* Stops after a running change; interrupts listings.  c may be NULL. */
void inf_repository_change_stop(inf_repository_change_t *c);

#endif /* INF_REPOSITORY_REPOSITORY_CHANGE_H */
