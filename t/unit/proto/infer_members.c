/*
 * infer_members.c - the grammar of an inference request: which error comes
 *                   first, and that nobody can tell how the text arrived.
 */

#include "infer_fixture.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/infer_compare.h"

#define HEADERS     100000u
#define TEXT_MAX    16384u

#define TEXT_16 "0123456789abcdef"
#define TEXT_64 TEXT_16 TEXT_16 TEXT_16 TEXT_16

typedef enum { AN_INPUT, AN_OUTPUT, THE_TOP } kind_t;

/* ---- errors, one after the other ---- */

static void
check_error(const char *text, const char *want)
{
    for (size_t slice = 1; slice < 100; slice += 33) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, strlen(text), slice, slice,
                                      NULL);

        if (err == NULL) {
            fail_msg("accepted: %s", text);
        }

        assert_string_equal(inf_err_msg(err), want);
        inf_err_free(err);
        fixture_fini(&f);
    }
}

#define INPUT "{\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[1]," \
              "\"parameters\":{\"binary_data_size\":1}}"

static void
members_are_checked_in_the_order_of_the_table(void **state)
{
    (void) state;
    check_error("{\"inputs\":[{\"parameters\":7,\"shape\":\"s\",\"datatype\":"
                "\"X\",\"name\":\"A\"}]}", "invalid datatype for input A");
    check_error("{\"inputs\":[{\"parameters\":7,\"shape\":\"s\",\"datatype\":"
                "\"INT8\",\"name\":\"A\"}]}", "Unable to parse 'shape': "
                "attempt to access JSON non-array as array (input 'A')");
    check_error("{\"inputs\":[{\"parameters\":{\"shared_memory_offset\":-1,"
                "\"shared_memory_region\":\"\",\"binary_data_size\":true},"
                "\"shape\":[1],\"datatype\":\"INT8\",\"name\":\"A\"}]}",
                "Unable to parse 'binary_data_size': attempt to access JSON "
                "non-unsigned-integer as unsigned-integer: it is a whole "
                "number from 0 to 18446744073709551615 (input 'A')");
    check_error("{\"inputs\":[" INPUT "],\"outputs\":[{\"parameters\":{"
                "\"classification\":-1,\"binary_data\":1},\"name\":\"O\"}]}",
                "Unable to parse 'binary_data': attempt to access JSON "
                "non-boolean as boolean (output 'O')");
}

static void
big_number_is_no_shape(void **state)
{
    (void) state;
    check_error("{\"inputs\":[{\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":"
                "18446744073709551615}]}", "Unable to parse 'shape': attempt "
                "to access JSON non-array as array (input 'A')");
}

/* Where everything else is good, the first wrong parameter is told. */
static void
parameters_are_judged_last_and_in_their_order(void **state)
{
    (void) state;
    check_error("{\"parameters\":{\"priority\":-1},\"inputs\":[" INPUT ","
                INPUT "]}", "input 'A' already exists in request");
    check_error("{\"parameters\":{\"priority\":-1},\"inputs\":[" INPUT "],"
                "\"id\":7}", "Unable to parse 'id': attempt to access JSON "
                "non-string as string");
    check_error("{\"parameters\":{\"x\":null,\"priority\":-1},\"inputs\":["
                INPUT "]}", "parameter 'x' has invalid type. It should be "
                "either 'int', 'bool', or 'string'.");
}

static void
syntax_beyond_json_is_told_with_its_place(void **state)
{
    (void) state;
    check_error("{\"inputs\":[" INPUT "],\"parameters\":{\"ab\":1,"
                "\"\\u0061b\":1}}", "failed to parse the request JSON buffer: "
                "id and parameters: A parameter appears twice. at 112");
    check_error("{\"inputs\":[" INPUT "],\"parameters\":{\"a\\u0000\":1}}",
                "failed to parse the request JSON buffer: id and parameters: "
                "NUL character in a name. at 105");
    check_error("{\"inputs\":[" INPUT "],\"parameters\":{\"a\":1e999}}",
                "failed to parse the request JSON buffer: id and parameters: "
                "The number is out of range. at 109");
    check_error("{\"inputs\":[" INPUT "],\"id\":\"a\xff\"}",
                "failed to parse the request JSON buffer: id and parameters: "
                "Invalid UTF-8 in string. at 96");
    check_error("{\"inputs\":[{\"name\":\"\xc3\",\"shape\":7}]}",
                "failed to parse the request JSON buffer: input 0: Invalid "
                "UTF-8 in string. at 19");
    check_error("{\"inputs\":[" INPUT "],\"outputs\":[{\"name\":\"O\","
                "\"parameters\":{\"x\":[1],\"y\":2,\"x\":3}}]}",
                "failed to parse the request JSON buffer: output 0: A "
                "parameter appears twice. at 142");
    check_error("{\"inputs\":[" INPUT "],\"outputs\":[{\"name\":\"O\","
                "\"parameters\":{\"binary_data\":true,\"binary_data\":true}}]}"
                , "failed to parse the request JSON buffer: output 0: A "
                "parameter appears twice. at 147");
}

/* ---- whole requests ---- */

typedef struct {
    uint64_t seed;
    size_t   len;
    char     text[TEXT_MAX];
} maker_t;

static uint32_t
draw(maker_t *m, uint32_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (uint32_t) (m->seed >> 33) % below;
}

static bool
one_in(maker_t *m, uint32_t n)
{
    return draw(m, n) == 0;
}

static void
put(maker_t *m, const char *text)
{
    static const char *const spaces[] = { " ", "\n", "\t\r\n  ", "\f" };
    size_t len = strlen(text);

    assert_true(m->len + len + 8 < TEXT_MAX);
    memcpy(m->text + m->len, text, len);
    m->len += len;

    if (one_in(m, 24)) {
        const char *space = spaces[one_in(m, 400) ? 3 : draw(m, 3)];
        memcpy(m->text + m->len, space, strlen(space));
        m->len += strlen(space);
    }
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define ANY(m, list) (list)[draw(m, (uint32_t) COUNT(list))]

static void
put_odd(maker_t *m)
{
    static const char *const values[] = {
        "null", "true", "false", "0", "1", "-1", "-0", "00", "1.0", "1e2",
        "2E-1", "\"\"", "\"1\"", "[]", "[0]", "[1]", "{}", "{\"a\":1}",
        "[[1]]", "\"a\\u0041\"", "\"\\u0000\"", "\"h\xc3\xa9\"", "\"\xff\"",
        "\"a\x01\"", "\"\x7f\"", "tru", "-", "999999999999999999",
        "1000000000000000000", "9223372036854775807", "9223372036854775808",
        "18446744073709551615", "18446744073709551616", "-9223372036854775809",
        "1e999", "\"" TEXT_64 TEXT_64 "\"", "\"" TEXT_64 TEXT_64 "x\"",
        "\"\\\"\"", "\"\\ud800\"", "", "NaN"
    };

    put(m, ANY(m, values));
}

/* Usually one of the usual ones. */
static void
put_value(maker_t *m, const char *const *usual, size_t count)
{
    if (one_in(m, 60)) {
        put_odd(m);
    } else {
        put(m, usual[draw(m, (uint32_t) count)]);
    }
}

#define PUT_VALUE(m, list) put_value(m, list, COUNT(list))

static void
put_shape(maker_t *m)
{
    static const char *const dims[] = {
        "0", "1", "2", "3", "16", "4294967296"
    };
    uint32_t count = one_in(m, 40) ? 60 + draw(m, 8) : draw(m, 4);

    if (one_in(m, 60)) {
        put_odd(m);
        return;
    }

    put(m, "[");
    for (uint32_t i = 0; i < count; i++) {
        put(m, i != 0 ? "," : "");
        PUT_VALUE(m, dims);
    }

    put(m, "]");
}

static void
put_data(maker_t *m)
{
    static const char *const datas[] = {
        "[1]", "[1,2]", "[[1,2]]", "[1,2,3]", "[true]", "[\"a\"]", "[]",
        "[\"a\",\"b\\n\"]", "[{}]", "[1.5,2e3]"
    };

    PUT_VALUE(m, datas);
}

static void
put_parameter(maker_t *m)
{
    static const char *const names[] = {
        "\"binary_data_size\"", "\"binary_data_size\"", "\"binary_data\"",
        "\"classification\"", "\"binary_data_output\"", "\"sequence_id\"",
        "\"sequence_start\"", "\"sequence_end\"", "\"priority\"",
        "\"timeout\"", "\"custom\"", "\"other\"", "\"\"", "\"cust\\u006fm\"",
        "\"triton_x\"", "\"shared_memory_region\"",
        "\"shared_memory_byte_size\"", "\"shared_memory_offset\"",
        "\"a\xc3\xa9\""
    };
    static const char *const values[] = {
        "0", "4", "8", "12", "true", "false", "\"text\"", "\"a\"", "77", "-5"
    };

    put(m, ANY(m, names));
    put(m, one_in(m, 400) ? "" : ":");
    PUT_VALUE(m, values);
}

/* A value that fits the position, so that whole requests are good often
   enough. */
static void
put_fitting_parameter(maker_t *m, kind_t kind, uint32_t i)
{
    static const char *const of_input[] = { "\"binary_data_size\":8" };
    static const char *const of_output[] = {
        "\"binary_data\":true", "\"classification\":3"
    };
    static const char *const of_top[] = {
        "\"sequence_id\":17", "\"sequence_start\":true", "\"priority\":2",
        "\"timeout\":9", "\"binary_data_output\":true", "\"custom\":\"text\"",
        "\"sequence_end\":false", "\"number\":-12", "\"flag\":false",
        "\"real\":2.5", "\"big\":18446744073709551615"
    };

    if (kind == AN_INPUT) {
        put(m, of_input[0]);
    } else if (kind == AN_OUTPUT) {
        put(m, of_output[i % COUNT(of_output)]);
    } else {
        put(m, of_top[i % COUNT(of_top)]);
    }
}

static void
put_parameters(maker_t *m, kind_t kind)
{
    uint32_t most = kind == AN_INPUT ? 1 : kind == AN_OUTPUT ? 2 : 4;
    uint32_t count = one_in(m, 200) ? 20 : draw(m, most + 1);
    uint32_t from = draw(m, 11);

    if (one_in(m, 100)) {
        put_odd(m);
        return;
    }

    put(m, "{");
    for (uint32_t i = 0; i < count; i++) {
        put(m, i != 0 ? "," : "");
        if (one_in(m, 12)) {
            put_parameter(m);
        } else {
            put_fitting_parameter(m, kind, from + i);
        }
    }

    put(m, "}");
}

static void
put_name(maker_t *m)
{
    static const char *const names[] = {
        "\"A\"", "\"B\"", "\"C\"", "\"LHS\"", "\"MASK\"", "\"INPUT__0\"",
        "\"INPUT__1\"", "\"a longer name, with blanks\"", "\"\""
    };

    PUT_VALUE(m, names);
}

static void
put_member(maker_t *m, kind_t kind, uint32_t which)
{
    static const char *const datatypes[] = {
        "\"INT32\"", "\"INT32\"", "\"FP32\"", "\"BYTES\"", "\"BOOL\"",
        "\"UINT8\"", "\"FP16\"", "\"FP64\"", "\"INT64\""
    };
    static const char *const keys[] = {
        "\"name\"", "\"parameters\"", "\"datatype\"", "\"shape\"", "\"data\""
    };
    static const char *const odd_keys[] = {
        "\"other\"", "\"n\\u0061me\"", "\"\"", "\"id\"", "name"
    };

    put(m, one_in(m, 100) ? ANY(m, odd_keys) : keys[which]);
    put(m, ":");

    switch (which) {
    case 0:
        put_name(m);
        break;
    case 1:
        put_parameters(m, kind);
        break;
    case 2:
        PUT_VALUE(m, datatypes);
        break;
    case 3:
        put_shape(m);
        break;
    default:
        put_data(m);
        break;
    }
}

/* Members in any order; now and then one is missing or too many. */
static void
put_tensor(maker_t *m, kind_t kind)
{
    uint32_t order[] = { 0, 1, 2, 3, 4 };
    uint32_t count = kind == AN_OUTPUT ? 1 + draw(m, 2)
                                       : 4 + (one_in(m, 3) ? 1 : 0);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = draw(m, count);
        uint32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }

    if (one_in(m, 60)) {
        order[draw(m, count)] = draw(m, 5);
    }

    count -= one_in(m, 60);
    put(m, one_in(m, 300) ? "" : "{");
    for (uint32_t i = 0; i < count; i++) {
        put(m, i != 0 ? "," : "");
        put_member(m, kind, order[i]);
    }

    put(m, "}");
}

static void
put_list(maker_t *m, kind_t kind)
{
    uint32_t count = draw(m, 4);

    put(m, kind == AN_INPUT ? "\"inputs\":[" : "\"outputs\":[");
    for (uint32_t i = 0; i < count; i++) {
        put(m, i != 0 ? "," : "");
        put_tensor(m, kind);
    }

    put(m, "]");
}

static void
put_top(maker_t *m, uint32_t which)
{
    static const char *const ids[] = { "\"\"", "\"b-1\"", "\"an id\"" };

    switch (which) {
    case 0:
        put(m, "\"id\":");
        PUT_VALUE(m, ids);
        break;
    case 1:
        put_list(m, AN_INPUT);
        break;
    case 2:
        put_list(m, AN_OUTPUT);
        break;
    case 3:
        put(m, "\"parameters\":");
        put_parameters(m, THE_TOP);
        break;
    default:
        put(m, "\"unknown\":");
        put_odd(m);
        break;
    }
}

/* Bytes changed, doubled, lost, or the end missing. */
static void
damage(maker_t *m)
{
    static const char bytes[] = "\"\\{}[],:0-9.eE tfnul\x80\x00\x01 \xc3";
    uint32_t at = draw(m, (uint32_t) m->len);

    switch (draw(m, 4)) {
    case 0:
        m->text[at] = bytes[draw(m, sizeof(bytes) - 1)];
        break;
    case 1:
        memmove(m->text + at + 1, m->text + at, m->len - at);
        m->len++;
        break;
    case 2:
        memmove(m->text + at, m->text + at + 1, m->len - at - 1);
        m->len--;
        break;
    default:
        m->len = at;
        break;
    }
}

static void
make_request(maker_t *m)
{
    uint32_t from = draw(m, 4);
    uint32_t count = 4 + one_in(m, 10);

    m->len = 0;
    put(m, "{");
    for (uint32_t i = 0; i < count; i++) {
        put(m, i != 0 ? "," : "");
        put_top(m, i < 4 ? (from + i) % 4 : draw(m, 12));
    }

    put(m, "}");
    if (one_in(m, 3)) {
        damage(m);
    }
}

/* The same bytes at once and in slices. */
static bool
compare(maker_t *m, const inf_infer_limits_t *limits)
{
    size_t slice = 1 + draw(m, 300);
    size_t budget = one_in(m, 2) ? SIZE_MAX : 1 + draw(m, 300);
    char *text = malloc(m->len + (m->len == 0));
    compare_t whole, slices;

    assert_non_null(text);
    memcpy(text, m->text, m->len);
    assert_true(compare_read(&whole, text, m->len, m->len, SIZE_MAX, limits));
    assert_true(compare_read(&slices, text, m->len, slice, budget, limits));

    const char *difference = compare_results(&whole, &slices);
    if (difference != NULL) {
        fail_msg("%s differs: <%.*s> <%s> <%s>", difference, (int) m->len,
                 text, whole.err != NULL ? inf_err_msg(whole.err) : "",
                 slices.err != NULL ? inf_err_msg(slices.err) : "");
    }

    bool good = whole.err == NULL;
    compare_fini(&whole);
    compare_fini(&slices);
    free(text);
    return good;
}

static void
arrival_makes_no_difference_to_a_hundred_thousand_requests(void **state)
{
    static maker_t m = { .seed = UINT64_C(0x9e3779b97f4a7c15) };
    uint32_t good = 0;

    (void) state;
    for (uint32_t i = 0; i < HEADERS; i++) {
        make_request(&m);
        inf_infer_limits_t limits = { .max_piece_bytes = 20 + draw(&m, 300) };
        good += compare(&m, one_in(&m, 8) ? &limits : NULL);
    }

    /* neither side of the comparison may starve */
    if (good < HEADERS / 10 || good > HEADERS - HEADERS / 10) {
        fail_msg("%u of %u requests are good", good, HEADERS);
    }
}

/* Whitespace between members is not described, values and names are. */
static void
description_limit_counts_members(void **state)
{
    static const char text[] = "{ \"id\" : \"some id\" , \"inputs\" : [ ] }";
    const uint32_t described = sizeof("{\"id\":\"some id\"") - 1;

    (void) state;
    for (uint32_t max = 1; max < 40; max++) {
        inf_infer_limits_t limits = { .max_piece_bytes = max };
        compare_t c;

        assert_true(compare_read(&c, text, sizeof(text) - 1, 3, 2, &limits));
        assert_true((c.err == NULL) == (max >= described));
        if (c.err != NULL) {
            char want[128];
            snprintf(want, sizeof(want), "Unable to parse 'id': the request "
                     "is described in more than %u bytes", max);
            assert_string_equal(inf_err_msg(c.err), want);
        }

        compare_fini(&c);
    }
}

/* A name that is too long is not read: neither copied nor checked. */
static void
description_limit_comes_before_the_name(void **state)
{
    static const char text[] = "{\"parameters\":{\"abcdefghij\xff\":1},"
                               "\"inputs\":[]}";

    (void) state;
    for (uint32_t max = 1; max < 60; max++) {
        inf_infer_limits_t limits = { .max_piece_bytes = max };
        const char *want = "Unable to parse 'parameters'";
        compare_t c;

        if (max >= sizeof("{\"parameters\":{\"abcdefghijk\":1}") - 1) {
            want = "failed to parse the request JSON buffer: id and "
                   "parameters: Invalid UTF-8 in string. at 15";
        }

        assert_true(compare_read(&c, text, sizeof(text) - 1, 3, 2, &limits));
        assert_non_null(c.err);
        assert_memory_equal(inf_err_msg(c.err), want, strlen(want));
        compare_fini(&c);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_checked_in_the_order_of_the_table),
        cmocka_unit_test(big_number_is_no_shape),
        cmocka_unit_test(parameters_are_judged_last_and_in_their_order),
        cmocka_unit_test(syntax_beyond_json_is_told_with_its_place),
        cmocka_unit_test(
            arrival_makes_no_difference_to_a_hundred_thousand_requests),
        cmocka_unit_test(description_limit_counts_members),
        cmocka_unit_test(description_limit_comes_before_the_name)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
