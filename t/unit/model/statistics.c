#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/model/statistics.h"

static inf_statistics_t s, other;

static int
clear(void **state)
{
    (void) state;
    memset(&s, 0, sizeof(s));
    memset(&other, 0, sizeof(other));
    return 0;
}

static void
assert_duration(const inf_duration_t *d, uint64_t count, uint64_t ns)
{
    assert_int_equal(d->count, count);
    assert_int_equal(d->ns, ns);
}

static const inf_batch_stat_t *
batch(const inf_statistics_t *st, uint64_t rows)
{
    static const inf_batch_stat_t *found[4096];
    size_t count = inf_statistics_batches(st, found, 4096);

    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || found[i - 1]->batch_size
            < found[i]->batch_size);
        if (found[i]->batch_size == rows) {
            return found[i];
        }
    }
    return NULL;
}

static void
success_splits_the_time_at_the_stamps(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 100, 107, 120, 150 };

    inf_statistics_success(&s, 4, 10, 40, stamps, 200);
    assert_duration(&s.success, 1, 190);
    assert_duration(&s.queue, 1, 60);
    assert_duration(&s.compute_input, 1, 7);
    assert_duration(&s.compute_infer, 1, 13);
    assert_duration(&s.compute_output, 1, 30);
    assert_duration(&s.fail, 0, 0);
    assert_int_equal(s.inference_count, 4);
    assert_int_equal(s.execution_count, 0);
}

/* scheduling.md 1.3 */
static void
four_rows_in_one_execution_count_once(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 100, 107, 120, 150 };

    inf_statistics_success(&s, 4, 10, 40, stamps, 200);
    inf_statistics_batch(&s, 4, stamps, 1000);
    assert_int_equal(s.inference_count, 4);
    assert_int_equal(s.execution_count, 1);
    assert_duration(&s.success, 1, 190);
    assert_duration(&batch(&s, 4)->compute_input, 1, 7);
    assert_duration(&batch(&s, 4)->compute_infer, 1, 13);
    assert_duration(&batch(&s, 4)->compute_output, 1, 30);
}

/* scheduling.md 1.4 */
static void
four_requests_fused_into_one_execution(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 1, 2, 3, 4 };

    for (int i = 0; i < 4; i++) {
        inf_statistics_success(&s, 1, 0, 0, stamps, 5);
    }
    inf_statistics_batch(&s, 4, stamps, 1);
    assert_int_equal(s.inference_count, 4);
    assert_int_equal(s.execution_count, 1);
    assert_int_equal(batch(&s, 4)->compute_infer.count, 1);
    assert_null(batch(&s, 1));
}

static void
a_failure_counts_its_duration_alone(void **state)
{
    (void) state;
    inf_statistics_failure(&s, 10, 35);
    inf_statistics_failure(&s, 10, 5);
    inf_statistics_failure_for(&s, INF_FAILURE_REJECTED, 10, 10);
    assert_int_equal(s.failures[INF_FAILURE_OTHER], 2);
    assert_int_equal(s.failures[INF_FAILURE_REJECTED], 1);
    assert_int_equal(s.failures[INF_FAILURE_BACKEND], 0);

    inf_statistics_t sum = { 0 };
    inf_statistics_fold(&sum, &s);
    inf_statistics_fold(&sum, &s);
    assert_int_equal(sum.failures[INF_FAILURE_OTHER], 4);
    assert_duration(&s.fail, 3, 25);
    assert_duration(&s.success, 0, 0);
    assert_int_equal(s.inference_count, 0);
}

/* Stamps are the backend's: nonsense must not become 584 years. */
static void
stamps_out_of_order_count_as_no_time(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 90, 80, UINT64_MAX, 0 };

    inf_statistics_success(&s, 1, 500, 100, stamps, 400);
    assert_duration(&s.success, 1, 0);
    assert_duration(&s.queue, 1, 0);
    assert_duration(&s.compute_input, 1, 0);
    assert_duration(&s.compute_output, 1, 0);
    inf_statistics_batch(&s, 2, stamps, 0);
    assert_duration(&batch(&s, 2)->compute_output, 1, 0);
}

static void
the_last_inference_never_goes_back(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 0 };

    inf_statistics_batch(&s, 1, stamps, 50);
    inf_statistics_batch(&s, 1, stamps, 70);
    inf_statistics_batch(&s, 1, stamps, 60);
    assert_int_equal(s.last_inference_ms, 70);
    assert_int_equal(s.execution_count, 3);
}

static void
every_batch_size_has_its_row(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 0, 1, 2, 3 };

    for (uint64_t rows = 3000; rows >= 1; rows--) {
        inf_statistics_batch(&s, rows, stamps, 1);
    }
    for (uint64_t rows = 1; rows <= 3000; rows += 131) {
        inf_statistics_batch(&s, rows, stamps, 1);
        assert_int_equal(batch(&s, rows)->compute_infer.count, 2);
    }
    assert_null(batch(&s, 3001));
    assert_int_equal(inf_statistics_batches(&s, NULL, 0), 3000);

    inf_statistics_fold(&other, &s);
    inf_statistics_fold(&other, &s);
    assert_int_equal(batch(&other, 132)->compute_infer.count, 4);
    assert_int_equal(batch(&other, 3000)->compute_infer.count, 2);
    inf_statistics_fini(&other);
    inf_statistics_fini(&s);
}

/* Sizes come from backends. */
static void
batch_sizes_without_end_take_memory_with_an_end(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 0, 1, 2, 3 };

    for (uint64_t i = 1; i <= INF_STAT_BATCH_PAGES + 9; i++) {
        inf_statistics_batch(&s, i * INF_STAT_BATCH_SLOTS, stamps, 1);
    }
    assert_int_equal(inf_statistics_batches(&s, NULL, 0),
        INF_STAT_BATCH_PAGES);
    assert_int_equal(s.execution_count, INF_STAT_BATCH_PAGES + 9);
    inf_statistics_fini(&s);
}

static uint64_t
bucket(const inf_statistics_t *st, inf_histogram_name_t which, uint64_t ns)
{
    uint32_t i = 0;
    while (i < INF_HISTOGRAM_BOUNDS && inf_histogram_bounds_ns[i] < ns) {
        i++;
    }
    return st->histograms[which].counts[i];
}

static void
a_bound_belongs_to_the_bucket_below_it(void **state)
{
    (void) state;
    inf_histogram_t h = { 0 };

    inf_histogram_add(&h, 0);
    inf_histogram_add(&h, UINT64_MAX);
    for (uint32_t i = 0; i < INF_HISTOGRAM_BOUNDS; i++) {
        uint64_t bound = inf_histogram_bounds_ns[i];
        uint64_t here = h.counts[i];
        uint64_t above = h.counts[i + 1];

        assert_true(strtod(inf_histogram_bounds_text[i], NULL)
            == (double) bound / 1e9);
        assert_true(i == 0 || bound > inf_histogram_bounds_ns[i - 1]);
        inf_histogram_add(&h, bound);
        assert_int_equal(h.counts[i], here + 1);
        inf_histogram_add(&h, bound + 1);
        assert_int_equal(h.counts[i + 1], above + 1);
        inf_histogram_add(&h, bound - 1);
        assert_int_equal(h.counts[i], here + 2);
    }
}

static void
histograms_take_each_request_once(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 10000, 20000, 220000, 260000 };

    inf_statistics_success(&s, 1, 0, 9000, stamps, UINT64_C(90000000000));
    inf_statistics_observe(&s, 9000, stamps);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_REQUEST,
        UINT64_C(90000000000)), 1);             /* beyond the last bound     */
    assert_int_equal(bucket(&s, INF_HISTOGRAM_QUEUE, 1000), 1);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_COMPUTE, 250000), 1);

    inf_statistics_success(&s, 1, 5000, 5000, stamps, 15000);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_REQUEST, 10000), 1);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_QUEUE, 10), 1);
    inf_statistics_observe(&s, 5000, stamps);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_QUEUE, 10), 2);

    inf_statistics_cache_hit(&s, 0, 0, 40000, 500, 60000);
    inf_statistics_observe_hit(&s, 0, 40000);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_REQUEST, 60000), 1);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_QUEUE, 40000), 1);
    assert_int_equal(bucket(&s, INF_HISTOGRAM_COMPUTE, 250000), 2);

    inf_statistics_fold(&other, &s);
    inf_statistics_fold(&other, &s);
    assert_int_equal(bucket(&other, INF_HISTOGRAM_COMPUTE, 250000), 4);
}

static void
fold_adds_everything(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 100, 107, 120, 150 };

    inf_statistics_success(&s, 2, 10, 40, stamps, 200);
    inf_statistics_batch(&s, 2, stamps, 900);
    inf_statistics_success(&other, 3, 10, 40, stamps, 210);
    inf_statistics_failure(&other, 0, 9);
    inf_statistics_batch(&other, 7, stamps, 800);
    inf_statistics_batch(&other, 2, stamps, 800);
    inf_duration_add(&other.cache_hit, 3);
    inf_duration_add(&other.cache_miss, 4);

    inf_statistics_fold(&s, &other);
    assert_duration(&s.success, 2, 390);
    assert_duration(&s.fail, 1, 9);
    assert_duration(&s.queue, 2, 120);
    assert_duration(&s.compute_input, 2, 14);
    assert_duration(&s.compute_infer, 2, 26);
    assert_duration(&s.compute_output, 2, 60);
    assert_duration(&s.cache_hit, 1, 3);
    assert_duration(&s.cache_miss, 1, 4);
    assert_int_equal(s.inference_count, 5);
    assert_int_equal(s.execution_count, 3);
    assert_int_equal(s.last_inference_ms, 900);
    assert_duration(&batch(&s, 2)->compute_infer, 2, 26);
    assert_duration(&batch(&s, 7)->compute_infer, 1, 13);
}

static void *
count_much(void *arg)
{
    const uint64_t stamps[4] = { 1, 2, 3, 4 };
    (void) arg;

    for (uint64_t i = 0; i < 5000; i++) {
        inf_statistics_success(&s, 2, 0, 0, stamps, 5);
        inf_statistics_batch(&s, 1 + i % 200, stamps, i);
    }
    return NULL;
}

static void
threads_count_together(void **state)
{
    (void) state;
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, NULL),
            0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }

    const inf_batch_stat_t *found[200];
    uint64_t executions = 0;
    size_t seen = inf_statistics_batches(&s, found, 200);
    for (size_t i = 0; i < seen; i++) {
        executions += found[i]->compute_infer.count;
        assert_int_equal(found[i]->batch_size, 1 + i);
    }
    assert_int_equal(seen, 200);
    assert_int_equal(executions, 15000);
    assert_int_equal(s.execution_count, 15000);
    assert_int_equal(s.inference_count, 30000);
    assert_int_equal(s.last_inference_ms, 4999);
    inf_statistics_fini(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(success_splits_the_time_at_the_stamps, clear),
        cmocka_unit_test_setup(four_rows_in_one_execution_count_once, clear),
        cmocka_unit_test_setup(four_requests_fused_into_one_execution, clear),
        cmocka_unit_test_setup(a_failure_counts_its_duration_alone, clear),
        cmocka_unit_test_setup(stamps_out_of_order_count_as_no_time, clear),
        cmocka_unit_test_setup(the_last_inference_never_goes_back, clear),
        cmocka_unit_test_setup(every_batch_size_has_its_row, clear),
        cmocka_unit_test_setup(
            batch_sizes_without_end_take_memory_with_an_end, clear),
        cmocka_unit_test_setup(a_bound_belongs_to_the_bucket_below_it, clear),
        cmocka_unit_test_setup(histograms_take_each_request_once, clear),
        cmocka_unit_test_setup(fold_adds_everything, clear),
        cmocka_unit_test_setup(threads_count_together, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
