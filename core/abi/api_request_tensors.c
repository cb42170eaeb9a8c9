/* api_request_tensors.c - the inputs of a client's request, their data, and the
   requested outputs. */

#include "core/abi/api_request.h"

#include <stdlib.h>
#include <string.h>

static inf_err_t *add_input(inf_api_request_t *q, const char *name,
    inf_api_input_t **out);
static inf_api_input_t *find_input(const inf_api_request_t *q,
    const char *name);
static inf_err_t *no_input(const inf_api_request_t *q, const char *name);
static inf_err_t *named(const inf_api_request_t *q, inf_err_t *err);
static inf_err_t *append(inf_api_request_t *q, const char *name,
    const char *policy, const inf_api_chunk_t *chunk);
static inf_err_t *find_data(inf_api_input_t *in, const char *policy,
    inf_api_data_t **out);
static void *grow(void *old, uint32_t count, uint32_t *cap, size_t size);

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    uint64_t dim_count)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    inf_api_input_t *in;

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
    inf_api_request_t *q = inf_as_client_request(inference_request);
    inf_api_input_t *in;

    if (q->input_count > 0) {
        return named(q, inf_err_new(INF_ERR_INVALID_ARG, "raw input '%s' can't"
            " be added to request with other inputs", name));
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
    inf_api_request_t *q = inf_as_client_request(inference_request);
    inf_api_input_t *in = find_input(q, name);
    if (in == NULL) {
        return no_input(q, name);
    }

    inf_api_clear_data(in);
    inf_api_input_t spare = *in;
    uint32_t after = q->input_count - (uint32_t) (in - q->inputs) - 1;
    memmove(in, in + 1, after * sizeof(*in));
    q->inputs[--q->input_count] = spare;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest *inference_request)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);
    while (q->input_count > 0) {
        inf_api_clear_data(&q->inputs[--q->input_count]);
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
    const inf_api_chunk_t chunk = {
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
    inf_api_chunk_t chunk = {
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
    const inf_api_request_t *q = inf_as_client_request(inference_request);
    inf_api_input_t *in = find_input(q, name);
    if (in == NULL) {
        return no_input(q, name);
    }

    inf_api_clear_data(in);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);

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

    inf_err_t *err = inf_api_set_text(&q->outputs[q->output_count], name);
    q->output_count += err == NULL;
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name)
{
    inf_api_request_t *q = inf_as_client_request(inference_request);

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

/* Adds an entry with a name and no data, and counts it. */
static inf_err_t *
add_input(inf_api_request_t *q, const char *name, inf_api_input_t **out)
{
    if (find_input(q, name) != NULL) {
        return named(q, inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s' already exists in request", name));
    }

    if (q->input_count == q->input_cap) {
        void *wider = grow(q->inputs, q->input_count, &q->input_cap,
            sizeof(*q->inputs));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        q->inputs = wider;
    }

    inf_api_input_t *in = &q->inputs[q->input_count];
    inf_err_t *err = inf_api_set_text(&in->name, name);
    if (err != NULL) {
        return err;
    }

    q->input_count++;
    *out = in;
    return NULL;
}

static inf_api_input_t *
find_input(const inf_api_request_t *q, const char *name)
{
    for (uint32_t i = 0; i < q->input_count; i++) {
        if (strcmp(q->inputs[i].name.data, name) == 0) {
            return &q->inputs[i];
        }
    }

    return NULL;
}

static inf_err_t *
no_input(const inf_api_request_t *q, const char *name)
{
    return named(q, inf_err_new(INF_ERR_INVALID_ARG,
        "input '%s' does not exist in request", name));
}

/* Puts the request's id in front, as for a request that was submitted. */
static inf_err_t *
named(const inf_api_request_t *q, inf_err_t *err)
{
    const inf_request_t r = { .id = inf_buf_slice(&q->id).data };
    return inf_request_name_error(&r, err);
}

void
inf_api_clear_data(inf_api_input_t *in)
{
    inf_api_data_t *d = in->data.next;
    while (d != NULL) {
        inf_api_data_t *next = d->next;
        free(d->policy);
        free(d->chunks);
        free(d);
        d = next;
    }

    in->data.next = NULL;
    in->data.count = 0;
}

static inf_err_t *
append(inf_api_request_t *q, const char *name, const char *policy,
    const inf_api_chunk_t *chunk)
{
    inf_api_input_t *in = find_input(q, name);
    inf_api_data_t *data;

    if (in == NULL) {
        return no_input(q, name);
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

/* The data for a policy (NULL: the default), created if there is none. */
static inf_err_t *
find_data(inf_api_input_t *in, const char *policy, inf_api_data_t **out)
{
    *out = &in->data;
    if (policy == NULL) {
        return NULL;
    }

    for (inf_api_data_t *d = in->data.next; d != NULL; d = d->next) {
        if (strcmp(d->policy, policy) == 0) {
            *out = d;
            return NULL;
        }
    }

    inf_api_data_t *d = calloc(1, sizeof(*d));
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

/* Enlarges an array; the new entries are zeroed. */
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
