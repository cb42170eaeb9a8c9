/*
 * arena_pinner.h - pins the first bytes of workers' arenas, on a thread of its
 *                  own: a driver takes long for it.
 *
 * Owner    The intake's.  A channel that waits for its turn is referenced.
 * Thread   new and free: the main thread; push and cancel: the one that has
 *          the intake role.
 * Units    none.
 * Errors   What cannot be pinned stays pageable, which is logged.
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

/* Waits for the channel that is being pinned; those behind it stay pageable.
   NULL does nothing. */
void inf_arena_pinner_free(inf_arena_pinner_t *p);

/* pid: of the worker, for a line in the log; 0: no line. */
void inf_arena_pinner_push(inf_arena_pinner_t *p, inf_channel_t *channel,
    uint32_t pid);

/* The channel's worker has gone: a driver that is slow keeps no memory and no
   descriptors of channels that wait. */
void inf_arena_pinner_cancel(inf_arena_pinner_t *p,
    const inf_channel_t *channel);

#endif /* INF_SERVICE_ARENA_PINNER_H */
