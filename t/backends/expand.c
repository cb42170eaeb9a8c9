/*
 * expand.c - answers a small input with a large output: IN (INT32, two numbers)
 * is what OUT (INT32) repeats, and how many times.
 */

#include <stdlib.h>

#include "answer.h"

static TRITONSERVER_Error *
expand(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    const void         *data;
    uint64_t            size;
    int32_t             in[2];
    void               *out;
    TRITONSERVER_Error *err = answer_read(request, "IN", &data, &size);

    (void) userp;
    if (err == NULL && size != sizeof(in)) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                    "IN is two numbers");
    }
    if (err == NULL) {
        memcpy(in, data, sizeof(in));
        err = answer_output(response, "OUT", TRITONSERVER_TYPE_INT32, in[1],
                            (uint64_t) in[1] * sizeof(in[0]), &out);
    }
    for (int32_t i = 0; err == NULL && i < in[1]; i++) {
        memcpy((char *) out + (size_t) i * sizeof(in[0]), &in[0],
               sizeof(in[0]));
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;
    return answer_each(requests, count, expand, NULL);
}
