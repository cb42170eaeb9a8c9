/* blend.c - SUM is LHS where MASK is true, and else 0. */

#include <stdbool.h>

#include "answer.h"

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    TRITONBACKEND_Input    *input;
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error     *err;
    const int64_t          *shape;
    const void             *lhs, *mask;
    uint64_t                size, mask_size;
    uint32_t                dims;
    int64_t                 id = 0;
    void                   *sum;

    (void) userp;
    err = answer_read(request, "LHS", &lhs, &size);
    if (err == NULL) {
        err = answer_read(request, "MASK", &mask, &mask_size);
    }
    if (err == NULL) {
        err = TRITONBACKEND_RequestInput(request, "LHS", &input);
    }
    if (err == NULL) {
        err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &dims,
                                            NULL, NULL);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ResponseOutput(response, &output, "SUM",
            TRITONSERVER_TYPE_INT32, shape, dims);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &sum, size, &type, &id);
    }
    for (uint64_t i = 0; err == NULL && i < size / 4; i++) {
        ((int32_t *) sum)[i] = ((const bool *) mask)[i]
            ? ((const int32_t *) lhs)[i] : 0;
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
