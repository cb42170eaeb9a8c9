/* ModelInferRequests, written by protobuf-c or by hand, split, read and
   decoded. */

#include "proto/message_fixture.h"

#include "t/unit/proto/call_read.h"

#define T(name) cmocka_unit_test(name)

static const size_t turns[][2] = {
    { SIZE_MAX, SIZE_MAX }, { 1, 1 }, { 7, 3 }, { 13, 100 }
};

#define TURNS (sizeof(turns) / sizeof(turns[0]))

static void
put_number(inf_buf_t *b, uint32_t field, uint64_t value)
{
    char text[INF_WIRE_HEAD_MAX];
    char *end = inf_wire_put_varint(text, field << 3);

    end = inf_wire_put_varint(end, value);
    inf_buf_put(b, text, (size_t) (end - text));
}

static void
put_bytes(inf_buf_t *b, uint32_t field, const void *data, size_t len)
{
    char text[INF_WIRE_HEAD_MAX];
    char *end = inf_wire_put_varint(text, field << 3 | INF_WIRE_LEN);

    end = inf_wire_put_varint(end, len);
    inf_buf_put(b, text, (size_t) (end - text));
    inf_buf_put(b, data, len);
}

/* Read in every way with the same outcome, which is in c. */
static void
read_bytes(call_read_t *c, const char *bytes, size_t len,
    const inf_infer_limits_t *limits)
{
    call_read(c, bytes, len, SIZE_MAX, SIZE_MAX, limits);
    for (size_t i = 1; i < TURNS; i++) {
        call_read_t again;
        call_read(&again, bytes, len, turns[i][0], turns[i][1], limits);
        const char *difference = call_compare(c, &again);
        if (difference != NULL) {
            print_error("slice %zu, budget %zu: %s\n", turns[i][0],
                        turns[i][1], difference);
            fail();
        }

        call_read_fini(&again);
    }
}

static void
read_good(call_read_t *c, const char *json)
{
    inf_buf_t bytes;

    pack_call(&bytes, json);
    read_bytes(c, bytes.data, bytes.len, NULL);
    inf_buf_fini(&bytes);
    if (c->err != NULL) {
        print_error("%s\n", inf_err_msg(c->err));
        fail();
    }
}

static void
expect_error(const char *bytes, size_t len, inf_err_code_t code,
    const char *text)
{
    call_read_t c;

    read_bytes(&c, bytes, len, NULL);
    assert_non_null(c.err);
    assert_string_equal(inf_err_msg(c.err), text);
    assert_int_equal(inf_err_code(c.err), code);
    call_read_fini(&c);
}

static void
expect_invalid(const char *json, const char *text)
{
    inf_buf_t bytes;

    pack_call(&bytes, json);
    expect_error(bytes.data, bytes.len, INF_ERR_INVALID_ARG, text);
    inf_buf_fini(&bytes);
}

#define UNREADABLE(bytes, text) expect_error(bytes, sizeof(bytes) - 1, \
    INF_ERR_INTERNAL, "Unable to parse request: " text)

static void
assert_text(inf_slice_t s, const char *want)
{
    assert_int_equal(s.len, strlen(want));
    assert_memory_equal(s.data, want, s.len);
}

/* ---- requests ---- */

static void
a_request_becomes_tables(void **state)
{
    call_read_t c;

    (void) state;
    read_good(&c,
        "{model_name: 'm\xc3\xa9', model_version: '3', id: 'seven',"
        " inputs: [{name: 'A', datatype: 'FP32', shape: [2, -1]},"
        "          {name: 'B', datatype: 'BYTES', shape: []}],"
        " outputs: [{name: 'X'}, {name: 'Y', parameters:"
        "   {classification: {int64_param: 5000000000}}}],"
        " raw_input_contents: ['QUJDREVGR0g=', '']}");

    const inf_infer_request_t *q = &c.call->infer;

    assert_text(c.call->model_name, "m\xc3\xa9");
    assert_text(c.call->version_text, "3");
    assert_int_equal(c.call->model_version, 3);
    assert_false(c.call->empty_final);
    assert_text(q->id, "seven");
    assert_int_equal(q->input_count, 2);
    assert_text(q->inputs[0].name, "A");
    assert_int_equal(q->inputs[0].datatype, INF_TYPE_FP32);
    assert_int_equal(q->inputs[0].dim_count, 2);
    assert_int_equal(q->inputs[0].shape[0], 2);
    assert_int_equal(q->inputs[0].shape[1], -1);
    assert_int_equal(q->inputs[0].source, INF_SOURCE_RAW);
    assert_int_equal(q->inputs[0].raw_entry, 0);
    assert_int_equal(q->inputs[0].byte_size, 8);
    assert_memory_equal(c.data[0], "ABCDEFGH", 8);
    assert_int_equal(q->inputs[1].dim_count, 0);
    assert_int_equal(q->inputs[1].raw_entry, 1);
    assert_int_equal(q->inputs[1].byte_size, 0);
    assert_int_equal(q->output_count, 2);
    assert_text(q->outputs[0].name, "X");
    assert_int_equal(q->outputs[0].classification, 0);
    assert_true(q->outputs[0].binary);
    assert_text(q->outputs[1].name, "Y");
    assert_int_equal(q->outputs[1].classification, UINT32_MAX);
    assert_int_equal(q->parameter_count, 0);
    call_read_fini(&c);
}

static void
an_empty_request_has_nothing(void **state)
{
    call_read_t c;

    (void) state;
    read_good(&c, "{}");
    assert_int_equal(c.call->infer.input_count, 0);
    assert_int_equal(c.call->infer.output_count, 0);
    assert_int_equal(c.call->model_name.len, 0);
    assert_int_equal(c.call->model_version, -1);
    call_read_fini(&c);
}

/* t/fuzz/corpus has what tritonclient's classes have packed, behind two bytes
   of the fuzzer's. */
static void
what_tritonclient_packs_is_read(void **state)
{
    inf_buf_t bytes;
    call_read_t c;

    (void) state;
    assert_true(read_file("t/fuzz/corpus/infer_message/all_raw", &bytes));
    read_bytes(&c, bytes.data + 2, bytes.len - 2, NULL);
    must(c.err);

    const inf_infer_request_t *q = &c.call->infer;

    assert_text(c.call->model_name, "simple");
    assert_int_equal(c.call->model_version, 1);
    assert_true(c.call->empty_final);
    assert_text(q->id, "7");
    assert_int_equal(q->correlation_id, 5);
    assert_int_equal(q->flags, INF_REQUEST_SEQUENCE_START);
    assert_int_equal(q->priority, 1);
    assert_int_equal(q->timeout_us, 99);
    assert_int_equal(q->parameter_count, 4);
    assert_int_equal(q->input_count, 2);
    assert_text(q->inputs[1].name, "INPUTB");
    assert_int_equal(q->inputs[1].datatype, INF_TYPE_INT32);
    assert_int_equal(q->inputs[1].shape[1], 4);
    assert_int_equal(q->inputs[1].byte_size, 16);
    assert_memory_equal(c.data[1], "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16"
                        "\17", 16);
    assert_int_equal(q->output_count, 2);
    assert_int_equal(q->outputs[0].classification, 3);
    assert_text(q->outputs[1].shm_region, "r");
    assert_int_equal(q->outputs[1].shm_byte_size, 64);
    assert_int_equal(q->outputs[1].shm_offset, 8);
    call_read_fini(&c);

    inf_buf_fini(&bytes);
    assert_true(read_file("t/fuzz/corpus/infer_message/contents_all",
                          &bytes));
    read_bytes(&c, bytes.data + 2, bytes.len - 2, NULL);
    must(c.err);
    assert_int_equal(c.call->infer.input_count, 12);
    assert_text(c.call->infer.inputs[11].name, "I_BYTES");
    assert_memory_equal(c.data[11], "\0\0\0\0\3\0\0\0abc", 11);
    call_read_fini(&c);
    inf_buf_fini(&bytes);
}

/* ---- parameters of the request ---- */

static void
parameters_of_the_request_are_taken(void **state)
{
    call_read_t c;

    (void) state;
    read_good(&c,
        "{parameters: {sequence_id: {int64_param: -2},"
        " sequence_start: {bool_param: true},"
        " sequence_end: {bool_param: false}, priority: {uint64_param: 7},"
        " timeout: {int64_param: 1000},"
        " triton_enable_empty_final_response: {bool_param: true},"
        " b: {bool_param: true}, i: {int64_param: -5},"
        " d: {double_param: 0.5}, s: {string_param: 'text'},"
        " '': {string_param: ''}}}");

    const inf_infer_request_t *q = &c.call->infer;

    assert_true(q->correlation_id == UINT64_MAX - 1);
    assert_int_equal(q->flags, INF_REQUEST_SEQUENCE_START);
    assert_int_equal(q->priority, 7);
    assert_int_equal(q->timeout_us, 1000);
    assert_true(c.call->empty_final);
    assert_int_equal(q->parameter_count, 5);
    assert_text(q->parameters[0].name, "b");
    assert_int_equal(q->parameters[0].type, INF_PARAMETER_BOOL);
    assert_int_equal(q->parameters[0].integer, 1);
    assert_int_equal(q->parameters[1].type, INF_PARAMETER_INT);
    assert_int_equal(q->parameters[1].integer, -5);
    assert_int_equal(q->parameters[2].type, INF_PARAMETER_DOUBLE);
    assert_true(q->parameters[2].real == 0.5);
    assert_int_equal(q->parameters[3].type, INF_PARAMETER_STRING);
    assert_text(q->parameters[3].text, "text");
    assert_text(q->parameters[4].name, "");
    call_read_fini(&c);

    read_good(&c, "{parameters: {sequence_id: {string_param: 'abc'},"
              " sequence_end: {bool_param: true},"
              " priority: {int64_param: 0}}}");
    assert_text(c.call->infer.correlation_text, "abc");
    assert_int_equal(c.call->infer.flags, INF_REQUEST_SEQUENCE_END
                     | INF_REQUEST_CORRELATION_STR);
    call_read_fini(&c);
}

static void
parameters_of_another_type_are_rejected(void **state)
{
    (void) state;
    expect_invalid("{parameters: {sequence_id: {uint64_param: 1}}}",
        "invalid value type for 'sequence_id' parameter, expected int64_param "
        "or string_param.");
    expect_invalid("{parameters: {sequence_start: {int64_param: 1}}}",
        "invalid value type for 'sequence_start' parameter, expected "
        "bool_param.");
    expect_invalid("{parameters: {sequence_end: {string_param: 'true'}}}",
        "invalid value type for 'sequence_end' parameter, expected "
        "bool_param.");
    expect_invalid("{parameters: {priority: {string_param: '1'}}}",
        "invalid value type for 'priority' parameter, expected int64_param or "
        "uint64_param.");
    expect_invalid("{parameters: {priority: {int64_param: -1}}}",
        "invalid value for 'priority', expected value >= 0.");
    expect_invalid("{parameters: {timeout: {uint64_param: 1}}}",
        "invalid value type for 'timeout' parameter, expected int64_param.");
    expect_invalid("{parameters: {timeout: {}}}",
        "invalid value type for 'timeout' parameter, expected int64_param.");
    expect_invalid(
        "{parameters: {triton_enable_empty_final_response: {int64_param: 1}}}",
        "invalid value type for 'triton_enable_empty_final_response' "
        "parameter, expected bool_param.");
    expect_invalid("{parameters: {triton_x: {bool_param: true}}}",
        "parameter keys starting with 'triton_' are reserved for Triton "
        "usage. Only the following keys starting with 'triton_' are allowed: "
        "triton_enable_empty_final_response");
    expect_invalid("{parameters: {k: {uint64_param: 1}}}",
        "invalid value type for 'k' parameter, expected int64_param, "
        "bool_param, or string_param.");
    expect_invalid("{parameters: {k: {}}}",
        "invalid value type for 'k' parameter, expected int64_param, "
        "bool_param, or string_param.");
}

static void
a_correlation_id_has_up_to_128_bytes(void **state)
{
    char json[300];
    inf_buf_t bytes;
    call_read_t c;

    (void) state;
    snprintf(json, sizeof(json), "{parameters: {sequence_id: {string_param:"
             " '%0128d'}}}", 1);
    read_good(&c, json);
    assert_int_equal(c.call->infer.correlation_text.len, 128);
    call_read_fini(&c);

    snprintf(json, sizeof(json), "{parameters: {sequence_id: {string_param:"
             " '%0129d'}}}", 1);
    pack_call(&bytes, json);
    expect_error(bytes.data, bytes.len, INF_ERR_UNSUPPORTED, "string "
                 "correlation ID cannot be longer than 128 characters");
    inf_buf_fini(&bytes);
}

static void
a_version_is_a_number(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        { "latest", "not a number" }, { "-x", "not a number" },
        { "1 ", "not a number" }, { "9223372036854775808", "out of range" }
    };
    char json[100], text[300];
    call_read_t c;

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(json, sizeof(json), "{model_version: '%s', parameters:"
                 " {timeout: {}}}", cases[i].text);
        snprintf(text, sizeof(text), "failed to get model version from "
                 "specified version string '%s' (details: %s), version should "
                 "be an integral value > 0", cases[i].text, cases[i].why);
        expect_invalid(json, text);
    }

    expect_invalid("{model_version: '-1'}", "invalid model version specified "
                   "'-1' , version should be an integral value > 0");
    read_good(&c, "{model_version: '9223372036854775807'}");
    assert_true(c.call->model_version == INT64_MAX);
    call_read_fini(&c);
}

/* ---- inputs and outputs ---- */

#define A "name: 'A', datatype: 'INT32', shape: [1]"
#define SHM "shared_memory_region: {string_param: 'r'}," \
            " shared_memory_byte_size: {int64_param: 4}"

static void
rules_of_inputs_and_outputs_are_checked(void **state)
{
    (void) state;
    expect_invalid("{inputs: [{name: 'A', datatype: 'STRING', shape: [1]}]}",
        "invalid datatype for input A");
    expect_invalid("{inputs: [{name: 'A'}]}", "invalid datatype for input A");
    expect_invalid("{inputs: [{" A "}, {" A "}], raw_input_contents:"
        " ['', '']}", "input 'A' already exists in request");
    expect_invalid("{outputs: [{name: 'X'}, {name: 'Y'}, {name: 'X'}]}",
        "Duplicate output name 'X' is not allowed in a request");

    expect_invalid("{outputs: [{name: 'X', parameters: {"
        " classification: {string_param: '1'}}}]}",
        "invalid value type for 'classification' parameter, expected "
        "int64_param");
    expect_invalid("{outputs: [{name: 'X', parameters: {"
        " classification: {int64_param: 0}}}]}",
        "invalid value for 'classification' parameter, expected >= 0");
    expect_invalid("{outputs: [{name: 'X', parameters: {"
        " classification: {int64_param: -1}}}]}",
        "invalid value for 'classification' parameter, expected >= 0");
    expect_invalid("{outputs: [{name: 'X', parameters: {" SHM ","
        " classification: {int64_param: 1}}}]}",
        "output can't set both 'shared_memory_region' and 'classification'");
}

static void
shared_memory_needs_a_region_and_a_size(void **state)
{
    (void) state;
    expect_invalid("{inputs: [{" A ", parameters: {"
        " shared_memory_region: {int64_param: 4}}}]}",
        "invalid value type for 'shared_memory_region' parameter for tensor "
        "'A', expected string_param.");
    expect_invalid("{inputs: [{" A ", parameters: {"
        " shared_memory_region: {string_param: ''}}}]}",
        "invalid value for 'shared_memory_region' parameter for tensor 'A', "
        "expected a name");
    expect_invalid("{inputs: [{" A ", parameters: {"
        " shared_memory_region: {string_param: 'r'}}}]}",
        "'shared_memory_byte_size' must be specified along with "
        "'shared_memory_region' parameter for tensor 'A'");
    expect_invalid("{outputs: [{name: 'X', parameters: {"
        " shared_memory_region: {string_param: 'r'}}}]}",
        "'shared_memory_byte_size' must be specified along with "
        "'shared_memory_region' parameter for tensor 'X'");
    expect_invalid("{inputs: [{" A ", parameters: {"
        " shared_memory_offset: {int64_param: 4}}}]}",
        "'shared_memory_offset' can not be specified without "
        "'shared_memory_region' parameter for tensor 'A'");
    expect_invalid("{inputs: [{" A ", parameters: {"
        " shared_memory_byte_size: {int64_param: 4}}}]}",
        "'shared_memory_byte_size' can not be specified without "
        "'shared_memory_region' parameter for tensor 'A'");
    expect_invalid("{inputs: [{" A ", parameters: {" SHM ","
        " shared_memory_offset: {uint64_param: 4}}}]}",
        "invalid value type for 'shared_memory_offset' parameter for tensor "
        "'A', expected int64_param.");
    expect_invalid("{inputs: [{" A ", parameters: {" SHM ","
        " shared_memory_offset: {int64_param: -4}}}]}",
        "invalid value for 'shared_memory_offset' parameter for tensor 'A', "
        "expected >= 0");
    expect_invalid("{inputs: [{" A ", parameters: {" SHM "}, contents: {}}]}",
        "unexpected 'content' provided when using shared memory for input "
        "tensor 'A' for model ''");
}

/* ---- where the data is ---- */

static void
raw_entries_are_for_inputs_without_shared_memory(void **state)
{
    call_read_t c;

    (void) state;
    read_good(&c, "{inputs: [{" A ", parameters: {" SHM "}},"
              " {name: 'B', datatype: 'INT8', shape: [1]},"
              " {name: 'S', datatype: 'INT8', shape: [1], parameters: {"
              " other: {bool_param: true}, " SHM "}}, {name: 'C', datatype: 'INT8', shape: [1]}],"
              " raw_input_contents: ['AQ==', 'AgI=', 'AwMD']}");
    const inf_infer_input_t *in = c.call->infer.inputs;

    assert_int_equal(in[0].source, INF_SOURCE_SHM);
    assert_int_equal(in[1].source, INF_SOURCE_RAW);
    assert_int_equal(in[1].raw_entry, 0);
    assert_int_equal(in[2].source, INF_SOURCE_SHM);
    assert_int_equal(in[3].raw_entry, 1);
    assert_int_equal(in[3].byte_size, 2);
    call_read_fini(&c);

    expect_invalid("{model_name: 'm', inputs: [{" A "},"
        " {name: 'B', datatype: 'INT8'}], raw_input_contents: ['AQ==']}",
        "unable to find data for input tensor 'B' for model 'm' in request.");
    expect_invalid("{model_name: 'm', inputs: [{" A ", contents: {}}],"
        " raw_input_contents: ['AQ==']}",
        "contents field must not be specified when using raw_input_contents "
        "for 'A' for model 'm'");
}

static void
contents_are_decoded_by_datatype(void **state)
{
    static const struct {
        const char *datatype;
        const char *contents;
        const char *bytes;
        size_t      len;
    } cases[] = {
#define BYTES(s) s, sizeof(s) - 1
        { "BOOL", "bool_contents: [true, false, true]", BYTES("\1\0\1") },
        { "INT8", "int_contents: [-1, 2, 300]", BYTES("\xff\x02\x2c") },
        { "INT16", "int_contents: [-1, 65538]", BYTES("\xff\xff\2\0") },
        { "INT32", "int_contents: [-2, 1]", BYTES("\xfe\xff\xff\xff\1\0\0\0") },
        { "INT64", "int64_contents: [-2]",
          BYTES("\xfe\xff\xff\xff\xff\xff\xff\xff") },
        { "UINT8", "uint_contents: [255, 256]", BYTES("\xff\0") },
        { "UINT16", "uint_contents: [65535]", BYTES("\xff\xff") },
        { "UINT32", "uint_contents: [4294967295, 128]",
          BYTES("\xff\xff\xff\xff\x80\0\0\0") },
        { "UINT64", "uint64_contents: ['18446744073709551615']",
          BYTES("\xff\xff\xff\xff\xff\xff\xff\xff") },
        { "FP32", "fp32_contents: [1, -0.5]", BYTES("\0\0\x80\x3f\0\0\0\xbf") },
        { "FP64", "fp64_contents: [1]", BYTES("\0\0\0\0\0\0\xf0\x3f") },
        { "BYTES", "bytes_contents: ['', 'AP8=', 'YWJj']",
          BYTES("\0\0\0\0\2\0\0\0\0\xff\3\0\0\0abc") },
        { "FP16", "", BYTES("") },
        { "INT32", "int_contents: []", BYTES("") }
#undef BYTES
    };
    char json[300];

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        call_read_t c;

        snprintf(json, sizeof(json), "{inputs: [{name: 'A', datatype: '%s',"
                 " shape: [3], contents: {%s}}]}", cases[i].datatype,
                 cases[i].contents);
        read_good(&c, json);
        const inf_infer_input_t *in = c.call->infer.inputs;
        assert_int_equal(in->source, INF_SOURCE_CONTENTS);
        assert_int_equal(in->byte_size, cases[i].len);
        assert_memory_equal(c.data[0], cases[i].bytes, cases[i].len);
        call_read_fini(&c);
    }
}

static void
contents_of_another_kind_are_rejected(void **state)
{
    static const struct {
        const char *datatype;
        const char *contents;
        const char *type;               /* NULL: two lists                   */
    } cases[] = {
        { "INT32", "int64_contents: [1]", "INT64" },
        { "INT64", "int_contents: [1]", "INT32" },
        { "UINT64", "uint_contents: [1]", "UINT32" },
        { "FP32", "bool_contents: [true]", "BOOL" },
        { "FP16", "fp32_contents: [1]", "FP32" },
        { "INT8", "uint_contents: [1]", "UINT32" },
        { "BOOL", "uint64_contents: [1]", "UINT64" },
        { "FP32", "fp64_contents: [1]", "FP64" },
        { "FP32", "bytes_contents: ['']", "BYTES" },
        { "INT8", "int_contents: [1], int64_contents: [1]", NULL },
        { "BOOL", "bool_contents: [true], bytes_contents: ['']", NULL },
        { "BYTES", "fp32_contents: [1], bytes_contents: ['']", "FP32" }
    };
    char json[300], text[300], tail[100];

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(json, sizeof(json), "{model_name: 'm', inputs: [{name: 'A',"
                 " datatype: '%s', contents: {%s}}]}", cases[i].datatype,
                 cases[i].contents);
        snprintf(tail, sizeof(tail), " of type '%s', expected datatype '%s'",
                 cases[i].type != NULL ? cases[i].type : "",
                 cases[i].datatype);
        snprintf(text, sizeof(text), "unexpected explicit tensor data for "
                 "input tensor 'A' for model 'm'%s", cases[i].type != NULL
                 ? tail : ", binary data was already supplied.");
        expect_invalid(json, text);
    }
}

/* Not packed, in several parts, between unknown fields, and with long
   varints. */
static void
contents_may_be_written_in_any_way(void **state)
{
    static const int32_t want[] = { 5, 6, 7, 8, -1, 9 };
    inf_buf_t contents, input, bytes;
    call_read_t c;

    (void) state;
    inf_buf_init(&contents);
    inf_buf_init(&input);
    inf_buf_init(&bytes);

    put_number(&contents, 2, 5);
    put_bytes(&contents, 2, "\x06\x87\x80\x00", 4);
    put_number(&contents, 99, 1);
    put_number(&contents, 2, 8);
    put_bytes(&contents, 2, "", 0);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&input, 2, "INT32", 5);
    put_number(&input, 15, 1);

    inf_buf_reset(&contents);
    put_number(&contents, 2, UINT64_MAX);
    put_bytes(&contents, 3, "", 0);
    inf_buf_put(&contents, "\x15" "1234" "\x11" "12345678", 14);
    put_bytes(&contents, 2, "\x09", 1);
    put_bytes(&input, 5, contents.data, contents.len);

    put_bytes(&bytes, 1, "m", 1);
    put_bytes(&bytes, 5, input.data, input.len);
    read_bytes(&c, bytes.data, bytes.len, NULL);
    must(c.err);
    assert_int_equal(c.call->infer.inputs[0].byte_size, sizeof(want));
    assert_memory_equal(c.data[0], want, sizeof(want));
    call_read_fini(&c);

    /* two strings */
    inf_buf_reset(&contents);
    inf_buf_reset(&input);
    inf_buf_reset(&bytes);
    put_bytes(&contents, 8, "ab", 2);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&input, 2, "BYTES", 5);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&bytes, 5, input.data, input.len);
    read_bytes(&c, bytes.data, bytes.len, NULL);
    must(c.err);
    assert_int_equal(c.call->infer.inputs[0].byte_size, 12);
    assert_memory_equal(c.data[0], "\2\0\0\0ab\2\0\0\0ab", 12);
    call_read_fini(&c);

    /* floats one by one */
    inf_buf_reset(&contents);
    inf_buf_reset(&input);
    inf_buf_reset(&bytes);
    inf_buf_put(&contents, "\x35" "abcd" "\x35" "efgh", 10);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&input, 2, "FP32", 4);
    put_bytes(&bytes, 5, input.data, input.len);
    read_bytes(&c, bytes.data, bytes.len, NULL);
    must(c.err);
    assert_int_equal(c.call->infer.inputs[0].byte_size, 8);
    assert_memory_equal(c.data[0], "abcdefgh", 8);
    call_read_fini(&c);

    inf_buf_reset(&contents);
    inf_buf_reset(&input);
    inf_buf_reset(&bytes);
    inf_buf_put(&contents, "\x39" "abcdefgh" "\x35" "1234", 9);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&input, 2, "FP64", 4);
    put_number(&input, 3, 1);
    put_bytes(&input, 3, "\x01\x80\x01", 3);
    put_number(&input, 3, UINT64_MAX);
    put_bytes(&bytes, 5, input.data, input.len);
    read_bytes(&c, bytes.data, bytes.len, NULL);
    must(c.err);
    const inf_infer_input_t *in = c.call->infer.inputs;
    assert_int_equal(in->byte_size, 8);
    assert_memory_equal(c.data[0], "abcdefgh", 8);
    assert_int_equal(in->dim_count, 4);
    assert_int_equal(in->shape[0], 1);
    assert_int_equal(in->shape[1], 1);
    assert_int_equal(in->shape[2], 128);
    assert_int_equal(in->shape[3], -1);
    call_read_fini(&c);

    inf_buf_fini(&contents);
    inf_buf_fini(&input);
    inf_buf_fini(&bytes);
}

/* The text lies where the core may write: in every case nothing is written
   behind the tensor, and a size that is not reached is told. */
static void
contents_that_change_stay_in_their_tensor(void **state)
{
    static const char *const contents[] = {
        "datatype: 'INT16', contents: {int_contents: [1, 300, -1]}",
        "datatype: 'FP32', contents: {fp32_contents: [1, 2]}",
        "datatype: 'BYTES', contents: {bytes_contents: ['YWI=', '', 'Yw==']}",
        "datatype: 'BOOL', contents: {bool_contents: [true, false]}"
    };
    static const unsigned char values[] = {
        0, 1, 2, 7, 0x0f, 0x10, 0x12, 0x2a, 0x32, 0x42, 0x7f, 0x80, 0xff
    };
    unsigned errors = 0;
    char json[200];

    (void) state;
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        call_read_t c;

        snprintf(json, sizeof(json), "{inputs: [{%s}]}", contents[i]);
        read_good(&c, json);
        const inf_infer_input_t *in = c.call->infer.inputs;

        for (size_t at = 0; at < c.text_len; at++) {
            for (size_t k = 0; k < sizeof(values); k++) {
                char *dst = call_alloc((size_t) in->byte_size + 1);
                char was = c.text[at];
                inf_contents_decoder_t d;
                inf_err_t *err = NULL;
                inf_codec_t rc;

                dst[in->byte_size] = 'x';
                c.text[at] = (char) values[k];
                inf_contents_decoder_init(&d, in);
                do {
                    rc = inf_contents_decoder_run(&d, c.text, dst, 1, &err);
                } while (rc == INF_CODEC_AGAIN);

                assert_int_equal(dst[in->byte_size], 'x');
                errors += rc == INF_CODEC_ERROR;
                inf_err_free(err);
                c.text[at] = was;
                free(dst);
            }
        }

        call_read_fini(&c);
    }

    assert_in_range(errors, 100, 10000);
}

/* The reader does not rely on the splitter. */
static void
a_text_that_ends_early_is_told(void **state)
{
    static const struct {
        inf_slice_t bytes;
        const char *text;
    } cases[] = {
        { INF_SLICE("\x0a"), "a message ends inside a field's head, at 0" },
        { INF_SLICE("\x1a\x00\x0a\x02" "a"), "a field is longer than its "
          "message, at 2" }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inf_infer_message_t *m;
        inf_err_t *err = NULL;
        inf_arena_t arena;
        char text[100];

        inf_arena_init(&arena);
        must(inf_infer_message_new(&m, &arena, NULL));
        assert_int_equal(inf_infer_message_read(m, cases[i].bytes.data,
                                                cases[i].bytes.len, NULL, 0,
                                                SIZE_MAX, &err),
                         INF_CODEC_ERROR);
        snprintf(text, sizeof(text), "Unable to parse request: %s",
                 cases[i].text);
        assert_string_equal(inf_err_msg(err), text);
        inf_err_free(err);
        inf_arena_fini(&arena);
    }
}

static void
the_last_of_several_values_counts(void **state)
{
    static const char bytes[] =
        "\x0a\x01" "a" "\x12\x01" "1" "\x0a\x01" "b" "\x12\x00"
        "\x22\x08" "\x0a\x01" "k" "\x12\x03\x1a\x01" "v"
        "\x22\x07" "\x0a\x01" "j" "\x12\x02\x10\x01"
        /* key behind value; two values, merged; an unknown field */
        "\x22\x0c" "\x12\x02\x08\x01" "\x12\x02\x10\x05" "\x28\x00" "\x0a\x00"
        "\x22\x10" "\x0a\x01" "x" "\x0a\x01" "k" "\x12\x04\x08\x01\x10\x09"
            "\x12\x02\x30\x01";
    call_read_t c;

    (void) state;
    read_bytes(&c, bytes, sizeof(bytes) - 1, NULL);
    assert_null(c.err);
    assert_text(c.call->model_name, "b");
    assert_text(c.call->version_text, "");
    assert_int_equal(c.call->infer.parameter_count, 3);

    const inf_infer_parameter_t *p = c.call->infer.parameters;
    assert_text(p[0].name, "k");
    assert_int_equal(p[0].type, INF_PARAMETER_INT);
    assert_int_equal(p[0].integer, 9);
    assert_text(p[1].name, "j");
    assert_text(p[2].name, "");
    assert_int_equal(p[2].integer, 5);
    call_read_fini(&c);
}

/* ---- bytes that are no request ---- */

static void
what_is_no_request_is_told_with_its_place(void **state)
{
    (void) state;
    UNREADABLE("\x0a\x01\xff", "model_name: the string is not valid UTF-8, at "
               "2");
    UNREADABLE("\x1a\x01\x80", "id: the string is not valid UTF-8, at 2");
    UNREADABLE("\x2a\x00\x2a\x03\x0a\x01\xff", "inputs[1].name: the string is "
               "not valid UTF-8, at 6");
    UNREADABLE("\x2a\x03\x12\x01\xff", "inputs[0].datatype: the string is not "
               "valid UTF-8, at 4");
    UNREADABLE("\x32\x03\x0a\x01\xff", "outputs[0].name: the string is not "
               "valid UTF-8, at 4");
    UNREADABLE("\x22\x03\x0a\x01\xff", "parameters: the string is not valid "
               "UTF-8, at 4");
    UNREADABLE("\x22\x05\x12\x03\x1a\x01\xff", "parameters: the string is not "
               "valid UTF-8, at 6");
    UNREADABLE("\x2a\x03\x1a\x01\x80", "inputs[0].shape: a dimension is no "
               "varint, at 4");
    UNREADABLE("\x2a\x03\x0a\x02" "a", "inputs[0]: a field is longer than its "
               "message, at 2");
    UNREADABLE("\x2a\x01\x0a", "inputs[0]: a message ends inside a field's "
               "head, at 2");
    UNREADABLE("\x2a\x01\x0b", "inputs[0]: an unknown wire type, at 2");
    UNREADABLE("\x32\x01\x00", "outputs[0]: an impossible field number, at 2");
    UNREADABLE("\x2a\x05\x2a\x03\x12\x01\x80", "inputs[0].contents: a list "
               "ends inside an element, at 6");
    UNREADABLE("\x2a\x05\x2a\x03\x32\x01\x00", "inputs[0].contents: a list "
               "ends inside an element, at 6");
    UNREADABLE("\x2a\x1a\x12\x05" "INT32" "\x0a\x00"
               "\x2a\x0f\x12\x0d\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
               "\x01\x01", "contents of input '': a varint of more than 10 "
               "bytes, at 15");
    expect_error("\x0a\x02" "a\0", 4, INF_ERR_INVALID_ARG, "Unable to parse "
                 "request: model_name: the string holds a NUL character, at "
                 "2");
}

static void
fields_of_another_wire_type_are_unknown(void **state)
{
    inf_buf_t input, bytes;
    call_read_t c;

    (void) state;
    inf_buf_init(&input);
    inf_buf_init(&bytes);
    put_number(&bytes, 1, 1);
    put_number(&bytes, 5, 1);
    put_number(&bytes, 7, 1);
    inf_buf_put(&bytes, "\x35" "1234" "\x21" "12345678", 14);
    put_number(&input, 1, 1);
    put_number(&input, 4, 1);
    put_number(&input, 5, 1);
    put_bytes(&input, 2, "INT8", 4);
    inf_buf_put(&input, "\x1d" "1234", 5);
    put_bytes(&input, 5, "", 0);
    put_bytes(&bytes, 5, input.data, input.len);
    put_bytes(&bytes, 6, "\x08\x01\x10\x01", 4);
    put_bytes(&bytes, 4, "\x08\x01" "\x0a\x01" "k" "\x12\x04\x18\x01\x10\x03",
              11);
    read_bytes(&c, bytes.data, bytes.len, NULL);
    must(c.err);
    assert_int_equal(c.call->model_name.len, 0);
    assert_int_equal(c.call->infer.input_count, 1);
    assert_int_equal(c.call->infer.inputs[0].name.len, 0);
    assert_int_equal(c.call->infer.inputs[0].dim_count, 0);
    assert_int_equal(c.call->infer.output_count, 1);
    assert_int_equal(c.call->infer.parameters[0].integer, 3);
    call_read_fini(&c);
    inf_buf_fini(&input);
    inf_buf_fini(&bytes);
}

/* ---- limits ---- */

static void
counts_and_descriptions_are_limited(void **state)
{
    static const inf_infer_limits_t limits = {
        .max_inputs = 2, .max_outputs = 1, .max_piece_bytes = 20
    };
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {
        { "{inputs: [{}, {}, {}]}", "Unable to parse 'inputs': more than 2 of "
          "them" },
        { "{outputs: [{}, {}]}", "Unable to parse 'outputs': more than 1 of "
          "them" },
        { "{id: '123456789', model_name: '123456789'}", "Unable to parse "
          "request: names and parameters are described in more than 20 "
          "bytes" },
        { "{inputs: [{name: '123456789012345', shape: [1,2,3]}]}", "Unable to "
          "parse request: an input is described in more than 20 bytes" },
        { "{outputs: [{name: '123456789012345678'}]}", "Unable to parse "
          "request: an output is described in more than 20 bytes" }
    };
    call_read_t c;
    inf_buf_t bytes;

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pack_call(&bytes, cases[i].json);
        read_bytes(&c, bytes.data, bytes.len, &limits);
        assert_non_null(c.err);
        assert_string_equal(inf_err_msg(c.err), cases[i].text);
        call_read_fini(&c);
        inf_buf_fini(&bytes);
    }

    /* contents are not part of a description */
    pack_call(&bytes, "{inputs: [{datatype: 'INT8', contents: {int_contents: "
              "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]}}]}");
    read_bytes(&c, bytes.data, bytes.len, &limits);
    assert_null(c.err);
    call_read_fini(&c);
    inf_buf_fini(&bytes);
}

static void
a_shape_has_up_to_64_dimensions(void **state)
{
    char json[400] = "{inputs: [{name: 'A', datatype: 'INT8', contents: {},"
                     " shape: [1";
    call_read_t c;

    (void) state;
    for (int i = 1; i < 64; i++) {
        strcat(json, ",1");
    }

    strcat(json, "]}]}");
    read_good(&c, json);
    assert_int_equal(c.call->infer.inputs[0].dim_count, 64);
    call_read_fini(&c);

    strcpy(strrchr(json, '1'), "1,1]}]}");
    expect_invalid(json, "Unable to parse 'shape': more than 64 dimensions "
                   "(input 'A')");
}

static void
long_contents_take_turns(void **state)
{
    size_t len = 1 << 20;
    char *elements = malloc(len);
    inf_buf_t contents, input, bytes;
    inf_infer_message_t *m;
    inf_arena_t arena;
    inf_err_t *err = NULL;
    unsigned rounds = 0;
    inf_codec_t rc;

    (void) state;
    assert_non_null(elements);
    memset(elements, 1, len);
    inf_buf_init(&contents);
    inf_buf_init(&input);
    inf_buf_init(&bytes);
    put_bytes(&contents, 4, elements, len);
    put_bytes(&input, 2, "UINT8", 5);
    put_bytes(&input, 5, contents.data, contents.len);
    put_bytes(&bytes, 5, input.data, input.len);

    inf_arena_init(&arena);
    must(inf_infer_message_new(&m, &arena, NULL));
    do {
        rc = inf_infer_message_read(m, bytes.data, bytes.len, NULL, 0, 4096,
                                    &err);
        rounds++;
    } while (rc == INF_CODEC_AGAIN);

    must(err);
    assert_in_range(rounds, len / 4096, len / 4096 + 4);
    assert_int_equal(inf_infer_message_call(m)->infer.inputs[0].byte_size,
                     len);
    inf_arena_fini(&arena);
    inf_buf_fini(&contents);
    inf_buf_fini(&input);
    inf_buf_fini(&bytes);
    free(elements);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_request_becomes_tables),
        T(an_empty_request_has_nothing),
        T(what_tritonclient_packs_is_read),
        T(parameters_of_the_request_are_taken),
        T(parameters_of_another_type_are_rejected),
        T(a_correlation_id_has_up_to_128_bytes),
        T(a_version_is_a_number),
        T(rules_of_inputs_and_outputs_are_checked),
        T(shared_memory_needs_a_region_and_a_size),
        T(raw_entries_are_for_inputs_without_shared_memory),
        T(contents_are_decoded_by_datatype),
        T(contents_of_another_kind_are_rejected),
        T(contents_may_be_written_in_any_way),
        T(contents_that_change_stay_in_their_tensor),
        T(a_text_that_ends_early_is_told),
        T(the_last_of_several_values_counts),
        T(what_is_no_request_is_told_with_its_place),
        T(fields_of_another_wire_type_are_unknown),
        T(counts_and_descriptions_are_limited),
        T(a_shape_has_up_to_64_dimensions),
        T(long_contents_take_turns)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
