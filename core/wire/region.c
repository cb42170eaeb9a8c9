#include "core/wire/region.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>

#define REGION_UNIT       INF_ARENA_ALIGN
#define REGION_PAGE       4096u
#define REGION_CHUNK      128u          /* records allocated at a time      */
#define REGION_WINDOW_NS  UINT64_C(10000000000)
#define REGION_MAX        (UINT64_C(1) << 47)
#define REGION_SPLIT_MIN  4096u         /* smaller tails stay attached      */
#define REGION_FREE_SCAN  8u
#define REGION_TRIM_STEPS 1024u
#define REGION_PRESSURE_STEPS 16u

typedef struct region_chunk_s {
    struct region_chunk_s *next;
    inf_region_t           regions[REGION_CHUNK];
} region_chunk_t;

static uint64_t regions_trim_to(inf_regions_t *r, uint64_t keep,
    uint64_t max_bytes, uint32_t max_steps);
static void part_init(inf_regions_part_t *part, uint64_t from, uint64_t end);
static inf_region_t *region_new(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t size);
static inf_region_t *region_take(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t size);
static inf_region_t *region_from_cache(inf_regions_t *r,
    inf_regions_part_t *part, uint32_t bin);
static inf_region_t *region_from_free(inf_regions_t *r,
    inf_regions_part_t *part, uint64_t size);
static inf_region_t *region_find_free(inf_regions_part_t *part,
    uint64_t size);
static inf_region_t *region_from_top(inf_regions_t *r,
    inf_regions_part_t *part, uint64_t size);
static inf_region_span_t top_take(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t size);
static void top_set_dirty(inf_regions_t *r, inf_regions_part_t *part,
    inf_region_span_t dirty);
static void region_resized(inf_regions_t *r, const inf_region_t *region,
    uint64_t before);
static void region_set_charge(inf_regions_t *r, inf_region_t *region,
    uint64_t charge);
static void part_pin(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t pinned);
static void region_touch(inf_region_t *region);
static bool region_charge_more(inf_regions_t *r, inf_region_t *region,
    uint64_t charge);
static void region_split(inf_regions_t *r, inf_region_t *region,
    uint64_t size, inf_region_t *tail);
static void region_to_cache(inf_regions_t *r, inf_region_t *region,
    uint32_t bin);
static void region_to_bin(inf_link_t *bin, inf_region_t *region);
static void region_to_free(inf_regions_t *r, inf_region_t *region, bool warm);
static void region_to_top(inf_regions_t *r, inf_region_t *region);
static void region_merge_next(inf_regions_t *r, inf_region_t *region);
static void region_leave_free(inf_regions_t *r, inf_region_t *region);
static void region_leave_cache(inf_regions_t *r, inf_region_t *region);
static void part_bound_cache(inf_regions_t *r, inf_regions_part_t *part);
static bool part_flush_cache(inf_regions_t *r, inf_regions_part_t *part);
static bool part_evict_coldest(inf_regions_t *r, inf_regions_part_t *part);
static uint64_t regions_trim_top(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t max_bytes);
static uint64_t regions_trim_free(inf_regions_t *r, inf_region_t *region);
static void regions_punch(inf_regions_t *r, uint64_t from, uint64_t to);
static inf_region_t *spare_take(inf_regions_t *r);
static void spare_give(inf_regions_t *r, inf_region_t *region);
static inf_region_t *region_next(inf_region_t *region);
static inf_region_t *region_prev(inf_region_t *region);
static uint32_t bin_of(uint64_t size);
static uint64_t bin_size(uint32_t bin);
static uint64_t round_to_class(uint64_t size);
static uint64_t round_up(uint64_t n, uint64_t power_of_two);
static inf_region_span_t span_join(inf_region_span_t a, inf_region_span_t b);
static inf_region_span_t span_clip(inf_region_span_t s, uint64_t from,
    uint64_t to);
static uint64_t span_len(inf_region_span_t s);
static uint64_t min_u64(uint64_t a, uint64_t b);
static uint64_t max_u64(uint64_t a, uint64_t b);

void
inf_regions_init(inf_regions_t *r, int fd, uint64_t size, uint64_t reservable,
    uint64_t bound)
{
    *r = (inf_regions_t) {
        .fd = fd,
        .size = min_u64(size, REGION_MAX) & ~(uint64_t) (REGION_UNIT - 1),
        .bound = bound
    };

    /* No page belongs to both parts. */
    uint64_t border = min_u64(round_up(r->size - min_u64(reservable, r->size),
        REGION_PAGE), r->size);
    part_init(&r->charged, 0, border);
    part_init(&r->reserved, border, r->size);

    inf_link_init(&r->cold_free);
    inf_link_init(&r->spare);
}

static void
part_init(inf_regions_part_t *part, uint64_t from, uint64_t end)
{
    part->begin = from;
    part->pinned = from;
    part->top = from;
    part->end = end;
    inf_link_init(&part->places);
    inf_link_init(&part->cold_cached);

    for (uint32_t i = 0; i < INF_REGION_BINS; i++) {
        inf_link_init(&part->free_bins[i]);
        inf_link_init(&part->cache_bins[i]);
    }
}

void
inf_regions_fini(inf_regions_t *r)
{
    region_chunk_t *chunk = r->chunks;

    while (chunk != NULL) {
        region_chunk_t *next = chunk->next;
        free(chunk);
        chunk = next;
    }

    r->chunks = NULL;
}

void
inf_regions_pin(inf_regions_t *r, uint64_t pinned)
{
    part_pin(r, &r->charged, pinned);
    part_pin(r, &r->reserved, pinned);
}

/* Pins a part; pages already there are no longer trimmed either. */
static void
part_pin(inf_regions_t *r, inf_regions_part_t *part, uint64_t pinned)
{
    part->pinned = part->begin + min_u64(pinned, part->end - part->begin);
    top_set_dirty(r, part, span_clip(part->top_dirty, part->pinned,
        part->end));

    for (inf_link_t *l = part->places.next; l != &part->places; l = l->next) {
        inf_region_t *region = inf_link_entry(l, inf_region_t, place);
        inf_region_span_t dirty = span_clip(region->dirty, part->pinned,
            part->end);

        if (region->state != INF_REGION_USED) {
            r->stats.idle -= span_len(region->dirty) - span_len(dirty);
        }
        region->dirty = dirty;
    }
}

void
inf_regions_trim_from(inf_regions_t *r, int fd)
{
    r->fd = fd;
}

inf_region_t *
inf_regions_alloc(inf_regions_t *r, uint64_t size)
{
    /* The bound is checked first: a rejection must not need a search. */
    if (size > r->bound || r->stats.in_use > r->bound - size) {
        r->stats.failures++;
        return NULL;
    }

    inf_region_t *region = region_new(r, &r->charged, size);
    if (region != NULL && !inf_regions_charge(r, region, size)) {
        inf_regions_free(r, region);
        return NULL;
    }

    return region;
}

inf_region_t *
inf_regions_alloc_beyond(inf_regions_t *r, uint64_t size, uint64_t room)
{
    r->bound += room;
    inf_region_t *region = inf_regions_alloc(r, size);
    r->bound -= room;

    return region;
}

inf_region_t *
inf_regions_reserve(inf_regions_t *r, uint64_t size)
{
    inf_region_t *region = region_new(r, &r->reserved, size);
    if (region != NULL) {
        region_resized(r, region, 0);
    }

    return region;
}

inf_region_t *
inf_regions_replace(inf_regions_t *r, inf_region_t *from, uint64_t size)
{
    assert(from->state == INF_REGION_USED && size >= from->charged);

    inf_region_t *region = region_new(r, &r->charged, size);
    if (region == NULL) {
        return NULL;
    }

    /* The pages of from exist until it is freed. */
    region_touch(from);
    region_set_charge(r, region, from->charged);
    region_set_charge(r, from, 0);
    return region;
}

static inf_region_t *
region_new(inf_regions_t *r, inf_regions_part_t *part, uint64_t size)
{
    inf_region_t *region = NULL;

    if (size <= r->size) {
        size = round_up(size > 0 ? size : 1, REGION_UNIT);
        region = region_take(r, part, size);
    }

    if (region == NULL) {
        r->stats.failures++;
        return NULL;
    }

    region->state = INF_REGION_USED;
    region->charged = 0;
    r->stats.regions++;
    return region;
}

bool
inf_regions_charge(inf_regions_t *r, inf_region_t *region, uint64_t len)
{
    assert(region->state == INF_REGION_USED && len <= region->size);

    uint64_t charge = round_up(len > 0 ? len : 1, REGION_UNIT);
    if (charge <= region->charged) {
        return true;
    }

    if (!region_charge_more(r, region, charge)) {
        r->stats.failures++;
        return false;
    }

    return true;
}

bool
inf_regions_grow(inf_regions_t *r, inf_region_t *region, uint64_t size)
{
    assert(region->state == INF_REGION_USED);

    if (size <= region->size) {
        return true;
    }

    if (size > r->size) {
        return false;
    }

    size = round_up(size, REGION_UNIT);
    inf_regions_part_t *part = region->part;
    uint64_t before = region->size;
    uint64_t more = size - before;
    inf_region_t *next = region_next(region);

    if (next == NULL) {
        if (more > part->end - part->top) {
            return false;
        }

        region->dirty = span_join(region->dirty, top_take(r, part, more));
        region->size = size;
        region_resized(r, region, before);
        return true;
    }

    if (next->state != INF_REGION_FREE || next->size < more) {
        return false;
    }

    inf_region_t *tail = next->size > more ? spare_take(r) : NULL;
    if (next->size > more && tail == NULL) {
        return false;
    }

    /* Takes the whole region; the excess is split off again. */
    region_leave_free(r, next);
    region_merge_next(r, region);
    if (tail != NULL) {
        region_split(r, region, size, tail);
    }

    region_resized(r, region, before);
    return true;
}

void
inf_regions_free(inf_regions_t *r, inf_region_t *region)
{
    if (region == NULL) {
        return;
    }

    assert(region->state == INF_REGION_USED);

    region_touch(region);
    region_set_charge(r, region, 0);
    r->stats.regions--;
    r->stats.reserved -= region->part == &r->reserved ? region->size : 0;

    uint32_t bin = bin_of(region->size);
    if (region->size <= INF_REGION_CACHE_MAX && bin_size(bin) == region->size)
    {
        region_to_cache(r, region, bin);
        part_bound_cache(r, region->part);
        return;
    }

    region_to_free(r, region, true);
}

uint64_t
inf_regions_trim(inf_regions_t *r, uint64_t now_ns, uint64_t max_bytes)
{
    if (r->window_ns == 0) {
        r->window_ns = now_ns;
    }

    if (now_ns - r->window_ns >= REGION_WINDOW_NS) {
        r->earlier_peak = r->recent_peak;
        r->recent_peak = r->stats.in_use;
        r->window_ns = now_ns;
    }

    return regions_trim_to(r, max_u64(r->recent_peak, r->earlier_peak),
        max_bytes, REGION_TRIM_STEPS);
}

static uint64_t
regions_trim_to(inf_regions_t *r, uint64_t keep, uint64_t max_bytes,
    uint32_t max_steps)
{
    uint64_t done = 0;

    while (r->fd >= 0 && done < max_bytes && max_steps-- > 0
           && r->stats.in_use + r->stats.idle > keep)
    {
        uint64_t want = min_u64(r->stats.in_use + r->stats.idle - keep,
            max_bytes - done);
        uint64_t n = regions_trim_top(r, &r->charged, want);

        if (n == 0) {
            n = regions_trim_top(r, &r->reserved, want);
        }

        if (n == 0 && !inf_list_empty(&r->cold_free)) {
            n = regions_trim_free(r, inf_link_entry(r->cold_free.next,
                inf_region_t, age));
        } else if (n == 0 && !part_evict_coldest(r, &r->charged)
                   && !part_evict_coldest(r, &r->reserved))
        {
            break;
        }

        done += n;
    }

    r->stats.trimmed += done;
    return done;
}

static inf_region_t *
region_take(inf_regions_t *r, inf_regions_part_t *part, uint64_t size)
{
    uint64_t class_size = round_to_class(size);

    if (class_size <= INF_REGION_CACHE_MAX) {
        inf_region_t *region = region_from_cache(r, part, bin_of(class_size));
        if (region != NULL) {
            return region;
        }
    }

    do {
        inf_region_t *region = region_from_free(r, part, class_size);
        if (region == NULL) {
            region = region_from_top(r, part, class_size);
        }
        if (region == NULL && class_size != size) {
            region = region_from_free(r, part, size);
        }
        if (region == NULL && class_size != size) {
            region = region_from_top(r, part, size);
        }
        if (region != NULL) {
            return region;
        }
    } while (part_flush_cache(r, part));

    return NULL;
}

static inf_region_t *
region_from_cache(inf_regions_t *r, inf_regions_part_t *part, uint32_t bin)
{
    if (inf_list_empty(&part->cache_bins[bin])) {
        return NULL;
    }

    inf_region_t *region = inf_link_entry(part->cache_bins[bin].next,
        inf_region_t, bin);
    region_leave_cache(r, region);
    return region;
}

static inf_region_t *
region_from_free(inf_regions_t *r, inf_regions_part_t *part, uint64_t size)
{
    inf_region_t *region = region_find_free(part, size);
    if (region == NULL) {
        return NULL;
    }

    inf_region_t *tail = region->size > size ? spare_take(r) : NULL;
    if (region->size > size && tail == NULL) {
        return NULL;
    }

    region_leave_free(r, region);
    region->state = INF_REGION_USED;
    if (tail != NULL) {
        region_split(r, region, size, tail);
    }

    return region;
}

/* Finds a free region: any region of the next larger bin fits. */
static inf_region_t *
region_find_free(inf_regions_part_t *part, uint64_t size)
{
    uint32_t bin = bin_of(size);
    uint32_t left = REGION_FREE_SCAN;

    for (inf_link_t *l = part->free_bins[bin].next;
         l != &part->free_bins[bin] && left > 0; l = l->next, left--)
    {
        inf_region_t *region = inf_link_entry(l, inf_region_t, bin);
        if (region->size >= size) {
            return region;
        }
    }

    bin++;
    uint32_t word = bin / 64;
    uint64_t bits = word < INF_REGION_BINS / 64
        ? part->free_map[word] & (~UINT64_C(0) << (bin % 64)) : 0;

    while (bits == 0 && ++word < INF_REGION_BINS / 64) {
        bits = part->free_map[word];
    }

    if (bits == 0) {
        return NULL;
    }

    bin = word * 64 + (uint32_t) __builtin_ctzll(bits);
    return inf_link_entry(part->free_bins[bin].next, inf_region_t, bin);
}

static inf_region_t *
region_from_top(inf_regions_t *r, inf_regions_part_t *part, uint64_t size)
{
    if (size > part->end - part->top) {
        return NULL;
    }

    inf_region_t *region = spare_take(r);
    if (region == NULL) {
        return NULL;
    }

    region->part = part;
    region->offset = part->top;
    region->size = size;
    region->dirty = top_take(r, part, size);
    inf_list_push_back(&part->places, &region->place);
    return region;
}

/* Moves the top up by size; returns the span of it that may have pages. */
static inf_region_span_t
top_take(inf_regions_t *r, inf_regions_part_t *part, uint64_t size)
{
    inf_region_span_t taken = span_clip(part->top_dirty, part->top,
        part->top + size);

    part->top += size;
    top_set_dirty(r, part, span_clip(part->top_dirty, part->top, part->end));
    return taken;
}

static void
top_set_dirty(inf_regions_t *r, inf_regions_part_t *part,
    inf_region_span_t dirty)
{
    r->stats.idle -= span_len(part->top_dirty);
    r->stats.idle += span_len(dirty);
    part->top_dirty = dirty;
}

/* Updates the counters after a change of size; region had `before` bytes. */
static void
region_resized(inf_regions_t *r, const inf_region_t *region, uint64_t before)
{
    if (region->part == &r->reserved) {
        r->stats.reserved = r->stats.reserved + region->size - before;
    }
}

/* Sets region->charged, which no other function writes. */
static void
region_set_charge(inf_regions_t *r, inf_region_t *region, uint64_t charge)
{
    r->stats.in_use = r->stats.in_use + charge - region->charged;
    if (region->part == &r->reserved) {
        r->stats.reserved = r->stats.reserved + region->charged - charge;
    }

    region->charged = charge;
}

/* Notes that the charged bytes were written and so have pages. */
static void
region_touch(inf_region_t *region)
{
    region->dirty = span_join(region->dirty, span_clip((inf_region_span_t) {
        region->offset, region->offset + region->charged },
        region->part->pinned, region->part->end));
}

static bool
region_charge_more(inf_regions_t *r, inf_region_t *region, uint64_t charge)
{
    uint64_t more = charge - region->charged;

    if (more > r->bound || r->stats.in_use > r->bound - more) {
        return false;
    }

    region_set_charge(r, region, charge);
    if (r->stats.in_use > r->stats.peak) {
        r->stats.peak = r->stats.in_use;
    }
    if (r->stats.in_use > r->recent_peak) {
        r->recent_peak = r->stats.in_use;
    }

    /* Pages of unused free regions must not exceed the bound by much. */
    uint64_t limit = r->bound + r->bound / 4;
    if (r->stats.in_use + r->stats.idle > limit) {
        (void) regions_trim_to(r, limit, max_u64(more, REGION_SPLIT_MIN),
            REGION_PRESSURE_STEPS);
    }

    return true;
}

/* Cuts region to its first size bytes; the rest becomes the free region
   tail. */
static void
region_split(inf_regions_t *r, inf_region_t *region, uint64_t size,
    inf_region_t *tail)
{
    tail->offset = region->offset + size;
    tail->size = region->size - size;
    tail->dirty = span_clip(region->dirty, tail->offset,
        tail->offset + tail->size);
    tail->part = region->part;
    tail->charged = 0;
    inf_link_insert(region->place.next, &tail->place);

    region->size = size;
    region->dirty = span_clip(region->dirty, region->offset, tail->offset);
    region_to_free(r, tail, true);
}

static void
region_to_cache(inf_regions_t *r, inf_region_t *region, uint32_t bin)
{
    inf_regions_part_t *part = region->part;

    region->state = INF_REGION_CACHED;
    region_to_bin(&part->cache_bins[bin], region);
    inf_list_push_back(&part->cold_cached, &region->age);
    part->cached += region->size;
    r->stats.idle += span_len(region->dirty);
}

/* Adds a region to its bin; the one freed last is taken first.  Pinned regions
   go before all others. */
static void
region_to_bin(inf_link_t *bin, inf_region_t *region)
{
    const inf_regions_part_t *part = region->part;

    if (part->pinned > part->begin
        && region->offset + region->size > part->pinned)
    {
        inf_list_push_back(bin, &region->bin);
    } else {
        inf_list_push_front(bin, &region->bin);
    }
}

/* Merges region with its free neighbours; cold ones are trimmed first. */
static void
region_to_free(inf_regions_t *r, inf_region_t *region, bool warm)
{
    inf_regions_part_t *part = region->part;
    inf_region_t *prev = region_prev(region);
    inf_region_t *next = region_next(region);

    if (next != NULL && next->state == INF_REGION_FREE) {
        region_leave_free(r, next);
        region_merge_next(r, region);
        next = region_next(region);
    }

    if (prev != NULL && prev->state == INF_REGION_FREE) {
        region_leave_free(r, prev);
        region_merge_next(r, prev);
        region = prev;
    }

    if (next == NULL) {
        region_to_top(r, region);
        return;
    }

    uint32_t bin = bin_of(region->size);
    region->state = INF_REGION_FREE;
    region_to_bin(&part->free_bins[bin], region);
    part->free_map[bin / 64] |= UINT64_C(1) << (bin % 64);
    r->stats.idle += span_len(region->dirty);

    if (span_len(region->dirty) == 0) {
        inf_link_init(&region->age);
    } else if (warm) {
        inf_list_push_back(&r->cold_free, &region->age);
    } else {
        inf_list_push_front(&r->cold_free, &region->age);
    }
}

/* Makes the last region of a part open space again. */
static void
region_to_top(inf_regions_t *r, inf_region_t *region)
{
    inf_regions_part_t *part = region->part;

    top_set_dirty(r, part, span_join(part->top_dirty, region->dirty));
    part->top = region->offset;
    spare_give(r, region);
}

static void
region_merge_next(inf_regions_t *r, inf_region_t *region)
{
    inf_region_t *next = region_next(region);

    region->dirty = span_join(region->dirty, next->dirty);
    region->size += next->size;
    spare_give(r, next);
}

static void
region_leave_free(inf_regions_t *r, inf_region_t *region)
{
    inf_regions_part_t *part = region->part;
    uint32_t bin = bin_of(region->size);

    inf_link_remove(&region->bin);
    inf_link_remove(&region->age);
    if (inf_list_empty(&part->free_bins[bin])) {
        part->free_map[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
    }

    r->stats.idle -= span_len(region->dirty);
}

static void
region_leave_cache(inf_regions_t *r, inf_region_t *region)
{
    inf_link_remove(&region->bin);
    inf_link_remove(&region->age);
    region->part->cached -= region->size;
    r->stats.idle -= span_len(region->dirty);
}

/* Limits the bytes in size class lists, which other classes cannot use. */
static void
part_bound_cache(inf_regions_t *r, inf_regions_part_t *part)
{
    uint64_t most = r->bound / 4 > INF_REGION_CACHE_MAX * 4
        ? r->bound / 4 : INF_REGION_CACHE_MAX * 4;

    while (part->cached > most && part_evict_coldest(r, part)) {
        continue;
    }
}

static bool
part_flush_cache(inf_regions_t *r, inf_regions_part_t *part)
{
    if (inf_list_empty(&part->cold_cached)) {
        return false;
    }

    while (part_evict_coldest(r, part)) {
        continue;
    }

    return true;
}

static bool
part_evict_coldest(inf_regions_t *r, inf_regions_part_t *part)
{
    if (inf_list_empty(&part->cold_cached)) {
        return false;
    }

    inf_region_t *region = inf_link_entry(part->cold_cached.next,
        inf_region_t, age);
    region_leave_cache(r, region);
    region_to_free(r, region, false);
    return true;
}

static uint64_t
regions_trim_top(inf_regions_t *r, inf_regions_part_t *part,
    uint64_t max_bytes)
{
    inf_region_span_t dirty = part->top_dirty;
    uint64_t low = round_up(dirty.from, REGION_PAGE);

    if (dirty.to <= low) {
        return 0;
    }

    /* The end is trimmed first, so that the pages allocated next stay warm. */
    uint64_t from = dirty.to - low > max_bytes
        ? (dirty.to - max_bytes) & ~(uint64_t) (REGION_PAGE - 1) : low;
    from = max_u64(from, low);

    regions_punch(r, from, round_up(dirty.to, REGION_PAGE));
    top_set_dirty(r, part, span_clip(dirty, 0, from));
    return dirty.to - from;
}

/* Trims a free region and removes it from the list of those to trim. */
static uint64_t
regions_trim_free(inf_regions_t *r, inf_region_t *region)
{
    inf_region_span_t dirty = region->dirty;
    uint64_t end = region->offset + region->size;
    uint64_t low = round_up(dirty.from, REGION_PAGE);
    uint64_t high = min_u64(round_up(dirty.to, REGION_PAGE),
        end & ~(uint64_t) (REGION_PAGE - 1));

    inf_link_remove(&region->age);
    if (high <= low) {
        return 0;
    }

    /* The neighbour shares the last partial page. */
    regions_punch(r, low, high);
    region->dirty = span_clip(dirty, 0, low);

    uint64_t done = span_len(dirty) - span_len(region->dirty);
    r->stats.idle -= done;
    return done;
}

/* Frees pages; a failure is only counted, since the pages can be reused. */
static void
regions_punch(inf_regions_t *r, uint64_t from, uint64_t to)
{
    if (fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            (off_t) from, (off_t) (to - from))
        < 0)
    {
        r->stats.failures++;
    }
}

static inf_region_t *
spare_take(inf_regions_t *r)
{
    if (inf_list_empty(&r->spare)) {
        region_chunk_t *chunk = malloc(sizeof(*chunk));
        if (chunk == NULL) {
            return NULL;
        }

        chunk->next = r->chunks;
        r->chunks = chunk;
        for (uint32_t i = 0; i < REGION_CHUNK; i++) {
            chunk->regions[i].state = INF_REGION_SPARE;
            inf_list_push_back(&r->spare, &chunk->regions[i].place);
        }
    }

    inf_link_t *l = inf_list_pop_front(&r->spare);
    inf_region_t *region = inf_link_entry(l, inf_region_t, place);
    inf_link_init(&region->bin);
    inf_link_init(&region->age);
    return region;
}

static void
spare_give(inf_regions_t *r, inf_region_t *region)
{
    inf_link_remove(&region->place);
    region->state = INF_REGION_SPARE;
    inf_list_push_front(&r->spare, &region->place);
}

static inf_region_t *
region_next(inf_region_t *region)
{
    return region->place.next == &region->part->places ? NULL
        : inf_link_entry(region->place.next, inf_region_t, place);
}

static inf_region_t *
region_prev(inf_region_t *region)
{
    return region->place.prev == &region->part->places ? NULL
        : inf_link_entry(region->place.prev, inf_region_t, place);
}

/* The class whose size is at most `size`; there are eight for each doubling. */
static uint32_t
bin_of(uint64_t size)
{
    uint64_t units = size / REGION_UNIT;
    if (units < 8) {
        return (uint32_t) units;
    }

    uint32_t order = 63u - (uint32_t) __builtin_clzll(units);
    return (order - 2) * 8 + (uint32_t) ((units >> (order - 3)) & 7);
}

static uint64_t
bin_size(uint32_t bin)
{
    if (bin < 8) {
        return (uint64_t) bin * REGION_UNIT;
    }

    uint32_t order = bin / 8 + 2;
    return (UINT64_C(8) + bin % 8) << (order - 3) << 6;
}

static uint64_t
round_to_class(uint64_t size)
{
    uint32_t bin = bin_of(size);

    return bin_size(bin) == size ? size : bin_size(bin + 1);
}

static uint64_t
round_up(uint64_t n, uint64_t power_of_two)
{
    return (n + power_of_two - 1) & ~(power_of_two - 1);
}

static inf_region_span_t
span_join(inf_region_span_t a, inf_region_span_t b)
{
    if (span_len(a) == 0) {
        return b;
    }

    return span_len(b) == 0 ? a : (inf_region_span_t) {
        min_u64(a.from, b.from), max_u64(a.to, b.to) };
}

static inf_region_span_t
span_clip(inf_region_span_t s, uint64_t from, uint64_t to)
{
    s.from = max_u64(s.from, from);
    s.to = min_u64(s.to, to);
    return s.from < s.to ? s : (inf_region_span_t) { 0, 0 };
}

static uint64_t
span_len(inf_region_span_t s)
{
    return s.to - s.from;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
