#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/objects.h"
#include "core/tensor/state.h"

/* A sanitizer's allocator, too, says no to what cannot be. */
#define VISIBLE __attribute__((visibility("default")))
VISIBLE const char *__asan_default_options(void);
VISIBLE const char *__tsan_default_options(void);

const char *
__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *
__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static inf_model_t   model = { .name = (char *) "m" };
static inf_request_t request;

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), text));
    TRITONSERVER_ErrorDelete(err);
}

/* Two states of a sequence: O of 4 bytes, S with one buffer for both. */
static int
setup(void **state)
{
    (void) state;
    int64_t shape[1] = { 4 };

    inf_request_init(&request);
    request.model = &model;
    request.states = inf_states_new();
    assert_null(inf_states_add(request.states, "O", "I", false,
        &(inf_state_buffer_t) { .base = (void *) "init", .size = 4,
            .datatype = INF_TYPE_INT8, .shape = shape, .dim_count = 1 }));
    assert_null(inf_states_add(request.states, "S", "T", true,
        &(inf_state_buffer_t) { .size = 4, .datatype = INF_TYPE_INT8,
            .shape = shape, .dim_count = 1 }));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_states_free(request.states);
    inf_request_fini(&request);
    return 0;
}

static TRITONBACKEND_State *
state_new(const char *name, int64_t dim)
{
    TRITONBACKEND_State *s = NULL;
    assert_null(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), name,
        TRITONSERVER_TYPE_INT8, &dim, 1));
    return s;
}

static void
write_state(TRITONBACKEND_State *s, const char *text)
{
    void *buffer = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = 1;

    assert_null(TRITONBACKEND_StateBuffer(s, &buffer, strlen(text), &type,
        &id));
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    memcpy(buffer, text, strlen(text));
}

static const inf_state_t *
entry(const char *name)
{
    return inf_states_find(request.states, name);
}

static void
a_request_without_states_has_none_to_make(void **state)
{
    (void) state;
    TRITONBACKEND_State *s = (void *) 1;
    int64_t dim = 4;
    inf_states_t *states = request.states;

    request.states = NULL;
    fails(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), "O",
        TRITONSERVER_TYPE_INT8, &dim, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "unable to add state 'O'. State configuration is missing for model"
        " 'm'.");
    assert_null(s);
    request.states = states;

    fails(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), "I",
        TRITONSERVER_TYPE_INT8, &dim, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "state 'I' is not a valid state name.");        /* an input's        */
    fails(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), "O",
        (TRITONSERVER_DataType) 99, &dim, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "99");
    fails(TRITONBACKEND_StateNew(&s, inf_abi_as_request(&request), "O",
        TRITONSERVER_TYPE_INT8, &dim, 1000), TRITONSERVER_ERROR_INVALID_ARG,
        "1000 dimensions");
    assert_null(s);
}

static void
an_update_makes_it_the_next_input(void **state)
{
    (void) state;
    TRITONBACKEND_State *s = state_new("O", 4);

    assert_ptr_equal(state_new("O", 4), s);
    assert_memory_equal(entry("O")->input.base, "init", 4);
    fails(TRITONBACKEND_StateUpdate(s), TRITONSERVER_ERROR_INVALID_ARG,
        "no buffer");
    write_state(s, "next");
    assert_memory_equal(entry("O")->input.base, "init", 4);
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_memory_equal(entry("O")->input.base, "next", 4);
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_memory_equal(entry("O")->input.base, "init", 4); /* cancels out   */
}

static void
a_state_may_change_its_size(void **state)
{
    (void) state;
    TRITONBACKEND_State *s = state_new("O", 7);

    write_state(s, "longer!");
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_int_equal(entry("O")->input.size, 7);
    assert_int_equal(entry("O")->input.shape[0], 7);
    assert_memory_equal(entry("O")->input.base, "longer!", 7);

    s = state_new("O", 0);
    write_state(s, "");
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_int_equal(entry("O")->input.size, 0);
}

static void
a_buffer_of_the_same_size_is_kept(void **state)
{
    (void) state;
    TRITONBACKEND_State *s = state_new("O", 4);
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *a, *b;

    assert_null(TRITONBACKEND_StateBuffer(s, &a, 4, &type, &id));
    assert_null(TRITONBACKEND_StateBuffer(s, &b, 4, &type, &id));
    assert_ptr_equal(a, b);
    fails(TRITONBACKEND_StateBuffer(s, &b, UINT64_MAX / 2, &type, &id),
        TRITONSERVER_ERROR_UNAVAILABLE, "'O'");
    assert_null(b);
    write_state(s, "four");                     /* the old one still is      */
}

static void
one_buffer_for_input_and_output(void **state)
{
    (void) state;
    TRITONBACKEND_State *s = state_new("S", 4);
    void *before = entry("S")->input.base;

    assert_memory_equal(before, "\0\0\0\0", 4);
    write_state(s, "same");
    assert_ptr_equal(entry("S")->input.base, before);
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_null(TRITONBACKEND_StateUpdate(s));
    assert_memory_equal(entry("S")->input.base, "same", 4);
}

static void
attributes_say_what_the_buffer_is(void **state)
{
    (void) state;
    static const char *const names[] = { "O", "S" };

    for (int i = 0; i < 2; i++) {
        TRITONBACKEND_State *s = state_new(names[i], 6);
        TRITONSERVER_BufferAttributes *a, *again;
        size_t size;
        TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;

        write_state(s, "sixsix");
        assert_null(TRITONBACKEND_StateBufferAttributes(s, &a));
        assert_null(TRITONBACKEND_StateBufferAttributes(s, &again));
        assert_ptr_equal(a, again);
        assert_null(TRITONSERVER_BufferAttributesByteSize(a, &size));
        assert_int_equal(size, 6);
        assert_null(TRITONSERVER_BufferAttributesMemoryType(a, &type));
        assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_request_without_states_has_none_to_make),
        T(an_update_makes_it_the_next_input),
        T(a_state_may_change_its_size),
        T(a_buffer_of_the_same_size_is_kept),
        T(one_buffer_for_input_and_output),
        T(attributes_say_what_the_buffer_is)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
