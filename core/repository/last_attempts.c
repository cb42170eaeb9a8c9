#include "core/repository/last_attempts.h"

#include <stdlib.h>
#include <string.h>

static inf_attempt_t *find(const inf_last_attempts_t *a,
    const inf_model_id_t *id);
static void attempt_fini(inf_attempt_t *t);

void
inf_last_attempts_fini(inf_last_attempts_t *a)
{
    inf_last_attempts_forget(a, NULL, NULL);
    free(a->items);
    a->items = NULL;
}

bool
inf_last_attempts_has(const inf_last_attempts_t *a, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp)
{
    const inf_attempt_t *t = find(a, id);
    return t != NULL && inf_model_stamp_equal(&t->stamp, stamp);
}

void
inf_last_attempts_note(inf_last_attempts_t *a, const inf_model_id_t *id,
    const inf_model_stamp_t *stamp)
{
    inf_attempt_t *known = find(a, id);
    if (known != NULL) {
        inf_model_stamp_fini(&known->stamp);
        known->stamp = *stamp;
        return;
    }

    inf_attempt_t *wider = realloc(a->items,
        (a->count + 1) * sizeof(*wider));
    inf_attempt_t t = { strdup(id->space), strdup(id->name), *stamp };
    a->items = wider != NULL ? wider : a->items;
    if (wider == NULL || t.space == NULL || t.name == NULL) {
        attempt_fini(&t);
        return;
    }
    wider[a->count++] = t;
}

void
inf_last_attempts_forget(inf_last_attempts_t *a,
    bool (*stays)(void *userp, const inf_model_id_t *id), void *userp)
{
    size_t left = 0;

    for (size_t i = 0; i < a->count; i++) {
        inf_attempt_t *t = &a->items[i];
        const inf_model_id_t id = { .space = t->space, .name = t->name };
        if (stays != NULL && stays(userp, &id)) {
            a->items[left++] = *t;
        } else {
            attempt_fini(t);
        }
    }
    a->count = left;
}

static inf_attempt_t *
find(const inf_last_attempts_t *a, const inf_model_id_t *id)
{
    for (size_t i = 0; i < a->count; i++) {
        const inf_attempt_t *t = &a->items[i];
        if (strcmp(t->name, id->name) == 0
            && strcmp(t->space, id->space) == 0)
        {
            return &a->items[i];
        }
    }

    return NULL;
}

static void
attempt_fini(inf_attempt_t *t)
{
    free(t->space);
    free(t->name);
    inf_model_stamp_fini(&t->stamp);
}
