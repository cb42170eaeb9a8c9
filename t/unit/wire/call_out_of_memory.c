/*
 * Every allocation of a gRPC request and of a reply fails once, in turn: each
 * time the caller is told, and nothing is left behind.
 */

#include "scarce_memory.h"
#include "fail_each.h"

#include <stdio.h>

#include "core/base/buf.h"
#include "core/proto/infer_contents.h"
#include "core/proto/infer_message.h"
#include "core/proto/message_json.h"
#include "core/proto/reply_message.h"
#include "core/wire/response_record.h"

#include "grpc_service.pb-c.h"

#define COUNT 60            /* of anything: more than one chunk has room for */

static inf_buf_t text;              /* of a request                          */
static void     *record;            /* of a response                         */
static char      arena_bytes[4096];

static int
make(void **state)
{
    inf_buf_t json;
    ProtobufCMessage *m;

    (void) state;
    inf_buf_init(&json);
    inf_buf_init(&text);
    inf_buf_puts(&json, "{model_name: 'm', parameters: {");
    for (int i = 0; i < COUNT; i++) {
        inf_buf_printf(&json, "parameter_%d: {string_param: 'v'},", i);
    }

    inf_buf_puts(&json, "}, inputs: [");
    for (int i = 0; i < COUNT; i++) {
        inf_buf_printf(&json, "{name: 'input_%d', datatype: 'INT8',"
                       " shape: [1, 1], contents: {int_contents: [1]}},", i);
    }

    inf_buf_puts(&json, "], outputs: [");
    for (int i = 0; i < COUNT; i++) {
        inf_buf_printf(&json, "{name: 'output_%d'},", i);
    }

    inf_buf_puts(&json, "]}");
    assert_null(inf_message_from_json(
        &inference__model_infer_request__descriptor, inf_buf_slice(&json),
        &m));
    assert_null(inf_message_pack(m, &text));
    inf_message_free(m);
    inf_buf_fini(&json);

    static inf_response_output_desc_t outputs[COUNT];
    static const int64_t shape[] = { 1000 };
    inf_response_builder_t b = { .output_count = COUNT, .outputs = outputs };
    uint64_t size;

    for (int i = 0; i < COUNT; i++) {
        outputs[i] = (inf_response_output_desc_t) {
            .name = inf_slice("an_output_of_the_model", 10),
            .datatype = INF_TYPE_UINT8, .dim_count = 1, .shape = shape,
            .data_length = 1000
        };
    }

    assert_null(inf_response_builder_size(&b, &size));
    record = malloc(size);
    assert_non_null(record);
    inf_response_builder_write(&b, record, size);
    assert_null(inf_response_record_check(record, size, sizeof(arena_bytes)));
    return 0;
}

static int
drop(void **state)
{
    (void) state;
    inf_buf_fini(&text);
    free(record);
    return 0;
}

static inf_err_t *
read_request(void)
{
    inf_infer_message_t *m;
    inf_arena_t arena;

    inf_arena_init(&arena);
    inf_err_t *err = inf_infer_message_new(&m, &arena, NULL);

    if (err == NULL
        && inf_infer_message_read(m, text.data, text.len, NULL, 0, SIZE_MAX,
                                  &err) == INF_CODEC_DONE)
    {
        const inf_infer_request_t *q = &inf_infer_message_call(m)->infer;

        assert_int_equal(q->input_count, COUNT);
        assert_int_equal(q->output_count, COUNT);
        assert_int_equal(q->parameter_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            inf_contents_decoder_t d;
            char byte = 0;

            inf_contents_decoder_init(&d, &q->inputs[i]);
            assert_int_equal(inf_contents_decoder_run(&d, text.data, &byte,
                                                      SIZE_MAX, &err),
                             INF_CODEC_DONE);
            assert_int_equal(byte, 1);
        }
    }

    inf_arena_fini(&arena);
    return err;
}

static inf_err_t *
write_reply(void)
{
    static const inf_infer_output_t asked = {
        .name = { "an_output_", 10 }, .classification = 3
    };
    const inf_reply_options_t options = {
        .outputs = &asked, .output_count = 1, .stream = true
    };
    inf_arena_t pool;
    inf_reply_t *r;
    inf_slice_t notice;

    inf_arena_init(&pool);
    inf_err_t *err = inf_reply_new(&r, record, arena_bytes, &options, &pool);
    if (err == NULL
        && inf_reply_prepare(r, SIZE_MAX, &err) == INF_CODEC_DONE)
    {
        assert_int_equal(inf_reply_piece_count(r), 1);
        err = inf_reply_notice(&notice, &(inf_reply_notice_t) {
                                   .error = inf_slice(arena_bytes, 4096)
                               }, &pool);
    }

    inf_arena_fini(&pool);
    return err;
}

static void
a_request_without_memory_is_told(void **state)
{
    (void) state;
    fail_each(read_request, 5);
}

static void
a_reply_without_memory_is_told(void **state)
{
    (void) state;
    fail_each(write_reply, 5);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_memory_is_told),
        cmocka_unit_test(a_reply_without_memory_is_told)
    };

    return cmocka_run_group_tests(tests, make, drop);
}
