/*
 * answer.h - what simple backends do with their requests: read an input, make
 *            a response of each, send and release.
 *
 * Owner    answer_each and answer_one take the requests.
 * Thread   any.
 * Units    bytes.
 * Errors   the callback's goes into the response and is deleted.
 * Route    Execute -> [answer] -> the core
 */

#ifndef T_BACKENDS_ANSWER_H
#define T_BACKENDS_ANSWER_H

#include <stdint.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

typedef TRITONSERVER_Error *(*answer_fn)(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, void *userp);

/* The first buffer of the input of that name. */
static inline TRITONSERVER_Error *
answer_read(TRITONBACKEND_Request *request, const char *name,
    const void **data, uint64_t *size)
{
    TRITONBACKEND_Input    *input;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error     *err;
    int64_t                 id = 0;

    err = TRITONBACKEND_RequestInput(request, name, &input);
    return err != NULL ? err
        : TRITONBACKEND_InputBuffer(input, 0, data, size, &type, &id);
}

/* An output of one dimension, to be written. */
static inline TRITONSERVER_Error *
answer_output(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, int64_t elements, uint64_t size,
    void **out)
{
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error     *err;
    int64_t                 id = 0;

    err = TRITONBACKEND_ResponseOutput(response, &output, name, datatype,
                                       &elements, 1);
    return err != NULL ? err
        : TRITONBACKEND_OutputBuffer(output, out, size, &type, &id);
}

static inline TRITONSERVER_Error *
answer_int32(TRITONBACKEND_Response *response, const char *name, int32_t value)
{
    void               *out;
    TRITONSERVER_Error *err = answer_output(response, name,
        TRITONSERVER_TYPE_INT32, 1, sizeof(value), &out);

    if (err == NULL) {
        memcpy(out, &value, sizeof(value));
    }
    return err;
}

/* One response; answer NULL: it is empty, or an error.  Takes err. */
static inline void
answer_one(TRITONBACKEND_Request *request, TRITONSERVER_Error *err,
    answer_fn answer, void *userp)
{
    TRITONBACKEND_Response *response;

    if (TRITONBACKEND_ResponseNew(&response, request) == NULL) {
        if (err == NULL && answer != NULL) {
            err = answer(request, response, userp);
        }
        TRITONBACKEND_ResponseSend(response,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
    }
    TRITONSERVER_ErrorDelete(err);
    TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

static inline TRITONSERVER_Error *
answer_each(TRITONBACKEND_Request **requests, uint32_t count, answer_fn answer,
    void *userp)
{
    for (uint32_t i = 0; i < count; i++) {
        answer_one(requests[i], NULL, answer, userp);
    }
    return NULL;
}

#endif /* T_BACKENDS_ANSWER_H */
