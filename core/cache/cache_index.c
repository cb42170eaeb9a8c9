#include "core/cache/cache_index.h"

#include <stddef.h>
#include <string.h>

#define FIRST_BUCKETS 64u

static uint8_t mark_of(uint64_t hash);
static uint64_t place_of(const inf_cache_index_t *index, uint64_t hash);
static void put(inf_cache_index_t *index, inf_cache_bucket_t bucket);
static void close_gap(inf_cache_index_t *index, uint64_t gap);

void
inf_cache_index_init(inf_cache_index_t *index)
{
    *index = (inf_cache_index_t) { .buckets = NULL };
    inf_link_init(&index->by_age);
}

uint64_t
inf_cache_index_wants_buckets(const inf_cache_index_t *index)
{
    if (index->bucket_count == 0) {
        return FIRST_BUCKETS;
    }
    return index->count < index->bucket_count / 2 ? 0
        : index->bucket_count * 2;
}

inf_cache_bucket_t *
inf_cache_index_give_buckets(inf_cache_index_t *index,
    inf_cache_bucket_t *buckets, uint64_t count)
{
    if (count <= index->bucket_count) {
        return buckets;             /* another thread was first              */
    }

    inf_cache_bucket_t *old = index->buckets;
    uint64_t old_count = index->bucket_count;
    index->buckets = buckets;
    index->marks = (uint8_t *) (buckets + count);
    index->bucket_count = count;

    for (uint64_t i = 0; i < old_count; i++) {
        if (old[i].item != NULL) {
            put(index, old[i]);
        }
    }
    return old;
}

void
inf_cache_index_prefetch(const inf_cache_index_t *index, uint64_t hash)
{
    if (index->bucket_count > 0) {
        __builtin_prefetch(&index->marks[place_of(index, hash)]);
    }
}

inf_cache_item_t *
inf_cache_index_find(const inf_cache_index_t *index, uint64_t hash,
    const char *key)
{
    if (index->bucket_count == 0) {
        return NULL;
    }

    uint8_t mark = mark_of(hash);
    for (uint64_t at = place_of(index, hash); index->marks[at] != 0;
        at = place_of(index, at + 1))
    {
        const inf_cache_bucket_t *b = &index->buckets[at];
        if (index->marks[at] == mark && b->hash == hash
            && strcmp(b->item->key, key) == 0)
        {
            return b->item;
        }
    }
    return NULL;
}

void
inf_cache_index_use(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns)
{
    item->used_ns = now_ns;
    inf_link_remove(&item->age);
    inf_list_push_front(&index->by_age, &item->age);
}

bool
inf_cache_index_put(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns)
{
    if (index->count + 1 >= index->bucket_count) {
        return false;               /* a search needs a free bucket to end at */
    }

    put(index, (inf_cache_bucket_t) { .hash = item->hash, .item = item });
    item->used_ns = now_ns;
    inf_list_push_front(&index->by_age, &item->age);
    index->count++;
    return true;
}

inf_cache_item_t *
inf_cache_index_oldest(const inf_cache_index_t *index)
{
    if (inf_list_empty(&index->by_age)) {
        return NULL;
    }

    inf_cache_item_t *item = inf_link_entry(index->by_age.prev,
        inf_cache_item_t, age);
    __builtin_prefetch(item + 1, 1);        /* data of the item's owner      */
    __builtin_prefetch(&index->buckets[place_of(index, item->hash)], 1);
    __builtin_prefetch(&index->marks[place_of(index, item->hash)], 1);
    __builtin_prefetch(item->age.prev, 1);
    return item;
}

void
inf_cache_index_remove(inf_cache_index_t *index, inf_cache_item_t *item)
{
    uint64_t at = place_of(index, item->hash);
    while (index->buckets[at].item != item) {
        at = place_of(index, at + 1);
    }

    close_gap(index, at);
    inf_link_remove(&item->age);
    index->count--;
}

/* The mark of a hash: not zero, and independent of the bits that select a
   bucket. */
static uint8_t
mark_of(uint64_t hash)
{
    return (uint8_t) (hash >> 56 | 1);
}

static uint64_t
place_of(const inf_cache_index_t *index, uint64_t hash)
{
    return hash & (index->bucket_count - 1);
}

static void
put(inf_cache_index_t *index, inf_cache_bucket_t bucket)
{
    uint64_t at = place_of(index, bucket.hash);

    while (index->buckets[at].item != NULL) {
        at = place_of(index, at + 1);
    }
    index->buckets[at] = bucket;
    index->marks[at] = mark_of(bucket.hash);
}

/* Moves later items into the gap, unless their own bucket is after it; the last
   gap stays free. */
static void
close_gap(inf_cache_index_t *index, uint64_t gap)
{
    inf_cache_bucket_t *b = index->buckets;

    for (uint64_t at = place_of(index, gap + 1); b[at].item != NULL;
        at = place_of(index, at + 1))
    {
        uint64_t way = place_of(index, at - place_of(index, b[at].hash));
        if (way >= place_of(index, at - gap)) {
            b[gap] = b[at];
            index->marks[gap] = index->marks[at];
            gap = at;
        }
    }
    b[gap].item = NULL;
    index->marks[gap] = 0;
}
