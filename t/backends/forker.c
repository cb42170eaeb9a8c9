/*
 * forker.c - each instance has a process, as with NVIDIA's python backend.
 * Answers with the pid; IN 1: keeps a response factory for ever, which only
 * the process could make it give back; IN 2: never answers.
 */

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    pid_t core = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        while (getppid() == core) {
            usleep(50000);
        }
        _exit(0);
    }
    return TRITONBACKEND_ModelInstanceSetState(instance,
                                               (void *) (intptr_t) pid);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *state = NULL;

    TRITONBACKEND_ModelInstanceState(instance, &state);
    kill((pid_t) (intptr_t) state, SIGKILL);
    waitpid((pid_t) (intptr_t) state, NULL, 0);
    return NULL;
}

static TRITONSERVER_Error *
read_word(TRITONBACKEND_Request *request, int32_t *word)
{
    const void         *data;
    uint64_t            size;
    TRITONSERVER_Error *err = answer_read(request, "IN", &data, &size);

    if (err == NULL && size == sizeof(*word)) {
        memcpy(word, data, sizeof(*word));
    }
    return err;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    (void) request;
    return answer_int32(response, "PID", (int32_t) (intptr_t) userp);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    void *state = NULL;

    TRITONBACKEND_ModelInstanceState(instance, &state);
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_ResponseFactory *kept;
        int32_t                        word = 0;
        TRITONSERVER_Error            *err = read_word(requests[i], &word);

        if (err == NULL && word > 0) {
            err = TRITONBACKEND_ResponseFactoryNew(&kept, requests[i]);
        }
        if (word != 2) {
            answer_one(requests[i], err, answer, state);
            continue;
        }
        TRITONSERVER_ErrorDelete(err);
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
