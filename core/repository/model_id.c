#include "core/repository/model_id.h"

#include <stdio.h>
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
