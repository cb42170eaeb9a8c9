/*
 * double.c - a backend to start from: every output is twice its input.
 *
 * Copy this directory, rename the library, put your own work where the numbers
 * are doubled. Only the two headers of core/include/triton/core are needed:
 * the functions called here are found in the server that loads the library.
 *
 * The server calls the entry points (TRITONBACKEND_... defined below) in this
 * order: Initialize, then for each model version ModelInitialize, for each
 * instance ModelInstanceInitialize, then ModelInstanceExecute again and again,
 * and the Finalize functions at the end. Only Execute has to exist; this
 * backend has no state to make before or to free after it.
 *
 * Every function returns NULL when it has worked.
 */

#include <time.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    const char            *name;
    TRITONSERVER_DataType  datatype;
    const int64_t         *shape;       /* batch dimension first, if any     */
    uint32_t               dims_count;
    uint64_t               len_bytes;
    uint32_t               buffer_count;
} input_t;

static uint64_t now_ns(void);
static void request_answer(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request *request);
static TRITONSERVER_Error *outputs_make(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response);
static TRITONSERVER_Error *output_make(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, uint32_t index);
static TRITONSERVER_Error *numbers_double(TRITONBACKEND_Input *input,
    uint32_t buffer_count, float *to);
static void log_and_delete(TRITONSERVER_Error *err);

/*
 * One batch of requests on one instance's own thread. The requests are ours
 * until released; each needs one response, the final one. An error returned
 * from here would answer them all, so it is only for what happens before any
 * of them is touched.
 */
TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    for (uint32_t i = 0; i < request_count; i++) {
        request_answer(instance, requests[i]);
    }

    return NULL;
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void
request_answer(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response = NULL;
    uint64_t start_ns = now_ns();

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&response, request);
    if (err == NULL) {
        err = outputs_make(request, response);
    }

    /* the four times: start, work begins, work ends, all is written */
    uint64_t end_ns = now_ns();
    log_and_delete(TRITONBACKEND_ModelInstanceReportStatistics(instance,
        request, err == NULL, start_ns, start_ns, end_ns, end_ns));
    log_and_delete(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance,
        1, start_ns, start_ns, end_ns, end_ns));

    /* sending takes the response in any case, but never the error */
    if (response != NULL) {
        log_and_delete(TRITONBACKEND_ResponseSend(response,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL, err));
    }
    log_and_delete(err);
    log_and_delete(TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_ALL));
}

/* The client may have asked for some of the outputs only. */
static TRITONSERVER_Error *
outputs_make(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = output_make(request, response, i);
    }

    return err;
}

/* This backend has one input, INPUT0; its output may have any name. */
static TRITONSERVER_Error *
output_make(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    uint32_t index)
{
    TRITONBACKEND_Input *input;
    TRITONBACKEND_Output *output;
    const char *name;
    input_t in;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputName(request, index,
        &name);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_RequestInput(request, "INPUT0", &input);
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_InputProperties(input, &in.name, &in.datatype,
        &in.shape, &in.dims_count, &in.len_bytes, &in.buffer_count);
    if (err != NULL) {
        return err;
    }

    if (in.datatype != TRITONSERVER_TYPE_FP32) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
            "INPUT0 must be FP32");
    }

    err = TRITONBACKEND_ResponseOutput(response, &output, name, in.datatype,
        in.shape, in.dims_count);
    if (err != NULL) {
        return err;
    }

    /* memory of the kind we ask for, or of another: look before writing */
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    void *to;
    err = TRITONBACKEND_OutputBuffer(output, &to, in.len_bytes, &memory,
        &device);
    if (err != NULL) {
        return err;
    }

    if (in.len_bytes != 0 && memory == TRITONSERVER_MEMORY_GPU) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
            "this backend writes CPU memory only");
    }

    return numbers_double(input, in.buffer_count, to);
}

/*
 * The work. An input can lie in several buffers, and a buffer may end in the
 * middle of a number; this keeps the bytes of such a number until the rest
 * has come.
 */
static TRITONSERVER_Error *
numbers_double(TRITONBACKEND_Input *input, uint32_t buffer_count, float *to)
{
    union {
        unsigned char bytes[sizeof(float)];
        float         number;
    } one;
    size_t filled = 0;

    for (uint32_t i = 0; i < buffer_count; i++) {
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        const void *data;
        uint64_t len_bytes;
        int64_t device = 0;

        TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(input, i, &data,
            &len_bytes, &memory, &device);
        if (err != NULL) {
            return err;
        }

        if (len_bytes != 0 && memory == TRITONSERVER_MEMORY_GPU) {
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                "this backend reads CPU memory only");
        }

        for (uint64_t k = 0; k < len_bytes; k++) {
            one.bytes[filled++] = ((const unsigned char *) data)[k];
            if (filled == sizeof(one)) {
                *to++ = 2 * one.number;
                filled = 0;
            }
        }
    }

    return NULL;
}

static void
log_and_delete(TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    TRITONSERVER_Error *cannot = TRITONSERVER_LogMessage(
        TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
        TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(cannot);
    TRITONSERVER_ErrorDelete(err);
}
