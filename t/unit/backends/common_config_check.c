/* configurations against the tensors of a model's file */

#include "common_world.h"

#include "backends/common/config_check.h"

#define TENSOR(name, type, dims) \
    "{\"name\":\"" name "\",\"data_type\":\"TYPE_" type "\",\"dims\":[" dims "]"
#define MODEL_OF(batch, inputs, outputs, more) "{\"name\":\"m\"," \
    "\"max_batch_size\":" batch ",\"input\":[" inputs "]," \
    "\"output\":[" outputs "]" more "}"
#define X TENSOR("X", "FP32", "3") "}"
#define N TENSOR("N", "INT32", "-1") "}"
#define Y TENSOR("Y", "FP32", "-1") "}"
#define BOTH X "," N
#define GOOD(more) MODEL_OF("8", BOTH, Y, more)
#define SEQUENCE(text) ",\"sequence_batching\":{" text "}"
#define CONTROL(name, type) SEQUENCE("\"control_input\":[{\"name\":\"" name \
    "\",\"control\":[{\"" type "_false_true\":[0,1]}]}]")
#define STATE(in, out, dims) SEQUENCE("\"state\":[{\"input_name\":\"" in \
    "\",\"output_name\":\"" out "\",\"data_type\":\"TYPE_FP32\"," \
    "\"dims\":[" dims "]}]")
#define BATCH_INPUT(kind, target, type, source) ",\"batch_input\":[{" \
    "\"kind\":\"BATCH_" kind "\",\"target_name\":[\"" target "\"]," \
    "\"data_type\":\"TYPE_" type "\",\"source_input\":[\"" source "\"]}]"
#define BATCH_OUTPUT(target, source) ",\"batch_output\":[{" \
    "\"target_name\":[\"" target "\"],\"source_input\":[\"" source "\"]}]"

/*
 * X [-1,3] and N [-1,-1] are required.  D [-1], S [-1,2], C [-1,1], L [-1] and
 * R [-1,-1] have a default: a configuration may leave them out.
 */
static void
model_file(bk_tensors_t *t)
{
    expect_success(bk_tensors_init(t, 2, 5, 3));
    describe(&t->inputs[0], "X", TRITONSERVER_TYPE_FP32, DIMS(-1, 3));
    describe(&t->inputs[1], "N", TRITONSERVER_TYPE_INT32, DIMS(-1, -1));
    describe(&t->inputs[2], "D", TRITONSERVER_TYPE_FP32, DIMS(-1));
    describe(&t->inputs[3], "S", TRITONSERVER_TYPE_FP32, DIMS(-1, 2));
    describe(&t->inputs[4], "C", TRITONSERVER_TYPE_INT32, DIMS(-1, 1));
    describe(&t->inputs[5], "L", TRITONSERVER_TYPE_INT32, DIMS(-1));
    describe(&t->inputs[6], "R", TRITONSERVER_TYPE_INT32, DIMS(-1, -1));
    describe(&t->outputs[0], "Y", TRITONSERVER_TYPE_FP32, DIMS(-1, -1));
    describe(&t->outputs[1], "T", TRITONSERVER_TYPE_FP32, DIMS(-1, 2));
    describe(&t->outputs[2], "MAP", TRITONSERVER_TYPE_INVALID, DIMS(-1));
}

typedef struct {
    const char *config;
    const char *words;                  /* NULL: it is good                  */
} case_t;

static void
check(const case_t *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bk_model_config_t c;
        bk_tensors_t t;

        model_file(&t);
        config_read(&c, cases[i].config);
        TRITONSERVER_Error *err = bk_config_check(&c, &t);
        if (cases[i].words == NULL) {
            expect_success(err);
        } else {
            expect_error(err, strstr(cases[i].words, "can carry") != NULL
                ? TRITONSERVER_ERROR_UNSUPPORTED
                : TRITONSERVER_ERROR_INVALID_ARG, cases[i].words);
        }
        bk_model_config_fini(&c);
        bk_tensors_fini(&t);
    }
}

static void
check_names_what_differs(void **state)
{
    static const case_t cases[] = {
        { GOOD(""), NULL },
        { MODEL_OF("8", BOTH "," TENSOR("Z", "FP32", "3") "}", Y, ""),
            "unable to load model 'm', configuration expects 3 inputs, model "
            "provides 2: the model has no 'Z'" },
        { MODEL_OF("8", X "," TENSOR("Z", "FP32", "3") "}", Y, ""),
            "unexpected inference input 'Z', allowed inputs are: X, N, " },
        { MODEL_OF("8", BOTH, TENSOR("Z", "FP32", "3") "}", ""),
            "unexpected inference output 'Z', allowed outputs are: Y, " },
        { MODEL_OF("8", X, Y, ""), "unable to load model 'm', configuration "
            "expects 1 inputs, model provides 2: none is for 'N'" },
        { MODEL_OF("8", X "," TENSOR("S", "FP32", "2") "}", Y, ""),
            "input \"N\" of the model is not in the configuration" },
        { MODEL_OF("8", TENSOR("X", "FP64", "3") "}," N, Y, ""),
            "unable to load model 'm', configuration expects datatype "
            "TYPE_FP64 for input 'X', model provides TYPE_FP32" },
        { MODEL_OF("8", BOTH, TENSOR("MAP", "FP32", "1") "}", ""),
            "output \"MAP\" of the model is not a tensor of a type that "
            "requests can carry" },
        { MODEL_OF("8", TENSOR("X", "FP32", "3") ",\"optional\":true}," N, Y,
            ""), "no default" },
        { MODEL_OF("8", BOTH "," TENSOR("S", "FP32", "2")
            ",\"optional\":true}", Y, ""), NULL }
    };

    (void) state;
    check(cases, COUNT(cases));
}

static void
check_compares_dims(void **state)
{
    static const case_t cases[] = {
        { MODEL_OF("8", TENSOR("X", "FP32", "4") "}," N, Y, ""),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape "
            "[-1,3]) but the model configuration specifies 2 dimensions (an "
            "initial batch dimension because max_batch_size > 0 followed by "
            "the explicit tensor shape, making complete shape [-1,4])" },
        { MODEL_OF("8", TENSOR("X", "FP32", "3,1") "}," N, Y, ""),
            "complete shape [-1,3,1])" },
        { MODEL_OF("8", TENSOR("X", "FP32", "-1") "}," N, Y, ""), NULL },
        { MODEL_OF("8", X "," TENSOR("N", "INT32", "5") "}", Y, ""), NULL },
        { MODEL_OF("0", TENSOR("X", "FP32", "2,3") "},"
            TENSOR("N", "INT32", "5,5") "}", TENSOR("Y", "FP32", "-1,7") "}",
            ""), NULL },
        { MODEL_OF("0", TENSOR("X", "FP32", "3") "},"
            TENSOR("N", "INT32", "5,5") "}", TENSOR("Y", "FP32", "-1,7") "}",
            ""), "model 'm', tensor 'X': the model expects 2 dimensions "
            "(shape [-1,3]) but the model configuration specifies 1 "
            "dimensions (shape [3])" },
        { MODEL_OF("8", TENSOR("X", "FP32", "1")
            ",\"reshape\":{\"shape\":[3]}}," N, Y, ""), NULL }
    };

    (void) state;
    check(cases, COUNT(cases));
}

/* A first dimension of 2 is none for batches; a scalar is one element to clients. */
static void
check_needs_an_open_first_dimension_for_batches(void **state)
{
    static const char one[] = MODEL_OF("8", TENSOR("A", "FP32", "1") "}", "",
        ""), none[] = MODEL_OF("0", TENSOR("A", "FP32", "1") "}", "", ""),
        two[] = MODEL_OF("0", TENSOR("A", "FP32", "2") "}", "", ""),
        ones[] = MODEL_OF("0", TENSOR("A", "FP32", "1,1") "}", "", ""),
        open[] = MODEL_OF("0", TENSOR("A", "FP32", "1,-1") "}", "", "");
    bk_model_config_t c;
    bk_tensors_t t;

    (void) state;
    expect_success(bk_tensors_init(&t, 1, 0, 0));
    describe(&t.inputs[0], "A", TRITONSERVER_TYPE_FP32, DIMS(2, 1));
    config_read(&c, one);
    expect_error(bk_config_check(&c, &t), TRITONSERVER_ERROR_INVALID_ARG,
        "model 'm', tensor 'A': for the model to support batching the shape "
        "should have at least 1 dimension and the first dimension must be -1; "
        "but shape expected by the model is [2,1] (max_batch_size is 8)");
    t.inputs[0].dims_count = 0;
    expect_error(bk_config_check(&c, &t), TRITONSERVER_ERROR_INVALID_ARG,
        "the model is [] (max_batch_size is 8)");
    bk_model_config_fini(&c);

    config_read(&c, none);
    expect_success(bk_config_check(&c, &t));
    bk_model_config_fini(&c);
    config_read(&c, ones);
    expect_success(bk_config_check(&c, &t));
    bk_model_config_fini(&c);
    config_read(&c, open);
    expect_error(bk_config_check(&c, &t), TRITONSERVER_ERROR_INVALID_ARG,
        "the model expects 0 dimensions (shape []) but the model "
        "configuration specifies 2 dimensions (shape [1,-1])");
    bk_model_config_fini(&c);
    config_read(&c, two);
    expect_error(bk_config_check(&c, &t), TRITONSERVER_ERROR_INVALID_ARG,
        "(shape []) but the model configuration specifies 1 dimensions "
        "(shape [2])");
    bk_model_config_fini(&c);
    bk_tensors_fini(&t);
}

static void
check_wants_one_open_dimension_of_a_ragged_input(void **state)
{
    static const case_t cases[] = {
        { MODEL_OF("8", BOTH "," TENSOR("D", "FP32", "-1")
            ",\"allow_ragged_batch\":true}", Y, ""), NULL },
        { MODEL_OF("8", X "," TENSOR("N", "INT32", "-1")
            ",\"allow_ragged_batch\":true}", Y, ""),
            "input \"N\" has allow_ragged_batch, but the model takes it in 2 "
            "dimensions" }
    };

    (void) state;
    check(cases, COUNT(cases));
}

static void
check_compares_controls_and_states(void **state)
{
    static const case_t cases[] = {
        { GOOD(CONTROL("C", "int32")), NULL },
        { GOOD(CONTROL("L", "int32")), NULL },
        { GOOD(CONTROL("C", "fp32")),
            "control input \"C\" is configured as TYPE_FP32" },
        { GOOD(CONTROL("Q", "int32")), "control input \"Q\" of the "
            "configuration is not in the model" },
        { GOOD(CONTROL("N", "int32")), NULL },
        { MODEL_OF("8", BOTH, Y, CONTROL("X", "fp32")),
            "control input \"X\" has one element for each row of a batch, "
            "the model has shape [-1,3]" },
        { GOOD(STATE("S", "T", "2")), NULL },
        { GOOD(STATE("Q", "T", "2")), "state input \"Q\"" },
        { GOOD(STATE("S", "Q", "2")), "state output \"Q\"" },
        { GOOD(STATE("S", "T", "4")), "tensor 'S': the model expects 2 "
            "dimensions (shape [-1,2]) but" },
        { GOOD(STATE("D", "T", "2")), "tensor 'D': the model expects 1 "
            "dimensions (shape [-1]) but" },
        { GOOD(STATE("S", "MAP", "2")), "can carry" },

        /* a state's input is one that nobody needs to send */
        { MODEL_OF("8", X, Y, SEQUENCE("\"state\":[{\"input_name\":\"N\","
            "\"output_name\":\"T\",\"data_type\":\"TYPE_INT32\","
            "\"dims\":[2]}]")), "configuration expects datatype "
            "TYPE_INT32 for state output 'T'" }
    };

    (void) state;
    check(cases, COUNT(cases));
}

static void
check_compares_batch_inputs_and_outputs(void **state)
{
    static const case_t cases[] = {
        { GOOD(BATCH_INPUT("ELEMENT_COUNT", "L", "INT32", "X")), NULL },
        { GOOD(BATCH_INPUT("ITEM_SHAPE", "R", "INT32", "X")), NULL },
        { GOOD(BATCH_INPUT("ITEM_SHAPE", "L", "INT32", "X")),
            "batch input \"L\" has 2 dimensions, the model has shape [-1]" },
        { GOOD(BATCH_INPUT("ELEMENT_COUNT", "L", "FP32", "X")),
            "batch input \"L\" is configured as TYPE_FP32" },
        { GOOD(BATCH_INPUT("ELEMENT_COUNT", "Q", "INT32", "X")),
            "batch input \"Q\" of the configuration" },
        { GOOD(BATCH_INPUT("ELEMENT_COUNT", "L", "INT32", "Q")),
            "source of a batch input, \"Q\"" },
        { GOOD(BATCH_OUTPUT("Y", "X")), NULL },
        { GOOD(BATCH_OUTPUT("Q", "X")), "batch output \"Q\"" },
        { GOOD(BATCH_OUTPUT("Y", "Q")), "source of a batch output, \"Q\"" },

        /* a batch_output is split by its source, of any shape */
        { MODEL_OF("8", BOTH, TENSOR("Y", "FP32", "1,2,3") "}",
            BATCH_OUTPUT("Y", "X")), NULL },

        /* a required input that a batch_input makes is there */
        { MODEL_OF("8", X, Y, BATCH_INPUT("ITEM_SHAPE", "N", "INT32", "X")),
            NULL }
    };

    (void) state;
    check(cases, COUNT(cases));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_names_what_differs),
        cmocka_unit_test(check_compares_dims),
        cmocka_unit_test(check_needs_an_open_first_dimension_for_batches),
        cmocka_unit_test(check_wants_one_open_dimension_of_a_ragged_input),
        cmocka_unit_test(check_compares_controls_and_states),
        cmocka_unit_test(check_compares_batch_inputs_and_outputs)
    };

    return cmocka_run_group_tests(tests, NULL, no_leftovers);
}
