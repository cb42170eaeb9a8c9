/*
 * record.c - appends what it hears to the file that INF_T_AGENT_TRACE names,
 *            a line each, and does what its parameters say.
 *
 *   tag=X            the lines begin with X
 *   fail=CALL        that call fails: ModelInitialize, LOAD, ...
 *   goto=PATH        LOAD leaves the model there; remote=PATH: as a remote one
 *   late=PATH        LOAD_COMPLETE tries to do that
 *   crash=CALL       that call kills the process
 *   acquire=1        LOAD acquires a directory and leaves a file in it
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "triton/core/tritonrepoagent.h"

static const char *const actions[] = {
    "LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD", "UNLOAD_COMPLETE"
};

static void
record(const char *tag, const char *what, const char *more)
{
    const char *path = getenv("INF_T_AGENT_TRACE");
    char line[4096];

    if (path == NULL) {
        return;
    }
    int len = snprintf(line, sizeof(line), "%s%s%s%s%s\n", tag,
        tag[0] != '\0' ? " " : "", what, more[0] != '\0' ? " " : "", more);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    if (fd >= 0) {
        if (write(fd, line, (size_t) len) != len) {
            perror(path);
        }
        close(fd);
    }
}

/* "" when there is no such parameter. */
static const char *
parameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const char *name)
{
    const char *key, *value;
    uint32_t count = 0;

    TRITONSERVER_ErrorDelete(TRITONREPOAGENT_ModelParameterCount(agent, model,
        &count));
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_Error *err = TRITONREPOAGENT_ModelParameter(agent, model,
            i, &key, &value);
        if (err == NULL && strcmp(key, name) == 0) {
            return value;
        }
        TRITONSERVER_ErrorDelete(err);
    }

    return "";
}

static TRITONSERVER_Error *
heard(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const char *call, const char *more)
{
    record(parameter(agent, model, "tag"), call, more);
    if (strcmp(parameter(agent, model, "crash"), call) == 0) {
        abort();
    }
    return strcmp(parameter(agent, model, "fail"), call) == 0
        ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
            "failing on purpose: see parameters") : NULL;
}

static TRITONSERVER_Error *
do_load(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    const char *to = parameter(agent, model, "goto");
    const char *remote = parameter(agent, model, "remote");
    TRITONSERVER_Error *err = NULL;

    if (to[0] != '\0') {
        err = TRITONREPOAGENT_ModelRepositoryUpdate(agent, model,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, to);
    }
    if (err == NULL && remote[0] != '\0') {
        err = TRITONREPOAGENT_ModelRepositoryUpdate(agent, model,
            TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM, remote);
    }
    if (err == NULL && parameter(agent, model, "acquire")[0] != '\0') {
        const char *folder;
        char path[4096];

        err = TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &folder);
        if (err == NULL) {
            snprintf(path, sizeof(path), "%s/left", folder);
            int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            if (fd >= 0) {
                close(fd);
            }
            record(parameter(agent, model, "tag"), "acquired", folder);
        }
    }

    return err;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    (void) agent;
    record("", "Initialize", "");
    return NULL;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent)
{
    (void) agent;
    record("", "Finalize", "");
    return NULL;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model)
{
    return heard(agent, model, "ModelInitialize", "");
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model)
{
    return heard(agent, model, "ModelFinalize", "");
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *location = "", *late;

    TRITONSERVER_Error *err = TRITONREPOAGENT_ModelRepositoryLocation(agent,
        model, &type, &location);
    if (err != NULL) {
        return err;
    }

    err = heard(agent, model, actions[action_type], location);
    if (err != NULL) {
        return err;
    }

    late = parameter(agent, model, "late");
    if (action_type == TRITONREPOAGENT_ACTION_LOAD) {
        return do_load(agent, model);
    }
    if (action_type == TRITONREPOAGENT_ACTION_LOAD_COMPLETE
        && late[0] != '\0')
    {
        return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, late);
    }

    return NULL;
}
