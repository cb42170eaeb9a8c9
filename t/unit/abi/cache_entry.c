#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/cache_entry.h"
#include "core/cache/packed_response.h"

static TRITONCACHE_CacheEntry *entry;
static TRITONSERVER_BufferAttributes *attributes;
static inf_factory_t factory;

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), code);
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text, inf_err_msg(err));
    }
    inf_err_free(err);
}

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    out->base = malloc(size);
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    (void) f;
}

static const inf_sink_ops_t sink = {
    .alloc = sink_alloc,
    .release = sink_release,
    .factory_free = sink_factory_free
};

static int
setup(void **state)
{
    (void) state;
    assert_null(TRITONCACHE_CacheEntryNew(&entry));
    assert_null(TRITONSERVER_BufferAttributesNew(&attributes));
    inf_factory_init(&factory);
    inf_factory_start(&factory, NULL, "", &sink, NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    assert_null(TRITONCACHE_CacheEntryDelete(entry));
    assert_null(TRITONSERVER_BufferAttributesDelete(attributes));
    inf_factory_unref(&factory);
    inf_factory_fini(&factory);
    return 0;
}

static void
describe(size_t size, TRITONSERVER_MemoryType type)
{
    assert_null(TRITONSERVER_BufferAttributesSetByteSize(attributes, size));
    assert_null(TRITONSERVER_BufferAttributesSetMemoryType(attributes, type));
}

static void
the_version_is_the_headers(void **state)
{
    (void) state;
    uint32_t major = 9, minor = 9;
    assert_null(TRITONCACHE_ApiVersion(&major, &minor));
    assert_int_equal(major, TRITONCACHE_API_VERSION_MAJOR);
    assert_int_equal(minor, TRITONCACHE_API_VERSION_MINOR);
}

static void
buffers_are_listed_in_their_order(void **state)
{
    (void) state;
    char bytes[9];
    size_t count = 7;
    void *base;

    assert_null(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 0);
    for (size_t i = 0; i < 9; i++) {
        describe(i + 1, i % 2 ? TRITONSERVER_MEMORY_CPU_PINNED
            : TRITONSERVER_MEMORY_CPU);
        assert_null(TRITONCACHE_CacheEntryAddBuffer(entry, &bytes[i],
            attributes));
    }
    assert_null(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 9);
    for (size_t i = 0; i < 9; i++) {
        size_t size;
        TRITONSERVER_MemoryType type;
        assert_null(TRITONCACHE_CacheEntryGetBuffer(entry, i, &base,
            attributes));
        assert_ptr_equal(base, &bytes[i]);
        assert_null(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
        assert_null(TRITONSERVER_BufferAttributesMemoryType(attributes,
            &type));
        assert_int_equal(size, i + 1);
        assert_int_equal(type, i % 2 ? TRITONSERVER_MEMORY_CPU_PINNED
            : TRITONSERVER_MEMORY_CPU);
    }
}

static void
set_buffer_replaces_memory_and_perhaps_attributes(void **state)
{
    (void) state;
    char bytes[2];
    void *base;
    size_t size;

    describe(4, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntryAddBuffer(entry, &bytes[0],
        attributes));
    assert_null(TRITONCACHE_CacheEntrySetBuffer(entry, 0, &bytes[1], NULL));
    assert_null(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes));
    assert_null(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
    assert_ptr_equal(base, &bytes[1]);
    assert_int_equal(size, 4);
    describe(6, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntrySetBuffer(entry, 0, NULL, attributes));
    describe(1, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes));
    assert_null(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
    assert_null(base);
    assert_int_equal(size, 6);
}

static void
impossible_buffers_are_rejected(void **state)
{
    (void) state;
    char byte;
    void *base;
    size_t count;

    describe(1, TRITONSERVER_MEMORY_CPU);
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, NULL, attributes),
        TRITONSERVER_ERROR_INVALID_ARG, "entry, base, or attrs was nullptr");
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, &byte, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "entry, base, or attrs was nullptr");
    fails(TRITONCACHE_CacheEntryGetBuffer(entry, 0, NULL, attributes),
        TRITONSERVER_ERROR_INVALID_ARG, "entry, base, or attrs was nullptr");
    describe(0, TRITONSERVER_MEMORY_CPU);
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, &byte, attributes),
        TRITONSERVER_ERROR_INVALID_ARG, "Buffer byte size was zero");
    describe(1, TRITONSERVER_MEMORY_GPU);
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, &byte, attributes),
        TRITONSERVER_ERROR_INVALID_ARG,
        "Only buffers in CPU memory are allowed in cache currently");
    assert_null(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 0);
    fails(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes),
        TRITONSERVER_ERROR_INVALID_ARG, "index was greater than count: 0 of 0");
    fails(TRITONCACHE_CacheEntrySetBuffer(entry, 0, &byte, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "index was greater than count");
    fails(TRITONCACHE_CacheEntrySetBuffer(NULL, 0, &byte, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "entry was nullptr");
    fails(TRITONCACHE_CacheEntryBufferCount(NULL, &count),
        TRITONSERVER_ERROR_INVALID_ARG, "entry was nullptr");
    fails(TRITONCACHE_CacheEntryNew(NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "entry was nullptr");
    fails(TRITONCACHE_CacheEntryDelete(NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "entry was nullptr");
    describe(1, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntryAddBuffer(entry, &byte, attributes));
    describe(2, TRITONSERVER_MEMORY_GPU);
    fails(TRITONCACHE_CacheEntrySetBuffer(entry, 0, NULL, attributes),
        TRITONSERVER_ERROR_INVALID_ARG, "Only buffers in CPU memory");
    assert_null(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes));
    assert_ptr_equal(base, &byte);
}

/* A response in, the same out. */
static void
copy_goes_both_ways(void **state)
{
    (void) state;
    inf_response_t *r;
    uint64_t size;
    char *bytes;

    assert_null(inf_response_new(&factory, &r));
    inf_output_t *out = inf_response_add_output(r, "O", INF_TYPE_UINT8,
        (int64_t[]) { 3 }, 1);
    assert_null(sink_alloc(NULL, out, 3));
    memcpy(out->base, "abc", 3);
    out->byte_size = 3;

    assert_null(inf_packed_response_size(r, &size));
    bytes = malloc(size);
    TRITONCACHE_Allocator in = { .from = r };
    assert_null(inf_cache_entry_add(entry,
        &(inf_cache_buffer_t) { .size = size }));
    fails(TRITONCACHE_Copy(&in, entry), TRITONSERVER_ERROR_INTERNAL,
        "no memory");
    describe(size - 1, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntrySetBuffer(entry, 0, bytes, attributes));
    fails(TRITONCACHE_Copy(&in, entry), TRITONSERVER_ERROR_INTERNAL,
        "the response needs");
    describe(size, TRITONSERVER_MEMORY_CPU);
    assert_null(TRITONCACHE_CacheEntrySetBuffer(entry, 0, bytes, attributes));
    assert_false(in.copied);
    assert_null(TRITONCACHE_Copy(&in, entry));
    assert_true(in.copied);
    fails(TRITONCACHE_Copy(&in, entry), TRITONSERVER_ERROR_ALREADY_EXISTS,
        "already");

    TRITONCACHE_Allocator back = { .factory = &factory };
    assert_null(TRITONCACHE_Copy(&back, entry));
    assert_string_equal(back.response->first->name, "O");
    assert_memory_equal(back.response->first->base, "abc", 3);
    inf_response_free(back.response);
    inf_response_free(r);

    bytes[0] = 2;                       /* promises another output           */
    TRITONCACHE_Allocator bad = { .factory = &factory };
    fails(TRITONCACHE_Copy(&bad, entry), TRITONSERVER_ERROR_INTERNAL,
        "breaks off");
    assert_null(bad.response);
    free(bytes);
}

static void
copy_needs_one_buffer(void **state)
{
    (void) state;
    char byte;
    TRITONCACHE_Allocator allocator = { .factory = &factory };

    fails(TRITONCACHE_Copy(&allocator, entry), TRITONSERVER_ERROR_INTERNAL,
        "0 buffers");
    describe(1, TRITONSERVER_MEMORY_CPU);
    for (int i = 0; i < 2; i++) {
        assert_null(TRITONCACHE_CacheEntryAddBuffer(entry, &byte,
            attributes));
    }
    fails(TRITONCACHE_Copy(&allocator, entry), TRITONSERVER_ERROR_INTERNAL,
        "2 buffers");
    fails(TRITONCACHE_Copy(NULL, entry), TRITONSERVER_ERROR_INVALID_ARG,
        "allocator or entry was nullptr");
    fails(TRITONCACHE_Copy(&allocator, NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "allocator or entry was nullptr");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test_setup_teardown(buffers_are_listed_in_their_order,
            setup, teardown),
        cmocka_unit_test_setup_teardown(
            set_buffer_replaces_memory_and_perhaps_attributes, setup,
            teardown),
        cmocka_unit_test_setup_teardown(impossible_buffers_are_rejected, setup,
            teardown),
        cmocka_unit_test_setup_teardown(copy_goes_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(copy_needs_one_buffer, setup,
            teardown)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
