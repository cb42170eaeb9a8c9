/*
 * ensemble_pause.h - a producer waits while those who read what it makes have
 *                    as much of it as they may (max_inflight_requests).
 *
 * Owner    Shared: each start that waits for a permit holds it, and so does
 *          the thread until it has waited.
 * Thread   The thread that brings a response is the one that waits, at the
 *          end of the backend's own call that sent it and nowhere else: no
 *          lock and no role is held there.
 * Units    ns.
 * Errors   none: without memory nobody waits.
 * Route    backend's send -> ensemble -> [pause] -> back to the backend
 *
 * A thread never waits for itself: not where the consumer's model (or one
 * within it) is the one that this thread executes or answers for, nor where
 * both hold resources of the rate limiter, nor where it waits, over however
 * many others, for this one.  There it goes on, and only the permits bound
 * what runs.  A wait ends with the last permit it was for, with the request's
 * failure or cancel, and at its deadline.
 */

#ifndef INF_SCHED_ENSEMBLE_PAUSE_H
#define INF_SCHED_ENSEMBLE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/model.h"

typedef struct inf_pause_s inf_pause_t;

/* Around what a response of producer brings about: in between this thread may
   be asked to wait.  Calls nest, the first producer counts. */
void inf_pause_enter(const inf_model_t *producer, uint64_t deadline_ns);
void inf_pause_leave(void);

/* The one that this thread will wait for; NULL: it must not, or there is no
   memory. */
inf_pause_t *inf_pause_get(void);

/* One start more that it is for, by a call of model; one less: true, it is to
   be woken, once nothing is locked. */
void inf_pause_hold(inf_pause_t *pause, const inf_model_t *model);
bool inf_pause_drop(inf_pause_t *pause);

/* A list of those that are to be woken. */
void inf_pause_push(inf_pause_t **list, inf_pause_t *pause);
void inf_pause_wake_all(inf_pause_t *list);

/* Waits if this thread was asked to: called at the end of a backend's send. */
void inf_pause_wait(void);

/* Threads that wait now. */
uint32_t inf_pause_count(void);

#endif /* INF_SCHED_ENSEMBLE_PAUSE_H */
