#include "core/tensor/parameter.h"

#include <string.h>

static bool list_grow(inf_parameter_list_t *list, inf_arena_t *arena);

inf_parameter_t *
inf_parameter_add(inf_parameter_list_t *list, inf_arena_t *arena,
    const char *name, size_t name_len, inf_parameter_type_t type)
{
    inf_parameter_t *p = inf_arena_calloc(arena, 1, sizeof(*p));
    char *copy = inf_arena_strdup(arena, name, name_len);
    if (p == NULL || copy == NULL
        || (list->count == list->cap && !list_grow(list, arena)))
    {
        return NULL;
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

/* Doubles the table; the old one stays until the arena is reset. */
static bool
list_grow(inf_parameter_list_t *list, inf_arena_t *arena)
{
    uint32_t cap = list->cap == 0 ? 4 : list->cap * 2;
    inf_parameter_t **items = inf_arena_alloc(arena, cap * sizeof(*items));
    if (items == NULL) {
        return false;
    }

    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof(*items));
    }
    list->items = items;
    list->cap = cap;
    return true;
}
