/*
 * last_attempts.h - the last loads queued by polls: an early poll does not try
 *                   failed models again whose files have not changed.
 *
 * Owner    The polling thread; fini frees it.  Zeroed memory is empty.
 * Thread   one at a time.
 * Units    none.
 * Errors   Without memory a model is tried once more.
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

/* Frees all attempts. */
void inf_last_attempts_fini(inf_last_attempts_t *a);

/* Whether the last attempt at the model was with the files of stamp. */
bool inf_last_attempts_has(const inf_last_attempts_t *a,
    const inf_model_id_t *id, const inf_model_stamp_t *stamp);

/* Records an attempt; takes the contents of stamp. */
void inf_last_attempts_note(inf_last_attempts_t *a, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp);

/* Removes all attempts except those for which stays returns true (NULL:
   all). */
void inf_last_attempts_forget(inf_last_attempts_t *a,
    bool (*stays)(void *userp, const inf_model_id_t *id), void *userp);

#endif /* INF_REPOSITORY_LAST_ATTEMPTS_H */
