/* fields and parameters without effect, named in one line of the log */

#include "common_world.h"

#include "backends/common/unused_fields.h"

static const char *const acts_on[] = { BK_FIELD_ACCELERATORS, NULL };

/* The words of the line that is logged; NULL: none is. */
static void
expect_unused(const char *json, const char *const *used, const char *words)
{
    unsigned before = fake_logged(TRITONSERVER_LOG_WARN);
    bk_model_config_t c;

    config_read(&c, json);
    bk_config_log_unused(&c, used);
    assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN),
        before + (words != NULL));
    if (words != NULL) {
        assert_string_equal(fake_last_log(), words);
    }
    bk_model_config_fini(&c);
}

#define LINE(names) \
    "model \"m\": its backend does not act on " names " of the configuration"

static void
field_that_is_set_and_not_used_is_named(void **state)
{
    static const char two[] = "{\"name\":\"m\",\"optimization\":{"
        "\"graph\":{\"level\":1},\"execution_accelerators\":{"
        "\"cpu_execution_accelerator\":[{\"name\":\"x\"}]}}}";

    (void) state;
    expect_unused("{\"name\":\"m\"}", NULL, NULL);
    expect_unused(two, NULL, LINE("optimization.graph, "
        "optimization.execution_accelerators"));
    expect_unused(two, acts_on, LINE("optimization.graph"));
}

/* In any element of a list. */
static void
field_of_a_list_is_found(void **state)
{
    (void) state;
    expect_unused("{\"name\":\"m\",\"instance_group\":[{\"count\":1},"
        "{\"profile\":[\"1\"]}],\"input\":[]}", NULL,
        LINE("instance_group.profile"));
    expect_unused("{\"name\":\"m\",\"sequence_batching\":{\"state\":["
        "{\"input_name\":\"S\",\"output_name\":\"S\",\"dims\":[1],"
        "\"data_type\":\"TYPE_FP32\"}]}}", acts_on,
        LINE(BK_FIELD_STATE));
}

static void
field_with_its_default_is_not_set(void **state)
{
    (void) state;
    expect_unused("{\"name\":\"m\",\"optimization\":{\"priority\":"
        "\"PRIORITY_DEFAULT\",\"graph\":{\"level\":0},\"cuda\":{},"
        "\"input_pinned_memory\":{\"enable\":true},\"eager_batching\":false},"
        "\"cc_model_filenames\":{}}", NULL, NULL);
    expect_unused("{\"name\":\"m\",\"optimization\":{\"priority\":"
        "\"PRIORITY_MAX\",\"output_pinned_memory\":{}}}", NULL,
        LINE("optimization.priority, optimization.output_pinned_memory"));
}

/* It is for clients. */
static void
format_of_an_input_is_not_named(void **state)
{
    (void) state;
    expect_unused("{\"name\":\"m\",\"input\":[{\"name\":\"X\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[3,2,2],\"format\":\"FORMAT_NCHW\"}]}", NULL,
        NULL);
}

static void
parameter_that_nobody_knows_is_named(void **state)
{
    static const char *const known[] = { "threads", "require_*", NULL };
    static const struct {
        const char *parameters;
        const char *names;              /* NULL: all are known               */
    } cases[] = {
        { "\"threads\":{},\"require_x\":{},\"INFERENCE_WRITABLE_INPUTS\":{}",
            NULL },
        { "\"threads\":{},\"thread\":{},\"requir\":{}", "thread, requir" },
        { "\"thread\":{},\"TRITON_BATCH_STRATEGY_PATH\":{\"string_value\":"
            "\"/x\"}", NULL }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned before = fake_logged(TRITONSERVER_LOG_WARN);
        bk_model_config_t c;
        char json[512];

        snprintf(json, sizeof(json), "{\"parameters\":{%s}}",
            cases[i].parameters);
        config_read(&c, json);
        bk_config_log_unknown(&c, NULL);
        assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN), before);
        bk_config_log_unknown(&c, known);
        assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN),
            before + (cases[i].names != NULL));
        if (cases[i].names != NULL) {
            assert_non_null(strstr(fake_last_log(), cases[i].names));
        }
        bk_model_config_fini(&c);
    }
}

/* More names than the line holds: it is cut. */
static void
names_are_cut_at_the_end_of_the_line(void **state)
{
    static const char *const none[] = { NULL };
    char json[8192] = "{\"parameters\":{";
    bk_model_config_t c;

    (void) state;
    for (int i = 0; i < 60; i++) {
        char one[64];

        snprintf(one, sizeof(one), "%s\"parameter_number_%03d\":{}",
            i == 0 ? "" : ",", i);
        strcat(json, one);
    }
    strcat(json, "}}");
    config_read(&c, json);
    bk_config_log_unknown(&c, none);
    assert_non_null(strstr(fake_last_log(), "parameter_number_020"));
    assert_null(strstr(fake_last_log(), "parameter_number_050"));
    bk_model_config_fini(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_that_is_set_and_not_used_is_named),
        cmocka_unit_test(field_of_a_list_is_found),
        cmocka_unit_test(field_with_its_default_is_not_set),
        cmocka_unit_test(format_of_an_input_is_not_named),
        cmocka_unit_test(parameter_that_nobody_knows_is_named),
        cmocka_unit_test(names_are_cut_at_the_end_of_the_line)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
