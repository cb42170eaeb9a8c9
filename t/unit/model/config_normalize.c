#include "model/config_text.h"

#include "core/model/config_normalize.h"

static void
version_policy_defaults_to_the_latest(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal("");
    assert_int_equal(msg->version_policy->policy_choice_case,
        INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST);
    assert_int_equal(msg->version_policy->latest->num_versions, 1);
    inf_message_free(&msg->base);

    msg = config_parse_normal("version_policy { }");
    assert_int_equal(msg->version_policy->policy_choice_case,
        INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE__NOT_SET);
    inf_message_free(&msg->base);

    msg = config_parse_normal("version_policy { latest { } }");
    assert_int_equal(msg->version_policy->latest->num_versions, 0);
    inf_message_free(&msg->base);
}

static void
preferred_batch_sizes_default_to_the_maximum(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(
        "max_batch_size: 8 dynamic_batching { }");
    assert_int_equal(msg->dynamic_batching->n_preferred_batch_size, 1);
    assert_int_equal(msg->dynamic_batching->preferred_batch_size[0], 8);
    inf_message_free(&msg->base);

    msg = config_parse_normal("dynamic_batching { }");
    assert_int_equal(msg->dynamic_batching->n_preferred_batch_size, 0);
    inf_message_free(&msg->base);

    msg = config_parse_normal(
        "max_batch_size: 8 dynamic_batching { preferred_batch_size: 2 }");
    assert_int_equal(msg->dynamic_batching->n_preferred_batch_size, 1);
    assert_int_equal(msg->dynamic_batching->preferred_batch_size[0], 2);
    inf_message_free(&msg->base);
}

static void
sequences_get_an_idle_time_and_preferred_sizes(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(
        "max_batch_size: 6 sequence_batching { oldest { } }");
    assert_int_equal(
        msg->sequence_batching->max_sequence_idle_microseconds, 1000000);
    assert_int_equal(
        msg->sequence_batching->oldest->preferred_batch_size[0], 6);
    inf_message_free(&msg->base);

    msg = config_parse_normal("max_batch_size: 6 sequence_batching { "
        "max_sequence_idle_microseconds: 5 direct { } }");
    assert_int_equal(
        msg->sequence_batching->max_sequence_idle_microseconds, 5);
    inf_message_free(&msg->base);
}

static void
pinned_memory_is_on_unless_said_otherwise(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal("");
    assert_true(msg->optimization->input_pinned_memory->enable);
    assert_true(msg->optimization->output_pinned_memory->enable);
    inf_message_free(&msg->base);

    msg = config_parse_normal("optimization { input_pinned_memory { } }");
    assert_false(msg->optimization->input_pinned_memory->enable);
    assert_true(msg->optimization->output_pinned_memory->enable);
    inf_message_free(&msg->base);
}

static void
an_ensemble_gets_no_optimization(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(
        "platform: \"ensemble\" ensemble_scheduling { }");
    assert_null(msg->optimization);
    assert_non_null(msg->version_policy);
    inf_message_free(&msg->base);
}

static void
twice_changes_nothing_more(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse_normal(
        "max_batch_size: 4 dynamic_batching { }");
    assert_null(inf_config_normalize(msg));
    assert_int_equal(msg->dynamic_batching->n_preferred_batch_size, 1);
    assert_int_equal(msg->version_policy->latest->num_versions, 1);
    inf_message_free(&msg->base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_policy_defaults_to_the_latest),
        cmocka_unit_test(preferred_batch_sizes_default_to_the_maximum),
        cmocka_unit_test(sequences_get_an_idle_time_and_preferred_sizes),
        cmocka_unit_test(pinned_memory_is_on_unless_said_otherwise),
        cmocka_unit_test(an_ensemble_gets_no_optimization),
        cmocka_unit_test(twice_changes_nothing_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
