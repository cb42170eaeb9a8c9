/* memory that an instance keeps from one run to the next */

#include "common_world.h"

#include "backends/common/scratch.h"

static void
scratch_grows_and_never_shrinks(void **state)
{
    bk_scratch_t s = { 0 };

    (void) state;
    expect_success(bk_scratch_reserve(&s, 0, "nothing"));
    assert_non_null(s.data);

    expect_success(bk_scratch_reserve(&s, 1000, "a tensor"));
    assert_true(s.cap >= 1000);
    memset(s.data, 1, 1000);
    void *data = s.data;

    expect_success(bk_scratch_reserve(&s, 10, "a tensor"));
    assert_ptr_equal(s.data, data);
    assert_true(s.cap >= 1000);
    bk_scratch_fini(&s);
    assert_null(s.data);
}

static void
scratch_is_aligned(void **state)
{
    (void) state;
    for (uint64_t size = 0; size < 300; size += 7) {
        bk_scratch_t s = { 0 };

        expect_success(bk_scratch_reserve(&s, size, "a tensor"));
        assert_int_equal((uintptr_t) s.data % BK_SCRATCH_ALIGNMENT, 0);
        memset(s.data, 1, size);
        bk_scratch_fini(&s);
    }
}

static void
scratch_stays_as_it_was_without_memory(void **state)
{
    bk_scratch_t s = { 0 };

    (void) state;
    expect_success(bk_scratch_reserve(&s, 100, "a tensor"));
    void *data = s.data;
    expect_error(bk_scratch_reserve(&s, UINT64_MAX, "tensors of a batch"),
        TRITONSERVER_ERROR_UNAVAILABLE, "tensors of a batch");
    assert_ptr_equal(s.data, data);
    bk_scratch_fini(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scratch_grows_and_never_shrinks),
        cmocka_unit_test(scratch_is_aligned),
        cmocka_unit_test(scratch_stays_as_it_was_without_memory)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
