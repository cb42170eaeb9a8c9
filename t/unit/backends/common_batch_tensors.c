/* batch_input and batch_output: what the configuration says, and values */

#include "common_world.h"

#define INPUT(kind, type) "{\"batch_input\":[{\"kind\":\"BATCH_" kind "\"," \
    "\"target_name\":[\"T\"],\"data_type\":\"TYPE_" type "\"," \
    "\"source_input\":[\"X\"]}]}"

static const int64_t first[] = { 2, 3, 5 }, second[] = { 1, 4, 7 };

/* Of two requests of 2 and 1 rows. */
static const bk_batch_source_t sources[] = {
    { .shape = first, .dims_count = 3, .elements = 30, .rows = 2 },
    { .shape = second, .dims_count = 3, .elements = 28, .rows = 1 }
};

/* The tensor that the one batch_input of config makes of these sources. */
static void
expect_values(const char *config, const bk_batch_source_t *list,
    uint32_t count, int64_t rows, int64_t columns, const int32_t *values)
{
    bk_model_config_t c;
    uint64_t elements;
    int64_t dims[2];

    config_read(&c, config);
    const bk_batch_input_t *in = bk_batch_input_find(&c.batch, "T");
    assert_non_null(in);
    assert_int_equal(bk_batch_input_rank(in), columns > 1 ? 2 : 1);
    expect_success(bk_batch_input_shape(in, list, count, true, dims,
        &elements));
    assert_int_equal(dims[0], rows);
    assert_int_equal(dims[1], columns);
    assert_int_equal(elements, rows * columns);

    int32_t *to = malloc(elements * 4);
    expect_success(bk_batch_input_write(in, list, count, true, to,
        elements));
    for (uint64_t i = 0; i < elements; i++) {
        assert_int_equal(in->datatype == TRITONSERVER_TYPE_INT32 ? to[i]
            : (int32_t) ((float *) to)[i], values[i]);
    }
    free(to);
    bk_model_config_fini(&c);
}

static void
batch_input_counts_elements(void **state)
{
    static const int32_t counts[] = { 30, 28 }, sums[] = { 0, 30, 58 };
    static const int32_t none[28 + 2];

    (void) state;
    expect_values(INPUT("ELEMENT_COUNT", "INT32"), sources, 2, 2, 1, counts);
    expect_values(INPUT("ELEMENT_COUNT", "FP32"), sources, 2, 2, 1, counts);
    expect_values(INPUT("ACCUMULATED_ELEMENT_COUNT", "INT32"), sources, 2, 2,
        1, sums + 1);
    expect_values(INPUT("ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "FP32"),
        sources, 2, 3, 1, sums);
    expect_values(INPUT("MAX_ELEMENT_COUNT_AS_SHAPE", "INT32"), sources, 2,
        30, 1, none);
}

/* Once for each row. */
static void
batch_input_has_the_shapes_of_items(void **state)
{
    static const int32_t shapes[] = { 3, 5, 3, 5, 4, 7 };

    (void) state;
    expect_values(INPUT("ITEM_SHAPE", "INT32"), sources, 2, 3, 2, shapes);
    expect_values(INPUT("ITEM_SHAPE_FLATTEN", "INT32"), sources, 2, 6, 1,
        shapes);
    expect_values(INPUT("ITEM_SHAPE", "FP32"), sources + 1, 1, 1, 2,
        shapes + 4);
}

static void
batch_input_rejects_requests_of_different_ranks(void **state)
{
    const bk_batch_source_t list[] = {
        sources[0], { .shape = first, .dims_count = 2, .rows = 2 }
    };
    bk_model_config_t c;
    uint64_t elements;
    int64_t dims[2];

    (void) state;
    config_read(&c, INPUT("ITEM_SHAPE", "INT32"));
    expect_error(bk_batch_input_shape(&c.batch.inputs[0], list, 2, true, dims,
        &elements), TRITONSERVER_ERROR_INVALID_ARG,
        "requests differ in the dimensions of \"X\"");
    bk_model_config_fini(&c);
}

/* INT32, and whole numbers that FP32 has exactly. */
static void
batch_input_rejects_what_its_datatype_cannot_hold(void **state)
{
    static const struct {
        const char *config;
        uint64_t    most;
    } cases[] = {
        { INPUT("ELEMENT_COUNT", "INT32"), INT32_MAX },
        { INPUT("ELEMENT_COUNT", "FP32"), 1 << 24 }
    };

    (void) state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bk_batch_source_t one = { .elements = cases[i].most, .rows = 1 };
        bk_model_config_t c;
        int32_t to;

        config_read(&c, cases[i].config);
        expect_success(bk_batch_input_write(&c.batch.inputs[0], &one, 1, true,
            &to, 1));
        one.elements++;
        expect_error(bk_batch_input_write(&c.batch.inputs[0], &one, 1, true,
            &to, 1), TRITONSERVER_ERROR_INVALID_ARG,
            "batch input \"T\" cannot hold");

        /* a sum counts as well; and nothing is written behind the tensor */
        bk_batch_source_t two[] = { { .elements = 1 }, { .elements = 2 } };
        expect_error(bk_batch_input_write(&c.batch.inputs[0], two, 2, true,
            &to, 1), TRITONSERVER_ERROR_INVALID_ARG, "cannot hold 2");
        bk_model_config_fini(&c);
    }
}

static void
batch_tensors_are_read_from_the_configuration(void **state)
{
    bk_model_config_t c;

    (void) state;
    config_read(&c, "{\"batch_input\":[{\"target_name\":[\"A\",\"B\"],"
        "\"data_type\":\"TYPE_FP32\",\"source_input\":[\"X\"]}],"
        "\"batch_output\":[{\"target_name\":[\"C\",\"D\"],"
        "\"source_input\":[\"Y\"]}]}");
    assert_int_equal(c.batch.input_count, 2);
    assert_string_equal(bk_batch_input_find(&c.batch, "B")->source, "X");
    assert_int_equal(bk_batch_input_find(&c.batch, "B")->kind,
        BK_ELEMENT_COUNT);
    assert_null(bk_batch_input_find(&c.batch, "X"));
    assert_string_equal(bk_batch_output_find(&c.batch, "C")->source, "Y");
    assert_null(bk_batch_output_find(&c.batch, "D"));
    bk_model_config_fini(&c);
}

static void
batch_tensors_that_are_unknown_are_rejected(void **state)
{
    static const char *const configs[] = {
        INPUT("SIZE", "INT32"), INPUT("ELEMENT_COUNT", "INT64"),
        "{\"batch_input\":[{\"target_name\":[\"T\"],"
            "\"data_type\":\"TYPE_INT32\"}]}",
        "{\"batch_output\":[{\"target_name\":[\"T\"]}]}",
        "{\"batch_output\":[{\"source_input\":[\"X\"]}]}"
    };

    (void) state;
    for (size_t i = 0; i < COUNT(configs); i++) {
        bk_model_config_t c;

        expect_error(config_load(&c, configs[i]),
            TRITONSERVER_ERROR_INVALID_ARG, "batch_");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_input_counts_elements),
        cmocka_unit_test(batch_input_has_the_shapes_of_items),
        cmocka_unit_test(batch_input_rejects_requests_of_different_ranks),
        cmocka_unit_test(batch_input_rejects_what_its_datatype_cannot_hold),
        cmocka_unit_test(batch_tensors_are_read_from_the_configuration),
        cmocka_unit_test(batch_tensors_that_are_unknown_are_rejected)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
