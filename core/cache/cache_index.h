/*
 * cache_index.h - the items of one shard of a cache: found by key, evicted in
 *                 the order of last use.
 *
 * Owner    Items are the caller's memory, linked from put to remove.  The
 *          index owns the buckets given to it.
 * Thread   any, holding the shard's lock; now_ns comes from the caller.
 * Units    ns; bytes where an item says so.
 * Errors   none: nothing is allocated, see wants_buckets.
 * Route    local cache -> [cache index]
 */

#ifndef INF_CACHE_CACHE_INDEX_H
#define INF_CACHE_CACHE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/queue.h"

typedef struct {
    inf_link_t  age;
    const char *key;
    uint64_t    hash;                   /* of key                            */
    uint64_t    used_ns;                /* last                              */
    uint64_t    size;                   /* bytes it is charged with          */
} inf_cache_item_t;

/* A bucket has the hash, so that a search does not access other items, which
   are usually not in the processor's caches.  After the buckets of a table
   comes a byte for each, its mark: the search for a missing key reads only
   marks, of which many share a cache line. */
typedef struct {
    uint64_t          hash;
    inf_cache_item_t *item;             /* NULL: free                        */
} inf_cache_bucket_t;

#define INF_CACHE_BUCKET_SIZE (sizeof(inf_cache_bucket_t) + 1)

typedef struct {
    inf_cache_bucket_t *buckets;        /* an item is in the first free one from
                                           that of its hash on               */
    uint8_t            *marks;          /* some bits of hashes; 0: free      */
    uint64_t            bucket_count;   /* a power of two, 0 at first        */
    uint64_t            count;          /* items                             */
    inf_link_t          by_age;         /* last used first                   */
} inf_cache_index_t;

/* The index has no buckets until they are given, before the first put. */
void inf_cache_index_init(inf_cache_index_t *index);

/* The number of buckets required for the next put; 0: there are enough. */
uint64_t inf_cache_index_wants_buckets(const inf_cache_index_t *index);

/* Takes a zeroed table of count times INF_CACHE_BUCKET_SIZE bytes and returns
   the old table for the caller to free, or the new one if the index already has
   as many buckets. */
inf_cache_bucket_t *inf_cache_index_give_buckets(inf_cache_index_t *index,
    inf_cache_bucket_t *buckets, uint64_t count);

/* Prefetches the memory that find of this hash reads first. */
void inf_cache_index_prefetch(const inf_cache_index_t *index, uint64_t hash);

/* NULL: not found.  Does not count as a use. */
inf_cache_item_t *inf_cache_index_find(const inf_cache_index_t *index,
    uint64_t hash, const char *key);

/* Makes a listed item the most recently used. */
void inf_cache_index_use(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns);

/* item has key, hash and size; its key is not listed.  false: no free
   bucket. */
INF_CHECK bool inf_cache_index_put(inf_cache_index_t *index,
    inf_cache_item_t *item, uint64_t now_ns);

/* The least recently used item; NULL: empty.  Prefetches the memory that its
   removal accesses. */
inf_cache_item_t *inf_cache_index_oldest(const inf_cache_index_t *index);

/* item is listed; the caller frees it. */
void inf_cache_index_remove(inf_cache_index_t *index, inf_cache_item_t *item);

#endif /* INF_CACHE_CACHE_INDEX_H */
