/*
 * infer_quick.c - what the quick way takes and what it declines, and that
 *                 nobody can tell which way a request was read.
 */

#include "infer_fixture.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/infer_compare.h"

#define HEADERS     100000u
#define TEXT_MAX    16384u

#define INPUT_A "\"name\":\"A\",\"datatype\":\"INT32\",\"shape\":[1,2]"
#define DIMS_8  "1,1,1,1,1,1,1,1,"
#define DIMS_64 DIMS_8 DIMS_8 DIMS_8 DIMS_8 DIMS_8 DIMS_8 DIMS_8 \
                "1,1,1,1,1,1,1,1"
#define TEXT_16 "0123456789abcdef"
#define TEXT_64 TEXT_16 TEXT_16 TEXT_16 TEXT_16

/* ---- one description at a time ---- */

typedef enum { AN_INPUT, AN_OUTPUT, THE_TOP } kind_t;

typedef struct {
    inf_arena_t         arena;
    inf_infer_input_t   input;
    inf_infer_output_t  output;
    inf_infer_request_t top;
    inf_err_t          *err;
    size_t              used;
} quick_t;

/* What begins with text, and nothing behind it may be read. */
static bool
take(quick_t *q, kind_t kind, const char *text, size_t len)
{
    static const inf_infer_span_t span;
    char *copy = malloc(len + (len == 0));
    bool taken = false;

    assert_non_null(copy);
    memcpy(copy, text, len);
    memset(q, 0, sizeof(*q));
    inf_arena_init(&q->arena);

    inf_walk_t walk = { .arena = &q->arena, .max_bytes = 1 << 20 };
    inf_slice_t from = inf_slice(copy, len);

    switch (kind) {
    case AN_INPUT:
        taken = inf_quick_input(&walk, from, &span, &q->input, &q->used,
                                &q->err);
        break;
    case AN_OUTPUT:
        taken = inf_quick_output(&walk, from, &q->output, &q->used, &q->err);
        break;
    case THE_TOP:
        taken = inf_quick_top(&walk, from, &q->top, &q->used, &q->err);
        break;
    }

    free(copy);
    return taken;
}

static void
quick_fini(quick_t *q)
{
    inf_err_free(q->err);
    inf_arena_fini(&q->arena);
}

static void
expect_taken(quick_t *q, kind_t kind, const char *text)
{
    if (!take(q, kind, text, strlen(text))) {
        fail_msg("declined: %s", text);
    }

    assert_null(q->err);
    assert_int_equal(text[q->used], '}');
}

static void
expect_declined(kind_t kind, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        quick_t q;
        if (take(&q, kind, texts[i], strlen(texts[i]))) {
            fail_msg("taken: %s", texts[i]);
        }

        assert_null(q.err);
        assert_null(q.arena.chunks);        /* nothing was allocated */
        quick_fini(&q);
    }
}

#define EXPECT_DECLINED(kind, texts) \
    expect_declined(kind, texts, sizeof(texts) / sizeof(texts[0]))

static void
usual_input_is_taken_in_any_order(void **state)
{
    quick_t q;

    (void) state;
    expect_taken(&q, AN_INPUT, " \"parameters\" : { \"binary_data_size\" : 8 }"
                 ",\n\t\"shape\":[ 1 , 2 ],\r\"datatype\":\"INT32\",\"name\":"
                 "\"LHS\" } , {");
    assert_slice(q.input.name, "LHS");
    assert_int_equal(q.input.datatype, INF_TYPE_INT32);
    assert_int_equal(q.input.dim_count, 2);
    assert_int_equal(q.input.shape[0], 1);
    assert_int_equal(q.input.shape[1], 2);
    assert_int_equal(q.input.element_count, 2);
    assert_int_equal(q.input.source, INF_SOURCE_BINARY);
    assert_int_equal(q.input.byte_size, 8);
    quick_fini(&q);

    expect_taken(&q, AN_INPUT, "\"name\":\"\",\"datatype\":\"FP64\",\"shape\":"
                 "[" DIMS_64 "],\"parameters\":{\"binary_data_size\":"
                 "999999999999999999}}");
    assert_int_equal(q.input.dim_count, 64);
    assert_int_equal(q.input.byte_size, 999999999999999999);
    quick_fini(&q);
}

static void
cut_input_is_declined_at_every_byte(void **state)
{
    static const char text[] = INPUT_A ",\"parameters\":{\"binary_data_size\""
                               ":8}}";
    quick_t q;

    (void) state;
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        assert_false(take(&q, AN_INPUT, text, len));
        quick_fini(&q);
    }

    assert_true(take(&q, AN_INPUT, text, sizeof(text) - 1));
    quick_fini(&q);
}

static void
unusual_input_is_declined(void **state)
{
    static const char *const texts[] = {
        "}", "\"name\":\"A\"}", INPUT_A ",}", INPUT_A "]", "," INPUT_A "}",
        INPUT_A ",\"name\":\"A\"}", INPUT_A ",\"shape\":[1]}",
        INPUT_A ",\"data\":[1,2]}", INPUT_A ",\"other\":1}",
        INPUT_A ",\"parameters\":[]}", INPUT_A ",\"parameters\":{\"x\":1}}",
        INPUT_A ",\"parameters\":{\"shared_memory_region\":\"r\"}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":-1}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":8.0}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":8e0}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":08}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":\"8\"}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":1000000000000000000}}",
        INPUT_A ",\"parameters\":{\"binary_data_size\":8,"
            "\"binary_data_size\":8}}",
        "\"name\":\"\\u0041\",\"datatype\":\"INT8\",\"shape\":[1]}",
        "\"n\\u0061me\":\"A\",\"datatype\":\"INT8\",\"shape\":[1]}",
        "\"name\":\"h\xc3\xa9\",\"datatype\":\"INT8\",\"shape\":[1]}",
        "\"name\":\"a\tb\",\"datatype\":\"INT8\",\"shape\":[1]}",
        "\"name\":null,\"datatype\":\"INT8\",\"shape\":[1]}",
        "\"name\":\"A\",\"datatype\":\"int8\",\"shape\":[1]}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":1}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[1,]}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[1.5]}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[[1]]}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[" DIMS_64 ",1]}",
        "\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":[999999999999,"
            "999999999999]}"
    };

    (void) state;
    EXPECT_DECLINED(AN_INPUT, texts);
}

static void
input_with_no_source_gets_the_error_of_the_walk(void **state)
{
    quick_t q;

    (void) state;
    assert_true(take(&q, AN_INPUT, INPUT_A "}", sizeof(INPUT_A)));
    assert_non_null(q.err);
    assert_string_equal(inf_err_msg(q.err), "Unable to parse 'data': attempt "
                        "to access non-existing object member 'data' (input "
                        "'A')");
    quick_fini(&q);
}

static void
outputs_are_taken_or_declined(void **state)
{
    static const char *const texts[] = {
        "}", "\"name\":1}", "\"name\":\"A\",\"name\":\"A\"}",
        "\"name\":\"A\",\"shape\":[1]}",
        "\"name\":\"A\",\"parameters\":{\"binary_data\":1}}",
        "\"name\":\"A\",\"parameters\":{\"binary_data\":tru}}",
        "\"name\":\"A\",\"parameters\":{\"binary_data\":truex}}",
        "\"name\":\"A\",\"parameters\":{\"classification\":-1}}",
        "\"name\":\"A\",\"parameters\":{\"classification\":1,"
            "\"classification\":1}}",
        "\"name\":\"A\",\"parameters\":{},\"parameters\":{}}",
        "\"name\":\"A\",\"parameters\":{\"shared_memory_region\":\"r\"}}"
    };
    quick_t q;

    (void) state;
    EXPECT_DECLINED(AN_OUTPUT, texts);

    expect_taken(&q, AN_OUTPUT, "\"parameters\":{\"classification\":3,"
                 "\"binary_data\":true},\"name\":\"SUM\"}");
    assert_slice(q.output.name, "SUM");
    assert_true(q.output.binary);
    assert_int_equal(q.output.classification, 3);
    quick_fini(&q);

    expect_taken(&q, AN_OUTPUT, "\"name\":\"SUM\",\"parameters\":"
                 "{\"classification\":99999999999}}");
    assert_false(q.output.binary);
    assert_int_equal(q.output.classification, UINT32_MAX);
    quick_fini(&q);
}

static void
usual_top_level_is_taken(void **state)
{
    quick_t q;

    (void) state;
    expect_taken(&q, THE_TOP, "\"parameters\":{\"sequence_id\":\"s\","
                 "\"sequence_start\":true,\"sequence_end\":false,\"priority\":"
                 "7,\"timeout\":8,\"binary_data_output\":true,\"t\":\"v\","
                 "\"i\":-9,\"b\":true},\"id\":\"x\"}");
    assert_slice(q.top.id, "x");
    assert_slice(q.top.correlation_text, "s");
    assert_int_equal(q.top.flags, INF_REQUEST_SEQUENCE_START
                                  | INF_REQUEST_CORRELATION_STR);
    assert_int_equal(q.top.priority, 7);
    assert_int_equal(q.top.timeout_us, 8);
    assert_true(q.top.binary_data_output);
    assert_int_equal(q.top.parameter_count, 3);
    assert_slice(q.top.parameters[0].name, "t");
    assert_slice(q.top.parameters[0].text, "v");
    assert_int_equal(q.top.parameters[1].type, INF_PARAMETER_INT);
    assert_int_equal(q.top.parameters[1].integer, -9);
    assert_int_equal(q.top.parameters[2].type, INF_PARAMETER_BOOL);
    assert_int_equal(q.top.parameters[2].integer, 1);
    quick_fini(&q);

    expect_taken(&q, THE_TOP, "\"parameters\":{\"sequence_id\":42}}");
    assert_int_equal(q.top.correlation_id, 42);
    assert_null(q.top.id.data);
    quick_fini(&q);
}

static void
unusual_top_level_is_declined(void **state)
{
    static const char *const texts[] = {
        "\"id\":1}", "\"id\":\"a\",\"id\":\"a\"}", "\"other\":\"a\"}",
        "\"parameters\":{\"triton_x\":1}}", "\"parameters\":{\"a\":1.5}}",
        "\"parameters\":{\"a\":null}}", "\"parameters\":{\"a\":{}}}",
        "\"parameters\":{\"a\":- 1}}", "\"parameters\":{\"a\":-}}",
        "\"parameters\":{\"a\":1,\"a\":1}}",
        "\"parameters\":{\"a\":9223372036854775807}}",
        "\"parameters\":{\"sequence_id\":-1}}",
        "\"parameters\":{\"sequence_id\":\"" TEXT_64 TEXT_64 "x\"}}",
        "\"parameters\":{\"sequence_start\":1}}",
        "\"parameters\":{\"priority\":\"1\"}}",
        "\"parameters\":{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,"
            "\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"a\":0,\"b\":0,\"c\":0,"
            "\"d\":0,\"e\":0,\"f\":0,\"g\":0}}"
    };

    (void) state;
    EXPECT_DECLINED(THE_TOP, texts);
}

/* ---- whole requests, both ways ---- */

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

/* What fits the place, so that whole requests are good often enough. */
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

/* Both ways for the same bytes, however they arrive. */
static bool
compare(maker_t *m, const inf_infer_limits_t *limits)
{
    size_t slice = one_in(m, 2) ? m->len : 1 + draw(m, 300);
    size_t budget = one_in(m, 2) ? SIZE_MAX : 1 + draw(m, 300);
    char *text = malloc(m->len + (m->len == 0));
    compare_t quick, slow;

    assert_non_null(text);
    memcpy(text, m->text, m->len);
    assert_true(compare_read(&quick, text, m->len, slice, budget, limits,
                             true));
    assert_true(compare_read(&slow, text, m->len, m->len, SIZE_MAX, limits,
                             false));

    const char *difference = compare_results(&quick, &slow);
    if (difference != NULL) {
        fail_msg("%s differs: <%.*s> <%s> <%s>", difference, (int) m->len,
                 text, quick.err != NULL ? inf_err_msg(quick.err) : "",
                 slow.err != NULL ? inf_err_msg(slow.err) : "");
    }

    bool good = slow.err == NULL;
    compare_fini(&quick);
    compare_fini(&slow);
    free(text);
    return good;
}

static void
both_ways_agree_on_a_hundred_thousand_requests(void **state)
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

static void
piece_limit_is_the_same_for_both_ways(void **state)
{
    static maker_t m = { .seed = 1 };

    (void) state;
    for (uint32_t max = 1; max < 120; max++) {
        inf_infer_limits_t limits = { .max_piece_bytes = max };
        m.len = 0;
        put(&m, "{\"id\":\"some id\",\"inputs\":[{\"name\":\"A\",\"datatype\":"
            "\"INT32\",\"shape\":[1],\"parameters\":{\"binary_data_size\":4}}"
            "],\"outputs\":[{\"name\":\"SUM\"}]}");
        (void) compare(&m, &limits);
    }
}

static void
big_number_is_no_shape(void **state)
{
    static const char text[] = "{\"inputs\":[{\"name\":\"A\",\"datatype\":"
                               "\"INT8\",\"shape\":18446744073709551615}]}";
    fixture_t f;

    (void) state;
    inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1, SIZE_MAX,
                                  SIZE_MAX, NULL);
    assert_non_null(err);
    assert_string_equal(inf_err_msg(err), "Unable to parse 'shape': attempt "
                        "to access JSON non-array as array");
    inf_err_free(err);
    fixture_fini(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_input_is_taken_in_any_order),
        cmocka_unit_test(cut_input_is_declined_at_every_byte),
        cmocka_unit_test(unusual_input_is_declined),
        cmocka_unit_test(input_with_no_source_gets_the_error_of_the_walk),
        cmocka_unit_test(outputs_are_taken_or_declined),
        cmocka_unit_test(usual_top_level_is_taken),
        cmocka_unit_test(unusual_top_level_is_declined),
        cmocka_unit_test(both_ways_agree_on_a_hundred_thousand_requests),
        cmocka_unit_test(piece_limit_is_the_same_for_both_ways),
        cmocka_unit_test(big_number_is_no_shape)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
