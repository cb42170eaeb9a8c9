#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "core/abi/objects.h"
#include "core/abi/trace.h"

/* The records of the callbacks. */
typedef struct {
    TRITONSERVER_InferenceTraceActivity activities[16];
    uint64_t  stamps[16];
    int       count;
    int       tensors;
    int       released;
    char      text[64];
} seen_t;

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), text));
    TRITONSERVER_ErrorDelete(err);
}

static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp)
{
    seen_t *seen = userp;
    const char *model;

    assert_null(TRITONSERVER_InferenceTraceModelName(trace, &model));
    strncpy(seen->text, model, sizeof(seen->text) - 1);
    assert_true(seen->count < 16);
    seen->activities[seen->count] = activity;
    seen->stamps[seen->count++] = timestamp_ns;
}

static void
on_tensor(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp)
{
    seen_t *seen = userp;

    (void) trace;
    assert_int_equal(activity, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT);
    assert_string_equal(name, "A");
    assert_int_equal(datatype, TRITONSERVER_TYPE_INT8);
    assert_memory_equal(base, "xy", byte_size);
    assert_int_equal(shape[0], 2);
    assert_int_equal(dim_count, 1);
    assert_int_equal(memory_type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(memory_type_id, 3);
    seen->tensors++;
}

static void
on_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    ((seen_t *) userp)->released++;
    assert_null(TRITONSERVER_InferenceTraceDelete(trace));
}

static inf_trace_t *
trace(unsigned level, uint64_t parent, seen_t *seen)
{
    inf_trace_t *t = NULL;
    assert_null(TRITONSERVER_InferenceTraceTensorNew(&t,
        (TRITONSERVER_InferenceTraceLevel) level, parent, on_activity,
        on_tensor, on_release, seen));
    return t;
}

static const char *
context(inf_trace_t *t)
{
    const char *text = NULL;
    assert_null(TRITONSERVER_InferenceTraceContext(t, &text));
    return text;
}

static void
levels_and_activities_have_names(void **state)
{
    (void) state;
    assert_string_equal(TRITONSERVER_InferenceTraceLevelString(
        TRITONSERVER_TRACE_LEVEL_DISABLED), "DISABLED");
    assert_string_equal(TRITONSERVER_InferenceTraceLevelString(
        TRITONSERVER_TRACE_LEVEL_TENSORS), "TENSORS");
    assert_string_equal(TRITONSERVER_InferenceTraceLevelString(
        (TRITONSERVER_InferenceTraceLevel) 12), "<unknown>");
    assert_string_equal(TRITONSERVER_InferenceTraceActivityString(
        TRITONSERVER_TRACE_REQUEST_START), "REQUEST_START");
    assert_string_equal(TRITONSERVER_InferenceTraceActivityString(
        TRITONSERVER_TRACE_CUSTOM_ACTIVITY), "CUSTOM_ACTIVITY");
    assert_string_equal(TRITONSERVER_InferenceTraceActivityString(
        (TRITONSERVER_InferenceTraceActivity) 11), "<unknown>");
}

static void
a_new_trace_has_an_id_and_no_texts(void **state)
{
    (void) state;
    seen_t seen = { 0 };
    inf_trace_t *a = trace(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, &seen);
    inf_trace_t *b = trace(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 5, &seen);
    uint64_t first, second, parent;
    int64_t version = 0;
    const char *text;

    assert_null(TRITONSERVER_InferenceTraceId(a, &first));
    assert_null(TRITONSERVER_InferenceTraceId(b, &second));
    assert_true(first >= 1);
    assert_int_equal(second, first + 1);
    assert_null(TRITONSERVER_InferenceTraceParentId(b, &parent));
    assert_int_equal(parent, 5);
    assert_null(TRITONSERVER_InferenceTraceModelName(a, &text));
    assert_string_equal(text, "");
    assert_null(TRITONSERVER_InferenceTraceRequestId(a, &text));
    assert_string_equal(text, "");
    assert_null(TRITONSERVER_InferenceTraceModelVersion(a, &version));
    assert_int_equal(version, -1);
    assert_string_equal(context(a), "");

    assert_null(inf_trace_take(a, "m", 4, "r"));
    assert_null(TRITONSERVER_InferenceTraceModelName(a, &text));
    assert_string_equal(text, "m");
    assert_null(TRITONSERVER_InferenceTraceRequestId(a, &text));
    assert_string_equal(text, "r");
    assert_null(TRITONSERVER_InferenceTraceModelVersion(a, &version));
    assert_int_equal(version, 4);
    inf_trace_unref(a);
    assert_int_equal(seen.released, 1);
    assert_null(TRITONSERVER_InferenceTraceDelete(b));  /* never submitted   */
    assert_int_equal(seen.released, 1);
}

static void
levels_say_what_is_reported(void **state)
{
    (void) state;
    static const struct { unsigned level; int stamps, tensors; } cases[] = {
        { TRITONSERVER_TRACE_LEVEL_DISABLED, 0, 0 },
        { TRITONSERVER_TRACE_LEVEL_MIN, 4, 0 },
        { TRITONSERVER_TRACE_LEVEL_MAX, 4, 0 },
        { TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX, 4, 0 },
        { TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 4, 0 },
        { TRITONSERVER_TRACE_LEVEL_TENSORS, 0, 1 },
        { TRITONSERVER_TRACE_LEVEL_MAX | TRITONSERVER_TRACE_LEVEL_TENSORS, 4,
          1 }
    };
    const int64_t shape[1] = { 2 };
    const inf_trace_tensor_t tensor = {
        .name = "A", .datatype = TRITONSERVER_TYPE_INT8, .shape = shape,
        .dim_count = 1, .base = "xy", .byte_size = 2, .memory_id = 3
    };
    const uint64_t stamps[4] = { 10, 20, 30, 40 };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        seen_t seen = { 0 };
        inf_trace_t *t = trace(cases[i].level, 0, &seen);
        inf_trace_report_compute(t, stamps);
        inf_trace_report_tensor(t, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT,
            &tensor);
        assert_int_equal(seen.count, cases[i].stamps);
        assert_int_equal(seen.tensors, cases[i].tensors);
        if (seen.count > 0) {
            assert_int_equal(seen.activities[0],
                TRITONSERVER_TRACE_COMPUTE_START);
            assert_int_equal(seen.activities[3],
                TRITONSERVER_TRACE_COMPUTE_END);
            assert_int_equal(seen.stamps[2], 30);
        }
        assert_null(TRITONSERVER_InferenceTraceDelete(t));
    }
}

static void
callbacks_may_be_missing(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 0 };
    const inf_trace_tensor_t tensor = { .name = "A" };
    inf_trace_t *t;

    assert_null(TRITONSERVER_InferenceTraceNew(&t,
        (TRITONSERVER_InferenceTraceLevel) 12, 0, NULL, NULL, NULL));
    inf_trace_report_compute(t, stamps);
    inf_trace_report_tensor(t, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT,
        &tensor);
    assert_null(inf_trace_take(t, "m", 1, ""));
    inf_trace_unref(t);                     /* frees it: nobody else will    */

    inf_trace_ref(NULL);
    inf_trace_unref(NULL);
    inf_trace_report(NULL, TRITONSERVER_TRACE_REQUEST_END, 1);
    inf_trace_report_tensor(NULL, TRITONSERVER_TRACE_REQUEST_END, &tensor);
    assert_null(TRITONSERVER_InferenceTraceDelete(NULL));
}

static void
the_last_holder_releases(void **state)
{
    (void) state;
    seen_t seen = { 0 };
    inf_trace_t *t = trace(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, &seen);

    assert_null(inf_trace_take(t, "m", 1, "r"));
    inf_trace_ref(t);
    inf_trace_ref(t);
    inf_trace_unref(t);
    inf_trace_unref(t);
    assert_int_equal(seen.released, 0);
    inf_trace_report(t, TRITONSERVER_TRACE_REQUEST_END, 9);
    assert_string_equal(seen.text, "m");
    inf_trace_unref(t);
    assert_int_equal(seen.released, 1);
}

static void
a_child_is_like_its_parent(void **state)
{
    (void) state;
    seen_t seen = { 0 };
    inf_trace_t *t = trace(TRITONSERVER_TRACE_LEVEL_MAX, 77, &seen);
    inf_trace_t *child = (void *) 1;
    uint64_t id, parent, own;

    assert_null(TRITONSERVER_InferenceTraceSpawnChildTrace(NULL, &child));
    assert_null(child);
    assert_null(TRITONSERVER_InferenceTraceSpawnChildTrace(t, &child));
    assert_null(TRITONSERVER_InferenceTraceId(t, &id));
    assert_null(TRITONSERVER_InferenceTraceParentId(child, &parent));
    assert_null(TRITONSERVER_InferenceTraceId(child, &own));
    assert_int_equal(parent, id);
    assert_true(own > id);
    assert_null(TRITONSERVER_InferenceTraceDelete(t));
    inf_trace_report(child, TRITONSERVER_TRACE_QUEUE_START, 3);
    assert_int_equal(seen.count, 1);
    assert_null(inf_trace_take(child, "c", 1, ""));
    inf_trace_unref(child);
    assert_int_equal(seen.released, 1);
}

static void
activities_are_kept_in_the_context(void **state)
{
    (void) state;
    seen_t seen = { 0 };
    inf_trace_t *t = trace(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, &seen);

    assert_null(TRITONSERVER_InferenceTraceReportActivity(t, 5, "a\"b"));
    assert_string_equal(context(t), "{\"5\":\"a\\\"b\"}");
    assert_null(TRITONSERVER_InferenceTraceReportActivity(t, UINT64_MAX,
        "END"));
    assert_string_equal(context(t),
        "{\"5\":\"a\\\"b\",\"18446744073709551615\":\"END\"}");
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.activities[1], TRITONSERVER_TRACE_CUSTOM_ACTIVITY);
    assert_int_equal(seen.stamps[0], 5);

    static const char *const objects[][2] = {
        { "{}", "{\"7\":\"x\"}" },
        { " { } \n", " {\"7\":\"x\"}" },
        { "{\"traceparent\":\"00-}\" }",
          "{\"traceparent\":\"00-}\",\"7\":\"x\"}" }
    };
    for (size_t i = 0; i < 3; i++) {
        assert_null(TRITONSERVER_InferenceTraceSetContext(t, objects[i][0]));
        assert_string_equal(context(t), objects[i][0]);
        assert_null(TRITONSERVER_InferenceTraceReportActivity(t, 7, "x"));
        assert_string_equal(context(t), objects[i][1]);
    }

    static const char *const others[] = { "[]", "00-abc", "{\"a\":1", "1}" };
    seen.count = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_null(TRITONSERVER_InferenceTraceSetContext(t, others[i]));
        fails(TRITONSERVER_InferenceTraceReportActivity(t, 7, "x"),
            TRITONSERVER_ERROR_INVALID_ARG, "no JSON object");
        assert_string_equal(context(t), others[i]);
    }
    assert_int_equal(seen.count, 0);
    assert_null(TRITONSERVER_InferenceTraceDelete(t));
}

static void
an_activity_of_no_trace_is_nothing(void **state)
{
    (void) state;

    assert_null(TRITONSERVER_InferenceTraceReportActivity(NULL, 5, "a"));
}

static void *
report_many(void *arg)
{
    for (uint64_t i = 0; i < 100; i++) {
        if (TRITONSERVER_InferenceTraceReportActivity(arg, i, "n") != NULL) {
            abort();
        }
    }
    return NULL;
}

static void
activities_of_several_threads_are_all_kept(void **state)
{
    (void) state;
    inf_trace_t *t;
    pthread_t threads[3];

    assert_null(TRITONSERVER_InferenceTraceNew(&t,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, report_many, t),
            0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }

    int found = 0;
    for (const char *p = context(t); (p = strstr(p, "\"n\"")) != NULL; p++) {
        found++;
    }
    assert_int_equal(found, 300);
    assert_null(TRITONSERVER_InferenceTraceDelete(t));
}

/* A traced request: the backend sees its trace, statistics are reported. */
static void
a_request_carries_its_trace(void **state)
{
    (void) state;
    seen_t seen = { 0 };
    inf_trace_t *t = trace(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, &seen);
    inf_trace_t *got = NULL;
    inf_instance_t instance = { 0 };
    inf_request_t request;
    TRITONBACKEND_Request *r = inf_abi_as_request(&request);

    inf_request_init(&request);
    assert_null(TRITONBACKEND_RequestTrace(r, &got));
    assert_null(got);
    request.abi.trace = t;
    assert_null(TRITONBACKEND_RequestTrace(r, &got));
    assert_ptr_equal(got, t);
    assert_null(TRITONBACKEND_ModelInstanceReportStatistics(
        inf_abi_as_instance(&instance), r, false, 1, 2, 3, 4));
    assert_int_equal(seen.count, 4);            /* also without success      */
    assert_int_equal(seen.stamps[3], 4);
    inf_request_reset(&request);
    assert_null(TRITONBACKEND_RequestTrace(r, &got));
    assert_null(got);
    inf_request_fini(&request);
    assert_null(TRITONSERVER_InferenceTraceDelete(t));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_and_activities_have_names),
        cmocka_unit_test(a_new_trace_has_an_id_and_no_texts),
        cmocka_unit_test(levels_say_what_is_reported),
        cmocka_unit_test(callbacks_may_be_missing),
        cmocka_unit_test(the_last_holder_releases),
        cmocka_unit_test(a_child_is_like_its_parent),
        cmocka_unit_test(activities_are_kept_in_the_context),
        cmocka_unit_test(an_activity_of_no_trace_is_nothing),
        cmocka_unit_test(activities_of_several_threads_are_all_kept),
        cmocka_unit_test(a_request_carries_its_trace)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
