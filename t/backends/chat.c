/*
 * chat.c - a decoupled model that says "hello" where text_input is "hi"; to
 * anything else it says "he", and then fails.
 */

#include "answer.h"

static TRITONSERVER_Error *
say(TRITONBACKEND_Request *request, const char *word, uint32_t flags)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    uint32_t                len = (uint32_t) strlen(word);
    void                   *out;

    err = TRITONBACKEND_ResponseNew(&response, request);
    if (err == NULL) {
        err = answer_output(response, "text_output", TRITONSERVER_TYPE_BYTES,
                            1, 4 + len, &out);
    }
    if (err == NULL) {
        memcpy(out, &len, 4);
        memcpy((char *) out + 4, word, len);
        err = TRITONBACKEND_ResponseSend(response, flags, NULL);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        const void         *text;
        uint64_t            size;
        TRITONSERVER_Error *err;

        err = answer_read(requests[i], "text_input", &text, &size);
        if (err == NULL && size == 6 && memcmp(text, "\2\0\0\0hi", 6) == 0) {
            err = say(requests[i], "hello",
                      TRITONSERVER_RESPONSE_COMPLETE_FINAL);
            TRITONSERVER_ErrorDelete(err);
            TRITONBACKEND_RequestRelease(requests[i],
                                         TRITONSERVER_REQUEST_RELEASE_ALL);
            continue;
        }
        if (err == NULL) {
            err = say(requests[i], "he", 0);
        }
        answer_one(requests[i], err != NULL ? err : TRITONSERVER_ErrorNew(
            TRITONSERVER_ERROR_UNAVAILABLE, "kv cache exhausted"), NULL, NULL);
    }
    return NULL;
}
