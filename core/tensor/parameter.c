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

    if (list->count == list->cap) {
        inf_parameter_t **items = inf_arena_grow(arena, list->items,
            list->count, &list->cap, sizeof(*items));
        if (items == NULL) {
            return NULL;
        }
        list->items = items;
    }

    p->name = copy;
    p->type = type;
    list->items[list->count++] = p;
    return p;
}

const inf_parameter_t *
inf_parameter_at(const inf_parameter_list_t *list, uint32_t index)
{
    return index < list->count ? list->items[index] : NULL;
}

const void *
inf_parameter_value(const inf_parameter_t *p)
{
    uint64_t len;
    return inf_parameter_bytes(p, &len);
}

const void *
inf_parameter_bytes(const inf_parameter_t *p, uint64_t *len)
{
    switch (p->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        *len = p->text_len;
        return p->text;
    case INF_PARAMETER_INT:
        *len = sizeof(p->i);
        return &p->i;
    case INF_PARAMETER_BOOL:
        *len = sizeof(p->b);
        return &p->b;
    case INF_PARAMETER_DOUBLE:
        *len = sizeof(p->d);
        return &p->d;
    }

    *len = 0;
    return NULL;
}
