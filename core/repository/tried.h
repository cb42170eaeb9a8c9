/*
 * tried.h - what polling has last given to a loader: what failed isn't tried
 *           again by a look that comes early and sees the same.
 *
 * Owner    The looker; fini ends it.  Zero is an empty one.
 * Thread   one at a time.
 * Units    none.
 * Errors   Without memory something is tried once more.
 * Route    poll -> [tried]
 */

#ifndef INF_REPOSITORY_TRIED_H
#define INF_REPOSITORY_TRIED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/repository/model_id.h"
#include "core/repository/model_stamp.h"

typedef struct {
    char             *space;
    char             *name;
    inf_model_stamp_t stamp;
} inf_tried_model_t;

typedef struct {
    inf_tried_model_t *items;       /* sorted by id                          */
    size_t             count;
} inf_tried_t;

void inf_tried_fini(inf_tried_t *t);

bool inf_tried_is(const inf_tried_t *t, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp);

/* Takes what stamp holds. */
void inf_tried_note(inf_tried_t *t, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp);

/* All but those that stays (NULL: none) says. */
void inf_tried_forget(inf_tried_t *t,
    bool (*stays)(void *userp, const inf_model_id_t *id), void *userp);

#endif /* INF_REPOSITORY_TRIED_H */
