/*
 * tritoncache.h - what a response cache implements and may call.
 *
 * Owner    A function that returns TRITONSERVER_Error * returns NULL for
 *          success; any other value belongs to the caller, who ends it with
 *          TRITONSERVER_ErrorDelete.  Out-parameters are valid on success.
 * Thread   see reference text of each function; getters of one object may
 *          run at the same time, setters may not.
 * Units    sizes in bytes, timestamps in ns on the monotonic clock, timeouts
 *          in us.
 * Errors   TRITONSERVER_Error_Code.
 * Route    binary compatible with the interface of the same name that
 *          prebuilt Triton plugins were compiled against.
 */

#ifndef TRITON_CORE_TRITONCACHE_H
#define TRITON_CORE_TRITONCACHE_H

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin marks its entry points with TRITONCACHE_ISPEC. */
#define TRITONCACHE_DECLSPEC TRITONSERVER_DECLSPEC
#define TRITONCACHE_ISPEC __attribute__((visibility("default")))

#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

/* ---- exported by the core */

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_ApiVersion(
    uint32_t *major, uint32_t *minor);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryBufferCount(
    TRITONCACHE_CacheEntry *entry, size_t *count);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryAddBuffer(
    TRITONCACHE_CacheEntry *entry, void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryGetBuffer(
    TRITONCACHE_CacheEntry *entry, size_t index, void **base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntrySetBuffer(
    TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_Copy(
    TRITONCACHE_Allocator *allocator, TRITONCACHE_CacheEntry *entry);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(
    TRITONCACHE_CacheEntry **entry);

TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(
    TRITONCACHE_CacheEntry *entry);

/* ---- implemented by the plugin */

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(
    TRITONCACHE_Cache **cache, const char *config);

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(
    TRITONCACHE_Cache *cache);

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(
    TRITONCACHE_Cache *cache, const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator);

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(
    TRITONCACHE_Cache *cache, const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONCACHE_H */
