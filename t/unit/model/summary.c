#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/model/summary.h"

static const double quantiles[] = { 0, 0.5, 0.9, 0.99, 1 };
#define COUNT (sizeof(quantiles) / sizeof(quantiles[0]))

#define KIND 3

static void
observe(inf_summary_t *s, uint64_t value, uint64_t now_ns)
{
    inf_summary_observe(s, KIND, inf_summary_window(s, now_ns), value);
}

static void
small_values_are_exact(void **state)
{
    (void) state;
    inf_summary_t *s = inf_summary_new();
    double v[COUNT];

    inf_summary_quantiles(s, KIND, 0, quantiles, COUNT, v);
    assert_true(isnan(v[0]) && isnan(v[COUNT - 1]));

    for (uint64_t i = 1; i <= 100; i++) {
        observe(s, i, 5);
    }
    inf_summary_quantiles(s, KIND, 5, quantiles, COUNT, v);
    assert_true(v[0] == 1 && v[1] == 50 && v[2] == 90 && v[3] == 99
        && v[4] == 100);
    inf_summary_free(s);
}

static void
large_values_are_off_by_one_in_a_hundred_at_most(void **state)
{
    (void) state;
    const double one = 0.5;

    for (uint64_t value = 1; value < UINT64_C(1) << 36; value += value / 3 + 1)
    {
        inf_summary_t *s = inf_summary_new();
        double v;

        observe(s, value, 0);
        inf_summary_quantiles(s, KIND, 0, &one, 1, &v);
        assert_true(fabs(v - (double) value) <= (double) value / 100);
        inf_summary_free(s);
    }

    inf_summary_t *s = inf_summary_new();
    double v;
    observe(s, UINT64_MAX, 0);
    inf_summary_quantiles(s, KIND, 0, &one, 1, &v);
    assert_true(v > 6e10 && v < 7e10);          /* counted as the largest    */
    inf_summary_free(s);
}

static void
a_minute_later_values_are_forgotten(void **state)
{
    (void) state;
    const uint64_t w = INF_SUMMARY_WINDOW_NS;
    const double most = 1;
    inf_summary_t *s = inf_summary_new();
    double v;

    observe(s, 90, 7 * w + 5);
    observe(s, 10, 9 * w);
    inf_summary_quantiles(s, KIND, 11 * w, &most, 1, &v);
    assert_true(v == 90);
    inf_summary_quantiles(s, KIND, 12 * w, &most, 1, &v);
    assert_true(v == 10);
    observe(s, 30, 12 * w);                     /* the window of 7 w again   */
    inf_summary_quantiles(s, KIND, 13 * w, &most, 1, &v);
    assert_true(v == 30);
    inf_summary_quantiles(s, KIND, 30 * w, &most, 1, &v);
    assert_true(isnan(v));
    inf_summary_free(s);
}

static void
kinds_are_apart(void **state)
{
    (void) state;
    const double most = 1;
    inf_summary_t *s = inf_summary_new();
    double v;

    for (uint32_t kind = 0; kind < INF_SUMMARY_KINDS; kind++) {
        inf_summary_observe(s, kind, inf_summary_window(s, 9), 7 + kind);
    }
    for (uint32_t kind = 0; kind < INF_SUMMARY_KINDS; kind++) {
        inf_summary_quantiles(s, kind, 9, &most, 1, &v);
        assert_true(v == 7 + kind);
    }
    inf_summary_free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(large_values_are_off_by_one_in_a_hundred_at_most),
        cmocka_unit_test(a_minute_later_values_are_forgotten),
        cmocka_unit_test(kinds_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
