/*
 * region.h - an allocator of the bytes of an arena, by offset.
 *
 * Owner    The allocating side of the arena.  The bookkeeping is in private
 *          memory; the arena's bytes are never accessed, so a peer that maps
 *          them cannot damage it.
 * Thread   one at a time; the core's side has a lock around it.
 * Units    bytes; offsets and sizes are multiples of INF_ARENA_ALIGN.
 * Errors   NULL or false if the bound, the address space or memory is
 *          exhausted; stats.failures counts these.
 * Route    body, outputs -> [region] -> offsets in records
 *
 * The arena is a sparse memfd: address space is cheap, pages are not.
 * Therefore the bound is on the sum of charges, and a region may be reserved
 * before its bytes arrive.  Reservations have their own part of the address
 * space, so that they cannot fragment the part of charged regions.  The region
 * freed last is allocated first (its pages are warm); inf_regions_trim returns
 * unused pages to the system.  Where the beginning of a part is pinned,
 * regions in it are allocated before all others.
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
    INF_REGION_SPARE        /* bookkeeping record not in use               */
} inf_region_state_t;

/* From offset to offset; from == to: empty. */
typedef struct {
    uint64_t from;
    uint64_t to;
} inf_region_span_t;

/* A part of the address space, with its free regions. */
typedef struct {
    uint64_t            begin;
    uint64_t            pinned;     /* end of the pages that a driver holds  */
    uint64_t            end;
    uint64_t            top;        /* end of the allocated space             */
    inf_region_span_t   top_dirty;  /* as of a region, above top             */
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
    inf_region_span_t   dirty;      /* span that may have pages to trim    */
    inf_region_state_t  state;
    inf_link_t          place;      /* all of its part, by offset          */
    inf_link_t          bin;        /* free ones of its size               */
    inf_link_t          age;        /* free ones, coldest first            */
} inf_region_t;

typedef struct {
    uint64_t in_use;        /* currently charged                           */
    uint64_t reserved;      /* of reservations, uncharged part             */
    uint64_t peak;          /* highest in_use                              */
    uint64_t regions;       /* currently allocated                         */
    uint64_t idle;          /* free bytes with pages that may be trimmed   */
    uint64_t trimmed;       /* bytes returned to the system                */
    uint64_t failures;      /* allocations, charges and trims rejected     */
} inf_regions_stats_t;

typedef struct {
    int                  fd;        /* memfd to trim, not owned              */
    uint64_t             size;
    uint64_t             bound;

    inf_regions_part_t   charged;
    inf_regions_part_t   reserved;
    uint64_t             recent_peak;
    uint64_t             earlier_peak;
    uint64_t             window_ns; /* start of the current window           */
    inf_regions_stats_t  stats;

    inf_link_t           cold_free;
    inf_link_t           spare;
    void                *chunks;    /* blocks of region records              */
} inf_regions_t;

/* The last `reservable` of size bytes are for reservations.  fd -1: nothing is
   trimmed. */
void inf_regions_init(inf_regions_t *r, int fd, uint64_t size,
    uint64_t reservable, uint64_t bound);
void inf_regions_fini(inf_regions_t *r);

/* The first `pinned` bytes of either part are no longer trimmed, since a driver
   holds their pages, and are allocated first.  Called once. */
void inf_regions_pin(inf_regions_t *r, uint64_t pinned);

/* Sets fd if init was called with -1; regions may be in use. */
void inf_regions_trim_from(inf_regions_t *r, int fd);

/* Allocates size bytes, charged at once.  size 0 counts as 1. */
inf_region_t *inf_regions_alloc(inf_regions_t *r, uint64_t size);

/* Allocates as alloc; this region may exceed the bound by room bytes. */
inf_region_t *inf_regions_alloc_beyond(inf_regions_t *r, uint64_t size,
    uint64_t room);

/* Allocates address space, to be charged as the bytes arrive.  NULL also if the
   part for reservations is full: allocate a small region and grow it then. */
inf_region_t *inf_regions_reserve(inf_regions_t *r, uint64_t size);

/* Raises the charge to cover the first len bytes (len <= size). */
bool inf_regions_charge(inf_regions_t *r, inf_region_t *region, uint64_t len);

/*
 * Allocates a region of at least size bytes, not a reservation, and moves
 * from's charge to it; for data that moves as it grows.  The caller copies
 * from's bytes, then frees it.
 */
inf_region_t *inf_regions_replace(inf_regions_t *r, inf_region_t *from,
    uint64_t size);

/* Enlarges region->size to at least size in place, without charging. */
bool inf_regions_grow(inf_regions_t *r, inf_region_t *region, uint64_t size);

/* region may be NULL. */
void inf_regions_free(inf_regions_t *r, inf_region_t *region);

/*
 * Returns cold free pages to the system, at most max_bytes per call, while
 * more is resident than the peak use of the last 10 to 20 s.  Called by a
 * timer; returns the number of bytes.
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
