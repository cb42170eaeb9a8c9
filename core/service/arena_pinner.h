/*
 * arena_pinner.h - pins the first bytes of workers' arenas on its own thread,
 *                  because drivers are slow at it.
 *
 * Owner    The intake.  A waiting channel is referenced.
 * Thread   new and free: the main thread; push and cancel: the thread with the
 *          intake role.
 * Units    none.
 * Errors   Memory that cannot be pinned stays pageable, which is logged.
 * Route    intake -> [arena pinner] -> channel -> driver
 */

#ifndef INF_SERVICE_ARENA_PINNER_H
#define INF_SERVICE_ARENA_PINNER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/wire/server.h"

typedef struct inf_arena_pinner_s inf_arena_pinner_t;

/* Starts the thread. */
INF_CHECK inf_err_t *inf_arena_pinner_new(inf_arena_pinner_t **out);

/* Waits for the channel being pinned; others stay pageable.  p may be NULL. */
void inf_arena_pinner_free(inf_arena_pinner_t *p);

/* Queues a channel; pid: of the worker, for the log; 0: not logged. */
void inf_arena_pinner_push(inf_arena_pinner_t *p, inf_channel_t *channel,
    uint32_t pid);

/* Removes the queued job of a channel whose worker has gone, so that a slow
   driver does not keep its memory and descriptors. */
void inf_arena_pinner_cancel(inf_arena_pinner_t *p,
    const inf_channel_t *channel);

#endif /* INF_SERVICE_ARENA_PINNER_H */
