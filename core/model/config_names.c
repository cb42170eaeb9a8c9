#include "core/model/config_names.h"

#include <stdlib.h>

#define NAMES_FIRST_CAPACITY 16u

static uint32_t names_hash(inf_slice_t name);
static inf_config_names_place_t *names_place(const inf_config_names_t *n,
    inf_slice_t name, uint32_t hash);
static bool names_grow(inf_config_names_t *n);

void
inf_config_names_init(inf_config_names_t *n)
{
    *n = (inf_config_names_t) { NULL, 0, 0 };
}

void
inf_config_names_fini(inf_config_names_t *n)
{
    free(n->places);
    inf_config_names_init(n);
}

inf_config_names_result_t
inf_config_names_add(inf_config_names_t *n, inf_slice_t name, uint32_t value)
{
    if (n->count >= n->capacity / 2 && !names_grow(n)) {
        return INF_CONFIG_NAMES_NOMEM;
    }

    uint32_t hash = names_hash(name);
    inf_config_names_place_t *place = names_place(n, name, hash);
    if (place->value != INF_CONFIG_NAMES_NONE) {
        return INF_CONFIG_NAMES_KNOWN;
    }

    *place = (inf_config_names_place_t) { name, hash, value };
    n->count++;
    return INF_CONFIG_NAMES_ADDED;
}

uint32_t
inf_config_names_find(const inf_config_names_t *n, inf_slice_t name)
{
    if (n->count == 0) {
        return INF_CONFIG_NAMES_NONE;
    }

    return names_place(n, name, names_hash(name))->value;
}

/* The FNV-1a hash of a name. */
static uint32_t
names_hash(inf_slice_t name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++) {
        hash = (uint32_t) ((hash ^ (uint8_t) name.data[i])
            * (uint64_t) 16777619u);
    }

    return hash;
}

/* The place of name, or the empty place for it. */
static inf_config_names_place_t *
names_place(const inf_config_names_t *n, inf_slice_t name, uint32_t hash)
{
    uint32_t mask = n->capacity - 1;

    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        inf_config_names_place_t *place = &n->places[i];
        if (place->value == INF_CONFIG_NAMES_NONE
            || (place->hash == hash && inf_slice_eq(place->name, name)))
        {
            return place;
        }
    }
}

static bool
names_grow(inf_config_names_t *n)
{
    uint32_t capacity = n->capacity == 0 ? NAMES_FIRST_CAPACITY
                                         : n->capacity * 2;
    if (capacity < n->capacity) {
        return false;
    }

    inf_config_names_place_t *places = malloc(capacity * sizeof(*places));
    if (places == NULL) {
        return false;
    }

    for (uint32_t i = 0; i < capacity; i++) {
        places[i] = (inf_config_names_place_t) {
            .value = INF_CONFIG_NAMES_NONE
        };
    }

    inf_config_names_t grown = { places, capacity, n->count };
    for (uint32_t i = 0; i < n->capacity; i++) {
        const inf_config_names_place_t *old = &n->places[i];
        if (old->value != INF_CONFIG_NAMES_NONE) {
            *names_place(&grown, old->name, old->hash) = *old;
        }
    }

    free(n->places);
    *n = grown;
    return true;
}
