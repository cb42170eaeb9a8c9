/* Numbers of settings in a program whose locale has another decimal point:
   memory options, quantiles, and fixed-point text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/core_config.h"
#include "core/proto/number.h"
#include "core/server/memory_options.h"
#include "core/tensor/memory.h"

/* The C library's own, under such a locale. */
double
strtod(const char *text, char **end)
{
    double whole = 0;
    while (*text >= '0' && *text <= '9') {
        whole = whole * 10 + (*text++ - '0');
    }
    if (end != NULL) {
        *end = (char *) (uintptr_t) text;
    }
    return whole;
}

static int
with_comma(char *text, size_t size, const char *format, va_list args)
{
    int len = vsnprintf(text, size, format, args);

    char *dot = strchr(text, '.');
    if (dot != NULL) {
        *dot = ',';
    }
    return len;
}

int
snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = with_comma(text, size, format, args);
    va_end(args);
    return len;
}

/* The same function in a build with _FORTIFY_SOURCE. */
int __snprintf_chk(char *text, size_t size, int flag, size_t room,
    const char *format, ...);

int
__snprintf_chk(char *text, size_t size, int flag, size_t room,
    const char *format, ...)
{
    va_list args;
    (void) flag;
    (void) room;
    va_start(args, format);
    int len = with_comma(text, size, format, args);
    va_end(args);
    return len;
}

static double
capability_of(const char *text)
{
    NginxInference__BackendSetting setting = {
        .base = PROTOBUF_C_MESSAGE_INIT(
            &nginx_inference__backend_setting__descriptor),
        .backend = (char *) "",
        .key = (char *) INF_MIN_CAPABILITY_KEY,
        .value = (char *) (uintptr_t) text
    };
    NginxInference__BackendSetting *settings[] = { &setting };
    NginxInference__CoreConfig config = NGINX_INFERENCE__CORE_CONFIG__INIT;
    config.backend_settings = settings;
    config.n_backend_settings = text != NULL;

    inf_err_t *err = inf_memory_share_configured(&config);
    if (err != NULL) {
        inf_err_free(err);
        return -1;
    }

    double capability = inf_memory_min_capability(inf_memory_shared());
    inf_memory_unshare();
    return capability;
}

static void
the_least_compute_capability_has_a_point(void **state)
{
    (void) state;
    assert_true(capability_of(NULL) == 7.5);
    assert_true(capability_of("6.5") == 6.5);
    assert_true(capability_of(" 0") == 0);
    assert_true(capability_of("6,5") == -1);
    assert_true(capability_of("1000.5") == -1);
    assert_true(capability_of("-1") == -1);
    assert_true(capability_of("") == -1);
    assert_true(capability_of("7.5x") == -1);
}

static void
quantiles_have_points(void **state)
{
    (void) state;
    double quantile = 0;

    assert_true(inf_quantile_parse("0.5:0.05,0.9:0.01", &quantile));
    assert_true(quantile == 0.5);
    assert_true(inf_quantile_parse(" 0.9: 0.01", &quantile));
    assert_true(quantile == 0.9);
    assert_true(inf_quantiles_are_valid("0.5:0.05, 0.99:0.001"));
    assert_false(inf_quantile_parse("0.5", &quantile));
    assert_false(inf_quantile_parse("0.5,0.9:0.01", &quantile));
    assert_false(inf_quantile_parse(":0.01", &quantile));
    assert_false(inf_quantile_parse("0.5: ", &quantile));
    assert_false(inf_quantile_parse("2:0.1", &quantile));
    assert_false(inf_quantile_parse("0.5:2", &quantile));
}

static void
six_decimals_follow_a_point(void **state)
{
    (void) state;
    char text[INF_NUMBER_MAX_FIXED];

    assert_int_equal(inf_number_write_fixed(text, -7.5), 9);
    assert_string_equal(text, "-7.500000");
    assert_int_equal(inf_number_write_fixed(text, -1.7976931348623157e308),
        317);
    assert_string_equal(text + 310, ".000000");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_compute_capability_has_a_point),
        cmocka_unit_test(quantiles_have_points),
        cmocka_unit_test(six_decimals_follow_a_point)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
