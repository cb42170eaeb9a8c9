#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "core/abi/objects.h"

static char handle[64] = "a cuda ipc handle";

static void
assert_attributes(TRITONSERVER_BufferAttributes *a, size_t want_size,
    TRITONSERVER_MemoryType want_type, int64_t want_id, const void *want)
{
    size_t size;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *ipc = (void *) 1;

    assert_null(TRITONSERVER_BufferAttributesByteSize(a, &size));
    assert_int_equal(size, want_size);
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_int_equal(type, want_type);
    assert_null(TRITONSERVER_BufferAttributesMemoryTypeId(a, &id));
    assert_int_equal(id, want_id);
    assert_null(TRITONSERVER_BufferAttributesCudaIpcHandle(a, &ipc));
    if (want == NULL) {
        assert_null(ipc);
    } else {
        assert_memory_equal(ipc, want, 64);
    }
}

static inf_input_t *
input_of(inf_request_t *r)
{
    int64_t shape[1] = { 3 };
    static const inf_buffer_t buffers[2] = {
        { .base = "ab", .size = 2 },
        { .base = "c", .size = 1, .memory_type = INF_MEMORY_GPU,
          .memory_id = 1, .ipc_handle = handle }
    };

    inf_request_init(r);
    inf_input_t *in = inf_request_add_input(r, "A", 1, INF_TYPE_INT8, shape,
        1);
    assert_null(inf_request_add_data(r, in, &buffers[0]));
    assert_null(inf_request_add_data(r, in, &buffers[1]));
    return in;
}

static void
each_input_buffer_has_its_attributes(void **state)
{
    (void) state;
    inf_request_t r;
    TRITONBACKEND_Input *in = inf_abi_as_input(input_of(&r));
    TRITONSERVER_BufferAttributes *a, *b;
    const void *base;

    assert_null(TRITONBACKEND_InputBufferAttributes(in, 1, &base, &b));
    assert_memory_equal(base, "c", 1);
    assert_attributes(b, 1, TRITONSERVER_MEMORY_GPU, 1, handle);
    assert_null(TRITONBACKEND_InputBufferAttributes(in, 0, &base, &a));
    assert_memory_equal(base, "ab", 2);
    assert_attributes(a, 2, TRITONSERVER_MEMORY_CPU, 0, NULL);
    assert_attributes(b, 1, TRITONSERVER_MEMORY_GPU, 1, handle);
    assert_null(TRITONBACKEND_InputBufferAttributes(in, 0, &base, &b));
    assert_ptr_equal(a, b);

    assert_null(TRITONBACKEND_InputBufferAttributes(in, 2, &base, &a));
    assert_null(a);                             /* not an error              */
    assert_null(base);

    assert_null(inf_request_add_data(&r, inf_as_input(in), &(inf_buffer_t) {
        .base = "de", .size = 2, .memory_type = INF_MEMORY_CPU_PINNED }));
    assert_null(TRITONBACKEND_InputBufferAttributes(in, 2, &base, &a));
    assert_attributes(a, 2, TRITONSERVER_MEMORY_CPU_PINNED, 0, NULL);
    assert_null(TRITONBACKEND_InputBufferAttributes(in, 0, &base, &a));
    assert_ptr_equal(a, b);                     /* addresses are stable      */
    inf_request_fini(&r);
}

static void *
read_attributes(void *arg)
{
    TRITONSERVER_BufferAttributes *a;
    const void *base;

    for (uint32_t i = 0; i < 200; i++) {
        size_t size = 0;
        if (TRITONBACKEND_InputBufferAttributes(arg, i % 2, &base, &a) != NULL
            || TRITONSERVER_BufferAttributesByteSize(a, &size) != NULL
            || size != 2 - i % 2)
        {
            abort();
        }
    }
    return NULL;
}

static void
several_threads_may_read_one_request(void **state)
{
    (void) state;
    inf_request_t r;
    TRITONBACKEND_Input *in = inf_abi_as_input(input_of(&r));
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_attributes,
            in), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    inf_request_fini(&r);
}

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) size;
    out->base = userp;
    out->memory_type = INF_MEMORY_GPU;
    out->memory_id = 2;
    memcpy(out->ipc_handle, handle, sizeof(handle));
    out->has_ipc_handle = true;
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    assert_ptr_equal(out->base, userp);
}

static void
sink_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    (void) f;
}

static void
an_outputs_attributes_follow_its_buffer(void **state)
{
    (void) state;
    static const inf_sink_ops_t sink = {
        .alloc = sink_alloc, .release = sink_release,
        .factory_free = sink_factory_free
    };
    char bytes[8];
    int64_t shape[1] = { 8 };
    inf_factory_t f;
    inf_response_t *r;
    TRITONSERVER_BufferAttributes *a, *again;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer;

    inf_factory_init(&f);
    inf_factory_start(&f, NULL, "", &sink, bytes);
    assert_null(inf_response_new(&f, &r));
    TRITONBACKEND_Output *out = inf_abi_as_output(inf_response_add_output(r,
        "O", INF_TYPE_INT8, shape, 1));

    assert_null(TRITONBACKEND_OutputBufferAttributes(out, &a));
    assert_attributes(a, 0, TRITONSERVER_MEMORY_CPU, 0, NULL);
    assert_null(TRITONBACKEND_OutputBuffer(out, &buffer, 8, &type, &id));
    assert_ptr_equal(buffer, bytes);
    assert_attributes(a, 8, TRITONSERVER_MEMORY_GPU, 2, handle);
    assert_null(TRITONBACKEND_OutputBufferAttributes(out, &again));
    assert_ptr_equal(a, again);

    assert_null(TRITONBACKEND_ResponseDelete(inf_abi_as_response(r)));
    inf_factory_unref(&f);
    inf_factory_fini(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_input_buffer_has_its_attributes),
        cmocka_unit_test(several_threads_may_read_one_request),
        cmocka_unit_test(an_outputs_attributes_follow_its_buffer)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
