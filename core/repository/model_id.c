#include "core/repository/model_id.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

inf_model_id_t
inf_model_id(const char *name)
{
    return (inf_model_id_t) { .space = "", .name = name };
}

int
inf_model_id_compare(const inf_model_id_t *a, const inf_model_id_t *b)
{
    int order = strcmp(a->space, b->space);
    return order != 0 ? order : strcmp(a->name, b->name);
}

bool
inf_model_id_equal(const inf_model_id_t *a, const inf_model_id_t *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->space, b->space) == 0;
}

char *
inf_model_id_print(const inf_model_id_t *id)
{
    char *text;

    if (id->space[0] == '\0') {
        return strdup(id->name);
    }
    return asprintf(&text, "%s::%s", id->space, id->name) >= 0 ? text : NULL;
}

inf_err_t *
inf_model_ids_copy(inf_model_ids_t *ids, const inf_model_id_t *from,
    size_t count)
{
    ids->items = calloc(count + 1, sizeof(*ids->items));
    for (size_t i = 0; ids->items != NULL && i < count; i++) {
        inf_model_id_t *id = &ids->items[ids->count++];
        id->space = strdup(from[i].space);
        id->name = strdup(from[i].name);
        if (id->space == NULL || id->name == NULL) {
            inf_model_ids_fini(ids);
        }
    }
    return ids->items != NULL ? NULL : inf_err_nomem();
}

void
inf_model_ids_fini(inf_model_ids_t *ids)
{
    for (size_t i = 0; i < ids->count; i++) {
        free((char *) (uintptr_t) ids->items[i].space);
        free((char *) (uintptr_t) ids->items[i].name);
    }
    free(ids->items);
    *ids = (inf_model_ids_t) { .count = 0 };
}

bool
inf_model_ids_has(const inf_model_ids_t *ids, const inf_model_id_t *id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (inf_model_id_equal(&ids->items[i], id)) {
            return true;
        }
    }

    return false;
}
