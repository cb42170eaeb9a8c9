/* throwing.cc - a response cache in C++ that throws when it is asked. */

#include <stdexcept>

#include "triton/core/tritoncache.h"

extern "C" {

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache, const char *)
{
    static int one;

    *cache = reinterpret_cast<TRITONCACHE_Cache *>(&one);
    return nullptr;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *)
{
    throw 5;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheLookup(TRITONCACHE_Cache *, const char *,
                        TRITONCACHE_CacheEntry *, TRITONCACHE_Allocator *)
{
    throw std::runtime_error("thrown on purpose");
}

TRITONCACHE_ISPEC TRITONSERVER_Error *
TRITONCACHE_CacheInsert(TRITONCACHE_Cache *, const char *,
                        TRITONCACHE_CacheEntry *, TRITONCACHE_Allocator *)
{
    throw std::runtime_error("thrown on purpose");
}

}
