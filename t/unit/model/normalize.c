#include "model/request_world.h"

#include <stdio.h>

#include "core/model/raw_input.h"

#define NOTE "NOTE: Setting a non-zero max_batch_size in the model config"    \
    " requires a batch dimension to be prepended to each input shape."

static const char two_inputs[] =
    "name: 'm' backend: 'x' max_batch_size: 8\n"
    "input [ { name: 'A' data_type: TYPE_INT32 dims: 4 },\n"
    "        { name: 'B' data_type: TYPE_FP32 dims: [ -1, 2 ] },\n"
    "        { name: 'C' data_type: TYPE_INT8 dims: -1 optional: true } ]\n"
    "output [ { name: 'P' data_type: TYPE_INT32 dims: 4 },\n"
    "         { name: 'O' data_type: TYPE_INT32 dims: 4 } ]\n";

static void
add_good(world_t *w)
{
    add_data(w, add(w, "A", INF_TYPE_INT32, SHAPE(3, 4)), zeroes, 48);
    add_data(w, add(w, "B", INF_TYPE_FP32, SHAPE(3, 5, 2)), zeroes, 120);
}

static void
a_good_request_gets_its_batch_and_all_outputs(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    add_good(&w);
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(w.req.batch_size, 3);
    assert_int_equal(w.req.output_count, 2);
    assert_string_equal(w.req.outputs[0], "O");     /* sorted by name        */
    assert_string_equal(w.req.outputs[1], "P");
    assert_int_equal(w.req.inputs[0].model_dim_count, 2);
    assert_int_equal(w.req.inputs[0].model_shape[0], 3);

    again(&w);
    add_good(&w);
    assert_ok(inf_request_add_output(&w.req, "P", 1));
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(w.req.output_count, 1);
    world_close(&w);
}

static void
an_optional_input_may_come_or_stay_away(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    add_good(&w);
    add_data(&w, add(&w, "C", INF_TYPE_INT8, SHAPE(3, 7)), zeroes, 21);
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(w.req.input_count, 3);

    again(&w);                          /* it does not stand in for another  */
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 16);
    add_data(&w, add(&w, "C", INF_TYPE_INT8, SHAPE(1, 7)), zeroes, 7);
    rejected(&w, "expected number of inputs between 2 and 3 but got 2"
        " inputs for model 'm'. Got"
        " input(s) ['A','C'], but missing required input(s) ['B']. Please"
        " provide all required input(s).");
    world_close(&w);
}

static void
missing_unknown_and_repeated_inputs_are_named(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    rejected(&w, "expected number of inputs between 2 and 3 but got 0"
        " inputs for model 'm'. Got"
        " input(s) [], but missing required input(s) ['A','B']. Please provide"
        " all required input(s).");
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 16);
    rejected(&w, "expected number of inputs between 2 and 3 but got 1"
        " inputs for model 'm'. Got"
        " input(s) ['A'], but missing required input(s) ['B'].");
    add_good(&w);
    add(&w, "D", INF_TYPE_INT32, SHAPE(1));
    rejected(&w, "unexpected inference input 'D' for model 'm'");
    add_good(&w);
    add(&w, "D", INF_TYPE_INT32, SHAPE(1));
    add(&w, "E", INF_TYPE_INT32, SHAPE(1));
    rejected(&w, "expected number of inputs between 2 and 3 but got 4"
        " inputs for model 'm'. Got input(s) ['A','B','D','E'], but missing"
        " required input(s) []. Please provide all required input(s). The"
        " model has no input(s) ['D','E'].");
    add(&w, "D", INF_TYPE_INT32, SHAPE(1));
    rejected(&w, "expected number of inputs between 2 and 3 but got 1"
        " inputs for model 'm'. Got input(s) ['D'], but missing required"
        " input(s) ['A','B']. Please provide all required input(s). The"
        " model has no input(s) ['D'].");

    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 16);
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 16);
    rejected(&w, "input 'A' already exists in request");
    add_good(&w);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(3, 5, 2)), zeroes, 120);
    rejected(&w, "input 'B' already exists in request");

    add_good(&w);
    assert_ok(inf_request_add_output(&w.req, "X", 1));
    rejected(&w, "unexpected inference output 'X' for model 'm'");
    world_close(&w);
}

static void
datatype_and_shape_must_be_the_models(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    add_data(&w, add(&w, "A", INF_TYPE_FP32, SHAPE(1, 4)), zeroes, 16);
    rejected(&w, "inference input 'A' data-type is 'FP32', but model 'm'"
        " expects 'INT32'");
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    add_data(&w, add(&w, "A", (inf_datatype_t) 99, SHAPE(1, 4)), zeroes, 16);
    rejected(&w, "data-type is '<invalid>'");

    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 5)), zeroes, 20);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    rejected(&w, "unexpected shape for input 'A' for model 'm'. Expected"
        " [-1,4], got [1,5]. " NOTE);
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(4)), zeroes, 16);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(4, 1, 2)), zeroes, 32);
    rejected(&w, "Expected [-1,4], got [4]. " NOTE);
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4, 1)), zeroes, 16);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    rejected(&w, "Expected [-1,4], got [1,4,1]. ");
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 16);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, -1, 2)), zeroes, 8);
    rejected(&w, "All input dimensions should be specified for input 'B' for"
        " model 'm', got [1,-1,2]");
    world_close(&w);
}

static void
the_batch_is_checked(void **state)
{
    (void) state;
    static const int64_t bad[] = { 0, 9, -1, INT64_MAX, INT64_MIN };
    world_t w;

    world_open(&w, two_inputs);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(bad[i], 4)), zeroes,
            16);
        add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(bad[i], 1, 2)), zeroes,
            8);
        rejected(&w, bad[i] < 1
            ? "inference request batch-size must be >= 1 for 'm'"
            : "inference request batch-size must be <= 8 for 'm'");
    }

    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(8, 4)), zeroes, 128);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(8, 1, 2)), zeroes, 64);
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(w.req.batch_size, 8);
    again(&w);

    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(2, 4)), zeroes, 32);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(3, 1, 2)), zeroes, 24);
    rejected(&w, "input 'B' batch size does not match other inputs for 'm'");

    add(&w, "A", INF_TYPE_INT32, 0, NULL);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(3, 1, 2)), zeroes, 24);
    rejected(&w, "input 'A' has no shape but model requires batch dimension"
        " for 'm'");
    world_close(&w);
}

static void
byte_sizes_must_match_the_shape(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    add_data(&w, add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4)), zeroes, 12);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    rejected(&w, "input byte size mismatch for input 'A' for model 'm'."
        " Expected 16, got 12");
    add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4));
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    rejected(&w, "Expected 16, got 0");

    /* several buffers count together */
    inf_input_t *in = add(&w, "A", INF_TYPE_INT32, SHAPE(1, 4));
    add_data(&w, in, zeroes, 3);
    add_data(&w, in, zeroes, 13);
    add_data(&w, add(&w, "B", INF_TYPE_FP32, SHAPE(1, 1, 2)), zeroes, 8);
    assert_ok(inf_request_normalize(w.model, &w.req));
    world_close(&w);
}

static void
shapes_that_overflow_are_rejected(void **state)
{
    (void) state;
    world_t w;
    const int64_t big = INT64_C(1) << 62;

    world_open(&w, "name: 'm' input { name: 'A' data_type: TYPE_FP64"
        " dims: [ -1, -1, -1 ] } output { name: 'O' data_type: TYPE_BOOL"
        " dims: 1 }");
    add(&w, "A", INF_TYPE_FP64, SHAPE(big, 2, 1));
    rejected(&w, "more elements than can be counted");
    add(&w, "A", INF_TYPE_FP64, SHAPE(big, 1, 1));      /* bytes wrap to 0   */
    rejected(&w, "more bytes than can be counted");
    add(&w, "A", INF_TYPE_FP64, SHAPE(INT64_MAX, INT64_MAX, INT64_MAX));
    rejected(&w, "more elements than can be counted");
    add(&w, "A", INF_TYPE_FP64, SHAPE(1, 1, -3));
    rejected(&w, "All input dimensions should be specified");
    add_data(&w, add(&w, "A", INF_TYPE_FP64, SHAPE(INT64_C(1) << 32,
        INT64_C(1) << 32, 1)), zeroes, 8);
    rejected(&w, "more elements than can be counted");
    world_close(&w);
}

static void
a_zero_dimension_makes_an_empty_tensor(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, "name: 'm' input { name: 'A' data_type: TYPE_FP64"
        " dims: [ -1, 3, -1 ] } output { name: 'O' data_type: TYPE_BOOL"
        " dims: 1 }");
    add(&w, "A", INF_TYPE_FP64, SHAPE(0, 3, 5));
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(w.req.inputs[0].buffer_count, 0);
    assert_int_equal(w.req.batch_size, 0);
    again(&w);
    /* backends multiply from the left: no zero hides an overflow */
    add(&w, "A", INF_TYPE_FP64, SHAPE(INT64_MAX, 3, 0));
    rejected(&w, "more elements than can be counted");
    add_data(&w, add(&w, "A", INF_TYPE_FP64, SHAPE(0, 3, 5)), zeroes, 1);
    rejected(&w, "Expected 0, got 1");
    add(&w, "A", INF_TYPE_FP64, SHAPE(1, 0, 5));
    rejected(&w, "unexpected shape for input 'A' for model 'm'. Expected"
        " [-1,3,-1], got [1,0,5]. ");
    world_close(&w);
}

/* ---- reshape ------------------------------------------------------------- */

static void
reshapes_to(const char *batching, const char *dims, const char *reshape,
    uint32_t count, const int64_t *shape, uint32_t want_count,
    const int64_t *want)
{
    char text[512];
    uint64_t bytes = 1;
    world_t w;

    snprintf(text, sizeof(text), "name: 'm' %s input { name: 'A' data_type:"
        " TYPE_INT8 dims: %s reshape { shape: %s } } output { name: 'O'"
        " data_type: TYPE_BOOL dims: 1 }", batching, dims, reshape);
    for (uint32_t i = 0; i < count; i++) {
        bytes *= (uint64_t) shape[i];
    }

    world_open(&w, text);
    inf_input_t *in = add(&w, "A", INF_TYPE_INT8, count, shape);
    add_data(&w, in, zeroes, bytes);
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(in->dim_count, count);         /* the client's stays    */
    assert_memory_equal(in->shape, shape, count * sizeof(*shape));
    assert_int_equal(in->model_dim_count, want_count);
    assert_memory_equal(in->model_shape, want, want_count * sizeof(*want));
    world_close(&w);
}

static void
reshape_fills_variable_dimensions_from_left_to_right(void **state)
{
    (void) state;
    reshapes_to("", "[ 2, 4, -1, 6 ]", "[ 8, -1, 1, 6 ]", SHAPE(2, 4, 5, 6),
        SHAPE(8, 5, 1, 6));
    reshapes_to("max_batch_size: 4", "[ 2, 4, -1, 6 ]", "[ 8, -1, 1, 6 ]",
        SHAPE(3, 2, 4, 5, 6), SHAPE(3, 8, 5, 1, 6));
    reshapes_to("", "[ -1, 2, -1 ]", "[ -1, -1, 2 ]", SHAPE(7, 2, 9),
        SHAPE(7, 9, 2));
    reshapes_to("max_batch_size: 4", "[ -1, -1 ]", "[ 1, -1, 1, -1 ]",
        SHAPE(2, 7, 9), SHAPE(2, 1, 7, 1, 9));
    reshapes_to("", "[ 1, -1, 1 ]", "[ -1 ]", SHAPE(1, 0, 1), SHAPE(0));
}

static void
an_empty_reshape_leaves_the_batch(void **state)
{
    (void) state;
    reshapes_to("max_batch_size: 4", "[ 1 ]", "[ ]", SHAPE(3, 1), SHAPE(3));
    reshapes_to("max_batch_size: 4", "[ 1, 1 ]", "[ ]", SHAPE(2, 1, 1),
        SHAPE(2));
}

/* ---- many names ---------------------------------------------------------- */

enum { NAMES = 16384 };

/* How often the model's table is asked for a name. */
static uint32_t lookups;

const inf_config_tensor_t *__real_inf_config_tensors_find_output(
    const inf_config_tensors_t *t, inf_slice_t name);
const inf_config_tensor_t *__wrap_inf_config_tensors_find_output(
    const inf_config_tensors_t *t, inf_slice_t name);

const inf_config_tensor_t *
__wrap_inf_config_tensors_find_output(const inf_config_tensors_t *t,
    inf_slice_t name)
{
    lookups++;
    return __real_inf_config_tensors_find_output(t, name);
}

/* In falling order: each would go before all others. */
static void
add_outputs(inf_request_t *req, const char *format)
{
    char name[32];

    for (int i = NAMES; i > 0; i--) {
        int len = snprintf(name, sizeof(name), format, i);
        assert_ok(inf_request_add_output(req, name, (size_t) len));
    }
}

static void
the_first_unknown_output_ends_the_search(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, two_inputs);
    add_good(&w);
    add_outputs(&w.req, "X%05d");
    lookups = 0;
    rejected(&w, "unexpected inference output 'X16384' for model 'm'");
    assert_int_equal(lookups, 1);

    add_good(&w);                       /* as does the first repeated one    */
    for (int i = 0; i < NAMES; i++) {
        assert_ok(inf_request_add_output(&w.req, i % 2 ? "O" : "P", 1));
    }
    lookups = 0;
    rejected(&w, "output 'P' already requested");
    assert_int_equal(lookups, 3);
    world_close(&w);
}

static void
many_outputs_are_sorted_with_one_lookup_each(void **state)
{
    (void) state;
    char *config = malloc(NAMES * 64);
    world_t w;
    int len = sprintf(config, "name: 'm' input { name: 'A' data_type:"
        " TYPE_INT8 dims: 1 }");

    for (int i = 1; i <= NAMES; i++) {
        len += sprintf(config + len, " output { name: 'O%05d' data_type:"
            " TYPE_INT8 dims: 1 }", NAMES - i + 1);
    }
    world_open(&w, config);
    add_data(&w, add(&w, "A", INF_TYPE_INT8, SHAPE(1)), zeroes, 1);
    add_outputs(&w.req, "O%05d");
    lookups = 0;
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_int_equal(lookups, NAMES);
    assert_int_equal(w.req.output_count, NAMES);
    assert_string_equal(w.req.outputs[0], "O00001");
    for (uint32_t i = 1; i < w.req.output_count; i++) {
        assert_true(strcmp(w.req.outputs[i - 1], w.req.outputs[i]) < 0);
    }
    assert_true(inf_request_wants_output(&w.req, "O16384"));
    assert_false(inf_request_wants_output(&w.req, "O16385"));
    world_close(&w);
    free(config);
}

/* ---- raw ----------------------------------------------------------------- */

static void
raw(const char *model, uint64_t size, const char *error, uint32_t count,
    const int64_t *shape)
{
    char text[512];
    world_t w;
    const inf_buffer_t data = { .base = zeroes, .size = size };

    snprintf(text, sizeof(text), "name: 'm' %s output { name: 'O' data_type:"
        " TYPE_BOOL dims: 1 }", model);
    world_open(&w, text);
    inf_err_t *err = inf_request_add_raw(w.model, &w.req, &data);
    if (err == NULL) {
        err = inf_request_normalize(w.model, &w.req);
    }
    if (error != NULL) {
        assert_error(err, INF_ERR_INVALID_ARG, error);
    } else {
        assert_ok(err);
        assert_int_equal(w.req.input_count, 1);
        assert_int_equal(w.req.inputs[0].dim_count, count);
        assert_memory_equal(w.req.inputs[0].shape, shape,
            count * sizeof(*shape));
    }
    world_close(&w);
}

static void
a_raw_body_takes_its_shape_from_the_model(void **state)
{
    (void) state;
    raw("input { name: 'A' data_type: TYPE_FP32 dims: [ 2, 3 ] }", 24, NULL,
        SHAPE(2, 3));
    raw("max_batch_size: 4 input { name: 'A' data_type: TYPE_FP32"
        " dims: [ 2, 3 ] }", 24, NULL, SHAPE(1, 2, 3));
    raw("input { name: 'A' data_type: TYPE_FP32 dims: [ 2, -1 ] }", 40, NULL,
        SHAPE(2, 5));
    raw("max_batch_size: 4 input { name: 'A' data_type: TYPE_INT8"
        " dims: -1 }", 4096, NULL, SHAPE(1, 4096));
    raw("input { name: 'A' data_type: TYPE_FP32 dims: -1 }", 0, NULL,
        SHAPE(0));

    raw("input { name: 'A' data_type: TYPE_FP32 dims: [ 2, 3 ] }", 20,
        "Expected 24, got 20", 0, NULL);
    raw("input { name: 'A' data_type: TYPE_FP32 dims: [ 2, -1 ] }", 41,
        "The shape of the raw input 'A' can not be deduced", 0, NULL);
    raw("input { name: 'A' data_type: TYPE_FP32 dims: [ -1, -1 ] }", 8,
        "The shape of the raw input 'A' can not be deduced because there are"
        " more than one variable-sized dimension", 0, NULL);
    raw("input [ { name: 'A' data_type: TYPE_FP32 dims: 1 },"
        " { name: 'B' data_type: TYPE_FP32 dims: 1 } ]", 4,
        "Raw request must only have 1 input (found 1) to be deduced but got 2"
        " inputs in 'm' model configuration", 0, NULL);
    raw("", 4, "(found 1) to be deduced but got 0 inputs in 'm' model"
        " configuration", 0, NULL);
}

static void
a_raw_string_gets_its_prefix(void **state)
{
    (void) state;
    static const char config[] = "name: 'm' max_batch_size: 2 input { name:"
        " 'S' data_type: TYPE_STRING dims: 1 } output { name: 'O' data_type:"
        " TYPE_BOOL dims: 1 }";
    world_t w;
    uint32_t len;

    for (uint64_t size = 0; size < 3; size++) {
        world_open(&w, config);
        assert_ok(inf_request_add_raw(w.model, &w.req, &(inf_buffer_t) {
            .base = "xy", .size = size }));
        assert_ok(inf_request_normalize(w.model, &w.req));
        const inf_input_t *in = &w.req.inputs[0];
        assert_int_equal(in->byte_size, 4 + size);
        assert_int_equal(in->buffer_count, size > 0 ? 2 : 1);
        assert_int_equal(in->buffers[0].size, 4);
        memcpy(&len, in->buffers[0].base, 4);
        assert_int_equal(len, size);
        world_close(&w);
    }

    raw("input { name: 'S' data_type: TYPE_STRING dims: -1 }", 3,
        "For BYTE datatype raw input 'S', the model must have input shape [1]",
        0, NULL);
    raw("input { name: 'S' data_type: TYPE_STRING dims: 2 }", 3,
        "For BYTE datatype raw input 'S', the model must have input shape [1]",
        0, NULL);
    raw("input { name: 'S' data_type: TYPE_STRING dims: 1 }",
        UINT64_C(1) << 32, "longer than 4 GiB", 0, NULL);
}

/* The last reference tells the owner, once. */
static int unreferenced;

static void
last_unref(inf_model_t *model)
{
    (void) model;
    unreferenced++;
}

static void
the_last_reference_of_a_model_tells_its_owner(void **state)
{
    (void) state;
    static const inf_model_ops_t ops = { .last_unref = last_unref };
    inf_model_t *model = inf_model_new("m", 3, "/d");

    model->ops = &ops;
    assert_string_equal(model->name, "m");
    assert_string_equal(model->dir, "/d");
    assert_int_equal(model->version, 3);
    assert_false(inf_model_is_decoupled(model));
    inf_model_ref(model);
    inf_model_unref(model);
    assert_int_equal(unreferenced, 0);
    inf_model_unref(model);
    assert_int_equal(unreferenced, 1);
    inf_model_unref(NULL);
    inf_model_free(model);
    inf_model_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_request_gets_its_batch_and_all_outputs),
        cmocka_unit_test(an_optional_input_may_come_or_stay_away),
        cmocka_unit_test(missing_unknown_and_repeated_inputs_are_named),
        cmocka_unit_test(datatype_and_shape_must_be_the_models),
        cmocka_unit_test(the_batch_is_checked),
        cmocka_unit_test(byte_sizes_must_match_the_shape),
        cmocka_unit_test(shapes_that_overflow_are_rejected),
        cmocka_unit_test(a_zero_dimension_makes_an_empty_tensor),
        cmocka_unit_test(reshape_fills_variable_dimensions_from_left_to_right),
        cmocka_unit_test(an_empty_reshape_leaves_the_batch),
        cmocka_unit_test(the_first_unknown_output_ends_the_search),
        cmocka_unit_test(many_outputs_are_sorted_with_one_lookup_each),
        cmocka_unit_test(a_raw_body_takes_its_shape_from_the_model),
        cmocka_unit_test(a_raw_string_gets_its_prefix),
        cmocka_unit_test(the_last_reference_of_a_model_tells_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
