/*
 * region.h - an allocator of the bytes of an arena, by offset.
 *
 * Owner    The side that allocates owns the regions and their bookkeeping,
 *          which is in private memory.  The allocator never touches the bytes
 *          of the arena, so a peer that maps the arena cannot damage the
 *          bookkeeping.
 * Thread   one at a time; the core's side has a lock around all calls.
 * Units    bytes.  Offsets and sizes are multiples of INF_ARENA_ALIGN.
 * Errors   NULL or false: the bound, the address space or memory is used up;
 *          stats.failures counts these.
 * Route    body, outputs -> [region] -> offsets in records
 *
 * The arena is a sparse memfd: address space is cheap, pages are not.  So the
 * bound is on the sum of charges, and a region may be reserved before its bytes
 * arrive.  Reservations have their own part of the address space, and so do not
 * fragment the part of charged regions.
 *
 * The region that was freed last is allocated first, because its pages are
 * warm; but pinned space comes before all other space.  inf_regions_trim
 * returns cold free pages to the system.
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

/* The last `reservable` of the size bytes are for reservations.  fd -1: no
   pages are trimmed. */
void inf_regions_init(inf_regions_t *r, int fd, uint64_t size,
    uint64_t reservable, uint64_t bound);
void inf_regions_fini(inf_regions_t *r);

/* A driver holds the pages of the first `pinned` bytes of each part: these
   bytes are allocated first and not trimmed.  Called once. */
void inf_regions_pin(inf_regions_t *r, uint64_t pinned);

/* Sets the fd of an allocator that began with -1; regions may be in use. */
void inf_regions_trim_from(inf_regions_t *r, int fd);

/* Allocates size bytes and charges all of them.  A size of 0 counts as 1. */
inf_region_t *inf_regions_alloc(inf_regions_t *r, uint64_t size);

/* Allocates like alloc, but with a bound that is room bytes higher. */
inf_region_t *inf_regions_alloc_beyond(inf_regions_t *r, uint64_t size,
    uint64_t room);

/* Reserves address space; the caller charges the bytes as they arrive.  NULL
   also if the part for reservations is full: the caller then allocates a small
   region and lets that region grow. */
inf_region_t *inf_regions_reserve(inf_regions_t *r, uint64_t size);

/* Raises the charge to cover the first len bytes (len <= size). */
bool inf_regions_charge(inf_regions_t *r, inf_region_t *region, uint64_t len);

/*
 * Allocates a charged region of at least size bytes, to which the charge of
 * from moves: for data that moves as it grows.  The caller copies the bytes of
 * from, and then frees from.
 */
inf_region_t *inf_regions_replace(inf_regions_t *r, inf_region_t *from,
    uint64_t size);

/* Enlarges region->size to at least size, in place and without a charge. */
bool inf_regions_grow(inf_regions_t *r, inf_region_t *region, uint64_t size);

/* Frees region, which may be NULL. */
void inf_regions_free(inf_regions_t *r, inf_region_t *region);

/*
 * Returns cold free pages to the system while more is resident than the peak
 * use of the last 10 to 20 s, but at most max_bytes.  Returns the number of
 * bytes.  Called by a timer.
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
