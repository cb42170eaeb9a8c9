#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/state.h"
#include "fake_cuda.h"
#include "tensor/cuda.h"

static inf_states_t *states;

/* Two states of 4 bytes: O, and S with one buffer for both; 1 MiB pools. */
static int
setup(void **state)
{
    static const inf_memory_pool_size_t small[] = {
        { 0, 1 << 20 }, { 1, 1 << 20 }
    };
    int64_t shape[1] = { 4 };

    fake_setup(state);
    succeeds(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .pinned_bytes = 1 << 20, .cuda = small,
        .cuda_count = 2, .virtual = small, .virtual_count = 1 }));
    states = inf_states_new();
    succeeds(inf_states_add(states, "O", "I", false, &(inf_state_buffer_t) {
        .base = (void *) "init", .size = 4, .datatype = INF_TYPE_INT8,
        .shape = shape, .dim_count = 1 }));
    succeeds(inf_states_add(states, "S", "T", true, &(inf_state_buffer_t) {
        .size = 4, .datatype = INF_TYPE_INT8, .shape = shape,
        .dim_count = 1 }));
    return 0;
}

static int
teardown(void **state)
{
    fake_cuda_fail(NULL, 0);
    inf_states_free(states);
    inf_memory_unshare();
    return fake_teardown(state);
}

static char *
bytes(const inf_state_buffer_t *b)
{
    return b->memory_type == INF_MEMORY_GPU ? fake_cuda_bytes(b->base)
        : b->base;
}

/* Of the kind asked for; says the one that it got. */
static void *
reserve(inf_state_t *s, size_t size, inf_memory_type_t *type, int64_t *id)
{
    void *base = NULL;
    succeeds(inf_state_reserve(s, size, type, id, &base));
    return base;
}

static void
an_initial_state_is_pinned_where_it_can_be(void **state)
{
    (void) state;
    const inf_state_buffer_t *b = &inf_states_find(states, "O")->input;

    assert_int_equal(b->memory_type, INF_MEMORY_CPU_PINNED);
    assert_true(fake_cuda_is_pinned(b->base));
    assert_memory_equal(b->base, "init", 4);
    assert_memory_equal(inf_states_find(states, "S")->input.base, "\0\0\0\0",
        4);
}

static void
a_buffer_lies_where_it_is_asked_for(void **state)
{
    (void) state;
    static const struct {
        inf_memory_type_t type;
        int64_t           id;
    } rows[] = {
        { INF_MEMORY_GPU, 0 }, { INF_MEMORY_GPU, 1 }, { INF_MEMORY_CPU, 0 },
        { INF_MEMORY_CPU_PINNED, 0 }, { INF_MEMORY_GPU, 0 }
    };
    inf_state_t *s = inf_states_find(states, "O");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_memory_type_t type = rows[i].type;
        int64_t id = rows[i].id;
        void *base = reserve(s, 6, &type, &id);

        assert_int_equal(type, rows[i].type);
        assert_int_equal(id, rows[i].id);
        assert_ptr_equal(reserve(s, 6, &type, &id), base);   /* the held one */
        assert_memory_equal(bytes(&s->output), "\0\0\0\0\0\0", 6);
        memcpy(bytes(&s->output), "sixsix", 6);
    }
}

static void
what_does_not_fit_goes_to_the_next_kind(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "O");
    inf_memory_t *m = inf_memory_shared();
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = 5;                             /* there is no such GPU      */
    void *all;

    reserve(s, 100, &type, &id);
    assert_int_equal(type, INF_MEMORY_CPU_PINNED);
    assert_int_equal(id, 0);

    type = INF_MEMORY_GPU;
    id = 1;
    reserve(s, 2 << 20, &type, &id);            /* more than any pool        */
    assert_int_equal(type, INF_MEMORY_CPU);
    assert_int_equal(id, 0);

    succeeds(inf_memory_alloc(m, INF_MEMORY_GPU, 0, 1 << 20, &all));
    type = INF_MEMORY_GPU;
    id = 0;
    reserve(s, 100, &type, &id);                /* the pool is full          */
    assert_int_equal(type, INF_MEMORY_CPU_PINNED);
    succeeds(inf_memory_release(m, all, INF_MEMORY_GPU, 0));

    type = INF_MEMORY_GPU;
    reserve(s, 100, &type, &id);                /* and now it is not         */
    assert_int_equal(type, INF_MEMORY_GPU);
}

/* A backend that asks for what never comes keeps its buffer. */
static void
the_next_best_is_held_too(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "S");
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = 9;
    void *base = s->input.base;

    assert_ptr_equal(reserve(s, 4, &type, &id), base);
    assert_int_equal(type, INF_MEMORY_CPU_PINNED);
    assert_int_equal(id, 0);
}

static void
a_commit_takes_the_kind_along(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "O");
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = 1;
    int64_t shape[1] = { 7 };

    succeeds(inf_state_describe(s, INF_TYPE_INT8, shape, 1));
    void *written = reserve(s, 7, &type, &id);
    memcpy(bytes(&s->output), "on gpu1", 7);
    succeeds(inf_state_commit(s));
    assert_ptr_equal(s->input.base, written);
    assert_int_equal(s->input.memory_type, INF_MEMORY_GPU);
    assert_int_equal(s->input.memory_id, 1);
    assert_int_equal(s->input.size, 7);
    assert_int_equal(s->input.shape[0], 7);
    assert_memory_equal(bytes(&s->input), "on gpu1", 7);

    memcpy(bytes(&s->output), "another", 7);    /* the next to be written    */
    succeeds(inf_state_commit(s));
    assert_memory_equal(bytes(&s->input), "another", 7);
    succeeds(inf_state_commit(s));              /* two cancel out            */
    assert_memory_equal(bytes(&s->input), "on gpu1", 7);
    assert_int_equal(s->output.memory_type, INF_MEMORY_GPU);
}

static void
one_buffer_keeps_its_bytes_when_it_moves(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "S");
    inf_memory_type_t type = INF_MEMORY_CPU;
    int64_t id = 0;

    memcpy(reserve(s, 4, &type, &id), "kept", 4);
    type = INF_MEMORY_GPU;
    reserve(s, 6, &type, &id);
    assert_int_equal(type, INF_MEMORY_GPU);
    assert_memory_equal(bytes(&s->input), "kept\0\0", 6);
    id = 1;
    reserve(s, 5, &type, &id);
    assert_int_equal(id, 1);
    assert_memory_equal(bytes(&s->input), "kept\0", 5);
    type = INF_MEMORY_CPU_PINNED;
    assert_memory_equal(reserve(s, 3, &type, &id), "kep", 3);
    succeeds(inf_state_commit(s));
}

/* GPU 0 has 1 MiB of addresses, granules are of 64 KiB. */
static void
a_growing_state_never_moves(void **state)
{
    (void) state;
    static const size_t sizes[] = { 4, 100, 65536, 65537, 300000, 1 << 20 };
    inf_state_t *s = inf_states_find(states, "S");
    inf_memory_type_t type = INF_MEMORY_CPU;    /* it isn't asked            */
    int64_t id = 0;

    memcpy(reserve(s, 4, &type, &id), "kept", 4);
    succeeds(inf_state_make_growable(s, 0));
    assert_int_equal(s->input.memory_type, INF_MEMORY_GPU);
    void *base = s->input.base;
    assert_memory_equal(fake_cuda_bytes(base), "kept", 4);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        type = INF_MEMORY_CPU;
        assert_ptr_equal(reserve(s, sizes[i], &type, &id), base);
        assert_int_equal(type, INF_MEMORY_GPU);
        assert_int_equal(id, 0);
        assert_memory_equal(fake_cuda_bytes(base), "kept", 4);
        for (size_t k = 4; k < sizes[i]; k += 509) {
            assert_int_equal(((char *) fake_cuda_bytes(base))[k], 0);
        }
        succeeds(inf_state_commit(s));
        assert_int_equal(s->input.size, sizes[i]);
    }

    fails(inf_state_reserve(s, (1 << 20) + 1, &type, &id, &base),
        INF_ERR_UNAVAILABLE, "state 'S': 1048577 bytes are more than the"
        " 1048576 that memory on GPU 0 may grow to");

    /* what comes back is zeros again */
    memset(fake_cuda_bytes((char *) base + 8), 1, 8);
    reserve(s, 6, &type, &id);
    reserve(s, 16, &type, &id);
    assert_memory_equal(fake_cuda_bytes(base), "kept", 4);
    assert_memory_equal(fake_cuda_bytes((char *) base + 6),
        "\0\0\0\0\0\0\0\0\0\0", 10);
}

/* Wherever its buffers were. */
static void
a_state_begins_anew_with_nothing_of_the_last_sequence(void **state)
{
    (void) state;
    static const inf_memory_type_t types[] = {
        INF_MEMORY_CPU, INF_MEMORY_CPU_PINNED, INF_MEMORY_GPU
    };
    int64_t shape[1] = { 4 }, other[2] = { 2, 4 };
    const inf_state_buffer_t initial = {
        .base = (void *) "init", .size = 4, .datatype = INF_TYPE_INT8,
        .shape = shape, .dim_count = 1
    };
    inf_state_t *s = inf_states_find(states, "O");

    for (size_t i = 0; i < 9; i++) {
        for (size_t k = 0; k < 1 + i / 3; k++) {
            inf_memory_type_t type = types[i % 3];
            size_t size = i < 3 ? 4 : 8;
            int64_t id = 0;

            void *base = reserve(s, size, &type, &id);
            succeeds(inf_state_describe(s, INF_TYPE_INT16, other, 2));
            memset(type == INF_MEMORY_GPU ? fake_cuda_bytes(base) : base, 1,
                size);
            succeeds(inf_state_commit(s));
        }

        succeeds(inf_state_renew(s, &initial));
        assert_int_equal(s->input.memory_type, INF_MEMORY_CPU_PINNED);
        assert_int_equal(s->input.size, 4);
        assert_memory_equal(s->input.base, "init", 4);
        assert_int_equal(s->input.datatype, INF_TYPE_INT8);
        assert_int_equal(s->input.dim_count, 1);
        assert_int_equal(s->input.shape[0], 4);
        for (size_t n = 0; n < s->output.size; n++) {
            assert_int_equal(bytes(&s->output)[n], 0);
        }
        fails(inf_state_commit(s), INF_ERR_INVALID_ARG, "no buffer to");
    }

    void *before = s->input.base;
    succeeds(inf_state_renew(s, &initial));     /* it is used again          */
    assert_ptr_equal(s->input.base, before);
}

/* A backend may look at its input after it has written the output. */
static void
what_a_request_reads_stays_until_the_next_one(void **state)
{
    (void) state;
    static const char *const names[] = { "O", "S" };

    for (int i = 0; i < 2; i++) {
        inf_state_t *s = inf_states_find(states, names[i]);
        inf_memory_t *m = inf_memory_shared();
        inf_memory_type_t type = INF_MEMORY_CPU_PINNED;
        int64_t id = 0;

        memcpy(reserve(s, 4, &type, &id), "read", 4);
        succeeds(inf_state_commit(s));
        inf_state_begin(s);
        const char *read = s->input.base;
        uint64_t used = inf_memory_pinned_usage(m).used;

        for (size_t size = i == 0 ? 4 : 1000; size < 4000; size += 996) {
            memset(reserve(s, size, &type, &id), 1, size);
            succeeds(inf_state_commit(s));
            assert_memory_equal(read, "read", 4);
        }
        assert_ptr_not_equal(s->input.base, read);
        type = INF_MEMORY_CPU;
        reserve(s, 4, &type, &id);
        succeeds(inf_state_commit(s));
        reserve(s, 8, &type, &id);
        assert_memory_equal(read, "read", 4);
        assert_true(fake_cuda_is_pinned(read));

        inf_state_begin(s);                     /* and then it is gone       */
        assert_true(inf_memory_pinned_usage(m).used < used);
        inf_state_begin(s);
    }
}

static void
a_growing_state_begins_anew_where_it_is(void **state)
{
    (void) state;
    int64_t shape[1] = { 4 };
    const inf_state_buffer_t initial = {
        .base = (void *) "init", .size = 4, .datatype = INF_TYPE_INT8,
        .shape = shape, .dim_count = 1
    };
    inf_state_t *s = inf_states_find(states, "S");
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = 0;

    succeeds(inf_state_make_growable(s, 0));
    void *base = reserve(s, 70000, &type, &id);
    memset(fake_cuda_bytes(base), 1, 70000);
    succeeds(inf_state_renew(s, &initial));
    assert_ptr_equal(s->input.base, base);
    assert_int_equal(s->input.size, 4);
    assert_memory_equal(fake_cuda_bytes(base), "init", 4);
    reserve(s, 70000, &type, &id);
    for (size_t k = 4; k < 70000; k++) {
        assert_int_equal(((char *) fake_cuda_bytes(base))[k], 0);
    }

    fake_cuda_fail("cuStreamSynchronize", RC_UNKNOWN);
    fails(inf_state_renew(s, &initial), INF_ERR_INTERNAL, "state 'S'");
}

static void
what_can_not_grow_stays_as_it_was(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "S");
    void *before = s->input.base;
    inf_memory_type_t type = INF_MEMORY_GPU;
    int64_t id = 0;
    void *base;

    fails(inf_state_make_growable(inf_states_find(states, "O"), 0),
        INF_ERR_INVALID_ARG, "state 'O'");
    fails(inf_state_make_growable(s, 7), INF_ERR_UNAVAILABLE, "GPU 7");
    static const char *const functions[] = {
        "cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemCreate",
        "cuMemMap", "cuMemSetAccess", "cuMemRelease", "cuMemsetD8Async",
        "cuStreamSynchronize"
    };
    for (size_t i = 0; i < 6; i++) {
        fake_cuda_fail(functions[i], RC_UNKNOWN);
        fails(inf_state_make_growable(s, 0), INF_ERR_INTERNAL, "state 'S'");
        assert_ptr_equal(s->input.base, before);
    }

    fake_cuda_fail(NULL, 0);
    succeeds(inf_state_make_growable(s, 0));
    before = s->input.base;
    for (size_t i = 2; i < 8; i++) {
        fake_cuda_fail(functions[i], RC_UNKNOWN);
        fails(inf_state_reserve(s, 70000, &type, &id, &base),
            INF_ERR_INTERNAL, "state 'S'");
        assert_int_equal(s->input.size, 4);
        assert_ptr_equal(s->input.base, before);
        if (i >= 5) {
            fake_cuda_fail(NULL, 0);
            reserve(s, 70000, &type, &id);      /* and now it is there       */
            reserve(s, 4, &type, &id);
        }
    }

    fake_cuda_fail(NULL, 0);
    fake_cuda_occupy(0, FAKE_CUDA_MEMORY);
    fails(inf_state_reserve(s, 1 << 20, &type, &id, &base),
        INF_ERR_UNAVAILABLE, "CUDA_ERROR_OUT_OF_MEMORY");
}

/* The held buffer is as it was. */
static void
a_failing_copy_changes_nothing(void **state)
{
    (void) state;
    inf_state_t *s = inf_states_find(states, "S");
    inf_memory_t *m = inf_memory_shared();
    inf_memory_type_t type = INF_MEMORY_CPU_PINNED;
    int64_t id = 0;
    void *base = reserve(s, 4, &type, &id), *other;

    memcpy(base, "safe", 4);
    fake_cuda_fail("cuStreamSynchronize", RC_UNKNOWN);
    type = INF_MEMORY_GPU;
    fails(inf_state_reserve(s, 4, &type, &id, &other), INF_ERR_INTERNAL,
        "state 'S': GPU 0: copies failed");
    fake_cuda_fail("cuMemsetD8Async", RC_UNKNOWN);
    type = INF_MEMORY_GPU;
    fails(inf_state_reserve(s, 9, &type, &id, &other), INF_ERR_INTERNAL,
        "state 'S': GPU 0: cannot fill memory");
    fake_cuda_fail(NULL, 0);

    assert_ptr_equal(s->input.base, base);
    assert_memory_equal(base, "safe", 4);
    assert_int_equal(inf_memory_gpu_usage(m, 0).used, 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_initial_state_is_pinned_where_it_can_be),
        T(a_buffer_lies_where_it_is_asked_for),
        T(what_does_not_fit_goes_to_the_next_kind),
        T(the_next_best_is_held_too),
        T(a_commit_takes_the_kind_along),
        T(one_buffer_keeps_its_bytes_when_it_moves),
        T(a_growing_state_never_moves),
        T(a_state_begins_anew_with_nothing_of_the_last_sequence),
        T(what_a_request_reads_stays_until_the_next_one),
        T(a_growing_state_begins_anew_where_it_is),
        T(what_can_not_grow_stays_as_it_was),
        T(a_failing_copy_changes_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
