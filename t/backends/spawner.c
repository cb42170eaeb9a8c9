/*
 * spawner.c - forks a child that outlives a request, as NVIDIA's python
 * backend does with its stubs: what the core leaves open, the child keeps.
 *
 * The child sleeps until the core is gone; it answers with the number of
 * descriptors above stderr that it inherited.
 */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "triton/core/tritonbackend.h"

/* In an exec'ed shell: only what has no CLOEXEC is still there. */
static int
inherited(void)
{
    int   fds[2];
    char  text[16] = "";

    if (pipe2(fds, 0) != 0) {
        return -1;
    }

    pid_t pid = fork();

    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execl("/bin/sh", "sh", "-c",
              "n=0; for f in /proc/$$/fd/*; do n=$((n + 1)); done; echo $n",
              (char *) NULL);
        _exit(127);
    }
    close(fds[1]);
    if (read(fds[0], text, sizeof(text) - 1) < 0) {
        text[0] = '\0';
    }
    close(fds[0]);
    waitpid(pid, NULL, 0);
    return atoi(text);
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error     *err;
    int64_t                 id = 0, shape = 1;
    int32_t                 count = inherited();
    void                   *out;

    err = TRITONBACKEND_ResponseOutput(response, &output, "COUNT",
                                       TRITONSERVER_TYPE_INT32, &shape, 1);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, sizeof(count), &type,
                                         &id);
    }
    if (err == NULL) {
        memcpy(out, &count, sizeof(count));
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    (void) model;

    pid_t core = getpid();

    if (fork() == 0) {
        while (getppid() == core) {
            usleep(50000);
        }
        _exit(0);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;

        if (TRITONBACKEND_ResponseNew(&response, requests[i]) == NULL) {
            TRITONSERVER_Error *err = answer(response);

            TRITONBACKEND_ResponseSend(response,
                TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
            TRITONSERVER_ErrorDelete(err);
        }
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
