/* a model's configuration as a struct, and its parameters */

#include "common_world.h"

#define P(value) "{\"parameters\":{\"p\":{\"string_value\":\"" value "\"}}}"

static void
configuration_has_tensors_and_batch_size(void **state)
{
    bk_model_config_t c;

    (void) state;
    config_read(&c, "{\"name\":\"m\",\"max_batch_size\":8,\"input\":[{"
        "\"name\":\"X\",\"data_type\":\"TYPE_STRING\",\"dims\":[4,-1],"
        "\"reshape\":{\"shape\":[-1]},\"optional\":true}],"
        "\"output\":[{\"name\":\"Y\",\"data_type\":\"TYPE_BF16\","
        "\"dims\":[]}]}");
    assert_string_equal(c.name, "m");
    assert_int_equal(c.max_batch_size, 8);
    assert_int_equal(c.input_count, 1);
    assert_int_equal(c.inputs[0].datatype, TRITONSERVER_TYPE_BYTES);
    assert_int_equal(c.inputs[0].dims_count, 2);
    assert_int_equal(c.inputs[0].dims[0], 4);
    assert_int_equal(c.inputs[0].model_dims_count, 1);
    assert_int_equal(c.inputs[0].model_dims[0], -1);
    assert_true(c.inputs[0].optional);
    assert_false(c.inputs[0].ragged);
    assert_int_equal(c.outputs[0].datatype, TRITONSERVER_TYPE_BF16);
    assert_int_equal(c.outputs[0].model_dims_count, 0);
    bk_model_config_fini(&c);

    config_read(&c, "");
    assert_string_equal(c.name, "");
    assert_int_equal(c.input_count, 0);
    bk_model_config_fini(&c);
}

static void
configuration_is_rejected_by_the_field_that_is_wrong(void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        { "{\"input\":[{}]}", "an input has no name" },
        { "{\"output\":[{\"name\":\"\"}]}", "an output has no name" },
        { "{\"input\":[{\"name\":\"X\",\"data_type\":\"FP32\"}]}",
            "input \"X\" has data_type \"FP32\"" },
        { "{\"input\":[{\"name\":\"X\"}]}", "data_type \"\"" },
        { "{\"input\":[", "line 1" }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bk_model_config_t c;

        expect_error(config_load(&c, cases[i].json),
            TRITONSERVER_ERROR_INVALID_ARG, cases[i].words);
    }
}

/* One dimension too many, in dims or in the reshape of the second tensor. */
static void
configuration_with_too_many_dimensions_is_rejected(void **state)
{
    char dims[200] = "1", json[1024];
    bk_model_config_t c;

    (void) state;
    for (int i = 1; i < 65; i++) {
        strcat(dims, ",1");
    }
    snprintf(json, sizeof(json), "{\"input\":[{\"name\":\"W\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[1]},{\"name\":\"X\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[1],\"reshape\":{\"shape\":[%s]}}]}", dims);
    expect_error(config_load(&c, json), TRITONSERVER_ERROR_INVALID_ARG,
        "tensor \"X\" has 65 dimensions, more than 64");
    snprintf(json, sizeof(json), "{\"input\":[{\"name\":\"X\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[%s]}]}", dims + 2);
    config_read(&c, json);
    bk_model_config_fini(&c);
}

static void
parameter_is_a_whole_number_within_its_bounds(void **state)
{
    static const struct {
        const char *json;
        int64_t     value;              /* 99: an error                      */
    } cases[] = {
        { "{}", 7 }, { P("0"), 0 }, { P("10"), 10 }, { P("-3"), -3 },
        { P("11"), 99 }, { P("-4"), 99 }, { P(""), 99 }, { P("1x"), 99 },
        { P("1.0"), 99 }, { P("99999999999999999999"), 99 },
        { "{\"parameters\":{\"p\":{\"string_value\":5}}}", 7 }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bk_model_config_t c;
        int64_t value = 7;

        config_read(&c, cases[i].json);
        TRITONSERVER_Error *err = bk_model_config_parameter_int(&c, "p", -3,
            10, &value);
        if (cases[i].value == 99) {
            expect_error(err, TRITONSERVER_ERROR_INVALID_ARG,
                "it must be a whole number from -3 to 10");
            assert_int_equal(value, 7);
        } else {
            expect_success(err);
            assert_int_equal(value, cases[i].value);
        }
        bk_model_config_fini(&c);
    }
}

static void
parameter_is_a_switch(void **state)
{
    static const char *const on[] = { P("true"), P("True"), P("1"), P("On") },
        *const off[] = { P("false"), P("FALSE"), P("0"), P("off") },
        *const wrong[] = { P("yes"), P(""), P("2"), P("o") };

    (void) state;
    for (size_t i = 0; i < 4; i++) {
        bk_model_config_t c;
        bool value = false;

        config_read(&c, on[i]);
        expect_success(bk_model_config_parameter_bool(&c, "q", &value));
        assert_false(value);
        expect_success(bk_model_config_parameter_bool(&c, "p", &value));
        assert_true(value);
        bk_model_config_fini(&c);

        config_read(&c, wrong[i]);
        expect_error(bk_model_config_parameter_bool(&c, "p", &value),
            TRITONSERVER_ERROR_INVALID_ARG, "it must be true or false");
        assert_true(value);
        bk_model_config_fini(&c);

        config_read(&c, off[i]);
        expect_success(bk_model_config_parameter_bool(&c, "p", &value));
        assert_false(value);
        bk_model_config_fini(&c);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configuration_has_tensors_and_batch_size),
        cmocka_unit_test(configuration_is_rejected_by_the_field_that_is_wrong),
        cmocka_unit_test(configuration_with_too_many_dimensions_is_rejected),
        cmocka_unit_test(parameter_is_a_whole_number_within_its_bounds),
        cmocka_unit_test(parameter_is_a_switch)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
