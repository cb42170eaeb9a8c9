#include "model/config_text.h"

#include "core/model/config_complete.h"

static inf_model_config_t *
make(const char *text)
{
    inf_model_config_t *c;
    assert_ok(inf_model_config_new(config_parse_normal(text), NULL, "test",
        &c));
    return c;
}

static inf_err_t *
merge(inf_model_config_t *c, const char *json)
{
    return inf_model_config_merge_json(c, json, strlen(json));
}

static void
tensors_and_batch_size_are_taken_over(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "input { name: \"old\" data_type: TYPE_FP32 dims: 1 }");

    assert_ok(merge(c, "{\"name\":\"other\",\"backend\":\"evil\","
        "\"max_batch_size\":4,\"input\":[{\"name\":\"I\",\"data_type\":"
        "\"TYPE_INT8\",\"dims\":[2,-1]}],\"output\":[{\"name\":\"O\","
        "\"data_type\":\"TYPE_STRING\",\"dims\":[\"3\"]}]}"));

    assert_string_equal(c->msg->name, "m");
    assert_string_equal(c->msg->backend, "b");
    assert_int_equal(c->msg->max_batch_size, 4);
    assert_int_equal(c->msg->n_input, 1);
    assert_string_equal(c->msg->input[0]->name, "I");
    assert_int_equal(c->msg->input[0]->n_dims, 2);
    assert_int_equal(c->msg->input[0]->dims[1], -1);
    assert_int_equal(c->msg->n_output, 1);
    assert_int_equal(c->msg->output[0]->dims[0], 3);
    inf_model_config_free(c);
}

static void
a_list_that_the_backend_leaves_out_becomes_empty(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "max_batch_size: 4 input { name: \"I\" }");
    assert_ok(merge(c, "{}"));
    assert_int_equal(c->msg->n_input, 0);
    assert_int_equal(c->msg->max_batch_size, 0);
    inf_model_config_free(c);
}

static void
a_scheduler_is_added_and_normalised(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\"");
    assert_ok(merge(c, "{\"max_batch_size\":4,\"dynamic_batching\":{}}"));
    assert_int_equal(c->msg->scheduling_choice_case,
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING);
    assert_int_equal(c->msg->dynamic_batching->preferred_batch_size[0], 4);
    inf_model_config_free(c);

    c = make("name: \"m\" backend: \"b\"");
    assert_ok(merge(c, "{\"sequence_batching\":{\"oldest\":{}}}"));
    assert_int_equal(
        c->msg->sequence_batching->max_sequence_idle_microseconds, 1000000);
    inf_model_config_free(c);
}

static void
a_configured_scheduler_must_come_back(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "max_batch_size: 4 dynamic_batching { preferred_batch_size: 2 }");

    assert_ok(merge(c, "{\"max_batch_size\":8,\"dynamic_batching\":"
        "{\"preferred_batch_size\":[7]}}"));
    assert_int_equal(c->msg->dynamic_batching->preferred_batch_size[0], 2);
    assert_int_equal(c->msg->max_batch_size, 8);

    assert_error(merge(c, "{\"max_batch_size\":1}"), INF_ERR_INTERNAL,
        "Cannot update scheduling choice from 11 to 0 when "
        "auto-completing.");
    assert_error(merge(c, "{\"sequence_batching\":{}}"), INF_ERR_INTERNAL,
        "Cannot update scheduling choice from 11 to 13");
    assert_int_equal(c->msg->max_batch_size, 8);
    inf_model_config_free(c);
}

static void
decoupled_is_taken_when_the_message_is_there(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "model_transaction_policy { decoupled: true }");

    assert_ok(merge(c, "{}"));
    assert_true(c->msg->model_transaction_policy->decoupled);
    assert_ok(merge(c, "{\"model_transaction_policy\":{}}"));
    assert_false(c->msg->model_transaction_policy->decoupled);
    inf_model_config_free(c);

    c = make("name: \"m\" backend: \"b\"");
    assert_ok(merge(c, "{}"));
    assert_null(c->msg->model_transaction_policy);
    assert_ok(merge(c, "{\"model_transaction_policy\":"
        "{\"decoupled\":true}}"));
    assert_true(c->msg->model_transaction_policy->decoupled);
    inf_model_config_free(c);
}

static void
what_is_not_a_configuration_is_rejected(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "max_batch_size: 4");

    assert_error(merge(c, "{\"max_batch\":1}"), INF_ERR_INVALID_ARG,
        "max_batch");
    assert_error(merge(c, "nonsense"), INF_ERR_INVALID_ARG, "");
    assert_int_equal(c->msg->max_batch_size, 4);
    inf_model_config_free(c);
}

static void
what_only_the_file_says_survives(void **state)
{
    (void) state;
    inf_model_config_t *c = make("name: \"m\" backend: \"b\" "
        "parameters { key: \"k\" value { string_value: \"v\" } } "
        "optimization { input_pinned_memory { } } "
        "input { name: \"I\" data_type: 99 dims: 1 }");

    assert_ok(merge(c, "{\"input\":[{\"name\":\"I\",\"data_type\":99,"
        "\"dims\":[1]}]}"));
    assert_int_equal(c->msg->n_parameters, 1);
    assert_string_equal(c->msg->parameters[0]->value->string_value, "v");
    assert_false(c->msg->optimization->input_pinned_memory->enable);
    assert_int_equal(c->msg->input[0]->data_type, 99);
    inf_model_config_free(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_and_batch_size_are_taken_over),
        cmocka_unit_test(a_list_that_the_backend_leaves_out_becomes_empty),
        cmocka_unit_test(a_scheduler_is_added_and_normalised),
        cmocka_unit_test(a_configured_scheduler_must_come_back),
        cmocka_unit_test(decoupled_is_taken_when_the_message_is_there),
        cmocka_unit_test(what_is_not_a_configuration_is_rejected),
        cmocka_unit_test(what_only_the_file_says_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
