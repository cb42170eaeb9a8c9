/*
 * Every allocation of metrics, traces, states, statistics, attributes and
 * batch strategies fails once, in turn: each time there is an error that says
 * so, and nothing is left behind.
 */

#include "scarce_memory.h"
#include "fail_each.h"

#include <stdlib.h>
#include <string.h>

#include <malloc.h>

#include "core/abi/batch_strategy.h"
#include "core/abi/metrics.h"
#include "core/abi/objects.h"
#include "core/abi/trace.h"
#include "core/tensor/state.h"

static TRITONSERVER_Error *
use_metrics(void)
{
    static const double bounds[2] = { 1, 2 };
    static char value[400];     /* the text of the labels grows on the way   */
    const inf_parameter_t label = {
        .name = "k", .type = INF_PARAMETER_STRING, .text = value
    };
    const TRITONSERVER_Parameter *labels[1] = { (const void *) &label };
    TRITONSERVER_MetricFamily *f = NULL;
    TRITONSERVER_MetricArgs *args = NULL;
    TRITONSERVER_Metric *m = NULL;
    TRITONSERVER_Metrics *text = NULL;
    const char *base;
    size_t size;

    memset(value, 'v', sizeof(value) - 1);
    TRITONSERVER_Error *err = TRITONSERVER_MetricFamilyNew(&f,
        TRITONSERVER_METRIC_KIND_HISTOGRAM, "oom", "");
    if (err == NULL) {
        err = TRITONSERVER_MetricArgsNew(&args);
    }
    if (err == NULL) {
        err = TRITONSERVER_MetricArgsSetHistogram(args, bounds, 2);
    }
    if (err == NULL) {
        err = TRITONSERVER_MetricNewWithArgs(&m, f, labels, 1, args);
    }
    if (err == NULL) {
        text = inf_metrics_new(NULL, NULL);
        err = text == NULL ? inf_err_nomem() : TRITONSERVER_MetricsFormatted(
            text, TRITONSERVER_METRIC_PROMETHEUS, &base, &size);
    }

    TRITONSERVER_MetricsDelete(text);
    TRITONSERVER_MetricDelete(m);
    TRITONSERVER_MetricArgsDelete(args);
    assert_null(TRITONSERVER_MetricFamilyDelete(f));
    return err;
}

static TRITONSERVER_Error *
use_trace(void)
{
    inf_trace_t *t = NULL;
    inf_trace_t *child = NULL;

    TRITONSERVER_Error *err = TRITONSERVER_InferenceTraceNew(&t,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL, NULL, NULL);
    if (err == NULL) {
        err = TRITONSERVER_InferenceTraceSpawnChildTrace(t, &child);
    }
    if (err == NULL) {
        err = TRITONSERVER_InferenceTraceSetContext(t, "{\"a\":{}}");
    }
    if (err == NULL) {
        err = TRITONSERVER_InferenceTraceReportActivity(t, 1, "n");
    }
    if (err == NULL) {
        err = inf_trace_take(t, "m", 1, "r");
    }

    TRITONSERVER_InferenceTraceDelete(child);
    TRITONSERVER_InferenceTraceDelete(t);
    return err;
}

static TRITONSERVER_Error *
use_state(inf_request_t *r)
{
    int64_t shape[1] = { 4 };
    TRITONBACKEND_State *s = NULL;
    TRITONSERVER_BufferAttributes *a;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer;

    r->states = inf_states_new();
    TRITONSERVER_Error *err = r->states == NULL ? inf_err_nomem()
        : inf_states_add(r->states, "O", "I", false, &(inf_state_buffer_t) {
            .size = 4, .datatype = INF_TYPE_INT8, .shape = shape,
            .dim_count = 1 });
    if (err == NULL) {
        err = TRITONBACKEND_StateNew(&s, inf_abi_as_request(r), "O",
            TRITONSERVER_TYPE_INT8, shape, 1);
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateBuffer(s, &buffer, 8, &type, &id);
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateBufferAttributes(s, &a);
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateUpdate(s);
    }

    inf_states_free(r->states);
    return err;
}

static TRITONSERVER_Error *
use_request(void)
{
    int64_t shape[1] = { 4 };
    inf_request_t r;
    const void *base;
    TRITONSERVER_BufferAttributes *a;

    inf_request_init(&r);
    inf_input_t *in = inf_request_add_input(&r, "A", 1, INF_TYPE_INT8, shape,
        1);
    TRITONSERVER_Error *err = in == NULL ? inf_err_nomem()
        : inf_request_add_data(&r, in, &(inf_buffer_t) {
            .base = "abcd", .size = 4 });
    if (err == NULL) {
        err = TRITONBACKEND_InputBufferAttributes(inf_abi_as_input(in), 0,
            &base, &a);
    }
    if (err == NULL) {
        err = use_state(&r);
    }

    inf_request_fini(&r);
    return err;
}

static TRITONSERVER_Error *
use_reports(void)
{
    inf_model_t *model = inf_model_new("m", 1, "/m");
    inf_factory_t f;
    TRITONBACKEND_ModelInstanceResponseStatistics *s = NULL;
    inf_buffer_attributes_t attributes = { .byte_size = 1 };
    TRITONSERVER_BufferAttributes *usage[1] = {
        inf_abi_as_attributes(&attributes)
    };
    inf_memory_row_t *rows = NULL;
    size_t count;

    if (model == NULL) {
        return inf_err_nomem();
    }

    inf_instance_t instance = { .model = model };
    inf_factory_init(&f);
    inf_factory_start(&f, model, "", NULL, NULL);
    TRITONSERVER_Error *err =
        TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s);
    if (err == NULL) {
        TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(s,
            inf_abi_as_instance(&instance));
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(s,
            inf_abi_as_factory(&f));
        err = TRITONBACKEND_ModelInstanceReportResponseStatistics(s);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelReportMemoryUsage(inf_abi_as_model(model),
            usage, 1);
    }
    if (err == NULL) {
        err = inf_model_memory_usage(model, &rows, &count);
    }

    free(rows);
    TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s);
    inf_statistics_fini(&instance.statistics);
    inf_factory_fini(&f);
    inf_model_free(model);
    return err;
}

/* A library without the functions: the model's batches are the usual ones. */
static TRITONSERVER_Error *
use_strategy(void)
{
    inf_model_t *model = inf_model_new("m", 1, "/m");
    inf_batch_strategy_t *strategy = NULL;

    if (model == NULL) {
        return inf_err_nomem();
    }
    TRITONSERVER_Error *err = inf_batch_strategy_open(model, "libm.so.6",
        &strategy);
    assert_null(strategy);
    inf_model_free(model);
    return err;
}

static void
metrics_do_without_memory(void **state)
{
    (void) state;
    fail_each(use_metrics, 15);
}

static void
traces_do_without_memory(void **state)
{
    (void) state;
    fail_each(use_trace, 8);
}

static void
states_and_attributes_do_without_memory(void **state)
{
    (void) state;
    fail_each(use_request, 10);
}

static void
reports_do_without_memory(void **state)
{
    (void) state;
    fail_each(use_reports, 6);
}

/* The dynamic linker has ways of its own to go on without memory. */
static void
batch_strategies_do_without_memory(void **state)
{
    (void) state;
    int errors = 0;

    assert_null(use_strategy());
    for (long n = 1; OWN_MALLOC && n < 20; n++) {
        long before = live;
        countdown = n;
        TRITONSERVER_Error *err = use_strategy();
        countdown = 0;
        errors += err != NULL;
        inf_err_free(err);
        assert_int_equal(live, before);
    }
    assert_true(!OWN_MALLOC || errors >= 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_do_without_memory),
        cmocka_unit_test(traces_do_without_memory),
        cmocka_unit_test(states_and_attributes_do_without_memory),
        cmocka_unit_test(reports_do_without_memory),
        cmocka_unit_test(batch_strategies_do_without_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
