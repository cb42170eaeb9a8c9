/*
 * cache_index.h - what one shard of a cache holds: found by key, given up in
 *                 the order of last use.
 *
 * Owner    Items are the caller's memory, linked from put to remove.  The
 *          table of buckets is the index's once it was given.
 * Thread   any, with the shard's lock held; now_ns comes from the caller.
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

/* The hash lies here, so that other items aren't touched in passing: each
   would have to come from memory.  Behind the buckets of a table lies a byte
   for each, its mark: what isn't there is looked for in these alone, and of
   them many lie in a line of the processor's caches. */
typedef struct {
    uint64_t          hash;
    inf_cache_item_t *item;             /* NULL: free                        */
} inf_cache_bucket_t;

#define INF_CACHE_BUCKET_SIZE (sizeof(inf_cache_bucket_t) + 1)

typedef struct {
    inf_cache_bucket_t *buckets;        /* an item lies in the first free one
                                           from that of its hash on          */
    uint8_t            *marks;          /* some bits of hashes; 0: free      */
    uint64_t            bucket_count;   /* a power of two, 0 at first        */
    uint64_t            count;          /* items                             */
    inf_link_t          by_age;         /* last used first                   */
} inf_cache_index_t;

/* Has no buckets: they are given before the first put. */
void inf_cache_index_init(inf_cache_index_t *index);

/* How many buckets are due before the next put; 0: there are enough. */
uint64_t inf_cache_index_wants_buckets(const inf_cache_index_t *index);

/* Takes a zeroed table of count times INF_CACHE_BUCKET_SIZE bytes, gives the
   old one (free it) or, when it has as many by now, the new one. */
inf_cache_bucket_t *inf_cache_index_give_buckets(inf_cache_index_t *index,
    inf_cache_bucket_t *buckets, uint64_t count);

/* An item of that hash is about to be looked for: what find touches first is
   brought near. */
void inf_cache_index_prefetch(const inf_cache_index_t *index, uint64_t hash);

/* NULL: not there.  Finding is no use yet. */
inf_cache_item_t *inf_cache_index_find(const inf_cache_index_t *index,
    uint64_t hash, const char *key);

/* A listed item is the youngest from now on. */
void inf_cache_index_use(inf_cache_index_t *index, inf_cache_item_t *item,
    uint64_t now_ns);

/* item has key, hash and size; no item of that key is there.  false: all
   buckets are taken. */
INF_CHECK bool inf_cache_index_put(inf_cache_index_t *index,
    inf_cache_item_t *item, uint64_t now_ns);

/* The longest unused; NULL: empty.  Has what its removal will touch brought
   near. */
inf_cache_item_t *inf_cache_index_oldest(const inf_cache_index_t *index);

/* item is listed; the caller frees it. */
void inf_cache_index_remove(inf_cache_index_t *index, inf_cache_item_t *item);

#endif /* INF_CACHE_CACHE_INDEX_H */
