/*
 * inverting.c - inverts the bits of each input where they lie and answers with
 * them: input INPUTn becomes OUTPUTn.  It needs INFERENCE_WRITABLE_INPUTS.
 */

#include <stdio.h>

#include "answer.h"

static TRITONSERVER_Error *
invert(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    uint32_t index)
{
    TRITONBACKEND_Input     *input;
    TRITONBACKEND_Output    *output;
    TRITONSERVER_MemoryType  type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_DataType    datatype;
    TRITONSERVER_Error      *err;
    const int64_t           *shape;
    const char              *name;
    const void              *data;
    uint64_t                 size;
    uint32_t                 dims;
    int64_t                  id = 0;
    char                     wanted[64];
    void                    *out;

    err = TRITONBACKEND_RequestInputByIndex(request, index, &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputProperties(input, &name, &datatype, &shape,
                                            &dims, NULL, NULL);
    }
    if (err == NULL) {
        err = TRITONBACKEND_InputBuffer(input, 0, &data, &size, &type, &id);
    }
    if (err == NULL) {
        snprintf(wanted, sizeof(wanted), "OUTPUT%s", name + strlen("INPUT"));
        err = TRITONBACKEND_ResponseOutput(response, &output, wanted,
                                           datatype, shape, dims);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, size, &type, &id);
    }
    if (err == NULL) {
        uint8_t *p = (uint8_t *) (uintptr_t) data;

        for (uint64_t i = 0; i < size; i++) {
            p[i] = (uint8_t) ~p[i];
        }
        memcpy(out, p, size);
    }
    return err;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    uint32_t            inputs = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(request,
                                                              &inputs);

    (void) userp;
    for (uint32_t n = 0; err == NULL && n < inputs; n++) {
        err = invert(request, response, n);
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
