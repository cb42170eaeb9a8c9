/* backend_request.c - functions of backends on requests and their inputs. */

#include "core/abi/execute.h"
#include "core/abi/objects.h"

#include <string.h>

#include "core/base/clock.h"
static inf_err_t *reschedule(inf_request_t *r);
static const inf_host_data_t *host_data(const inf_input_t *in,
    const char *policy);
static inf_err_t *no_index(const inf_request_t *r, uint32_t index,
    uint32_t count, const char *what);
static inf_err_t *is_released(const inf_request_t *r);
static void describe_buffer(const inf_buffer_t *b, const void **buffer,
    uint64_t *size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_id);

TRITONSERVER_Error *
TRITONBACKEND_RequestId(TRITONBACKEND_Request *request, const char **id)
{
    *id = inf_as_request(request)->id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
    bool *is_cancelled)
{
    const inf_factory_t *f = inf_as_request(request)->factory;
    if (f == NULL) {
        return is_released(inf_as_request(request));
    }

    *is_cancelled = atomic_load_explicit(&f->cancelled, memory_order_relaxed);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request,
    uint64_t *id)
{
    const inf_request_t *r = inf_as_request(request);
    if (r->correlation_text != NULL) {
        return inf_request_name_error(r, inf_err_new(INF_ERR_INVALID_ARG,
            "correlation ID in request is not an unsigned int, id: %s",
            r->correlation_text));
    }

    *id = r->correlation_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request,
    const char **id)
{
    const inf_request_t *r = inf_as_request(request);
    if (r->correlation_text == NULL) {
        return inf_request_name_error(r, inf_err_new(INF_ERR_INVALID_ARG,
            "correlation ID in request is not a string, id: %llu",
            (unsigned long long) r->correlation_id));
    }

    *id = r->correlation_text;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request *request, uint64_t *timeout)
{
    *timeout = inf_as_request(request)->timeout_us;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags)
{
    *flags = inf_as_request(request)->flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = inf_as_request(request)->parameters.count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request,
    const uint32_t index, const char **key, TRITONSERVER_ParameterType *type,
    const void **vvalue)
{
    const inf_request_t *r = inf_as_request(request);
    const inf_parameter_t *p = inf_parameter_at(&r->parameters, index);
    if (p == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "out of bounds index %u:"
            " request has %u parameters", index, r->parameters.count);
    }

    *key = p->name;
    *type = (TRITONSERVER_ParameterType) p->type;
    *vvalue = inf_parameter_value(p);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = inf_as_request(request)->input_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request,
    const uint32_t index, const char **input_name)
{
    const inf_request_t *r = inf_as_request(request);
    if (index >= r->input_count) {
        *input_name = NULL;
        return no_index(r, index, r->input_count, "inputs");
    }

    *input_name = r->inputs[index].name;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
    TRITONBACKEND_Input **input)
{
    inf_request_t *r = inf_as_request(request);
    inf_input_t *in = inf_request_find_input(r, name);
    *input = inf_abi_as_input(in);
    atomic_store_explicit(&r->input_ns, inf_clock_ns(), memory_order_relaxed);
    if (in == NULL) {
        return inf_request_name_error(r, inf_err_new(INF_ERR_INVALID_ARG,
            "unknown request input name %s", name));
    }

    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
    const uint32_t index, TRITONBACKEND_Input **input)
{
    inf_request_t *r = inf_as_request(request);
    if (index >= r->input_count) {
        *input = NULL;
        return no_index(r, index, r->input_count, "inputs");
    }

    atomic_store_explicit(&r->input_ns, inf_clock_ns(), memory_order_relaxed);
    *input = inf_abi_as_input(&r->inputs[index]);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
    uint32_t *count)
{
    *count = inf_as_request(request)->output_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
    const uint32_t index, const char **output_name)
{
    const inf_request_t *r = inf_as_request(request);
    if (index >= r->output_count) {
        *output_name = NULL;
        return no_index(r, index, r->output_count, "requested outputs");
    }

    *output_name = r->outputs[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request,
    const char *name, size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    inf_factory_t *f = inf_as_request(request)->factory;
    if (f == NULL) {
        return is_released(inf_as_request(request));
    }
    if (f->sink->query == NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "Output properties are not available");
    }

    inf_memory_type_t type = (inf_memory_type_t) *memory_type;
    inf_err_t *err = f->sink->query(f->userp, name, byte_size, &type,
        memory_type_id);
    if (err == NULL) {
        *memory_type = (TRITONSERVER_MemoryType) type;
    }
    return err;
}

/* Only the bit of RESCHEDULE is looked at, as in Triton: a backend that gives
   no flags has the request released. */
TRITONSERVER_Error *
TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
    uint32_t release_flags)
{
    inf_request_t *r = inf_as_request(request);

    if (r->factory == NULL) {
        return is_released(r);
    }

    if (release_flags & TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) {
        return reschedule(r);
    }

    inf_execution_release(r);
    inf_request_release(r, release_flags);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request,
    TRITONSERVER_InferenceTrace **trace)
{
    *trace = inf_as_request(request)->abi.trace;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count)
{
    const inf_input_t *in = inf_as_input(input);

    if (name != NULL) {
        *name = in->name;
    }
    if (datatype != NULL) {
        *datatype = (TRITONSERVER_DataType) in->datatype;
    }
    if (shape != NULL) {
        *shape = in->model_shape;
    }
    if (dims_count != NULL) {
        *dims_count = in->model_dim_count;
    }
    if (byte_size != NULL) {
        *byte_size = in->byte_size;
    }
    if (buffer_count != NULL) {
        *buffer_count = in->buffer_count;
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input,
    const char *host_policy_name, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count)
{
    const inf_host_data_t *data = host_data(inf_as_input(input),
        host_policy_name);

    if (data != NULL) {
        if (byte_size != NULL) {
            *byte_size = data->byte_size;
        }
        if (buffer_count != NULL) {
            *buffer_count = data->buffer_count;
        }
        byte_size = NULL;
        buffer_count = NULL;
    }

    return TRITONBACKEND_InputProperties(input, name, datatype, shape,
        dims_count, byte_size, buffer_count);
}

TRITONSERVER_Error *
TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id)
{
    const inf_input_t *in = inf_as_input(input);

    describe_buffer(index < in->buffer_count ? &in->buffers[index] : NULL,
        buffer, buffer_byte_size, memory_type, memory_type_id);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InputBufferForHostPolicy(TRITONBACKEND_Input *input,
    const char *host_policy_name, const uint32_t index, const void **buffer,
    uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    const inf_host_data_t *data = host_data(inf_as_input(input),
        host_policy_name);
    if (data == NULL) {
        return TRITONBACKEND_InputBuffer(input, index, buffer,
            buffer_byte_size, memory_type, memory_type_id);
    }

    describe_buffer(index < data->buffer_count ? &data->buffers[index] : NULL,
        buffer, buffer_byte_size, memory_type, memory_type_id);
    return NULL;
}

static inf_err_t *
no_index(const inf_request_t *r, uint32_t index, uint32_t count,
    const char *what)
{
    return inf_request_name_error(r, inf_err_new(INF_ERR_INVALID_ARG,
        "out of bounds index %u: request has %u %s", index, count, what));
}

/* The error for a released request; its memory may still be valid. */
static inf_err_t *
is_released(const inf_request_t *r)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "request '%s' has been released",
        r->id);
}

/* Reschedules a request; on error the backend keeps it and answers it. */
static inf_err_t *
reschedule(inf_request_t *r)
{
    const Inference__ModelConfig *msg = r->model->built;

    if (msg == NULL || msg->scheduling_choice_case
            != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING
        || !msg->sequence_batching->iterative_sequence || r->padding)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "Request is released with"
            " TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model '%s' is"
            " not configured to handle such a flag.", r->model->name);
    }

    return inf_execution_reschedule(r);
}

/* NULL: no data of the client for that policy. */
static const inf_host_data_t *
host_data(const inf_input_t *in, const char *policy)
{
    const inf_host_data_t *data = policy != NULL ? in->host_data : NULL;
    while (data != NULL && strcmp(data->policy, policy) != 0) {
        data = data->next;
    }

    return data;
}

/* Describes a buffer; b NULL: the index was out of range, which is no error. */
static void
describe_buffer(const inf_buffer_t *b, const void **buffer, uint64_t *size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_id)
{
    *buffer = b != NULL ? b->base : NULL;
    *size = b != NULL ? b->size : 0;
    *memory_type = b != NULL ? (TRITONSERVER_MemoryType) b->memory_type
        : TRITONSERVER_MEMORY_CPU;
    *memory_id = b != NULL ? b->memory_id : 0;
}
