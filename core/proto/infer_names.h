/*
 * infer_names.h - a set of tensor names, each with a number; fast for a few
 *                 names and safe for a million names chosen by an attacker.
 *
 * Owner    The caller's memory, tables in the given arena; names are not
 *          copied and must stay valid.
 * Thread   one at a time.
 * Units    none.
 * Errors   Out of memory only.
 * Route    request reader (duplicates), response writer (requested outputs).
 */

#ifndef INF_PROTO_INFER_NAMES_H
#define INF_PROTO_INFER_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"

#define INF_NAMES_NONE UINT32_MAX

typedef struct {
    inf_slice_t name;
    uint32_t    hash;
    uint32_t    value;          /* INF_NAMES_NONE: empty slot                */
} inf_names_slot_t;

typedef struct {
    inf_arena_t      *arena;
    inf_names_slot_t *slots;
    uint32_t          capacity;
    uint32_t          count;
    uint64_t          seed[2];  /* random, set when hashing begins           */
} inf_names_t;

/* An empty set, whose table comes from arena. */
void inf_names_init(inf_names_t *set, inf_arena_t *arena);

/* Adds name with value (not INF_NAMES_NONE); *fresh: it was not in the set. */
INF_CHECK inf_err_t *inf_names_add(inf_names_t *set, inf_slice_t name,
    uint32_t value, bool *fresh);

/* The value of name, or INF_NAMES_NONE. */
uint32_t inf_names_find(const inf_names_t *set, inf_slice_t name);

#endif /* INF_PROTO_INFER_NAMES_H */
