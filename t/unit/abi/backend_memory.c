#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/objects.h"
#include "core/tensor/state.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

static TRITONBACKEND_MemoryManager *
manager(void)
{
    inf_backend_t backend = { 0 };
    TRITONBACKEND_MemoryManager *m = NULL;

    assert_null(TRITONBACKEND_BackendMemoryManager(
        inf_abi_as_backend(&backend), &m));
    assert_non_null(m);
    return m;
}

static int
setup(void **state)
{
    static const inf_memory_pool_size_t small[] = {
        { 0, 1 << 20 }, { 1, 1 << 20 }
    };

    fake_setup(state);
    succeeds(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .pinned_bytes = 1 << 20, .cuda = small,
        .cuda_count = 2 }));
    return 0;
}

static int
teardown(void **state)
{
    inf_memory_unshare();
    return fake_teardown(state);
}

static void
backends_get_every_kind(void **state)
{
    (void) state;
    static const struct {
        TRITONSERVER_MemoryType type;
        int64_t                 id;
    } rows[] = {
        { TRITONSERVER_MEMORY_CPU, 0 }, { TRITONSERVER_MEMORY_CPU_PINNED, 0 },
        { TRITONSERVER_MEMORY_GPU, 0 }, { TRITONSERVER_MEMORY_GPU, 1 }
    };

    for (size_t i = 0; i < 4; i++) {
        static const uint64_t sizes[] = { 0, 1, 1000, 1 << 20 };
        for (size_t k = 0; k < 4; k++) {
            void *p = NULL;
            assert_null(TRITONBACKEND_MemoryManagerAllocate(manager(), &p,
                rows[i].type, rows[i].id, sizes[k]));
            assert_non_null(p);
            assert_int_equal(fake_cuda_bytes(p) != NULL,
                rows[i].type == TRITONSERVER_MEMORY_GPU);
            assert_int_equal(fake_cuda_is_pinned(p),
                rows[i].type == TRITONSERVER_MEMORY_CPU_PINNED);
            assert_null(TRITONBACKEND_MemoryManagerFree(manager(), p,
                rows[i].type, rows[i].id));
        }
    }
}

static void
a_kind_that_is_used_up_is_unavailable(void **state)
{
    (void) state;
    void *all, *p = (void *) 1;

    assert_null(TRITONBACKEND_MemoryManagerAllocate(manager(), &all,
        TRITONSERVER_MEMORY_GPU, 1, 1 << 20));
    fails(TRITONBACKEND_MemoryManagerAllocate(manager(), &p,
        TRITONSERVER_MEMORY_GPU, 1, 1), INF_ERR_UNAVAILABLE, "GPU");
    assert_null(p);
    fails(TRITONBACKEND_MemoryManagerAllocate(manager(), &p,
        TRITONSERVER_MEMORY_GPU, 2, 1), INF_ERR_UNAVAILABLE, "GPU 2");
    fails(TRITONBACKEND_MemoryManagerFree(manager(), all,
        TRITONSERVER_MEMORY_GPU, 0), INF_ERR_INVALID_ARG, "GPU");
    assert_null(TRITONBACKEND_MemoryManagerFree(manager(), all,
        TRITONSERVER_MEMORY_GPU, 1));
}

static void
without_a_pinned_pool_it_is_internal(void **state)
{
    (void) state;
    void *p;

    fake_cuda_reset();
    fake_cuda_fail("cuMemHostAlloc", RC_NO_MEMORY);
    succeeds(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .pinned_bytes = 1 << 20 }));
    fails(TRITONBACKEND_MemoryManagerAllocate(manager(), &p,
        TRITONSERVER_MEMORY_CPU_PINNED, 0, 1), INF_ERR_INTERNAL,
        "no pinned memory pool");
    inf_memory_unshare();
    fake_teardown(state);
}

static void
the_manager_is_the_process_s(void **state)
{
    (void) state;
    TRITONBACKEND_MemoryManager *first = manager();
    void *p;

    assert_ptr_equal(first, manager());
    assert_null(TRITONBACKEND_MemoryManagerAllocate(first, &p,
        TRITONSERVER_MEMORY_GPU, 0, 64));
    assert_null(TRITONBACKEND_MemoryManagerFree(NULL, p,
        TRITONSERVER_MEMORY_GPU, 0));
}

/* StateNew, StateBuffer, StateBufferAttributes on a GPU. */
static void
states_say_where_they_lie(void **state)
{
    (void) state;
    inf_request_t request;
    int64_t shape[1] = { 4 };
    TRITONBACKEND_State *s;
    TRITONSERVER_BufferAttributes *a;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = 1;
    size_t size;
    void *buffer, *again, *ipc = (void *) 1;

    inf_request_init(&request);
    request.states = inf_states_new();
    assert_null(inf_states_add(request.states, "O", "I", false,
        &(inf_state_buffer_t) { .size = 4, .datatype = INF_TYPE_INT8,
            .shape = shape, .dim_count = 1 }));
    assert_null(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), "O",
        TRITONSERVER_TYPE_INT8, shape, 1));

    assert_null(TRITONBACKEND_StateBuffer(s, &buffer, 4, &type, &id));
    assert_int_equal(type, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(id, 1);
    assert_non_null(fake_cuda_bytes(buffer));
    assert_null(TRITONBACKEND_StateBufferAttributes(s, &a));
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_null(TRITONSERVER_BufferAttributesMemoryTypeId(a, &id));
    assert_null(TRITONSERVER_BufferAttributesByteSize(a, &size));
    assert_null(TRITONSERVER_BufferAttributesCudaIpcHandle(a, &ipc));
    assert_int_equal(type, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(id, 1);
    assert_int_equal(size, 4);
    assert_null(ipc);

    assert_null(TRITONBACKEND_StateUpdate(s));
    const inf_state_buffer_t *in = &inf_states_find(request.states,
        "O")->input;
    assert_ptr_equal(in->base, buffer);
    assert_int_equal(in->memory_type, INF_MEMORY_GPU);

    type = TRITONSERVER_MEMORY_GPU;             /* more than the pool has    */
    assert_null(TRITONBACKEND_StateBuffer(s, &again, 2 << 20, &type, &id));
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_int_equal(type, TRITONSERVER_MEMORY_GPU);    /* as when asked     */
    assert_null(TRITONBACKEND_StateBufferAttributes(s, &a));
    assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);

    inf_states_free(request.states);
    inf_request_fini(&request);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(backends_get_every_kind),
        T(a_kind_that_is_used_up_is_unavailable),
        cmocka_unit_test(without_a_pinned_pool_it_is_internal),
        T(the_manager_is_the_process_s),
        T(states_say_where_they_lie)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
