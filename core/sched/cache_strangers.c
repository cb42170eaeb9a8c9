#include "core/sched/cache_strangers.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 16u                 /* words of an input, the ends included  */

static bool is_familiar(inf_cache_strangers_t *s, const inf_request_t *req);
static uint64_t face_of(const inf_request_t *req);
static uint64_t face_of_input(const inf_input_t *in);
static uint64_t stir(uint64_t face, uint64_t word);

inf_err_t *
inf_cache_strangers_init(inf_cache_strangers_t *s)
{
    memset(s, 0, sizeof(*s));
    s->faces = calloc(INF_CACHE_FAMILIAR, sizeof(*s->faces));
    return s->faces != NULL ? NULL : inf_err_nomem();
}

void
inf_cache_strangers_fini(inf_cache_strangers_t *s)
{
    free(s->faces);
    s->faces = NULL;
}

bool
inf_cache_strangers_pass(inf_cache_strangers_t *s, const inf_request_t *req)
{
    if (!atomic_load_explicit(&s->futile, memory_order_relaxed)
        || atomic_load_explicit(&s->hitless, memory_order_relaxed)
            < INF_CACHE_HITLESS
        || is_familiar(s, req))
    {
        return false;
    }

    uint32_t passed = atomic_load_explicit(&s->passed, memory_order_relaxed)
        + 1;
    atomic_store_explicit(&s->passed, passed, memory_order_relaxed);
    return passed % INF_CACHE_ASKED != 0;
}

void
inf_cache_strangers_hit(inf_cache_strangers_t *s)
{
    if (atomic_load_explicit(&s->hitless, memory_order_relaxed) != 0) {
        atomic_store_explicit(&s->hitless, 0, memory_order_relaxed);
    }
}

void
inf_cache_strangers_missed(inf_cache_strangers_t *s, bool futile)
{
    uint32_t hitless = atomic_load_explicit(&s->hitless,
        memory_order_relaxed);

    if (hitless < INF_CACHE_HITLESS) {
        atomic_store_explicit(&s->hitless, hitless + 1, memory_order_relaxed);
    }
    if (futile != atomic_load_explicit(&s->futile, memory_order_relaxed)) {
        atomic_store_explicit(&s->futile, futile, memory_order_relaxed);
    }
}

/* It is, the next time. */
static bool
is_familiar(inf_cache_strangers_t *s, const inf_request_t *req)
{
    uint64_t face = face_of(req);
    _Atomic uint32_t *known = &s->faces[face % INF_CACHE_FAMILIAR];
    uint32_t rest = (uint32_t) (face >> 32) | 1;    /* 0: nobody             */

    if (atomic_load_explicit(known, memory_order_relaxed) == rest) {
        return true;
    }
    atomic_store_explicit(known, rest, memory_order_relaxed);
    return false;
}

/* Equal requests have equal ones, in whatever order their inputs come. */
static uint64_t
face_of(const inf_request_t *req)
{
    uint64_t face = 0;

    for (uint32_t i = 0; i < req->input_count; i++) {
        face += face_of_input(&req->inputs[i]);
    }
    return stir(face, req->input_count);
}

/* Of the first buffer alone: an input that is cut in another way is a
   stranger, once. */
static uint64_t
face_of_input(const inf_input_t *in)
{
    uint64_t face = stir(0, in->byte_size);
    if (in->buffer_count == 0) {
        return face;
    }

    const char *base = in->buffers[0].base;
    size_t size = in->buffers[0].size;
    uint64_t word = 0;
    if (size < sizeof(word)) {
        memcpy(&word, base, size);
        return stir(face, word);
    }

    size_t last = size - sizeof(word);
    for (size_t i = 0; i < SAMPLES; i++) {
        memcpy(&word, base + last / (SAMPLES - 1) * i, sizeof(word));
        face = stir(face, word);
    }
    memcpy(&word, base + last, sizeof(word));
    return stir(face, word);
}

static uint64_t
stir(uint64_t face, uint64_t word)
{
    face = (face ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return face ^ face >> 29;
}
