/*
 * environment.c - answers each BYTES element, the name of a variable, with
 * its value in this process; "/maps:WORD" with whether WORD is mapped.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

static const char *
look_up(const char *name)
{
    static char line[8192];
    const char *word = name + strlen("/maps:");

    if (strncmp(name, "/maps:", strlen("/maps:")) != 0) {
        const char *value = getenv(name);

        return value != NULL ? value : "(unset)";
    }

    FILE *f = fopen("/proc/self/maps", "r");
    int   hit = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        hit = hit || strstr(line, word) != NULL;
    }
    if (f != NULL) {
        fclose(f);
    }
    return hit ? "mapped" : "absent";
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Input   *input;
    TRITONBACKEND_Output  *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error    *err;
    const void            *data;
    void                  *out;
    uint64_t               size;
    int64_t                id = 0, shape = 1;
    char                   name[256];

    err = TRITONBACKEND_RequestInput(request, "NAME", &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputBuffer(input, 0, &data, &size, &type, &id);
    }
    if (err != NULL) {
        return err;
    }
    if (size < 4 || size - 4 >= sizeof(name)) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                     "NAME holds one short name");
    }
    memcpy(name, (const char *) data + 4, size - 4);
    name[size - 4] = '\0';

    const char *value = look_up(name);
    uint32_t    len = (uint32_t) strlen(value);

    err = TRITONBACKEND_ResponseOutput(response, &output, "VALUE",
                                       TRITONSERVER_TYPE_BYTES, &shape, 1);
    if (err == NULL) {
        type = TRITONSERVER_MEMORY_CPU;
        err = TRITONBACKEND_OutputBuffer(output, &out, len + 4, &type, &id);
    }
    if (err == NULL) {
        memcpy(out, &len, 4);
        memcpy((char *) out + 4, value, len);
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
