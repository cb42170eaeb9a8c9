#include "core/sched/cache_index.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define FIRST_BUCKETS 64u

static inf_cache_item_t **bucket_of(const inf_cache_index_t *index,
    uint64_t hash);

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
    return index->count < index->bucket_count ? 0 : index->bucket_count * 4;
}

inf_cache_item_t **
inf_cache_index_give_buckets(inf_cache_index_t *index,
    inf_cache_item_t **buckets, uint64_t count)
{
    if (count <= index->bucket_count) {
        return buckets;             /* another thread was first              */
    }

    inf_cache_item_t **old = index->buckets;
    uint64_t old_count = index->bucket_count;
    index->buckets = buckets;
    index->bucket_count = count;

    for (uint64_t i = 0; i < old_count; i++) {
        inf_cache_item_t *item = old[i];
        while (item != NULL) {
            inf_cache_item_t *next = item->next;
            inf_cache_item_t **head = bucket_of(index, item->hash);
            item->next = *head;
            *head = item;
            item = next;
        }
    }
    return old;
}

inf_cache_item_t *
inf_cache_index_find(const inf_cache_index_t *index, uint64_t hash,
    const char *key)
{
    if (index->bucket_count == 0) {
        return NULL;
    }

    inf_cache_item_t *item = *bucket_of(index, hash);
    while (item != NULL
        && (item->hash != hash || strcmp(item->key, key) != 0))
    {
        item = item->next;
    }
    return item;
}

void
inf_cache_index_use(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns)
{
    item->used_ns = now_ns;
    inf_link_remove(&item->age);
    inf_list_push_front(&index->by_age, &item->age);
}

void
inf_cache_index_put(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns)
{
    assert(index->bucket_count > 0);

    inf_cache_item_t **head = bucket_of(index, item->hash);
    item->next = *head;
    *head = item;
    item->used_ns = now_ns;
    inf_list_push_front(&index->by_age, &item->age);
    index->count++;
}

inf_cache_item_t *
inf_cache_index_oldest(const inf_cache_index_t *index)
{
    return inf_list_empty(&index->by_age) ? NULL
        : inf_link_entry(index->by_age.prev, inf_cache_item_t, age);
}

void
inf_cache_index_remove(inf_cache_index_t *index, inf_cache_item_t *item)
{
    inf_cache_item_t **at = bucket_of(index, item->hash);
    while (*at != item) {
        at = &(*at)->next;
    }

    *at = item->next;
    item->next = NULL;
    inf_link_remove(&item->age);
    index->count--;
}

static inf_cache_item_t **
bucket_of(const inf_cache_index_t *index, uint64_t hash)
{
    return &index->buckets[hash & (index->bucket_count - 1)];
}
