/*
 * overread.c - reads each input to the end of its last 64 bytes, as vector
 * instructions do, and answers OUT (UINT8) with all of that, input by input.
 */

#include <string.h>

#include "triton/core/tritonbackend.h"

#define LINE 64u

static uint64_t
lines(uint64_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

static TRITONSERVER_Error *
input_buffer(TRITONBACKEND_Request *request, uint32_t index, const void **data,
    uint64_t *size)
{
    TRITONBACKEND_Input     *input;
    TRITONSERVER_MemoryType  type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error      *err;
    int64_t                  id = 0;

    err = TRITONBACKEND_RequestInputByIndex(request, index, &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputBuffer(input, 0, data, size, &type, &id);
    }
    return err;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Output    *output;
    TRITONSERVER_MemoryType  type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error      *err;
    const void              *data;
    uint64_t                 size, total = 0;
    uint32_t                 count;
    int64_t                  id = 0, shape;
    void                    *out = NULL;
    char                    *at;

    err = TRITONBACKEND_RequestInputCount(request, &count);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = input_buffer(request, i, &data, &size);
        total += err == NULL ? lines(size) : 0;
    }
    if (err == NULL) {
        shape = (int64_t) total;
        err = TRITONBACKEND_ResponseOutput(response, &output, "OUT",
                                           TRITONSERVER_TYPE_UINT8, &shape, 1);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, total, &type, &id);
    }
    at = out;
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = input_buffer(request, i, &data, &size);
        if (err == NULL) {
            memcpy(at, data, lines(size));
            at += lines(size);
        }
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;
        TRITONSERVER_Error     *err;

        err = TRITONBACKEND_ResponseNew(&response, requests[i]);
        if (err == NULL) {
            err = answer(requests[i], response);
            TRITONBACKEND_ResponseSend(response,
                TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
            TRITONSERVER_ErrorDelete(err);
        }
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
