/*
 * infer_names.c - see infer_names.h.
 *
 * Up to LINEAR names stand in a row; beyond it they are hashed with a secret
 * key, open addressing, at most half full.
 */

#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/proto/infer_names.h"

#define LINEAR 16u

__extension__ typedef unsigned __int128 u128_t;

static inf_names_slot_t *find_slot(const inf_names_t *set, inf_slice_t name,
    uint32_t hash);
static uint32_t hash_name(const inf_names_t *set, inf_slice_t name);
static inf_err_t *grow(inf_names_t *set);
static void draw_seed(inf_names_t *set);

void
inf_names_init(inf_names_t *set, inf_arena_t *arena)
{
    memset(set, 0, sizeof(*set));
    set->arena = arena;
}

inf_err_t *
inf_names_add(inf_names_t *set, inf_slice_t name, uint32_t value, bool *fresh)
{
    bool full = set->capacity <= LINEAR ? set->count == set->capacity
                                        : set->count >= set->capacity / 2;

    if (full) {
        inf_err_t *err = grow(set);
        if (err != NULL) {
            return err;
        }
    }

    uint32_t hash = hash_name(set, name);
    inf_names_slot_t *slot = find_slot(set, name, hash);

    *fresh = slot->value == INF_NAMES_NONE;
    if (*fresh) {
        *slot = (inf_names_slot_t) { name, hash, value };
        set->count++;
    }

    return NULL;
}

uint32_t
inf_names_find(const inf_names_t *set, inf_slice_t name)
{
    if (set->count == 0) {
        return INF_NAMES_NONE;
    }

    const inf_names_slot_t *slot = find_slot(set, name, hash_name(set, name));
    return slot != NULL ? slot->value : INF_NAMES_NONE;
}

/* The name's slot, or the empty one where it belongs; NULL: there is neither
   (only in a full row). */
static inf_names_slot_t *
find_slot(const inf_names_t *set, inf_slice_t name, uint32_t hash)
{
    bool linear = set->capacity <= LINEAR;
    uint32_t i = linear ? 0 : hash & (set->capacity - 1);

    for (uint32_t tried = 0; tried < set->capacity; tried++) {
        inf_names_slot_t *slot = &set->slots[i];
        if (slot->value == INF_NAMES_NONE
            || (slot->hash == hash && inf_slice_eq(slot->name, name)))
        {
            return slot;
        }

        i = (i + 1) & (set->capacity - 1);
    }

    return NULL;
}

/* Rows need no hash. */
static uint32_t
hash_name(const inf_names_t *set, inf_slice_t name)
{
    if (set->capacity <= LINEAR) {
        return (uint32_t) name.len;
    }

    uint64_t h = set->seed[0] ^ name.len;
    const char *p = name.data;

    for (size_t left = name.len; left != 0; ) {
        uint64_t word = 0;
        size_t n = left < 8 ? left : 8;
        memcpy(&word, p, n);
        p += n;
        left -= n;

        u128_t m = (u128_t) (h ^ word) * (set->seed[1] | 1);
        h = (uint64_t) m ^ (uint64_t) (m >> 64) ^ set->seed[0];
    }

    h ^= h >> 32;
    h *= set->seed[1] | 1;
    return (uint32_t) (h >> 32);
}

static inf_err_t *
grow(inf_names_t *set)
{
    inf_names_t bigger = *set;

    bigger.capacity = set->capacity == 0 ? LINEAR : set->capacity * 4;
    bigger.slots = inf_arena_alloc(set->arena,
                                   bigger.capacity * sizeof(*bigger.slots));
    if (bigger.slots == NULL) {
        return inf_err_nomem();
    }

    if (set->capacity == LINEAR) {
        draw_seed(&bigger);
    }

    for (uint32_t i = 0; i < bigger.capacity; i++) {
        bigger.slots[i].value = INF_NAMES_NONE;
    }

    for (uint32_t i = 0; i < set->capacity; i++) {
        inf_names_slot_t old = set->slots[i];
        if (old.value != INF_NAMES_NONE) {
            old.hash = hash_name(&bigger, old.name);
            *find_slot(&bigger, old.name, old.hash) = old;
        }
    }

    *set = bigger;
    return NULL;
}

static void
draw_seed(inf_names_t *set)
{
    if (getrandom(set->seed, sizeof(set->seed), GRND_NONBLOCK)
        != (ssize_t) sizeof(set->seed))
    {
        set->seed[0] = inf_clock_ns();
        set->seed[1] = inf_clock_ns() ^ (uint64_t) (uintptr_t) set->arena;
    }
}
