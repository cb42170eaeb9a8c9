/*
 * reason.h - why a version or a model doesn't serve: a text that is shared.
 *
 * Owner    Shared by reference: versions, loads, snapshots.  Constant but for
 *          refs.
 * Thread   any.  Moves of what serves happen under the lifecycle's lock, where
 *          no text is allocated: they take references, and write new texts
 *          into room that was got before.
 * Units    bytes.
 * Errors   Out of memory is a reason, too.
 * Route    model set -> [reason] -> index, registry, log
 */

#ifndef INF_REPOSITORY_REASON_H
#define INF_REPOSITORY_REASON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    const char      *text;      /* "Internal: it failed"                     */
    const char      *msg;       /* the same without the code                 */
    bool             quarantined;   /* requests are told it                  */
} inf_reason_t;

/* These last for ever, as long as references are given back. */
extern inf_reason_t inf_reason_unloaded;
extern inf_reason_t inf_reason_ambiguous;   /* of a model in two repositories */
extern inf_reason_t inf_reason_stuck;       /* the executions of all of its
                                               instances                     */
extern inf_reason_t inf_reason_nomem;

/* A reference; out of memory: that reason.  text: it has no code. */
inf_reason_t *inf_reason_of(const inf_err_t *err);
inf_reason_t *inf_reason_new(const char *text);

/* ref returns reason; both accept NULL. */
inf_reason_t *inf_reason_ref(inf_reason_t *reason);
void inf_reason_unref(inf_reason_t *reason);

/* Memory for one text.  All zero: none yet. */
typedef struct {
    inf_reason_t *reason;       /* to be filled; NULL: it was                */
    size_t        size;         /* of its text                               */
} inf_reason_room_t;

/* Without a lock: there is room again, or twice the room where a text didn't
   fit.  Out of memory: for that reason. */
void inf_reason_room_renew(inf_reason_room_t *room);
void inf_reason_room_fini(inf_reason_room_t *room);

/* Where a text may be written, and the reason that it becomes, which leaves the
   room: code_len bytes of it are the code. */
char *inf_reason_room_text(inf_reason_room_t *room);
inf_reason_t *inf_reason_room_take(inf_reason_room_t *room, size_t code_len);

#endif /* INF_REPOSITORY_REASON_H */
