/* tables of a model's tensors, and shapes against them */

#include "common_world.h"

static void
tensors_behind_the_required_ones_have_a_default(void **state)
{
    bk_tensors_t t;

    (void) state;
    expect_success(bk_tensors_init(&t, 2, 1, 1));
    assert_int_equal(t.input_count, 3);
    assert_int_equal(t.required_count, 2);
    assert_false(t.inputs[1].has_default);
    assert_true(t.inputs[2].has_default);
    describe(&t.inputs[2], "X", TRITONSERVER_TYPE_FP32, DIMS(-1, 3));
    for (int i = 0; i < 2; i++) {
        describe(&t.inputs[i], "", TRITONSERVER_TYPE_FP32, NULL, 0);
    }
    describe(&t.outputs[0], "Y", TRITONSERVER_TYPE_FP32, DIMS(-1));
    assert_ptr_equal(bk_tensors_input(&t, "X"), &t.inputs[2]);
    assert_null(bk_tensors_input(&t, "Y"));
    assert_ptr_equal(bk_tensors_output(&t, "Y"), &t.outputs[0]);
    assert_null(bk_tensors_output(&t, "X"));
    bk_tensors_fini(&t);
}

static void
tensors_reject_more_than_can_be_counted(void **state)
{
    int64_t dims[BK_MAX_DIMS + 1] = { 0 };
    bk_tensor_config_t c = {
        .name = "X", .datatype = TRITONSERVER_TYPE_FP32, .model_dims = dims,
        .model_dims_count = BK_MAX_DIMS
    };
    bk_tensor_t one = { 0 };
    bk_tensors_t t;

    (void) state;
    expect_error(bk_tensors_init(&t, INT32_MAX, 1, 0),
        TRITONSERVER_ERROR_UNSUPPORTED, "2147483648 inputs");
    expect_error(bk_tensor_set(&one, "X", TRITONSERVER_TYPE_FP32, dims,
        BK_MAX_DIMS + 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "\"X\" has 65 dimensions, more than 64");
    assert_null(one.name);

    /* the batch dimension counts */
    expect_error(bk_tensor_set_configured(&one, &c, true),
        TRITONSERVER_ERROR_UNSUPPORTED, "65 dimensions");
    assert_null(one.name);
    expect_success(bk_tensor_set_configured(&one, &c, false));
    assert_int_equal(one.dims_count, BK_MAX_DIMS);
    free(one.name);
    free(one.dims);
}

static void
shape_matches_where_dims_are_open_or_equal(void **state)
{
    bk_tensor_t t = { 0 }, scalar = { 0 };

    (void) state;
    describe(&t, "X", TRITONSERVER_TYPE_FP32, DIMS(-1, 3));
    assert_true(bk_shape_matches(&t, DIMS(7, 3)));
    assert_true(bk_shape_matches(&t, DIMS(0, 3)));
    assert_false(bk_shape_matches(&t, DIMS(7, 4)));
    assert_false(bk_shape_matches(&t, DIMS(7)));
    assert_false(bk_shape_matches(&t, DIMS(7, 3, 1)));
    free(t.name);
    free(t.dims);
    free(t.symbol);

    /* without dimensions: one element to clients */
    assert_true(bk_shape_matches(&scalar, NULL, 0));
    assert_true(bk_shape_matches(&scalar, DIMS(1)));
    assert_false(bk_shape_matches(&scalar, DIMS(2)));
    assert_false(bk_shape_matches(&scalar, DIMS(1, 1)));

    int64_t ones[] = { 1, 1 };
    bk_tensor_config_t c = { .model_dims = ones, .model_dims_count = 2 };

    scalar.shape = &c;
    assert_true(bk_shape_matches(&scalar, NULL, 0));
    assert_true(bk_shape_matches(&scalar, DIMS(1, 1)));
    assert_false(bk_shape_matches(&scalar, DIMS(1)));
    assert_false(bk_shape_matches(&scalar, DIMS(1, 2)));

    int64_t open[] = { -1 };
    uint32_t count;

    c = (bk_tensor_config_t) { .model_dims = open, .model_dims_count = 1 };
    assert_int_equal(bk_scalar_shape(&scalar, &count)[0], 1);
    assert_int_equal(count, 1);
}

static void
elements_are_counted_without_overflow(void **state)
{
    uint64_t n = 9;

    (void) state;
    assert_true(bk_elements(NULL, 0, &n));
    assert_int_equal(n, 1);
    assert_true(bk_elements(DIMS(2, 3, 4), &n));
    assert_int_equal(n, 24);
    assert_true(bk_elements(DIMS(2, 0), &n));
    assert_int_equal(n, 0);
    assert_false(bk_elements(DIMS(-1), &n));
    assert_false(bk_elements(DIMS(2, -3, -1), &n));
    assert_false(bk_elements(DIMS(INT64_MAX, 3), &n));
    assert_false(bk_elements(DIMS(INT64_C(1) << 32, INT64_C(1) << 32), &n));
    assert_true(bk_elements(DIMS(INT64_MAX, 2), &n));
}

static void
dims_text_is_cut_to_fit(void **state)
{
    char text[8];

    (void) state;
    assert_string_equal(bk_dims_text(DIMS(-1, 3), text, sizeof(text)),
        "[-1,3]");
    assert_string_equal(bk_dims_text(NULL, 0, text, sizeof(text)), "[]");
    assert_string_equal(bk_dims_text(DIMS(123, 456, 789, 1), text,
        sizeof(text)), "[123,45");
}

static void
tensors_take_marks_from_the_configuration(void **state)
{
    bk_model_config_t c;
    bk_tensors_t t;

    (void) state;
    config_read(&c, "{\"max_batch_size\":4,"
        "\"input\":[{\"name\":\"X\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1],"
        "\"allow_ragged_batch\":true},"
        "{\"name\":\"Y\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
        "\"output\":[{\"name\":\"Y\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[1]},"
        "{\"name\":\"Z\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],"
        "\"batch_input\":[{\"target_name\":[\"LEN\"],"
        "\"data_type\":\"TYPE_INT32\",\"source_input\":[\"Y\"]}],"
        "\"batch_output\":[{\"target_name\":[\"Z\"],"
        "\"source_input\":[\"Y\"]}],"
        "\"sequence_batching\":{\"control_input\":[{\"name\":\"START\","
        "\"control\":[{\"int32_false_true\":[0,1]}]}],"
        "\"state\":[{\"input_name\":\"SI\",\"output_name\":\"SO\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]}}");
    tensors_of_config(&t, &c);
    assert_true(bk_tensors_input(&t, "X")->ragged);
    assert_false(bk_tensors_input(&t, "Y")->ragged);
    assert_true(bk_tensors_input(&t, "START")->control);
    assert_false(bk_tensors_input(&t, "SI")->control);
    assert_true(bk_tensors_output(&t, "SO")->state);
    assert_false(bk_tensors_output(&t, "Z")->state);
    assert_true(bk_tensors_output(&t, "Y")->passthrough);
    assert_false(bk_tensors_output(&t, "Z")->passthrough);
    assert_non_null(bk_tensors_input(&t, "LEN")->batch_input);
    assert_null(bk_tensors_input(&t, "Y")->batch_input);
    assert_int_equal(bk_tensors_input(&t, "LEN")->source, 1);
    assert_non_null(bk_tensors_output(&t, "Z")->batch_output);
    assert_int_equal(bk_tensors_output(&t, "Z")->source, 1);
    assert_ptr_equal(bk_tensors_output(&t, "Z")->shape, &c.outputs[1]);
    assert_null(bk_tensors_output(&t, "SO")->shape);

    /* without batches there is nothing that could be ragged */
    t.inputs[0].ragged = false;
    c.max_batch_size = 0;
    bk_tensors_apply_config(&t, &c);
    assert_false(t.inputs[0].ragged);
    bk_tensors_fini(&t);
    bk_model_config_fini(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_behind_the_required_ones_have_a_default),
        cmocka_unit_test(tensors_reject_more_than_can_be_counted),
        cmocka_unit_test(shape_matches_where_dims_are_open_or_equal),
        cmocka_unit_test(elements_are_counted_without_overflow),
        cmocka_unit_test(dims_text_is_cut_to_fit),
        cmocka_unit_test(tensors_take_marks_from_the_configuration)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
