/*
 * arena.h - many small allocations that are freed together.
 *
 * Owner    The caller's memory: init, use, reset or fini.
 * Thread   one at a time.
 * Units    bytes; every allocation is aligned to 16.
 * Errors   NULL when out of memory.
 * Route    a request's names, shapes and tables live in the request's arena.
 *          With INF_NOPOOL one allocation is one malloc, so that sanitizers
 *          see each of them.
 */

#ifndef INF_BASE_ARENA_H
#define INF_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct inf_arena_chunk_s inf_arena_chunk_t;

typedef struct {
    inf_arena_chunk_t *chunks;      /* newest first                        */
    size_t             used;        /* in the newest chunk                 */
} inf_arena_t;

/* Memory of ended arenas for reuse; {0} has none. */
typedef struct {
    inf_arena_chunk_t *chunks;
    unsigned           count;       /* at most INF_ARENA_SPARES            */
} inf_arena_spares_t;

#define INF_ARENA_SPARES 32u

/* The first allocation allocates memory; fini frees all allocations. */
void inf_arena_init(inf_arena_t *a);
void inf_arena_fini(inf_arena_t *a);

/* Like init and fini, with memory from and to the spares. */
void inf_arena_take(inf_arena_t *a, inf_arena_spares_t *from);
void inf_arena_give(inf_arena_t *a, inf_arena_spares_t *to);

/* Frees all allocations; keeps one chunk of a few KiB for reuse. */
void inf_arena_reset(inf_arena_t *a);

/* NULL: out of memory, or count times size overflows; calloc zeroes the
   bytes. */
void *inf_arena_alloc(inf_arena_t *a, size_t size);
void *inf_arena_calloc(inf_arena_t *a, size_t count, size_t size);

/* A copy of an array with twice the room, which *cap counts (0: none yet); the
   old one stays until the arena is reset.  NULL: out of memory, *cap stays. */
void *inf_arena_grow(inf_arena_t *a, const void *old, uint32_t count,
    uint32_t *cap, size_t size);

/* A NUL-terminated copy; copies of several texts.  NULL: out of memory. */
char *inf_arena_strdup(inf_arena_t *a, const char *data, size_t len);
char **inf_arena_strdup_all(inf_arena_t *a, char *const *texts, size_t count);

#endif /* INF_BASE_ARENA_H */
