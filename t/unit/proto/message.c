#include "proto/message_fixture.h"

static ProtobufCMessage *
unpack(const ProtobufCMessageDescriptor *desc, const void *data, size_t len)
{
    ProtobufCMessage *m;

    must(inf_message_unpack(desc, inf_slice(data, len), &m));
    return m;
}

static void
pack_and_unpack_are_inverse(void **state)
{
    (void) state;
    Inference__ModelReadyRequest r = INFERENCE__MODEL_READY_REQUEST__INIT;
    inf_buf_t bytes;

    r.name = "m\xc3\xa9";
    r.version = "3";
    inf_buf_init(&bytes);
    inf_buf_puts(&bytes, "before");
    must(inf_message_pack(&r.base, &bytes));
    assert_int_equal(bytes.len, 6 + inf_message_packed_len(&r.base));

    Inference__ModelReadyRequest *again = (void *) unpack(r.base.descriptor,
        bytes.data + 6, bytes.len - 6);
    assert_string_equal(again->name, r.name);
    assert_string_equal(again->version, "3");
    inf_message_free(&again->base);
    inf_buf_fini(&bytes);
}

static void
wrong_bytes_of_strings_become_question_marks(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &inference__model_config_response__descriptor;
    char bytes[] = "\x0a\x07\x2a\x05\x0a\x03" "a\xff" "b";
    char cut[] = "\x0a\x09\x2a";

    must(inf_message_repair(desc, bytes, 9));
    must_fail(inf_message_repair(desc, cut, 3),
        "inference.ModelConfigResponse: a value is longer than its message");
    assert_memory_equal(bytes + 6, "a?b", 3);
    must(inf_message_repair(desc, NULL, 0));
}

static void
a_string_that_is_not_utf8_is_rejected_by_name(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must_fail(inf_message_unpack(&inference__model_ready_request__descriptor,
        INF_SLICE("\x0a\x02\xc3\x28"), &m),
        "inference.ModelReadyRequest: name: the string is not valid UTF-8");
    must_fail(inf_message_unpack(&inference__model_ready_request__descriptor,
        INF_SLICE("\x0a\x03" "a\0b"), &m),
        "inference.ModelReadyRequest: name: the string holds a NUL byte");
    must_fail(inf_message_unpack(&inference__model_config_response__descriptor,
        INF_SLICE("\x0a\x05\x2a\x03\x0a\x01\xff"), &m),
        "inference.ModelConfigResponse: config.input.name: the string is not "
        "valid UTF-8");
}

static void
all_of_utf8_and_nothing_else_passes(void **state)
{
    (void) state;
    static const struct {
        const char  *text;
        bool         valid;
    } cases[] = {
        { "\x7f", true }, { "\xc2\x80", true }, { "\xdf\xbf", true },
        { "\xe0\xa0\x80", true }, { "\xed\x9f\xbf", true },
        { "\xef\xbf\xbf", true }, { "\xf0\x90\x80\x80", true },
        { "\xf4\x8f\xbf\xbf", true }, { "12345678\xc3\xa9" "12345678", true },
        { "\x80", false }, { "\xc0\x80", false }, { "\xc1\xbf", false },
        { "\xc3", false }, { "\xe0\x9f\xbf", false }, { "\xe2\x82", false },
        { "\xed\xa0\x80", false }, { "\xf0\x8f\xbf\xbf", false },
        { "\xf4\x90\x80\x80", false }, { "\xf5\x80\x80\x80", false },
        { "\xf0\x90\x80", false }, { "12345678\xff", false },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[64];
        ProtobufCMessage *m;
        size_t len = strlen(cases[i].text);

        bytes[0] = 0x0a;
        bytes[1] = (char) len;
        memcpy(bytes + 2, cases[i].text, len);
        inf_err_t *err = inf_message_unpack(
            &inference__model_ready_request__descriptor,
            inf_slice(bytes, len + 2), &m);
        assert_int_equal(err == NULL, cases[i].valid);
        if (err == NULL) {
            inf_message_free(m);
        }
        inf_err_free(err);
    }
}

static void
bytes_that_are_no_message_are_rejected(void **state)
{
    (void) state;
    static const struct {
        const char  *bytes;
        size_t       len;
    } cases[] = {
        { "\x0a", 1 }, { "\x0a\x05" "ab", 4 }, { "\x80", 1 },
        { "\x00\x00", 2 }, { "\x0b", 1 }, { "\x0f", 1 }, { "\x09\x01", 2 },
        { "\x0d\x01", 2 },
        { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12 },
        { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ProtobufCMessage *m;
        must_fail(inf_message_unpack(
            &inference__model_ready_request__descriptor,
            inf_slice(cases[i].bytes, cases[i].len), &m),
            "inference.ModelReadyRequest: ");
    }
}

static void
an_empty_message_is_no_bytes(void **state)
{
    (void) state;
    ProtobufCMessage *m = unpack(&inference__server_live_request__descriptor,
        NULL, 0);

    assert_int_equal(inf_message_packed_len(m), 0);
    inf_message_free(m);
}

static void
duplicate_map_keys_fold_to_the_last(void **state)
{
    (void) state;
    /* metric_tags: a=1, b=2, a=3, and a parameter without a value */
    static const char bytes[] =
        "\x52\x06\x0a\x01" "a\x12\x01" "1\x52\x06\x0a\x01" "b\x12\x01" "2"
        "\x52\x06\x0a\x01" "a\x12\x01" "3\x72\x03\x0a\x01" "p";
    Inference__ModelConfig *c = (void *) unpack(
        &inference__model_config__descriptor, bytes, sizeof(bytes) - 1);

    assert_int_equal(c->n_metric_tags, 2);
    for (size_t i = 0; i < c->n_metric_tags; i++) {
        bool first = strcmp(c->metric_tags[i]->key, "a") == 0;
        assert_string_equal(c->metric_tags[i]->key, first ? "a" : "b");
        assert_string_equal(c->metric_tags[i]->value, first ? "3" : "2");
    }
    assert_string_not_equal(c->metric_tags[0]->key, c->metric_tags[1]->key);
    assert_int_equal(c->n_parameters, 1);
    assert_non_null(c->parameters[0]->value);
    inf_message_free(&c->base);
}

static void
a_message_given_twice_is_rejected_and_not_merged_wrongly(void **state)
{
    (void) state;
    ProtobufCMessage *m;

    must_fail(inf_message_unpack(&inference__model_config_response__descriptor,
        INF_SLICE("\x0a\x02\x20\x01\x0a\x02\x20\x01"), &m),
        "inference.ModelConfigResponse: config: the message is given twice");

    /* twice, but in two messages */
    m = unpack(&inference__model_config__descriptor,
        "\x2a\x02\x2a\x00\x2a\x02\x2a\x00", 8);
    assert_int_equal(((Inference__ModelConfig *) m)->n_input, 2);
    inf_message_free(m);
}

static void
a_clone_is_equal_and_apart(void **state)
{
    (void) state;
    Inference__ModelConfig c = INFERENCE__MODEL_CONFIG__INIT;
    ProtobufCMessage *copy;

    c.name = "x\xff";                   /* a file's bytes need not be UTF-8 */
    c.max_batch_size = 3;
    must(inf_message_clone(&c.base, &copy));
    assert_same_message(&c.base, copy);
    assert_ptr_not_equal(((Inference__ModelConfig *) copy)->name, c.name);
    inf_message_free(copy);
}

static void
fields_are_put_replaced_and_cleared(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &inference__model_config__descriptor;
    ProtobufCMessage *m;
    ProtobufCMessage *child;

    must(inf_message_new(desc, &m));
    Inference__ModelConfig *c = (void *) m;
    const ProtobufCFieldDescriptor *name = inf_field_find(desc,
        INF_SLICE("name"));
    must(inf_field_put(m, name, (inf_scalar_t) { .s = INF_SLICE("one") }));
    must(inf_field_put(m, name, (inf_scalar_t) { .s = INF_SLICE("two") }));
    assert_string_equal(c->name, "two");
    inf_field_clear(m, name);
    assert_string_equal(c->name, "");

    const ProtobufCFieldDescriptor *dynamic = inf_field_find(desc,
        INF_SLICE("dynamic_batching"));
    const ProtobufCFieldDescriptor *sequence = inf_field_find(desc,
        INF_SLICE("sequence_batching"));
    must(inf_field_put_message(m, dynamic, &child));
    assert_ptr_equal(inf_field_oneof_set(m, sequence), dynamic);
    must(inf_field_put_message(m, sequence, &child));
    assert_int_equal(inf_field_count(m, dynamic), 0);
    assert_int_equal(inf_field_count(m, sequence), 1);
    inf_field_clear(m, dynamic);        /* not the one that is set */
    assert_int_equal(inf_field_count(m, sequence), 1);
    inf_field_clear(m, sequence);
    assert_null(inf_field_oneof_set(m, sequence));

    assert_null(inf_field_find(desc, INF_SLICE("names")));
    assert_null(inf_field_find(desc, INF_SLICE("nam")));
    assert_null(inf_field_find(desc, INF_SLICE("")));
    inf_message_free(m);
}

/* Arrays of an unpacked message have no room to spare. */
static void
unpacked_arrays_can_grow(void **state)
{
    (void) state;
    ProtobufCMessage *m = unpack(&inference__model_input__descriptor,
        "\x22\x03\x01\x02\x03", 5);
    Inference__ModelInput *in = (void *) m;
    const ProtobufCFieldDescriptor *dims = inf_field_find(m->descriptor,
        INF_SLICE("dims"));

    for (int64_t i = 4; i < 1000; i++) {
        must(inf_field_put(m, dims, (inf_scalar_t) { .i = i }));
    }
    assert_int_equal(in->n_dims, 999);
    for (size_t i = 0; i < in->n_dims; i++) {
        assert_int_equal(in->dims[i], i + 1);
    }
    inf_message_free(m);
}

/* Two bytes of a client's are to cost little memory. */
static void
a_request_of_many_fields_is_rejected(void **state)
{
    (void) state;
    static const struct {
        const char *bytes;          /* one field, two bytes                  */
        unsigned    max;
        const char *error;
    } cases[] = {
        { "\x78\x00", INF_MESSAGE_UNKNOWN,
          "inference.RepositoryModelLoadRequest: the message has too many"
          " unknown fields" },
        { "\x7a\x00", INF_MESSAGE_UNKNOWN,
          "inference.RepositoryModelLoadRequest: the message has too many"
          " unknown fields" },
        { "\x0a\x00", INF_MESSAGE_FIELDS,
          "inference.RepositoryModelLoadRequest: the message has too many"
          " fields" },
        { "\x1a\x00", INF_MESSAGE_FIELDS,
          "inference.RepositoryModelLoadRequest: the message has too many"
          " fields" },
    };
    const ProtobufCMessageDescriptor *desc =
        &inference__repository_model_load_request__descriptor;

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        inf_buf_t bytes;
        ProtobufCMessage *m;

        inf_buf_init(&bytes);
        for (unsigned i = 0; i < cases[k].max; i++) {
            inf_buf_put(&bytes, cases[k].bytes, 2);
        }
        must(inf_message_unpack_request(desc, inf_buf_slice(&bytes), &m));
        inf_message_free(m);

        inf_buf_put(&bytes, cases[k].bytes, 2);
        inf_err_t *err = inf_message_unpack_request(desc,
            inf_buf_slice(&bytes), &m);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        assert_string_equal(inf_err_msg(err), cases[k].error);
        inf_err_free(err);

        /* the product's own messages have no such limit */
        must(inf_message_unpack(desc, inf_buf_slice(&bytes), &m));
        inf_message_free(m);
        inf_buf_fini(&bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_and_unpack_are_inverse),
        cmocka_unit_test(wrong_bytes_of_strings_become_question_marks),
        cmocka_unit_test(a_string_that_is_not_utf8_is_rejected_by_name),
        cmocka_unit_test(all_of_utf8_and_nothing_else_passes),
        cmocka_unit_test(bytes_that_are_no_message_are_rejected),
        cmocka_unit_test(an_empty_message_is_no_bytes),
        cmocka_unit_test(duplicate_map_keys_fold_to_the_last),
        cmocka_unit_test(
            a_message_given_twice_is_rejected_and_not_merged_wrongly),
        cmocka_unit_test(a_clone_is_equal_and_apart),
        cmocka_unit_test(fields_are_put_replaced_and_cleared),
        cmocka_unit_test(unpacked_arrays_can_grow),
        cmocka_unit_test(a_request_of_many_fields_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
