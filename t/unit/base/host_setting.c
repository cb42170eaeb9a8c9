#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/host_setting.h"

static unsigned long cores[INF_HOST_CORE_WORDS];

static bool
has(unsigned core)
{
    return cores[core / INF_HOST_WORD_BITS] >> core % INF_HOST_WORD_BITS & 1;
}

static unsigned
count(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < INF_HOST_CORES; i++) {
        n += has(i);
    }
    return n;
}

static void
assert_rejected(inf_err_t *err, inf_err_code_t code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), code);
    assert_non_null(strstr(inf_err_msg(err), text));
    inf_err_free(err);
}

static void
cores_are_ranges_and_single_numbers(void **state)
{
    (void) state;

    memset(cores, 0xff, sizeof(cores));
    assert_null(inf_host_cores_parse("0-3,5", cores));
    assert_int_equal(count(), 5);
    assert_true(has(0) && has(1) && has(2) && has(3) && has(5));

    assert_null(inf_host_cores_parse("7-7", cores));
    assert_int_equal(count(), 1);
    assert_true(has(7));

    assert_null(inf_host_cores_parse("60-70,2-3,64", cores));
    assert_int_equal(count(), 13);
    assert_true(has(63) && has(64) && has(70) && has(2));

    assert_null(inf_host_cores_parse("0-8191", cores));
    assert_int_equal(count(), INF_HOST_CORES);
}

static void
malformed_cores_are_rejected_and_shown(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "", ",", "1,", ",1", "1,,2", "-", "1-", "-1", "3-1", "a", "1a", "0x1",
        "1-2-3", " 1", "1 ", "8192", "0-8192", "99999999999999999999", "1;2"
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char shown[64];
        snprintf(shown, sizeof(shown), "Got '%s'", bad[i]);
        assert_rejected(inf_host_cores_parse(bad[i], cores),
            INF_ERR_INVALID_ARG, shown);
    }
}

static void
a_node_is_a_number(void **state)
{
    (void) state;
    unsigned node = 7;

    assert_null(inf_host_node_parse("0", &node));
    assert_int_equal(node, 0);
    assert_null(inf_host_node_parse("1023", &node));
    assert_int_equal(node, 1023);

    static const char *const bad[] = { "", "1024", "-1", "a", "1 ", "1.0" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_rejected(inf_host_node_parse(bad[i], &node),
            INF_ERR_INVALID_ARG, "numa-node");
    }
}

static void
only_two_settings_are_known(void **state)
{
    (void) state;

    assert_null(inf_host_setting_check("numa-node", "0"));
    assert_null(inf_host_setting_check("cpu-cores", "0-1"));
    assert_rejected(inf_host_setting_check("cpu-cores", "0_1"),
        INF_ERR_INVALID_ARG, "cpu-cores");
    assert_rejected(inf_host_setting_check("numa-node", "x"),
        INF_ERR_INVALID_ARG, "numa-node");
    assert_rejected(inf_host_setting_check("cores", "0"), INF_ERR_UNSUPPORTED,
        "Unsupported host policy setting 'cores' is specified, supported"
        " settings are 'numa-node', 'cpu-cores'");
    assert_rejected(inf_host_setting_check("", "0"), INF_ERR_UNSUPPORTED,
        "''");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_ranges_and_single_numbers),
        cmocka_unit_test(malformed_cores_are_rejected_and_shown),
        cmocka_unit_test(a_node_is_a_number),
        cmocka_unit_test(only_two_settings_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
