#include "proto/message_fixture.h"

#include "core/proto/message_json.h"
#include "core/proto/text_format.h"

#define HISTOGRAM_OPTIONS \
    (&inference__model_metrics__metric_control__histogram_options__descriptor)

static ProtobufCMessage *
from_text(const ProtobufCMessageDescriptor *desc, const char *text)
{
    ProtobufCMessage *m;

    must(inf_text_parse(desc, inf_slice_str(text), "t", &m));
    return m;
}

static void
assert_json(const ProtobufCMessage *m, const inf_json_options_t *options,
    const char *expected)
{
    inf_buf_t out;

    inf_buf_init(&out);
    must(inf_message_to_json(m, options, &out));
    assert_string_equal(out.data, expected);
    inf_buf_fini(&out);
}

/* The message that text means is the one that json gives. */
static void
assert_reads(const ProtobufCMessageDescriptor *desc, const char *json,
    const char *text)
{
    ProtobufCMessage *want = from_text(desc, text);
    ProtobufCMessage *have;

    must(inf_message_from_json(desc, inf_slice_str(json), &have));
    assert_same_message(want, have);
    inf_message_free(want);
    inf_message_free(have);
}

static void
assert_rejects(const ProtobufCMessageDescriptor *desc, const char *json,
    const char *error)
{
    ProtobufCMessage *m;

    /* a copy without room, so that overreads are seen */
    char *copy = malloc(strlen(json) + 1);
    memcpy(copy, json, strlen(json));
    must_fail(inf_message_from_json(desc, inf_slice(copy, strlen(json)), &m),
        error);
    free(copy);
}

static void
scalars_lists_and_maps_of_a_message_are_always_written(void **state)
{
    (void) state;
    ProtobufCMessage *m = from_text(&inference__model_statistics__descriptor,
        "name: 'x' last_inference: 18446744073709551615");

    assert_json(m, NULL, "{\"name\":\"x\",\"version\":\"\","
        "\"last_inference\":\"18446744073709551615\","
        "\"inference_count\":\"0\",\"execution_count\":\"0\","
        "\"batch_stats\":[],\"memory_usage\":[],\"response_stats\":{}}");
    inf_message_free(m);
}

static void
defaults_can_be_left_out_and_wide_integers_be_numbers(void **state)
{
    (void) state;
    const inf_json_options_t options = {
        .omit_defaults = true,
        .int64_numbers = true,
    };
    ProtobufCMessage *m = from_text(
        &inference__model_metadata_response__descriptor,
        "name: 'x' versions: ['1', '2'] inputs { name: 'i' datatype: 'FP32' "
        "shape: [-1, 9223372036854775807] } outputs { name: 'o' }");

    assert_json(m, &options, "{\"name\":\"x\",\"versions\":[\"1\",\"2\"],"
        "\"inputs\":[{\"name\":\"i\",\"datatype\":\"FP32\","
        "\"shape\":[-1,9223372036854775807]}],\"outputs\":[{\"name\":\"o\"}]}");
    inf_message_free(m);
}

static void
reals_are_written_shortest(void **state)
{
    (void) state;
    ProtobufCMessage *m = from_text(
        HISTOGRAM_OPTIONS,
        "buckets: [-5, 3.5, 0.1, 1e300, 5e-324, 123456789.125, "
        "0.30000000000000004, nan, inf, -inf]");
    assert_json(m, NULL, "{\"buckets\":[-5,3.5,0.1,1e+300,5e-324,"
        "123456789.125,0.30000000000000004,\"NaN\",\"Infinity\","
        "\"-Infinity\"]}");
    inf_message_free(m);

    m = from_text(&inference__model_sequence_batching__control__descriptor,
        "fp32_false_true: [0.1, 16777216, 3.4028235e38, 1e-45, 0.30000001]");
    assert_json(m, &(inf_json_options_t) { .omit_defaults = true },
        "{\"fp32_false_true\":[0.1,16777216,3.4028235e+38,1e-45,"
        "0.3]}");
    inf_message_free(m);
}

static void
strings_are_escaped_and_made_utf8(void **state)
{
    (void) state;
    static const struct {
        const char  *bytes;
        const char  *json;
    } cases[] = {
        { "", "\"\"" },
        { "a\"b\\c/\b\f\n\r\t\x01\x7f", "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001"
            "\\u007f\"" },
        { "\xed\x95\x9c\xf0\x9f\x98\x80", "\"\xed\x95\x9c\xf0\x9f\x98\x80\"" },
        { "a\xff" "b", "\"a\xef\xbf\xbd" "b\"" },
        { "\xe2\x82\"", "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\"" },
        { "\xc3", "\"\xef\xbf\xbd\"" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inf_buf_t out;
        inf_buf_init(&out);
        inf_json_put_string(&out, inf_slice_str(cases[i].bytes));
        assert_string_equal(out.data, cases[i].json);
        inf_buf_fini(&out);
    }
}

static void
a_repeated_bytes_value_is_base64_both_ways(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &inference__infer_tensor_contents__descriptor;
    const char *text =
        "bytes_contents: ['', 'f', 'fo', 'foo', '\\000\\377\\376']";
    ProtobufCMessage *m = from_text(desc, text);

    assert_json(m, &(inf_json_options_t) { .omit_defaults = true },
        "{\"bytes_contents\":[\"\",\"Zg==\",\"Zm8=\",\"Zm9v\",\"AP/+\"]}");
    inf_message_free(m);

    assert_reads(desc,
        "{\"bytesContents\":[\"\",\"Zg==\",\"Zm8\",\"Zm9v\",\"AP_-\"]}", text);
    assert_rejects(desc, "{\"bytes_contents\":[\"Z\"]}",
        "bytes_contents[0]: expected base64 text");
    assert_rejects(desc, "{\"bytes_contents\":[\"Zg=\"]}",
        "bytes_contents[0]: expected base64 text");
    assert_rejects(desc, "{\"bytes_contents\":[\"Z*==\"]}",
        "bytes_contents[0]: expected base64 text");
}

static void
the_leniencies_of_proto3_json_are_granted(void **state)
{
    (void) state;
    static const struct {
        const char  *json;
        const char  *text;
    } cases[] = {
        { "{}", "" },
        { " {\r\n\t} ", "" },
        { "{\"max_batch_size\":3}", "max_batch_size: 3" },
        { "{\"maxBatchSize\":\"3\"}", "max_batch_size: 3" },
        { "{\"max_batch_size\":3.0}", "max_batch_size: 3" },
        { "{\"max_batch_size\":1e1}", "max_batch_size: 10" },
        { "{\"max_batch_size\":-1}", "max_batch_size: -1" },
        { "{\"max_batch_size\":null,\"input\":null}", "" },
        { "{\"max_batch_size\":1,\"max_batch_size\":2}", "max_batch_size: 2" },
        { "{\"input\":[{\"name\":\"a\"}],\"input\":[]}", "" },
        { "{\"input\":[{\"data_type\":\"type_fp32\"}]}",
            "input { data_type: TYPE_FP32 }" },
        { "{\"input\":[{\"dataType\":11}]}", "input { data_type: TYPE_FP32 }" },
        { "{\"input\":[{\"data_type\":99}]}", "input { data_type: 99 }" },
        { "{\"input\":[{\"data_type\":\"11\"}]}",
            "input { data_type: TYPE_FP32 }" },
        { "{\"input\":[{\"optional\":\"true\"},{\"optional\":false}]}",
            "input { optional: true } input { }" },
        { "{\"input\":{\"dims\":5}}", "input { dims: 5 }" },
        { "{\"input\":[{\"dims\":[\"1\",-1,9223372036854775807]}]}",
            "input { dims: [1, -1, 9223372036854775807] }" },
        { "{\"dynamicBatching\":{\"priorityLevels\":18446744073709551615}}",
            "dynamic_batching { priority_levels: 18446744073709551615 }" },
        { "{\"dynamic_batching\":{\"priority_levels\":"
            "\"18446744073709551615\"}}",
            "dynamic_batching { priority_levels: 18446744073709551615 }" },
        { "{\"dynamic_batching\":{\"priority_queue_policy\":"
            "{\"7\":{\"timeout_action\":\"delay\"}}}}",
            "dynamic_batching { priority_queue_policy { key: 7 value { "
            "timeout_action: DELAY } } }" },
        { "{\"dynamic_batching\":null,\"sequence_batching\":{}}",
            "sequence_batching { }" },
        { "{\"metric_tags\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\"}}",
            "metric_tags { key: 'b' value: '2' } "
            "metric_tags { key: 'a' value: '3' }" },
        { "{'name':'it\\'s',platform:\"\\u00e9\\ud83d\\ude00\\/\",}",
            "name: \"it's\" platform: \"\xc3\xa9\xf0\x9f\x98\x80/\"" },
        { "{\"model_metrics\":{\"metric_control\":[{\"histogram_options\":"
            "{\"buckets\":[1,\"2.5\",-3e-2,\"NaN\",\"-Infinity\",]}}]}}",
            "model_metrics { metric_control { histogram_options { buckets: "
            "[1, 2.5, -3e-2, nan, -inf] } } }" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_reads(&inference__model_config__descriptor, cases[i].json,
            cases[i].text);
    }
}

static void
what_is_wrong_is_named_with_path_and_offset(void **state)
{
    (void) state;
    static const struct {
        const char  *json;
        const char  *error;
    } cases[] = {
        { "", "expected an object, got the end of the text at byte 0" },
        { "[]", "expected an object, got \"[\" at byte 0" },
        { "{} x", "expected the end of the text, got \"x\" at byte 3" },
        { "{", "expected a key, got the end of the text at byte 1" },
        { "{,}", "expected a key, got \",\" at byte 1" },
        { "{\"name\"}", "expected \":\", got \"}\" at byte 7" },
        { "{\"name\":}", "name: expected a value, got \"}\" at byte 8" },
        { "{\"name\":\"a\" \"b\"", "expected \",\" or \"}\", got \"b\" at" },
        { "{\"name\":5}", "name: expected a string, got \"5\" at byte 8" },
        { "{\"name\":\"\\u0000\"}", "name: a string without NUL" },
        { "{\"name\":\"\\ud800\"}",
            "name: half of a surrogate pair in string at byte 9" },
        { "{\"name\":\"\\x41\"}", "name: unknown escape in string at byte 9" },
        { "{\"name\":\"\xff\"}",
            "name: the string is not valid UTF-8 at byte 9" },
        { "{\"name\":\"a\n\"}", "name: a control character in a string" },
        { "{\"name\":\"a", "name: the string has no end at byte 8" },
        { "{\"nmae\":\"a\"}", "nmae: unknown field of inference.ModelConfig, "
            "did you mean \"name\"? at byte 1" },
        { "{\"max_batch_size\":1.5}",
            "max_batch_size: expected an integer, got \"1.5\" at byte 18" },
        { "{\"max_batch_size\":2147483648}",
            "max_batch_size: the integer is out of range" },
        { "{\"max_batch_size\":1e400}",
            "max_batch_size: the integer is out of range" },
        { "{\"max_batch_size\":01}", "max_batch_size: this is not a JSON" },
        { "{\"max_batch_size\":1.}", "max_batch_size: this is not a JSON" },
        { "{\"max_batch_size\":-}", "max_batch_size: this is not a JSON" },
        { "{\"max_batch_size\":\"\"}", "max_batch_size: expected an integer" },
        { "{\"max_batch_size\":\"--1\"}",
            "max_batch_size: expected an integer" },
        { "{\"max_batch_size\":\"1e1\"}",
            "max_batch_size: expected an integer, got \"1e1\" at byte 18" },
        { "{\"input\":[{\"dims\":[\"4.0\"]}]}",
            "input[0].dims[0]: expected an integer, got \"4.0\"" },
        { "{\"dynamic_batching\":{\"priority_levels\":\"1e1\"}}",
            "dynamic_batching.priority_levels: expected an integer" },
        { "{\"max_batch_size\":true}", "max_batch_size: expected an integer" },
        { "{\"max_batch_size\":{}}", "max_batch_size: expected a value" },
        { "{\"input\":[{\"data_type\":\"1e1\"}]}", "input[0].data_type: "
            "expected an enum's name or number, got \"1e1\" at byte 23" },
        { "{\"input\":[{\"data_type\":\"4.0\"}]}", "input[0].data_type: "
            "expected an enum's name or number, got \"4.0\" at byte 23" },
        { "{\"input\":[{\"dims\":[1,\"x\"]}]}",
            "input[0].dims[1]: expected an integer, got \"x\" at byte 21" },
        { "{\"input\":[{\"dims\":[1 2]}]}",
            "input[0].dims: expected \",\" or \"]\", got \"2\"" },
        { "{\"input\":[null]}", "input[0]: expected a value, got \"null\"" },
        { "{\"input\":[{\"data_type\":\"FP32\"}]}",
            "input[0].data_type: expected an enum's name or number" },
        { "{\"input\":[{\"optional\":1}]}",
            "input[0].optional: expected true or false" },
        { "{\"dynamic_batching\":{\"priority_levels\":-1}}",
            "dynamic_batching.priority_levels: the integer is out of range" },
        { "{\"dynamic_batching\":{\"priority_levels\":18446744073709551616}}",
            "dynamic_batching.priority_levels: the integer is out of range" },
        { "{\"dynamic_batching\":{\"priority_queue_policy\":{\"x\":{}}}}",
            "dynamic_batching.priority_queue_policy[\"x\"]: expected an "
            "integer" },
        { "{\"dynamic_batching\":{},\"sequence_batching\":{}}",
            "sequence_batching: only one of \"dynamic_batching\" and "
            "\"sequence_batching\" may be given at byte 23" },
        { "{\"parameters\":[]}", "parameters: expected an object, got \"[\"" },
        { "{\"parameters\":{\"k\":null}}",
            "parameters[\"k\"]: expected a value, got \"null\" at byte 19" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_rejects(&inference__model_config__descriptor, cases[i].json,
            cases[i].error);
    }
}

static void
floats_beyond_their_range_are_rejected(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &inference__infer_tensor_contents__descriptor;

    assert_reads(desc, "{\"fp32_contents\":[3.4028235e38]}",
        "fp32_contents: 3.4028235e38");
    assert_rejects(desc, "{\"fp32_contents\":[1e39]}",
        "fp32_contents[0]: the number is out of range");
    assert_rejects(desc, "{\"fp64_contents\":[1e999]}",
        "fp64_contents[0]: the number is out of range");
    assert_rejects(desc, "{\"fp64_contents\":[\"1 \"]}",
        "fp64_contents[0]: expected a number");
}

static void
optional_fields_of_proto2_keep_their_presence(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &nginx_inference__core_config__descriptor;

    assert_reads(desc, "{\"autoComplete\":false,\"serverId\":\"s\"}",
        "auto_complete: false server_id: 's'");
    assert_reads(desc, "{\"auto_complete\":false,\"auto_complete\":null}", "");

    ProtobufCMessage *m = from_text(desc, "drain_ms: 0 log { info: false }");
    assert_json(m, &(inf_json_options_t) { .omit_defaults = true },
        "{\"log\":{\"info\":false},\"drain_ms\":\"0\"}");
    inf_message_free(m);
}

static void
every_prefix_of_a_document_is_an_error(void **state)
{
    (void) state;
    static const char json[] = "{\"name\":\"a\\u00e9\",\"input\":[{\"dims\":"
        "[1,-2e0],\"optional\":true}],\"parameters\":{\"k\":{\"string_value\":"
        "'v'}},max_batch_size:\"7\"}";

    for (size_t n = 0; n < sizeof(json) - 1; n++) {
        ProtobufCMessage *m;
        char *copy = malloc(n + 1);
        memcpy(copy, json, n);
        must_fail(inf_message_from_json(&inference__model_config__descriptor,
            inf_slice(copy, n), &m), "");
        free(copy);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            scalars_lists_and_maps_of_a_message_are_always_written),
        cmocka_unit_test(
            defaults_can_be_left_out_and_wide_integers_be_numbers),
        cmocka_unit_test(reals_are_written_shortest),
        cmocka_unit_test(strings_are_escaped_and_made_utf8),
        cmocka_unit_test(a_repeated_bytes_value_is_base64_both_ways),
        cmocka_unit_test(the_leniencies_of_proto3_json_are_granted),
        cmocka_unit_test(what_is_wrong_is_named_with_path_and_offset),
        cmocka_unit_test(floats_beyond_their_range_are_rejected),
        cmocka_unit_test(optional_fields_of_proto2_keep_their_presence),
        cmocka_unit_test(every_prefix_of_a_document_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
