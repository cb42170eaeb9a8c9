/*
 * cache_strangers.h - which requests need not be looked up: those that look
 *                     like none before, once a full cache has not been hit
 *                     for very long.
 *
 * Owner    The caller's memory: init, use, fini.
 * Thread   pass, hit, missed: any, many at once, no lock: what they lose by
 *          that is a lookup too many or too few.
 * Units    none.
 * Errors   init: no memory.
 * Route    response cache -> [strangers] -> lookup, or the runner
 *
 * Hashing all bytes of a request, looking for them and counting who waits for
 * them cost all the more when nothing ever comes of it.  After
 * INF_CACHE_HITLESS lookups without a hit, and while the cache turns
 * away what it misses, a request is looked up only if it is familiar: some of
 * its bytes are those of a request not long ago.  So what comes again soon is
 * found as ever.  One in INF_CACHE_ASKED of the others is looked up all the
 * same: that finds what comes again late, and a single hit ends all this.
 */

#ifndef INF_SCHED_CACHE_STRANGERS_H
#define INF_SCHED_CACHE_STRANGERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/tensor/request.h"

#define INF_CACHE_HITLESS  16384u
#define INF_CACHE_ASKED    64u
#define INF_CACHE_FAMILIAR 4096u    /* requests that are known again, about  */

typedef struct {
    _Atomic bool      futile;       /* all these relaxed: the cache turns
                                       away what it misses                   */
    _Atomic uint32_t  hitless;      /* lookups since the last hit; stops at
                                       INF_CACHE_HITLESS                     */
    _Atomic uint32_t  passed;       /* strangers so far                      */
    _Atomic uint32_t *faces;        /* of requests, by some of their bits    */
} inf_cache_strangers_t;

INF_CHECK inf_err_t *inf_cache_strangers_init(inf_cache_strangers_t *s);
void inf_cache_strangers_fini(inf_cache_strangers_t *s);

/* Whether req can go by without a lookup; inf_cache_key_bytes said true. */
bool inf_cache_strangers_pass(inf_cache_strangers_t *s,
    const inf_request_t *req);

/* What came of a lookup; futile: the cache turns away what it misses. */
void inf_cache_strangers_hit(inf_cache_strangers_t *s);
void inf_cache_strangers_missed(inf_cache_strangers_t *s, bool futile);

#endif /* INF_SCHED_CACHE_STRANGERS_H */
