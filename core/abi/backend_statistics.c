/* backend_statistics.c - statistics of responses and memory reported by
   backends. */

#include "core/abi/objects.h"

#include <stdlib.h>

struct TRITONBACKEND_ModelInstanceResponseStatistics {
    inf_instance_t *instance;
    inf_factory_t  *factory;
    uint64_t        start_ns;
    uint64_t        output_ns;          /* 0: a response without outputs     */
    uint64_t        end_ns;
    bool            failed;
    inf_err_code_t  code;               /* cause of a failure                */
};

static TRITONSERVER_Error *check_report(
    const TRITONBACKEND_ModelInstanceResponseStatistics *s);
static inf_response_end_t how_it_ended(
    const TRITONBACKEND_ModelInstanceResponseStatistics *s);
static TRITONSERVER_Error *report_memory(inf_model_t *model,
    inf_memory_usage_t *usage, TRITONSERVER_BufferAttributes **reported,
    uint32_t count);

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics)
{
    *response_statistics = calloc(1, sizeof(**response_statistics));
    return *response_statistics != NULL ? NULL : inf_err_nomem();
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics)
{
    free(response_statistics);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance)
{
    response_statistics->instance = inf_as_instance(model_instance);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory)
{
    response_statistics->factory = inf_as_factory(response_factory);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t response_start)
{
    response_statistics->start_ns = response_start;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start)
{
    response_statistics->output_ns = compute_output_start;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t response_end)
{
    response_statistics->end_ns = response_end;
    return NULL;
}

/* Keeps the error's code; the error stays the caller's. */
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONSERVER_Error *error)
{
    response_statistics->failed = error != NULL;
    response_statistics->code = error != NULL ? inf_err_code(error)
        : INF_ERR_UNKNOWN;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics)
{
    TRITONBACKEND_ModelInstanceResponseStatistics *s = response_statistics;

    inf_err_t *err = check_report(s);
    if (err != NULL || s->factory->padding) {
        return err;
    }

    uint32_t index = atomic_fetch_add_explicit(&s->factory->reported, 1,
        memory_order_relaxed);
    return inf_statistics_response(&s->instance->statistics, index,
        how_it_ended(s), s->start_ns, s->output_ns, s->end_ns);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
    TRITONSERVER_BufferAttributes **usage, uint32_t usage_size)
{
    inf_model_t *m = inf_as_model(model);
    return report_memory(m, &m->memory, usage, usage_size);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_BufferAttributes **usage, uint32_t usage_size)
{
    inf_instance_t *i = inf_as_instance(instance);
    return report_memory(i->model, &i->memory, usage, usage_size);
}

static TRITONSERVER_Error *
check_report(const TRITONBACKEND_ModelInstanceResponseStatistics *s)
{
    if (s->instance == NULL || s->factory == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "response statistics need a"
            " %s", s->instance == NULL ? "model instance"
            : "response factory");
    }

    uint64_t output_ns = s->output_ns != 0 ? s->output_ns : s->end_ns;
    if (s->start_ns > output_ns || output_ns > s->end_ns) {
        return inf_err_new(INF_ERR_INVALID_ARG, "response statistics of model"
            " '%s': start %llu, output start %llu and end %llu are out of"
            " order", s->instance->model->name,
            (unsigned long long) s->start_ns,
            (unsigned long long) s->output_ns,
            (unsigned long long) s->end_ns);
    }

    return NULL;
}

static inf_response_end_t
how_it_ended(const TRITONBACKEND_ModelInstanceResponseStatistics *s)
{
    if (s->failed) {
        return s->code == INF_ERR_CANCELLED ? INF_RESPONSE_CANCEL
            : INF_RESPONSE_FAIL;
    }

    return s->output_ns == 0 ? INF_RESPONSE_EMPTY : INF_RESPONSE_SUCCESS;
}

static TRITONSERVER_Error *
report_memory(inf_model_t *model, inf_memory_usage_t *usage,
    TRITONSERVER_BufferAttributes **reported, uint32_t count)
{
    inf_memory_row_t *rows = calloc(count + (size_t) 1, sizeof(*rows));
    if (rows == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        const inf_buffer_attributes_t *a = inf_as_attributes(reported[i]);
        if ((unsigned) a->memory_type > TRITONSERVER_MEMORY_GPU) {
            free(rows);
            return inf_err_new(INF_ERR_INVALID_ARG, "memory usage of model"
                " '%s': unknown memory type %d", model->name,
                (int) a->memory_type);
        }
        rows[i] = (inf_memory_row_t) {
            .memory_type = (inf_memory_type_t) a->memory_type,
            .memory_id = a->memory_id,
            .byte_size = a->byte_size
        };
    }

    inf_err_t *err = inf_model_report_memory(model, usage, rows, count);
    free(rows);
    return err;
}
