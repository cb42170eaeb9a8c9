/* api_response.c - runs, which are the sinks that call the client's callbacks,
   and the functions to read responses. */

#include "core/abi/api.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/refs.h"

static inf_api_run_t *take_spare(_Atomic(inf_api_run_t *) *place);
static bool put_spare(_Atomic(inf_api_run_t *) *place, inf_api_run_t *run);
static void run_free(inf_api_run_t *run);
static void run_start(void *userp);
static inf_err_t *run_alloc(void *userp, inf_output_t *out, size_t size);
static inf_err_t *run_attributes(const inf_api_target_t *target,
    inf_output_t *out, size_t size);
static inf_err_t *run_free_buffer(const inf_api_target_t *target,
    inf_output_t *out, size_t size);
static void run_release(void *userp, inf_output_t *out);
static void run_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_err_t *place_outputs(inf_response_t *response);
static inf_err_t *run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id);
static void run_factory_free(void *userp, inf_factory_t *factory);
static void answer_for_backend(inf_factory_t *factory);

static const inf_output_t *output_at(const inf_response_t *r, uint32_t index);
static inf_err_t *no_output(const inf_response_t *r, uint32_t index);

static const inf_sink_ops_t run_sink = {
    .start = run_start,
    .alloc = run_alloc,
    .release = run_release,
    .complete = run_complete,
    .query = run_query,
    .factory_free = run_factory_free
};

inf_api_pool_t *
inf_api_pool_new(void)
{
    inf_api_pool_t *pool = calloc(1, sizeof(*pool));
    if (pool != NULL) {
        atomic_init(&pool->refs, 1);
    }
    return pool;
}

void
inf_api_pool_unref(inf_api_pool_t *pool)
{
    if (!inf_refs_drop(&pool->refs)) {
        return;
    }

    for (int i = 0; i < INF_API_SPARE_RUNS; i++) {
        run_free(atomic_load_explicit(&pool->spare[i],
            memory_order_relaxed));
    }
    free(pool);
}

inf_api_run_t *
inf_api_run_take(inf_api_pool_t *pool, inf_model_t *model, const char *id,
    const inf_api_target_t *target)
{
    inf_api_run_t *run = NULL;
    for (int i = 0; run == NULL && i < INF_API_SPARE_RUNS; i++) {
        run = take_spare(&pool->spare[i]);
    }
    if (run == NULL) {
        run = calloc(1, sizeof(*run));
        if (run == NULL) {
            return NULL;
        }
        inf_factory_init(&run->factory);
        inf_buf_init(&run->id);
    }

    inf_buf_reset(&run->id);
    inf_buf_puts(&run->id, id);
    if (run->id.failed) {
        run_free(run);
        return NULL;
    }

    run->target = *target;
    run->trace = NULL;
    run->submitted = false;
    run->pool = pool;
    atomic_store_explicit(&run->refs, 2, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
    inf_model_ref(model);
    inf_factory_start(&run->factory, model, inf_buf_slice(&run->id).data,
        &run_sink, run);
    return run;
}

/* The run becomes spare for its request's next submit, if the request still
   exists. */
void
inf_api_run_unref(inf_api_run_t *run)
{
    if (!inf_refs_drop(&run->refs)) {
        return;
    }

    inf_api_pool_t *pool = run->pool;
    run->pool = NULL;
    bool kept = false;
    for (int i = 0; !kept && i < INF_API_SPARE_RUNS; i++) {
        kept = put_spare(&pool->spare[i], run);
    }
    if (!kept) {
        run_free(run);
    }
    inf_api_pool_unref(pool);
}

/* Takes a spare run; NULL: none in this place. */
static inf_api_run_t *
take_spare(_Atomic(inf_api_run_t *) *place)
{
    return atomic_load_explicit(place, memory_order_relaxed) == NULL ? NULL
        : atomic_exchange_explicit(place, NULL, memory_order_acquire);
}

static bool
put_spare(_Atomic(inf_api_run_t *) *place, inf_api_run_t *run)
{
    inf_api_run_t *none = NULL;

    return atomic_load_explicit(place, memory_order_relaxed) == NULL
        && atomic_compare_exchange_strong_explicit(place, &none, run,
            memory_order_release, memory_order_relaxed);
}

static void
run_free(inf_api_run_t *run)
{
    if (run == NULL) {
        return;
    }

    inf_factory_fini(&run->factory);
    inf_buf_fini(&run->id);
    free(run);
}

static void
run_start(void *userp)
{
    const inf_api_target_t *t = &((inf_api_run_t *) userp)->target;

    if (t->allocator->start != NULL) {
        inf_err_log(t->allocator->start(t->allocator, t->allocator_userp));
    }
}

static inf_err_t *
run_alloc(void *userp, inf_output_t *out, size_t size)
{
    const inf_api_target_t *t = &((inf_api_run_t *) userp)->target;
    TRITONSERVER_MemoryType wanted = (TRITONSERVER_MemoryType)
        out->memory_type;
    TRITONSERVER_MemoryType actual = wanted;
    int64_t id = out->memory_id;
    void *buffer = NULL;
    void *buffer_userp = NULL;

    inf_err_t *err = t->allocator->alloc(t->allocator, out->name, size, wanted,
        out->memory_id, t->allocator_userp, &buffer, &buffer_userp, &actual,
        &id);
    if (err != NULL) {
        return err;
    }

    out->base = buffer;
    out->sink_userp = buffer_userp;
    out->memory_type = (inf_memory_type_t) actual;
    out->memory_id = id;
    out->has_ipc_handle = false;

    return t->allocator->attributes == NULL ? NULL
        : run_attributes(t, out, size);
}

/* Reads the client's attributes of an output; size and memory type stay those
   of alloc. */
static inf_err_t *
run_attributes(const inf_api_target_t *t, inf_output_t *out, size_t size)
{
    inf_buffer_attributes_t a = {
        .byte_size = size,
        .memory_type = (TRITONSERVER_MemoryType) out->memory_type,
        .memory_id = out->memory_id
    };

    inf_err_t *err = t->allocator->attributes(t->allocator, out->name,
        inf_abi_as_attributes(&a), t->allocator_userp, out->sink_userp);
    if (err != NULL) {
        if (out->base != NULL) {
            inf_err_log(run_free_buffer(t, out, size));
            out->base = NULL;
        }
        return err;
    }

    out->has_ipc_handle = a.has_ipc_handle;
    memcpy(out->ipc_handle, a.ipc_handle, sizeof(out->ipc_handle));
    return NULL;
}

static inf_err_t *
run_free_buffer(const inf_api_target_t *t, inf_output_t *out, size_t size)
{
    return t->allocator->release(t->allocator, out->base, out->sink_userp,
        size, (TRITONSERVER_MemoryType) out->memory_type, out->memory_id);
}

static void
run_release(void *userp, inf_output_t *out)
{
    inf_api_run_t *run = userp;
    inf_err_log(run_free_buffer(&run->target, out, out->byte_size));
}

static void
run_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    const inf_api_run_t *run = userp;
    const inf_api_target_t *t = &run->target;

    if (response != NULL && response->err == NULL) {
        response->err = place_outputs(response);
    }
    if (run->trace != NULL && response != NULL) {
        inf_api_trace_outputs(run->trace, response);
    }
    t->complete(inf_abi_as_client_response(response), flags, t->userp);
}

/* Allocates also empty outputs without a buffer from the backend, since a
   client may count the allocations of a response. */
static inf_err_t *
place_outputs(inf_response_t *response)
{
    inf_err_t *err = NULL;

    for (inf_output_t *out = response->first; err == NULL && out != NULL;
        out = out->next)
    {
        if (!out->allocated) {
            out->memory_type = INF_MEMORY_CPU;
            out->memory_id = 0;
            err = inf_output_alloc(out, 0);
        }
    }
    return err;
}

static inf_err_t *
run_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id)
{
    const inf_api_target_t *t = &((inf_api_run_t *) userp)->target;
    TRITONSERVER_MemoryType type = (TRITONSERVER_MemoryType) *memory_type;

    if (t->allocator->query == NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "Output properties are not available");
    }

    inf_err_t *err = t->allocator->query(t->allocator, t->allocator_userp,
        name, size, &type, memory_id);
    *memory_type = (inf_memory_type_t) type;
    return err;
}

static void
run_factory_free(void *userp, inf_factory_t *factory)
{
    inf_api_run_t *run = userp;
    inf_model_t *model = factory->model;
    inf_trace_t *trace = run->trace;

    if (run->submitted && !atomic_load_explicit(&factory->final,
            memory_order_relaxed))
    {
        answer_for_backend(factory);    /* this function is called again after
                                           its delete                        */
        return;
    }

    factory->model = NULL;
    run->trace = NULL;
    inf_api_run_unref(run);
    inf_trace_unref(trace);
    inf_model_unref(model);
}

/* Sends the final response that the backend did not send before it released
   everything. */
static void
answer_for_backend(inf_factory_t *factory)
{
    const inf_model_t *model = factory->model;
    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL, "backend '%s' of model"
        " '%s' released the request without a final response",
        inf_model_backend_name(model), model->name);

    inf_log(INF_LOG_WARN, "model=%s request=%s: %s", model->name, factory->id,
        inf_err_msg(err));
    inf_factory_ref(factory);
    inf_factory_send_error(factory, err);
    inf_factory_unref(factory);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(
    TRITONSERVER_InferenceResponse *inference_response)
{
    inf_response_free(inf_as_client_response(inference_response));
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(
    TRITONSERVER_InferenceResponse *inference_response)
{
    const inf_err_t *err = inf_as_client_response(inference_response)->err;
    return err == NULL ? NULL
        : inf_err_copy(err);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(
    TRITONSERVER_InferenceResponse *inference_response,
    const char **model_name, int64_t *model_version)
{
    const inf_model_t *model =
        inf_as_client_response(inference_response)->factory->model;
    *model_name = model->name;
    *model_version = model->version;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(
    TRITONSERVER_InferenceResponse *inference_response,
    const char **request_id)
{
    *request_id = inf_as_client_response(inference_response)->factory->id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse *inference_response, uint32_t *count)
{
    *count = inf_as_client_response(inference_response)->parameters.count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const char **name, TRITONSERVER_ParameterType *type, const void **vvalue)
{
    const inf_response_t *r = inf_as_client_response(inference_response);
    const inf_parameter_t *p = inf_parameter_at(&r->parameters, index);
    if (p == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
            " response has %u parameters", index, r->parameters.count);
    }

    *name = p->name;
    *type = (TRITONSERVER_ParameterType) p->type;
    *vvalue = inf_parameter_value(p);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse *inference_response, uint32_t *count)
{
    *count = inf_as_client_response(inference_response)->output_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const char **name, TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint64_t *dim_count, const void **base, size_t *byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id,
    void **userp)
{
    const inf_response_t *r = inf_as_client_response(inference_response);
    const inf_output_t *out = output_at(r, index);
    if (out == NULL) {
        return no_output(r, index);
    }

    *name = out->name;
    *datatype = (TRITONSERVER_DataType) out->datatype;
    *shape = out->shape;
    *dim_count = out->dim_count;
    *base = out->base;
    *byte_size = out->byte_size;
    *memory_type = (TRITONSERVER_MemoryType) out->memory_type;
    *memory_type_id = out->memory_id;
    *userp = out->sink_userp;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label)
{
    inf_response_t *r = inf_as_client_response(inference_response);
    const inf_output_t *out = output_at(r, index);
    *label = NULL;

    if (out == NULL) {
        return no_output(r, index);
    }

    inf_slice_t text = inf_labels_get(r->factory->model->labels,
        inf_slice_str(out->name), class_index);
    if (text.len == 0) {
        return NULL;
    }

    *label = inf_arena_strdup(&r->arena, text.data, text.len);
    return *label != NULL ? NULL : inf_err_nomem();
}

static const inf_output_t *
output_at(const inf_response_t *r, uint32_t index)
{
    const inf_output_t *out = r->first;
    while (out != NULL && index > 0) {
        out = out->next;
        index--;
    }

    return out;
}

static inf_err_t *
no_output(const inf_response_t *r, uint32_t index)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
        " response has %u outputs", index, r->output_count);
}
