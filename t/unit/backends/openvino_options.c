/* parameters of a model of backend openvino, and the properties they mean */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/openvino/options.c"

typedef struct {
    bk_model_config_t config;
    vino_options_t    options;
} fixture_t;

/* parameters: members of a JSON object, each a string */
static TRITONSERVER_Error *
read_options(fixture_t *f, const char *parameters)
{
    char text[512];

    int len = snprintf(text, sizeof(text), "{\"parameters\":{%s}}",
        parameters);
    assert_in_range(len, 1, (int) sizeof(text) - 1);
    f->config = (bk_model_config_t) { 0 };
    assert_null(bk_json_parse(text, (size_t) len, &f->config.root));
    return vino_options_read(&f->options, &f->config);
}

static void
done(fixture_t *f)
{
    bk_json_free(f->config.root);
}

static const char *
property(const fixture_t *f, const char *key)
{
    for (size_t i = 0; i < f->options.property_count; i++) {
        if (strcmp(f->options.properties[i].key, key) == 0) {
            return f->options.properties[i].value;
        }
    }

    return "";
}

#define P(key, value) "\"" key "\":{\"string_value\":\"" value "\"}"

/* The properties that set streams and threads; empty: not set. */
static void
expect(const char *parameters, uint32_t instances, const char *streams,
    const char *threads)
{
    fixture_t f;

    assert_null(read_options(&f, parameters));
    vino_options_properties(&f.options, instances);
    assert_string_equal(property(&f, "NUM_STREAMS"), streams);
    assert_string_equal(property(&f, "INFERENCE_NUM_THREADS"), threads);
    done(&f);
}

static void
each_instance_has_a_stream_of_one_thread(void **state)
{
    (void) state;
    expect("", 1, "1", "1");
    expect("", 5, "5", "5");
    expect(P("INFERENCE_NUM_THREADS", ""), 5, "5", "5");
}

static void
configured_streams_have_a_thread_each(void **state)
{
    (void) state;
    expect(P("NUM_STREAMS", "4"), 1, "4", "4");
    expect(P("NUM_STREAMS", "2"), 6, "2", "6");
    expect(P("NUM_STREAMS", "4") "," P("INFERENCE_NUM_THREADS", "3"), 1, "4",
        "3");
}

static void
the_library_chooses_where_it_is_asked_to(void **state)
{
    (void) state;
    expect(P("NUM_STREAMS", "auto"), 3, "AUTO", "");
    expect(P("NUM_STREAMS", "NUMA"), 3, "NUMA", "");
    expect(P("PERFORMANCE_HINT", "throughput"), 3, "", "");
    expect(P("PERFORMANCE_HINT", "LATENCY") ","
        P("INFERENCE_NUM_THREADS", "0"), 3, "", "0");
}

static void
precision_and_pinning_are_set_for_the_cpu_alone(void **state)
{
    fixture_t f;

    (void) state;
    assert_null(read_options(&f, ""));
    vino_options_properties(&f.options, 1);
    assert_string_equal(f.options.device, "CPU");
    assert_string_equal(property(&f, "INFERENCE_PRECISION_HINT"), "f32");
    assert_string_equal(property(&f, "ENABLE_CPU_PINNING"), "NO");
    done(&f);

    assert_null(read_options(&f, P("HINT_BF16", "yes")));
    vino_options_properties(&f.options, 1);
    assert_string_equal(property(&f, "INFERENCE_PRECISION_HINT"), "bf16");
    done(&f);

    assert_null(read_options(&f, P("TARGET_DEVICE", "GPU.1") ","
        P("COMPILATION_NUM_THREADS", "2") "," P("NUM_STREAMS", "2")));
    vino_options_properties(&f.options, 3);
    assert_string_equal(f.options.device, "GPU.1");
    assert_int_equal(f.options.property_count, 2);
    assert_string_equal(property(&f, "COMPILATION_NUM_THREADS"), "2");
    assert_string_equal(property(&f, "NUM_STREAMS"), "2");
    done(&f);
}

static void
properties_may_be_made_again(void **state)
{
    fixture_t f;

    (void) state;
    assert_null(read_options(&f, P("PERFORMANCE_HINT", "LATENCY") ","
        P("NUM_STREAMS", "2") "," P("INFERENCE_NUM_THREADS", "2")));
    for (int i = 0; i < 20; i++) {
        vino_options_properties(&f.options, 2);
        assert_in_range(f.options.property_count, 5, VINO_PROPERTIES_MAX);
    }
    done(&f);
}

static void
switches_are_yes_or_no(void **state)
{
    fixture_t f;

    (void) state;
    assert_null(read_options(&f, P("SKIP_OV_DYNAMIC_BATCHSIZE", "YES") ","
        P("ENABLE_BATCH_PADDING", "yes") "," P("RESHAPE_IO_LAYERS", "no")));
    assert_true(f.options.fixed_batch);
    assert_true(f.options.padding);
    assert_false(f.options.reshape);
    done(&f);
}

static void
wrong_values_are_named(void **state)
{
    static const char *const wrong[][2] = {
        { P("NUM_STREAMS", "many"), "NUM_STREAMS" },
        { P("NUM_STREAMS", "-1"), "AUTO/NUMA/<int_value>, got -1" },
        { P("NUM_STREAMS", "1234567890"), "got 1234567890" },
        { P("INFERENCE_NUM_THREADS", "1x"), "got 1x" },
        { P("INFERENCE_NUM_THREADS", " 1"), "got  1" },
        { P("COMPILATION_NUM_THREADS", "+1"), "COMPILATION_NUM_THREADS" },
        { P("PERFORMANCE_HINT", "YES"), "LATENCY/THROUGHPUT/CUMULATIVE" },
        { P("HINT_BF16", "no"), "'HINT_BF16' to be YES, got no" },
        { P("RESHAPE_IO_LAYERS", "1"), "YES or NO, got 1" }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        fixture_t f;

        TRITONSERVER_Error *err = read_options(&f, wrong[i][0]);
        assert_non_null(err);
        assert_int_equal(TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ERROR_INVALID_ARG);
        assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), wrong[i][1]));
        TRITONSERVER_ErrorDelete(err);
        done(&f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_instance_has_a_stream_of_one_thread),
        cmocka_unit_test(configured_streams_have_a_thread_each),
        cmocka_unit_test(the_library_chooses_where_it_is_asked_to),
        cmocka_unit_test(precision_and_pinning_are_set_for_the_cpu_alone),
        cmocka_unit_test(properties_may_be_made_again),
        cmocka_unit_test(switches_are_yes_or_no),
        cmocka_unit_test(wrong_values_are_named)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
