/*
 * last_attempts.h - the loads that polls have queued last: an early poll does
 *                   not try again what failed and is as it was.
 *
 * Owner    The polling thread; fini ends it.  Zero is an empty one.
 * Thread   one at a time.
 * Units    none.
 * Errors   Without memory something is tried once more.
 * Route    comparison -> [last attempts]
 */

#ifndef INF_REPOSITORY_LAST_ATTEMPTS_H
#define INF_REPOSITORY_LAST_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/repository/model_id.h"
#include "core/repository/model_stamp.h"

typedef struct {
    char             *space;
    char             *name;
    inf_model_stamp_t stamp;
} inf_attempt_t;

typedef struct {
    inf_attempt_t *items;
    size_t         count;
} inf_last_attempts_t;

/* Frees all attempts; a is empty again. */
void inf_last_attempts_fini(inf_last_attempts_t *a);

/* Whether the last attempt at the model was at these very files. */
bool inf_last_attempts_has(const inf_last_attempts_t *a,
    const inf_model_id_t *id, const inf_model_stamp_t *stamp);

/* Takes what stamp holds. */
void inf_last_attempts_note(inf_last_attempts_t *a, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp);

/* All but those that stays (NULL: none) says. */
void inf_last_attempts_forget(inf_last_attempts_t *a,
    bool (*stays)(void *userp, const inf_model_id_t *id), void *userp);

#endif /* INF_REPOSITORY_LAST_ATTEMPTS_H */
