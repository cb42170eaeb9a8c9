#include "core/tensor/parameter.h"

inf_parameter_t *
inf_parameter_add(inf_parameter_list_t *list, inf_arena_t *arena,
    const char *name, size_t name_len, inf_parameter_type_t type)
{
    inf_parameter_t *p = inf_arena_calloc(arena, 1, sizeof(*p));
    char *copy = inf_arena_strdup(arena, name, name_len);
    if (p == NULL || copy == NULL) {
        return NULL;
    }

    p->name = copy;
    p->type = type;

    if (list->last == NULL) {
        list->first = p;
    } else {
        list->last->next = p;
    }
    list->last = p;
    list->count++;
    return p;
}

const inf_parameter_t *
inf_parameter_at(const inf_parameter_list_t *list, uint32_t index)
{
    const inf_parameter_t *p = list->first;
    while (p != NULL && index > 0) {
        p = p->next;
        index--;
    }

    return p;
}

const void *
inf_parameter_value(const inf_parameter_t *p)
{
    switch (p->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        return p->text;
    case INF_PARAMETER_INT:
        return &p->i;
    case INF_PARAMETER_BOOL:
        return &p->b;
    case INF_PARAMETER_DOUBLE:
        return &p->d;
    }

    return NULL;
}
