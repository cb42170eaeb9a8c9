/*
 * infer_classify.c - the k largest, in order, as texts.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/include/datatype.h"
#include "core/proto/infer_classify.h"

/* "text|text|..." of the result, with its shape in front. */
static void
classify(const inf_classify_source_t *src, size_t budget, char *out,
    size_t cap)
{
    inf_arena_t pool;
    inf_classifier_t *c;
    const int64_t *shape;
    inf_err_t *err;
    inf_codec_t rc;
    uint64_t len;
    size_t n = 0;

    inf_arena_init(&pool);
    err = inf_classifier_new(&c, src, &pool);
    assert_null(err);
    do {
        rc = inf_classifier_run(c, budget, &err);
    } while (rc == INF_CODEC_AGAIN);

    assert_int_equal(rc, INF_CODEC_DONE);

    uint32_t dims = inf_classifier_shape(c, &shape);
    for (uint32_t i = 0; i < dims; i++) {
        n += (size_t) snprintf(out + n, cap - n, "%s%lld", i != 0 ? "x" : "",
                               (long long) shape[i]);
    }

    const char *p = inf_classifier_result(c, &len);
    const char *end = p + len;
    while (p != end) {
        uint32_t size;
        assert_true(end - p >= 4);
        memcpy(&size, p, 4);
        assert_true((size_t) (end - p) - 4 >= size);
        n += (size_t) snprintf(out + n, cap - n, "|%.*s", (int) size, p + 4);
        p += 4 + size;
    }

    inf_arena_fini(&pool);
}

static void
check(const inf_classify_source_t *src, const char *want)
{
    static const size_t budgets[] = { SIZE_MAX, 1, 100 };
    char text[8192];

    for (size_t i = 0; i < 3; i++) {
        classify(src, budgets[i], text, sizeof(text));
        assert_string_equal(text, want);
    }
}

static void
the_largest_come_first_with_labels(void **state)
{
    static const float scores[] = { 0.25f, 9, -1, 3.5f };
    static const int64_t shape[] = { 1, 4 };
    static const inf_slice_t labels[] = {
        { "dog", 3 }, { "cat", 3 }, { "", 0 }, { "owl", 3 }
    };
    inf_classify_source_t src = {
        .name = INF_SLICE("SCORES"), .datatype = INF_TYPE_FP32,
        .dim_count = 2, .shape = shape, .batched = true, .data = scores,
        .data_len = sizeof(scores), .k = 2, .labels = labels, .label_count = 4
    };

    (void) state;
    check(&src, "1x2|9.000000:1:cat|3.500000:3:owl");
    src.k = 100;
    check(&src, "1x4|9.000000:1:cat|3.500000:3:owl|0.250000:0:dog"
          "|-1.000000:2");
    src.label_count = 2;
    check(&src, "1x4|9.000000:1:cat|3.500000:3|0.250000:0:dog|-1.000000:2");
    src.batched = false;
    src.label_count = 0;
    src.k = 1;
    check(&src, "1|9.000000:1");
}

static void
labels_may_come_by_place(void **state)
{
    static const int32_t values[] = { 5, 1, 9, 2, 8, 3 };
    static const int64_t shape[] = { 2, 3 };
    static const inf_slice_t labels[] = {
        { "nine", 4 }, { "five", 4 }, { "", 0 }, { "three", 5 }
    };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_INT32, .dim_count = 2,
        .shape = shape, .batched = true, .data = values,
        .data_len = sizeof(values), .k = 2, .labels = labels,
        .label_count = 4, .ranked = true
    };
    inf_arena_t pool;
    inf_classifier_t *c;

    (void) state;
    check(&src, "2x2|9:2:nine|5:0:five|8:1|3:2:three");

    src.label_count = 3;                /* not as many: by index             */
    check(&src, "2x2|9:2|5:0:nine|8:1:five|3:2");

    inf_arena_init(&pool);
    assert_null(inf_classifier_new(&c, &src, &pool));
    assert_int_equal(inf_classifier_places(c), 4);
    const uint32_t *chosen = inf_classifier_select(c);
    assert_int_equal(chosen[0], 2);
    assert_int_equal(chosen[1], 0);
    assert_int_equal(chosen[2], 1);
    assert_int_equal(chosen[3], 2);
    inf_arena_fini(&pool);
}

static void
rows_are_ranked_apart_and_dims_flattened(void **state)
{
    static const int32_t values[] = {
        1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6
    };
    static const int64_t shape[] = { 2, 3, 2 };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_INT32, .dim_count = 3,
        .shape = shape, .batched = true, .data = values,
        .data_len = sizeof(values), .k = 3
    };

    (void) state;
    check(&src, "2x3|6:5|5:4|4:3|-1:0|-2:1|-3:2");
    src.batched = false;
    src.k = 2;
    check(&src, "2|6:5|5:4");
}

static void
equal_values_keep_their_order_and_nan_is_last(void **state)
{
    static const double values[] = { NAN, 1, -0.0, 0.0, 1, -INFINITY,
                                     INFINITY };
    static const int64_t shape[] = { 7 };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_FP64, .dim_count = 1,
        .shape = shape, .data = values, .data_len = sizeof(values), .k = 7
    };
    char text[512];

    (void) state;
    classify(&src, 1, text, sizeof(text));
    static const char want[] = "7|inf:6|1.000000:1|1.000000:4|-0.000000:2"
                               "|0.000000:3|-inf:5|";
    assert_memory_equal(text, want, sizeof(want) - 1);
    assert_string_equal(strstr(text, "nan:"), "nan:0");
}

static void
every_width_of_integer_is_ordered(void **state)
{
    static const uint8_t u8[] = { 200, 3 };
    static const int8_t i8[] = { -56, 3 };
    static const uint16_t u16[] = { 60000, 3 };
    static const int16_t i16[] = { -5536, 3 };
    static const uint32_t u32[] = { 4000000000u, 3 };
    static const uint64_t u64[] = { UINT64_MAX, 3 };
    static const int64_t i64[] = { INT64_MIN, 3 };
    static const int64_t shape[] = { 2 };
    const struct {
        uint32_t    type;
        const void *data;
        const char *want;
    } rows[] = {
        { INF_TYPE_UINT8, u8, "2|200:0|3:1" },
        { INF_TYPE_INT8, i8, "2|3:1|-56:0" },
        { INF_TYPE_UINT16, u16, "2|60000:0|3:1" },
        { INF_TYPE_INT16, i16, "2|3:1|-5536:0" },
        { INF_TYPE_UINT32, u32, "2|4000000000:0|3:1" },
        { INF_TYPE_UINT64, u64, "2|18446744073709551615:0|3:1" },
        { INF_TYPE_INT64, i64, "2|3:1|-9223372036854775808:0" },
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_classify_source_t src = {
            .name = INF_SLICE("O"), .datatype = rows[i].type, .dim_count = 1,
            .shape = shape, .data = rows[i].data,
            .data_len = 2 * inf_datatype_size(rows[i].type), .k = 2
        };
        check(&src, rows[i].want);
    }
}

static void
the_widest_double_fits(void **state)
{
    static const double v[] = { -1.7976931348623157e308 };
    static const int64_t shape[] = { 1 };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_FP64, .dim_count = 1,
        .shape = shape, .data = v, .data_len = sizeof(v), .k = 1
    };
    char text[512];
    char want[512];

    (void) state;
    classify(&src, 1, text, sizeof(text));
    snprintf(want, sizeof(want), "1|%f:0", v[0]);
    assert_string_equal(text, want);
}

static int
by_value(const void *a, const void *b)
{
    float x = *(const float *) a;
    float y = *(const float *) b;
    return (x < y) - (x > y);
}

static void
many_elements_agree_with_a_sort(void **state)
{
    enum { N = 5000, K = 300 };
    static float values[N];
    static float sorted[N];
    static const int64_t shape[] = { N };
    static char text[65536];
    uint32_t seed = 12345;

    (void) state;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float) (int32_t) seed / 65536.0f;
        sorted[i] = values[i];
    }

    qsort(sorted, N, sizeof(sorted[0]), by_value);
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_FP32, .dim_count = 1,
        .shape = shape, .data = values, .data_len = sizeof(values), .k = K
    };

    classify(&src, 500, text, sizeof(text));
    char *p = strchr(text, '|');
    for (int i = 0; i < K; i++) {
        assert_non_null(p);
        char want[64];
        snprintf(want, sizeof(want), "|%f:", (double) sorted[i]);
        assert_memory_equal(p, want, strlen(want));
        long index = strtol(p + strlen(want), NULL, 10);
        assert_true(values[index] == sorted[i]);
        p = strchr(p + 1, '|');
    }

    assert_null(p);
}

static void
what_has_no_order_is_rejected(void **state)
{
    static const uint32_t types[] = {
        INF_TYPE_BOOL, INF_TYPE_BYTES, INF_TYPE_FP16, INF_TYPE_BF16
    };
    static const int64_t shape[] = { 1000, 1001 };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .dim_count = 2, .shape = shape, .data = "",
        .k = 1
    };
    inf_classifier_t *c;
    inf_arena_t pool;

    (void) state;
    inf_arena_init(&pool);
    for (size_t i = 0; i < 4; i++) {
        char want[128];
        src.datatype = types[i];
        snprintf(want, sizeof(want), "class result not available for output "
                 "due to unsupported type '%s'", inf_datatype_name(types[i]));
        inf_err_t *err = inf_classifier_new(&c, &src, &pool);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        assert_memory_equal(inf_err_msg(err), want, strlen(want));
        inf_err_free(err);
    }

    src.datatype = INF_TYPE_INT8;
    src.data_len = 1001000;
    inf_err_t *err = inf_classifier_new(&c, &src, &pool);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "classification output tensor too"
        " large: output 'O' has more than 1000000 elements");
    inf_err_free(err);
    inf_arena_fini(&pool);
}

/* Modulo 2^64 these have 0, 0 and 4 elements. */
static void
shapes_that_overflow_have_no_classes(void **state)
{
    static const int64_t shapes[][3] = {
        { INT64_C(1) << 32, INT64_C(1) << 32, 1 },
        { 2, INT64_C(1) << 62, 2 },
        { 1, (INT64_C(1) << 62) + 1, 4 }
    };
    static const char data[4];
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_INT8, .dim_count = 3,
        .data = data, .data_len = sizeof(data), .k = 1
    };
    inf_classifier_t *c;
    inf_arena_t pool;

    (void) state;
    inf_arena_init(&pool);
    for (size_t i = 0; i < 6; i++) {
        src.shape = shapes[i / 2];
        src.batched = i % 2 == 1;
        inf_err_t *err = inf_classifier_new(&c, &src, &pool);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        assert_non_null(strstr(inf_err_msg(err), "more than"));
        inf_err_free(err);
    }
    inf_arena_fini(&pool);
}

static void
empty_tensors_have_no_classes(void **state)
{
    static const int64_t shape[] = { 3, 0 };
    static const int64_t none[] = { 0, 4 };
    inf_classify_source_t src = {
        .name = INF_SLICE("O"), .datatype = INF_TYPE_FP32, .dim_count = 2,
        .shape = shape, .batched = true, .data = "", .k = 5
    };

    (void) state;
    check(&src, "3x0");
    src.shape = none;
    check(&src, "0x4");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_come_first_with_labels),
        cmocka_unit_test(labels_may_come_by_place),
        cmocka_unit_test(rows_are_ranked_apart_and_dims_flattened),
        cmocka_unit_test(equal_values_keep_their_order_and_nan_is_last),
        cmocka_unit_test(every_width_of_integer_is_ordered),
        cmocka_unit_test(the_widest_double_fits),
        cmocka_unit_test(many_elements_agree_with_a_sort),
        cmocka_unit_test(what_has_no_order_is_rejected),
        cmocka_unit_test(shapes_that_overflow_have_no_classes),
        cmocka_unit_test(empty_tensors_have_no_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
