/* api_request.c - a request as a client fills, submits and cancels it.  What
   it sets is kept beside the request proper, which each submit makes anew. */

#include "core/service/api.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/model/normalize.h"
#include "core/sched/entrance.h"
#include "core/service/infer.h"

#define CORRELATION_TEXT_MAX 128u

typedef struct {
    inf_buffer_t buffer;
    bool         has_ipc_handle;
    uint8_t      ipc_handle[64];
} api_chunk_t;

/* The chunks of an input: its own, or those for one host policy. */
typedef struct api_data_s {
    struct api_data_s *next;
    char              *policy;
    api_chunk_t       *chunks;
    uint32_t           count;
    uint32_t           cap;
} api_data_t;

typedef struct {
    inf_buf_t       name;
    bool            raw;            /* name, datatype, shape: the model's    */
    inf_datatype_t  datatype;
    int64_t        *shape;
    uint32_t        dim_count;
    uint32_t        dim_cap;
    api_data_t      data;           /* data.next: by host policy             */
} api_input_t;

typedef struct {
    inf_request_t      request;     /* first: the backend's view; in flight
                                       it is the core's                      */
    inf_server_t      *server;
    inf_model_t       *model;       /* a reference                           */
    inf_api_pool_t    *pool;        /* a reference                           */
    inf_api_run_t     *run;         /* of the last submit; a reference       */

    inf_api_target_t   target;
    TRITONSERVER_InferenceRequestReleaseFn_t release;
    void              *release_userp;

    inf_buf_t          id;
    uint32_t           flags;
    uint64_t           correlation_id;
    inf_buf_t          correlation_text;
    bool               correlation_is_text;
    uint64_t           priority;
    uint64_t           timeout_us;

    api_input_t       *inputs;      /* those past input_count are spare      */
    uint32_t           input_count;
    uint32_t           input_cap;
    inf_buf_t         *outputs;     /* likewise                              */
    uint32_t           output_count;
    uint32_t           output_cap;
    inf_arena_t          arena;     /* of parameters, which only grow        */
    inf_parameter_list_t parameters;
} api_request_t;

INF_ABI_OBJECT(TRITONSERVER_InferenceRequest, api_request_t, as_client_request)

static void request_free(api_request_t *q);
static bool in_flight(const api_request_t *q);
static void request_released(void *userp, inf_request_t *r, uint32_t flags);
static inf_err_t *take_run(api_request_t *q);
static void drop_run(api_request_t *q);
static void refuse_later(void *userp, inf_request_t *r);
static inf_err_t *submit(api_request_t *q, inf_trace_t *trace);
static inf_err_t *build(api_request_t *q);
static inf_err_t *build_input(api_request_t *q, const api_input_t *from);
static inf_err_t *build_raw(api_request_t *q, const api_input_t *from);
static inf_err_t *build_data(api_request_t *q, inf_input_t *in,
    const api_data_t *from);
static inf_err_t *build_host_data(api_request_t *q, inf_input_t *in,
    const api_data_t *from);
static inf_buffer_t chunk_buffer(const api_chunk_t *chunk);
static inf_err_t *add_input(api_request_t *q, const char *name,
    api_input_t **out);
static api_input_t *find_input(api_request_t *q, const char *name);
static void clear_data(api_input_t *in);
static inf_err_t *append(api_request_t *q, const char *name,
    const char *policy, const api_chunk_t *chunk);
static inf_err_t *find_data(api_input_t *in, const char *policy,
    api_data_t **out);
static inf_err_t *add_parameter(api_request_t *q, const char *key,
    inf_parameter_type_t type, inf_parameter_t **out);
static inf_err_t *set_text(inf_buf_t *b, const char *text);
static void *grow(void *old, uint32_t count, uint32_t *cap, size_t size);

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

    api_request_t *q = calloc(1, sizeof(*q));
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
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest *inference_request)
{
    api_request_t *q = inf_as_client_request(inference_request);
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
    api_request_t *q = inf_as_client_request(inference_request);
    (void) server;              /* the one it was made for                   */

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
    err = err != NULL ? inf_infer_name_error(r, err) : submit(q, trace);
    if (err == NULL) {
        return NULL;            /* q may be gone by now                      */
    }

    inf_factory_unref(r->factory);
    r->factory = NULL;
    return err;
}

/* From here on the trace is ours, whether the request is taken or not. */
static inf_err_t *
submit(api_request_t *q, inf_trace_t *trace)
{
    inf_request_t *r = &q->request;
    r->start_ns = inf_clock_ns();
    r->factory->start_ns = r->start_ns;

    if (trace != NULL) {
        inf_err_t *err = inf_trace_take(trace, q->model->name,
            q->model->version, r->id);
        if (err != NULL) {
            return err;
        }

        q->run->trace = trace;
        inf_trace_ref(trace);
        r->trace = trace;
        r->trace_ops = &inf_api_trace_ops;
        inf_api_trace_submit(trace, r);
    }

    q->run->submitted = true;
    bool queued;
    inf_err_t *err = inf_entrance_submit(q->model, r, r->start_ns, false,
        &queued);
    if (err != NULL) {
        q->run->submitted = false;
        r->trace = NULL;
        inf_trace_unref(trace);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest *inference_request)
{
    api_request_t *q = inf_as_client_request(inference_request);
    if (q->run == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "request '%s' can't be cancelled:"
            " it was never submitted", inf_buf_slice(&q->id).data);
    }

    const inf_refuser_t refuser = {
        .refuse = refuse_later,
        .userp = &q->server->canceller
    };
    atomic_store_explicit(&q->run->factory.cancelled, true,
        memory_order_relaxed);
    if (inf_entrance_cancel(q->model, &q->request, &refuser)) {
        refuse_later(&q->server->canceller, &q->request);
    }
    return NULL;
}

/* No callback of the client's runs within its call. */
static void
refuse_later(void *userp, inf_request_t *r)
{
    inf_canceller_push(userp, r);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest *inference_request, bool *is_cancelled)
{
    api_request_t *q = inf_as_client_request(inference_request);
    if (q->run == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "request '%s' was never"
            " submitted", inf_buf_slice(&q->id).data);
    }

    *is_cancelled = atomic_load_explicit(&q->run->factory.cancelled,
        memory_order_relaxed);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn,
    void *request_release_userp)
{
    api_request_t *q = inf_as_client_request(inference_request);
    q->release = request_release_fn;
    q->release_userp = request_release_userp;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator,
    void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn,
    void *response_userp)
{
    inf_as_client_request(inference_request)->target = (inf_api_target_t) {
        .allocator = response_allocator,
        .allocator_userp = response_allocator_userp,
        .complete = response_fn,
        .userp = response_userp
    };
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(
    TRITONSERVER_InferenceRequest *inference_request, const char **id)
{
    *id = inf_buf_slice(&inf_as_client_request(inference_request)->id).data;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(
    TRITONSERVER_InferenceRequest *inference_request, const char *id)
{
    return set_text(&inf_as_client_request(inference_request)->id,
        id != NULL ? id : "");
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *flags)
{
    *flags = inf_as_client_request(inference_request)->flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t flags)
{
    inf_as_client_request(inference_request)->flags = flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *correlation_id)
{
    const api_request_t *q = inf_as_client_request(inference_request);
    if (q->correlation_is_text) {
        return inf_err_new(INF_ERR_INVALID_ARG, "correlation ID in request is"
            " not an unsigned int, id: %s",
            inf_buf_slice(&q->correlation_text).data);
    }

    *correlation_id = q->correlation_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char **correlation_id)
{
    const api_request_t *q = inf_as_client_request(inference_request);
    if (!q->correlation_is_text) {
        return inf_err_new(INF_ERR_INVALID_ARG, "correlation ID in request is"
            " not a string, id: %llu", (unsigned long long) q->correlation_id);
    }

    *correlation_id = inf_buf_slice(&q->correlation_text).data;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t correlation_id)
{
    api_request_t *q = inf_as_client_request(inference_request);
    q->correlation_id = correlation_id;
    q->correlation_is_text = false;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char *correlation_id)
{
    api_request_t *q = inf_as_client_request(inference_request);
    if (strnlen(correlation_id, CORRELATION_TEXT_MAX + 1)
        > CORRELATION_TEXT_MAX)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED, "string correlation ID is"
            " longer than %u characters", CORRELATION_TEXT_MAX);
    }

    inf_err_t *err = set_text(&q->correlation_text, correlation_id);
    q->correlation_is_text = err == NULL;
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *priority)
{
    uint64_t p = inf_as_client_request(inference_request)->priority;
    if (p > UINT32_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "priority %llu is too large"
            " for 32 bits", (unsigned long long) p);
    }

    *priority = (uint32_t) p;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *priority)
{
    *priority = inf_as_client_request(inference_request)->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t priority)
{
    return TRITONSERVER_InferenceRequestSetPriorityUInt64(inference_request,
        priority);
}

/* Out of the model's range it becomes the model's default. */
TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t priority)
{
    api_request_t *q = inf_as_client_request(inference_request);
    const Inference__ModelConfig *config = q->model->built;
    uint64_t levels = 0;
    uint64_t standard = 0;

    switch (config->scheduling_choice_case) {
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING:
        q->priority = priority;     /* its members decide                    */
        return NULL;
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING:
        levels = config->dynamic_batching->priority_levels;
        standard = config->dynamic_batching->default_priority_level;
        break;
    default:
        break;
    }

    q->priority = priority == 0 || priority > levels ? standard : priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *timeout_us)
{
    *timeout_us = inf_as_client_request(inference_request)->timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us)
{
    inf_as_client_request(inference_request)->timeout_us = timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    uint64_t dim_count)
{
    api_request_t *q = inf_as_client_request(inference_request);
    api_input_t *in;

    if (dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' has %llu"
            " dimensions, at most %d are possible", name,
            (unsigned long long) dim_count, INF_MAX_DIMS);
    }
    if ((unsigned) datatype >= INF_TYPE_COUNT) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' has unknown"
            " datatype %d", name, (int) datatype);
    }
    if (q->input_count > 0 && q->inputs[0].raw) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' can't be added to"
            " a request with a raw input", name);
    }

    inf_err_t *err = add_input(q, name, &in);
    if (err != NULL) {
        return err;
    }

    uint32_t dims = (uint32_t) dim_count;
    if (dims > in->dim_cap) {
        int64_t *wider = realloc(in->shape, dims * sizeof(*wider));
        if (wider == NULL) {
            q->input_count--;
            return inf_err_nomem();
        }
        in->shape = wider;
        in->dim_cap = dims;
    }
    if (dims > 0) {
        memcpy(in->shape, shape, dims * sizeof(*shape));
    }

    in->raw = false;
    in->datatype = (inf_datatype_t) datatype;
    in->dim_count = dims;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    api_request_t *q = inf_as_client_request(inference_request);
    api_input_t *in;

    if (q->input_count > 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "raw input '%s' can't be added"
            " to a request with other inputs", name);
    }

    inf_err_t *err = add_input(q, name, &in);
    if (err == NULL) {
        in->raw = true;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    api_request_t *q = inf_as_client_request(inference_request);
    api_input_t *in = find_input(q, name);
    if (in == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s' does not exist in request", name);
    }

    clear_data(in);
    api_input_t spare = *in;
    uint32_t after = q->input_count - (uint32_t) (in - q->inputs) - 1;
    memmove(in, in + 1, after * sizeof(*in));
    q->inputs[--q->input_count] = spare;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest *inference_request)
{
    api_request_t *q = inf_as_client_request(inference_request);
    while (q->input_count > 0) {
        clear_data(&q->inputs[--q->input_count]);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id)
{
    return TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        inference_request, name, base, byte_size, memory_type, memory_type_id,
        NULL);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, const char *host_policy_name)
{
    const api_chunk_t chunk = {
        .buffer = {
            .base = base,
            .size = byte_size,
            .memory_type = (inf_memory_type_t) memory_type,
            .memory_id = memory_type_id
        }
    };
    return append(inf_as_client_request(inference_request), name,
        host_policy_name, &chunk);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, TRITONSERVER_BufferAttributes *buffer_attributes)
{
    const inf_buffer_attributes_t *a = inf_as_attributes(buffer_attributes);
    api_chunk_t chunk = {
        .buffer = {
            .base = base,
            .size = a->byte_size,
            .memory_type = (inf_memory_type_t) a->memory_type,
            .memory_id = a->memory_id
        },
        .has_ipc_handle = a->has_ipc_handle
    };
    memcpy(chunk.ipc_handle, a->ipc_handle, sizeof(chunk.ipc_handle));
    return append(inf_as_client_request(inference_request), name, NULL,
        &chunk);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    api_input_t *in = find_input(inf_as_client_request(inference_request),
        name);
    if (in == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s' does not exist in request", name);
    }

    clear_data(in);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    api_request_t *q = inf_as_client_request(inference_request);

    for (uint32_t i = 0; i < q->output_count; i++) {
        if (strcmp(q->outputs[i].data, name) == 0) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "output '%s' already requested", name);
        }
    }

    if (q->output_count == q->output_cap) {
        void *wider = grow(q->outputs, q->output_count, &q->output_cap,
            sizeof(*q->outputs));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        q->outputs = wider;
    }

    inf_err_t *err = set_text(&q->outputs[q->output_count], name);
    q->output_count += err == NULL;
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    api_request_t *q = inf_as_client_request(inference_request);

    for (uint32_t i = 0; i < q->output_count; i++) {
        if (strcmp(q->outputs[i].data, name) == 0) {
            inf_buf_t spare = q->outputs[i];
            q->outputs[i] = q->outputs[--q->output_count];
            q->outputs[q->output_count] = spare;
            break;
        }
    }

    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request)
{
    inf_as_client_request(inference_request)->output_count = 0;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const char *value)
{
    api_request_t *q = inf_as_client_request(request);
    char *copy = inf_arena_strdup(&q->arena, value, strlen(value));
    inf_parameter_t *p;
    if (copy == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = add_parameter(q, key, INF_PARAMETER_STRING, &p);
    if (err == NULL) {
        p->text = copy;
        p->text_len = strlen(value);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const int64_t value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_INT, &p);
    if (err == NULL) {
        p->i = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const bool value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_BOOL, &p);
    if (err == NULL) {
        p->b = value;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const double value)
{
    inf_parameter_t *p;
    inf_err_t *err = add_parameter(inf_as_client_request(request), key,
        INF_PARAMETER_DOUBLE, &p);
    if (err == NULL) {
        p->d = value;
    }
    return err;
}

static void
request_free(api_request_t *q)
{
    for (uint32_t i = 0; i < q->input_cap; i++) {
        clear_data(&q->inputs[i]);
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
in_flight(const api_request_t *q)
{
    inf_request_state_t state = atomic_load_explicit(&q->request.state,
        memory_order_relaxed);
    return state != INF_REQUEST_IDLE && state != INF_REQUEST_RELEASED;
}

static void
request_released(void *userp, inf_request_t *r, uint32_t flags)
{
    api_request_t *q = userp;
    inf_trace_t *trace = r->trace;

    if (trace != NULL) {
        r->trace = NULL;
        inf_trace_report(trace, TRITONSERVER_TRACE_REQUEST_END,
            inf_clock_ns());
        inf_trace_unref(trace);
    }
    q->release(inf_abi_as_client_request(q), flags, q->release_userp);
}

/* The last run is given back first, so that it can be this one again. */
static inf_err_t *
take_run(api_request_t *q)
{
    drop_run(q);
    q->run = inf_api_run_take(q->pool, q->model, inf_buf_slice(&q->id).data,
        &q->target);
    return q->run != NULL ? NULL : inf_err_nomem();
}

static void
drop_run(api_request_t *q)
{
    inf_api_run_t *run = q->run;
    q->run = NULL;
    if (run != NULL) {
        inf_api_run_unref(run);
    }
}

static inf_err_t *
build(api_request_t *q)
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
        const api_input_t *in = &q->inputs[i];
        err = in->raw ? build_raw(q, in) : build_input(q, in);
    }
    for (uint32_t i = 0; err == NULL && i < q->output_count; i++) {
        inf_slice_t name = inf_buf_slice(&q->outputs[i]);
        err = inf_request_add_output(r, name.data, name.len);
    }
    return err;
}

static inf_err_t *
build_input(api_request_t *q, const api_input_t *from)
{
    inf_slice_t name = inf_buf_slice(&from->name);
    inf_input_t *in = inf_request_add_input(&q->request, name.data, name.len,
        from->datatype, from->shape, from->dim_count);

    return in != NULL ? build_data(q, in, &from->data) : inf_err_nomem();
}

/* The model's table wants the size of the whole; the chunks follow. */
static inf_err_t *
build_raw(api_request_t *q, const api_input_t *from)
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
build_data(api_request_t *q, inf_input_t *in, const api_data_t *from)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; err == NULL && i < from->count; i++) {
        inf_buffer_t b = chunk_buffer(&from->chunks[i]);
        err = inf_request_add_data(&q->request, in, &b);
    }
    for (const api_data_t *d = from->next; err == NULL && d != NULL;
        d = d->next)
    {
        err = build_host_data(q, in, d);
    }
    return err;
}

static inf_err_t *
build_host_data(api_request_t *q, inf_input_t *in, const api_data_t *from)
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
chunk_buffer(const api_chunk_t *chunk)
{
    inf_buffer_t b = chunk->buffer;
    b.ipc_handle = chunk->has_ipc_handle ? chunk->ipc_handle : NULL;
    return b;
}

/* The next entry, named and empty; counted already. */
static inf_err_t *
add_input(api_request_t *q, const char *name, api_input_t **out)
{
    if (find_input(q, name) != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s' already exists in request", name);
    }

    if (q->input_count == q->input_cap) {
        void *wider = grow(q->inputs, q->input_count, &q->input_cap,
            sizeof(*q->inputs));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        q->inputs = wider;
    }

    api_input_t *in = &q->inputs[q->input_count];
    inf_err_t *err = set_text(&in->name, name);
    if (err != NULL) {
        return err;
    }

    q->input_count++;
    *out = in;
    return NULL;
}

static api_input_t *
find_input(api_request_t *q, const char *name)
{
    for (uint32_t i = 0; i < q->input_count; i++) {
        if (strcmp(q->inputs[i].name.data, name) == 0) {
            return &q->inputs[i];
        }
    }

    return NULL;
}

static void
clear_data(api_input_t *in)
{
    api_data_t *d = in->data.next;
    while (d != NULL) {
        api_data_t *next = d->next;
        free(d->policy);
        free(d->chunks);
        free(d);
        d = next;
    }

    in->data.next = NULL;
    in->data.count = 0;
}

static inf_err_t *
append(api_request_t *q, const char *name, const char *policy,
    const api_chunk_t *chunk)
{
    api_input_t *in = find_input(q, name);
    api_data_t *data;

    if (in == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s' does not exist in request", name);
    }
    if ((unsigned) chunk->buffer.memory_type > INF_MEMORY_GPU) {
        return inf_err_new(INF_ERR_INVALID_ARG, "data of input '%s' has"
            " unknown memory type %d", name, (int) chunk->buffer.memory_type);
    }
    if (chunk->buffer.size == 0) {
        return NULL;
    }
    if (chunk->buffer.base == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "data of input '%s' is NULL",
            name);
    }

    inf_err_t *err = find_data(in, policy, &data);
    if (err != NULL) {
        return err;
    }

    uint64_t total = chunk->buffer.size;
    for (uint32_t i = 0; i < data->count; i++) {
        if (__builtin_add_overflow(total, data->chunks[i].buffer.size,
                &total))
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "input '%s': byte size"
                " overflows", name);
        }
    }

    if (data->count == data->cap) {
        void *wider = grow(data->chunks, data->count, &data->cap,
            sizeof(*data->chunks));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        data->chunks = wider;
    }
    data->chunks[data->count++] = *chunk;
    return NULL;
}

/* Of that policy (NULL: the usual), made if there is none. */
static inf_err_t *
find_data(api_input_t *in, const char *policy, api_data_t **out)
{
    *out = &in->data;
    if (policy == NULL) {
        return NULL;
    }

    for (api_data_t *d = in->data.next; d != NULL; d = d->next) {
        if (strcmp(d->policy, policy) == 0) {
            *out = d;
            return NULL;
        }
    }

    api_data_t *d = calloc(1, sizeof(*d));
    char *copy = strdup(policy);
    if (d == NULL || copy == NULL) {
        free(d);
        free(copy);
        return inf_err_nomem();
    }

    d->policy = copy;
    d->next = in->data.next;
    in->data.next = d;
    *out = d;
    return NULL;
}

static inf_err_t *
add_parameter(api_request_t *q, const char *key, inf_parameter_type_t type,
    inf_parameter_t **out)
{
    *out = inf_parameter_add(&q->parameters, &q->arena, key, strlen(key),
        type);
    return *out != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
set_text(inf_buf_t *b, const char *text)
{
    inf_buf_reset(b);
    inf_buf_put(b, text, strlen(text) + 1);
    if (b->failed) {
        inf_err_t *err = inf_buf_status(b);
        inf_buf_fini(b);
        inf_buf_init(b);
        return err;
    }

    b->len--;
    return NULL;
}

/* The new entries are zeroed. */
static void *
grow(void *old, uint32_t count, uint32_t *cap, size_t size)
{
    uint32_t wider = *cap == 0 ? 4 : *cap * 2;
    char *p = realloc(old, wider * size);
    if (p == NULL) {
        return NULL;
    }

    memset(p + count * size, 0, (wider - count) * size);
    *cap = wider;
    return p;
}
