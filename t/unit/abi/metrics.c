#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "core/abi/metrics.h"
#include "core/abi/objects.h"

/* text begins the message. */
static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    if (strncmp(TRITONSERVER_ErrorMessage(err), text, strlen(text)) != 0) {
        fail_msg("\"%s\" does not begin \"%s\"", text,
            TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

static TRITONSERVER_MetricFamily *
family(TRITONSERVER_MetricKind kind, const char *name)
{
    TRITONSERVER_MetricFamily *f;
    assert_null(TRITONSERVER_MetricFamilyNew(&f, kind, name, "help"));
    return f;
}

/* labels: name, value, name, value, ... NULL */
static TRITONSERVER_Error *
make(TRITONSERVER_Metric **m, TRITONSERVER_MetricFamily *f,
    const TRITONSERVER_MetricArgs *args, const char *const labels[])
{
    TRITONSERVER_Parameter *p[8];
    uint64_t n = 0;

    for ( ; labels != NULL && labels[2 * n] != NULL; n++) {
        p[n] = TRITONSERVER_ParameterNew(labels[2 * n],
            TRITONSERVER_PARAMETER_STRING, labels[2 * n + 1]);
    }

    TRITONSERVER_Error *err = TRITONSERVER_MetricNewWithArgs(m, f,
        (const TRITONSERVER_Parameter **) p, n, args);
    for (uint64_t i = 0; i < n; i++) {
        TRITONSERVER_ParameterDelete(p[i]);     /* may go after the call     */
    }
    return err;
}

static void
end(TRITONSERVER_MetricFamily *f, TRITONSERVER_Metric *m)
{
    assert_null(TRITONSERVER_MetricDelete(m));
    assert_null(TRITONSERVER_MetricFamilyDelete(f));
}

/* The lines of one family, as one string in static memory. */
static const char *
text_of(const char *name)
{
    static char found[4096];
    size_t len = 0;
    inf_buf_t all;

    inf_buf_init(&all);
    inf_metrics_format(&all);
    assert_null(inf_buf_status(&all));
    for (char *line = all.data; line != NULL && *line != '\0'; ) {
        char *next = strchr(line, '\n') + 1;
        if (strstr(line, name) != NULL && strstr(line, name) < next) {
            assert_true(len + (size_t) (next - line) < sizeof(found));
            memcpy(found + len, line, (size_t) (next - line));
            len += (size_t) (next - line);
        }
        line = next;
    }
    found[len] = '\0';
    inf_buf_fini(&all);
    return found;
}

static void
a_counter_only_rises(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "rising");
    TRITONSERVER_Metric *m;
    TRITONSERVER_MetricKind kind = TRITONSERVER_METRIC_KIND_GAUGE;
    double v = -1;

    assert_null(make(&m, f, NULL, NULL));
    assert_null(TRITONSERVER_GetMetricKind(m, &kind));
    assert_int_equal(kind, TRITONSERVER_METRIC_KIND_COUNTER);
    assert_null(TRITONSERVER_MetricIncrement(m, 1.5));
    assert_null(TRITONSERVER_MetricIncrement(m, 0));
    fails(TRITONSERVER_MetricIncrement(m, -1), TRITONSERVER_ERROR_INVALID_ARG,
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented"
        " monotonically by non-negative values. (-1)");
    fails(TRITONSERVER_MetricIncrement(m, (double) NAN),
        TRITONSERVER_ERROR_INVALID_ARG,
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented"
        " monotonically by non-negative values. (nan)");
    fails(TRITONSERVER_MetricSet(m, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_COUNTER does not support Set ('rising')");
    fails(TRITONSERVER_MetricObserve(m, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_COUNTER does not support Observe");
    assert_null(TRITONSERVER_MetricValue(m, &v));
    assert_float_equal(v, 1.5, 0);
    assert_string_equal(text_of("rising"), "# HELP rising help\n"
        "# TYPE rising counter\nrising 1.5\n");
    end(f, m);
    assert_string_equal(text_of("rising"), "");     /* no label set left     */
}

static void
a_gauge_goes_both_ways(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_GAUGE,
        "vllm:level");
    TRITONSERVER_Metric *m;
    double v;

    assert_null(make(&m, f, NULL, NULL));
    assert_null(TRITONSERVER_MetricSet(m, 3));
    assert_null(TRITONSERVER_MetricIncrement(m, -4.25));
    assert_null(TRITONSERVER_MetricValue(m, &v));
    assert_float_equal(v, -1.25, 0);
    fails(TRITONSERVER_MetricObserve(m, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_GAUGE does not support Observe");

    static const struct { double value; const char *line; } numbers[] = {
        { (double) INFINITY, "vllm:level +Inf\n" },
        { (double) -INFINITY, "vllm:level -Inf\n" },
        { (double) NAN, "vllm:level Nan\n" },
        { 0.1, "vllm:level 0.1\n" },
        { 123456789012345678.0, "vllm:level 1.234567890123457e+17\n" },
        { 5e-324, "vllm:level 4.940656458412465e-324\n" }
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_null(TRITONSERVER_MetricSet(m, numbers[i].value));
        assert_non_null(strstr(text_of("vllm:level"), numbers[i].line));
    }
    end(f, m);
}

static void
a_histogram_counts_into_its_buckets(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_HISTOGRAM,
        "spread");
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_Metric *m;
    double buckets[3] = { 0.5, 1, 5 };
    double v;

    assert_null(TRITONSERVER_MetricArgsNew(&args));
    fails(make(&m, f, NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "Bucket boundaries not found in Metric args.");
    fails(make(&m, f, args, NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "Metric args not set to histogram kind.");
    assert_null(TRITONSERVER_MetricArgsSetHistogram(args, buckets, 1));
    assert_null(TRITONSERVER_MetricArgsSetHistogram(args, buckets, 3));
    buckets[0] = 100;                               /* it was a copy         */
    assert_null(make(&m, f, args, (const char *[]) { "a", "1", NULL }));
    fails(make(&m, f, args, (const char *[]) { "le", "1", NULL }),
        TRITONSERVER_ERROR_INVALID_ARG, "Invalid label name 'le'");
    assert_null(TRITONSERVER_MetricArgsDelete(args));

    const double seen[] = { 0.5, 0.75, 1, 4, 6, 7 };
    for (size_t i = 0; i < 6; i++) {
        assert_null(TRITONSERVER_MetricObserve(m, seen[i]));
    }
    fails(TRITONSERVER_MetricValue(m, &v), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
    fails(TRITONSERVER_MetricIncrement(m, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Increment");
    fails(TRITONSERVER_MetricSet(m, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Set");
    assert_string_equal(text_of("spread"), "# HELP spread help\n"
        "# TYPE spread histogram\n"
        "spread_count{a=\"1\"} 6\n"
        "spread_sum{a=\"1\"} 19.25\n"
        "spread_bucket{a=\"1\",le=\"0.5\"} 1\n"
        "spread_bucket{a=\"1\",le=\"1\"} 3\n"
        "spread_bucket{a=\"1\",le=\"5\"} 4\n"
        "spread_bucket{a=\"1\",le=\"+Inf\"} 6\n");
    end(f, m);
}

static void
bounds_must_rise_and_may_be_none(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_HISTOGRAM,
        "bounds");
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_Metric *m;
    const double bad[][2] = { { 1, 1 }, { 2, 1 }, { 1, (double) NAN } };

    assert_null(TRITONSERVER_MetricArgsNew(&args));
    for (size_t i = 0; i < 3; i++) {
        assert_null(TRITONSERVER_MetricArgsSetHistogram(args, bad[i], 2));
        fails(make(&m, f, args, NULL), TRITONSERVER_ERROR_INVALID_ARG,
            "Bucket Boundaries must be strictly sorted");
    }
    fails(TRITONSERVER_MetricArgsSetHistogram(args, bad[0], UINT64_MAX),
        TRITONSERVER_ERROR_INVALID_ARG, "18446744073709551615 histogram");

    assert_null(TRITONSERVER_MetricArgsSetHistogram(args, NULL, 0));
    assert_null(make(&m, f, args, NULL));
    assert_null(TRITONSERVER_MetricObserve(m, 2));
    assert_non_null(strstr(text_of("bounds"), "bounds_bucket{le=\"+Inf\"} 1"));
    assert_null(TRITONSERVER_MetricDelete(m));

    const double inf[2] = { 1, (double) INFINITY };
    assert_null(TRITONSERVER_MetricArgsSetHistogram(args, inf, 2));
    assert_null(make(&m, f, args, NULL));
    assert_null(TRITONSERVER_MetricObserve(m, 2));
    assert_string_equal(strstr(text_of("bounds"), "bounds_bucket"),
        "bounds_bucket{le=\"1\"} 0\nbounds_bucket{le=\"+Inf\"} 1\n");
    assert_null(TRITONSERVER_MetricArgsDelete(args));
    end(f, m);
}

static void
only_histograms_take_arguments(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_GAUGE,
        "plain");
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_Metric *m = NULL;

    assert_null(TRITONSERVER_MetricArgsNew(&args));
    fails(make(&m, f, args, NULL), TRITONSERVER_ERROR_INVALID_ARG,
        "Unexpected args found in gauge Metric constructor.");
    assert_null(TRITONSERVER_MetricArgsDelete(args));
    assert_null(TRITONSERVER_MetricArgsDelete(NULL));
    assert_null(TRITONSERVER_MetricFamilyDelete(f));
}

static void
equal_labels_share_one_value(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "shared");
    TRITONSERVER_MetricFamily *again = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "shared");
    TRITONSERVER_Metric *a, *b, *other;
    double v;

    assert_null(make(&a, f, NULL, (const char *[]) {
        "b", "2", "a", "x\"\\\ny", NULL }));
    assert_null(make(&b, again, NULL, (const char *[]) {
        "a", "first", "a", "x\"\\\ny", "b", "2", NULL }));
    assert_null(make(&other, f, NULL, (const char *[]) { "a", "", NULL }));
    assert_null(TRITONSERVER_MetricIncrement(a, 2));
    assert_null(TRITONSERVER_MetricIncrement(b, 3));
    assert_null(TRITONSERVER_MetricValue(a, &v));
    assert_float_equal(v, 5, 0);
    assert_string_equal(text_of("shared"), "# HELP shared help\n"
        "# TYPE shared counter\n"
        "shared{a=\"x\\\"\\\\\\ny\",b=\"2\"} 5\n"
        "shared{a=\"\"} 0\n");

    assert_null(TRITONSERVER_MetricDelete(a));
    assert_non_null(strstr(text_of("shared"), "b=\"2\"} 5\n"));
    assert_null(TRITONSERVER_MetricDelete(b));
    assert_null(strstr(text_of("shared"), "b=\"2\""));
    assert_null(make(&a, f, NULL, (const char *[]) {
        "b", "2", "a", "x\"\\\ny", NULL }));
    assert_null(TRITONSERVER_MetricValue(a, &v));
    assert_float_equal(v, 0, 0);                    /* a new series          */

    fails(TRITONSERVER_MetricFamilyDelete(f), TRITONSERVER_ERROR_INTERNAL,
        "Must call MetricDelete on all dependent metrics before calling"
        " MetricFamilyDelete. (2 metrics of 'shared')");
    assert_null(TRITONSERVER_MetricFamilyDelete(again));
    assert_null(TRITONSERVER_MetricDelete(other));
    end(f, a);
}

static void
names_are_those_prometheus_allows(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f;
    TRITONSERVER_Metric *m;
    static const char *const bad[] = { "", "1a", "a b", "a-b", "__x", "\xc3" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fails(TRITONSERVER_MetricFamilyNew(&f,
            TRITONSERVER_METRIC_KIND_GAUGE, bad[i], ""),
            TRITONSERVER_ERROR_INVALID_ARG, "Invalid metric name");
    }
    fails(TRITONSERVER_MetricFamilyNew(&f, (TRITONSERVER_MetricKind) 3, "x",
        ""), TRITONSERVER_ERROR_INVALID_ARG,
        "Unsupported kind passed to MetricFamily constructor.");

    f = family(TRITONSERVER_METRIC_KIND_GAUGE, "named");
    fails(TRITONSERVER_MetricFamilyNew(&f, TRITONSERVER_METRIC_KIND_COUNTER,
        "named", ""), TRITONSERVER_ERROR_INVALID_ARG,
        "Family name already exists with different type");
    fails(make(&m, f, NULL, (const char *[]) { "a:b", "", NULL }),
        TRITONSERVER_ERROR_INVALID_ARG, "Invalid label name 'a:b'");

    int64_t n = 1;
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_INT, &n);
    const TRITONSERVER_Parameter *labels[1] = { p };
    fails(TRITONSERVER_MetricNew(&m, f, labels, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "Parameter [n] must have a type of"
        " TRITONSERVER_PARAMETER_STRING to be added as a label.");
    TRITONSERVER_ParameterDelete(p);
    assert_null(TRITONSERVER_MetricFamilyDelete(f));
}

static void
server_families(void *userp, inf_buf_t *out)
{
    inf_buf_puts(out, userp);
}

/* one bad byte, and Prometheus reads none of the text */
static void
bytes_that_are_no_utf8_are_replaced(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f;
    TRITONSERVER_Metric *m;

    assert_null(TRITONSERVER_MetricFamilyNew(&f, TRITONSERVER_METRIC_KIND_GAUGE,
        "foreign", "\xff help"));
    assert_null(make(&m, f, NULL, (const char *[]) {
        "a", "\xc3\xa4\xed\xa0\x80\"\xfe", NULL }));
    assert_string_equal(text_of("foreign"),
        "# HELP foreign ? help\n"
        "# TYPE foreign gauge\n"
        "foreign{a=\"\xc3\xa4???\\\"?\"} 0\n");
    end(f, m);
}

static void
a_snapshot_is_taken_when_it_is_formatted(void **state)
{
    (void) state;
    TRITONSERVER_Metrics *metrics = inf_metrics_new(server_families,
        (void *) "server 1\n");
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_GAUGE,
        "late");
    TRITONSERVER_Metric *m;
    const char *base;
    size_t size;

    assert_null(make(&m, f, NULL, NULL));
    assert_null(TRITONSERVER_MetricSet(m, 7));
    fails(TRITONSERVER_MetricsFormatted(metrics,
        (TRITONSERVER_MetricFormat) 1, &base, &size),
        TRITONSERVER_ERROR_INVALID_ARG, "unknown metrics format '1'");
    assert_null(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    assert_int_equal(strlen(base), size);
    assert_memory_equal(base, "server 1\n", 9);
    assert_non_null(strstr(base, "late 7\n"));
    end(f, m);
    assert_null(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    assert_string_equal(base, "server 1\n");
    assert_null(TRITONSERVER_MetricsDelete(metrics));
}

/* The C library's own, as under a locale with another decimal point. */
static const char *point = ".";

struct lconv *
localeconv(void)
{
    static struct lconv conv;
    conv.decimal_point = (char *) point;
    return &conv;
}

int
snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, size, format, args);
    va_end(args);

    char *dot = strcmp(point, ".") != 0 ? strchr(text, '.') : NULL;
    if (dot != NULL) {
        memmove(dot + strlen(point), dot + 1, strlen(dot));
        memcpy(dot, point, strlen(point));
    }
    return len;
}

static void
another_decimal_point_does_not_show(void **state)
{
    (void) state;
    static const char *const points[] = { ",", "\xd9\xab", "." };
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_GAUGE,
        "local");
    TRITONSERVER_Metric *m;

    assert_null(make(&m, f, NULL, NULL));
    for (size_t i = 0; i < 3; i++) {
        point = points[i];
        assert_null(TRITONSERVER_MetricSet(m, 1.5));
        assert_non_null(strstr(text_of("local"), "local 1.5\n"));
        assert_null(TRITONSERVER_MetricSet(m, 1e300));
        assert_non_null(strstr(text_of("local"), "local 1e+300\n"));
    }
    end(f, m);
}

#define ROUNDS 2000

/* Makes, counts and deletes series of a family others use too. */
static void *
hammer(void *arg)
{
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "hammered");
    TRITONSERVER_Metric *kept, *brief;

    if (make(&kept, f, NULL, (const char *[]) { "k", "kept", NULL }) != NULL) {
        abort();
    }
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", (i + *(int *) arg) % 3);
        if (make(&brief, f, NULL, (const char *[]) { "k", name, NULL })
                != NULL
            || TRITONSERVER_MetricIncrement(kept, 1) != NULL
            || TRITONSERVER_MetricIncrement(brief, 1) != NULL
            || TRITONSERVER_MetricDelete(brief) != NULL)
        {
            abort();
        }
    }
    TRITONSERVER_MetricDelete(kept);
    TRITONSERVER_MetricFamilyDelete(f);
    return NULL;
}

static void
many_threads_count_every_increment(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "hammered");
    TRITONSERVER_Metric *m;
    pthread_t threads[4];
    int starts[4] = { 0, 1, 2, 0 };
    double v;

    assert_null(make(&m, f, NULL, (const char *[]) { "k", "kept", NULL }));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer,
            &starts[i]), 0);
    }
    for (int i = 0; i < 200; i++) {
        assert_non_null(strstr(text_of("hammered"), "k=\"kept\""));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_null(TRITONSERVER_MetricValue(m, &v));
    assert_float_equal(v, 4 * ROUNDS, 0);
    assert_string_equal(strstr(text_of("hammered"), "hammered{"),
        "hammered{k=\"kept\"} 8000\n");
    end(f, m);
}

static void
a_name_of_the_servers_own_gets_no_second_head(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *f = family(TRITONSERVER_METRIC_KIND_COUNTER,
        "nv_own");
    TRITONSERVER_Metric *m;
    inf_buf_t all;

    assert_null(make(&m, f, NULL, NULL));
    inf_buf_init(&all);
    inf_buf_puts(&all, "# TYPE nv_own_bytes gauge\nnv_own_bytes 2\n"
        "# TYPE nv_own counter\nnv_own{model=\"m\"} 1\n");
    inf_metrics_format(&all);
    assert_string_equal(all.data, "# TYPE nv_own_bytes gauge\nnv_own_bytes 2\n"
        "# TYPE nv_own counter\nnv_own{model=\"m\"} 1\nnv_own 0\n");
    inf_buf_fini(&all);
    end(f, m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_only_rises),
        cmocka_unit_test(a_gauge_goes_both_ways),
        cmocka_unit_test(a_histogram_counts_into_its_buckets),
        cmocka_unit_test(bounds_must_rise_and_may_be_none),
        cmocka_unit_test(only_histograms_take_arguments),
        cmocka_unit_test(equal_labels_share_one_value),
        cmocka_unit_test(names_are_those_prometheus_allows),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(a_snapshot_is_taken_when_it_is_formatted),
        cmocka_unit_test(another_decimal_point_does_not_show),
        cmocka_unit_test(many_threads_count_every_increment),
        cmocka_unit_test(a_name_of_the_servers_own_gets_no_second_head)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
