#include "core/storage/object_listing.h"

#include <stdlib.h>

void
inf_object_listing_init(inf_object_listing_t *l)
{
    *l = (inf_object_listing_t) { NULL, 0, 0, NULL };
}

void
inf_object_listing_fini(inf_object_listing_t *l)
{
    inf_object_listing_cut(l, 0);
    free(l->items);
    free(l->next);
    inf_object_listing_init(l);
}

bool
inf_object_listing_take(inf_object_listing_t *l, inf_object_t *o)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity == 0 ? 64 : l->capacity * 2;
        inf_object_t *items = realloc(l->items, capacity * sizeof(*items));
        if (items == NULL) {
            return false;
        }
        l->items = items;
        l->capacity = capacity;
    }

    l->items[l->count++] = *o;
    *o = (inf_object_t) { NULL, NULL, 0, 0 };
    return true;
}

void
inf_object_listing_cut(inf_object_listing_t *l, size_t count)
{
    while (l->count > count) {
        inf_object_fini(&l->items[--l->count]);
    }
}

void
inf_object_fini(inf_object_t *o)
{
    free(o->key);
    free(o->etag);
    *o = (inf_object_t) { NULL, NULL, 0, 0 };
}
