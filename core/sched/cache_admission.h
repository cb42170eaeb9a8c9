/*
 * cache_admission.h - whether a full shard of a cache gives something up for
 *                     a new item.
 *
 * Owner    The caller's memory, which has init's table until fini.
 * Thread   any, with the shard's lock held.
 * Units    items, hits.
 * Errors   none; without its table it recognises nothing.
 * Route    local cache -> [cache admission]
 *
 * The rule: everything is admitted until as many items were given up as the
 * shard holds (and INF_CACHE_FUTILE_MIN at least) without a single hit.  From
 * then on, until the next hit, what comes is turned away, but
 * - what was turned away before and is still remembered: it repeats.
 *   INF_CACHE_TURNED_AWAY are, some fewer where their hashes crowd;
 * - every INF_CACHE_SAMPLE-th: what repeats too seldom to be remembered is
 *   found among these, in time.
 * So where no request ever repeats, a cache costs little more than looking;
 * where one begins to, its second time lets it in and its third is a hit, and
 * that hit opens the shard to everything again.
 *
 * The caller asks only while there is no room: a cache that isn't full takes
 * everything.
 */

#ifndef INF_SCHED_CACHE_ADMISSION_H
#define INF_SCHED_CACHE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_CACHE_FUTILE_MIN  1024u
#define INF_CACHE_SAMPLE      64u
#define INF_CACHE_TURNED_AWAY 2048u

typedef struct inf_cache_ghosts_s inf_cache_ghosts_t;

typedef struct {
    uint64_t            futile;         /* items given up since the last hit */
    uint64_t            turned_away;    /* or would be but for the sample    */
    inf_cache_ghosts_t *ghosts;         /* who was turned away               */
} inf_cache_admission_t;

INF_CHECK inf_err_t *inf_cache_admission_init(inf_cache_admission_t *a);
void inf_cache_admission_fini(inf_cache_admission_t *a);

/* An item of that hash is about to be looked for: what admits would touch is
   brought near. */
void inf_cache_admission_look(const inf_cache_admission_t *a, uint64_t hash);

void inf_cache_admission_hit(inf_cache_admission_t *a);
void inf_cache_admission_gave_up(inf_cache_admission_t *a);

/* Whether strangers are turned away; held: how many the shard holds. */
bool inf_cache_admission_turns_away(const inf_cache_admission_t *a,
    uint64_t held);

/* An item of that hash was missed and there is no room for it. */
bool inf_cache_admission_admits(inf_cache_admission_t *a, uint64_t hash,
    uint64_t held);

#endif /* INF_SCHED_CACHE_ADMISSION_H */
