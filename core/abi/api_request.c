/* api_request.c - creates, submits, cancels and deletes a client's request;
   each submit builds the request object from the client's fields. */

#include "core/abi/api_request.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/model/normalize.h"
#include "core/model/raw_input.h"
#include "core/model/string_check.h"
#include "core/sched/entrance.h"
#include "core/sched/rate_gate.h"

static void request_free(inf_api_request_t *q);
static bool in_flight(const inf_api_request_t *q);
static void request_released(void *userp, inf_request_t *r, uint32_t flags);
static inf_err_t *take_run(inf_api_request_t *q);
static void drop_run(inf_api_request_t *q);
static void reject_later(void *userp, inf_request_t *r);
static inf_err_t *submit(inf_api_request_t *q, inf_trace_t *trace);
static inf_err_t *build(inf_api_request_t *q);
static inf_err_t *build_input(inf_api_request_t *q,
    const inf_api_input_t *from);
static inf_err_t *build_raw(inf_api_request_t *q, const inf_api_input_t *from);
static inf_err_t *build_data(inf_api_request_t *q, inf_input_t *in,
    const inf_api_data_t *from);
static inf_err_t *build_host_data(inf_api_request_t *q, inf_input_t *in,
    const inf_api_data_t *from);
static inf_buffer_t chunk_buffer(const inf_api_chunk_t *chunk);

static const inf_request_ops_t request_ops = {
    .released = request_released
};

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(
    TRITONSERVER_InferenceRequest **inference_request,
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version)
{
    inf_server_t *s = inf_as_server(server);
    inf_model_t *model;
    *inference_request = NULL;

    inf_err_t *err = inf_api_find_model(s, model_name, model_version, &model);
    if (err != NULL) {
        return err;
    }

    inf_api_request_t *q = calloc(1, sizeof(*q));
    inf_api_pool_t *pool = inf_api_pool_new();
    if (q == NULL || pool == NULL) {
        free(q);
        free(pool);
        inf_model_unref(model);
        return inf_err_nomem();
    }

    inf_request_init(&q->request);
    inf_arena_init(&q->arena);
    q->server = s;
    q->model = model;
    q->pool = pool;
    *inference_request = inf_abi_as_client_request(q);
    return TRITONSERVER_InferenceRequestSetPriorityUInt64(*inference_request,
        0);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest *inference_request)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    if (q == NULL) {
        return NULL;
    }
    if (in_flight(q)) {
        return inf_err_new(INF_ERR_INTERNAL, "request '%s' can't be deleted:"
            " it has not been released", inf_buf_slice(&q->id).data);
    }

    request_free(q);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceTrace *trace)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    (void) server;              /* the request has its server                */

    if (q->release == NULL || q->target.complete == NULL
        || q->target.allocator == NULL)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "request '%s' needs a release"
            " callback, a response callback and a response allocator",
            inf_buf_slice(&q->id).data);
    }
    if (in_flight(q)) {
        return inf_err_new(INF_ERR_INTERNAL, "request '%s' is submitted again"
            " before it was released", inf_buf_slice(&q->id).data);
    }

    inf_err_t *err = take_run(q);
    if (err != NULL) {
        return err;
    }

    inf_request_t *r = &q->request;
    err = build(q);
    if (err == NULL) {
        err = inf_request_normalize(q->model, r);
    }
    if (err != NULL) {
        err = inf_request_name_error(r, err);
    } else {
        err = inf_request_check_strings(r);     /* on the caller's thread    */
        if (err == NULL) {
            err = submit(q, trace);
        }
    }
    if (err == NULL) {
        return NULL;            /* q may be freed by now                     */
    }

    inf_factory_unref(r->factory);
    r->factory = NULL;
    return err;
}

/* Submits q; takes trace, also on error. */
static inf_err_t *
submit(inf_api_request_t *q, inf_trace_t *trace)
{
    inf_request_t *r = &q->request;
    r->start_ns = inf_clock_ns();
    atomic_store_explicit(&r->factory->start_ns, r->start_ns,
        memory_order_relaxed);

    if (trace != NULL) {
        inf_err_t *err = inf_trace_take(trace, q->model->name,
            q->model->version, r->id);
        if (err != NULL) {
            return err;
        }

        q->run->trace = trace;
        inf_trace_ref(trace);
        r->abi.trace = trace;
        r->abi.trace_ops = &inf_api_trace_ops;
        inf_api_trace_submit(trace, r);
    }

    inf_rate_gate_expect_calls(q->server->rate_gate);
    q->run->submitted = true;
    bool queued;
    inf_err_t *err = inf_entrance_submit(q->model, r, r->start_ns, false,
        &queued);
    if (err != NULL) {
        q->run->submitted = false;
        r->abi.trace = NULL;
        inf_trace_unref(trace);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest *inference_request)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    if (q->run == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "It is not possible to cancel an"
            " inference request before calling TRITONSERVER_InferAsync.");
    }

    const inf_rejecter_t rejecter = {
        .reject = reject_later,
        .userp = &q->server->canceller
    };
    atomic_store_explicit(&q->run->factory.cancelled, true,
        memory_order_relaxed);
    if (inf_entrance_cancel(q->model, &q->request, &rejecter)) {
        reject_later(&q->server->canceller, &q->request);
    }
    return NULL;
}

/* Rejects from another thread: no callback runs within the client's call. */
static void
reject_later(void *userp, inf_request_t *r)
{
    inf_canceller_push(userp, r);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest *inference_request, bool *is_cancelled)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    if (q->run == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "It is not possible to query"
            " cancellation status before calling TRITONSERVER_InferAsync.");
    }

    *is_cancelled = atomic_load_explicit(&q->run->factory.cancelled,
        memory_order_relaxed);
    return NULL;
}

static void
request_free(inf_api_request_t *q)
{
    for (uint32_t i = 0; i < q->input_cap; i++) {
        inf_api_clear_data(&q->inputs[i]);
        inf_buf_fini(&q->inputs[i].name);
        free(q->inputs[i].data.chunks);
        free(q->inputs[i].shape);
    }
    for (uint32_t i = 0; i < q->output_cap; i++) {
        inf_buf_fini(&q->outputs[i]);
    }

    drop_run(q);
    inf_model_t *model = q->model;

    free(q->inputs);
    free(q->outputs);
    inf_buf_fini(&q->id);
    inf_buf_fini(&q->correlation_text);
    inf_arena_fini(&q->arena);
    inf_request_fini(&q->request);
    inf_api_pool_unref(q->pool);
    free(q);
    inf_model_unref(model);
}

static bool
in_flight(const inf_api_request_t *q)
{
    inf_request_state_t state = atomic_load_explicit(&q->request.state,
        memory_order_relaxed);
    return state != INF_REQUEST_IDLE && state != INF_REQUEST_RELEASED;
}

static void
request_released(void *userp, inf_request_t *r, uint32_t flags)
{
    inf_api_request_t *q = userp;
    inf_trace_t *trace = r->abi.trace;

    if (trace != NULL) {
        r->abi.trace = NULL;
        inf_trace_report(trace, TRITONSERVER_TRACE_REQUEST_END,
            inf_clock_ns());
        inf_trace_unref(trace);
    }
    q->release(inf_abi_as_client_request(q), flags, q->release_userp);
}

/* Releases the last run first, so that it can be reused. */
static inf_err_t *
take_run(inf_api_request_t *q)
{
    drop_run(q);
    q->run = inf_api_run_take(q->pool, q->model, inf_buf_slice(&q->id).data,
        &q->target);
    return q->run != NULL ? NULL : inf_err_nomem();
}

static void
drop_run(inf_api_request_t *q)
{
    inf_api_run_t *run = q->run;
    q->run = NULL;
    if (run != NULL) {
        inf_api_run_unref(run);
    }
}

static inf_err_t *
build(inf_api_request_t *q)
{
    inf_request_t *r = &q->request;
    inf_err_t *err = NULL;

    inf_request_reset(r);
    r->ops = &request_ops;
    r->userp = q;
    r->model = q->model;
    r->factory = &q->run->factory;
    r->id = r->factory->id;
    r->flags = q->flags;
    r->correlation_id = q->correlation_id;
    r->correlation_text = q->correlation_is_text
        ? inf_buf_slice(&q->correlation_text).data : NULL;
    r->priority = q->priority;
    r->timeout_us = q->timeout_us;
    r->parameters = q->parameters;

    for (uint32_t i = 0; err == NULL && i < q->input_count; i++) {
        const inf_api_input_t *in = &q->inputs[i];
        err = in->raw ? build_raw(q, in) : build_input(q, in);
    }
    for (uint32_t i = 0; err == NULL && i < q->output_count; i++) {
        inf_slice_t name = inf_buf_slice(&q->outputs[i]);
        err = inf_request_add_output(r, name.data, name.len);
    }
    return err;
}

static inf_err_t *
build_input(inf_api_request_t *q, const inf_api_input_t *from)
{
    inf_slice_t name = inf_buf_slice(&from->name);
    inf_input_t *in = inf_request_add_input(&q->request, name.data, name.len,
        from->datatype, from->shape, from->dim_count);

    return in != NULL ? build_data(q, in, &from->data) : inf_err_nomem();
}

/* Adds a raw input: the model's table needs the total size; the chunks
   follow. */
static inf_err_t *
build_raw(inf_api_request_t *q, const inf_api_input_t *from)
{
    inf_request_t *r = &q->request;
    inf_buffer_t whole = { .base = NULL };

    for (uint32_t i = 0; i < from->data.count; i++) {     /* no overflow     */
        whole.size += from->data.chunks[i].buffer.size;
    }

    inf_err_t *err = inf_request_add_raw(q->model, r, &whole);
    if (err != NULL) {
        return err;
    }

    inf_input_t *in = &r->inputs[r->input_count - 1];
    if (whole.size > 0) {
        in->buffer_count--;
        in->byte_size -= whole.size;
    }
    return build_data(q, in, &from->data);
}

static inf_err_t *
build_data(inf_api_request_t *q, inf_input_t *in, const inf_api_data_t *from)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; err == NULL && i < from->count; i++) {
        inf_buffer_t b = chunk_buffer(&from->chunks[i]);
        err = inf_request_add_data(&q->request, in, &b);
    }
    for (const inf_api_data_t *d = from->next; err == NULL && d != NULL;
        d = d->next)
    {
        err = build_host_data(q, in, d);
    }
    return err;
}

static inf_err_t *
build_host_data(inf_api_request_t *q, inf_input_t *in,
    const inf_api_data_t *from)
{
    inf_arena_t *arena = &q->request.arena;
    inf_host_data_t *data = inf_arena_calloc(arena, 1, sizeof(*data));
    inf_buffer_t *buffers = inf_arena_calloc(arena, from->count + 1,
        sizeof(*buffers));
    if (data == NULL || buffers == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < from->count; i++) {
        buffers[i] = chunk_buffer(&from->chunks[i]);
        data->byte_size += buffers[i].size;
    }

    data->policy = from->policy;
    data->buffers = buffers;
    data->buffer_count = from->count;
    data->next = (inf_host_data_t *) in->host_data;
    in->host_data = data;
    return NULL;
}

static inf_buffer_t
chunk_buffer(const inf_api_chunk_t *chunk)
{
    inf_buffer_t b = chunk->buffer;
    b.ipc_handle = chunk->has_ipc_handle ? chunk->ipc_handle : NULL;
    return b;
}
