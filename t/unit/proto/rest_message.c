#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/proto/rest_message.h"
#include "grpc_service.pb-c.h"

static void *
message_of(uint16_t method, const char *text,
    const ProtobufCMessageDescriptor *desc)
{
    ProtobufCMessage *m;
    inf_buf_t out;

    inf_buf_init(&out);
    assert_null(inf_rest_message(method, inf_slice_str(text), &out));
    assert_null(inf_message_unpack(desc, inf_buf_slice(&out), &m));
    inf_buf_fini(&out);
    return m;
}

static void
rows_of_an_index_are_models(void **state)
{
    (void) state;
    Inference__RepositoryIndexResponse *r = message_of(
        INF_METHOD_REPOSITORY_INDEX,
        "[{\"name\":\"a\",\"version\":\"1\",\"state\":\"READY\"},"
        "{\"name\":\"b\",\"reason\":\"r\"}]",
        &inference__repository_index_response__descriptor);

    assert_int_equal(r->n_models, 2);
    assert_string_equal(r->models[0]->name, "a");
    assert_string_equal(r->models[0]->version, "1");
    assert_string_equal(r->models[0]->state, "READY");
    assert_string_equal(r->models[1]->name, "b");
    assert_string_equal(r->models[1]->version, "");
    assert_string_equal(r->models[1]->reason, "r");
    inf_message_free(&r->base);
}

static void
metadata_are_messages(void **state)
{
    (void) state;
    Inference__ServerMetadataResponse *s = message_of(
        INF_METHOD_SERVER_METADATA,
        "{\"name\":\"us\",\"version\":\"1\",\"extensions\":[\"a\",\"b\"]}",
        &inference__server_metadata_response__descriptor);
    Inference__ModelMetadataResponse *m = message_of(
        INF_METHOD_MODEL_METADATA,
        "{\"name\":\"m\",\"versions\":[\"7\"],\"inputs\":[{\"name\":\"IN\","
        "\"datatype\":\"INT32\",\"shape\":[-1,16]}]}",
        &inference__model_metadata_response__descriptor);

    assert_string_equal(s->name, "us");
    assert_string_equal(s->version, "1");
    assert_int_equal(s->n_extensions, 2);
    assert_string_equal(s->extensions[1], "b");
    assert_string_equal(m->versions[0], "7");
    assert_string_equal(m->inputs[0]->datatype, "INT32");
    assert_int_equal(m->inputs[0]->shape[0], -1);
    assert_int_equal(m->inputs[0]->shape[1], 16);
    inf_message_free(&s->base);
    inf_message_free(&m->base);
}

static void
other_texts_and_methods_are_errors(void **state)
{
    (void) state;
    static const struct {
        uint16_t    method;
        const char *text;
    } wrong[] = {
        { INF_METHOD_REPOSITORY_INDEX, "" },
        { INF_METHOD_REPOSITORY_INDEX, "[" },
        { INF_METHOD_REPOSITORY_INDEX, "[{\"other\":1}]" },
        { INF_METHOD_SERVER_METADATA, "[]" },
        { INF_METHOD_MODEL_METADATA, "{\"inputs\":1}" },
        { INF_METHOD_MODEL_CONFIG, "{}" }
    };
    inf_buf_t out;

    inf_buf_init(&out);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        inf_err_t *err = inf_rest_message(wrong[i].method,
            inf_slice_str(wrong[i].text), &out);
        assert_non_null(err);
        inf_err_free(err);
    }
    inf_buf_fini(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_an_index_are_models),
        cmocka_unit_test(metadata_are_messages),
        cmocka_unit_test(other_texts_and_methods_are_errors)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
