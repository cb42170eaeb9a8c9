/*
 * response_json.c - records checked, and written as the JSON of the
 *                    reference.
 */

#include "proto/infer_fixture.h"

#include <math.h>
#include <stdio.h>

#include "core/proto/infer_response.h"
#include "core/wire/response_record.h"

#define RECORD_MAX 4096u
#define ARENA      8192u

/* A record under construction, and the arena it points to. */
typedef struct {
    _Alignas(8) char record[RECORD_MAX];
    char             arena[ARENA];
    uint32_t         used;
    uint64_t         arena_used;
} maker_t;

static inf_response_record_t *
head(maker_t *m)
{
    return (void *) m->record;
}

static uint32_t
take(maker_t *m, size_t size)
{
    uint32_t at = (m->used + 7) & ~7u;

    assert_true(at + size <= RECORD_MAX);
    m->used = (uint32_t) (at + size);
    head(m)->size = m->used;
    return at;
}

static inf_ref_t
text(maker_t *m, const char *s)
{
    inf_ref_t ref = { take(m, strlen(s)), (uint32_t) strlen(s) };

    memcpy(m->record + ref.offset, s, ref.len);
    return ref;
}

static void
begin(maker_t *m, const char *id, const char *model, int64_t version,
    uint32_t outputs, uint32_t parameters)
{
    memset(m, 0, sizeof(*m));
    (void) take(m, sizeof(inf_response_record_t));
    head(m)->output_count = outputs;
    head(m)->output_offset = take(m, outputs * sizeof(inf_response_output_t));
    head(m)->parameter_count = parameters;
    head(m)->parameter_offset = take(m, parameters
                                     * sizeof(inf_record_parameter_t));
    head(m)->model_name = text(m, model);
    head(m)->model_version = version;
    head(m)->id = text(m, id);
}

static inf_response_output_t *
output(maker_t *m, uint32_t i, const char *name, uint32_t datatype,
    const int64_t *shape, uint32_t dims, const void *data, size_t len)
{
    inf_response_output_t *o = (void *) (m->record + head(m)->output_offset);

    o += i;
    o->name = text(m, name);
    o->datatype = datatype;
    o->dim_count = dims;
    o->shape_offset = take(m, dims * sizeof(int64_t));
    memcpy(m->record + o->shape_offset, shape, dims * sizeof(int64_t));
    m->arena_used = (m->arena_used + 63) & ~UINT64_C(63);
    assert_true(m->arena_used + len <= ARENA);
    o->data_offset = m->arena_used;
    o->data_length = len;
    memcpy(m->arena + m->arena_used, data, len);
    m->arena_used += len;
    return o;
}

static void
labels(maker_t *m, inf_response_output_t *o, const char *const *names,
    uint32_t count)
{
    o->label_count = count;
    o->label_offset = take(m, count * sizeof(inf_ref_t));
    for (uint32_t i = 0; i < count; i++) {
        inf_ref_t *refs = (void *) (m->record + o->label_offset);
        refs[i] = text(m, names[i]);
    }
}

static inf_err_t *
check_record(const maker_t *m)
{
    return inf_response_record_check(m->record, m->used, ARENA);
}

/* The JSON with pieces of `cap` bytes and turns of `budget`; then each binary
   output's bytes behind it. */
static inf_err_t *
write_body(const maker_t *m, const inf_response_options_t *options,
    size_t cap, size_t budget, char *out, size_t *json_len, size_t *len)
{
    const inf_response_record_t *rec = (const void *) m->record;
    inf_response_writer_t *w;
    inf_arena_t pool;
    inf_err_t *err;
    inf_codec_t rc;
    uint64_t measured;
    size_t n = 0;

    inf_arena_init(&pool);
    err = inf_response_writer_new(&w, rec, m->arena, options, &pool);
    if (err != NULL) {
        inf_arena_fini(&pool);
        return err;
    }

    while ((rc = inf_response_prepare(w, budget, &err)) == INF_CODEC_AGAIN) {
    }

    if (rc == INF_CODEC_ERROR) {
        inf_arena_fini(&pool);
        return err;
    }

    do {
        rc = inf_response_measure(w, budget, &measured, &err);
    } while (rc == INF_CODEC_AGAIN);

    assert_int_equal(rc, INF_CODEC_DONE);

    do {
        size_t written = 0;
        char *piece = malloc(cap);
        assert_non_null(piece);
        rc = inf_response_fill(w, piece, cap, &written, &err);
        assert_true(written <= cap);
        assert_true(written == cap || rc == INF_CODEC_DONE);
        memcpy(out + n, piece, written);
        free(piece);
        n += written;
    } while (rc == INF_CODEC_AGAIN);

    assert_int_equal(rc, INF_CODEC_DONE);
    assert_int_equal(n, measured);
    *json_len = n;

    uint64_t binary = 0;
    for (uint32_t i = 0; i < inf_response_output_count(w); i++) {
        const void *data;
        uint64_t size;
        (void) inf_response_output(w, i, &data, &size);
        if (size != 0) {
            memcpy(out + n, data, size);
        }

        n += size;
        binary += size;
    }

    assert_int_equal(binary, inf_response_binary_size(w));
    *len = n;
    inf_arena_fini(&pool);
    return NULL;
}

static void
check_body(const maker_t *m, const inf_response_options_t *options,
    const char *want, size_t json_len, size_t len)
{
    static const size_t ways[][2] = {
        { 65536, 65536 }, { 1, 1 }, { 33, 7 }, { 47, 100 }
    };
    static char body[65536];

    inf_err_t *err = check_record(m);
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }

    for (size_t i = 0; i < 4; i++) {
        size_t got_json, got;
        err = write_body(m, options, ways[i][0], ways[i][1], body, &got_json,
                         &got);
        if (err != NULL) {
            fail_msg("%s", inf_err_msg(err));
        }

        if (got_json != json_len || memcmp(body, want, json_len) != 0) {
            fail_msg("got  %.*s\nwant %s", (int) got_json, body, want);
        }

        assert_int_equal(got, len);
        assert_memory_equal(body, want, len);
    }
}

static void
check_error(const maker_t *m, const inf_response_options_t *options,
    inf_err_code_t code, const char *want)
{
    static char body[65536];
    size_t json_len, len;
    inf_err_t *err = check_record(m);

    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }

    err = write_body(m, options, 100, 1, body, &json_len, &len);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), code);
    if (strncmp(inf_err_msg(err), want, strlen(want)) != 0) {
        fail_msg("got <%s>, want <%s>", inf_err_msg(err), want);
    }

    inf_err_free(err);
}

static void
json_response_of_the_reference(void **state)
{
    static const int64_t shape[] = { 1, 2 };
    static const int32_t sum[] = { 7, 0 };
    maker_t m;

    (void) state;
    begin(&m, "j-1", "blend", 3, 1, 0);
    output(&m, 0, "SUM", INF_TYPE_INT32, shape, 2, sum, sizeof(sum));
    check_body(&m, NULL, "{\"id\":\"j-1\",\"model_name\":\"blend\","
               "\"model_version\":\"3\",\"outputs\":[{\"name\":\"SUM\","
               "\"datatype\":\"INT32\",\"shape\":[1,2],\"data\":[7,0]}]}",
               126, 126);
}

static void
binary_response_of_the_reference(void **state)
{
    static const int64_t shape[] = { 1, 2 };
    static const int32_t sum[] = { 7, 0 };
    inf_infer_output_t asked = { .name = INF_SLICE("SUM"), .binary = true };
    inf_response_options_t options = { .outputs = &asked, .output_count = 1 };
    maker_t m;

    (void) state;
    begin(&m, "b-1", "blend", 3, 1, 0);
    output(&m, 0, "SUM", INF_TYPE_INT32, shape, 2, sum, sizeof(sum));
    check_body(&m, &options, "{\"id\":\"b-1\",\"model_name\":\"blend\","
               "\"model_version\":\"3\",\"outputs\":[{\"name\":\"SUM\","
               "\"datatype\":\"INT32\",\"shape\":[1,2],\"parameters\":"
               "{\"binary_data_size\":8}}]}\7\0\0\0\0\0\0\0", 149, 157);
}

static void
raw_response_of_the_reference(void **state)
{
    static const int64_t shape[] = { 1, 3 };
    static const float y[] = { 1, 2, 4 };
    inf_response_options_t options = { .raw = true };
    char want[148];
    maker_t m;

    (void) state;
    memcpy(want, "{\"model_name\":\"scale\",\"model_version\":\"1\",\"outputs\""
           ":[{\"name\":\"Y\",\"datatype\":\"FP32\",\"shape\":[1,3],"
           "\"parameters\":{\"binary_data_size\":12}}]}", 136);
    memcpy(want + 136, y, 12);
    begin(&m, "", "scale", 1, 1, 0);
    output(&m, 0, "Y", INF_TYPE_FP32, shape, 2, y, sizeof(y));
    check_body(&m, &options, want, 136, 148);
}

static void
bytes_response_of_the_reference(void **state)
{
    static const int64_t shape[] = { 2 };
    static const char words[] = "\3\0\0\0h\xc3\xa9\3\0\0\0a\0b";
    inf_response_options_t options = { .binary_data_output = true };
    char want[156];
    maker_t m;

    (void) state;
    memcpy(want, "{\"model_name\":\"echo\",\"model_version\":\"1\",\"outputs\":"
           "[{\"name\":\"WORDS_OUT\",\"datatype\":\"BYTES\",\"shape\":[2],"
           "\"parameters\":{\"binary_data_size\":14}}]}", 142);
    memcpy(want + 142, words, 14);
    begin(&m, "", "echo", 1, 1, 0);
    output(&m, 0, "WORDS_OUT", INF_TYPE_BYTES, shape, 1, words, 14);
    check_body(&m, &options, want, 142, 156);

    /* a listed output does not follow binary_data_output */
    static const char json[] =
        "{\"model_name\":\"echo\",\"model_version\":\"1\",\"outputs\":"
        "[{\"name\":\"WORDS_OUT\",\"datatype\":\"BYTES\",\"shape\":[2],"
        "\"data\":[\"h\xc3\xa9\",\"a\\u0000b\"]}]}";
    inf_infer_output_t asked = { .name = INF_SLICE("WORDS_OUT") };
    options.outputs = &asked;
    options.output_count = 1;
    check_body(&m, &options, json, sizeof(json) - 1, sizeof(json) - 1);
}

static void
classification_of_the_reference(void **state)
{
    static const int64_t shape[] = { 1, 4 };
    static const float scores[] = { 0.25f, 9, -1, 3.5f };
    static const char *const names[] = { "dog", "cat", "", "owl" };
    static const char json[] =
        "{\"model_name\":\"vision\",\"model_version\":\"2\",\"outputs\":[{"
        "\"name\":\"SCORES\",\"datatype\":\"BYTES\",\"shape\":[1,2],\"data\":"
        "[\"9.000000:1:cat\",\"3.500000:3:owl\"]}]}";
    static const char binary[] =
        "{\"model_name\":\"vision\",\"model_version\":\"2\",\"outputs\":[{"
        "\"name\":\"SCORES\",\"datatype\":\"BYTES\",\"shape\":[1,2],"
        "\"parameters\":{\"binary_data_size\":36}}]}"
        "\x0e\0\0\0" "9.000000:1:cat\x0e\0\0\0" "3.500000:3:owl";
    inf_infer_output_t asked = {
        .name = INF_SLICE("SCORES"), .classification = 2
    };
    inf_response_options_t options = { .outputs = &asked, .output_count = 1 };
    maker_t m;

    (void) state;
    begin(&m, "", "vision", 2, 1, 0);
    inf_response_output_t *o = output(&m, 0, "SCORES", INF_TYPE_FP32, shape,
                                      2, scores, sizeof(scores));
    labels(&m, o, names, 4);
    head(&m)->batch_dim = 1;
    check_body(&m, &options, json, sizeof(json) - 1, sizeof(json) - 1);

    asked.binary = true;
    check_body(&m, &options, binary, sizeof(binary) - 1 - 36,
               sizeof(binary) - 1);
}

static void
every_datatype_has_its_json(void **state)
{
    static const int64_t shape[] = { 3 };
    static const float f[] = { 0.1f, 3, -INFINITY };
    static const double d[] = { 0.1, -0.0, NAN };
    static const uint8_t u8[] = { 0, 255, 7 };
    static const int8_t i8[] = { 0, -128, 127 };
    static const uint16_t u16[] = { 0, 65535, 7 };
    static const int16_t i16[] = { 0, -32768, 7 };
    static const uint32_t u32[] = { 0, 4294967295u, 7 };
    static const uint64_t u64[] = { 0, UINT64_MAX, 7 };
    static const int64_t i64[] = { 0, INT64_MIN, 7 };
    const struct {
        uint32_t    type;
        const void *data;
        const char *want;
    } rows[] = {
        { INF_TYPE_FP32, f, "0.1,3.0,-Infinity" },
        { INF_TYPE_FP64, d, "0.1,-0.0,NaN" },
        { INF_TYPE_BOOL, u8, "false,true,true" },
        { INF_TYPE_UINT8, u8, "0,255,7" },
        { INF_TYPE_INT8, i8, "0,-128,127" },
        { INF_TYPE_UINT16, u16, "0,65535,7" },
        { INF_TYPE_INT16, i16, "0,-32768,7" },
        { INF_TYPE_UINT32, u32, "0,4294967295,7" },
        { INF_TYPE_UINT64, u64, "0,18446744073709551615,7" },
        { INF_TYPE_INT64, i64, "0,-9223372036854775808,7" },
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[512];
        maker_t m;
        snprintf(want, sizeof(want), "{\"model_name\":\"m\","
                 "\"model_version\":\"1\",\"outputs\":[{\"name\":\"o\","
                 "\"datatype\":\"%s\",\"shape\":[3],\"data\":[%s]}]}",
                 inf_datatype_name(rows[i].type), rows[i].want);
        begin(&m, "", "m", 1, 1, 0);
        output(&m, 0, "o", rows[i].type, shape, 1, rows[i].data,
               3 * inf_datatype_size(rows[i].type));
        check_body(&m, NULL, want, strlen(want), strlen(want));
    }
}

static void
mixed_outputs_keep_the_backends_order(void **state)
{
    static const int64_t two[] = { 2 };
    static const int64_t none[] = { 0 };
    static const uint8_t bytes[] = { 1, 2 };
    static const char json[] =
        "{\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":["
        "{\"name\":\"a\",\"datatype\":\"UINT8\",\"shape\":[2],\"data\":[1,2]},"
        "{\"name\":\"b\",\"datatype\":\"UINT8\",\"shape\":[2],\"parameters\":"
        "{\"binary_data_size\":2}},"
        "{\"name\":\"c\",\"datatype\":\"UINT8\",\"shape\":[2]},"
        "{\"name\":\"d\",\"datatype\":\"UINT8\",\"shape\":[0],\"data\":[]},"
        "{\"name\":\"e\",\"datatype\":\"UINT8\",\"shape\":[0],\"parameters\":"
        "{\"binary_data_size\":0}}]}\1\2";
    inf_infer_output_t asked[] = {
        { .name = INF_SLICE("e"), .binary = true },
        { .name = INF_SLICE("d") },
        { .name = INF_SLICE("b"), .binary = true },
        { .name = INF_SLICE("a") }
    };
    inf_response_options_t options = { .outputs = asked, .output_count = 4 };
    maker_t m;

    (void) state;
    begin(&m, "", "m", 1, 5, 0);
    output(&m, 0, "a", INF_TYPE_UINT8, two, 1, bytes, 2);
    output(&m, 1, "b", INF_TYPE_UINT8, two, 1, bytes, 2);
    output(&m, 2, "c", INF_TYPE_UINT8, two, 1, bytes, 2)->data_kind =
        INF_DATA_SHM_REGION;
    output(&m, 3, "d", INF_TYPE_UINT8, none, 1, bytes, 0);
    output(&m, 4, "e", INF_TYPE_UINT8, none, 1, bytes, 0);
    check_body(&m, &options, json, sizeof(json) - 3, sizeof(json) - 1);
}

static void
parameters_of_every_type_are_written(void **state)
{
    static const char json[] =
        "{\"id\":\"q\\\"\\\\\\n\\u001F\xc3\xa9\xff\",\"model_name\":\"m\","
        "\"model_version\":\"-1\",\"parameters\":{\"s\":\"t\\u0001\","
        "\"i\":-5,\"b\":true,\"d\":0.5},\"outputs\":[]}";
    maker_t m;

    (void) state;
    begin(&m, "q\"\\\n\x1f\xc3\xa9\xff", "m", -1, 0, 4);
    inf_record_parameter_t *p = (void *) (m.record
                                          + head(&m)->parameter_offset);
    p[0].name = text(&m, "s");
    p[0].text = text(&m, "t\1");
    p[1].name = text(&m, "i");
    p[1].type = INF_PARAMETER_INT;
    p[1].number.i = -5;
    p[2].name = text(&m, "b");
    p[2].type = INF_PARAMETER_BOOL;
    p[2].number.i = 1;
    p[3].name = text(&m, "d");
    p[3].type = INF_PARAMETER_DOUBLE;
    p[3].number.d = 0.5;
    check_body(&m, NULL, json, sizeof(json) - 1, sizeof(json) - 1);

    p[2].type = INF_PARAMETER_BYTES;
    check_error(&m, NULL, INF_ERR_UNSUPPORTED, "response parameter 'b' of "
                "type BYTES");
}

static void
strings_are_escaped_and_passed_through(void **state)
{
    static const int64_t shape[] = { 4 };
    static const char words[] =
        "\0\0\0\0" "\x0a\0\0\0\b\f\n\r\t\"\\/\x0b\x7f"
        "\3\0\0\0\xff\x80\xc3" "\x14\0\0\0twenty plain letters";
    static const char json[] =
        "{\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":[{\"name\":"
        "\"o\",\"datatype\":\"BYTES\",\"shape\":[4],\"data\":[\"\","
        "\"\\b\\f\\n\\r\\t\\\"\\\\/\\u000B\x7f\",\"\xff\x80\xc3\","
        "\"twenty plain letters\"]}]}";
    maker_t m;

    (void) state;
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, shape, 1, words, sizeof(words) - 1);
    check_body(&m, NULL, json, sizeof(json) - 1, sizeof(json) - 1);
}

static void
what_cannot_be_sent_is_an_error_beforehand(void **state)
{
    static const int64_t one[] = { 1 };
    static const int64_t two[] = { 2 };
    inf_infer_output_t asked = { .name = INF_SLICE("o"), .classification = 1 };
    inf_response_options_t options = { .outputs = &asked, .output_count = 1 };
    maker_t m;

    (void) state;
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_FP16, one, 1, "\0\0", 2);
    check_error(&m, NULL, INF_ERR_INVALID_ARG, "sending FP16 data via JSON is "
                "not supported. Please use the binary data format for output");
    check_error(&m, &options, INF_ERR_INVALID_ARG, "class result not "
                "available for output due to unsupported type 'FP16'");

    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, two, 1, "\1\0\0\0x\2\0\0\0x", 10);
    check_error(&m, NULL, INF_ERR_INTERNAL, "output 'o': string 1 of 2");

    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, one, 1, "\1\0\0\0x\0\0\0\0", 9);
    check_error(&m, NULL, INF_ERR_INTERNAL, "output 'o': string 1 of 1");

    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, two, 1, "\4\0\0\0abcd", 8);
    check_error(&m, NULL, INF_ERR_INTERNAL, "output 'o': string 1 of 2");

    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, one, 1, "\xff\xff\xff\xff", 4);
    check_error(&m, NULL, INF_ERR_INTERNAL, "output 'o': string 0 of 1");
}

/* The checked bytes may have changed by the time they are written: a length is
   believed where it is used alone. */
static void
a_prefix_that_changes_after_the_check_leads_nowhere(void **state)
{
    static const int64_t two[] = { 2 };
    static const char data[] = "\1\0\0\0x\2\0\0\0yz";
    static const struct {
        size_t   at;
        uint32_t prefix;
    } changes[] = {
        { 0, UINT32_MAX }, { 0, 8 }, { 5, UINT32_MAX }, { 5, 3 },
        { 5, 1 }, { 5, UINT32_MAX - 4 }
    };
    char body[256];
    maker_t m;

    (void) state;
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_BYTES, two, 1, data, sizeof(data) - 1);
    for (size_t i = 0; i < 2 * sizeof(changes) / sizeof(changes[0]); i++) {
        size_t change = i / 2;
        char *exact = malloc(m.arena_used);     /* a read behind it is seen  */
        inf_response_writer_t *w;
        inf_err_t *err = NULL;
        inf_arena_t pool;
        uint64_t len;
        size_t written;

        inf_arena_init(&pool);
        memcpy(exact, m.arena, m.arena_used);
        assert_null(inf_response_writer_new(&w, (const void *) m.record, exact,
                                            NULL, &pool));
        assert_int_equal(inf_response_prepare(w, SIZE_MAX, &err),
                         INF_CODEC_DONE);
        memcpy(exact + changes[change].at, &changes[change].prefix, 4);

        inf_codec_t rc = i % 2 == 0
            ? inf_response_measure(w, SIZE_MAX, &len, &err)
            : inf_response_fill(w, body, sizeof(body), &written, &err);
        assert_int_equal(rc, INF_CODEC_ERROR);
        assert_non_null(strstr(inf_err_msg(err), "leads out of its tensor"));
        inf_err_free(err);
        inf_arena_fini(&pool);
        free(exact);
    }
}

/* Each field broken in turn. */
static void
broken_records_are_rejected(void **state)
{
    static const int64_t shape[] = { 1, 2 };
    static const int32_t sum[] = { 7, 0 };
    static const char *const names[] = { "x" };
    maker_t good, m;
    inf_err_t *err;

    (void) state;
    begin(&good, "id", "blend", 3, 1, 1);
    labels(&good, output(&good, 0, "SUM", INF_TYPE_INT32, shape, 2, sum,
                         sizeof(sum)), names, 1);
    assert_null(check_record(&good));

#define BREAK(change)                                                       \
    do {                                                                    \
        m = good;                                                           \
        inf_response_record_t *r = head(&m);                                \
        inf_response_output_t *o = (void *) (m.record + r->output_offset);  \
        inf_record_parameter_t *p = (void *) (m.record                      \
                                              + r->parameter_offset);       \
        int64_t *dims = (void *) (m.record + o->shape_offset);              \
        inf_ref_t *refs = (void *) (m.record + o->label_offset);            \
        (void) r, (void) o, (void) p, (void) dims, (void) refs;             \
        change;                                                             \
        err = check_record(&m);                                             \
        assert_non_null(err);                                               \
        assert_int_equal(inf_err_code(err), INF_ERR_INTERNAL);              \
        inf_err_free(err);                                                  \
    } while (0)

    BREAK(r->size = 7);
    BREAK(r->size = m.used + 1);
    BREAK(r->id.offset = m.used);
    BREAK(r->id.len = UINT32_MAX);
    BREAK(r->error.offset = UINT32_MAX);
    BREAK(r->model_name.len = m.used);
    BREAK(r->backend.len = m.used + 1);
    BREAK(r->instance.offset = m.used + 1);
    BREAK(r->output_offset += 4);
    BREAK(r->output_offset = UINT32_MAX - 7);
    BREAK(r->output_count = UINT32_MAX);
    BREAK(r->parameter_count = 1000);
    BREAK(r->parameter_offset |= 1);
    BREAK(p->type = 5);
    BREAK(p->name.len = m.used + 1);
    BREAK(p->text.offset = m.used + 1);
    BREAK(o->name.offset = m.used + 1);
    BREAK(o->datatype = 0);
    BREAK(o->datatype = INF_TYPE_COUNT);
    BREAK(o->dim_count = INF_MAX_DIMS + 1);
    BREAK(o->shape_offset += 4);
    BREAK(o->shape_offset = m.used & ~7u);
    BREAK(dims[0] = -1);
    BREAK(dims[0] = 2);
    BREAK((dims[0] = INT64_MAX, dims[1] = INT64_MAX));
    BREAK((dims[0] = INT64_C(1) << 32, dims[1] = INT64_C(1) << 32,
           o->data_length = 0));
    BREAK((dims[0] = (INT64_C(1) << 62) + 1, dims[1] = 4, o->data_length = 16));
    BREAK(o->label_count = 100000);
    BREAK(o->label_offset = UINT32_MAX & ~7u);
    BREAK(refs[0].offset = m.used);
    BREAK(o->data_kind = 2);
    BREAK(o->data_offset = ARENA - 7);
    BREAK(o->data_offset = UINT64_MAX);
    BREAK(o->data_length = UINT64_MAX);
    BREAK(o->data_length = 7);
    BREAK(o->data_length = 4);
    BREAK((o->datatype = INF_TYPE_BYTES, o->data_length = 7));

    /* cut short, byte by byte */
    for (size_t len = 0; len < good.used; len++) {
        err = inf_response_record_check(good.record, len, ARENA);
        assert_non_null(err);
        inf_err_free(err);
    }
}

static void
large_tensors_are_written_piece_by_piece(void **state)
{
    enum { N = 1000 };
    static const int64_t shape[] = { N };
    static float values[N];
    static char want[32768];
    size_t n;
    maker_t m;

    (void) state;
    n = (size_t) snprintf(want, sizeof(want), "{\"model_name\":\"m\","
                          "\"model_version\":\"1\",\"outputs\":[{\"name\":"
                          "\"o\",\"datatype\":\"FP32\",\"shape\":[1000],"
                          "\"data\":[");
    for (int i = 0; i < N; i++) {
        values[i] = (float) i * 0.5f;
        n += (size_t) snprintf(want + n, sizeof(want) - n, "%s%.1f",
                               i != 0 ? "," : "", (double) values[i]);
    }

    n += (size_t) snprintf(want + n, sizeof(want) - n, "]}]}");
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "o", INF_TYPE_FP32, shape, 1, values, sizeof(values));
    check_body(&m, NULL, want, n, n);
}

static inf_record_parameter_t *
parameter(maker_t *m, uint32_t i, const char *name, uint32_t type)
{
    inf_record_parameter_t *p = (void *) (m->record
                                          + head(m)->parameter_offset);

    p[i].name = text(m, name);
    p[i].type = type;
    return &p[i];
}

/* Outputs and parameters by name, in any order. */
static void
begin_generated(maker_t *m, const char *id)
{
    static const int64_t three[] = { 3 }, one[] = { 1, 1 }, none[] = { 0 };
    static const int32_t numbers[] = { 3, -2, 1 };
    static const float real = 0.5f;

    begin(m, id, "chat", 2, 4, 2);
    output(m, 0, "text", INF_TYPE_BYTES, one, 2, "\3\0\0\0a\"b", 7);
    output(m, 1, "Real", INF_TYPE_FP32, one, 2, &real, sizeof(real));
    output(m, 2, "numbers", INF_TYPE_INT32, three, 1, numbers,
           sizeof(numbers));
    output(m, 3, "none", INF_TYPE_INT32, none, 1, "", 0);
    parameter(m, 0, "tex", INF_PARAMETER_INT)->number.i = -5;
    parameter(m, 1, "texts", INF_PARAMETER_BOOL)->number.i = 1;
}

static void
generate_has_all_by_name(void **state)
{
    static const char want[] = "{\"Real\":0.5,\"id\":\"7\",\"model_name\":"
        "\"chat\",\"model_version\":\"2\",\"none\":[],\"numbers\":[3,-2,1],"
        "\"tex\":-5,\"text\":\"a\\\"b\",\"texts\":true}";
    inf_response_options_t options = { .form = INF_RESPONSE_GENERATE };
    char event[256];
    maker_t m;

    (void) state;
    begin_generated(&m, "7");
    check_body(&m, &options, want, sizeof(want) - 1, sizeof(want) - 1);

    options.form = INF_RESPONSE_EVENT;
    int n = snprintf(event, sizeof(event), "data: %s\n\n", want);
    check_body(&m, &options, event, (size_t) n, (size_t) n);
}

static void
in_generate_a_name_stands_once(void **state)
{
    static const int64_t one[] = { 1 };
    static const int32_t numbers[] = { 1, 2, 3, 4 };
    static const char want[] = "{\"A\":4,\"P\":7,\"id\":8,\"model_name\":"
        "\"chat\",\"model_version\":\"1\"}";
    inf_response_options_t options = { .form = INF_RESPONSE_GENERATE };
    maker_t m;

    (void) state;
    begin(&m, "", "chat", 1, 4, 3);
    output(&m, 0, "model_name", INF_TYPE_INT32, one, 1, &numbers[0], 4);
    output(&m, 1, "P", INF_TYPE_INT32, one, 1, &numbers[1], 4);
    output(&m, 2, "A", INF_TYPE_INT32, one, 1, &numbers[3], 4);
    output(&m, 3, "A", INF_TYPE_INT32, one, 1, &numbers[2], 4);
    parameter(&m, 0, "P", INF_PARAMETER_INT)->number.i = 7;
    parameter(&m, 1, "model_version", INF_PARAMETER_INT)->number.i = 9;
    parameter(&m, 2, "id", INF_PARAMETER_INT)->number.i = 8;
    check_body(&m, &options, want, sizeof(want) - 1, sizeof(want) - 1);
}

static void
generate_never_prints_half_a_value(void **state)
{
    static const int64_t one[] = { 1 };
    static const int16_t number = 1;
    inf_response_options_t options = { .form = INF_RESPONSE_EVENT };
    maker_t m;

    (void) state;
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "H", INF_TYPE_FP16, one, 1, &number, 2);
    check_error(&m, &options, INF_ERR_INVALID_ARG, "sending FP16 data via"
                " JSON is not supported");
    begin(&m, "", "m", 1, 1, 0);
    output(&m, 0, "S", INF_TYPE_BYTES, one, 1, "\5\0\0\0ab", 6);
    check_error(&m, &options, INF_ERR_INTERNAL, "output 'S': string 0 of 1");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_response_of_the_reference),
        cmocka_unit_test(binary_response_of_the_reference),
        cmocka_unit_test(raw_response_of_the_reference),
        cmocka_unit_test(bytes_response_of_the_reference),
        cmocka_unit_test(classification_of_the_reference),
        cmocka_unit_test(every_datatype_has_its_json),
        cmocka_unit_test(mixed_outputs_keep_the_backends_order),
        cmocka_unit_test(parameters_of_every_type_are_written),
        cmocka_unit_test(strings_are_escaped_and_passed_through),
        cmocka_unit_test(what_cannot_be_sent_is_an_error_beforehand),
        cmocka_unit_test(a_prefix_that_changes_after_the_check_leads_nowhere),
        cmocka_unit_test(broken_records_are_rejected),
        cmocka_unit_test(large_tensors_are_written_piece_by_piece),
        cmocka_unit_test(generate_has_all_by_name),
        cmocka_unit_test(in_generate_a_name_stands_once),
        cmocka_unit_test(generate_never_prints_half_a_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
