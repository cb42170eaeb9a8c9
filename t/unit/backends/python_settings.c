#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "python/settings.h"

static TRITONSERVER_Error *
init(py_settings_t *s, const char *text)
{
    return py_settings_init(s, text, strlen(text));
}

static void
assert_fails(TRITONSERVER_Error *err, const char *why)
{
    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), why) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", why, TRITONSERVER_ErrorMessage(err));
    }
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_INVALID_ARG);
    bk_err_drop(err);
}

static void
defaults_hold_without_settings(void **state)
{
    (void) state;
    static const char *const texts[] = { "", "{}", "{\"cmdline\": {}}",
        "{\"cmdline\": {\"interpreter\": \"\"}}" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        py_settings_t s;
        assert_null(init(&s, texts[i]));
        assert_null(s.interpreter);
        assert_int_equal(s.start_timeout_ns, 30000000000u);
        assert_int_equal(s.environment_bytes, UINT64_C(32) << 30);
        py_settings_fini(&s);
    }
}

static void
settings_are_read_and_those_of_triton_accepted(void **state)
{
    (void) state;
    py_settings_t s;

    assert_null(init(&s, "{\"cmdline\": {\"interpreter\": \"/opt/p/python\","
        " \"stub-timeout-seconds\": \"7\", \"shm-default-byte-size\": \"1\","
        " \"shm-growth-byte-size\": \"1\", \"thread-pool-size\": \"x\","
        " \"shm-region-prefix-name\": \"p\", \"shm_message_queue_size\":"
        " \"1\", \"no-such-setting\": \"1\","
        " \"environment-byte-size\": \"123\"}}"));
    assert_string_equal(s.interpreter, "/opt/p/python");
    assert_int_equal(s.start_timeout_ns, 7000000000u);
    assert_int_equal(s.environment_bytes, 123);
    py_settings_fini(&s);
}

static void
values_that_are_no_numbers_are_rejected(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "{\"cmdline\": {\"stub-timeout-seconds\": \"\"}}",
        "{\"cmdline\": {\"stub-timeout-seconds\": \"0\"}}",
        "{\"cmdline\": {\"stub-timeout-seconds\": \"-1\"}}",
        "{\"cmdline\": {\"stub-timeout-seconds\": \"5s\"}}",
        "{\"cmdline\": {\"stub-timeout-seconds\": \"99999999999999999999\"}}"
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        py_settings_t s;
        assert_fails(init(&s, texts[i]), "stub-timeout-seconds");
    }

    py_settings_t s;
    assert_fails(init(&s, "{\"cmdline\": {\"environment-byte-size\": "
        "\"1G\"}}"), "environment-byte-size");
}

static void
text_that_is_no_json_is_rejected(void **state)
{
    (void) state;
    py_settings_t s;
    assert_fails(init(&s, "{"), "configuration of backend python");
}

/* Reads the parameters of a configuration; the error is the caller's. */
static TRITONSERVER_Error *
read_model(const char *parameters, bk_model_config_t *config,
    py_model_settings_t *s)
{
    *config = (bk_model_config_t) { .root = NULL };
    assert_null(bk_json_parse(parameters, strlen(parameters), &config->root));
    return py_model_settings_read(s, config);
}

static void
parameters_of_a_model_are_read(void **state)
{
    (void) state;
    bk_model_config_t config;
    py_model_settings_t s;

    assert_null(read_model("{}", &config, &s));
    assert_null(s.environment);
    assert_true(s.cpu_inputs);
    assert_false(s.zero_copy);
    bk_json_free(config.root);

    assert_null(read_model("{\"parameters\": {\"EXECUTION_ENV_PATH\":"
        " {\"string_value\": \"/e\"}, \"FORCE_CPU_ONLY_INPUT_TENSORS\":"
        " {\"string_value\": \"no\"}, \"ZERO_COPY_INPUTS\":"
        " {\"string_value\": \"TRUE\"}}}", &config, &s));
    assert_string_equal(s.environment, "/e");
    assert_false(s.cpu_inputs);
    assert_true(s.zero_copy);
    bk_json_free(config.root);
}

static void
switch_that_is_neither_yes_nor_no_is_rejected(void **state)
{
    (void) state;
    bk_model_config_t config;
    py_model_settings_t s;

    assert_fails(read_model("{\"parameters\":"
        " {\"FORCE_CPU_ONLY_INPUT_TENSORS\": {\"string_value\": \"on\"}}}",
        &config, &s),
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: 'on'");
    bk_json_free(config.root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_without_settings),
        cmocka_unit_test(settings_are_read_and_those_of_triton_accepted),
        cmocka_unit_test(values_that_are_no_numbers_are_rejected),
        cmocka_unit_test(text_that_is_no_json_is_rejected),
        cmocka_unit_test(parameters_of_a_model_are_read),
        cmocka_unit_test(switch_that_is_neither_yes_nor_no_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
