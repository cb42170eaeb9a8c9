#include "proto/message_fixture.h"

#include "core/proto/config_json.h"
#include "core/proto/text_format.h"

#define FIXTURES "t/fixtures/config/"

static Inference__ModelConfig *
from_text(inf_slice_t text)
{
    ProtobufCMessage *m;

    must(inf_text_parse(&inference__model_config__descriptor, text, "t", &m));
    return (Inference__ModelConfig *) m;
}

static void
to_json(const char *text, inf_buf_t *out)
{
    Inference__ModelConfig *c = from_text(inf_slice_str(text));

    inf_buf_init(out);
    must(inf_model_config_to_json(c, out));
    inf_message_free(&c->base);
}

static void
assert_holds(const char *text, const char *part)
{
    inf_buf_t out;

    to_json(text, &out);
    if (strstr(out.data, part) == NULL) {
        print_error("%s\nis not in %s\n", part, out.data);
        fail();
    }
    inf_buf_fini(&out);
}

static void
a_configuration_without_settings_is_the_empty_text(void **state)
{
    (void) state;
    inf_buf_t out;

    to_json("", &out);
    assert_int_equal(out.len, 0);
    inf_buf_fini(&out);
}

static void
the_top_level_shows_what_it_must_in_order(void **state)
{
    (void) state;
    inf_buf_t out;

    to_json("max_batch_size: 4 dynamic_batching { } response_cache { }",
        &out);
    assert_string_equal(out.data, "{\"name\":\"\",\"platform\":\"\","
        "\"backend\":\"\",\"runtime\":\"\",\"max_batch_size\":4,"
        "\"input\":[],\"output\":[],\"batch_input\":[],\"batch_output\":[],"
        "\"dynamic_batching\":{\"preferred_batch_size\":[],"
        "\"max_queue_delay_microseconds\":0,\"preserve_ordering\":false,"
        "\"priority_levels\":0,\"default_priority_level\":0,"
        "\"priority_queue_policy\":{}},\"instance_group\":[],"
        "\"default_model_filename\":\"\",\"cc_model_filenames\":{},"
        "\"metric_tags\":{},\"parameters\":{},\"model_warmup\":[],"
        "\"response_cache\":{\"enable\":false}}");
    inf_buf_fini(&out);
}

static void
listed_wide_integers_are_numbers(void **state)
{
    (void) state;
    static const struct {
        const char  *text;
        const char  *json;
    } cases[] = {
        { "input { dims: [16] reshape { shape: [16] } }",
            "\"dims\":[16],\"reshape\":{\"shape\":[16]}" },
        { "output { dims: [-1, 2] reshape { shape: 3 } }",
            "\"dims\":[-1,2],\"reshape\":{\"shape\":[3]}" },
        { "version_policy { specific { versions: 1 } }",
            "\"version_policy\":{\"specific\":{\"versions\":[1]}}" },
        { "dynamic_batching { max_queue_delay_microseconds: 5 "
            "priority_levels: 18446744073709551615 default_priority_level: 2 "
            "default_queue_policy { default_timeout_microseconds: 6 } "
            "priority_queue_policy { key: 18446744073709551615 value { "
            "default_timeout_microseconds: 7 } } }",
            "\"max_queue_delay_microseconds\":5,\"preserve_ordering\":false,"
            "\"priority_levels\":18446744073709551615,"
            "\"default_priority_level\":2,\"default_queue_policy\":{"
            "\"timeout_action\":\"REJECT\",\"default_timeout_microseconds\":6,"
            "\"allow_timeout_override\":false,\"max_queue_size\":0},"
            "\"priority_queue_policy\":{\"18446744073709551615\":{"
            "\"timeout_action\":\"REJECT\","
            "\"default_timeout_microseconds\":7" },
        { "sequence_batching { oldest { max_queue_delay_microseconds: 8 } "
            "max_sequence_idle_microseconds: 9 state { dims: 4 } }",
            "\"sequence_batching\":{\"oldest\":{\"max_candidate_sequences\":0,"
            "\"preferred_batch_size\":[],\"max_queue_delay_microseconds\":8,"
            "\"preserve_ordering\":false},"
            "\"max_sequence_idle_microseconds\":9,\"control_input\":[],"
            "\"state\":[{\"input_name\":\"\",\"output_name\":\"\","
            "\"data_type\":\"TYPE_INVALID\",\"dims\":[4]," },
        { "sequence_batching { direct { max_queue_delay_microseconds: 8 } }",
            "\"direct\":{\"max_queue_delay_microseconds\":8," },
        { "ensemble_scheduling { step { model_version: -1 } }",
            "\"model_version\":-1," },
        { "model_warmup { inputs { key: 'x' value { dims: 3 } } }",
            "\"inputs\":{\"x\":{\"data_type\":\"TYPE_INVALID\","
            "\"dims\":[3]}}" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_holds(cases[i].text, cases[i].json);
    }
}

static void
the_other_wide_integers_stay_strings(void **state)
{
    (void) state;

    assert_holds("sequence_batching { state { dims: 4 initial_state { "
        "dims: 5 zero_data: false name: 'n' } } }",
        "\"initial_state\":[{\"data_type\":\"TYPE_INVALID\",\"dims\":[\"5\"],"
        "\"zero_data\":false,\"name\":\"n\"}]");
    assert_holds("optimization { cuda { graph_spec { input { key: 'x' value { "
        "dim: [4, 5] } } graph_lower_bound { input { key: 'y' value { dim: 6 "
        "} } } } } }",
        "\"graph_spec\":[{\"batch_size\":0,\"input\":{\"x\":{\"dim\":[\"4\","
        "\"5\"]}},\"graph_lower_bound\":{\"batch_size\":0,\"input\":{\"y\":"
        "{\"dim\":[\"6\"]}}}}]");
    assert_holds("instance_group { secondary_devices { device_id: 7 } }",
        "\"secondary_devices\":[{\"kind\":\"KIND_NVDLA\","
        "\"device_id\":\"7\"}]");
}

static void
unset_oneof_members_are_left_out_and_set_ones_shown(void **state)
{
    (void) state;

    assert_holds("model_warmup { inputs { key: 'x' value { "
        "zero_data: false } } }",
        "\"dims\":[],\"zero_data\":false}");
    assert_holds("version_policy { }", "\"version_policy\":{}");
    assert_holds("input { data_type: 99 }", "\"data_type\":99");
}

static void
json_reads_back_as_the_same_configuration(void **state)
{
    (void) state;
    static const char *const names[] = {
        FIXTURES "everything.pbtxt", FIXTURES "ensemble.pbtxt",
        FIXTURES "sequence.pbtxt", FIXTURES "crlf.pbtxt",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Inference__ModelConfig *again;
        inf_buf_t text;
        inf_buf_t json;

        assert_true(read_file(names[i], &text));
        Inference__ModelConfig *c = from_text(inf_buf_slice(&text));
        inf_buf_init(&json);
        must(inf_model_config_to_json(c, &json));
        must(inf_model_config_from_json(inf_buf_slice(&json), &again));
        assert_same_message(&c->base, &again->base);
        inf_buf_fini(&text);
        inf_buf_fini(&json);
        inf_message_free(&c->base);
        inf_message_free(&again->base);
    }
}

static void
a_bad_override_says_where(void **state)
{
    (void) state;
    Inference__ModelConfig *c;

    must_fail(inf_model_config_from_json(INF_SLICE("{\"inputs\":[]}"), &c),
        "inputs: unknown field of inference.ModelConfig, did you mean "
        "\"input\"? at byte 1");
    must_fail(inf_model_config_from_json(INF_SLICE(""), &c),
        "expected an object");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_without_settings_is_the_empty_text),
        cmocka_unit_test(the_top_level_shows_what_it_must_in_order),
        cmocka_unit_test(listed_wide_integers_are_numbers),
        cmocka_unit_test(the_other_wide_integers_stay_strings),
        cmocka_unit_test(unset_oneof_members_are_left_out_and_set_ones_shown),
        cmocka_unit_test(json_reads_back_as_the_same_configuration),
        cmocka_unit_test(a_bad_override_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
