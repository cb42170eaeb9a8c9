#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/server/load_report.h"
#include "core/server/metric_registry.h"

#define FAMILY "nv_trt_llm_kv_cache_block_metrics"
#define TYPE   "kv_cache_block_type"

/* The gauge of a backend with that label. */
static inf_metric_series_t *
gauge(const char *label, const char *type, double value)
{
    const inf_metric_label_t labels[] = {
        { "model", "m" }, { label, type }, { "version", "1" }
    };
    inf_metric_family_t *family;
    inf_metric_series_t *series;

    assert_null(inf_metric_family_get(INF_METRIC_GAUGE, FAMILY, "blocks",
        &family));
    assert_null(inf_metric_series_get(family, labels, 3, NULL, 0, &series));
    inf_metric_set(series, value);
    return series;
}

static void
there_is_none_without_all_gauges(void **state)
{
    (void) state;
    double used;
    uint64_t tokens;

    assert_false(inf_load_report(&used, &tokens));
    inf_metric_series_t *a = gauge(TYPE, "used", 5);
    inf_metric_series_t *b = gauge(TYPE, "max", 20);
    assert_false(inf_load_report(&used, &tokens));
    inf_metric_series_t *c = gauge(TYPE, "tokens_per", 64);
    assert_true(inf_load_report(&used, &tokens));
    assert_true(used == 0.25);
    assert_int_equal(tokens, 1280);

    inf_metric_set(b, 0);
    assert_true(inf_load_report(&used, &tokens));
    assert_true(used == 0);
    inf_metric_set(b, 1e18);
    assert_false(inf_load_report(&used, &tokens));
    inf_metric_set(b, -1);
    assert_false(inf_load_report(&used, &tokens));

    inf_metric_series_drop(c);
    inf_metric_series_drop(b);
    inf_metric_series_drop(a);
    assert_false(inf_load_report(&used, &tokens));
}

/* Not by a part of another label's name or value. */
static void
a_gauge_is_found_by_its_label(void **state)
{
    (void) state;
    double used;
    uint64_t tokens;

    inf_metric_series_t *max = gauge(TYPE, "max", 20);
    inf_metric_series_t *per = gauge(TYPE, "tokens_per", 64);
    inf_metric_series_t *name = gauge("old_" TYPE, "used", 5);
    inf_metric_series_t *value = gauge("note", TYPE "=\"used\"", 5);
    assert_false(inf_load_report(&used, &tokens));
    inf_metric_series_drop(value);
    inf_metric_series_drop(name);
    inf_metric_series_drop(per);
    inf_metric_series_drop(max);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_none_without_all_gauges),
        cmocka_unit_test(a_gauge_is_found_by_its_label)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
