/*
 * number.c - numbers read and written, against the C library's own.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/number.h"

#define ROUNDS 400000

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t
random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double
as_double(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static float
as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inf_number_t
read_text(const char *text)
{
    inf_number_t n;
    size_t len = strlen(text);

    if (inf_number_read(text, text + len, &n) != len) {
        fail_msg("\"%s\" is not read as a number", text);
    }

    return n;
}

/* Reads text both ways; the C library is right. */
static void
check_read(const char *text)
{
    inf_number_t n = read_text(text);
    double d = inf_number_double(&n);
    double want_d = strtod(text, NULL);
    float f = inf_number_float(&n);
    float want_f = strtof(text, NULL);

    if (memcmp(&d, &want_d, sizeof(d)) != 0) {
        fail_msg("double %s: got %a, want %a", text, d, want_d);
    }

    if (memcmp(&f, &want_f, sizeof(f)) != 0) {
        fail_msg("float %s: got %a, want %a", text, (double) f,
                 (double) want_f);
    }
}

/* The fewest digits that printf needs to bring v back. */
static int
digits_needed(double v, bool single)
{
    for (int precision = 0; precision < 17; precision++) {
        char text[64];
        snprintf(text, sizeof(text), "%.*e", precision, v);
        bool same = single ? strtof(text, NULL) == (float) v
                           : strtod(text, NULL) == v;
        if (same) {
            return precision + 1;
        }
    }

    return 18;
}

/* Significant digits of a text without its trailing zeros. */
static int
digits_in(const char *text)
{
    int n = 0;
    int zeros = 0;

    for (const char *p = text; *p != '\0' && *p != 'e'; p++) {
        if (*p >= '1' && *p <= '9') {
            n += zeros + 1;
            zeros = 0;
        } else if (*p == '0' && n != 0) {
            zeros++;
        }
    }

    return n;
}

static void
check_write_double(double v)
{
    char text[INF_NUMBER_MAX_TEXT + 1];
    size_t len = inf_number_write_double(text, v);
    assert_true(len <= INF_NUMBER_MAX_TEXT);
    text[len] = '\0';

    double back = strtod(text, NULL);
    if (memcmp(&back, &v, sizeof(v)) != 0) {
        fail_msg("%a written as %s, which is %a", v, text, back);
    }

    inf_number_t n = read_text(text);
    double own = inf_number_double(&n);
    assert_memory_equal(&own, &v, sizeof(v));
}

static void
check_write_float(float v)
{
    char text[INF_NUMBER_MAX_TEXT + 1];
    size_t len = inf_number_write_float(text, v);
    assert_true(len <= INF_NUMBER_MAX_TEXT);
    text[len] = '\0';

    float back = strtof(text, NULL);
    if (memcmp(&back, &v, sizeof(v)) != 0) {
        fail_msg("%a written as %s, which is %a", (double) v, text,
                 (double) back);
    }

    inf_number_t n = read_text(text);
    float own = inf_number_float(&n);
    assert_memory_equal(&own, &v, sizeof(v));
}

static void
check_shortest(double v, bool single)
{
    char text[INF_NUMBER_MAX_TEXT + 1];
    size_t len = single ? inf_number_write_float(text, (float) v)
                        : inf_number_write_double(text, v);
    text[len] = '\0';

    if (digits_in(text) > digits_needed(v, single)) {
        fail_msg("%s (%a) is not the shortest", text, v);
    }
}

static void
random_doubles_read_back_as_themselves(void **state)
{
    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        double v = as_double(random_bits());
        if (isfinite(v)) {
            check_write_double(v);
        }
    }
}

static void
random_floats_read_back_as_themselves(void **state)
{
    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        float v = as_float((uint32_t) random_bits());
        if (isfinite(v)) {
            check_write_float(v);
        }
    }
}

static void
every_power_of_two_is_written_right(void **state)
{
    (void) state;
    for (int e = -1074; e <= 1023; e++) {
        double v = ldexp(1.0, e);
        check_write_double(v);
        check_write_double(nextafter(v, 0));
        check_write_double(nextafter(v, INFINITY));
        check_shortest(v, false);
        if (e >= -149 && e <= 127) {
            check_write_float((float) v);
            check_write_float(nextafterf((float) v, 0));
            check_shortest(v, true);
        }
    }
}

static void
texts_are_the_shortest(void **state)
{
    (void) state;
    for (int i = 0; i < ROUNDS / 20; i++) {
        double d = as_double(random_bits());
        float f = as_float((uint32_t) random_bits());
        if (isfinite(d)) {
            check_shortest(d, false);
        }

        if (isfinite(f)) {
            check_shortest(f, true);
        }
    }
}

static void
random_texts_are_read_as_the_c_library_does(void **state)
{
    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        char text[128];
        uint64_t r = random_bits();
        int exponent = (int) (r % 720) - 360;

        switch (i % 4) {
        case 0:
            snprintf(text, sizeof(text), "%.17g", as_double(r));
            break;
        case 1:
            snprintf(text, sizeof(text), "%llu.%llue%d",
                     (unsigned long long) (r >> 1),
                     (unsigned long long) random_bits(), exponent);
            break;
        case 2:
            snprintf(text, sizeof(text), "-0.%llu",
                     (unsigned long long) (r >> (r & 63)));
            break;
        default:
            snprintf(text, sizeof(text), "%llue%d",
                     (unsigned long long) (r >> (r & 63)), exponent / 4);
            break;
        }

        if (strpbrk(text, "in") == NULL) {      /* inf, nan */
            check_read(text);
        }
    }
}

/* The middle between two values, exactly, and a digit beside it. */
static void
ties_go_to_even(void **state)
{
    char text[1200];

    (void) state;
    for (int i = 0; i < 4000; i++) {
        uint64_t bits = random_bits() & (UINT64_MAX >> 1);
        double v = as_double(bits);
        double next = as_double(bits + 1);
        if (!isfinite(v) || !isfinite(next)) {
            continue;
        }

        /* long double holds the middle of normal doubles exactly */
        long double middle = ((long double) v + (long double) next) / 2;
        int len = snprintf(text, sizeof(text) - 8, "%.800Le", middle);
        assert_true(len > 0 && len < 1190);
        check_read(text);

        float f = as_float((uint32_t) bits & 0x7fffffffu);
        float g = as_float(((uint32_t) bits & 0x7fffffffu) + 1);
        if (!isfinite(f) || !isfinite(g)) {
            continue;
        }

        double half = ((double) f + (double) g) / 2;
        snprintf(text, sizeof(text), "%.200e", half);
        check_read(text);
        snprintf(text, sizeof(text), "%.*e", (int) (bits % 30), half);
        check_read(text);
    }
}

/* Long texts: the digit that decides comes after hundreds of others. */
static void
a_late_digit_breaks_a_tie(void **state)
{
    static char text[4000];
    static const char half[] = "9007199254740993";      /* 2^53 + 1 */

    (void) state;
    for (int zeros = 1; zeros < 3000; zeros += 97) {
        memcpy(text, half, 16);
        text[16] = '.';
        memset(text + 17, '0', (size_t) zeros);
        text[17 + zeros] = '\0';
        check_read(text);
        strcat(text, "1");
        check_read(text);
        strcat(text, "e-5");
        check_read(text);
    }

    memset(text, '0', 1000);
    text[1] = '.';
    strcpy(text + 1000, "12345678901234567890123e990");
    check_read(text);
    memset(text, '7', 3000);
    strcpy(text + 3000, "e-2990");
    check_read(text);
}

static void
edges_are_read_right(void **state)
{
    static const char *const texts[] = {
        "0", "-0", "0.0", "-0.0e5", "0e999999999999", "1e-400", "1e400",
        "-1e400", "4.9406564584124654e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "2.2250738585072011e-308",
        "2.2250738585072014e-308", "1.7976931348623157e308",
        "1.7976931348623158e308", "1.7976931348623159e308",
        "3.4028234663852886e38", "3.4028235677973366e38",
        "3.40282356779733661637e38", "1.4012984643248170e-45",
        "7.0064923216240853e-46", "7.0064923216240854e-46",
        "7.006492321624085354618e-46", "7.0064923216240862e-46",
        "1.17549435e-38", "1.1754942e-38", "16777217", "16777219", "1e22",
        "1e23", "8.5e22", "9007199254740993", "9007199254740992.5",
        "0.10000000149011612", "123456789012345678901234567890",
        "9223372036854775808", "18446744073709551615", "1e+5", "1E5",
        "6.02214076e23", "5e-324", "1e-99999999999999999999",
        "1e99999999999999999999",
    };

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_read(texts[i]);
    }
}

static void
texts_look_like_json(void **state)
{
    static const struct {
        double      v;
        const char *text;
    } rows[] = {
        { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1.0, "1.0" }, { -7.0, "-7.0" },
        { 0.5, "0.5" }, { 100.0, "100.0" }, { 1e20, "100000000000000000000.0" },
        { 1e21, "1e21" }, { 1.5e21, "1.5e21" }, { 1e-5, "0.00001" },
        { 1.25e-6, "0.00000125" }, { 1e-6, "0.000001" }, { 1e-7, "1e-7" },
        { 1.25e-7, "1.25e-7" }, { 123456.789, "123456.789" },
        { 0.1, "0.1" }, { 0.10000000149011612, "0.10000000149011612" },
        { -2.2250738585072014e-308, "-2.2250738585072014e-308" },
        { 5e-324, "5e-324" }, { 1.7976931348623157e308,
        "1.7976931348623157e308" }, { NAN, "NaN" }, { INFINITY, "Infinity" },
        { -INFINITY, "-Infinity" },
    };
    char text[INF_NUMBER_MAX_TEXT + 1];

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        text[inf_number_write_double(text, rows[i].v)] = '\0';
        assert_string_equal(text, rows[i].text);
    }

    text[inf_number_write_float(text, 0.1f)] = '\0';
    assert_string_equal(text, "0.1");
    text[inf_number_write_float(text, 16777216.0f)] = '\0';
    assert_string_equal(text, "16777216.0");
    text[inf_number_write_float(text, -INFINITY)] = '\0';
    assert_string_equal(text, "-Infinity");
    text[inf_number_write_float(text, 3.4028235e38f)] = '\0';
    assert_string_equal(text, "3.4028235e38");
    text[inf_number_write_float(text, 1e-45f)] = '\0';
    assert_string_equal(text, "1e-45");
}

static void
what_is_no_number_has_length_zero(void **state)
{
    static const char *const texts[] = {
        "", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+", "-e", "abc", "-.5",
        " 1", "NaN",
    };
    inf_number_t n;

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *end = texts[i] + strlen(texts[i]);
        assert_int_equal(inf_number_read(texts[i], end, &n), 0);
    }

    /* a leading zero ends the number */
    static const char octal[] = "012";
    assert_int_equal(inf_number_read(octal, octal + 3, &n), 1);

    static char longest[INF_NUMBER_MAX_INPUT + 10];
    memset(longest, '3', sizeof(longest));
    assert_int_equal(inf_number_read(longest, longest + INF_NUMBER_MAX_INPUT,
                                     &n), INF_NUMBER_MAX_INPUT);
    assert_int_equal(inf_number_read(longest, longest + sizeof(longest), &n),
                     0);
}

static void
integers_keep_every_bit(void **state)
{
    char text[INF_NUMBER_MAX_TEXT + 1];

    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t u = random_bits() >> (i & 63);
        int64_t s = (int64_t) random_bits() >> (i & 63);

        text[inf_number_write_uint64(text, u)] = '\0';
        assert_true(strtoull(text, NULL, 10) == u);
        inf_number_t n = read_text(text);
        uint64_t u2;
        assert_true(inf_number_uint64(&n, &u2));
        assert_true(u2 == u);

        text[inf_number_write_int64(text, s)] = '\0';
        n = read_text(text);
        int64_t s2;
        assert_true(inf_number_int64(&n, &s2));
        assert_true(s2 == s);
    }
}

static void
integers_out_of_range_are_rejected(void **state)
{
    int64_t s;
    uint64_t u;
    inf_number_t n;

    (void) state;
    n = read_text("18446744073709551615");
    assert_true(inf_number_uint64(&n, &u));
    assert_true(u == UINT64_MAX);
    assert_false(inf_number_int64(&n, &s));
    n = read_text("18446744073709551616");
    assert_false(inf_number_uint64(&n, &u));
    n = read_text("18446744073709551620");
    assert_false(inf_number_uint64(&n, &u));
    n = read_text("100000000000000000000");
    assert_false(inf_number_uint64(&n, &u));
    n = read_text("10000000000000000000");
    assert_true(inf_number_uint64(&n, &u));
    assert_true(u == UINT64_C(10000000000000000000));
    n = read_text("9223372036854775807");
    assert_true(inf_number_int64(&n, &s));
    assert_true(s == INT64_MAX);
    n = read_text("9223372036854775808");
    assert_false(inf_number_int64(&n, &s));
    n = read_text("-9223372036854775808");
    assert_true(inf_number_int64(&n, &s));
    assert_true(s == INT64_MIN);
    assert_false(inf_number_uint64(&n, &u));
    n = read_text("-9223372036854775809");
    assert_false(inf_number_int64(&n, &s));
    n = read_text("1.0");
    assert_false(inf_number_int64(&n, &s));
    assert_false(inf_number_uint64(&n, &u));
    n = read_text("1e2");
    assert_false(inf_number_int64(&n, &s));
    n = read_text("-0");
    assert_true(inf_number_int64(&n, &s));
    assert_true(s == 0);
    assert_true(inf_number_uint64(&n, &u));
    assert_true(u == 0);
}

/* As printf has it with the fewest digits that read back. */
static void
check_put(double v, bool single)
{
    int digits = single ? 6 : 15;
    char want[64];
    inf_buf_t got;

    do {
        snprintf(want, sizeof(want), "%.*g", digits++, v);
    } while (single ? strtof(want, NULL) != (float) v
                    : strtod(want, NULL) != v);

    inf_buf_init(&got);
    if (single) {
        inf_number_put_float(&got, (float) v);
    } else {
        inf_number_put_double(&got, v);
    }

    if (strcmp(got.data, want) != 0) {
        fail_msg("%s is put as %s", want, got.data);
    }

    inf_buf_fini(&got);
}

static void
put_reals_look_as_printf_has_them(void **state)
{
    static const double values[] = {
        0, -0.0, 1, -1, 0.5, 100, 123456, 1234567, 999999, 1e6, 1e14, 1e15,
        123456789012345, 1e16, 1e20, 1e21, 0.1, 0.0001, 0.00012345, 0.00001,
        1.5e-7, 0.3, 1.0 / 3, 3.4e38, 1.17549435e-38
    };

    (void) state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        check_put(values[i], false);
        check_put((double) (float) values[i], true);
    }

    check_put(1e300, false);
    check_put(2.2250738585072014e-308, false);

    for (int i = 0; i < ROUNDS / 4; i++) {
        uint64_t bits = random_bits();
        double d = (double) (int64_t) (bits >> (bits & 63)) / 1000;
        float f = (float) (bits % 100000000) / 64;

        check_put(d, false);
        check_put((double) f, true);
    }
}

static void
whole_texts_are_parsed_or_rejected(void **state)
{
    static const struct {
        const char *text;
        double      want;
    } good[] = {
        { "1", 1 }, { "-1.5e2", -150 }, { ".5", 0.5 }, { "5.", 5 },
        { "1.e5", 1e5 }, { "-.5E-1", -0.05 }, { "007", 7 }, { "00.5", 0.5 },
        { "0000000000000000000000012", 12 }, { "1e999", INFINITY },
        { "-1e999", -INFINITY }, { "0.30000000000000000000000001", 0.3 }
    };
    static const char *const bad[] = {
        "", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "1.5.2", "1x", " 1",
        "1 ", "+1", "--1", "0x10", "inf", "nan", "1e5.5"
    };
    double v;

    (void) state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(inf_number_parse_double(inf_slice_str(good[i].text), &v));
        assert_true(v == good[i].want);
    }

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (inf_number_parse_double(inf_slice_str(bad[i]), &v)) {
            fail_msg("\"%s\" is parsed", bad[i]);
        }
    }
}

static void
digits_of_each_base_are_parsed(void **state)
{
    static const struct {
        const char *text;
        unsigned    base;
        bool        good;
        uint64_t    want;
    } rows[] = {
        { "0", 10, true, 0 }, { "18446744073709551615", 10, true, UINT64_MAX },
        { "18446744073709551616", 10, false, 0 },
        { "99999999999999999999", 10, false, 0 },
        { "00000000000000000000000000000009", 10, true, 9 },
        { "ffffFFFFffffFFFF", 16, true, UINT64_MAX },
        { "1ffffFFFFffffFFFF", 16, false, 0 }, { "1a", 10, false, 0 },
        { "g", 16, false, 0 }, { "17", 8, true, 15 }, { "18", 8, false, 0 },
        { "1777777777777777777777", 8, true, UINT64_MAX },
        { "2000000000000000000000", 8, false, 0 }, { "", 10, false, 0 },
        { "-1", 10, false, 0 }, { "1 ", 10, false, 0 }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 0;
        assert_int_equal(inf_number_parse_digits(inf_slice_str(rows[i].text),
                                                 rows[i].base, &v),
                         rows[i].good);
        assert_true(!rows[i].good || v == rows[i].want);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_doubles_read_back_as_themselves),
        cmocka_unit_test(random_floats_read_back_as_themselves),
        cmocka_unit_test(every_power_of_two_is_written_right),
        cmocka_unit_test(texts_are_the_shortest),
        cmocka_unit_test(random_texts_are_read_as_the_c_library_does),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(a_late_digit_breaks_a_tie),
        cmocka_unit_test(edges_are_read_right),
        cmocka_unit_test(texts_look_like_json),
        cmocka_unit_test(what_is_no_number_has_length_zero),
        cmocka_unit_test(integers_keep_every_bit),
        cmocka_unit_test(integers_out_of_range_are_rejected),
        cmocka_unit_test(put_reals_look_as_printf_has_them),
        cmocka_unit_test(whole_texts_are_parsed_or_rejected),
        cmocka_unit_test(digits_of_each_base_are_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
