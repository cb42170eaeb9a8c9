#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/server/trace_settings.h"

/* So many of the next 12 requests of model are traced. */
static int
traced(inf_trace_settings_t *s, const char *model, bool forced)
{
    int n = 0;

    for (int i = 0; i < 12; i++) {
        inf_trace_setting_t *setting = inf_trace_settings_sample(s, model,
            forced);
        n += setting != NULL;
        inf_trace_setting_unref(setting);
    }
    return n;
}

static void
set(inf_trace_settings_t *s, const char *model, uint32_t what,
    inf_trace_values_t values)
{
    const inf_trace_change_t c = { .set = what, .values = values };

    assert_null(inf_trace_settings_change(s, model, &c));
}

static void
rejected(inf_trace_settings_t *s, const char *model, uint32_t what,
    inf_trace_values_t values, const char *why)
{
    const inf_trace_change_t c = { .set = what, .values = values };

    inf_err_t *err = inf_trace_settings_change(s, model, &c);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_non_null(strstr(inf_err_msg(err), why));
    inf_err_free(err);
}

static NginxInference__TraceSettings
config(uint32_t rate, int32_t count)
{
    NginxInference__TraceSettings c = NGINX_INFERENCE__TRACE_SETTINGS__INIT;

    c.timestamps = true;
    c.rate = rate;
    c.count = count;
    c.file = (char *) "t";
    return c;
}

static void
each_rateth_request_is_traced_until_the_count_ends(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = config(3, -1);
    inf_trace_settings_t s;
    inf_trace_values_t v;

    assert_null(inf_trace_settings_init(&s, &c));
    assert_true(s.on);
    assert_int_equal(traced(&s, "a", false), 4);
    set(&s, "", INF_TRACE_RATE | INF_TRACE_COUNT,
        (inf_trace_values_t) { .rate = 1, .count = 5 });
    assert_int_equal(traced(&s, "a", false), 5);
    inf_trace_settings_get(&s, "a", &v);
    assert_int_equal(v.count, 0);
    assert_int_equal(traced(&s, "a", false), 0);

    /* another rate does not start the count again, a count does */
    set(&s, "", INF_TRACE_RATE, (inf_trace_values_t) { .rate = 2 });
    assert_int_equal(traced(&s, "a", false), 0);
    set(&s, "", INF_TRACE_COUNT, (inf_trace_values_t) { .count = -1 });
    assert_int_equal(traced(&s, "a", false), 6);
    assert_int_equal(traced(&s, "a", true), 12);
    inf_trace_settings_fini(&s);
}

static void
models_have_what_they_set_and_else_the_server_s(void **state)
{
    (void) state;
    const inf_trace_change_t clear = { .clear = INF_TRACE_ALL };
    NginxInference__TraceSettings c = config(4, -1);
    inf_trace_settings_t s;
    inf_trace_values_t v;

    assert_null(inf_trace_settings_init(&s, &c));
    for (int i = 'z'; i >= 'a'; i--) {
        const char name[] = { (char) i, '\0' };
        set(&s, name, INF_TRACE_RATE, (inf_trace_values_t) {
            .rate = (uint32_t) (i - 'a' + 1) });
    }
    assert_int_equal(s.count, 26);
    for (int i = 'a'; i <= 'z'; i++) {
        const char name[] = { (char) i, '\0' };
        inf_trace_settings_get(&s, name, &v);
        assert_int_equal(v.rate, i - 'a' + 1);
        assert_int_equal(v.level, INF_TRACE_TIMESTAMPS);
    }
    assert_int_equal(traced(&s, "f", false), 2);
    assert_int_equal(traced(&s, "unset", false), 3);

    set(&s, "", INF_TRACE_LEVEL | INF_TRACE_RATE, (inf_trace_values_t) {
        .level = INF_TRACE_TENSORS, .rate = 12 });
    inf_trace_settings_get(&s, "c", &v);
    assert_int_equal(v.level, INF_TRACE_TENSORS);
    assert_int_equal(v.rate, 3);
    for (int i = 'a'; i <= 'z'; i++) {
        const char name[] = { (char) i, '\0' };
        assert_null(inf_trace_settings_change(&s, name, &clear));
    }
    assert_int_equal(s.count, 0);
    assert_int_equal(traced(&s, "c", false), 1);
    assert_null(inf_trace_settings_change(&s, "", &clear));
    inf_trace_settings_get(&s, "c", &v);
    assert_int_equal(v.rate, 4);
    assert_int_equal(v.level, INF_TRACE_TIMESTAMPS);
    inf_trace_settings_fini(&s);
}

/* Its count does not start again. */
static void
a_change_that_a_model_does_not_inherit_leaves_it_alone(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = config(1, 5);
    inf_trace_settings_t s;

    assert_null(inf_trace_settings_init(&s, &c));
    set(&s, "m", INF_TRACE_LEVEL, (inf_trace_values_t) {
        .level = INF_TRACE_TIMESTAMPS });
    assert_int_equal(traced(&s, "m", false), 5);
    set(&s, "", INF_TRACE_LEVEL, (inf_trace_values_t) {
        .level = INF_TRACE_TENSORS });
    assert_int_equal(traced(&s, "m", false), 0);
    assert_int_equal(traced(&s, "another", false), 5);
    inf_trace_settings_fini(&s);
}

static void
only_off_may_be_invalid(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = config(1, -1);
    inf_trace_settings_t s;
    const inf_trace_values_t on = { .level = INF_TRACE_TIMESTAMPS };
    const inf_trace_values_t off = { .level = INF_TRACE_OFF };

    c.file = (char *) "";
    assert_null(inf_trace_settings_init(&s, &c));
    assert_false(s.on);
    assert_int_equal(traced(&s, "a", true), 0);
    rejected(&s, "", INF_TRACE_RATE, (inf_trace_values_t) { .rate = 2 },
        "trace file name is not given");
    rejected(&s, "m", INF_TRACE_LEVEL, on, "trace file name is not given");
    set(&s, "", INF_TRACE_LEVEL, off);
    assert_int_equal(s.count, 0);
    inf_trace_settings_fini(&s);

    c.file = (char *) "t";
    assert_null(inf_trace_settings_init(&s, &c));
    rejected(&s, "", INF_TRACE_RATE, (inf_trace_values_t) { .rate = 0 },
        "sample rate must be non-zero");
    set(&s, "", INF_TRACE_LEVEL, off);
    assert_false(s.on);
    set(&s, "m", INF_TRACE_LEVEL, on);
    assert_true(s.on);
    assert_int_equal(traced(&s, "a", false), 0);
    assert_int_equal(traced(&s, "m", false), 12);
    set(&s, "m", INF_TRACE_LEVEL, off);
    assert_false(s.on);
    inf_trace_settings_fini(&s);
}

static void
a_collector_takes_requests_that_ask_for_it(void **state)
{
    (void) state;
    NginxInference__TraceSettings c = config(0, 7);
    inf_trace_settings_t s;
    inf_trace_values_t v;

    c.url = (char *) "http://127.0.0.1/";
    c.file = (char *) "";
    assert_null(inf_trace_settings_init(&s, &c));
    assert_string_equal(inf_trace_mode(&s), "opentelemetry");
    assert_true(s.on);
    assert_int_equal(traced(&s, "a", false), 0);
    assert_int_equal(traced(&s, "a", true), 12);    /* not limited by count  */
    inf_trace_settings_get(&s, "a", &v);
    assert_int_equal(v.count, 7);

    /* after the last trace of the count, too */
    set(&s, "", INF_TRACE_RATE | INF_TRACE_COUNT,
        (inf_trace_values_t) { .rate = 5, .count = 1 });
    assert_int_equal(traced(&s, "a", true), 12);
    inf_trace_settings_get(&s, "a", &v);
    assert_int_equal(v.count, 0);
    assert_int_equal(traced(&s, "a", false), 0);
    assert_int_equal(traced(&s, "a", true), 12);
    inf_trace_settings_fini(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rateth_request_is_traced_until_the_count_ends),
        cmocka_unit_test(models_have_what_they_set_and_else_the_server_s),
        cmocka_unit_test(
            a_change_that_a_model_does_not_inherit_leaves_it_alone),
        cmocka_unit_test(only_off_may_be_invalid),
        cmocka_unit_test(a_collector_takes_requests_that_ask_for_it)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
