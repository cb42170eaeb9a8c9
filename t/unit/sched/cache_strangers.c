#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/cache_strangers.h"

static inf_cache_strangers_t s;

/* One that has had no hit for long enough. */
static int
start(void **state)
{
    (void) state;
    assert_null(inf_cache_strangers_init(&s));
    for (uint32_t i = 0; i < INF_CACHE_HITLESS; i++) {
        inf_cache_strangers_missed(&s, true);
    }
    return 0;
}

static int
end(void **state)
{
    (void) state;
    inf_cache_strangers_fini(&s);
    return 0;
}

static void
put(inf_request_t *r, const char *name, const void *data, size_t size)
{
    inf_input_t *in = inf_request_add_input(r, name, strlen(name),
        INF_TYPE_UINT8, (int64_t[]) { (int64_t) size }, 1);
    assert_non_null(in);
    assert_null(inf_request_add_data(r, in,
        &(inf_buffer_t) { .base = data, .size = size }));
}

static bool
passes(const void *data, size_t size)
{
    inf_request_t r;

    inf_request_init(&r);
    put(&r, "IN", data, size);
    bool does = inf_cache_strangers_pass(&s, &r);
    inf_request_fini(&r);
    return does;
}

static bool
number_passes(uint64_t n)
{
    return passes(&n, sizeof(n));
}

static void
at_first_all_are_looked_up(void **state)
{
    (void) state;
    inf_cache_strangers_fini(&s);
    assert_null(inf_cache_strangers_init(&s));
    assert_false(number_passes(1));
    for (uint32_t i = 0; i < INF_CACHE_HITLESS - 1; i++) {
        inf_cache_strangers_missed(&s, true);
    }
    assert_false(number_passes(2));
    inf_cache_strangers_missed(&s, true);
    assert_true(number_passes(3));
    assert_true(number_passes(1));      /* nobody looked at it before        */
}

static void
what_comes_again_is_looked_up(void **state)
{
    (void) state;
    assert_true(number_passes(7));
    assert_false(number_passes(7));
    assert_false(number_passes(7));
    assert_true(number_passes(8));
    assert_false(number_passes(7));
}

static void
a_cache_that_takes_what_it_misses_is_asked(void **state)
{
    (void) state;
    assert_true(number_passes(1));
    inf_cache_strangers_missed(&s, false);
    assert_false(number_passes(2));
    inf_cache_strangers_missed(&s, true);
    assert_true(number_passes(3));
}

static void
one_hit_ends_it(void **state)
{
    (void) state;
    assert_true(number_passes(1));
    inf_cache_strangers_hit(&s);
    for (uint32_t i = 0; i < INF_CACHE_HITLESS; i++) {
        assert_false(number_passes(1000 + i));
        inf_cache_strangers_missed(&s, true);
    }
    assert_true(number_passes(2));
}

static void
one_in_a_number_is_asked_for_all_the_same(void **state)
{
    (void) state;
    uint32_t asked = 0;

    for (uint64_t i = 0; i < 100 * INF_CACHE_ASKED; i++) {
        asked += !number_passes(i);
    }
    assert_in_range(asked, 100, 105);   /* some look familiar, by chance     */
}

/* So many are known again, but for those that share a place. */
static void
it_knows_those_of_not_long_ago(void **state)
{
    (void) state;
    enum { N = INF_CACHE_FAMILIAR / 8 };
    uint32_t familiar = 0;

    for (uint64_t i = 0; i < N; i++) {
        (void) number_passes(i);
    }
    for (uint64_t i = 0; i < N; i++) {
        familiar += !number_passes(i);
    }
    assert_in_range(familiar, N * 85 / 100, N);
}

static void
the_order_of_inputs_is_nothing(void **state)
{
    (void) state;
    for (int turn = 0; turn < 2; turn++) {
        inf_request_t r;
        inf_request_init(&r);
        put(&r, turn == 0 ? "A" : "B", turn == 0 ? "one" : "other",
            turn == 0 ? 3 : 5);
        put(&r, turn == 0 ? "B" : "A", turn == 0 ? "other" : "one",
            turn == 0 ? 5 : 3);
        assert_int_equal(inf_cache_strangers_pass(&s, &r), turn == 0);
        inf_request_fini(&r);
    }
}

static void
sizes_and_ends_count(void **state)
{
    (void) state;
    char data[4096] = "";

    for (size_t size = 0; size <= 40; size++) {
        assert_true(passes(data, size));
    }
    assert_true(passes(data, sizeof(data)));
    assert_false(passes(data, sizeof(data)));
    data[0] = 1;
    assert_true(passes(data, sizeof(data)));
    data[sizeof(data) - 1] = 1;
    assert_true(passes(data, sizeof(data)));
    assert_false(passes(data, sizeof(data)));
}

/* Zeros, with a number at the end, or anywhere if it is larger than a sample
   leaves out. */
static void
what_is_read_lies_all_over_the_input(void **state)
{
    (void) state;
    char data[1600] = "";

    assert_true(passes(data, sizeof(data)));
    for (size_t i = 0; i + 128 <= sizeof(data); i += 128) {
        memset(data + i, 1, 128);
        assert_true(passes(data, sizeof(data)));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_first_all_are_looked_up, start,
            end),
        cmocka_unit_test_setup_teardown(what_comes_again_is_looked_up, start,
            end),
        cmocka_unit_test_setup_teardown(
            a_cache_that_takes_what_it_misses_is_asked, start, end),
        cmocka_unit_test_setup_teardown(one_hit_ends_it, start, end),
        cmocka_unit_test_setup_teardown(
            one_in_a_number_is_asked_for_all_the_same, start, end),
        cmocka_unit_test_setup_teardown(it_knows_those_of_not_long_ago, start,
            end),
        cmocka_unit_test_setup_teardown(the_order_of_inputs_is_nothing, start,
            end),
        cmocka_unit_test_setup_teardown(sizes_and_ends_count, start, end),
        cmocka_unit_test_setup_teardown(what_is_read_lies_all_over_the_input,
            start, end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
