/*
 * trouble.c - a response cache that goes wrong where it was compiled to.
 *
 * TROUBLE_NONE is a list of entries without a bound, TROUBLE_... see below.
 * Its start and its lookups are said on stderr, which is the core's log; its
 * end makes the file that the environment names as TROUBLE_END.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritoncache.h"

typedef struct entry_s {
    struct entry_s *next;
    char           *key;
    void           *base;
    size_t          size;
} entry_t;

typedef struct {
    pthread_mutex_t lock;
    entry_t        *entries;
} cache_t;

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache, const char *config)
{
    uint32_t major, minor;
    TRITONSERVER_Error *err = TRITONCACHE_ApiVersion(&major, &minor);

    if (err != NULL) {
        return err;
    }
    fprintf(stderr, "trouble: initialize %s\n", config);

#ifdef TROUBLE_VERSION
    minor = TRITONCACHE_API_VERSION_MINOR + 1 > minor ? 0 : minor;
#endif
    if (major != TRITONCACHE_API_VERSION_MAJOR
        || minor < TRITONCACHE_API_VERSION_MINOR)
    {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
            "triton cache API version does not support this cache");
    }

#ifdef TROUBLE_INITIALIZE
    (void) cache;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                 "the cache can't start on purpose");
#elif defined(TROUBLE_NO_CACHE)
    (void) cache;
    return NULL;
#else
    cache_t *c = calloc(1, sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    *cache = (TRITONCACHE_Cache *) c;
    return NULL;
#endif
}

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache)
{
    cache_t *c = (cache_t *) cache;

    const char *end = getenv("TROUBLE_END");

    if (end != NULL) {
        fclose(fopen(end, "w"));
    }
    while (c->entries != NULL) {
        entry_t *e = c->entries;

        c->entries = e->next;
        free(e->key);
        free(e->base);
        free(e);
    }
    free(c);
#ifdef TROUBLE_FINALIZE
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                 "the cache can't end on purpose");
#else
    return NULL;
#endif
}

static entry_t *
find(cache_t *c, const char *key)
{
    pthread_mutex_lock(&c->lock);

    entry_t *e = c->entries;

    while (e != NULL && strcmp(e->key, key) != 0) {
        e = e->next;
    }
    pthread_mutex_unlock(&c->lock);
    return e;
}

#ifndef TROUBLE_NO_LOOKUP
TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache, const char *key,
                        TRITONCACHE_CacheEntry *entry,
                        TRITONCACHE_Allocator *allocator)
{
#ifdef TROUBLE_LOOKUP
    (void) cache;
    (void) key;
    (void) entry;
    (void) allocator;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                 "the cache can't look up on purpose");
#elif defined(TROUBLE_NO_COPY)
    (void) cache;
    (void) key;
    (void) entry;
    (void) allocator;
    return NULL;
#else
    TRITONSERVER_BufferAttributes *a;
    entry_t *e = find((cache_t *) cache, key);

    fprintf(stderr, "trouble: lookup %s\n", key);
    if (e == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "no such");
    }

    TRITONSERVER_BufferAttributesNew(&a);
    TRITONSERVER_BufferAttributesSetByteSize(a, e->size);
    TRITONSERVER_BufferAttributesSetMemoryType(a, TRITONSERVER_MEMORY_CPU);

    TRITONSERVER_Error *err = TRITONCACHE_CacheEntryAddBuffer(entry, e->base,
                                                              a);

    TRITONSERVER_BufferAttributesDelete(a);
    return err != NULL ? err : TRITONCACHE_Copy(allocator, entry);
#endif
}
#endif

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache, const char *key,
                        TRITONCACHE_CacheEntry *entry,
                        TRITONCACHE_Allocator *allocator)
{
    cache_t *c = (cache_t *) cache;
    TRITONSERVER_BufferAttributes *a;
    size_t count = 0;
    size_t size = 0;
    void *base;

#ifdef TROUBLE_INSERT
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                 "the cache can't insert on purpose");
#endif
    if (find(c, key) != NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_ALREADY_EXISTS,
                                     "there already");
    }

    TRITONCACHE_CacheEntryBufferCount(entry, &count);
    TRITONSERVER_BufferAttributesNew(&a);

    TRITONSERVER_Error *err = TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base,
                                                              a);

    TRITONSERVER_BufferAttributesByteSize(a, &size);
    TRITONSERVER_BufferAttributesDelete(a);
    if (err != NULL) {
        return err;
    }
    if (count != 1 || base != NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                     "not one empty place in the entry");
    }

    entry_t *e = calloc(1, sizeof(*e));

    e->key = strdup(key);
    e->base = calloc(1, size);
    e->size = size;
    TRITONCACHE_CacheEntrySetBuffer(entry, 0, e->base, NULL);
    err = TRITONCACHE_Copy(allocator, entry);
    if (err != NULL) {
        free(e->base);
        free(e->key);
        free(e);
        return err;
    }
#ifdef TROUBLE_GARBAGE
    memset(e->base, 0xff, size);
#endif
    pthread_mutex_lock(&c->lock);
    e->next = c->entries;
    c->entries = e;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}
