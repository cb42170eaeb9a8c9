#include "model/config_text.h"

#include <stdio.h>

#include "core/base/log.h"
#include "core/include/datatype.h"
#include "core/model/config_names.h"
#include "core/model/config_tensors.h"

static inf_config_tensors_t *
make(const char *text)
{
    Inference__ModelConfig *msg = config_parse(text);
    inf_config_tensors_t *t;
    assert_ok(inf_config_tensors_new(msg, &t));
    inf_message_free(&msg->base);       /* the table needs it no more */
    return t;
}

static void
tensors_are_found_by_name_with_all_they_need(void **state)
{
    (void) state;
    inf_config_tensors_t *t = make("name: \"m\" max_batch_size: 8 "
        "input { name: \"A\" data_type: TYPE_FP32 dims: [2, 3] "
        "reshape { shape: [6] } } "
        "input { name: \"B\" data_type: TYPE_STRING dims: [-1] "
        "optional: true allow_ragged_batch: true } "
        "input { name: \"C\" data_type: TYPE_INT32 dims: [1] reshape { } "
        "is_shape_tensor: true } "
        "output { name: \"O\" data_type: TYPE_BF16 dims: [-1, 4] "
        "is_non_linear_format_io: true }");

    assert_int_equal(inf_config_tensors_max_batch_size(t), 8);
    assert_int_equal(inf_config_tensors_input_count(t), 3);
    assert_int_equal(inf_config_tensors_required_count(t), 2);
    assert_int_equal(inf_config_tensors_output_count(t), 1);

    const inf_config_tensor_t *a = inf_config_tensors_find_input(t,
        INF_SLICE("A"));
    assert_int_equal(a->index, 0);
    assert_int_equal(a->datatype, INF_TYPE_FP32);
    assert_int_equal(a->dim_count, 2);
    assert_int_equal(a->dims[1], 3);
    assert_true(a->has_reshape);
    assert_int_equal(a->reshape_count, 1);
    assert_int_equal(a->reshape[0], 6);
    assert_int_equal(a->elements, 6);
    assert_false(a->variable || a->optional || a->ragged || a->shape_tensor);

    const inf_config_tensor_t *b = inf_config_tensors_find_input(t,
        INF_SLICE("B"));
    assert_int_equal(b->datatype, INF_TYPE_BYTES);
    assert_true(b->variable && b->optional && b->ragged);
    assert_int_equal(b->elements, -1);
    assert_false(b->has_reshape);

    const inf_config_tensor_t *c = inf_config_tensors_find_input(t,
        INF_SLICE("C"));
    assert_true(c->has_reshape && c->shape_tensor);
    assert_int_equal(c->reshape_count, 0);
    assert_ptr_equal(c, inf_config_tensors_input(t, 2));

    const inf_config_tensor_t *o = inf_config_tensors_find_output(t,
        INF_SLICE("O"));
    assert_int_equal(o->datatype, INF_TYPE_BF16);
    assert_true(o->non_linear);
    assert_ptr_equal(o, inf_config_tensors_output(t, 0));

    assert_null(inf_config_tensors_find_input(t, INF_SLICE("O")));
    assert_null(inf_config_tensors_find_output(t, INF_SLICE("A")));
    assert_null(inf_config_tensors_find_input(t, INF_SLICE("")));
    assert_null(inf_config_tensors_find_input(t, INF_SLICE("AA")));
    inf_config_tensors_free(t);
}

static void
the_first_of_equal_names_counts_once(void **state)
{
    (void) state;
    inf_log_set_levels(false, false, false, 0);
    inf_config_tensors_t *t = make("name: \"m\" "
        "input { name: \"A\" data_type: TYPE_FP32 dims: 1 } "
        "input { name: \"A\" data_type: TYPE_INT8 dims: 2 }"
        "input { name: \"B\" data_type: TYPE_INT8 dims: 2 }");

    assert_int_equal(inf_config_tensors_input_count(t), 2);
    assert_int_equal(inf_config_tensors_required_count(t), 2);
    assert_int_equal(inf_config_tensors_find_input(t, INF_SLICE("A"))
        ->datatype, INF_TYPE_FP32);
    assert_int_equal(inf_config_tensors_find_input(t, INF_SLICE("B"))
        ->index, 1);
    inf_config_tensors_free(t);
}

static void
a_model_without_tensors_has_an_empty_table(void **state)
{
    (void) state;
    inf_config_tensors_t *t = make("name: \"m\"");
    assert_int_equal(inf_config_tensors_max_batch_size(t), 0);
    assert_int_equal(inf_config_tensors_input_count(t), 0);
    assert_null(inf_config_tensors_find_input(t, INF_SLICE("A")));
    inf_config_tensors_free(t);
    inf_config_tensors_free(NULL);
}

static void
many_names_are_all_found(void **state)
{
    (void) state;
    enum { NAMES = 5000 };
    char (*text)[16] = calloc(NAMES, sizeof(*text));
    inf_config_names_t names;

    assert_non_null(text);
    inf_config_names_init(&names);
    assert_int_equal(inf_config_names_find(&names, INF_SLICE("n0")),
        INF_CONFIG_NAMES_NONE);

    for (uint32_t i = 0; i < NAMES; i++) {
        snprintf(text[i], sizeof(text[i]), "n%u", i);
        assert_int_equal(inf_config_names_add(&names,
            inf_slice_str(text[i]), i), INF_CONFIG_NAMES_ADDED);
    }

    assert_int_equal(inf_config_names_add(&names, INF_SLICE("n7"), 9),
        INF_CONFIG_NAMES_KNOWN);
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_int_equal(inf_config_names_find(&names,
            inf_slice_str(text[i])), i);
    }

    assert_int_equal(inf_config_names_find(&names, INF_SLICE("n5000")),
        INF_CONFIG_NAMES_NONE);
    inf_config_names_fini(&names);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_by_name_with_all_they_need),
        cmocka_unit_test(the_first_of_equal_names_counts_once),
        cmocka_unit_test(a_model_without_tensors_has_an_empty_table),
        cmocka_unit_test(many_names_are_all_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
