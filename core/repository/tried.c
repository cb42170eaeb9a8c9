#include "core/repository/tried.h"

#include <stdlib.h>
#include <string.h>

static inf_model_id_t model_id(const inf_tried_model_t *m);
static size_t place_of(const inf_tried_t *t, const inf_model_id_t *id,
    bool *there);
static void model_fini(inf_tried_model_t *m);

void
inf_tried_fini(inf_tried_t *t)
{
    inf_tried_forget(t, NULL, NULL);
    free(t->items);
    t->items = NULL;
}

bool
inf_tried_is(const inf_tried_t *t, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp)
{
    bool there;
    size_t at = place_of(t, id, &there);
    return there && inf_model_stamp_equal(&t->items[at].stamp, stamp);
}

void
inf_tried_note(inf_tried_t *t, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp)
{
    bool there;
    size_t at = place_of(t, id, &there);

    if (there) {
        inf_model_stamp_fini(&t->items[at].stamp);
        t->items[at].stamp = *stamp;
        return;
    }

    inf_tried_model_t *wider = realloc(t->items,
        (t->count + 1) * sizeof(*wider));
    t->items = wider != NULL ? wider : t->items;
    inf_tried_model_t m = { strdup(id->space), strdup(id->name), *stamp };
    if (wider == NULL || m.space == NULL || m.name == NULL) {
        model_fini(&m);
        return;
    }

    memmove(&wider[at + 1], &wider[at], (t->count - at) * sizeof(*wider));
    wider[at] = m;
    t->count++;
}

void
inf_tried_forget(inf_tried_t *t,
    bool (*stays)(void *userp, const inf_model_id_t *id), void *userp)
{
    size_t left = 0;

    for (size_t i = 0; i < t->count; i++) {
        const inf_model_id_t id = model_id(&t->items[i]);
        if (stays != NULL && stays(userp, &id)) {
            t->items[left++] = t->items[i];
        } else {
            model_fini(&t->items[i]);
        }
    }
    t->count = left;
}

static inf_model_id_t
model_id(const inf_tried_model_t *m)
{
    return (inf_model_id_t) { .space = m->space, .name = m->name };
}

/* Where id is, or belongs. */
static size_t
place_of(const inf_tried_t *t, const inf_model_id_t *id, bool *there)
{
    size_t low = 0;
    size_t high = t->count;

    *there = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const inf_model_id_t at = model_id(&t->items[mid]);
        int order = inf_model_id_compare(&at, id);
        *there = *there || order == 0;
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

static void
model_fini(inf_tried_model_t *m)
{
    free(m->space);
    free(m->name);
    inf_model_stamp_fini(&m->stamp);
}
