/* When instances are stuck, by a virtual clock. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/sched/stuck.h"

#define SECOND UINT64_C(1000000000)
#define LIMIT  (60 * SECOND)

static uint64_t now;

/* Threads of one instance each, since when they execute; ends with 1. */
static inf_stuck_t
count(const uint64_t *begun_ns, uint64_t limit_ns)
{
    inf_stuck_t s = { 0 };

    for (; *begun_ns != 1; begun_ns++) {
        inf_stuck_count(&s, 1, *begun_ns, now, limit_ns);
    }
    return s;
}

static void
an_execution_of_the_limit_is_not_stuck_and_a_longer_one_is(void **state)
{
    (void) state;
    const uint64_t begun[] = { 10 * SECOND, 1 };

    now = 70 * SECOND;
    assert_int_equal(count(begun, LIMIT).stuck, 0);
    now++;
    assert_int_equal(count(begun, LIMIT).stuck, 1);
}

static void
all_are_stuck_when_none_is_left(void **state)
{
    (void) state;
    uint64_t begun[] = { 10 * SECOND, 20 * SECOND, 75 * SECOND, 1 };

    now = 100 * SECOND;
    inf_stuck_t s = count(begun, LIMIT);
    assert_int_equal(s.serving, 3);
    assert_int_equal(s.stuck, 2);
    assert_false(inf_stuck_all(&s));

    now = 200 * SECOND;
    s = count(begun, LIMIT);
    assert_true(inf_stuck_all(&s));

    begun[1] = 0;                           /* it returns                    */
    s = count(begun, LIMIT);
    assert_int_equal(s.stuck, 2);
    assert_false(inf_stuck_all(&s));
}

static void
instances_of_one_thread_are_stuck_together(void **state)
{
    (void) state;
    inf_stuck_t s = { 0 };

    inf_stuck_count(&s, 3, 10 * SECOND, 100 * SECOND, LIMIT);
    assert_int_equal(s.serving, 3);
    assert_int_equal(s.stuck, 3);
    assert_int_equal(s.busy, 1);            /* they take turns               */
    assert_true(inf_stuck_all(&s));
}

static void
a_model_without_instances_is_not_stuck(void **state)
{
    (void) state;
    const inf_stuck_t s = { 0 };
    assert_false(inf_stuck_all(&s));
}

static void
without_a_limit_none_is_stuck(void **state)
{
    (void) state;
    const uint64_t begun[] = { 1 + SECOND, 1 };

    now = UINT64_MAX;
    assert_int_equal(count(begun, 0).stuck, 0);
    assert_int_equal(count(begun, UINT64_MAX - 1).stuck, 0);
}

/* The clock was read before the thread stored its own reading. */
static void
an_execution_that_begins_meanwhile_is_not_stuck(void **state)
{
    (void) state;
    const uint64_t begun[] = { 10 * SECOND + 5, 1 };

    now = 10 * SECOND;
    assert_int_equal(count(begun, 1).stuck, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            an_execution_of_the_limit_is_not_stuck_and_a_longer_one_is),
        cmocka_unit_test(all_are_stuck_when_none_is_left),
        cmocka_unit_test(instances_of_one_thread_are_stuck_together),
        cmocka_unit_test(a_model_without_instances_is_not_stuck),
        cmocka_unit_test(without_a_limit_none_is_stuck),
        cmocka_unit_test(an_execution_that_begins_meanwhile_is_not_stuck)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
