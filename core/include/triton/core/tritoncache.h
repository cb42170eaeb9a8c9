/*
 * tritoncache.h - what a response cache implements and may call.
 *
 * Owner    As in tritonserver.h: an error belongs to whoever receives it, an
 *          object from New to the caller until its Delete, a text or array to
 *          the object it was asked of.
 * Thread   Getters of one object may run at the same time, setters may not;
 *          different objects are independent.  Where more is allowed, or
 *          less, the function or its heading says so.
 * Units    sizes in bytes, timestamps in ns on the monotonic clock, timeouts
 *          in us.
 * Errors   TRITONSERVER_Error_Code; out of memory is UNAVAILABLE.  The value
 *          of an out-parameter after an error is unspecified unless said.
 *          Handles are not checked: NULL only where it is said to be accepted.
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

/* The version of the API in this header. */
#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

/* ---- Opaque types: the core's objects, by pointer only */

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

/* ==== exported by the core */

/* ---- Version */

/* The version of this interface that the core has: the same major and at least
   the minor of a plug-in's own is what it needs. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_ApiVersion(
    uint32_t *major, uint32_t *minor);

/* ---- Cache entries: a list of buffers, made and freed by the core */

/* How many buffers it lists. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryBufferCount(
    TRITONCACHE_CacheEntry *entry, size_t *count);

/* In a lookup: adds one of the cache's buffers, without copying; it must hold
   until Copy has returned. INVALID_ARG: base NULL, size 0 or GPU memory. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryAddBuffer(
    TRITONCACHE_CacheEntry *entry, void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* Pointer and attributes of one buffer; in an insert the pointer is NULL and
   the size is what is needed. buffer_attributes is the caller's, filled in.
   INVALID_ARG: index out of range. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryGetBuffer(
    TRITONCACHE_CacheEntry *entry, size_t index, void **base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* In an insert: the cache's memory for one buffer; attributes NULL keep the
   size. INVALID_ARG: index out of range. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntrySetBuffer(
    TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* In a lookup, entry to response; in an insert, response to entry. Once in
   each, before returning. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_Copy(
    TRITONCACHE_Allocator *allocator, TRITONCACHE_CacheEntry *entry);

/* An empty entry, for a program that stands in for the core. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(
    TRITONCACHE_CacheEntry **entry);

/* The buffers stay the cache's. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(
    TRITONCACHE_CacheEntry *entry);

/* ==== implemented by the plugin */

/* ---- Cache library: all four are required */

/* config is the text from the options, unread. Must set *cache; the core ends
   it with CacheFinalize. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(
    TRITONCACHE_Cache **cache, const char *config);

/* No other call is running. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(
    TRITONCACHE_Cache *cache);

/* Keeps what Copy writes under key. ALREADY_EXISTS is not logged, other errors
   are. From many threads at once. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(
    TRITONCACHE_Cache *cache, const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator);

/* NOT_FOUND: a miss; the core then runs the model. From many threads at
   once. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(
    TRITONCACHE_Cache *cache, const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONCACHE_H */
