/*
 * region.h - which bytes of an arena are whose: an allocator of offsets.
 *
 * Owner    The arena's one allocating side.  All bookkeeping lives in private
 *          memory; the arena's bytes are never read or written here, so a
 *          peer that maps them cannot damage it.
 * Thread   one at a time; the core's side wraps it in a lock.
 * Units    bytes; offsets and sizes are multiples of INF_ARENA_ALIGN.
 * Errors   NULL or false when the bound, the address space or memory ends;
 *          stats.failures counts them.
 * Route    bodies and outputs live in regions from alloc to free.
 *
 * The arena is a sparse memfd: address space is plenty, pages cost.  So what
 * is bound is the sum of charges, and a region may be reserved before its
 * bytes arrive.  Reservations have a part of the address space to themselves:
 * however many there are, and wherever they lie, they leave the other part to
 * what is charged.  The region freed last is handed out first (its pages are
 * warm); unused pages are given back to the system by inf_regions_trim.  Where
 * the begin of a part is pinned, a region in there comes before all others.
 */

#ifndef INF_WIRE_REGION_H
#define INF_WIRE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/include/channel.h"

#define INF_REGION_BINS      384
#define INF_REGION_CACHE_MAX (4u << 20)     /* larger ones are merged at once */

typedef enum {
    INF_REGION_USED,
    INF_REGION_CACHED,      /* free, on its size class's list              */
    INF_REGION_FREE,        /* free, merged with its neighbours            */
    INF_REGION_SPARE        /* bookkeeping not in use                      */
} inf_region_state_t;

/* From offset to offset; from == to: empty. */
typedef struct {
    uint64_t from;
    uint64_t to;
} inf_region_span_t;

/* A stretch of the address space, with its free regions. */
typedef struct {
    uint64_t            begin;
    uint64_t            pinned;     /* below: a driver holds the pages       */
    uint64_t            end;
    uint64_t            top;        /* above: never handed out, or given back */
    inf_region_span_t   top_dirty;  /* as a region's, above top              */
    uint64_t            cached;     /* bytes in CACHED regions               */
    inf_link_t          places;
    inf_link_t          cold_cached;
    uint64_t            free_map[INF_REGION_BINS / 64];
    inf_link_t          free_bins[INF_REGION_BINS];
    inf_link_t          cache_bins[INF_REGION_BINS];
} inf_regions_part_t;

typedef struct inf_region_s {
    uint64_t            offset;     /* callers read these three            */
    uint64_t            size;       /* usable bytes                        */
    uint64_t            charged;    /* counted against the bound           */

    inf_regions_part_t *part;
    inf_region_span_t   dirty;      /* where it has pages that may be
                                       trimmed, at most                    */
    inf_region_state_t  state;
    inf_link_t          place;      /* among all of its part, by offset    */
    inf_link_t          bin;        /* among free ones of its size         */
    inf_link_t          age;        /* among free ones, coldest first      */
} inf_region_t;

typedef struct {
    uint64_t in_use;        /* charged now                                 */
    uint64_t reserved;      /* by reservations, and not charged            */
    uint64_t peak;          /* most ever charged                           */
    uint64_t regions;       /* handed out now                              */
    uint64_t idle;          /* free bytes with pages that may be trimmed   */
    uint64_t trimmed;       /* bytes given back to the system, ever        */
    uint64_t failures;      /* allocations, charges and trims rejected     */
} inf_regions_stats_t;

typedef struct {
    int                  fd;        /* of the memfd, for trimming; not owned */
    uint64_t             size;
    uint64_t             bound;

    inf_regions_part_t   charged;
    inf_regions_part_t   reserved;
    uint64_t             recent_peak;
    uint64_t             earlier_peak;
    uint64_t             window_ns; /* when the current window began         */
    inf_regions_stats_t  stats;

    inf_link_t           cold_free;
    inf_link_t           spare;
    void                *chunks;    /* memory of the regions themselves      */
} inf_regions_t;

/* Of size bytes the last `reservable` are for reservations.  fd -1: nothing is
   ever trimmed. */
void inf_regions_init(inf_regions_t *r, int fd, uint64_t size,
    uint64_t reservable, uint64_t bound);
void inf_regions_fini(inf_regions_t *r);

/* The first `pinned` bytes of either part are never trimmed (a driver holds
   their pages), and they are what is handed out first.  Once. */
void inf_regions_pin(inf_regions_t *r, uint64_t pinned);

/* fd, where init was given -1; regions may be in use. */
void inf_regions_trim_from(inf_regions_t *r, int fd);

/* size bytes, charged at once.  size 0 counts as 1. */
inf_region_t *inf_regions_alloc(inf_regions_t *r, uint64_t size);

/* The same, where this one may exceed the bound by room bytes. */
inf_region_t *inf_regions_alloc_beyond(inf_regions_t *r, uint64_t size,
    uint64_t room);

/* Address space only; charge it as the bytes arrive.  NULL also when the part
   for reservations is full: alloc a little and let it grow then. */
inf_region_t *inf_regions_reserve(inf_regions_t *r, uint64_t size);

/* Raises the charge to cover the first len bytes (len <= size). */
bool inf_regions_charge(inf_regions_t *r, inf_region_t *region, uint64_t len);

/*
 * A region of at least size bytes, no reservation, to which from's charge goes:
 * for bytes that move as they grow.  from is to be freed; its bytes stay until
 * then.
 */
inf_region_t *inf_regions_replace(inf_regions_t *r, inf_region_t *from,
    uint64_t size);

/* Makes region->size at least size without moving it, charging nothing. */
bool inf_regions_grow(inf_regions_t *r, inf_region_t *region, uint64_t size);

/* NULL does nothing. */
void inf_regions_free(inf_regions_t *r, inf_region_t *region);

/*
 * Gives cold free pages back, at most max_bytes in one call, while more is
 * resident than was in use at the peak of the last 10 to 20 s.  To be called
 * now and then; returns the bytes given back.
 */
uint64_t inf_regions_trim(inf_regions_t *r, uint64_t now_ns,
    uint64_t max_bytes);

/* Whether [offset, offset + len) lies in [0, size). */
static inline bool
inf_range_ok(uint64_t offset, uint64_t len, uint64_t size)
{
    return offset <= size && len <= size - offset;
}

#endif /* INF_WIRE_REGION_H */
