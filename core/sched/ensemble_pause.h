/*
 * ensemble_pause.h - makes a producer wait while its consumers have as many
 *                    responses as permitted (max_inflight_requests).
 *
 * Owner    Shared: by each start that waits for a permit, and by the thread
 *          until it has waited.
 * Thread   The thread that brings a response waits at the end of the backend's
 *          call that sent the response, where no lock and no role is held.
 * Units    ns.
 * Errors   none: without memory no thread waits.
 * Route    backend's send -> ensemble -> [pause] -> back to the backend
 *
 * A thread never waits for itself: not if the consumer's model (or one inside
 * it) is executed or answered by this thread, nor if both hold resources of the
 * rate limiter, nor if the consumer waits, directly or indirectly, for this
 * thread.  In these cases the thread continues, and only the permits limit the
 * number of executions.  A wait ends with its last permit, with the request's
 * failure or cancel, and at its deadline.
 */

#ifndef INF_SCHED_ENSEMBLE_PAUSE_H
#define INF_SCHED_ENSEMBLE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/model.h"

typedef struct inf_pause_s inf_pause_t;

/* Enclose the handling of a response of producer, during which this thread may
   be asked to wait.  Calls nest; the first producer counts. */
void inf_pause_enter(const inf_model_t *producer, uint64_t deadline_ns);
void inf_pause_leave(void);

/* The pause this thread will wait for; NULL: it must not wait, or out of
   memory. */
inf_pause_t *inf_pause_get(void);

/* hold: adds a start, by a call of model, to the pause.  drop: removes one;
   true: wake the pause, without a lock held. */
void inf_pause_hold(inf_pause_t *pause, const inf_model_t *model);
bool inf_pause_drop(inf_pause_t *pause);

/* push: adds to a list of pauses to wake.  wake_all: wakes them. */
void inf_pause_push(inf_pause_t **list, inf_pause_t *pause);
void inf_pause_wake_all(inf_pause_t *list);

/* Waits if this thread was asked to; called at the end of a backend's send. */
void inf_pause_wait(void);

/* Number of waiting threads. */
uint32_t inf_pause_count(void);

#endif /* INF_SCHED_ENSEMBLE_PAUSE_H */
