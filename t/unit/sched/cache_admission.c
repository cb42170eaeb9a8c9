#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/sched/cache_admission.h"

#define MIN    INF_CACHE_FUTILE_MIN
#define SAMPLE INF_CACHE_SAMPLE

static inf_cache_admission_t a;

static int
start(void **state)
{
    (void) state;
    assert_null(inf_cache_admission_init(&a));
    return 0;
}

static int
end(void **state)
{
    (void) state;
    inf_cache_admission_fini(&a);
    return 0;
}

/* Spread like those of keys; distinct. */
static uint64_t
hash_of(uint64_t n)
{
    n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

static void
give_up(uint64_t n)
{
    while (n-- > 0) {
        inf_cache_admission_gave_up(&a);
    }
}

/* How many of those from first to end come in. */
static uint64_t
admitted(uint64_t first, uint64_t after)
{
    uint64_t n = 0;
    for (uint64_t i = first; i < after; i++) {
        inf_cache_admission_look(&a, hash_of(i));
        n += inf_cache_admission_admits(&a, hash_of(i), MIN);
    }
    return n;
}

static void
all_come_in_until_a_whole_shard_was_given_up_without_a_hit(void **state)
{
    (void) state;

    give_up(MIN - 1);
    assert_int_equal(admitted(0, 100), 100);
    assert_true(inf_cache_admission_admits(&a, hash_of(100), 3));
    give_up(1);
    assert_int_equal(admitted(100, 100 + SAMPLE), 1);

    assert_true(inf_cache_admission_admits(&a, hash_of(200), 10 * MIN));
    give_up(9 * MIN - 1);
    assert_int_equal(admitted(201, 201 + SAMPLE), 1);
    for (uint64_t i = 300; i < 400; i++) {
        assert_true(inf_cache_admission_admits(&a, hash_of(i), 10 * MIN));
    }
    give_up(1);
    uint64_t n = 0;
    for (uint64_t i = 400; i < 400 + SAMPLE; i++) {
        n += inf_cache_admission_admits(&a, hash_of(i), 10 * MIN);
    }
    assert_int_equal(n, 1);
}

static void
a_hit_lets_all_in_again(void **state)
{
    (void) state;

    give_up(3 * MIN);
    assert_int_equal(admitted(0, SAMPLE), 1);
    inf_cache_admission_hit(&a);
    assert_int_equal(admitted(100, 1100), 1000);
    give_up(MIN);
    assert_int_equal(admitted(2000, 2000 + SAMPLE), 1);
}

static void
who_comes_again_is_let_in(void **state)
{
    (void) state;

    give_up(MIN);
    for (uint64_t i = 0; i < 500; i += 2) {
        bool first = inf_cache_admission_admits(&a, hash_of(i), MIN);
        bool second = inf_cache_admission_admits(&a, hash_of(i), MIN);
        assert_true(second);
        assert_true(!first || a.turned_away % SAMPLE == 0);
        (void) inf_cache_admission_admits(&a, hash_of(i + 1), MIN);
    }
}

/* All of the last half as many as there is room for, but where a set is
   crowded; none of long ago, but for those taken for others. */
static void
the_last_ones_are_remembered(void **state)
{
    enum { LAST = INF_CACHE_TURNED_AWAY / 2, LONG = 100000 };

    (void) state;
    give_up(MIN);
    uint64_t sampled = admitted(0, LONG);
    assert_in_range(sampled, LONG / SAMPLE, LONG / SAMPLE + LONG / 500);
    assert_in_range(admitted(LONG - LAST, LONG), LAST * 99 / 100, LAST);
    assert_in_range(admitted(0, LAST), LAST / SAMPLE, LAST / SAMPLE + 10);
}

/* A shard that gives up what came first: requests that never repeat, and then
   some that do, among others that don't. */
static void
who_repeats_is_hit_the_third_time(void **state)
{
    enum { HELD = 2000, REPEAT = 100, KEYS = 200000 };
    static bool held[KEYS];
    static uint64_t line[KEYS];
    uint64_t first = 0, last = 0, next = REPEAT, misses = 0;

    (void) state;
    for (int round = 0; round < 103; round++) {
        for (int i = 0; i < 500; i++) {
            bool repeats = round >= 100 && i < REPEAT;
            uint64_t key = repeats ? (uint64_t) i : next++;
            if (held[key]) {
                assert_true(repeats);
                inf_cache_admission_hit(&a);
                continue;
            }

            misses += repeats;
            assert_true(!repeats || round < 102);
            if (last - first == HELD) {
                if (!inf_cache_admission_admits(&a, hash_of(key), HELD)) {
                    continue;
                }
                held[line[first++]] = false;
                inf_cache_admission_gave_up(&a);
            }
            line[last++] = key;
            held[key] = true;
        }
        if (round == 99) {          /* few were let in                       */
            assert_in_range(first, HELD, HELD + 100 * 500 / 10);
        }
    }
    assert_in_range(misses, REPEAT, 2 * REPEAT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            all_come_in_until_a_whole_shard_was_given_up_without_a_hit, start,
            end),
        cmocka_unit_test_setup_teardown(a_hit_lets_all_in_again, start, end),
        cmocka_unit_test_setup_teardown(who_comes_again_is_let_in, start,
            end),
        cmocka_unit_test_setup_teardown(the_last_ones_are_remembered, start,
            end),
        cmocka_unit_test_setup_teardown(who_repeats_is_hit_the_third_time,
            start, end)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
