/* checks_request.c - a request and its inputs, before it is answered. */

#include "conformance.h"

#include <string.h>

static void check_id(cf_report_t *r, TRITONBACKEND_Request *q);
static void check_inputs(cf_report_t *r, const cf_instance_t *i,
    TRITONBACKEND_Request *q);
static void check_input(cf_report_t *r, TRITONBACKEND_Input *in,
    const char *name);
static void check_buffers(cf_report_t *r, TRITONBACKEND_Input *in,
    uint32_t count, uint64_t size);
static void check_no_buffer(cf_report_t *r, TRITONBACKEND_Input *in,
    uint32_t index);
static void check_host_policy(cf_report_t *r, TRITONBACKEND_Input *in,
    const char *policy, uint64_t size, uint32_t count);
static void check_outputs(cf_report_t *r, TRITONBACKEND_Request *q);
static void check_parameters(cf_report_t *r, TRITONBACKEND_Request *q);
static void check_trace(cf_report_t *r, TRITONBACKEND_Request *q);
static void check_state(cf_report_t *r, TRITONBACKEND_Request *q);

void
cf_request_check(cf_report_t *r, const cf_instance_t *i,
    TRITONBACKEND_Request *q)
{
    check_id(r, q);
    check_inputs(r, i, q);
    check_outputs(r, q);
    check_parameters(r, q);
    check_trace(r, q);
    check_state(r, q);

    cf_fails(r, TRITONBACKEND_RequestRelease(q,
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE),
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: RESCHEDULE outside iterative sequences is INVALID_ARG");
}

static void
check_id(cf_report_t *r, TRITONBACKEND_Request *q)
{
    const char *id = NULL;
    uint64_t    number = 0, timeout = 0;
    uint32_t    flags = 0;
    bool        cancelled = true;

    cf_succeeds(r, TRITONBACKEND_RequestId(q, &id), "20: RequestId succeeds");
    cf_check(r, id != NULL, "20: RequestId is never NULL");

    TRITONSERVER_Error *as_number = TRITONBACKEND_RequestCorrelationId(q,
        &number);
    TRITONSERVER_Error *as_text = TRITONBACKEND_RequestCorrelationIdString(q,
        &id);

    cf_check(r, (as_number == NULL) != (as_text == NULL),
        "20: a correlation id is a number or a string");
    cf_fails(r, as_number != NULL ? as_number : as_text,
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: the other kind of correlation id is INVALID_ARG");
    cf_succeeds(r, TRITONBACKEND_RequestFlags(q, &flags),
        "20: RequestFlags succeeds");
    cf_check(r, (flags & ~3u) == 0, "20: flags are START and END");
    cf_succeeds(r, TRITONBACKEND_InferenceRequestTimeoutMicroseconds(q,
        &timeout), "20: a request has a timeout");
    cf_succeeds(r, TRITONBACKEND_RequestIsCancelled(q, &cancelled),
        "24: RequestIsCancelled succeeds");
}

static void
check_inputs(cf_report_t *r, const cf_instance_t *i, TRITONBACKEND_Request *q)
{
    TRITONBACKEND_Input *in = (void *) r, *again = NULL;
    uint32_t             count = 0;
    const char          *name = i->name;

    cf_fails(r, TRITONBACKEND_RequestInput(q, "no such input", &in),
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: RequestInput of an unknown name is INVALID_ARG");
    cf_check(r, in == NULL, "20: RequestInput of an unknown name sets NULL");
    cf_succeeds(r, TRITONBACKEND_RequestInputCount(q, &count),
        "20: a request has a number of inputs");
    cf_fails(r, TRITONBACKEND_RequestInputName(q, count, &name),
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: an input's index out of range is INVALID_ARG");
    cf_check(r, name == NULL, "1: RequestInputName sets NULL");
    cf_fails(r, TRITONBACKEND_RequestInputByIndex(q, count, &in),
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: an input's index out of range is INVALID_ARG");

    for (uint32_t n = 0; n < count; n++) {
        cf_succeeds(r, TRITONBACKEND_RequestInputName(q, n, &name),
            "20: each input has a name");
        cf_succeeds(r, TRITONBACKEND_RequestInputByIndex(q, n, &in),
            "20: each input is found by its index");
        cf_succeeds(r, TRITONBACKEND_RequestInput(q, name, &again),
            "20: each input is found by its name");
        cf_check(r, in != NULL && in == again,
            "20: index and name find the same input");
        if (in != NULL && name != NULL) {
            check_input(r, in, name);
        }
    }
}

static void
check_input(cf_report_t *r, TRITONBACKEND_Input *in, const char *name)
{
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    const char           *own = NULL;
    const int64_t        *shape = NULL;
    uint32_t              dims = 0, count = 7;
    uint64_t              size = 7;

    cf_succeeds(r, TRITONBACKEND_InputProperties(in, NULL, NULL, NULL, NULL,
        NULL, NULL), "21: InputProperties takes NULL for each");
    cf_succeeds(r, TRITONBACKEND_InputProperties(in, &own, &type, &shape,
        &dims, &size, &count), "21: an input has properties");
    cf_check(r, own != NULL && strcmp(own, name) == 0,
        "21: an input's name is that of its index");
    cf_check(r, shape != NULL && dims > 0, "21: an input has a shape");
    cf_check(r, (size == 0) == (count == 0),
        "21: an input of no bytes has no buffers");

    if (strcmp(name, "B") == 0) {
        cf_check(r, dims == 2 && shape[1] == 4,
            "21: reshape is applied after the batch dimension");
    }

    uint64_t elements = 1;

    for (uint32_t d = 0; d < dims; d++) {
        cf_check(r, shape[d] >= 0, "21: a request's dimensions are given");
        elements *= (uint64_t) shape[d];
    }
    if (type != TRITONSERVER_TYPE_BYTES) {
        cf_check(r, elements * TRITONSERVER_DataTypeByteSize(type) == size,
            "10: byte size is shape times element size");
    }

    check_buffers(r, in, count, size);
    check_no_buffer(r, in, count);
    check_no_buffer(r, in, UINT32_MAX);
    check_host_policy(r, in, NULL, size, count);
    check_host_policy(r, in, "no such policy", size, count);
}

static void
check_buffers(cf_report_t *r, TRITONBACKEND_Input *in, uint32_t count,
    uint64_t size)
{
    uint64_t sum = 0;

    for (uint32_t n = 0; n < count; n++) {
        TRITONSERVER_BufferAttributes *a = NULL, *again = NULL;
        TRITONSERVER_MemoryType        type = TRITONSERVER_MEMORY_GPU, seen;
        const void                    *base = NULL, *other = NULL;
        uint64_t                       bytes = 0;
        size_t                         said = 0;
        int64_t                        id = 7;

        cf_succeeds(r, TRITONBACKEND_InputBuffer(in, n, &base, &bytes, &type,
            &id), "21: each buffer can be had");
        cf_check(r, base != NULL && bytes > 0 && id == 0
            && type == TRITONSERVER_MEMORY_CPU,
            "21: a buffer is where the client put it");
        cf_succeeds(r, TRITONBACKEND_InputBufferAttributes(in, n, &other,
            &a), "21: each buffer has attributes");
        cf_succeeds(r, TRITONBACKEND_InputBufferAttributes(in, n, &other,
            &again), "21: each buffer has attributes");
        cf_check(r, a != NULL && a == again && other == base,
            "7: attributes belong to their tensor");
        TRITONSERVER_BufferAttributesByteSize(a, &said);
        TRITONSERVER_BufferAttributesMemoryType(a, &seen);
        cf_check(r, said == bytes && seen == type,
            "7: attributes say what InputBuffer says");
        sum += bytes;
    }

    cf_check(r, sum == size, "21: byte_size is the sum over the buffers");
}

static void
check_no_buffer(cf_report_t *r, TRITONBACKEND_Input *in, uint32_t index)
{
    TRITONSERVER_BufferAttributes *a = (void *) r;
    TRITONSERVER_MemoryType        type = TRITONSERVER_MEMORY_GPU;
    const void                    *base = r;
    uint64_t                       size = 7;
    int64_t                        id = 7;

    cf_succeeds(r, TRITONBACKEND_InputBuffer(in, index, &base, &size, &type,
        &id), "21: InputBuffer out of range is no error");
    cf_check(r, base == NULL && size == 0 && id == 0
        && type == TRITONSERVER_MEMORY_CPU,
        "21: InputBuffer out of range gives NULL, 0, CPU, 0");
    base = r;
    cf_succeeds(r, TRITONBACKEND_InputBufferAttributes(in, index, &base, &a),
        "21: InputBufferAttributes out of range is no error");
    cf_check(r, base == NULL && a == NULL,
        "21: InputBufferAttributes out of range gives NULL");
}

/* A policy for which the client added nothing sees the default list. */
static void
check_host_policy(cf_report_t *r, TRITONBACKEND_Input *in,
    const char *policy, uint64_t size, uint32_t count)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const void             *usual = NULL, *base = NULL;
    const char             *name = NULL;
    uint64_t                bytes = 0;
    uint32_t                buffers = 7;
    int64_t                 id = 0;

    cf_succeeds(r, TRITONBACKEND_InputPropertiesForHostPolicy(in, policy,
        NULL, NULL, NULL, NULL, NULL, NULL),
        "21: InputPropertiesForHostPolicy takes NULL for each");
    cf_succeeds(r, TRITONBACKEND_InputPropertiesForHostPolicy(in, policy,
        &name, NULL, NULL, NULL, &bytes, &buffers),
        "21: properties can be had for a host policy");
    cf_check(r, name != NULL && bytes == size && buffers == count,
        "21: without data of a policy the default list counts");

    TRITONBACKEND_InputBuffer(in, 0, &usual, &bytes, &type, &id);
    cf_succeeds(r, TRITONBACKEND_InputBufferForHostPolicy(in, policy, 0,
        &base, &bytes, &type, &id),
        "21: buffers can be had for a host policy");
    cf_check(r, base == usual,
        "21: without data of a policy the default list counts");
}

static void
check_outputs(cf_report_t *r, TRITONBACKEND_Request *q)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const char             *name = "", *before = "";
    uint32_t                count = 0;
    int64_t                 id = 0;

    cf_succeeds(r, TRITONBACKEND_RequestOutputCount(q, &count),
        "20: a request has a number of outputs");
    cf_check(r, count > 0, "10: no requested outputs means all of them");
    for (uint32_t n = 0; n < count; n++) {
        cf_succeeds(r, TRITONBACKEND_RequestOutputName(q, n, &name),
            "20: each requested output has a name");
        cf_check(r, strcmp(before, name) < 0,
            "10: requested outputs are a sorted set");
        before = name;

        TRITONSERVER_Error *err =
            TRITONBACKEND_RequestOutputBufferProperties(q, name, NULL, &type,
                &id);

        cf_check(r, err == NULL
            || TRITONSERVER_ErrorCode(err) == TRITONSERVER_ERROR_UNAVAILABLE,
            "20: unknown output properties are UNAVAILABLE");
        TRITONSERVER_ErrorDelete(err);
    }
    cf_fails(r, TRITONBACKEND_RequestOutputName(q, count, &name),
        TRITONSERVER_ERROR_INVALID_ARG,
        "20: an output's index out of range is INVALID_ARG");
    cf_check(r, name == NULL, "1: RequestOutputName sets NULL");
}

static void
check_parameters(cf_report_t *r, TRITONBACKEND_Request *q)
{
    TRITONSERVER_ParameterType type;
    const char                *key = NULL;
    const void                *value = NULL;
    uint32_t                   count = 0;

    cf_succeeds(r, TRITONBACKEND_RequestParameterCount(q, &count),
        "20: a request has a number of parameters");
    for (uint32_t n = 0; n < count; n++) {
        cf_succeeds(r, TRITONBACKEND_RequestParameter(q, n, &key, &type,
            &value), "20: each parameter can be had");
        cf_check(r, key != NULL && value != NULL,
            "6: a parameter has a name and a value");
        cf_check(r, strcmp(TRITONSERVER_ParameterTypeString(type),
            "<invalid>") != 0, "6: a parameter has a type");
    }
    cf_fails(r, TRITONBACKEND_RequestParameter(q, count, &key, &type,
        &value), TRITONSERVER_ERROR_INVALID_ARG,
        "20: a parameter's index out of range is INVALID_ARG");
}

static void
check_trace(cf_report_t *r, TRITONBACKEND_Request *q)
{
    TRITONSERVER_InferenceTrace *trace = (void *) r, *child = (void *) r;
    uint64_t                     id = 0, parent = 0;

    cf_succeeds(r, TRITONBACKEND_RequestTrace(q, &trace),
        "13: RequestTrace of an untraced request succeeds");
    cf_succeeds(r, TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &child),
        "13: a child of no trace is no error");
    if (trace == NULL) {
        cf_check(r, child == NULL, "13: a child of no trace is NULL");
        return;
    }

    TRITONSERVER_InferenceTraceId(trace, &id);
    TRITONSERVER_InferenceTraceParentId(child, &parent);
    cf_check(r, id > 0 && parent == id,
        "13: a child's parent is who spawned it");
    cf_succeeds(r, TRITONSERVER_InferenceTraceReportActivity(trace,
        cf_now_ns(), "conformance"), "13: an activity may be reported");
    cf_succeeds(r, TRITONSERVER_InferenceTraceDelete(child),
        "13: a child that was not submitted is deleted");
}

/* Without a sequence there is none; with one it counts its requests. */
static void
check_state(cf_report_t *r, TRITONBACKEND_Request *q)
{
    TRITONSERVER_BufferAttributes *a = NULL;
    TRITONBACKEND_State           *state = (void *) r;
    TRITONSERVER_MemoryType        type = TRITONSERVER_MEMORY_GPU;
    const int64_t                  shape[2] = { 1, 1 };
    void                          *buffer = NULL;
    size_t                         size = 0;
    int64_t                        id = 7;
    uint64_t                       number = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_StateNew(&state, q, "STATE_OUT",
        TRITONSERVER_TYPE_INT32, shape, 2);
    if (err != NULL) {
        cf_fails(r, err, TRITONSERVER_ERROR_INVALID_ARG,
            "25: a state without a sequence is INVALID_ARG");
        return;
    }

    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestCorrelationId(q, &number));
    cf_check(r, number != 0, "25: a state belongs to a sequence");
    cf_succeeds(r, TRITONBACKEND_StateBuffer(state, &buffer, 4, &type, &id),
        "25: a state has a buffer");
    cf_check(r, buffer != NULL && id == 0 && type != TRITONSERVER_MEMORY_GPU,
        "25: StateBuffer says what kind it gave");
    memset(buffer, 0, 4);
    cf_succeeds(r, TRITONBACKEND_StateBufferAttributes(state, &a),
        "25: a state's buffer has attributes");
    TRITONSERVER_BufferAttributesByteSize(a, &size);
    cf_check(r, size == 4, "25: the attributes say the buffer's size");
    cf_succeeds(r, TRITONBACKEND_StateUpdate(state),
        "25: StateUpdate commits");
    cf_fails(r, TRITONBACKEND_StateNew(&state, q, "no such state",
        TRITONSERVER_TYPE_INT32, shape, 2), TRITONSERVER_ERROR_INVALID_ARG,
        "25: an unknown state is INVALID_ARG");
}
