/*
 * failing.c - a backend that goes wrong where it is told to.
 *
 * The model's parameter `fail` says where: its name is looked for in the
 * model's configuration text, so that nothing of a JSON reader is needed.
 *
 *   initialize-error, initialize-memory, initialize-crash,
 *   initialize-overflow, instance-error, instance-crash, instance-overflow,
 *   execute-crash, execute-overflow, execute-error, execute-memory,
 *   execute-cancelled, execute-silent, finalize-error, finalize-crash,
 *   finalize-overflow
 *
 * An overflow is one of the stack.
 *
 * Told initialize-countdown, it fails as often as the file "failures" in the
 * model's directory has bytes, and takes one away each time.
 *
 * Told initialize-child, it starts a process first, named in the file "child"
 * there, that lives as long as the core.
 *
 * Told initialize-hold or execute-hold, it makes a file "held" in the model's
 * directory there and waits until the file "hold" beside it is gone.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"

static int
told(TRITONBACKEND_Model *model, const char *word)
{
    TRITONSERVER_Message *message;
    const char           *text;
    size_t                size;

    if (TRITONBACKEND_ModelConfig(model, 1, &message) != NULL) {
        return 0;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);

    int hit = memmem(text, size, word, strlen(word)) != NULL;

    TRITONSERVER_MessageDelete(message);
    return hit;
}

static void
hold(TRITONBACKEND_Model *model, const char *word)
{
    TRITONBACKEND_ArtifactType  type;
    const char                 *dir;
    char                        path[4096];

    if (!told(model, word)
        || TRITONBACKEND_ModelRepository(model, &type, &dir) != NULL)
    {
        return;
    }
    snprintf(path, sizeof(path), "%s/held", dir);
    close(open(path, O_WRONLY | O_CREAT, 0644));
    snprintf(path, sizeof(path), "%s/hold", dir);
    while (access(path, F_OK) == 0) {
        usleep(5000);
    }
}

/* Whether another failure is left. */
static int
count_down(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType  type;
    struct stat                 st;
    const char                 *dir;
    char                        path[4096];

    if (!told(model, "initialize-countdown")
        || TRITONBACKEND_ModelRepository(model, &type, &dir) != NULL)
    {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/failures", dir);
    return stat(path, &st) == 0 && st.st_size > 0
        && truncate(path, st.st_size - 1) == 0;
}

static int
overflow(volatile const char *above)
{
    volatile char here[512];

    here[0] = above[0];
    return above[0] == 1 ? 0 : overflow(here) + here[0];
}

static TRITONSERVER_Error *
fail(TRITONBACKEND_Model *model, const char *error, const char *crash,
    const char *deep)
{
    if (told(model, crash)) {
        abort();
    }
    if (told(model, deep)) {
        overflow("");
    }
    if (told(model, error)) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                     "failing on purpose: see parameters");
    }
    return NULL;
}

static void
start_child(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType  type;
    const char                 *dir;
    char                        path[4096];

    if (!told(model, "initialize-child")
        || TRITONBACKEND_ModelRepository(model, &type, &dir) != NULL)
    {
        return;
    }

    pid_t core = getpid();
    pid_t pid = fork();
    while (pid == 0) {
        if (getppid() != core) {
            _exit(0);
        }
        usleep(50000);
    }
    snprintf(path, sizeof(path), "%s/child", dir);
    FILE *f = fopen(path, "w");
    if (f != NULL) {
        fprintf(f, "%d\n", (int) pid);
        fclose(f);
    }
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    start_child(model);
    hold(model, "initialize-hold");
    if (count_down(model)) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                     "not yet");
    }
    if (told(model, "initialize-memory")) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                     "CUDA out of memory");
    }
    return fail(model, "initialize-error", "initialize-crash",
                "initialize-overflow");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    return fail(model, "finalize-error", "finalize-crash",
                "finalize-overflow");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    TRITONSERVER_Error  *err;

    err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    return err != NULL ? err : fail(model, "instance-error",
                                    "instance-crash", "instance-overflow");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    TRITONBACKEND_Model *model;
    TRITONSERVER_Error  *err;

    err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (err == NULL) {
        hold(model, "execute-hold");
        err = fail(model, "execute-error", "execute-crash",
                   "execute-overflow");
    }
    if (err == NULL && told(model, "execute-memory")) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                    "CUDA out of memory");
    }
    if (err == NULL && told(model, "execute-cancelled")) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_CANCELLED,
                                    "given up on purpose");
    }
    if (err != NULL) {
        return err;             /* the requests are still the core's */
    }

    int silent = told(model, "execute-silent");

    for (uint32_t i = 0; i < count; i++) {
        if (silent) {
            TRITONBACKEND_RequestRelease(requests[i],
                                         TRITONSERVER_REQUEST_RELEASE_ALL);
        } else {
            answer_one(requests[i],
                TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                      "closed for today"), NULL, NULL);
        }
    }
    return NULL;
}
