#include "core/sched/cache_admission.h"

#include <stdlib.h>
#include <string.h>

#define GHOSTS_PER_SET 32u          /* a line of the processor's caches      */
#define SETS           (INF_CACHE_TURNED_AWAY / GHOSTS_PER_SET)

/* Parts of hashes; 0: none.  The last one to come is the first of its set.  A
   stranger is taken for one of them once in 2000 times, and is let in. */
struct inf_cache_ghosts_s {
    _Alignas(64) uint16_t sets[SETS][GHOSTS_PER_SET];
};

static bool recognises(inf_cache_ghosts_t *ghosts, uint64_t hash);

inf_err_t *
inf_cache_admission_init(inf_cache_admission_t *a)
{
    *a = (inf_cache_admission_t) { .ghosts = aligned_alloc(
        _Alignof(inf_cache_ghosts_t), sizeof(inf_cache_ghosts_t)) };
    if (a->ghosts == NULL) {
        return inf_err_nomem();
    }

    memset(a->ghosts, 0, sizeof(*a->ghosts));
    return NULL;
}

void
inf_cache_admission_fini(inf_cache_admission_t *a)
{
    free(a->ghosts);
    a->ghosts = NULL;
}

void
inf_cache_admission_look(const inf_cache_admission_t *a, uint64_t hash)
{
    if (a->futile >= INF_CACHE_FUTILE_MIN) {
        __builtin_prefetch(a->ghosts->sets[hash % SETS], 1);
    }
}

void
inf_cache_admission_hit(inf_cache_admission_t *a)
{
    a->futile = 0;
}

void
inf_cache_admission_gave_up(inf_cache_admission_t *a)
{
    a->futile++;
}

bool
inf_cache_admission_turns_away(const inf_cache_admission_t *a, uint64_t held)
{
    return a->futile >= held && a->futile >= INF_CACHE_FUTILE_MIN;
}

bool
inf_cache_admission_admits(inf_cache_admission_t *a, uint64_t hash,
    uint64_t held)
{
    return !inf_cache_admission_turns_away(a, held) || recognises(a->ghosts, hash)
        || ++a->turned_away % INF_CACHE_SAMPLE == 0;
}

/* Remembers it, if not. */
static bool
recognises(inf_cache_ghosts_t *ghosts, uint64_t hash)
{
    uint16_t *set = ghosts->sets[hash % SETS];
    uint16_t ghost = (uint16_t) (hash >> 16 | 1);
    uint16_t found = 0;

    for (unsigned i = 0; i < GHOSTS_PER_SET; i++) {     /* vectors, so       */
        found |= (uint16_t) -(set[i] == ghost);
    }
    if (found == 0) {
        memmove(set + 1, set, (GHOSTS_PER_SET - 1) * sizeof(*set));
        set[0] = ghost;
    }
    return found != 0;
}
