/* controls and states of sequence_batching */

#include "common_world.h"

#define SEQUENCE(text) "{\"sequence_batching\":{" text "}}"
#define CONTROL(text) SEQUENCE("\"control_input\":[{\"name\":\"C\"," \
    "\"control\":[{" text "}]}]")
#define STATE(type, dims) SEQUENCE("\"state\":[{\"input_name\":\"SI\"," \
    "\"output_name\":\"SO\",\"data_type\":\"" type "\",\"dims\":[" dims "]}]")

static void
control_has_the_datatype_of_its_values(void **state)
{
    static const struct {
        const char           *config;
        TRITONSERVER_DataType datatype;
    } cases[] = {
        { CONTROL("\"int32_false_true\":[0,1]"), TRITONSERVER_TYPE_INT32 },
        { CONTROL("\"fp32_false_true\":[0,1]"), TRITONSERVER_TYPE_FP32 },
        { CONTROL("\"bool_false_true\":[false,true]"),
            TRITONSERVER_TYPE_BOOL },
        { CONTROL("\"kind\":\"CONTROL_SEQUENCE_CORRID\","
            "\"data_type\":\"TYPE_UINT64\""), TRITONSERVER_TYPE_UINT64 }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bk_model_config_t c;

        config_read(&c, cases[i].config);
        assert_int_equal(c.sequence.control_count, 1);
        assert_int_equal(c.sequence.controls[0].datatype, cases[i].datatype);
        bk_model_config_fini(&c);
    }
}

static void
control_without_a_datatype_is_rejected(void **state)
{
    bk_model_config_t c;

    (void) state;
    expect_error(config_load(&c, CONTROL("\"int32_false_true\":[]")),
        TRITONSERVER_ERROR_INVALID_ARG,
        "control input \"C\" has no datatype");
    expect_error(config_load(&c, SEQUENCE("\"control_input\":[{}]")),
        TRITONSERVER_ERROR_INVALID_ARG, "control input \"\"");
}

static void
state_is_an_input_and_an_output(void **state)
{
    bk_model_config_t c;

    (void) state;
    config_read(&c, STATE("TYPE_FP16", "-1,3"));
    const bk_state_t *s = &c.sequence.states[0];
    assert_int_equal(s->datatype, TRITONSERVER_TYPE_FP16);
    assert_int_equal(s->dims_count, 2);
    assert_int_equal(s->dims[0], -1);
    assert_int_equal(s->dims[1], 3);
    assert_true(bk_sequence_has_input(&c.sequence, "SI"));
    assert_false(bk_sequence_has_input(&c.sequence, "SO"));
    assert_false(bk_sequence_has_control(&c.sequence, "SI"));
    assert_true(bk_sequence_has_output(&c.sequence, "SO"));
    assert_false(bk_sequence_has_output(&c.sequence, "SI"));
    bk_model_config_fini(&c);

    config_read(&c, CONTROL("\"bool_false_true\":[false,true]"));
    assert_true(bk_sequence_has_input(&c.sequence, "C"));
    assert_true(bk_sequence_has_control(&c.sequence, "C"));
    assert_false(bk_sequence_has_output(&c.sequence, "C"));
    bk_model_config_fini(&c);
}

#define EIGHT "1,1,1,1,1,1,1,1"
#define DIMS_64 EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT "," EIGHT "," \
    EIGHT "," EIGHT

static void
state_is_rejected_with_a_datatype_or_rank_that_no_tensor_has(void **state)
{
    bk_model_config_t c;

    (void) state;
    config_read(&c, STATE("TYPE_INT8", DIMS_64));
    bk_model_config_fini(&c);
    expect_error(config_load(&c, STATE("TYPE_INT8", DIMS_64 ",1")),
        TRITONSERVER_ERROR_INVALID_ARG, "state \"SI\" has data_type "
        "\"TYPE_INT8\" and 65 dimensions");
    expect_error(config_load(&c, STATE("FP32", "1")),
        TRITONSERVER_ERROR_INVALID_ARG, "state \"SI\" has data_type \"FP32\"");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_has_the_datatype_of_its_values),
        cmocka_unit_test(control_without_a_datatype_is_rejected),
        cmocka_unit_test(state_is_an_input_and_an_output),
        cmocka_unit_test(
            state_is_rejected_with_a_datatype_or_rank_that_no_tensor_has)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
