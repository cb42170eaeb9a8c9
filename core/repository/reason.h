/*
 * reason.h - why a version or a model does not serve: a shared text.
 *
 * Owner    Shared by reference: versions, loads, snapshots.  Constant except
 *          refs.
 * Thread   any.  Serving versions change under the lifecycle's lock, where no
 *          text is allocated: these changes take references, and write new
 *          texts into room allocated before.
 * Units    bytes.
 * Errors   Out of memory is itself a reason.
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
    const char      *text;      /* such as "Internal: it failed"             */
    const char      *msg;       /* without the code                          */
    bool             quarantined;   /* sent to clients                       */
} inf_reason_t;

/* Constant reasons. */
extern inf_reason_t inf_reason_unloaded;
extern inf_reason_t inf_reason_ambiguous;   /* in two repositories            */
extern inf_reason_t inf_reason_stuck;       /* all instances are stuck       */
extern inf_reason_t inf_reason_nomem;

/* A reference; out of memory: the constant reason for that.  text has no
   code. */
inf_reason_t *inf_reason_of(const inf_err_t *err);
inf_reason_t *inf_reason_new(const char *text);

/* ref returns reason; both accept NULL. */
inf_reason_t *inf_reason_ref(inf_reason_t *reason);
void inf_reason_unref(inf_reason_t *reason);

/* Memory for one text; all zero: none yet. */
typedef struct {
    inf_reason_t *reason;       /* to be filled; NULL: used                  */
    size_t        size;         /* of its text                               */
} inf_reason_room_t;

/* Allocates room, twice as much if a text did not fit.  Called without a lock.
   Out of memory: room for the constant reason. */
void inf_reason_room_renew(inf_reason_room_t *room);
void inf_reason_room_fini(inf_reason_room_t *room);

/* text: the memory for a text.  take: the reason with that text, which leaves
   the room; its first code_len bytes are the code. */
char *inf_reason_room_text(inf_reason_room_t *room);
inf_reason_t *inf_reason_room_take(inf_reason_room_t *room, size_t code_len);

#endif /* INF_REPOSITORY_REASON_H */
