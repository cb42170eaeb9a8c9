/*
 * infer_names.c - see infer_names.h.
 *
 * Up to LINEAR names are an unsorted array; more names are a hash table with a
 * secret key, open addressing, at most half full.
 */

#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/proto/infer_names.h"

#define FIRST  4u
#define LINEAR 16u

__extension__ typedef unsigned __int128 u128_t;

static const inf_names_slot_t *find_in_row(const inf_names_t *set,
    inf_slice_t name);
static inf_names_slot_t *find_hashed(const inf_names_t *set, inf_slice_t name,
    uint32_t hash);
static uint32_t hash_name(const inf_names_t *set, inf_slice_t name);
static inf_err_t *grow(inf_names_t *set);
static void fill(inf_names_t *set, const inf_names_t *from);
static void draw_seed(inf_names_t *set);

void
inf_names_init(inf_names_t *set, inf_arena_t *arena)
{
    memset(set, 0, sizeof(*set));
    set->arena = arena;
}

static bool
is_row(const inf_names_t *set)
{
    return set->capacity <= LINEAR;
}

inf_err_t *
inf_names_add(inf_names_t *set, inf_slice_t name, uint32_t value, bool *fresh)
{
    bool full = is_row(set) ? set->count == set->capacity
                            : set->count >= set->capacity / 2;

    if (full) {
        inf_err_t *err = grow(set);
        if (err != NULL) {
            return err;
        }
    }

    if (is_row(set)) {
        *fresh = find_in_row(set, name) == NULL;
        if (*fresh) {
            set->slots[set->count++] = (inf_names_slot_t) { name, 0, value };
        }

        return NULL;
    }

    uint32_t hash = hash_name(set, name);
    inf_names_slot_t *slot = find_hashed(set, name, hash);

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
    if (is_row(set)) {
        const inf_names_slot_t *slot = find_in_row(set, name);
        return slot != NULL ? slot->value : INF_NAMES_NONE;
    }

    return find_hashed(set, name, hash_name(set, name))->value;
}

/* NULL: not in the set. */
static const inf_names_slot_t *
find_in_row(const inf_names_t *set, inf_slice_t name)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (inf_slice_eq(set->slots[i].name, name)) {
            return &set->slots[i];
        }
    }

    return NULL;
}

/* The name's slot, or the empty slot for it. */
static inf_names_slot_t *
find_hashed(const inf_names_t *set, inf_slice_t name, uint32_t hash)
{
    uint32_t i = hash & (set->capacity - 1);

    while (set->slots[i].value != INF_NAMES_NONE
           && (set->slots[i].hash != hash
               || !inf_slice_eq(set->slots[i].name, name)))
    {
        i = (i + 1) & (set->capacity - 1);
    }

    return &set->slots[i];
}

static uint32_t
hash_name(const inf_names_t *set, inf_slice_t name)
{
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

    bigger.capacity = set->capacity == 0 ? FIRST : set->capacity * 4;
    bigger.slots = inf_arena_alloc(set->arena,
                                   bigger.capacity * sizeof(*bigger.slots));
    if (bigger.slots == NULL) {
        return inf_err_nomem();
    }

    if (!is_row(&bigger)) {
        fill(&bigger, set);
    } else if (set->count != 0) {
        memcpy(bigger.slots, set->slots, set->count * sizeof(*set->slots));
    }

    *set = bigger;
    return NULL;
}

/* Adds the entries of from; a row has no empty slots before its end. */
static void
fill(inf_names_t *set, const inf_names_t *from)
{
    uint32_t slots = is_row(from) ? from->count : from->capacity;

    if (is_row(from)) {
        draw_seed(set);
    }

    for (uint32_t i = 0; i < set->capacity; i++) {
        set->slots[i].value = INF_NAMES_NONE;
    }

    for (uint32_t i = 0; i < slots; i++) {
        inf_names_slot_t old = from->slots[i];
        if (old.value != INF_NAMES_NONE) {
            old.hash = hash_name(set, old.name);
            *find_hashed(set, old.name, old.hash) = old;
        }
    }
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
