#include "core/abi/local_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/cache_entry.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/lock.h"
#include "core/base/refs.h"
#include "core/cache/cache_index.h"
#include "core/cache/cache_key.h"
#include "core/proto/json_scan.h"
#include "core/proto/number.h"

#define SHARD_RANK 50u
#define SLAB_RANK  51u
#define SHARDS     16u              /* a power of two                        */
#define SLAB_VALUES 256u
#define LINE       64u
#define SIZE_MIN   128u
#define SIZE_COLD  (4u << 20)       /* larger values do not fit the processor's
                                       caches                                */

typedef struct value_s {
    inf_cache_item_t  item;         /* shard's lock; size, key: constant     */
    _Atomic uint32_t  refs;         /* of the shard and each lookup; up relaxed,
                                       down acq_rel                          */
    uint64_t          byte_size;    /* of data                               */
    char             *data;         /* not next to the list links            */
    struct value_s   *next;         /* in the list of unused values          */
    char              short_key[INF_CACHE_KEY_TEXT];
} value_t;

/* Values are allocated together, away from their data: list operations touch
   neighbouring values, which would otherwise lie on different pages. */
typedef struct slab_s {
    struct slab_s *next;
    value_t        values[SLAB_VALUES];
} slab_t;

typedef struct {
    _Alignas(LINE) inf_lock_t lock; /* rank 50; guards the index             */
    inf_cache_index_t       index;
    _Atomic uint64_t        oldest_ns;  /* oldest use in the index; written
                                           under lock                        */

    _Atomic uint64_t        hits;   /* relaxed statistics, like those below  */
    _Atomic uint64_t        misses;
    _Atomic uint64_t        evictions;
    _Atomic uint64_t        entries;
    _Atomic uint64_t        lookup_ns;
    _Atomic uint64_t        insertion_ns;
} shard_t;

typedef struct {
    uint64_t          limit;        /* bytes; set in new()                   */
    _Atomic uint64_t  used;         /* relaxed: charged bytes; insertions in
                                       progress may exceed limit             */
    inf_lock_t        slab_lock;    /* rank 51; guards the next two          */
    slab_t           *slabs;        /* freed with the cache                  */
    value_t          *unused;
    shard_t           shards[SHARDS]; /* each has its own lock               */
} local_cache_t;

INF_ABI_OBJECT(TRITONCACHE_Cache, local_cache_t, as_local_cache)

static TRITONSERVER_Error *initialize(TRITONCACHE_Cache **out,
    const char *config);
static TRITONSERVER_Error *finalize(TRITONCACHE_Cache *cache);
static TRITONSERVER_Error *insert(TRITONCACHE_Cache *cache, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
static TRITONSERVER_Error *lookup(TRITONCACHE_Cache *cache, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
static inf_err_t *read_size(const char *config, uint64_t *size);
static bool is_digits(inf_json_event_t event, inf_slice_t token,
    uint64_t *size);
static uint64_t hash_key(const char *key);
static shard_t *shard_of(local_cache_t *cache, uint64_t hash);
static inf_err_t *prepare(shard_t *shard, uint64_t hash, const char *key);
static inf_cache_bucket_t *table_new(uint64_t count);
static uint64_t charge_of(size_t key_size, uint64_t byte_size);
static inf_err_t *already_there(void);
static inf_err_t *reserve(local_cache_t *cache, uint64_t size,
    uint64_t byte_size, value_t **spare);
static value_t *evict_one(local_cache_t *cache);
static inf_err_t *value_new(local_cache_t *cache, uint64_t hash,
    const char *key, uint64_t byte_size, value_t **out);
static value_t *value_alloc(local_cache_t *cache);
static void free_long_key(value_t *v);
static bool slab_add_locked(local_cache_t *cache)
    INF_NEEDS(cache->slab_lock);
static bool value_drop(value_t *v);
static void value_free(local_cache_t *cache, value_t *v);
static void value_unref(local_cache_t *cache, value_t *v);
static void note_oldest_locked(shard_t *shard) INF_NEEDS(shard->lock);
static inf_err_t *fill(TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, const value_t *v);
static inf_err_t *put(shard_t *shard, value_t *v, uint64_t now_ns);

const inf_cache_entry_points_t inf_local_cache = {
    .initialize = initialize,
    .finalize = finalize,
    .insert = insert,
    .lookup = lookup
};

void
inf_local_cache_counts(TRITONCACHE_Cache *handle, inf_cache_counts_t *out)
{
    local_cache_t *cache = inf_as_local_cache(handle);
    *out = (inf_cache_counts_t) {
        .limit = cache->limit,
        .used = atomic_load_explicit(&cache->used, memory_order_relaxed)
    };

    for (uint32_t i = 0; i < SHARDS; i++) {
        const shard_t *s = &cache->shards[i];
        out->entries += s->entries;
        out->hits += s->hits;
        out->misses += s->misses;
        out->evictions += s->evictions;
        out->lookup_ns += s->lookup_ns;
        out->insertion_ns += s->insertion_ns;
    }
}

inf_err_t *
inf_local_cache_lookup(TRITONCACHE_Cache *handle, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator,
    inf_cache_span_t *span, bool *hit)
{
    local_cache_t *cache = inf_as_local_cache(handle);
    uint64_t hash = hash_key(key);
    shard_t *shard = shard_of(cache, hash);
    value_t *v = NULL;

    /* reads the clock during the prefetch; a hit reads it again */
    inf_lock(&shard->lock);
    inf_cache_index_prefetch(&shard->index, hash);
    span->end_ns = inf_clock_ns();
    inf_cache_item_t *item = inf_cache_index_find(&shard->index, hash, key);
    if (item != NULL) {
        v = (value_t *) (void *) item;
        atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
        inf_cache_index_use(&shard->index, item, span->start_ns);
        note_oldest_locked(shard);
    }
    inf_unlock(&shard->lock);

    inf_err_t *err = NULL;
    if (v != NULL) {
        err = fill(entry, allocator, v);
        value_unref(cache, v);
        span->end_ns = inf_clock_ns();
    }

    *hit = v != NULL;
    atomic_fetch_add_explicit(*hit ? &shard->hits : &shard->misses, 1,
        memory_order_relaxed);
    atomic_fetch_add_explicit(&shard->lookup_ns,
        span->end_ns - span->start_ns, memory_order_relaxed);
    return err;
}

inf_err_t *
inf_local_cache_insert(TRITONCACHE_Cache *handle, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator,
    inf_cache_span_t *span)
{
    local_cache_t *cache = inf_as_local_cache(handle);
    uint64_t hash = hash_key(key);
    shard_t *shard = shard_of(cache, hash);
    inf_buffer_attributes_t a = { .byte_size = 0 };
    void *base;
    value_t *v = NULL;
    span->end_ns = span->start_ns;

    inf_err_t *err = TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base,
        inf_abi_as_attributes(&a));
    if (err == NULL) {
        err = prepare(shard, hash, key);
    }
    if (err == NULL) {
        err = value_new(cache, hash, key, a.byte_size, &v);
    }
    if (err != NULL) {
        return err;
    }

    allocator->cold = cache->limit > SIZE_COLD;
    err = TRITONCACHE_CacheEntrySetBuffer(entry, 0, v->data, NULL);
    if (err == NULL) {
        err = TRITONCACHE_Copy(allocator, entry);
    }
    if (err == NULL) {
        err = put(shard, v, span->start_ns);
    }
    if (err != NULL) {
        atomic_fetch_sub_explicit(&cache->used, v->item.size,
            memory_order_relaxed);
        value_unref(cache, v);
        return err;
    }

    span->end_ns = inf_clock_ns();
    atomic_fetch_add_explicit(&shard->insertion_ns,
        span->end_ns - span->start_ns, memory_order_relaxed);
    return NULL;
}

static TRITONSERVER_Error *
initialize(TRITONCACHE_Cache **out, const char *config)
{
    uint64_t size;
    inf_err_t *err = read_size(config, &size);
    if (err != NULL) {
        return err;
    }

    local_cache_t *cache = aligned_alloc(_Alignof(local_cache_t),
        sizeof(*cache));
    if (cache == NULL) {
        return inf_err_nomem();
    }

    memset(cache, 0, sizeof(*cache));
    cache->limit = size;
    inf_lock_init(&cache->slab_lock, SLAB_RANK);
    for (uint32_t i = 0; i < SHARDS; i++) {
        shard_t *shard = &cache->shards[i];
        inf_lock_init(&shard->lock, SHARD_RANK);
        inf_cache_index_init(&shard->index);
        atomic_init(&shard->oldest_ns, UINT64_MAX);
    }

    *out = inf_abi_as_local_cache(cache);
    return NULL;
}

static TRITONSERVER_Error *
finalize(TRITONCACHE_Cache *handle)
{
    local_cache_t *cache = inf_as_local_cache(handle);

    for (uint32_t i = 0; i < SHARDS; i++) {
        shard_t *shard = &cache->shards[i];
        inf_cache_item_t *item;
        while ((item = inf_cache_index_oldest(&shard->index)) != NULL) {
            inf_cache_index_remove(&shard->index, item);
            value_unref(cache, (value_t *) (void *) item);
        }
        free(shard->index.buckets);
        inf_lock_fini(&shard->lock);
    }

    while (cache->slabs != NULL) {
        slab_t *slab = cache->slabs;
        cache->slabs = slab->next;
        free(slab);
    }
    inf_lock_fini(&cache->slab_lock);
    free(cache);
    return NULL;
}

static TRITONSERVER_Error *
lookup(TRITONCACHE_Cache *cache, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator)
{
    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    bool hit;
    inf_err_t *err = inf_local_cache_lookup(cache, key, entry, allocator,
        &span, &hit);
    return err != NULL || hit ? err
        : inf_err_new(INF_ERR_NOT_FOUND, "key not found in cache");
}

static TRITONSERVER_Error *
insert(TRITONCACHE_Cache *cache, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator)
{
    inf_cache_span_t span = { .start_ns = inf_clock_ns() };
    return inf_local_cache_insert(cache, key, entry, allocator, &span);
}

/* Reads the size from the number's text, which keeps all 64 bits. */
static inf_err_t *
read_size(const char *config, uint64_t *size)
{
    inf_slice_t text = inf_slice_str(config != NULL ? config : "");
    bool is_size = false;
    bool valid = false;
    inf_json_scan_t scan;
    inf_json_event_t event;

    inf_json_scan_init(&scan, INF_JSON_MAX_DEPTH);
    do {
        event = inf_json_scan_next(&scan, text.data, text.data + text.len,
            true);
        inf_slice_t token = inf_slice(text.data + scan.tokens.start,
            (size_t) (scan.tokens.pos - scan.tokens.start));

        if (is_size) {
            valid = is_digits(event, token, size);
        }
        is_size = event == INF_JSON_KEY && scan.depth == 1
            && inf_slice_eq(token, INF_SLICE("\"size\""));
    } while (event != INF_JSON_ERROR && event != INF_JSON_END);

    if (event == INF_JSON_ERROR) {
        return inf_err_new(INF_ERR_INVALID_ARG, "config of the local cache:"
            " %s at %llu", scan.reason, (unsigned long long) scan.tokens.pos);
    }

    if (!valid) {
        return inf_err_new(INF_ERR_INVALID_ARG, "config of the local cache"
            " didn't contain a valid 'size' field");
    }
    return *size >= SIZE_MIN ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "size of the local cache is %llu bytes, at least %u are needed",
        (unsigned long long) *size, SIZE_MIN);
}

/* Whether the token is a number or a string of decimal digits alone. */
static bool
is_digits(inf_json_event_t event, inf_slice_t token, uint64_t *size)
{
    if (event == INF_JSON_STRING) {
        token = inf_slice(token.data + 1, token.len - 2);
    }

    return (event == INF_JSON_STRING || event == INF_JSON_NUMBER)
        && inf_number_parse_digits(token, 10, size);
}

/* The core's keys are 64 hexadecimal digits of a keyed hash: the first 32 are
   used.  Any other text is hashed. */
static uint64_t
hash_key(const char *key)
{
    uint64_t w[4];
    size_t len = strlen(key);
    if (len != INF_CACHE_KEY_TEXT - 1) {
        return inf_hash(key, len);
    }

    memcpy(w, key, sizeof(w));
    uint64_t h = (w[0] * UINT64_C(0x9e3779b97f4a7c15) + w[1])
        * UINT64_C(0xd6e8feb86659fd93) + w[2];
    h = (h ^ h >> 32) * UINT64_C(0xa0761d6478bd642f) + w[3];
    h = (h ^ h >> 29) * UINT64_C(0xe7037ed1a0b428db);
    return h ^ h >> 32;
}

/* The shard of a hash; buckets use its low bits. */
static shard_t *
shard_of(local_cache_t *cache, uint64_t hash)
{
    return &cache->shards[(hash >> 48) & (SHARDS - 1)];
}

/* Makes room for one more entry of the table; allocates buckets without the
   lock.  ALREADY_EXISTS: the key is present. */
static inf_err_t *
prepare(shard_t *shard, uint64_t hash, const char *key)
{
    inf_lock(&shard->lock);
    bool found = inf_cache_index_find(&shard->index, hash, key) != NULL;
    uint64_t wanted = found ? 0 : inf_cache_index_wants_buckets(&shard->index);
    inf_unlock(&shard->lock);

    if (found) {
        return already_there();
    }
    if (wanted == 0) {
        return NULL;
    }

    inf_cache_bucket_t *buckets = table_new(wanted);
    if (buckets == NULL) {
        return NULL;                /* put detects a lack of buckets         */
    }

    inf_lock(&shard->lock);
    buckets = inf_cache_index_give_buckets(&shard->index, buckets, wanted);
    inf_unlock(&shard->lock);
    free(buckets);
    return NULL;
}

/* A table aligned to cache lines, not shared with other data. */
static inf_cache_bucket_t *
table_new(uint64_t count)
{
    size_t size = (count * INF_CACHE_BUCKET_SIZE + LINE - 1) / LINE * LINE;
    inf_cache_bucket_t *buckets = aligned_alloc(LINE, size);

    if (buckets != NULL) {
        memset(buckets, 0, size);
    }
    return buckets;
}

/* The charge of an item: its bytes, its record, and a key too long for the
   record.  UINT64_MAX: overflow. */
static uint64_t
charge_of(size_t key_size, uint64_t byte_size)
{
    uint64_t head = sizeof(value_t)
        + (key_size > INF_CACHE_KEY_TEXT ? key_size : 0);
    return byte_size <= UINT64_MAX - head ? byte_size + head : UINT64_MAX;
}

static inf_err_t *
already_there(void)
{
    return inf_err_new(INF_ERR_ALREADY_EXISTS, "key already exists");
}

/* Charges size bytes, evicting items; *spare is an evicted item of the same
   sizes, owned by the caller; NULL: none.  UNAVAILABLE: insertions in progress
   have reserved everything. */
static inf_err_t *
reserve(local_cache_t *cache, uint64_t size, uint64_t byte_size,
    value_t **spare)
{
    *spare = NULL;
    if (size > cache->limit) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Requested byte_size: %llu is"
            " greater than total cache size: %llu",
            (unsigned long long) size, (unsigned long long) cache->limit);
    }

    atomic_fetch_add_explicit(&cache->used, size, memory_order_relaxed);
    while (atomic_load_explicit(&cache->used, memory_order_relaxed)
        > cache->limit)
    {
        value_t *gone = evict_one(cache);
        if (gone != NULL) {
            bool fits = gone->item.size == size
                && gone->byte_size == byte_size;
            if (value_drop(gone)) {
                value_free(cache, fits ? *spare : gone);
                *spare = fits ? gone : *spare;
            }
        } else {
            atomic_fetch_sub_explicit(&cache->used, size,
                memory_order_relaxed);
            value_free(cache, *spare);
            return inf_err_new(INF_ERR_UNAVAILABLE, "no room for %llu bytes:"
                " all of the cache is being written",
                (unsigned long long) size);
        }
    }
    return NULL;
}

/* Evicts an item, whose reference passes to the caller; NULL: there are
   none. */
static value_t *
evict_one(local_cache_t *cache)
{
    for (;;) {
        shard_t *shard = NULL;
        uint64_t oldest = UINT64_MAX;
        for (uint32_t i = 0; i < SHARDS; i++) {
            uint64_t ns = atomic_load_explicit(&cache->shards[i].oldest_ns,
                memory_order_relaxed);
            if (ns < oldest) {
                oldest = ns;
                shard = &cache->shards[i];
            }
        }
        if (shard == NULL) {
            return NULL;
        }

        inf_lock(&shard->lock);
        inf_cache_item_t *item = inf_cache_index_oldest(&shard->index);
        if (item != NULL) {
            inf_cache_index_remove(&shard->index, item);
            note_oldest_locked(shard);
        }
        inf_unlock(&shard->lock);

        if (item != NULL) {
            atomic_fetch_sub_explicit(&cache->used, item->size,
                memory_order_relaxed);
            atomic_fetch_sub_explicit(&shard->entries, 1,
                memory_order_relaxed);
            atomic_fetch_add_explicit(&shard->evictions, 1,
                memory_order_relaxed);
            return (value_t *) (void *) item;
        }
    }
}

/* Creates a value and charges it to the cache. */
static inf_err_t *
value_new(local_cache_t *cache, uint64_t hash, const char *key,
    uint64_t byte_size, value_t **out)
{
    size_t key_size = strlen(key) + 1;
    uint64_t size = charge_of(key_size, byte_size);
    if (size == UINT64_MAX) {
        return inf_err_nomem();
    }

    value_t *v;
    inf_err_t *err = reserve(cache, size, byte_size, &v);
    if (err != NULL) {
        return err;
    }

    char *data = v != NULL ? v->data : malloc(byte_size);
    char *own = key_size > INF_CACHE_KEY_TEXT ? malloc(key_size) : NULL;
    if (v != NULL) {
        free_long_key(v);
    } else {
        v = value_alloc(cache);
    }
    if (v == NULL || (data == NULL && byte_size > 0)
        || (own == NULL && key_size > INF_CACHE_KEY_TEXT))
    {
        free(data);
        free(own);
        if (v != NULL) {
            v->data = NULL;
            v->item.key = v->short_key;
            value_free(cache, v);
        }
        atomic_fetch_sub_explicit(&cache->used, size, memory_order_relaxed);
        return inf_err_nomem();
    }

    own = own != NULL ? own : v->short_key;
    v->item = (inf_cache_item_t) {
        .key = memcpy(own, key, key_size),
        .hash = hash,
        .size = size
    };
    v->byte_size = byte_size;
    v->data = data;
    inf_link_init(&v->item.age);
    atomic_init(&v->refs, 1);
    *out = v;
    return NULL;
}

/* Takes an unused value or one of a new slab. */
static value_t *
value_alloc(local_cache_t *cache)
{
    inf_lock(&cache->slab_lock);
    value_t *v = NULL;
    if (cache->unused != NULL || slab_add_locked(cache)) {
        v = cache->unused;
        cache->unused = v->next;
    }
    inf_unlock(&cache->slab_lock);
    return v;
}

static bool
slab_add_locked(local_cache_t *cache)
{
    slab_t *slab = calloc(1, sizeof(*slab));
    if (slab == NULL) {
        return false;
    }

    slab->next = cache->slabs;
    cache->slabs = slab;
    for (uint32_t i = SLAB_VALUES; i > 0; i--) {
        slab->values[i - 1].next = cache->unused;
        cache->unused = &slab->values[i - 1];
    }
    return true;
}

static void
free_long_key(value_t *v)
{
    if (v->item.key != v->short_key) {
        free((char *) (uintptr_t) v->item.key);
    }
}

/* Drops a reference; true: it was the last, the caller frees v. */
static bool
value_drop(value_t *v)
{
    return inf_refs_drop(&v->refs);
}

/* v may be NULL. */
static void
value_free(local_cache_t *cache, value_t *v)
{
    if (v == NULL) {
        return;
    }

    free(v->data);
    free_long_key(v);
    inf_lock(&cache->slab_lock);
    v->next = cache->unused;
    cache->unused = v;
    inf_unlock(&cache->slab_lock);
}

static void
value_unref(local_cache_t *cache, value_t *v)
{
    if (value_drop(v)) {
        value_free(cache, v);
    }
}

static void
note_oldest_locked(shard_t *shard)
{
    const inf_cache_item_t *item = inf_cache_index_oldest(&shard->index);
    atomic_store_explicit(&shard->oldest_ns,
        item != NULL ? item->used_ns : UINT64_MAX, memory_order_relaxed);
}

static inf_err_t *
fill(TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator,
    const value_t *v)
{
    inf_buffer_attributes_t a = {
        .byte_size = v->byte_size,
        .memory_type = TRITONSERVER_MEMORY_CPU
    };

    inf_err_t *err = TRITONCACHE_CacheEntryAddBuffer(entry, v->data,
        inf_abi_as_attributes(&a));
    return err != NULL ? err : TRITONCACHE_Copy(allocator, entry);
}

/* Inserts v and takes it, except on error. */
static inf_err_t *
put(shard_t *shard, value_t *v, uint64_t now_ns)
{
    inf_lock(&shard->lock);
    bool fresh = inf_cache_index_find(&shard->index, v->item.hash,
        v->item.key) == NULL;
    bool done = fresh && inf_cache_index_put(&shard->index, &v->item, now_ns);
    if (done) {
        note_oldest_locked(shard);
        atomic_fetch_add_explicit(&shard->entries, 1, memory_order_relaxed);
    }
    inf_unlock(&shard->lock);

    if (done) {
        return NULL;
    }
    return fresh ? inf_err_nomem() : already_there();
}
