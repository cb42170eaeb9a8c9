/* unplaced.c - answers with an output of no elements, and asks for no buffer. */

#include "answer.h"

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    TRITONBACKEND_Output *output;
    int64_t               none = 0;

    (void) request;
    (void) userp;
    return TRITONBACKEND_ResponseOutput(response, &output, "OUT",
        TRITONSERVER_TYPE_INT32, &none, 1);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;
    return answer_each(requests, count, answer, NULL);
}
