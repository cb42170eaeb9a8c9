#include "core/base/points.h"
#include "core/base/refs.h"
#include "core/wire/server.h"

#include <assert.h>
#include <stdlib.h>

#include "core/wire/server_parts.h"

#define CHANNEL_TRIM_BYTES (UINT64_C(4) << 20)

static inf_channel_region_t *channel_alloc(inf_channel_t *ch, uint64_t size,
    uint64_t room);
static void channel_publish_locked(inf_channel_t *ch,
    inf_channel_region_t *region) INF_NEEDS(ch->arena_lock);
static void channel_rehash_locked(inf_channel_t *ch,
    inf_channel_region_t **buckets, uint32_t count)
    INF_NEEDS(ch->arena_lock);
static inf_channel_region_t **channel_find_locked(inf_channel_t *ch,
    uint64_t offset) INF_NEEDS(ch->arena_lock);
static uint32_t channel_hash(uint64_t offset);

inf_channel_region_t *
inf_channel_alloc(inf_channel_t *ch, uint64_t size)
{
    return channel_alloc(ch, size, 0);
}

inf_channel_region_t *
inf_channel_alloc_answer(inf_channel_t *ch, uint64_t size)
{
    return channel_alloc(ch, size,
        size <= INF_CALL_COPIED ? INF_CHANNEL_ANSWER_ROOM : 0);
}

/* Allocates a region; room: bytes beyond the bound for this region. */
static inf_channel_region_t *
channel_alloc(inf_channel_t *ch, uint64_t size, uint64_t room)
{
    inf_channel_region_t *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return NULL;
    }

    inf_lock(&ch->arena_lock);
    if (ch->buckets != NULL) {
        region->region = inf_regions_alloc_beyond(&ch->regions, size, room);
    }
    inf_unlock(&ch->arena_lock);

    if (region->region == NULL) {
        free(region);
        return NULL;
    }

    atomic_init(&region->refs, 1);
    region->channel = inf_channel_ref(ch);
    region->offset = region->region->offset;
    region->size = region->region->size;
    return region;
}

inf_channel_region_t *
inf_channel_region_ref(inf_channel_region_t *region)
{
    atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    return region;
}

void
inf_channel_region_unref(inf_channel_region_t *region)
{
    if (region == NULL || !inf_refs_drop(&region->refs)) {
        return;
    }

    inf_channel_t *ch = region->channel;
    inf_lock(&ch->arena_lock);
    inf_regions_free(&ch->regions, region->region);
    inf_unlock(&ch->arena_lock);

    for (uint32_t i = 0; i < region->part_count; i++) {
        inf_channel_region_unref(region->parts[i]);
    }

    for (uint32_t i = 0; i < INF_CHANNEL_ON_FREE
         && region->on_free[i].fn != NULL; i++)
    {
        region->on_free[i].fn(region->on_free[i].userp,
            region->on_free[i].bytes);
    }

    free(region->parts);
    free(region);
    inf_channel_unref(ch);
}

void
inf_channel_region_on_free(inf_channel_region_t *region,
    void (*fn)(void *userp, uint64_t bytes), void *userp, uint64_t bytes)
{
    uint32_t i = 0;
    while (region->on_free[i].fn != NULL) {
        i++;
        assert(i < INF_CHANNEL_ON_FREE);
    }

    region->on_free[i] = (inf_channel_on_free_t) { fn, userp, bytes };
}

void *
inf_channel_region_data(const inf_channel_region_t *region)
{
    return region->channel->responses + region->offset;
}

uint64_t
inf_channel_region_offset(const inf_channel_region_t *region)
{
    return region->offset;
}

bool
inf_channel_region_pinned(const inf_channel_region_t *region)
{
    return region->offset + region->size
        <= inf_channel_pinned(region->channel);
}

uint64_t
inf_channel_region_size(const inf_channel_region_t *region)
{
    return region->size;
}

inf_err_t *
inf_channel_region_attach(inf_channel_region_t *record,
    inf_channel_region_t *const *parts, uint32_t count)
{
    assert(record->parts == NULL);
    if (count == 0) {
        return NULL;
    }

    record->parts = malloc(count * sizeof(record->parts[0]));
    if (record->parts == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        record->parts[i] = inf_channel_region_ref(parts[i]);
    }

    record->part_count = count;
    return NULL;
}

uint64_t
inf_channel_trim(inf_channel_t *ch, uint64_t now_ns)
{
    inf_lock(&ch->arena_lock);
    uint64_t n = inf_regions_trim(&ch->regions, now_ns, CHANNEL_TRIM_BYTES);
    inf_unlock(&ch->arena_lock);
    return n;
}

void
inf_channel_arena_stats(inf_channel_t *ch, inf_regions_stats_t *out)
{
    inf_lock(&ch->arena_lock);
    *out = ch->regions.stats;
    inf_unlock(&ch->arena_lock);
}

bool
inf_channel_publish(inf_channel_t *ch, inf_channel_region_t *region)
{
    inf_lock(&ch->arena_lock);
    bool alive = ch->buckets != NULL;
    uint32_t grow = ch->published_count >= ch->bucket_count
        ? ch->bucket_count * 2 : 0;
    if (alive) {
        channel_publish_locked(ch, region);
    }
    inf_unlock(&ch->arena_lock);

    if (!alive || grow == 0) {
        return alive;
    }

    /* Without growth chains are only slower, so a failure is no error. */
    inf_channel_region_t **buckets = calloc(grow, sizeof(buckets[0]));
    if (buckets != NULL) {
        inf_lock(&ch->arena_lock);
        if (ch->buckets != NULL && ch->bucket_count < grow) {
            inf_channel_region_t **old = ch->buckets;
            channel_rehash_locked(ch, buckets, grow);
            buckets = old;
        }
        inf_unlock(&ch->arena_lock);
        free(buckets);
    }

    return true;
}

static void
channel_publish_locked(inf_channel_t *ch, inf_channel_region_t *region)
{
    if (region->published++ > 0) {
        return;
    }

    uint32_t i = channel_hash(region->offset) & (ch->bucket_count - 1);
    region->next = ch->buckets[i];
    ch->buckets[i] = region;
    ch->published_count++;
}

static void
channel_rehash_locked(inf_channel_t *ch, inf_channel_region_t **buckets,
    uint32_t count)
{
    for (uint32_t i = 0; i < ch->bucket_count; i++) {
        inf_channel_region_t *region = ch->buckets[i];
        while (region != NULL) {
            inf_channel_region_t *next = region->next;
            uint32_t to = channel_hash(region->offset) & (count - 1);
            region->next = buckets[to];
            buckets[to] = region;
            region = next;
        }
    }

    ch->buckets = buckets;
    ch->bucket_count = count;
}

void
inf_channel_release(inf_channel_t *ch, uint64_t offset)
{
    inf_lock(&ch->arena_lock);
    inf_channel_region_t **at = channel_find_locked(ch, offset);
    inf_channel_region_t *region = at != NULL ? *at : NULL;

    if (region != NULL && --region->published == 0) {
        *at = region->next;
        region->next = NULL;
        ch->published_count--;
    }
    inf_unlock(&ch->arena_lock);

    if (region == NULL) {
        inf_channel_count(&ch->bad_releases);
        return;
    }

    inf_channel_region_unref(region);
    INF_POINT(RESPONSE_RELEASED);
}

/* The pointer to the published region in its bucket, for removal. */
static inf_channel_region_t **
channel_find_locked(inf_channel_t *ch, uint64_t offset)
{
    if (ch->bucket_count == 0) {
        return NULL;
    }

    inf_channel_region_t **at =
        &ch->buckets[channel_hash(offset) & (ch->bucket_count - 1)];

    while (*at != NULL && (*at)->offset != offset) {
        at = &(*at)->next;
    }

    return *at != NULL ? at : NULL;
}

static uint32_t
channel_hash(uint64_t offset)
{
    return (uint32_t) ((offset / INF_ARENA_ALIGN
        * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

void
inf_channel_end_regions(inf_channel_t *ch)
{
    inf_lock(&ch->arena_lock);
    inf_channel_region_t **buckets = ch->buckets;
    uint32_t bucket_count = ch->bucket_count;
    ch->buckets = NULL;
    ch->bucket_count = 0;
    ch->published_count = 0;
    inf_unlock(&ch->arena_lock);

    /* No other thread finds these regions any more. */
    for (uint32_t i = 0; i < bucket_count; i++) {
        inf_channel_region_t *region = buckets[i];
        while (region != NULL) {
            inf_channel_region_t *next = region->next;
            for (uint32_t n = region->published; n > 0; n--) {
                inf_channel_region_unref(region);
            }
            region = next;
        }
    }
    free(buckets);
}
