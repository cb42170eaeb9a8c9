#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN 16
#define ARENA_CHUNK 4096

struct inf_arena_chunk_s {
    inf_arena_chunk_t *next;
    size_t             size;        /* of data                             */
    _Alignas(ARENA_ALIGN) char data[];
};

static inf_arena_chunk_t *arena_chunk_new(size_t size);

void
inf_arena_init(inf_arena_t *a)
{
    a->chunks = NULL;
    a->used = 0;
}

void
inf_arena_fini(inf_arena_t *a)
{
    while (a->chunks != NULL) {
        inf_arena_chunk_t *chunk = a->chunks;
        a->chunks = chunk->next;
        free(chunk);
    }

    a->used = 0;
}

void
inf_arena_take(inf_arena_t *a, inf_arena_spares_t *from)
{
    inf_arena_init(a);

    if (from->count != 0) {
        a->chunks = from->chunks;
        from->chunks = a->chunks->next;
        from->count--;
        a->chunks->next = NULL;
    }
}

void
inf_arena_give(inf_arena_t *a, inf_arena_spares_t *to)
{
#ifdef INF_NOPOOL
    (void) to;
#else
    inf_arena_chunk_t **at = &a->chunks;

    while (*at != NULL) {
        inf_arena_chunk_t *chunk = *at;
        if (chunk->size != ARENA_CHUNK || to->count == INF_ARENA_SPARES) {
            at = &chunk->next;
            continue;
        }

        *at = chunk->next;
        chunk->next = to->chunks;
        to->chunks = chunk;
        to->count++;
    }
#endif

    inf_arena_fini(a);
}

void
inf_arena_reset(inf_arena_t *a)
{
#ifdef INF_NOPOOL
    inf_arena_fini(a);
#else
    inf_arena_chunk_t *keep = NULL;
    inf_arena_chunk_t *next;

    for (inf_arena_chunk_t *chunk = a->chunks; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (keep == NULL && chunk->size == ARENA_CHUNK) {
            keep = chunk;
            keep->next = NULL;
        } else {
            free(chunk);
        }
    }

    a->chunks = keep;
    a->used = 0;
#endif
}

void *
inf_arena_alloc(inf_arena_t *a, size_t size)
{
    if (size > SIZE_MAX / 2) {
        return NULL;
    }

    size = (size + ARENA_ALIGN - 1) & ~(size_t) (ARENA_ALIGN - 1);

    if (a->chunks == NULL || a->chunks->size - a->used < size) {
#ifdef INF_NOPOOL
        inf_arena_chunk_t *chunk = arena_chunk_new(size);
#else
        inf_arena_chunk_t *chunk =
            arena_chunk_new(size > ARENA_CHUNK ? size : ARENA_CHUNK);
#endif
        if (chunk == NULL) {
            return NULL;
        }

        chunk->next = a->chunks;
        a->chunks = chunk;
        a->used = 0;
    }

    void *p = a->chunks->data + a->used;
    a->used += size;
    return p;
}

void *
inf_arena_calloc(inf_arena_t *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / 2 / size) {
        return NULL;
    }

    void *p = inf_arena_alloc(a, count * size);
    if (p != NULL) {
        memset(p, 0, count * size);
    }

    return p;
}

char *
inf_arena_strdup(inf_arena_t *a, const char *data, size_t len)
{
    char *p = inf_arena_alloc(a, len + 1);
    if (p != NULL) {
        if (len > 0) {
            memcpy(p, data, len);
        }
        p[len] = '\0';
    }

    return p;
}

void *
inf_arena_grow(inf_arena_t *a, const void *old, uint32_t count, uint32_t *cap,
    size_t size)
{
    uint32_t wider = *cap == 0 ? 4 : *cap * 2;
    void *p = inf_arena_alloc(a, wider * size);
    if (p == NULL) {
        return NULL;
    }

    if (count > 0) {
        memcpy(p, old, count * size);
    }
    *cap = wider;
    return p;
}

char **
inf_arena_strdup_all(inf_arena_t *a, char *const *texts, size_t count)
{
    char **copy = inf_arena_calloc(a, count + 1, sizeof(*copy));

    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = inf_arena_strdup(a, texts[i], strlen(texts[i]));
        copy = copy[i] != NULL ? copy : NULL;
    }

    return copy;
}

static inf_arena_chunk_t *
arena_chunk_new(size_t size)
{
    inf_arena_chunk_t *chunk = malloc(sizeof(*chunk) + size);
    if (chunk != NULL) {
        chunk->next = NULL;
        chunk->size = size;
    }

    return chunk;
}
