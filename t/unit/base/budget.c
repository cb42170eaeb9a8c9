#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "core/base/budget.h"

static void
what_fits_is_taken_and_given_back(void **state)
{
    (void) state;
    inf_budget_t b = { .bound = 10 };

    assert_int_equal(inf_budget_take(&b, 11), INF_BUDGET_TOO_MUCH);
    assert_int_equal(inf_budget_take(&b, UINT64_MAX), INF_BUDGET_TOO_MUCH);
    assert_int_equal(inf_budget_take(&b, 10), INF_BUDGET_TAKEN);
    assert_int_equal(inf_budget_take(&b, 0), INF_BUDGET_TAKEN);
    assert_int_equal(inf_budget_take(&b, 1), INF_BUDGET_IN_USE);
    inf_budget_give(&b, 4);
    assert_int_equal(inf_budget_take(&b, 5), INF_BUDGET_IN_USE);
    assert_int_equal(inf_budget_take(&b, 4), INF_BUDGET_TAKEN);
    assert_int_equal(inf_budget_used(&b), 10);
}

static void
a_smaller_bound_takes_nothing_away(void **state)
{
    (void) state;
    inf_budget_t b = { .bound = UINT64_MAX };

    assert_int_equal(inf_budget_take(&b, 10), INF_BUDGET_TAKEN);
    assert_int_equal(inf_budget_take(&b, UINT64_MAX), INF_BUDGET_IN_USE);
    inf_budget_set(&b, 5);
    assert_int_equal(inf_budget_bound(&b), 5);
    assert_int_equal(inf_budget_take(&b, 1), INF_BUDGET_IN_USE);
    assert_int_equal(inf_budget_take(&b, 6), INF_BUDGET_TOO_MUCH);
    assert_int_equal(inf_budget_take(&b, 0), INF_BUDGET_TAKEN);
    inf_budget_give(&b, 6);
    assert_int_equal(inf_budget_take(&b, 1), INF_BUDGET_TAKEN);
    assert_int_equal(inf_budget_used(&b), 5);
}

static void *
take_and_give(void *userp)
{
    inf_budget_t *b = userp;

    for (int i = 0; i < 20000; i++) {
        if (inf_budget_take(b, 3) == INF_BUDGET_TAKEN) {
            assert(inf_budget_used(b) <= 7);
            inf_budget_give(b, 3);
        }
    }
    return NULL;
}

static void
threads_never_have_more_than_the_bound(void **state)
{
    (void) state;
    inf_budget_t b = { .bound = 7 };
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &b),
            0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(inf_budget_used(&b), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_taken_and_given_back),
        cmocka_unit_test(a_smaller_bound_takes_nothing_away),
        cmocka_unit_test(threads_never_have_more_than_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
