/*
 * overread.c - reads each input to the end of its last 64 bytes, as vector
 * instructions do, and answers OUT (UINT8) with all of that, input by input.
 */

#include "answer.h"

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
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    TRITONSERVER_Error *err;
    const void         *data;
    uint64_t            size, total = 0;
    uint32_t            count;
    void               *out = NULL;
    char               *at;

    (void) userp;
    err = TRITONBACKEND_RequestInputCount(request, &count);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = input_buffer(request, i, &data, &size);
        total += err == NULL ? lines(size) : 0;
    }
    if (err == NULL) {
        err = answer_output(response, "OUT", TRITONSERVER_TYPE_UINT8,
                            (int64_t) total, total, &out);
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

    return answer_each(requests, count, answer, NULL);
}
