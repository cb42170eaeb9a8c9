#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/include/channel.h"
#include "core/server/rest_members.h"
#include "core/server/rest_request.h"
#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"

#define PARAMETER(kind)                                                      \
    INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_##kind##_PARAM

static const ProtobufCMessageDescriptor *
message_of(uint16_t method)
{
    switch (method) {
    case INF_METHOD_REPOSITORY_INDEX:
        return &inference__repository_index_request__descriptor;
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        return &inference__repository_model_load_request__descriptor;
    case INF_METHOD_REPOSITORY_MODEL_UNLOAD:
        return &inference__repository_model_unload_request__descriptor;
    case INF_METHOD_TRACE_SETTING:
        return &inference__trace_setting_request__descriptor;
    case INF_METHOD_LOG_SETTINGS:
        return &inference__log_settings_request__descriptor;
    case INF_METHOD_ARCHIVE_LOAD:
        return &nginx_inference__archive_load_request__descriptor;
    case INF_METHOD_ARCHIVE_UNLOAD:
        return &nginx_inference__archive_unload_request__descriptor;
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        return &inference__system_shared_memory_register_request__descriptor;
    default:
        fail_msg("method %u", method);
        return NULL;
    }
}

/* The record that a worker would make of body and name. */
static inf_err_t *
request(uint16_t method, const char *body, const char *name, size_t name_len,
    void *out)
{
    size_t len = strlen(body);
    uint32_t n = (uint32_t) name_len;
    char *record = malloc(len + name_len + sizeof(n));

    memcpy(record, body, len);
    memcpy(record + len, name, name_len);
    memcpy(record + len + name_len, &n, sizeof(n));
    ProtobufCMessage *m = NULL;
    inf_err_t *err = inf_rest_request(method, message_of(method),
        inf_slice(record, len + name_len + sizeof(n)), &m);
    free(record);
    *(ProtobufCMessage **) out = m;
    return err;
}

static void
rejected(uint16_t method, const char *body, const char *why)
{
    void *m;
    size_t in_path = method != INF_METHOD_ARCHIVE_LOAD;
    inf_err_t *err = request(method, body, "m", in_path, &m);

    assert_non_null(err);
    assert_null(m);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    if (strstr(inf_err_msg(err), why) == NULL) {
        fail_msg("%s is not in %s", why, inf_err_msg(err));
    }
    inf_err_free(err);
}

static void
bodies_become_messages(void **state)
{
    (void) state;
    Inference__RepositoryIndexRequest *index;
    Inference__RepositoryModelLoadRequest *load;
    Inference__RepositoryModelUnloadRequest *unload;

    assert_null(request(INF_METHOD_REPOSITORY_INDEX, "{\"ready\":true}", "",
        0, &index));
    assert_true(index->ready);
    inf_message_free(&index->base);
    assert_null(request(INF_METHOD_REPOSITORY_INDEX, "", "ignored", 7,
        &index));
    assert_false(index->ready);
    inf_message_free(&index->base);

    assert_null(request(INF_METHOD_REPOSITORY_MODEL_LOAD, "{\"parameters\":{"
        "\"config\":\"{}\",\"file:1/a\":\"AAH/\",\"other\":\"x\"}}", "some",
        4, &load));
    assert_string_equal(load->model_name, "some");
    assert_int_equal(load->n_parameters, 3);
    for (size_t i = 0; i < 3; i++) {
        const Inference__ModelRepositoryParameter *p =
            load->parameters[i]->value;
        if (strcmp(load->parameters[i]->key, "file:1/a") == 0) {
            assert_int_equal(p->parameter_choice_case, PARAMETER(BYTES));
            assert_int_equal(p->bytes_param.len, 3);
            assert_memory_equal(p->bytes_param.data, "\0\1\377", 3);
        } else {
            assert_int_equal(p->parameter_choice_case, PARAMETER(STRING));
            assert_string_equal(p->string_param,
                strcmp(load->parameters[i]->key, "config") == 0 ? "{}" : "x");
        }
    }
    inf_message_free(&load->base);
    assert_null(request(INF_METHOD_REPOSITORY_MODEL_LOAD, "{}", "m", 1,
        &load));
    assert_int_equal(load->n_parameters, 0);
    inf_message_free(&load->base);

    assert_null(request(INF_METHOD_REPOSITORY_MODEL_UNLOAD, "{\"parameters\":"
        "{\"unload_dependents\":true}}", "m", 1, &unload));
    assert_int_equal(unload->n_parameters, 1);
    assert_true(unload->parameters[0]->value->bool_param);
    inf_message_free(&unload->base);
}

static void
archives_become_messages(void **state)
{
    (void) state;
    NginxInference__ArchiveLoadRequest *load;
    NginxInference__ArchiveUnloadRequest *unload;

    assert_null(request(INF_METHOD_ARCHIVE_LOAD, "{\"url\":\"/a/b\","
        "\"model_name\":\"m\",\"other\":1}", "", 0, &load));
    assert_string_equal(load->model_name, "m");
    assert_string_equal(load->url, "/a/b");
    inf_message_free(&load->base);

    assert_null(request(INF_METHOD_ARCHIVE_UNLOAD, "", "m", 1, &unload));
    assert_string_equal(unload->model_name, "m");
    inf_message_free(&unload->base);

    rejected(INF_METHOD_ARCHIVE_LOAD, "", "'model_name' must be a string");
    rejected(INF_METHOD_ARCHIVE_LOAD, "{\"model_name\":\"m\",\"url\":null}",
        "'url' must be a string");
    rejected(INF_METHOD_ARCHIVE_LOAD, "{\"model_name\":\"a\\u0000b\","
        "\"url\":\"/\"}", "NUL");
}

static void
members_become_fields(void **state)
{
    (void) state;
    Inference__SystemSharedMemoryRegisterRequest *shm;
    uint16_t method = INF_METHOD_SYSTEM_SHM_REGISTER;

    assert_null(request(method, "{\"key\":\"/k\",\"name\":\"other\","
        "\"offset\":4096,\"byte_size\":8}", "r", 1, &shm));
    assert_string_equal(shm->name, "r");
    assert_string_equal(shm->key, "/k");
    assert_int_equal(shm->offset, 4096);
    assert_int_equal(shm->byte_size, 8);
    inf_message_free(&shm->base);
    rejected(method, "{\"key\":\"/k\"}", "has no 'byte_size' field");
    rejected(method, "{\"byte_size\":1}", "has no 'key' field");
    rejected(method, "{\"key\":1,\"byte_size\":1}", "'key' must be a string");
    rejected(method, "{\"key\":\"/k\",\"byte_size\":-1}",
        "'byte_size' must be an integer");

    /* every type of field */
    Inference__RepositoryIndexRequest index =
        INFERENCE__REPOSITORY_INDEX_REQUEST__INIT;
    json_t *root = json_pack("{s:s,s:b}", "repository_name", "a", "ready", 1);
    assert_null(inf_rest_members(&index.base, root, inf_slice(NULL, 0)));
    assert_string_equal(index.repository_name, "a");
    assert_true(index.ready);
    free(index.repository_name);
    json_decref(root);

    Inference__TraceSettingRequest trace =
        INFERENCE__TRACE_SETTING_REQUEST__INIT;
    inf_err_t *err = inf_rest_members(&trace.base, NULL, inf_slice_str("m"));
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNSUPPORTED);
    inf_err_free(err);
    free(trace.model_name == protobuf_c_empty_string ? NULL
        : trace.model_name);
}

static void
settings_become_messages(void **state)
{
    (void) state;
    Inference__TraceSettingRequest *trace;
    Inference__LogSettingsRequest *log;

    assert_null(request(INF_METHOD_TRACE_SETTING, "{\"trace_level\":"
        "[\"TIMESTAMPS\",\"TENSORS\"],\"trace_rate\":\"7\",\"trace_count\":"
        "null,\"other\":1}", "some", 4, &trace));
    assert_string_equal(trace->model_name, "some");
    assert_int_equal(trace->n_settings, 3);
    assert_string_equal(trace->settings[0]->key, "trace_level");
    assert_int_equal(trace->settings[0]->value->n_value, 2);
    assert_string_equal(trace->settings[0]->value->value[1], "TENSORS");
    assert_string_equal(trace->settings[1]->value->value[0], "7");
    assert_int_equal(trace->settings[2]->value->n_value, 0);
    inf_message_free(&trace->base);

    assert_null(request(INF_METHOD_LOG_SETTINGS, "{\"log_file\":null,"
        "\"log_info\":false,\"log_warning\":null,\"log_verbose_level\":3,"
        "\"log_format\":\"ISO8601\"}", "", 0, &log));
    assert_int_equal(log->n_settings, 3);
    assert_string_equal(log->settings[0]->key, "log_info");
    assert_false(log->settings[0]->value->bool_param);
    assert_int_equal(log->settings[1]->value->uint32_param, 3);
    assert_string_equal(log->settings[2]->value->string_param, "ISO8601");
    inf_message_free(&log->base);
}

static void
wrong_settings_are_told_by_code(void **state)
{
    (void) state;
    static const struct {
        uint16_t       method;
        const char    *body;
        inf_err_code_t code;
    } cases[] = {
        { INF_METHOD_TRACE_SETTING, "", INF_ERR_INTERNAL },
        { INF_METHOD_TRACE_SETTING, "{\"trace_file\":null}",
          INF_ERR_UNSUPPORTED },
        { INF_METHOD_TRACE_SETTING, "{\"trace_rate\":1}", INF_ERR_INTERNAL },
        { INF_METHOD_TRACE_SETTING, "{\"trace_level\":[1]}",
          INF_ERR_INTERNAL },
        { INF_METHOD_TRACE_SETTING, "{\"trace_rate\":\"\\u0000\"}",
          INF_ERR_INVALID_ARG },
        { INF_METHOD_LOG_SETTINGS, "", INF_ERR_INTERNAL },
        { INF_METHOD_LOG_SETTINGS, "{\"log_file\":\"\"}",
          INF_ERR_UNSUPPORTED },
        { INF_METHOD_LOG_SETTINGS, "{\"log_verbose_level\":-1}",
          INF_ERR_INTERNAL },
        { INF_METHOD_LOG_SETTINGS, "{\"log_format\":\"x\"}",
          INF_ERR_UNAVAILABLE }
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *m;
        inf_err_t *err = request(cases[i].method, cases[i].body, "", 0, &m);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), cases[i].code);
        inf_err_free(err);
    }
}

static void
wrong_bodies_say_what_is_wrong(void **state)
{
    (void) state;
    uint16_t load = INF_METHOD_REPOSITORY_MODEL_LOAD;

    rejected(load, "{", "failed to parse the request JSON buffer: Missing a"
        " name for object member. at 1");
    rejected(load, "AAAA", "failed to parse the request JSON buffer: Invalid"
        " value. at 0");
    rejected(load, "{} {}", "failed to parse the request JSON buffer: The"
        " document root must not be followed by other values. at 3");
    rejected(load, "5", "must be an object");
    rejected(load, "{\"parameters\":5}", "'parameters' must be an object");
    rejected(load, "{\"parameters\":{},\"parameters\":{}}", "duplicate");
    rejected(INF_METHOD_REPOSITORY_INDEX, "{\"ready\":true,\"ready\":true}",
        "duplicate");
    rejected(load, "{\"parameters\":{\"config\":{}}}", "must be a string");
    rejected(load, "{\"parameters\":{\"config\":\"a\\u0000b\"}}", "NUL");
    rejected(load, "{\"parameters\":{\"file:a\":\"*\"}}", "is not base64");
    rejected(INF_METHOD_REPOSITORY_MODEL_UNLOAD,
        "{\"parameters\":{\"unload_dependents\":1}}", "must be a boolean");
    rejected(INF_METHOD_REPOSITORY_INDEX, "{\"ready\":\"yes\"}",
        "must be a boolean");
}

/* A worker may be broken. */
static void
broken_records_are_rejected(void **state)
{
    (void) state;
    static const char *const records[] = {
        "", "abc", "\xff\xff\xff\xff", "\x01\x00\x00\x00",
        "\x00\x01\x00\x00\x00", "\xff\x01\x00\x00\x00"
    };
    static const size_t lens[] = { 0, 3, 4, 4, 5, 5 };
    ProtobufCMessage *m;

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        inf_err_t *err = inf_rest_request(INF_METHOD_REPOSITORY_MODEL_LOAD,
            message_of(INF_METHOD_REPOSITORY_MODEL_LOAD),
            inf_slice(records[i], lens[i]), &m);
        assert_non_null(err);
        inf_err_free(err);
    }

    inf_err_t *err = request(INF_METHOD_REPOSITORY_MODEL_LOAD, "", "a\0b", 3,
        &m);
    assert_non_null(err);
    inf_err_free(err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_become_messages),
        cmocka_unit_test(archives_become_messages),
        cmocka_unit_test(members_become_fields),
        cmocka_unit_test(settings_become_messages),
        cmocka_unit_test(wrong_settings_are_told_by_code),
        cmocka_unit_test(wrong_bodies_say_what_is_wrong),
        cmocka_unit_test(broken_records_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
