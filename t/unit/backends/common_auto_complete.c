/* what a configuration leaves out, filled in from the model's tensors */

#include "common_world.h"

#include "backends/common/auto_complete.h"

/* Inputs X [-1,3] and S [-1] (a default: D), output Y [-1]. */
static void
model_file(bk_tensors_t *t)
{
    expect_success(bk_tensors_init(t, 2, 1, 1));
    describe(&t->inputs[0], "X", TRITONSERVER_TYPE_FP32, DIMS(-1, 3));
    describe(&t->inputs[1], "S", TRITONSERVER_TYPE_BYTES, DIMS(-1));
    describe(&t->inputs[2], "D", TRITONSERVER_TYPE_FP32, DIMS(-1));
    describe(&t->outputs[0], "Y", TRITONSERVER_TYPE_FP32, DIMS(-1));
}

/* The completed configuration, as the core gets it; for free(). */
static char *
complete(const char *json, const bk_tensors_t *t, int64_t max_batch_size)
{
    fake_model_t m = { .config = strdup(json) };
    bk_model_config_t c;

    expect_success(bk_model_config_init(&c, MODEL(&m)));
    expect_success(bk_config_auto_complete(&c, t, max_batch_size,
        MODEL(&m)));
    bk_model_config_fini(&c);
    return m.config;
}

static void
expect(const char *json, const bk_tensors_t *t, int64_t max_batch_size,
    const char *expected)
{
    char *text = complete(json, t, max_batch_size);

    assert_string_equal(text, expected);
    free(text);
}

#define X3  "{\"name\":\"X\",\"data_type\":\"TYPE_FP32\",\"dims\":[3]}"
#define S1  "{\"name\":\"S\",\"data_type\":\"TYPE_STRING\",\"dims\":[1]," \
    "\"reshape\":{\"shape\":[]}}"
#define Y1  "{\"name\":\"Y\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]," \
    "\"reshape\":{\"shape\":[]}}"

/* Behind the batch dimension nothing may be left: [1] to clients. */
static void
complete_adds_tensors_batches_and_a_batcher(void **state)
{
    bk_tensors_t t;

    (void) state;
    model_file(&t);
    expect("{}", &t, 4, "{\"max_batch_size\":4,\"dynamic_batching\":{},"
        "\"input\":[" X3 "," S1 "],\"output\":[" Y1 "]}");
    expect("{\"max_batch_size\":7}", &t, 4, "{\"max_batch_size\":7,"
        "\"dynamic_batching\":{},\"input\":[" X3 "," S1 "],"
        "\"output\":[" Y1 "]}");
    bk_tensors_fini(&t);
}

static void
complete_leaves_a_model_without_batches(void **state)
{
    bk_tensors_t t;

    (void) state;
    model_file(&t);
    expect("{}", &t, 0, "{\"input\":["
        "{\"name\":\"X\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1,3]},"
        "{\"name\":\"S\",\"data_type\":\"TYPE_STRING\",\"dims\":[-1]}],"
        "\"output\":[{\"name\":\"Y\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[-1]}]}");

    /* a scalar, which cannot batch */
    t.outputs[0].dims_count = 0;
    expect("{\"input\":[" X3 "," S1 "]}", &t, 4, "{\"input\":[" X3 "," S1
        "],\"output\":[{\"name\":\"Y\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]}]}");
    bk_tensors_fini(&t);
}

static void
complete_keeps_what_is_configured(void **state)
{
    bk_tensors_t t;
    char *text;

    (void) state;
    model_file(&t);
    expect("{\"max_batch_size\":1,\"input\":[" X3 "]}", &t, 4,
        "{\"max_batch_size\":1,\"input\":[" X3 "],\"output\":[" Y1 "]}");
    expect("{\"output\":[" Y1 "],\"input\":[" X3 "]}", &t, 1,
        "{\"output\":[" Y1 "],\"input\":[" X3 "],\"max_batch_size\":1}");

    /* a scheduler that is there already */
    text = complete("{\"sequence_batching\":{},\"max_batch_size\":2}", &t, 4);
    assert_null(strstr(text, "dynamic_batching"));
    free(text);
    bk_tensors_fini(&t);
}

/* Controls and states are no inputs of clients. */
static void
complete_leaves_out_tensors_of_sequences(void **state)
{
    bk_tensors_t t;

    (void) state;
    model_file(&t);
    char *text = complete("{\"sequence_batching\":{\"state\":[{"
        "\"input_name\":\"S\",\"output_name\":\"Y\","
        "\"data_type\":\"TYPE_STRING\",\"dims\":[1]}]}}", &t, 4);
    assert_non_null(strstr(text, "\"input\":[" X3 "]"));
    assert_non_null(strstr(text, "\"output\":[]"));
    free(text);

    /* a batch_input is an input: the list is the user's then */
    text = complete("{\"batch_input\":[{\"target_name\":[\"S\"],"
        "\"data_type\":\"TYPE_INT32\",\"source_input\":[\"X\"]}]}", &t, 4);
    assert_null(strstr(text, "\"input\""));
    free(text);
    bk_tensors_fini(&t);
}

static void
complete_rejects_batches_of_a_model_that_has_none(void **state)
{
    fake_model_t m = { .config = strdup("{\"name\":\"m\","
        "\"max_batch_size\":2}") };
    bk_model_config_t c;
    bk_tensors_t t;

    (void) state;
    model_file(&t);
    t.inputs[0].dims[0] = 5;
    expect_success(bk_model_config_init(&c, MODEL(&m)));
    expect_error(bk_config_auto_complete(&c, &t, 4, MODEL(&m)),
        TRITONSERVER_ERROR_INVALID_ARG,
        "autofill failed for model 'm': model does not support batching");

    /* nor can a tensor be listed that no request carries */
    t.inputs[0].dims[0] = -1;
    t.outputs[0].datatype = TRITONSERVER_TYPE_INVALID;
    expect_error(bk_config_auto_complete(&c, &t, 4, MODEL(&m)),
        TRITONSERVER_ERROR_UNSUPPORTED, "\"Y\" of the model is not a tensor");
    bk_model_config_fini(&c);
    bk_tensors_fini(&t);
    free(m.config);
}

static void
configuration_is_complete_with_inputs_and_outputs(void **state)
{
    static const struct {
        const char *json;
        bool        complete;
    } cases[] = {
        { "{}", false },
        { "{\"input\":[" X3 "]}", false },
        { "{\"output\":[" Y1 "]}", false },
        { "{\"input\":[" X3 "],\"output\":[" Y1 "]}", true },
        { "{\"batch_input\":[{\"target_name\":[\"S\"],"
            "\"data_type\":\"TYPE_INT32\",\"source_input\":[\"X\"]}],"
            "\"output\":[" Y1 "]}", true }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bk_model_config_t c;

        config_read(&c, cases[i].json);
        assert_int_equal(bk_config_is_complete(&c), cases[i].complete);
        bk_model_config_fini(&c);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_adds_tensors_batches_and_a_batcher),
        cmocka_unit_test(complete_leaves_a_model_without_batches),
        cmocka_unit_test(complete_keeps_what_is_configured),
        cmocka_unit_test(complete_leaves_out_tensors_of_sequences),
        cmocka_unit_test(complete_rejects_batches_of_a_model_that_has_none),
        cmocka_unit_test(configuration_is_complete_with_inputs_and_outputs)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
