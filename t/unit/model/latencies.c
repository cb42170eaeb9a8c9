#include "model/config_text.h"

#include <math.h>
#include <string.h>

#include "core/base/log.h"
#include "core/model/latencies.h"

#define MS UINT64_C(1000000)

static inf_latencies_t *
make(const char *config, bool summaries, bool histogram)
{
    const inf_latencies_options_t options = {
        .summaries = summaries, .histogram = histogram,
        .cached = strstr(config, "response_cache") != NULL
    };
    Inference__ModelConfig *msg = config_parse(config);
    inf_latencies_t *l;

    assert_ok(inf_latencies_new(msg, &options, &l));
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

    const uint64_t some[4] = { 1, 2, 3, 4 };
    l = make("", false, true);
    assert_null(l->summary);
    inf_latencies_success(l, 0, 0, some, 5);
    inf_latencies_free(l);
}

static const uint64_t stamps[4] = { 30000, 70000, 170000, 171000 };

/* The one value that was observed lately; NaN: none. */
static double
only(const inf_latencies_t *l, inf_latency_t which)
{
    const double ends[2] = { 0, 1 };
    double values[2];

    inf_summary_quantiles(l->summary, which, 200000, ends, 2, values);
    assert_true(values[0] == values[1] || isnan(values[0]));
    return values[0];
}

static void
each_part_has_its_summary(void **state)
{
    (void) state;
    inf_latencies_t *l = make("", true, false);

    inf_latencies_success(l, 100000, 11000, stamps, 200000);
    assert_true(only(l, INF_LATENCY_REQUEST) == 100);
    assert_true(only(l, INF_LATENCY_QUEUE) == 19);
    assert_true(only(l, INF_LATENCY_COMPUTE_INPUT) == 40);
    assert_true(only(l, INF_LATENCY_COMPUTE_INFER) == 100);
    assert_true(only(l, INF_LATENCY_COMPUTE_OUTPUT) == 1);
    assert_false(inf_latencies_has(l, INF_LATENCY_CACHE_HIT));
    assert_false(inf_latencies_has(l, INF_LATENCY_CACHE_MISS));
    inf_latencies_hit(l, 1, 2, 3, 4);           /* of no use here, no harm   */
    inf_latencies_miss(l, 3, 4);
    inf_latencies_free(l);
}

static void
a_model_with_a_cache_has_summaries_of_it(void **state)
{
    (void) state;
    inf_latencies_t *l = make("response_cache { enable: true }", true, false);

    assert_false(inf_latencies_has(l, INF_LATENCY_REQUEST));
    inf_latencies_hit(l, 10000, 30000, 77000, 90000);
    assert_true(only(l, INF_LATENCY_QUEUE) == 20);
    assert_true(only(l, INF_LATENCY_CACHE_HIT) == 77);
    assert_true(isnan(only(l, INF_LATENCY_CACHE_MISS)));
    inf_latencies_miss(l, 55999, 90000);
    assert_true(only(l, INF_LATENCY_CACHE_MISS) == 55);
    assert_true(isnan(only(l, INF_LATENCY_COMPUTE_INFER)));
    inf_latencies_free(l);
}

static void
instances_on_a_gpu_have_summaries_of_their_own(void **state)
{
    (void) state;
    inf_latencies_t *l = make("", true, true);

    assert_ok(inf_latencies_add_gpu(l, 1));
    assert_ok(inf_latencies_add_gpu(l, 0));
    assert_ok(inf_latencies_add_gpu(l, 1));
    inf_latencies_t *one = inf_latencies_of_gpu(l, 1);
    inf_latencies_t *none = inf_latencies_of_gpu(l, 7);

    assert_ptr_equal(none, l);
    assert_int_equal(one->device_id, 1);
    assert_ptr_not_equal(one, inf_latencies_of_gpu(l, 0));
    inf_latencies_success(one, 100000, 11000, stamps, 200000);
    assert_true(only(one, INF_LATENCY_QUEUE) == 19);
    assert_true(isnan(only(l, INF_LATENCY_QUEUE)));
    assert_true(isnan(only(inf_latencies_of_gpu(l, 0), INF_LATENCY_QUEUE)));
    inf_latencies_free(l);

    l = make("", false, true);
    assert_ok(inf_latencies_add_gpu(l, 1));
    assert_null(l->next);
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

static void
buckets_that_are_no_bounds_are_left_out(void **state)
{
    (void) state;
    inf_latencies_t *l = make("name: 'm' model_metrics { metric_control {"
        " metric_identifier { family:"
        " 'nv_inference_first_response_histogram_ms' } histogram_options {"
        " buckets: [ 5, nan, 1, inf, 5, -inf, 1, 1 ] } } }", false, true);

    assert_int_equal(l->bound_count, 2);
    assert_true(l->bounds[0] == 1 && l->bounds[1] == 5);
    inf_latencies_first_response(l, 0, 6 * MS);
    assert_int_equal(l->counts[2], 1);
    inf_latencies_free(l);

    l = make("name: 'm' model_metrics { metric_control { metric_identifier {"
        " family: 'nv_inference_first_response_histogram_ms' }"
        " histogram_options { buckets: nan } } }", false, true);
    assert_int_equal(l->bound_count, 0);
    inf_latencies_first_response(l, 0, 6 * MS);
    assert_int_equal(l->counts[0], 1);
    inf_latencies_free(l);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_made_unless_asked_for),
        cmocka_unit_test(each_part_has_its_summary),
        cmocka_unit_test(a_model_with_a_cache_has_summaries_of_it),
        cmocka_unit_test(instances_on_a_gpu_have_summaries_of_their_own),
        cmocka_unit_test(first_responses_fall_into_the_usual_buckets),
        cmocka_unit_test(a_model_may_have_buckets_of_its_own),
        cmocka_unit_test(buckets_that_are_no_bounds_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
