/* api_trace.c - reports to a request's trace, and child traces of an ensemble's
   steps, with new ids and the whole request as parent. */

#include "core/abi/api.h"

#include "core/base/clock.h"
#include "core/sched/ensemble.h"

static void trace_input(inf_trace_t *trace, const inf_input_t *in);
static inf_trace_t *trace_part(inf_trace_t *trace, const inf_request_t *part);
static void trace_answer(inf_trace_t *trace, const inf_response_t *response);
static void trace_end(inf_trace_t *trace);
static void trace_free(inf_trace_t *trace);

const inf_trace_ops_t inf_api_trace_ops = {
    .part = trace_part,
    .answer = trace_answer,
    .end = trace_end,
    .free = trace_free
};

void
inf_api_trace_submit(inf_trace_t *trace, const inf_request_t *r)
{
    inf_trace_report(trace, TRITONSERVER_TRACE_REQUEST_START, r->start_ns);
    inf_trace_report(trace, TRITONSERVER_TRACE_QUEUE_START, r->start_ns);
    inf_api_trace_inputs(trace, r);
}

void
inf_api_trace_inputs(inf_trace_t *trace, const inf_request_t *r)
{
    for (uint32_t i = 0; i < r->input_count; i++) {
        trace_input(trace, &r->inputs[i]);
    }
}

/* Reports an input; of several buffers the first is shown. */
static void
trace_input(inf_trace_t *trace, const inf_input_t *in)
{
    const inf_buffer_t none = { .base = NULL };
    const inf_buffer_t *b = in->buffer_count > 0 ? &in->buffers[0] : &none;

    inf_trace_report_tensor(trace, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT,
        &(inf_trace_tensor_t) {
            .name = in->name,
            .datatype = (TRITONSERVER_DataType) in->datatype,
            .shape = in->shape,
            .dim_count = in->dim_count,
            .base = b->base,
            .byte_size = b->size,
            .memory_type = (TRITONSERVER_MemoryType) b->memory_type,
            .memory_id = b->memory_id
        });
}

void
inf_api_trace_outputs(inf_trace_t *trace, const inf_response_t *response)
{
    for (const inf_output_t *out = response->first; out != NULL;
        out = out->next)
    {
        inf_trace_report_tensor(trace,
            TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT, &(inf_trace_tensor_t) {
                .name = out->name,
                .datatype = (TRITONSERVER_DataType) out->datatype,
                .shape = out->shape,
                .dim_count = out->dim_count,
                .base = out->base,
                .byte_size = out->byte_size,
                .memory_type = (TRITONSERVER_MemoryType) out->memory_type,
                .memory_id = out->memory_id
            });
    }
}

static inf_trace_t *
trace_part(inf_trace_t *trace, const inf_request_t *part)
{
    inf_trace_t *child;

    inf_err_t *err = TRITONSERVER_InferenceTraceSpawnChildTrace(trace,
        &child);
    if (err == NULL) {
        err = inf_trace_take(child, part->model->name, part->model->version,
            part->id);
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "request \"%s\" to model \"%s\" has no"
            " trace", part->id, part->model->name));
        if (child != NULL) {
            inf_err_log(TRITONSERVER_InferenceTraceDelete(child));
        }
        return NULL;
    }

    inf_api_trace_submit(child, part);
    return child;
}

static void
trace_answer(inf_trace_t *trace, const inf_response_t *response)
{
    inf_api_trace_outputs(trace, response);
}

static void
trace_end(inf_trace_t *trace)
{
    inf_trace_report(trace, TRITONSERVER_TRACE_REQUEST_END, inf_clock_ns());
}

static void
trace_free(inf_trace_t *trace)
{
    inf_trace_unref(trace);
}
