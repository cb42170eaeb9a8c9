/* names of a model of backend pytorch: those in a package's description, and
   which argument or result of forward() each tensor of a configuration is */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/pytorch/call_spec.c"
#include "backends/pytorch/element_type.c"
#include "backends/pytorch/engine.c"
#include "backends/pytorch/names.c"
#include "backends/pytorch/tables.c"

#define LEAF "{\"type\":null,\"context\":null,\"children_spec\":[]}"
#define NODE(type, context, ...) "{\"type\":\"builtins." type "\"," \
    "\"context\":" context ",\"children_spec\":[" __VA_ARGS__ "]}"
#define SPEC(node) "[1," node "]"
#define ARGUMENTS(args, kwargs) SPEC(NODE("tuple", "\"null\"", args "," kwargs))
#define NO_KWARGS NODE("dict", "\"[]\"", "")

static void
failed(TRITONSERVER_Error *err, const char *words)
{
    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

/* ---- descriptions of packages */

static void
a_package_names_its_tensors_by_the_way_to_them(void **state)
{
    (void) state;
    pt_engine_t *engine = calloc(1, sizeof(*engine));
    const pt_signature_t *s = &engine->signature;

    assert_null(pt_call_spec_read(&engine->signature, ARGUMENTS(
        NODE("tuple", "\"null\"", LEAF "," NODE("list", "null", LEAF "," LEAF)),
        NODE("dict", "\"[\\\"mask\\\"]\"", LEAF)),
        SPEC(NODE("dict", "[\"sum\",\"rest\"]", LEAF ","
        NODE("tuple", "\"null\"", LEAF)))));

    assert_int_equal(s->parameter_count, 4);
    assert_string_equal(s->parameters[0].name, "ARGS[0]");
    assert_string_equal(s->parameters[1].name, "ARGS[1][0]");
    assert_string_equal(s->parameters[2].name, "ARGS[1][1]");
    assert_string_equal(s->parameters[3].name, "KWARGS[mask]");
    assert_int_equal(s->output_count, 2);
    assert_string_equal(s->outputs[0], "RESULT[sum]");
    assert_string_equal(s->outputs[1], "RESULT[rest][0]");
    pt_engine_free(engine);
}

static void
a_single_result_has_no_brackets(void **state)
{
    (void) state;
    pt_engine_t *engine = calloc(1, sizeof(*engine));

    assert_null(pt_call_spec_read(&engine->signature, ARGUMENTS(
        NODE("tuple", "\"null\"", LEAF), NO_KWARGS), SPEC(LEAF)));
    assert_string_equal(engine->signature.outputs[0], "RESULT");
    pt_engine_free(engine);
}

static void
a_description_that_is_none_is_rejected(void **state)
{
    (void) state;
    static const char good[] = ARGUMENTS(NODE("tuple", "\"null\"", LEAF),
        NO_KWARGS);
    pt_signature_t s = { 0 };
    char deep[2048] = "[1,";

    failed(pt_call_spec_read(&s, "", SPEC(LEAF)), "version");
    failed(pt_call_spec_read(&s, "[1", SPEC(LEAF)), "input specification");
    failed(pt_call_spec_read(&s, "[2," LEAF "]", SPEC(LEAF)), "version");
    failed(pt_call_spec_read(&s, SPEC(LEAF), SPEC(LEAF)), "0 parts");
    failed(pt_call_spec_read(&s, good, "{}"), "output specification");

    for (int i = 0; i < 40; i++) {
        strcat(deep, "{\"type\":\"l\",\"children_spec\":[");
    }
    strcat(deep, LEAF);
    for (int i = 0; i < 40; i++) {
        strcat(deep, "]}");
    }
    strcat(deep, "]");
    failed(pt_call_spec_read(&s, good, deep), "nested more than");
}

/* ---- places of a configuration's tensors */

typedef struct {
    bk_tensor_config_t inputs[4];
    bk_tensor_config_t outputs[4];
    bk_model_config_t  config;
    pt_parameter_t     parameters[4];
    char              *results[4];
    pt_signature_t     signature;
    bk_tensors_t       tensors;
    pt_places_t        places;
} fixture_t;

static uint32_t
names_set(bk_tensor_config_t *to, const char *const *names)
{
    static int64_t dim = -1;
    uint32_t n = 0;

    for (; names[n] != NULL; n++) {
        to[n] = (bk_tensor_config_t) {
            .name = names[n], .datatype = TRITONSERVER_TYPE_FP32,
            .model_dims = &dim, .model_dims_count = 1
        };
    }

    return n;
}

/* Lists end with NULL. */
static void
fixture_init(fixture_t *f, const char *const *inputs,
    const char *const *outputs, const char *const *parameters,
    uint32_t results)
{
    *f = (fixture_t) { 0 };
    f->config = (bk_model_config_t) {
        .name = "m", .inputs = f->inputs, .outputs = f->outputs
    };
    f->config.input_count = names_set(f->inputs, inputs);
    f->config.output_count = names_set(f->outputs, outputs);
    f->signature = (pt_signature_t) {
        .parameters = f->parameters, .outputs = f->results,
        .output_count = results
    };
    for (uint32_t i = 0; parameters[i] != NULL; i++) {
        f->parameters[i].name = (char *) (uintptr_t) parameters[i];
        f->signature.parameter_count++;
    }
}

static TRITONSERVER_Error *
find(fixture_t *f)
{
    TRITONSERVER_Error *err = pt_tables_read(&f->tensors, &f->config);

    return err != NULL ? err : pt_places_find(&f->places, &f->config,
        &f->tensors, &f->signature);
}

static void
fixture_fini(fixture_t *f)
{
    pt_places_fini(&f->places);
    bk_tensors_fini(&f->tensors);
}

#define LIST(...) (const char *const[]) { __VA_ARGS__, NULL }

static void
inputs_are_found_by_argument_then_index_then_order(void **state)
{
    (void) state;
    static const struct {
        const char *names[3];
        uint32_t    places[2];
    } cases[] = {
        { { "b", "a" },            { 1, 0 } },
        { { "IN__1", "IN__0" },    { 1, 0 } },
        { { "a", "IN__1" },        { 0, 1 } },   /* order: "a" has no index */
        { { "first", "second" },   { 0, 1 } },
        { { "b", "second" },       { 0, 1 } },
        { { "x__", "y__1" },       { 0, 1 } }
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture_t f;

        fixture_init(&f, cases[i].names, LIST("y"), LIST("a", "b"), 1);
        assert_null(find(&f));
        assert_int_equal(f.places.inputs[0], cases[i].places[0]);
        assert_int_equal(f.places.inputs[1], cases[i].places[1]);
        fixture_fini(&f);
    }
}

static void
outputs_are_found_by_index_or_order(void **state)
{
    (void) state;
    fixture_t f;

    fixture_init(&f, LIST("a"), LIST("y__1", "y__0"), LIST("a"), 2);
    assert_null(find(&f));
    assert_int_equal(f.places.outputs[0], 1);
    assert_int_equal(f.places.outputs[1], 0);
    fixture_fini(&f);

    fixture_init(&f, LIST("a"), LIST("y__1", "other"), LIST("a"), 2);
    assert_null(find(&f));
    assert_int_equal(f.places.outputs[0], 0);
    assert_int_equal(f.places.outputs[1], 1);
    fixture_fini(&f);

    fixture_init(&f, LIST("a"), LIST("y__2"), LIST("a"), 2);
    failed(find(&f), "This model has 2 outputs");
    fixture_fini(&f);
}

static void
each_argument_has_one_input_or_a_default(void **state)
{
    (void) state;
    fixture_t f;

    fixture_init(&f, LIST("a"), LIST("y"), LIST("a", "b"), 1);
    failed(find(&f), "configuration expects 1 inputs, model provides 2: none "
        "is for 'b'");
    fixture_fini(&f);

    fixture_init(&f, LIST("a"), LIST("y"), LIST("a", "b"), 1);
    f.parameters[1].has_default = true;
    assert_null(find(&f));
    fixture_fini(&f);

    fixture_init(&f, LIST("x__0", "y__0"), LIST("y"), LIST("a", "b"), 1);
    failed(find(&f), "'x__0' and 'y__0' are both argument 0");
    fixture_fini(&f);

    fixture_init(&f, LIST("x__0", "y__99999999999"), LIST("y"),
        LIST("a", "b"), 1);
    failed(find(&f), "y__99999999999");
    fixture_fini(&f);
}

static void
a_package_takes_no_other_names(void **state)
{
    (void) state;
    fixture_t f;

    fixture_init(&f, LIST("ARGS[0]"), LIST("RESULT"), LIST("ARGS[0]"), 1);
    f.results[0] = (char *) (uintptr_t) "RESULT";
    assert_null(find(&f));
    fixture_fini(&f);

    fixture_init(&f, LIST("x"), LIST("RESULT"), LIST("ARGS[0]"), 1);
    f.results[0] = (char *) (uintptr_t) "RESULT";
    failed(find(&f), "is not in its file, which has 1: ARGS[0]");
    fixture_fini(&f);

    fixture_init(&f, LIST("x__0"), LIST("y"), LIST("ARGS[0]"), 1);
    f.results[0] = (char *) (uintptr_t) "RESULT";
    failed(find(&f), "is not in its file, which has 1: RESULT");
    fixture_fini(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_package_names_its_tensors_by_the_way_to_them),
        cmocka_unit_test(a_single_result_has_no_brackets),
        cmocka_unit_test(a_description_that_is_none_is_rejected),
        cmocka_unit_test(inputs_are_found_by_argument_then_index_then_order),
        cmocka_unit_test(outputs_are_found_by_index_or_order),
        cmocka_unit_test(each_argument_has_one_input_or_a_default),
        cmocka_unit_test(a_package_takes_no_other_names)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
