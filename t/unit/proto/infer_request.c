/*
 * infer_request.c - requests read into tables, and everything that can be
 *                   wrong with one.
 */

#include "infer_fixture.h"

#include <math.h>
#include <stdio.h>

#define GOOD_INPUT "{\"name\":\"A\",\"datatype\":\"INT32\",\"shape\":[2]," \
                   "\"data\":[1,2]}"

/* The ways in which the same bytes may arrive. */
static const struct {
    size_t slice;
    size_t budget;
} ways[] = {
    { SIZE_MAX, SIZE_MAX }, { 1, SIZE_MAX }, { SIZE_MAX, 1 }, { 7, 3 }
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void
check_error_sized(const char *text, size_t len, inf_err_code_t code,
    const char *want, const inf_infer_limits_t *limits)
{
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, len, ways[i].slice,
                                      ways[i].budget, limits);

        if (err == NULL) {
            fail_msg("accepted: %.*s", (int) len, text);
        }

        if (strncmp(inf_err_msg(err), want, strlen(want)) != 0) {
            fail_msg("%.*s: got <%s>, want <%s>", (int) len, text,
                     inf_err_msg(err), want);
        }

        assert_int_equal(inf_err_code(err), code);
        inf_err_free(err);
        fixture_fini(&f);
    }
}

static void
check_error(const char *text, const char *want)
{
    check_error_sized(text, strlen(text), INF_ERR_INVALID_ARG, want, NULL);
}

/* An input with these members. */
static void
check_input_error(const char *members, const char *want)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"inputs\":[{%s}]}", members);
    check_error(text, want);
}

static void
check_parameters_error(const char *parameters, const char *want)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"inputs\":[" GOOD_INPUT "],"
             "\"parameters\":%s}", parameters);
    check_error(text, want);
}

static void
check_output_error(const char *output, const char *want)
{
    char text[2048];

    snprintf(text, sizeof(text), "{\"inputs\":[" GOOD_INPUT "],"
             "\"outputs\":[%s]}", output);
    check_error(text, want);
}

static void
json_request_of_the_reference_is_read(void **state)
{
    static const char text[] =
        "{\"id\":\"j-1\",\"inputs\":[{\"name\":\"LHS\",\"datatype\":\"INT32\","
        "\"shape\":[1,2],\"data\":[[7,-2]]},{\"name\":\"MASK\",\"datatype\":"
        "\"BOOL\",\"shape\":[1,2],\"data\":[true,false]}]}";

    (void) state;
    assert_int_equal(sizeof(text) - 1, 155);
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);

        const inf_infer_request_t *q = &f.request;
        assert_slice(q->id, "j-1");
        assert_int_equal(q->input_count, 2);
        assert_int_equal(q->output_count, 0);
        assert_int_equal(q->parameter_count, 0);
        assert_int_equal(q->binary_size, 0);

        const inf_infer_input_t *in = &q->inputs[0];
        assert_slice(in->name, "LHS");
        assert_int_equal(in->datatype, INF_TYPE_INT32);
        assert_int_equal(in->dim_count, 2);
        assert_int_equal(in->shape[0], 1);
        assert_int_equal(in->shape[1], 2);
        assert_int_equal(in->source, INF_SOURCE_JSON);
        assert_int_equal(in->byte_size, 8);
        assert_slice(inf_slice(text + in->json_offset, in->json_length),
                     "[[7,-2]]");
        assert_slice(inf_slice(text + q->inputs[1].json_offset,
                               q->inputs[1].json_length), "[true,false]");

        int32_t *values = fixture_decode(&f, text, 0, ways[i].budget, &err);
        assert_non_null(values);
        assert_int_equal(values[0], 7);
        assert_int_equal(values[1], -2);
        free(values);

        char *mask = fixture_decode(&f, text, 1, ways[i].budget, &err);
        assert_non_null(mask);
        assert_memory_equal(mask, "\1\0", 2);
        free(mask);
        fixture_fini(&f);
    }
}

static void
binary_request_of_the_reference_is_read(void **state)
{
    static const char text[] =
        "{\"id\":\"b-1\",\"inputs\":[{\"name\":\"LHS\",\"datatype\":\"INT32\","
        "\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}},{\"name\":"
        "\"MASK\",\"datatype\":\"BOOL\",\"shape\":[1,2],\"parameters\":"
        "{\"binary_data_size\":2}}],\"outputs\":[{\"name\":\"SUM\","
        "\"parameters\":{\"binary_data\":true}}]}";
    inf_slice_t model = INF_SLICE("blend");

    (void) state;
    assert_int_equal(sizeof(text) - 1, 252);
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);

        const inf_infer_request_t *q = &f.request;
        assert_int_equal(q->inputs[0].source, INF_SOURCE_BINARY);
        assert_int_equal(q->inputs[0].binary_offset, 0);
        assert_int_equal(q->inputs[0].byte_size, 8);
        assert_int_equal(q->inputs[1].binary_offset, 8);
        assert_int_equal(q->inputs[1].byte_size, 2);
        assert_int_equal(q->binary_size, 10);
        assert_int_equal(q->output_count, 1);
        assert_slice(q->outputs[0].name, "SUM");
        assert_true(q->outputs[0].binary);

        assert_null(inf_infer_request_check_tail(q, 10, model));
        err = inf_infer_request_check_tail(q, 9, model);
        assert_string_equal(inf_err_msg(err), "unexpected size for input "
                            "'MASK', expecting 1 additional bytes for model "
                            "'blend'");
        inf_err_free(err);
        err = inf_infer_request_check_tail(q, 0, model);
        assert_string_equal(inf_err_msg(err), "unexpected size for input "
                            "'LHS', expecting 8 additional bytes for model "
                            "'blend'");
        inf_err_free(err);
        err = inf_infer_request_check_tail(q, 11, model);
        assert_string_equal(inf_err_msg(err), "unexpected additional input "
                            "data for model 'blend'");
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        inf_err_free(err);
        fixture_fini(&f);
    }
}

static void
bytes_request_of_the_reference_is_read(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"WORDS\",\"datatype\":\"BYTES\",\"shape\":"
        "[2],\"data\":[\"h\xc3\xa9\",\"a\\u0000b\"]}],\"parameters\":"
        "{\"binary_data_output\":true}}";

    (void) state;
    assert_int_equal(sizeof(text) - 1, 127);
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);
        assert_true(f.request.binary_data_output);
        assert_int_equal(f.request.parameter_count, 0);
        assert_int_equal(f.request.inputs[0].byte_size, 14);

        char *bytes = fixture_decode(&f, text, 0, ways[i].budget, &err);
        assert_non_null(bytes);
        assert_memory_equal(bytes, "\3\0\0\0h\xc3\xa9\3\0\0\0a\0b", 14);
        free(bytes);
        fixture_fini(&f);
    }
}

static void
parameters_are_sorted_into_reserved_and_custom(void **state)
{
    static const char text[] =
        "{\"parameters\":{\"sequence_id\":\"call-17\",\"sequence_start\":true,"
        "\"sequence_end\":false,\"lang\":\"fi\",\"n\":-3,\"big\":"
        "18446744073709551616,\"r\":0.5,\"b\":true,\"priority\":2,"
        "\"timeout\":18446744073709551615,\"u\":9223372036854775808},"
        "\"inputs\":[" GOOD_INPUT "]}";

    (void) state;
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);

        const inf_infer_request_t *q = &f.request;
        assert_int_equal(q->flags, INF_REQUEST_SEQUENCE_START
                                   | INF_REQUEST_CORRELATION_STR);
        assert_slice(q->correlation_text, "call-17");
        assert_int_equal(q->priority, 2);
        assert_true(q->timeout_us == UINT64_MAX);
        assert_int_equal(q->parameter_count, 6);

        uint32_t seen = 0;
        for (uint32_t k = 0; k < q->parameter_count; k++) {
            const inf_infer_parameter_t *p = &q->parameters[k];
            if (strcmp(p->name.data, "lang") == 0) {
                assert_int_equal(p->type, INF_PARAMETER_STRING);
                assert_slice(p->text, "fi");
                seen |= 1;
            } else if (strcmp(p->name.data, "n") == 0) {
                assert_int_equal(p->type, INF_PARAMETER_INT);
                assert_int_equal(p->integer, -3);
                seen |= 2;
            } else if (strcmp(p->name.data, "big") == 0) {
                assert_int_equal(p->type, INF_PARAMETER_DOUBLE);
                assert_true(p->real == 18446744073709551616.0);
                seen |= 4;
            } else if (strcmp(p->name.data, "r") == 0) {
                assert_int_equal(p->type, INF_PARAMETER_DOUBLE);
                assert_true(p->real == 0.5);
                seen |= 8;
            } else if (strcmp(p->name.data, "b") == 0) {
                assert_int_equal(p->type, INF_PARAMETER_BOOL);
                assert_int_equal(p->integer, 1);
                seen |= 16;
            } else {
                assert_slice(p->name, "u");
                assert_int_equal(p->type, INF_PARAMETER_DOUBLE);
                assert_true(p->real == 9223372036854775808.0);
                seen |= 32;
            }
        }

        assert_int_equal(seen, 63);
        fixture_fini(&f);
    }
}

/* One parameter each, and what stays of it; unknown members are skipped. */
static void
bare_words_may_stand_for_parameters(void **state)
{
    static const struct {
        const char *word;
        double      value;
    } rows[] = {
        { "NaN", NAN }, { "Infinity", INFINITY }, { "-Infinity", -INFINITY },
        { "Inf", INFINITY }, { "-Inf", -INFINITY }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * WAYS; i++) {
        const char *word = rows[i / WAYS].word;
        double value = rows[i / WAYS].value;
        char text[512];
        fixture_t f;

        int n = snprintf(text, sizeof(text), "{\"parameters\":{\"a\":1,"
                         "\"p\":%s},\"x\":%s,\"y\":[{\"z\":%s}],"
                         "\"inputs\":[{\"parameters\":{\"q\":%s},"
                         "\"u\":[%s],\"name\":\"IN\",\"datatype\":\"INT32\","
                         "\"shape\":[1],\"data\":[5]}]}",
                         word, word, word, word, word);
        inf_err_t *err = fixture_read(&f, text, (size_t) n,
                                      ways[i % WAYS].slice,
                                      ways[i % WAYS].budget, NULL);
        assert_null(err);
        assert_int_equal(f.request.parameter_count, 2);
        const inf_infer_parameter_t *p = f.request.parameters;
        p += strcmp(p->name.data, "p") != 0;
        assert_slice(p->name, "p");
        assert_int_equal(p->type, INF_PARAMETER_DOUBLE);
        assert_true(isnan(value) ? isnan(p->real) : p->real == value);
        fixture_fini(&f);
    }
}

static void
bare_words_are_no_other_members(void **state)
{
    static const char *const texts[] = {
        "{\"inputs\":[" GOOD_INPUT "],\"id\":NaN}",
        "{\"inputs\":[" GOOD_INPUT "],\"outputs\":NaN}",
        "{\"inputs\":[NaN]}",
        "{\"inputs\":[" GOOD_INPUT ",NaN]}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":NaN}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":nan}}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":Infinit}}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":-NaN}}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"timeout\":Inf}}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":"
            "{\"sequence_id\":NaN}}",
        "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"INT32\","
            "\"shape\":[NaN],\"data\":[5]}]}"
    };

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) * WAYS; i++) {
        const char *text = texts[i / WAYS];
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, strlen(text),
                                      ways[i % WAYS].slice,
                                      ways[i % WAYS].budget, NULL);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        inf_err_free(err);
        fixture_fini(&f);
    }
}

static void
unknown_parameters_of_a_tensor_hold_anything(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"INT32\",\"shape\":[1],"
        "\"parameters\":{\"x\":[1,[{}],\"]\"],\"binary_data_size\":4,"
        "\"y\":{\"binary_data_size\":[5]},\"z\":[]}}],\"outputs\":[{"
        "\"parameters\":{\"o\":{\"p\":{}},\"binary_data\":true},"
        "\"name\":\"B\"}]}";
    static const char *const wrong[] = {
        "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"INT32\",\"shape\":[1],"
            "\"parameters\":{\"binary_data_size\":[4]}}]}",
        "{\"inputs\":[" GOOD_INPUT "],\"outputs\":[{\"name\":\"B\","
            "\"parameters\":{\"classification\":{}}}]}",
        "{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":[]}}"
    };

    (void) state;
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);
        assert_int_equal(f.request.inputs[0].source, INF_SOURCE_BINARY);
        assert_int_equal(f.request.inputs[0].byte_size, 4);
        assert_true(f.request.outputs[0].binary);
        fixture_fini(&f);

        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            err = fixture_read(&f, wrong[k], strlen(wrong[k]), ways[i].slice,
                               ways[i].budget, NULL);
            assert_non_null(err);
            assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
            inf_err_free(err);
            fixture_fini(&f);
        }
    }
}

static void
numeric_sequence_ids_have_64_bits(void **state)
{
    static const char text[] =
        "{\"parameters\":{\"sequence_id\":18446744073709551615,"
        "\"sequence_end\":true},\"inputs\":[" GOOD_INPUT "]}";
    fixture_t f;

    (void) state;
    assert_null(fixture_read(&f, text, sizeof(text) - 1, 5, 5, NULL));
    assert_true(f.request.correlation_id == UINT64_MAX);
    assert_int_equal(f.request.flags, INF_REQUEST_SEQUENCE_END);
    fixture_fini(&f);

    static const char none[] =
        "{\"parameters\":{\"sequence_id\":\"\"},\"inputs\":[" GOOD_INPUT "]}";
    assert_null(fixture_read(&f, none, sizeof(none) - 1, 5, 5, NULL));
    assert_int_equal(f.request.correlation_id, 0);
    assert_int_equal(f.request.flags, 0);
    fixture_fini(&f);
}

static void
members_may_come_in_any_order_and_unknown_ones_too(void **state)
{
    static const char text[] =
        " {\"model_name\" : {\"x\":[[1,2,{\"inputs\":3}]]}, \"outputs\":[],"
        "\"inputs\" : [ { \"data\" : [ [1.5] , [ -2e1,NaN ] , [-Inf] ] ,"
        "\"unknown\":[null,1e999],\"d\\u0061tatype\":\"FP32\",\"parameters\":{"
        "\"other\":1}, \"shape\" : [ 2 , 2 ],\"name\":\"\\u0058\" } ],"
        "\"id\":\"\"} ";

    (void) state;
    for (size_t i = 0; i < WAYS; i++) {
        fixture_t f;
        inf_err_t *err = fixture_read(&f, text, sizeof(text) - 1,
                                      ways[i].slice, ways[i].budget, NULL);
        assert_null(err);
        assert_int_equal(f.request.id.len, 0);
        assert_slice(f.request.inputs[0].name, "X");

        float *v = fixture_decode(&f, text, 0, ways[i].budget, &err);
        assert_non_null(v);
        assert_true(v[0] == 1.5f && v[1] == -20.0f);
        assert_true(v[2] != v[2]);
        assert_true(v[3] < -3.4e38f);
        free(v);
        fixture_fini(&f);
    }
}

static void
shared_memory_is_taken_from_parameters(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"LHS\",\"datatype\":\"INT32\",\"shape\":[1,2]"
        ",\"parameters\":{\"shared_memory_region\":\"in0\","
        "\"shared_memory_offset\":64,\"shared_memory_byte_size\":8}}],"
        "\"outputs\":[{\"name\":\"O\",\"parameters\":{\"shared_memory_region\""
        ":\"out0\",\"shared_memory_byte_size\":16}},{\"name\":\"P\","
        "\"parameters\":{\"classification\":3}},{\"name\":\"Q\"}]}";
    fixture_t f;

    (void) state;
    assert_null(fixture_read(&f, text, sizeof(text) - 1, 9, 9, NULL));
    const inf_infer_input_t *in = &f.request.inputs[0];
    assert_int_equal(in->source, INF_SOURCE_SHM);
    assert_slice(in->shm_region, "in0");
    assert_int_equal(in->shm_offset, 64);
    assert_int_equal(in->byte_size, 8);

    const inf_infer_output_t *out = f.request.outputs;
    assert_int_equal(f.request.output_count, 3);
    assert_slice(out[0].shm_region, "out0");
    assert_int_equal(out[0].shm_offset, 0);
    assert_int_equal(out[0].shm_byte_size, 16);
    assert_int_equal(out[1].classification, 3);
    assert_slice(out[2].name, "Q");
    assert_false(out[2].binary);
    fixture_fini(&f);
}

static void
empty_tensors_need_no_data(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"FP16\",\"shape\":[0,7],"
        "\"data\":[1,\"x\"]},{\"name\":\"B\",\"datatype\":\"INT8\",\"shape\":"
        "[]},{\"name\":\"C\",\"datatype\":\"INT8\",\"shape\":[9000000000,"
        "9000000000,9000000000,0],\"parameters\":{\"binary_data_size\":0}}]}";
    fixture_t f;

    (void) state;
    assert_null(fixture_read(&f, text, sizeof(text) - 1, 9, 9, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(f.request.inputs[i].element_count, 0);
        assert_int_equal(f.request.inputs[i].byte_size, 0);
        assert_int_equal(f.request.inputs[i].json_length, 0);
    }

    inf_err_t *err;
    char *bytes = fixture_decode(&f, text, 0, 1, &err);
    assert_non_null(bytes);
    free(bytes);
    fixture_fini(&f);
}

static void
broken_json_is_rejected_with_reason_and_place(void **state)
{
    (void) state;
    check_error("{\"inputs\":[", "failed to parse the request JSON buffer: "
                "Invalid value. at 11");
    check_error("", "failed to parse the request JSON buffer: The document "
                "is empty. at 0");
    check_error("[]", "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
    check_error("7", "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
    check_error("{\"inputs\":[" GOOD_INPUT "]}x", "failed to parse the "
                "request JSON buffer: The document root must not be followed");
    check_error("{\"inputs\":[" GOOD_INPUT "],\"id\":\"\xff\"}",
                "failed to parse the request JSON buffer: id and parameters");
    check_error("{\"inputs\":[" GOOD_INPUT "],\"x\":nan}",
                "failed to parse the request JSON buffer: Invalid value.");
    check_error("{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":1e999}}",
                "failed to parse the request JSON buffer: id and parameters");
    check_error_sized("{\"inputs\":[" GOOD_INPUT "]}\0\0\0",
                      sizeof("{\"inputs\":[" GOOD_INPUT "]}\0\0"),
                      INF_ERR_INVALID_ARG, "failed to parse the request JSON "
                      "buffer: The document root must not be followed", NULL);
}

static void
top_level_members_are_checked(void **state)
{
    (void) state;
    check_error("{}", "Unable to parse 'inputs': attempt to access "
                "non-existing object member 'inputs'");
    check_error("{\"id\":\"x\"}", "Unable to parse 'inputs': attempt");
    check_error("{\"inputs\":{}}", "Unable to parse 'inputs': attempt to "
                "access JSON non-array as array");
    check_error("{\"inputs\":null}", "Unable to parse 'inputs': attempt");
    check_error("{\"inputs\":[1]}", "Unable to parse 'inputs': attempt to "
                "access JSON non-object as object");
    check_error("{\"inputs\":[[]]}", "Unable to parse 'inputs': attempt");
    check_error("{\"inputs\":[],\"outputs\":3}", "Unable to parse 'outputs'");
    check_error("{\"inputs\":[],\"outputs\":[\"O\"]}",
                "Unable to parse 'outputs'");
    check_error("{\"inputs\":[],\"inputs\":[]}",
                "Unable to parse 'inputs': the member appears twice");
    check_error("{\"inputs\":[],\"id\":\"a\",\"i\\u0064\":\"b\"}",
                "Unable to parse 'id': the member appears twice");
    check_error("{\"inputs\":[],\"id\":7}", "Unable to parse 'id': attempt to "
                "access JSON non-string as string");
    check_error("{\"inputs\":[],\"id\":{\"a\":1}}", "Unable to parse 'id'");
    check_error("{\"inputs\":[],\"id\":99999999999999999999}",
                "Unable to parse 'id': attempt");
    check_error("{\"inputs\":[],\"id\":\"a\\u0000b\"}",
                "Unable to parse 'id': the text contains a NUL");
}

static void
input_members_are_checked(void **state)
{
    (void) state;
    check_input_error("", "Unable to parse 'name': attempt to access "
                      "non-existing object member 'name' (input 0)");
    check_input_error("\"name\":1", "Unable to parse 'name': attempt to "
                      "access JSON non-string as string (input 0)");
    check_input_error("\"name\":\"A\"", "Unable to parse 'datatype': attempt "
                      "to access non-existing object member 'datatype' "
                      "(input 'A')");
    check_input_error("\"name\":\"A\",\"datatype\":\"FLOAT\"",
                      "invalid datatype for input A");
    check_input_error("\"name\":\"A\",\"datatype\":\"fp32\"",
                      "invalid datatype for input A");
    check_input_error("\"name\":\"A\",\"datatype\":{\"x\":1}",
                      "Unable to parse 'datatype': attempt");
    check_input_error("\"name\":\"A\",\"datatype\":\"FP32\"",
                      "Unable to parse 'shape': attempt to access "
                      "non-existing object member 'shape'");
    check_input_error("\"name\":\"A\",\"name\":\"B\"",
                      "Unable to parse 'name': the member appears twice");
#define TYPED "\"name\":\"A\",\"datatype\":\"FP32\","
    check_input_error(TYPED "\"shape\":2",
                      "Unable to parse 'shape': attempt to access JSON "
                      "non-array as array");
    check_input_error(TYPED "\"shape\":[-1],\"data\":[1]",
                      "Unable to parse 'shape': attempt to access JSON "
                      "non-unsigned-integer as unsigned-integer: it is a "
                      "whole number from 0 to 9223372036854775807");
    check_input_error(TYPED "\"shape\":[1.0]", "Unable to parse 'shape'");
    check_input_error(TYPED "\"shape\":[\"1\"]", "Unable to parse 'shape'");
    check_input_error(TYPED "\"shape\":[[1]]", "Unable to parse 'shape': "
                      "attempt to access JSON non-unsigned-integer");
    check_input_error(TYPED "\"shape\":[99999999999999999999]",
                      "Unable to parse 'shape': attempt to access JSON "
                      "non-unsigned-integer");
    check_input_error(TYPED "\"shape\":[9223372036854775808]",
                      "Unable to parse 'shape': a dimension exceeds");
    check_input_error(TYPED "\"shape\":[4294967296,4294967296,4294967296]",
                      "shape of input 'A' causes total element count to exceed "
                      "maximum size of 9223372036854775807");
    check_input_error(TYPED "\"shape\":[4294967296,2147483648]",
                      "shape of input 'A' causes total element count to exceed");
    check_input_error(TYPED "\"shape\":[4611686018427387904]",
                      "byte size overflow for input 'A'");
    check_input_error(TYPED "\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data\":[1]",
                      "Unable to parse 'shape': more than 64 dimensions");
    check_input_error(TYPED "\"shape\":[1]",
                      "Input must set only one of the following fields: "
                      "'data', 'binary_data_size' in 'parameters', "
                      "'shared_memory_region' in 'parameters'. But no field is "
                      "set (input 'A')");
    check_input_error(TYPED "\"shape\":[1],\"data\":1",
                      "Unable to parse 'data': attempt to access JSON "
                      "non-array as array");
    check_input_error(TYPED "\"shape\":[1],\"data\":{\"a\":1}",
                      "Unable to parse 'data': attempt to access JSON "
                      "non-array as array");
    check_input_error(TYPED "\"shape\":[1],\"data\":[1],\"data\":[2]",
                      "Unable to parse 'data': the member appears twice");
    check_input_error(TYPED "\"shape\":[1],\"data\":[1,2]",
                      "Unable to parse 'data': Shape does not match true "
                      "shape of 'data' field");
    check_input_error(TYPED "\"shape\":[3],\"data\":[[1],[2]]",
                      "Failed to parse 'data' field: shape does not match "
                      "true shape");
    check_input_error(TYPED "\"shape\":[1],\"data\":[\"1\"]",
                      "Unable to parse 'data': attempt to access JSON "
                      "non-number as double");
    check_input_error(TYPED "\"shape\":[1],\"data\":[null]",
                      "Unable to parse 'data': attempt");
    check_input_error(TYPED "\"shape\":[1],\"data\":[{}]",
                      "Unable to parse 'data': attempt");
    check_input_error(TYPED "\"shape\":[1],\"parameters\":[]",
                      "Unable to parse 'parameters': attempt to access JSON "
                      "non-object as object");
    check_input_error(TYPED "\"shape\":[1],\"parameters\":"
                      "{\"binary_data_size\":[4]}", "Unable to parse "
                      "'binary_data_size': attempt to access JSON "
                      "non-unsigned-integer");
    check_error("{\"inputs\":[" GOOD_INPUT "],\"parameters\":{\"x\":[]}}",
                "parameter 'x' has invalid type. It should be either 'int', "
                "'bool', or 'string'.");
    check_input_error("\"name\":\"A\",\"datatype\":\"FP16\",\"shape\":[1],"
                      "\"data\":[1]", "receiving FP16 data via JSON is not "
                      "supported. Please use the binary data format for "
                      "input A");
    check_input_error("\"name\":\"A\",\"datatype\":\"BF16\",\"shape\":[1],"
                      "\"data\":[1]", "receiving BF16 data via JSON");
    check_input_error("\"name\":\"A\",\"datatype\":\"BOOL\",\"shape\":[1],"
                      "\"data\":[1]", "Unable to parse 'data': attempt to "
                      "access JSON non-boolean as boolean");
    check_input_error("\"name\":\"A\",\"datatype\":\"BYTES\",\"shape\":[1],"
                      "\"data\":[1]", "Unable to parse JSON bytes array: "
                      "attempt to access JSON non-string as string");
}

static void
input_sources_are_checked(void **state)
{
#define SHAPED TYPED "\"shape\":[1],"
    (void) state;
    check_input_error(SHAPED "\"data\":[1],\"parameters\":"
                      "{\"binary_data_size\":4}", "Input must set only one of "
                      "the following fields: 'data', 'binary_data_size' in "
                      "'parameters', 'shared_memory_region' in 'parameters'. "
                      "But ");
    check_input_error(SHAPED "\"parameters\":{\"binary_data_size\":4,"
                      "\"shared_memory_region\":\"r\"}",
                      "Input must set only one of the following fields");
    check_input_error(SHAPED "\"parameters\":{\"binary_data_size\":-4}",
                      "Unable to parse 'binary_data_size': attempt to access "
                      "JSON non-unsigned-integer as unsigned-integer");
    check_input_error(SHAPED "\"parameters\":{\"binary_data_size\":\"4\"}",
                      "Unable to parse 'binary_data_size'");
    check_input_error(SHAPED "\"parameters\":{\"binary_data_size\":"
                      "18446744073709551616}",
                      "Unable to parse 'binary_data_size'");
    check_input_error(SHAPED "\"parameters\":{\"binary_data_size\":4,"
                      "\"binary_data_size\":4}",
                      "failed to parse the request JSON buffer: input 0: ");
    check_input_error(SHAPED "\"parameters\":{\"shared_memory_region\":7}",
                      "Unable to parse 'shared_memory_region'");
    check_input_error(SHAPED "\"parameters\":{\"shared_memory_region\":\"\"}",
                      "Unable to parse 'shared_memory_region'");
    check_input_error(SHAPED "\"parameters\":{\"shared_memory_region\":\"r\","
                      "\"shared_memory_offset\":-1}",
                      "Unable to parse 'shared_memory_offset'");
    check_error("{\"inputs\":[" GOOD_INPUT "," GOOD_INPUT "]}",
                "input 'A' already exists in request");
    check_error("{\"inputs\":[{\"name\":\"A\",\"datatype\":\"INT8\",\"shape\":"
                "[1],\"parameters\":{\"binary_data_size\":18446744073709551615"
                "}},{\"name\":\"B\",\"datatype\":\"INT8\",\"shape\":[1],"
                "\"parameters\":{\"binary_data_size\":1}}]}",
                "Unable to parse 'binary_data_size': the sum overflows");
}

static void
output_members_are_checked(void **state)
{
    (void) state;
    check_output_error("{}", "Unable to parse 'name': attempt to access "
                       "non-existing object member 'name' (output 0)");
    check_output_error("{\"name\":null}", "Unable to parse 'name'");
    check_output_error("{\"name\":\"O\"},{\"name\":\"O\"}",
                       "Duplicate output name 'O' is not allowed in "
                       "a request");
    check_output_error("{\"name\":\"O\",\"parameters\":{\"binary_data\":1}}",
                       "Unable to parse 'binary_data': attempt to access JSON "
                       "non-boolean as boolean (output 'O')");
    check_output_error("{\"name\":\"O\",\"parameters\":{\"classification\":"
                       "-1}}", "Unable to set 'classification': attempt to");
    check_output_error("{\"name\":\"O\",\"parameters\":{\"binary_data\":true,"
                       "\"shared_memory_region\":\"r\"}}",
                       "Output can't set both 'shared_memory_region' "
                       "and 'binary_data'");
    check_output_error("{\"name\":\"O\",\"parameters\":{\"classification\":1,"
                       "\"shared_memory_region\":\"r\"}}",
                       "Output can't set both 'shared_memory_region' "
                       "and 'classification'");
}

static void
parameters_are_checked(void **state)
{
    char text[512];
    char id[200];

    (void) state;
    check_parameters_error("7", "failed to get request params.: attempt to get "
                           "members for non-object");
    check_parameters_error("{\"x\":null}", "parameter 'x' has invalid "
                           "type");
    check_parameters_error("{\"x\":[1]}", "parameter 'x' has invalid type.");
    check_parameters_error("{\"x\":[0],\"y\":18446744073709551615}",
                           "parameter 'x' has invalid type.");
    check_parameters_error("{\"x\":{}}", "parameter 'x' has invalid type.");
    check_parameters_error("{\"x\":1,\"x\":2}", "failed to parse the request "
                           "JSON buffer: id and parameters: ");
    check_parameters_error("{\"triton_x\":1}", "parameter keys starting with "
                           "'triton_' are reserved for Triton usage and "
                           "should not be specified.");
    check_parameters_error("{\"sequence_id\":-1}", "Unable to parse "
                           "'sequence_id': attempt to access JSON non-string "
                           "as string: it is a text or a whole number");
    check_parameters_error("{\"sequence_id\":1.5}", "Unable to parse");
    check_parameters_error("{\"priority\":-1}", "Unable to parse 'priority': "
                           "attempt to access JSON non-unsigned-integer as "
                           "unsigned-integer: it is a whole number from 0 to "
                           "18446744073709551615");
    check_parameters_error("{\"sequence_id\":true}", "Unable to parse");
    check_parameters_error("{\"sequence_start\":1}", "Unable to parse "
                           "'sequence_start': attempt to access JSON "
                           "non-boolean as boolean");
    check_parameters_error("{\"sequence_end\":\"x\"}", "Unable to parse");
    check_parameters_error("{\"priority\":-1}", "Unable to parse 'priority'");
    check_parameters_error("{\"timeout\":1.5}", "Unable to parse 'timeout'");
    check_parameters_error("{\"binary_data_output\":0}", "Unable to parse "
                           "'binary_data_output'");
    check_parameters_error("{\"sequence_id\":[1]}", "Unable to parse "
                           "'sequence_id': attempt to access JSON non-string");
    check_parameters_error("{\"sequence_start\":{}}", "Unable to parse "
                           "'sequence_start': attempt to access JSON "
                           "non-boolean as boolean");
    check_parameters_error("{\"x\":1,\"priority\":[[1],2]}", "Unable to parse "
                           "'priority': attempt to access JSON "
                           "non-unsigned-integer as unsigned-integer");
    check_parameters_error("{\"x\":\"a\\u0000\"}", "Unable to parse 'x'");
    check_parameters_error("{\"a\\u0000\":1}", "failed to parse the request");

    memset(id, 'i', 129);
    id[129] = '\0';
    snprintf(text, sizeof(text), "{\"inputs\":[" GOOD_INPUT "],"
             "\"parameters\":{\"sequence_id\":\"%s\"}}", id);
    check_error_sized(text, strlen(text), INF_ERR_UNSUPPORTED,
                      "string correlation ID cannot be longer than 128",
                      NULL);

    id[128] = '\0';
    snprintf(text, sizeof(text), "{\"inputs\":[" GOOD_INPUT "],"
             "\"parameters\":{\"sequence_id\":\"%s\"}}", id);
    fixture_t f;
    assert_null(fixture_read(&f, text, strlen(text), 50, 50, NULL));
    fixture_fini(&f);
}

#define ACCESS "Unable to parse 'data': attempt to access JSON "
#define SIGNED ACCESS "non-signed-integer as signed-integer"
#define UNSIGNED ACCESS "non-unsigned-integer as unsigned-integer"
#define TOO_BIG "failed to parse the request JSON buffer: Number too big to " \
                "be stored in double. (element 1 of input 'A')"

static void
data_values_are_checked_by_datatype(void **state)
{
    static const struct {
        const char *datatype;
        const char *value;
        const char *want;           /* NULL: fine */
    } rows[] = {
        { "INT8", "127", NULL }, { "INT8", "-128", NULL },
        { "INT8", "128", SIGNED ": 128 is out of range of INT8 (element 1 of "
          "input 'A')" },
        { "INT8", "-129", SIGNED ": -129 is out of range" },
        { "INT8", "1.0", SIGNED " (element 1 of input 'A')" },
        { "INT8", "1e2", SIGNED " (element 1" },
        { "INT8", "NaN", SIGNED " (element 1" },
        { "UINT8", "255", NULL }, { "UINT8", "256", "Unable to parse" },
        { "UINT8", "-1", UNSIGNED ": -1 is out of range" },
        { "UINT8", "1.5", UNSIGNED " (element 1" },
        { "UINT8", "-0", NULL },
        { "INT16", "32767", NULL }, { "INT16", "32768", "Unable to parse" },
        { "INT16", "-32769", "Unable to parse" },
        { "UINT16", "65535", NULL }, { "UINT16", "65536", "Unable to parse" },
        { "INT32", "2147483647", NULL },
        { "INT32", "2147483648", "Unable to parse" },
        { "INT32", "-2147483648", NULL },
        { "INT32", "-2147483649", "Unable to parse" },
        { "UINT32", "4294967295", NULL },
        { "UINT32", "4294967296", "Unable to parse" },
        { "INT64", "9223372036854775807", NULL },
        { "INT64", "9223372036854775808", "Unable to parse" },
        { "INT64", "-9223372036854775808", NULL },
        { "INT64", "-9223372036854775809", "Unable to parse" },
        { "UINT64", "18446744073709551615", NULL },
        { "UINT64", "18446744073709551616", "Unable to parse" },
        { "FP32", "1e39", NULL }, { "FP32", "-Infinity", NULL },
        { "FP32", "1e400", TOO_BIG }, { "FP32", "-1e400", TOO_BIG },
        { "FP64", "1e308", NULL }, { "FP64", "1e309", TOO_BIG },
        { "FP64", "123456789012345678901234567890", NULL },
        { "FP64", "NaN", NULL },
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        fixture_t f;
        snprintf(text, sizeof(text), "{\"inputs\":[{\"name\":\"A\","
                 "\"datatype\":\"%s\",\"shape\":[3],\"data\":[1,%s,2]}]}",
                 rows[i].datatype, rows[i].value);
        assert_null(fixture_read(&f, text, strlen(text), 40, 40, NULL));

        for (size_t budget = 1; budget < 100; budget += 49) {
            inf_err_t *err;
            void *bytes = fixture_decode(&f, text, 0, budget, &err);

            if (rows[i].want == NULL) {
                assert_non_null(bytes);
                free(bytes);
            } else {
                assert_null(bytes);
                if (strncmp(inf_err_msg(err), rows[i].want,
                            strlen(rows[i].want)) != 0)
                {
                    fail_msg("%s %s: <%s>", rows[i].datatype, rows[i].value,
                             inf_err_msg(err));
                }

                inf_err_free(err);
            }
        }

        fixture_fini(&f);
    }
}

static void
every_integer_type_gets_its_bytes(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"INT16\",\"shape\":[3],"
        "\"data\":[-2,[[300],1]]},{\"name\":\"B\",\"datatype\":\"UINT64\","
        "\"shape\":[2],\"data\":[18446744073709551615,9223372036854775808]},"
        "{\"name\":\"C\",\"datatype\":\"FP64\",\"shape\":[2],\"data\":"
        "[0.1, 5e-324]}]}";
    fixture_t f;
    inf_err_t *err;

    (void) state;
    assert_null(fixture_read(&f, text, sizeof(text) - 1, 9, 9, NULL));

    int16_t *a = fixture_decode(&f, text, 0, 1, &err);
    assert_non_null(a);
    assert_true(a[0] == -2 && a[1] == 300 && a[2] == 1);
    free(a);

    uint64_t *b = fixture_decode(&f, text, 1, 1, &err);
    assert_non_null(b);
    assert_true(b[0] == UINT64_MAX && b[1] == UINT64_C(1) << 63);
    free(b);

    double *c = fixture_decode(&f, text, 2, 1, &err);
    assert_non_null(c);
    assert_true(c[0] == 0.1 && c[1] == 5e-324);
    free(c);
    fixture_fini(&f);
}

static void
escapes_in_strings_are_resolved(void **state)
{
    static const char text[] =
        "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"BYTES\",\"shape\":[4],"
        "\"data\":[\"\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u00e9\\u20AC"
        "\\ud83d\\ude00\",\"\xff\x80 raw\"]}]}";
    static const char want[] =
        "\0\0\0\0" "\x08\0\0\0\"\\/\b\f\n\r\t" "\x09\0\0\0\xc3\xa9\xe2\x82\xac"
        "\xf0\x9f\x98\x80" "\6\0\0\0\xff\x80 raw";
    fixture_t f;
    inf_err_t *err;

    (void) state;
    assert_null(fixture_read(&f, text, sizeof(text) - 1, 9, 9, NULL));
    assert_int_equal(f.request.inputs[0].byte_size, sizeof(want) - 1);
    for (size_t budget = 1; budget < 40; budget += 4) {
        char *bytes = fixture_decode(&f, text, 0, budget, &err);
        assert_non_null(bytes);
        assert_memory_equal(bytes, want, sizeof(want) - 1);
        free(bytes);
    }

    fixture_fini(&f);
}

static void
nesting_ends_at_a_hundred(void **state)
{
    char text[1024];

    (void) state;
    for (int depth = 99; depth <= 100; depth++) {
        int n = snprintf(text, sizeof(text), "{\"inputs\":[{\"name\":\"A\","
                         "\"datatype\":\"INT8\",\"shape\":[1],\"data\":");
        memset(text + n, '[', (size_t) depth);
        n += depth;
        text[n++] = '5';
        memset(text + n, ']', (size_t) depth);
        n += depth;
        memcpy(text + n, "}]}", 4);

        if (depth == 100) {
            check_error(text, "Unable to parse 'data': JSON nesting depth "
                        "exceeds maximum allowed limit (100)");
            continue;
        }

        fixture_t f;
        inf_err_t *err;
        assert_null(fixture_read(&f, text, strlen(text), 9, 9, NULL));
        char *bytes = fixture_decode(&f, text, 0, 1, &err);
        assert_non_null(bytes);
        assert_int_equal(bytes[0], 5);
        free(bytes);
        fixture_fini(&f);
    }
}

static void
limits_are_kept(void **state)
{
    static const inf_infer_limits_t small = {
        .max_json_bytes = 100, .max_inputs = 2, .max_outputs = 1
    };
    static const inf_infer_limits_t narrow = { .max_piece_bytes = 64 };
    static const inf_infer_limits_t tiny = { .max_json_bytes = 130 };
    char text[256];

    (void) state;
    memset(text, ' ', sizeof(text));
    check_error_sized(text, 101, INF_ERR_INVALID_ARG,
                      "request JSON is larger than the limit of 100", &small);
    check_error_sized("{\"outputs\":[{\"name\":\"a\"},{\"name\":\"b\"}]}", 40,
                      INF_ERR_INVALID_ARG,
                      "Unable to parse 'outputs': more than 1", &small);

    snprintf(text, sizeof(text), "{\"inputs\":[],\"parameters\":{\"x\":\""
             "%060d\"}}", 1);
    check_error_sized(text, strlen(text), INF_ERR_INVALID_ARG,
                      "Unable to parse 'parameters': the request is described "
                      "in more than 64 bytes", &narrow);

    size_t cap = 65536;
    char *many = malloc(cap);
    assert_non_null(many);
    int n = snprintf(many, cap, "{\"inputs\":[],\"parameters\":{");
    for (int i = 0; i < 2049; i++) {
        n += snprintf(many + n, cap - (size_t) n, "%s\"k%d\":1",
                      i != 0 ? "," : "", i);
    }

    n += snprintf(many + n, cap - (size_t) n, "}}");
    check_error_sized(many, (size_t) n, INF_ERR_INVALID_ARG,
                      "Unable to parse 'parameters': too many values in it",
                      NULL);
    free(many);

    /* 25 zeros are 50 characters and 200 bytes */
    snprintf(text, sizeof(text), "{\"inputs\":[{\"name\":\"A\",\"datatype\":"
             "\"FP64\",\"shape\":[25],\"data\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
             "0,0,0,0,0,0,0,0,0,0]}]}");
    check_error_sized(text, strlen(text), INF_ERR_INVALID_ARG,
                      "Unable to parse 'data': the tensor is larger", &tiny);
}

/* A million outputs, distinct or all the same, cost no more than their text;
   one turn stays short in every case. */
static void
a_million_outputs_are_rejected_quickly(void **state)
{
    enum { COUNT = 1000000 };
    size_t cap = 32 * (size_t) COUNT;
    char *text = malloc(cap);
    inf_infer_limits_t wide = { .max_outputs = COUNT };
    size_t n = 0;
    fixture_t f;

    (void) state;
    assert_non_null(text);
    n += (size_t) snprintf(text, cap, "{\"inputs\":[],\"outputs\":[");
    for (int i = 0; i < COUNT; i++) {
        n += (size_t) snprintf(text + n, cap - n, "%s{\"name\":\"o%d\"}",
                               i != 0 ? "," : "", i);
    }

    n += (size_t) snprintf(text + n, cap - n, "]}");

    inf_err_t *err = fixture_read(&f, text, n, SIZE_MAX, 65536, NULL);
    assert_non_null(err);
    assert_string_equal(inf_err_msg(err),
                        "Unable to parse 'outputs': more than 16384 of them");
    inf_err_free(err);
    fixture_fini(&f);

    assert_null(fixture_read(&f, text, n, SIZE_MAX, 65536, &wide));
    assert_int_equal(f.request.output_count, COUNT);
    assert_slice(f.request.outputs[COUNT - 1].name, "o999999");
    fixture_fini(&f);
    free(text);
}

static void
raw_mode_has_one_nameless_input(void **state)
{
    inf_infer_request_t q;
    inf_arena_t arena;

    (void) state;
    inf_arena_init(&arena);
    assert_null(inf_infer_request_raw(&q, &arena, 12));
    assert_int_equal(q.flags, INF_REQUEST_RAW_INPUT);
    assert_int_equal(q.input_count, 1);
    assert_int_equal(q.inputs[0].byte_size, 12);
    assert_int_equal(q.inputs[0].source, INF_SOURCE_BINARY);
    assert_true(q.binary_data_output);
    assert_null(inf_infer_request_check_tail(&q, 12, INF_SLICE("m")));
    inf_arena_fini(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_request_of_the_reference_is_read),
        cmocka_unit_test(binary_request_of_the_reference_is_read),
        cmocka_unit_test(bytes_request_of_the_reference_is_read),
        cmocka_unit_test(parameters_are_sorted_into_reserved_and_custom),
        cmocka_unit_test(bare_words_may_stand_for_parameters),
        cmocka_unit_test(unknown_parameters_of_a_tensor_hold_anything),
        cmocka_unit_test(bare_words_are_no_other_members),
        cmocka_unit_test(numeric_sequence_ids_have_64_bits),
        cmocka_unit_test(members_may_come_in_any_order_and_unknown_ones_too),
        cmocka_unit_test(shared_memory_is_taken_from_parameters),
        cmocka_unit_test(empty_tensors_need_no_data),
        cmocka_unit_test(broken_json_is_rejected_with_reason_and_place),
        cmocka_unit_test(top_level_members_are_checked),
        cmocka_unit_test(input_members_are_checked),
        cmocka_unit_test(input_sources_are_checked),
        cmocka_unit_test(output_members_are_checked),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(data_values_are_checked_by_datatype),
        cmocka_unit_test(every_integer_type_gets_its_bytes),
        cmocka_unit_test(escapes_in_strings_are_resolved),
        cmocka_unit_test(nesting_ends_at_a_hundred),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(a_million_outputs_are_rejected_quickly),
        cmocka_unit_test(raw_mode_has_one_nameless_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
