/*
 * spawner.c - forks a child that outlives a request, as NVIDIA's python
 * backend does with its stubs: what the core leaves open, the child keeps.
 *
 * The child sleeps until the core is gone; it answers with the number of
 * descriptors above stderr that it inherited.  With INF_TEST_OUTLIVES it leaves
 * the core's process group and stays as long as the file of that name; with
 * INF_TEST_SAME_GROUP, too, it stays in the group.
 */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"

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
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    (void) request;
    (void) userp;
    return answer_int32(response, "COUNT", inherited());
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    (void) model;

    pid_t core = getpid();
    const char *outlives = getenv("INF_TEST_OUTLIVES");

    if (fork() == 0) {
        if (outlives != NULL && getenv("INF_TEST_SAME_GROUP") == NULL) {
            setsid();
        }
        while (outlives != NULL && access(outlives, F_OK) == 0) {
            usleep(50000);
        }
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

    return answer_each(requests, count, answer, NULL);
}
