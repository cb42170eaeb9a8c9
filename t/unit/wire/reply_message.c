/* Response records as gRPC messages, read back by protobuf-c. */

#include "proto/message_fixture.h"

#include "core/proto/grpc.h"
#include "core/proto/reply_message.h"
#include "core/wire/response_record.h"

#define T(name) cmocka_unit_test(name)
#define ARENA (64u << 10)

typedef Inference__ModelInferResponse response_t;
typedef Inference__ModelStreamInferResponse stream_t;

typedef struct {
    void        *record;
    char        *arena;
    inf_arena_t  pool;
    inf_reply_t *reply;
    inf_buf_t    bytes;             /* all pieces                            */
    uint32_t     pieces;
} fixture_t;

/* Bytes of a pattern that differs everywhere. */
static void
fill(char *arena)
{
    for (size_t i = 0; i < ARENA; i++) {
        arena[i] = (char) (i * 7 + i / 251);
    }
}

static inf_err_t *
write_reply(fixture_t *f, const inf_response_builder_t *b,
    const inf_reply_options_t *options, size_t budget)
{
    uint64_t size;
    inf_err_t *err;
    inf_codec_t rc;

    memset(f, 0, sizeof(*f));
    must(inf_response_builder_size(b, &size));
    f->record = malloc(size);
    f->arena = malloc(ARENA);
    assert_non_null(f->record);
    assert_non_null(f->arena);
    fill(f->arena);
    inf_response_builder_write(b, f->record, size);
    must(inf_response_record_check(f->record, size, ARENA));

    inf_arena_init(&f->pool);
    inf_buf_init(&f->bytes);
    err = inf_reply_new(&f->reply, f->record, f->arena, options, &f->pool);
    if (err != NULL) {
        return err;
    }

    do {
        rc = inf_reply_prepare(f->reply, budget, &err);
    } while (rc == INF_CODEC_AGAIN);

    if (rc == INF_CODEC_ERROR) {
        return err;
    }

    f->pieces = inf_reply_piece_count(f->reply);
    for (uint32_t i = 0; i < f->pieces; i++) {
        inf_slice_t piece = inf_reply_piece(f->reply, i);
        assert_int_not_equal(piece.len, 0);
        inf_buf_put(&f->bytes, piece.data, piece.len);
    }

    assert_int_equal(f->bytes.len, inf_reply_size(f->reply));
    return NULL;
}

static void
fini(fixture_t *f)
{
    inf_arena_fini(&f->pool);
    inf_buf_fini(&f->bytes);
    free(f->record);
    free(f->arena);
}

static void *
unpack(const char *data, size_t len, const ProtobufCMessageDescriptor *desc)
{
    ProtobufCMessage *m;
    inf_grpc_prefix_t prefix;

    assert_true(len >= INF_GRPC_PREFIX);
    assert_true(inf_grpc_read_prefix(data, &prefix));
    assert_false(prefix.compressed);
    assert_int_equal(prefix.len, len - INF_GRPC_PREFIX);
    must(inf_message_unpack(desc, inf_slice(data + INF_GRPC_PREFIX,
                                            prefix.len), &m));
    assert_int_equal(m->n_unknown_fields, 0);

    /* what protobuf-c would write has the same length */
    assert_int_equal(inf_message_packed_len(m), prefix.len);
    return m;
}

static response_t *
reply(fixture_t *f, const inf_response_builder_t *b,
    const inf_reply_options_t *options)
{
    must(write_reply(f, b, options, SIZE_MAX));
    return unpack(f->bytes.data, f->bytes.len,
                  &inference__model_infer_response__descriptor);
}

static void
assert_raw(const response_t *m, size_t i, const void *data, size_t len)
{
    assert_true(i < m->n_raw_output_contents);
    assert_int_equal(m->raw_output_contents[i].len, len);
    assert_memory_equal(m->raw_output_contents[i].data, data, len);
}

/* ---- responses ---- */

static void
a_response_is_what_protobuf_writes(void **state)
{
    static const int64_t small[] = { 2, 300 }, none[] = { 0 };
    static const int64_t large[] = { 40000 };
    const inf_response_output_desc_t outputs[] = {
        { .name = INF_SLICE("S"), .datatype = INF_TYPE_INT8, .dim_count = 2,
          .shape = small, .data_length = 600, .data_offset = 64 },
        { .name = INF_SLICE("E"), .datatype = INF_TYPE_BF16, .dim_count = 1,
          .shape = none },
        { .name = INF_SLICE("M"), .datatype = INF_TYPE_FP32, .dim_count = 0,
          .data_kind = INF_DATA_SHM_REGION },
        { .name = INF_SLICE("T"), .datatype = INF_TYPE_UINT64,
          .dim_count = 1, .shape = small, .data_length = 16,
          .data_offset = 704 },
        { .name = INF_SLICE("L"), .datatype = INF_TYPE_UINT8,
          .dim_count = 1, .shape = large, .data_length = 40000,
          .data_offset = 1024 }
    };
    const inf_response_builder_t b = {
        .model_name = INF_SLICE("m\xc3\xa9"), .model_version = 12,
        .id = INF_SLICE("seven"), .output_count = 5, .outputs = outputs
    };
    fixture_t f;
    response_t *m = reply(&f, &b, NULL);

    (void) state;
    assert_string_equal(m->model_name, "m\xc3\xa9");
    assert_string_equal(m->model_version, "12");
    assert_string_equal(m->id, "seven");
    assert_int_equal(m->n_parameters, 0);
    assert_int_equal(m->n_outputs, 5);
    assert_int_equal(m->n_raw_output_contents, 5);
    assert_string_equal(m->outputs[0]->name, "S");
    assert_string_equal(m->outputs[0]->datatype, "INT8");
    assert_int_equal(m->outputs[0]->n_shape, 2);
    assert_int_equal(m->outputs[0]->shape[1], 300);
    assert_string_equal(m->outputs[1]->datatype, "BF16");
    assert_int_equal(m->outputs[1]->shape[0], 0);
    assert_int_equal(m->outputs[2]->n_shape, 0);
    assert_raw(m, 0, f.arena + 64, 600);
    assert_raw(m, 1, "", 0);
    assert_raw(m, 2, "", 0);
    assert_raw(m, 3, f.arena + 704, 16);
    assert_raw(m, 4, f.arena + 1024, 40000);

    /* head, S, heads and T, L */
    assert_int_equal(f.pieces, 4);
    assert_ptr_equal(inf_reply_piece(f.reply, 1).data, f.arena + 64);
    assert_ptr_equal(inf_reply_piece(f.reply, 3).data, f.arena + 1024);
    inf_message_free(&m->base);
    fini(&f);
}

static void
small_tensors_leave_one_piece(void **state)
{
    static const int64_t shape[] = { INF_REPLY_COPIED };
    const inf_response_output_desc_t output = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_UINT8, .dim_count = 1,
        .shape = shape, .data_length = INF_REPLY_COPIED
    };
    const inf_response_builder_t b = {
        .model_name = INF_SLICE("m"), .output_count = 1, .outputs = &output
    };
    fixture_t f;
    response_t *m = reply(&f, &b, NULL);

    (void) state;
    assert_int_equal(f.pieces, 1);
    assert_string_equal(m->model_version, "0");
    assert_string_equal(m->id, "");
    assert_raw(m, 0, f.arena, INF_REPLY_COPIED);
    inf_message_free(&m->base);
    fini(&f);
}

static void
a_response_without_outputs_is_a_message(void **state)
{
    const inf_response_builder_t b = { .model_version = -1 };
    fixture_t f;
    response_t *m = reply(&f, &b, NULL);

    (void) state;
    assert_int_equal(m->n_outputs, 0);
    assert_string_equal(m->model_version, "-1");
    inf_message_free(&m->base);
    fini(&f);
}

static void
parameters_have_their_type(void **state)
{
    const inf_response_parameter_desc_t rows[] = {
        { .name = INF_SLICE("s"), .type = INF_PARAMETER_STRING,
          .text = INF_SLICE("text") },
        { .name = INF_SLICE("e"), .type = INF_PARAMETER_STRING,
          .text = INF_SLICE("") },
        { .name = INF_SLICE("i"), .type = INF_PARAMETER_INT, .i = -7 },
        { .name = INF_SLICE("b"), .type = INF_PARAMETER_BOOL, .i = 0 },
        { .name = INF_SLICE("d"), .type = INF_PARAMETER_DOUBLE, .d = 0.5 }
    };
    inf_response_builder_t b = { .parameter_count = 5, .parameters = rows };
    fixture_t f;
    response_t *m = reply(&f, &b, NULL);

    (void) state;
    assert_int_equal(m->n_parameters, 5);
    assert_string_equal(m->parameters[0]->key, "s");
    assert_int_equal(m->parameters[0]->value->parameter_choice_case,
        INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM);
    assert_string_equal(m->parameters[0]->value->string_param, "text");
    assert_string_equal(m->parameters[1]->value->string_param, "");
    assert_int_equal(m->parameters[2]->value->int64_param, -7);
    assert_int_equal(m->parameters[3]->value->parameter_choice_case,
        INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM);
    assert_int_equal(m->parameters[3]->value->bool_param, 0);
    assert_true(m->parameters[4]->value->double_param == 0.5);
    inf_message_free(&m->base);
    fini(&f);

    const inf_response_parameter_desc_t bytes = {
        .name = INF_SLICE("p"), .type = INF_PARAMETER_BYTES
    };
    b.parameter_count = 1;
    b.parameters = &bytes;

    inf_err_t *err = write_reply(&f, &b, NULL, SIZE_MAX);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNSUPPORTED);
    assert_string_equal(inf_err_msg(err), "response parameter 'p' of type "
                        "BYTES is not supported");
    inf_err_free(err);
    fini(&f);
}

static void
texts_that_are_not_utf8_leave_the_message_readable(void **state)
{
    const inf_response_builder_t b = { .model_name = INF_SLICE("a\xff" "b") };
    fixture_t f;
    response_t *m = reply(&f, &b, NULL);

    (void) state;
    assert_string_equal(m->model_name, "a?b");
    inf_message_free(&m->base);
    fini(&f);
}

static void
classes_are_a_bytes_tensor(void **state)
{
    static const int64_t shape[] = { 2, 3 };
    static const uint8_t values[] = { 5, 9, 1, 7, 0, 8 };
    static const inf_slice_t labels[] = {
        INF_SLICE("cat"), INF_SLICE("dog"), INF_SLICE("")
    };
    const inf_response_output_desc_t outputs[] = {
        { .name = INF_SLICE("O"), .datatype = INF_TYPE_UINT8,
          .dim_count = 2, .shape = shape, .data_length = 6,
          .labels = labels, .label_count = 3 },
        { .name = INF_SLICE("P"), .datatype = INF_TYPE_UINT8,
          .dim_count = 2, .shape = shape, .data_length = 6 }
    };
    const inf_response_builder_t b = {
        .batch_dim = 1, .output_count = 2, .outputs = outputs
    };
    const inf_infer_output_t asked[] = {
        { .name = INF_SLICE("P") },
        { .name = INF_SLICE("O"), .classification = 2 }
    };
    const inf_reply_options_t options = {
        .outputs = asked, .output_count = 2
    };
    static const char want[] =
        "\x07\0\0\0" "9:1:dog" "\x07\0\0\0" "5:0:cat"
        "\x03\0\0\0" "8:2" "\x07\0\0\0" "7:0:cat";
    fixture_t f;

    (void) state;
    for (size_t budget = 1; budget < 20; budget++) {
        inf_err_t *err = NULL;
        inf_codec_t rc;

        must(write_reply(&f, &b, &options, SIZE_MAX));
        memcpy(f.arena, values, sizeof(values));
        must(inf_reply_new(&f.reply, f.record, f.arena, &options, &f.pool));
        do {
            rc = inf_reply_prepare(f.reply, budget, &err);
        } while (rc == INF_CODEC_AGAIN);

        must(err);
        assert_int_equal(inf_reply_piece_count(f.reply), 1);
        inf_slice_t piece = inf_reply_piece(f.reply, 0);
        response_t *m = unpack(piece.data, piece.len,
                               &inference__model_infer_response__descriptor);

        assert_string_equal(m->outputs[0]->datatype, "BYTES");
        assert_int_equal(m->outputs[0]->n_shape, 2);
        assert_int_equal(m->outputs[0]->shape[0], 2);
        assert_int_equal(m->outputs[0]->shape[1], 2);
        assert_raw(m, 0, want, sizeof(want) - 1);
        assert_string_equal(m->outputs[1]->datatype, "UINT8");
        assert_raw(m, 1, values, 6);
        inf_message_free(&m->base);
        fini(&f);
    }
}

static void
what_cannot_be_classified_is_an_error(void **state)
{
    static const int64_t shape[] = { 1 };
    const inf_response_output_desc_t output = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_BOOL, .dim_count = 1,
        .shape = shape, .data_length = 1
    };
    const inf_response_builder_t b = {
        .output_count = 1, .outputs = &output
    };
    const inf_infer_output_t asked = {
        .name = INF_SLICE("O"), .classification = 2
    };
    const inf_reply_options_t options = {
        .outputs = &asked, .output_count = 1
    };
    fixture_t f;

    (void) state;
    inf_err_t *err = write_reply(&f, &b, &options, SIZE_MAX);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    inf_err_free(err);
    fini(&f);
}

/* ---- streams ---- */

static void
a_response_of_a_stream_says_whether_it_is_the_last(void **state)
{
    static const int64_t shape[] = { 1000 };
    const inf_response_output_desc_t output = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_UINT8, .dim_count = 1,
        .shape = shape, .data_length = 1000
    };
    const inf_response_parameter_desc_t row = {
        .name = INF_SLICE("p"), .type = INF_PARAMETER_INT, .i = 1
    };
    const inf_response_builder_t b = {
        .id = INF_SLICE("i"), .model_name = INF_SLICE("m"),
        .model_version = 1, .output_count = 1, .outputs = &output,
        .parameter_count = 1, .parameters = &row
    };

    (void) state;
    for (int final = 0; final < 2; final++) {
        const inf_reply_options_t options = { .stream = true, .final = final };
        fixture_t f;

        must(write_reply(&f, &b, &options, SIZE_MAX));
        stream_t *m = unpack(f.bytes.data, f.bytes.len,
                      &inference__model_stream_infer_response__descriptor);
        const response_t *r = m->infer_response;

        assert_string_equal(m->error_message, "");
        assert_non_null(r);
        assert_string_equal(r->id, "i");
        assert_int_equal(r->n_parameters, 2);
        assert_string_equal(r->parameters[1]->key, "triton_final_response");
        assert_int_equal(r->parameters[1]->value->parameter_choice_case,
            INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM);
        assert_int_equal(r->parameters[1]->value->bool_param, final);
        assert_raw(r, 0, f.arena, 1000);
        assert_int_equal(f.pieces, 2);
        inf_message_free(&m->base);
        fini(&f);
    }
}

static stream_t *
notice(inf_arena_t *pool, const inf_reply_notice_t *n)
{
    inf_slice_t bytes;

    must(inf_reply_notice(&bytes, n, pool));
    return unpack(bytes.data, bytes.len,
                  &inference__model_stream_infer_response__descriptor);
}

static void
an_error_on_a_stream_is_a_message(void **state)
{
    const inf_reply_notice_t early = {
        .error = INF_SLICE("no such model"), .id = INF_SLICE("7")
    };
    const inf_reply_notice_t late = {
        .error = INF_SLICE("failed \xff"), .id = INF_SLICE("7"),
        .model_name = INF_SLICE("m"), .model_version = INF_SLICE("2"),
        .answered = true, .final = true
    };
    const inf_reply_notice_t empty = { .error = { NULL, 0 } };
    inf_arena_t pool;

    (void) state;
    inf_arena_init(&pool);

    stream_t *m = notice(&pool, &early);
    assert_string_equal(m->error_message, "no such model");
    assert_string_equal(m->infer_response->id, "7");
    assert_int_equal(m->infer_response->n_parameters, 0);
    inf_message_free(&m->base);

    m = notice(&pool, &late);
    assert_string_equal(m->error_message, "failed ?");
    assert_string_equal(m->infer_response->model_name, "m");
    assert_string_equal(m->infer_response->model_version, "2");
    assert_int_equal(m->infer_response->n_parameters, 1);
    assert_int_equal(m->infer_response->parameters[0]->value->bool_param, 1);
    inf_message_free(&m->base);

    m = notice(&pool, &empty);
    assert_string_equal(m->error_message, "");
    assert_non_null(m->infer_response);
    inf_message_free(&m->base);
    inf_arena_fini(&pool);
}

/* Shared arenas are as large as nobody wants to allocate here: the tensors
   overlap. */
static void
a_response_over_the_limit_is_an_error(void **state)
{
    enum { COUNT = 32768 };
    static inf_response_output_desc_t outputs[COUNT];
    static const int64_t shape[] = { ARENA };
    const inf_response_builder_t b = {
        .output_count = COUNT, .outputs = outputs
    };
    fixture_t f;

    (void) state;
    for (size_t i = 0; i < COUNT; i++) {
        outputs[i] = (inf_response_output_desc_t) {
            .datatype = INF_TYPE_UINT8, .dim_count = 1, .shape = shape,
            .data_length = ARENA
        };
    }

    inf_err_t *err = write_reply(&f, &b, NULL, SIZE_MAX);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "Response has byte size 2148073475 "
        "which exceeds gRPC's byte size limit 2147483647.");
    inf_err_free(err);
    fini(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_response_is_what_protobuf_writes),
        T(small_tensors_leave_one_piece),
        T(a_response_without_outputs_is_a_message),
        T(parameters_have_their_type),
        T(texts_that_are_not_utf8_leave_the_message_readable),
        T(classes_are_a_bytes_tensor),
        T(what_cannot_be_classified_is_an_error),
        T(a_response_of_a_stream_says_whether_it_is_the_last),
        T(an_error_on_a_stream_is_a_message),
        T(a_response_over_the_limit_is_an_error)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
