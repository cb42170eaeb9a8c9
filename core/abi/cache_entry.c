#include "core/abi/cache_entry.h"

#include <stdlib.h>
#include <string.h>

#include "core/cache/packed_response.h"

static inf_err_t *no_entry(void);
static inf_err_t *no_argument(void);
static inf_err_t *check_memory(TRITONSERVER_MemoryType type);
static inf_err_t *find(TRITONCACHE_CacheEntry *entry, size_t index,
    inf_cache_buffer_t **out);
static inf_err_t *copy_in(TRITONCACHE_Allocator *allocator,
    const inf_cache_buffer_t *b);
static inf_err_t *copy_out(TRITONCACHE_Allocator *allocator,
    const inf_cache_buffer_t *b);

TRITONSERVER_Error *
TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONCACHE_API_VERSION_MAJOR;
    *minor = TRITONCACHE_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry)
{
    if (entry == NULL) {
        return no_entry();
    }

    *entry = malloc(sizeof(**entry));
    if (*entry == NULL) {
        return inf_err_nomem();
    }

    inf_cache_entry_init(*entry);
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry)
{
    if (entry == NULL) {
        return no_entry();
    }

    inf_cache_entry_fini(entry);
    free(entry);
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry,
    size_t *count)
{
    if (entry == NULL) {
        return no_entry();
    }
    if (count == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "count was nullptr");
    }

    *count = entry->count;
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes)
{
    if (entry == NULL || base == NULL || buffer_attributes == NULL) {
        return no_argument();
    }

    const inf_buffer_attributes_t *a = inf_as_attributes(buffer_attributes);
    if (a->byte_size == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Buffer byte size was zero");
    }

    inf_err_t *err = check_memory(a->memory_type);
    return err != NULL ? err
        : inf_cache_entry_add(entry, &(inf_cache_buffer_t) {
            .base = base,
            .size = a->byte_size,
            .memory_type = a->memory_type,
            .memory_id = a->memory_id
        });
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index,
    void **base, TRITONSERVER_BufferAttributes *buffer_attributes)
{
    if (entry == NULL || base == NULL || buffer_attributes == NULL) {
        return no_argument();
    }

    inf_cache_buffer_t *b = NULL;
    inf_err_t *err = find(entry, index, &b);
    if (err != NULL) {
        return err;
    }

    inf_buffer_attributes_t *a = inf_as_attributes(buffer_attributes);
    *base = b->base;
    a->byte_size = b->size;
    a->memory_type = b->memory_type;
    a->memory_id = b->memory_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index,
    void *new_base, TRITONSERVER_BufferAttributes *buffer_attributes)
{
    inf_cache_buffer_t *b = NULL;
    inf_err_t *err = find(entry, index, &b);
    if (err != NULL) {
        return err;
    }

    if (buffer_attributes != NULL) {
        const inf_buffer_attributes_t *a =
            inf_as_attributes(buffer_attributes);
        err = check_memory(a->memory_type);
        if (err != NULL) {
            return err;
        }
        b->size = a->byte_size;
        b->memory_type = a->memory_type;
        b->memory_id = a->memory_id;
    }
    b->base = new_base;
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
    TRITONCACHE_CacheEntry *entry)
{
    if (allocator == NULL || entry == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "allocator or entry was nullptr");
    }
    if (entry->count != 1) {
        return inf_err_new(INF_ERR_INTERNAL, "a cache entry has %zu buffers"
            " for one response", entry->count);
    }
    if (allocator->copied) {
        return inf_err_new(INF_ERR_ALREADY_EXISTS,
            "the cache entry was copied already");
    }

    const inf_cache_buffer_t *b = &entry->buffers[0];
    if (b->base == NULL) {
        return inf_err_new(INF_ERR_INTERNAL,
            "the buffer of a cache entry has no memory");
    }

    inf_err_t *err = allocator->from != NULL ? copy_in(allocator, b)
        : copy_out(allocator, b);
    allocator->copied = err == NULL;
    return err;
}

void
inf_cache_entry_init(TRITONCACHE_CacheEntry *entry)
{
    entry->buffers = &entry->one;
    entry->count = 0;
    entry->cap = 1;
}

void
inf_cache_entry_fini(TRITONCACHE_CacheEntry *entry)
{
    if (entry->buffers != &entry->one) {
        free(entry->buffers);
    }
    inf_cache_entry_init(entry);
}

inf_err_t *
inf_cache_entry_add(TRITONCACHE_CacheEntry *entry,
    const inf_cache_buffer_t *buffer)
{
    if (entry->count == entry->cap) {
        inf_cache_buffer_t *wider = calloc(entry->cap * 4, sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        memcpy(wider, entry->buffers, entry->count * sizeof(*wider));
        if (entry->buffers != &entry->one) {
            free(entry->buffers);
        }
        entry->buffers = wider;
        entry->cap *= 4;
    }

    entry->buffers[entry->count++] = *buffer;
    return NULL;
}

static inf_err_t *
no_entry(void)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "entry was nullptr");
}

static inf_err_t *
no_argument(void)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
        "entry, base, or attrs was nullptr");
}

static inf_err_t *
check_memory(TRITONSERVER_MemoryType type)
{
    return type == TRITONSERVER_MEMORY_CPU
        || type == TRITONSERVER_MEMORY_CPU_PINNED ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG,
            "Only buffers in CPU memory are allowed in cache currently");
}

static inf_err_t *
find(TRITONCACHE_CacheEntry *entry, size_t index, inf_cache_buffer_t **out)
{
    if (entry == NULL) {
        return no_entry();
    }
    if (index >= entry->count) {
        return inf_err_new(INF_ERR_INVALID_ARG, "index was greater than count:"
            " %zu of %zu", index, entry->count);
    }

    *out = &entry->buffers[index];
    return NULL;
}

static inf_err_t *
copy_in(TRITONCACHE_Allocator *allocator, const inf_cache_buffer_t *b)
{
    uint64_t size;
    inf_err_t *err = inf_packed_response_size(allocator->from, &size);
    if (err != NULL) {
        return err;
    }
    if (b->size < size) {
        return inf_err_new(INF_ERR_INTERNAL, "the buffer of a cache entry has"
            " %zu bytes, the response needs %llu", b->size,
            (unsigned long long) size);
    }

    inf_packed_response_write(allocator->from, b->base, allocator->cold);
    return NULL;
}

static inf_err_t *
copy_out(TRITONCACHE_Allocator *allocator, const inf_cache_buffer_t *b)
{
    inf_response_t *response;
    inf_err_t *err = inf_response_new(allocator->factory, &response);
    if (err != NULL) {
        return err;
    }

    err = inf_packed_response_read(b->base, b->size, response);
    if (err != NULL) {
        inf_response_free(response);
        return err;
    }

    allocator->response = response;
    return NULL;
}
