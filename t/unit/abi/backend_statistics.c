#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>

#include "core/abi/objects.h"
#include "core/model/instances.h"

typedef TRITONBACKEND_ModelInstanceResponseStatistics statistics_t;

static inf_model_t   *model;
static inf_factory_t  factory;

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), text));
    TRITONSERVER_ErrorDelete(err);
}

static int
setup(void **state)
{
    (void) state;
    model = inf_model_new("m", 1, "/m");
    for (int i = 0; i < 2; i++) {
        inf_instance_spec_t spec = { .name = strdup("m_0") };
        inf_instance_t *instance;
        assert_null(inf_instance_new(model, &spec, &instance));
        assert_null(inf_instances_link(model, &instance, 1));
    }
    inf_factory_init(&factory);
    inf_factory_start(&factory, model, "", NULL, NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_factory_fini(&factory);
    inf_model_free(model);
    return 0;
}

static statistics_t *
made(inf_factory_t *f, uint64_t start, uint64_t output, uint64_t end)
{
    statistics_t *s;

    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s));
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
        s, inf_abi_as_instance(model->instances[0])));
    assert_null(
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(s,
            inf_abi_as_factory(f)));
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
        s, start));
    assert_null(
        TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(s,
            output));
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(s,
        end));
    return s;
}

static void
done(statistics_t *s)
{
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s));
}

static void
set_error(statistics_t *s, TRITONSERVER_Error_Code code)
{
    TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(code, "x");
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(s,
        err));
    TRITONSERVER_ErrorDelete(err);              /* stays the caller's        */
}

static void
assert_duration(const inf_duration_t *d, uint64_t count, uint64_t ns)
{
    assert_int_equal(d->count, count);
    assert_int_equal(d->ns, ns);
}

static const inf_response_stat_t *
at(uint32_t index)
{
    return inf_statistics_find_response(&model->instances[0]->statistics,
        index);
}

/* A padding request of a sequence model, however it ends. */
static void
a_padding_request_counts_nowhere(void **state)
{
    (void) state;
    inf_instance_t *instance = model->instances[0];
    statistics_t *s = made(&factory, 10, 14, 20);
    inf_request_t r;

    inf_request_init(&r);
    r.padding = true;
    factory.padding = true;
    for (int success = 0; success < 2; success++) {
        assert_null(TRITONBACKEND_ModelInstanceReportStatistics(
            inf_abi_as_instance(instance), inf_abi_as_request(&r),
            success != 0, 1, 2, 3, 4));
    }
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));

    assert_int_equal(instance->statistics.success.count, 0);
    assert_int_equal(instance->statistics.fail.count, 0);
    assert_int_equal(instance->statistics.inference_count, 0);
    assert_null(at(0));
    inf_request_fini(&r);
    done(s);
}

/* scheduling.md 8.3: a cancelled response counts as such */
static void
responses_are_counted_by_index_and_end(void **state)
{
    (void) state;
    statistics_t *s = made(&factory, 10, 14, 20);

    assert_null(at(0));
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(0)->compute_infer, 1, 4);
    assert_duration(&at(0)->compute_output, 1, 6);
    assert_duration(&at(0)->success, 1, 10);
    assert_null(at(1));                 /* though its memory is there        */

    assert_null(
        TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(s,
            0));
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(1)->empty_response, 1, 10);
    assert_duration(&at(1)->compute_infer, 1, 10);
    assert_duration(&at(1)->compute_output, 0, 0);
    assert_duration(&at(1)->success, 0, 0);

    set_error(s, TRITONSERVER_ERROR_INTERNAL);
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(2)->fail, 1, 10);
    assert_duration(&at(2)->compute_infer, 1, 10);
    assert_duration(&at(2)->compute_output, 0, 0);

    set_error(s, TRITONSERVER_ERROR_CANCELLED);
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(3)->cancel, 1, 10);
    assert_duration(&at(3)->compute_infer, 0, 0);

    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(s,
        NULL));
    inf_factory_start(&factory, model, "", NULL, NULL); /* the next request  */
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(0)->empty_response, 1, 10);
    assert_duration(&at(0)->success, 1, 10);
    assert_int_equal(model->instances[0]->statistics.response_count, 4);
    done(s);
}

static void
a_failed_response_may_have_outputs(void **state)
{
    (void) state;
    statistics_t *s = made(&factory, 1, 3, 10);

    set_error(s, TRITONSERVER_ERROR_UNKNOWN);
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(0)->fail, 1, 9);
    assert_duration(&at(0)->compute_infer, 1, 2);
    assert_duration(&at(0)->compute_output, 1, 7);
    done(s);
}

static void
what_is_missing_or_disordered_is_rejected(void **state)
{
    (void) state;
    static const uint64_t bad[][3] = {
        { 10, 9, 20 }, { 10, 21, 20 }, { 10, 0, 9 }
    };
    statistics_t *s;

    for (size_t i = 0; i < 3; i++) {
        s = made(&factory, bad[i][0], bad[i][1], bad[i][2]);
        fails(TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
            TRITONSERVER_ERROR_INVALID_ARG, "out of order");
        done(s);
    }

    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s));
    fails(TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
        TRITONSERVER_ERROR_INVALID_ARG, "model instance");
    assert_null(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
        s, inf_abi_as_instance(model->instances[0])));
    fails(TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
        TRITONSERVER_ERROR_INVALID_ARG, "response factory");
    done(s);
    assert_int_equal(factory.reported, 0);
    assert_null(at(0));
}

static void
a_stream_is_counted_as_far_as_memory_is_bounded(void **state)
{
    (void) state;
    statistics_t *s = made(&factory, 0, 1, 2);

    for (uint32_t i = 0; i < 1000; i++) {
        assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_duration(&at(i)->success, 1, 2);
    }
    assert_int_equal(model->instances[0]->statistics.response_count, 1000);

    factory.reported = INF_STAT_RESPONSES - 1;
    assert_null(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    assert_duration(&at(INF_STAT_RESPONSES - 1)->success, 1, 2);
    fails(TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
        TRITONSERVER_ERROR_UNAVAILABLE, "count the first");
    assert_null(at(INF_STAT_RESPONSES));
    done(s);
}

static void *
report_many(void *arg)
{
    (void) arg;
    inf_factory_t f;

    inf_factory_init(&f);
    inf_factory_start(&f, model, "", NULL, NULL);
    statistics_t *s = made(&f, 0, 1, 2);
    for (int i = 0; i < 300; i++) {
        if (TRITONBACKEND_ModelInstanceReportResponseStatistics(s) != NULL) {
            abort();
        }
    }
    done(s);
    inf_factory_fini(&f);
    return NULL;
}

static void
several_streams_are_counted_at_once(void **state)
{
    (void) state;
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, report_many, NULL),
            0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < 300; i++) {
        assert_duration(&at(i)->success, 3, 6);
    }
}

/* ---- memory -------------------------------------------------------------- */

static TRITONSERVER_BufferAttributes *
attributes(TRITONSERVER_MemoryType type, int64_t id, size_t size)
{
    TRITONSERVER_BufferAttributes *a;

    assert_null(TRITONSERVER_BufferAttributesNew(&a));
    assert_null(TRITONSERVER_BufferAttributesSetMemoryType(a, type));
    assert_null(TRITONSERVER_BufferAttributesSetMemoryTypeId(a, id));
    assert_null(TRITONSERVER_BufferAttributesSetByteSize(a, size));
    return a;
}

static void
memory_is_summed_over_model_and_instances(void **state)
{
    (void) state;
    TRITONSERVER_BufferAttributes *usage[3] = {
        attributes(TRITONSERVER_MEMORY_GPU, 1, 100),
        attributes(TRITONSERVER_MEMORY_CPU, 0, 10),
        attributes(TRITONSERVER_MEMORY_GPU, 0, 1)
    };
    TRITONBACKEND_ModelInstance *instances[2] = {
        inf_abi_as_instance(model->instances[0]),
        inf_abi_as_instance(model->instances[1])
    };
    inf_memory_row_t *rows;
    size_t count = 9;

    assert_null(inf_model_memory_usage(model, &rows, &count));
    assert_int_equal(count, 0);
    assert_null(rows);

    assert_null(TRITONBACKEND_ModelReportMemoryUsage(
        inf_abi_as_model(model), usage, 3));
    assert_null(TRITONBACKEND_ModelInstanceReportMemoryUsage(instances[0],
        usage, 3));
    assert_null(TRITONBACKEND_ModelInstanceReportMemoryUsage(instances[1],
        usage, 3));
    assert_null(TRITONBACKEND_ModelInstanceReportMemoryUsage(instances[1],
        usage, 1));                             /* replaces its report       */
    for (int i = 0; i < 3; i++) {
        assert_null(TRITONSERVER_BufferAttributesDelete(usage[i]));
    }

    assert_null(inf_model_memory_usage(model, &rows, &count));
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].memory_type, INF_MEMORY_CPU);
    assert_int_equal(rows[0].byte_size, 20);
    assert_int_equal(rows[1].memory_type, INF_MEMORY_GPU);
    assert_int_equal(rows[1].memory_id, 0);
    assert_int_equal(rows[1].byte_size, 2);
    assert_int_equal(rows[2].memory_id, 1);
    assert_int_equal(rows[2].byte_size, 300);
    free(rows);

    assert_null(TRITONBACKEND_ModelReportMemoryUsage(inf_abi_as_model(model),
        NULL, 0));
    assert_null(inf_model_memory_usage(model, &rows, &count));
    assert_int_equal(rows[0].byte_size, 10);
    free(rows);
}

static void *
report_memory(void *arg)
{
    TRITONSERVER_BufferAttributes *usage[2] = {
        attributes(TRITONSERVER_MEMORY_CPU, 0, 1),
        attributes(TRITONSERVER_MEMORY_CPU, 1, 1)
    };

    for (uint32_t i = 0; i < 500; i++) {
        if (TRITONBACKEND_ModelInstanceReportMemoryUsage(arg, usage, i % 3)
            != NULL)
        {
            abort();
        }
    }
    TRITONSERVER_BufferAttributesDelete(usage[0]);
    TRITONSERVER_BufferAttributesDelete(usage[1]);
    return NULL;
}

static void
memory_is_read_while_it_is_reported(void **state)
{
    (void) state;
    pthread_t threads[2];
    inf_memory_row_t *rows;
    size_t count;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, report_memory,
            model->instances[i]), 0);
    }
    for (int i = 0; i < 300; i++) {
        assert_null(inf_model_memory_usage(model, &rows, &count));
        assert_true(count <= 2);
        free(rows);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_padding_request_counts_nowhere),
        T(responses_are_counted_by_index_and_end),
        T(a_failed_response_may_have_outputs),
        T(what_is_missing_or_disordered_is_rejected),
        T(a_stream_is_counted_as_far_as_memory_is_bounded),
        T(several_streams_are_counted_at_once),
        T(memory_is_summed_over_model_and_instances),
        T(memory_is_read_while_it_is_reported)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
