#include "model/config_text.h"

#include "core/base/log.h"
#include "core/model/latencies.h"

#define MS UINT64_C(1000000)

static inf_latencies_t *
make(const char *config, bool summaries, bool histogram)
{
    Inference__ModelConfig *msg = config_parse(config);
    inf_latencies_t *l;

    assert_ok(inf_latencies_new(msg, summaries, histogram, &l));
    inf_message_free(&msg->base);
    return l;
}

static void
nothing_is_made_unless_asked_for(void **state)
{
    (void) state;
    assert_null(make("", false, false));

    inf_latencies_t *l = make("", true, false);
    assert_false(l->histogram);
    inf_latencies_first_response(l, 1, 2);      /* not counted, no harm      */
    inf_latencies_free(l);

    const uint64_t stamps[4] = { 1, 2, 3, 4 };
    l = make("", false, true);
    assert_null(l->summaries[0]);
    inf_latencies_success(l, 0, 0, stamps, 5);
    inf_latencies_free(l);
}

static void
each_part_has_its_summary(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 30000, 70000, 170000, 171000 };
    inf_latencies_t *l = make("", true, false);

    inf_latencies_success(l, 10000, 11000, stamps, 200000);
    assert_int_equal(inf_summary_sum(l->summaries[INF_LATENCY_REQUEST]), 190);
    assert_int_equal(inf_summary_sum(l->summaries[INF_LATENCY_QUEUE]), 19);
    assert_int_equal(inf_summary_sum(
        l->summaries[INF_LATENCY_COMPUTE_INPUT]), 40);
    assert_int_equal(inf_summary_sum(
        l->summaries[INF_LATENCY_COMPUTE_INFER]), 100);
    assert_int_equal(inf_summary_sum(
        l->summaries[INF_LATENCY_COMPUTE_OUTPUT]), 1);
    inf_latencies_free(l);
}

static void
first_responses_fall_into_the_usual_buckets(void **state)
{
    (void) state;
    inf_latencies_t *l = make("", false, true);

    assert_int_equal(l->bound_count, 4);
    inf_latencies_first_response(l, MS, MS);
    inf_latencies_first_response(l, 9, 100 * MS + 9);       /* le="100"      */
    inf_latencies_first_response(l, 0, 101 * MS);
    inf_latencies_first_response(l, 0, 9000 * MS);
    inf_latencies_first_response(l, 5 * MS, 0);     /* a clock run backwards */
    assert_int_equal(l->counts[0], 3);
    assert_int_equal(l->counts[1], 1);
    assert_int_equal(l->counts[2], 0);
    assert_int_equal(l->counts[3], 0);
    assert_int_equal(l->counts[4], 1);
    assert_int_equal(l->sum_ms, 9201);
    inf_latencies_free(l);
}

static void
a_model_may_have_buckets_of_its_own(void **state)
{
    (void) state;
    inf_latencies_t *l = make("name: 'm' model_metrics { metric_control {"
        " metric_identifier { family: 'nv_other' } histogram_options {"
        " buckets: 1 } } metric_control { metric_identifier { family:"
        " 'nv_inference_first_response_histogram_ms' } histogram_options {"
        " buckets: [ 20, 5 ] } } }", false, true);

    assert_int_equal(l->bound_count, 2);
    assert_true(l->bounds[0] == 5 && l->bounds[1] == 20);
    inf_latencies_first_response(l, 0, 6 * MS);
    assert_int_equal(l->counts[1], 1);
    inf_latencies_free(l);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_made_unless_asked_for),
        cmocka_unit_test(each_part_has_its_summary),
        cmocka_unit_test(first_responses_fall_into_the_usual_buckets),
        cmocka_unit_test(a_model_may_have_buckets_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
