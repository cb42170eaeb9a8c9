/*
 * functions.c - calls every function that the core has for agents, in every
 * action, and fails when one answers otherwise than the reference says.  Its
 * parameters have to be one=1, two=2.
 */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "triton/core/tritonrepoagent.h"

/* Leaves the function with what was expected; every call succeeds or has that
   code. */
#define EXPECT(condition)                                                    \
    do {                                                                     \
        if (!(condition)) {                                                  \
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,        \
                "expected: " #condition);                                    \
        }                                                                    \
    } while (0)
#define SUCCEEDS(call) EXPECT(code_of(call) == -1)
#define FAILS(code, call) EXPECT(code_of(call) == TRITONSERVER_ERROR_##code)

static int model_state, agent_state;

static int
code_of(TRITONSERVER_Error *err)
{
    int code = err == NULL ? -1 : (int) TRITONSERVER_ErrorCode(err);
    TRITONSERVER_ErrorDelete(err);
    return code;
}

static TRITONSERVER_Error *
check_parameters(TRITONREPOAGENT_Agent *a, TRITONREPOAGENT_AgentModel *m)
{
    const char *name, *value;
    uint32_t count = 99;

    SUCCEEDS(TRITONREPOAGENT_ModelParameterCount(a, m, &count));
    EXPECT(count == 2);
    SUCCEEDS(TRITONREPOAGENT_ModelParameter(a, m, 0, &name, &value));
    EXPECT(strcmp(name, "one") == 0 && strcmp(value, "1") == 0);
    SUCCEEDS(TRITONREPOAGENT_ModelParameter(a, m, 1, &name, &value));
    EXPECT(strcmp(name, "two") == 0 && strcmp(value, "2") == 0);
    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelParameter(a, m, 2, &name,
        &value));
    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelParameter(a, m, UINT32_MAX, &name,
        &value));
    return NULL;
}

static TRITONSERVER_Error *
check_config(TRITONREPOAGENT_Agent *a, TRITONREPOAGENT_AgentModel *m)
{
    TRITONSERVER_Message *message = NULL;
    const char *json;
    size_t len;

    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelConfig(a, m, 2, &message));
    SUCCEEDS(TRITONREPOAGENT_ModelConfig(a, m, 1, &message));
    EXPECT(message != NULL);
    SUCCEEDS(TRITONSERVER_MessageSerializeToJson(message, &json, &len));
    EXPECT(strlen(json) == len);
    EXPECT(strstr(json, "\"model_repository_agents\":{\"agents\":[{\"name\":"
        "\"functions\",\"parameters\":{") != NULL);
    SUCCEEDS(TRITONSERVER_MessageDelete(message));
    return NULL;
}

static TRITONSERVER_Error *
check_folder(TRITONREPOAGENT_Agent *a, TRITONREPOAGENT_AgentModel *m)
{
    const char *one, *two;
    struct stat sb;
    char path[4096], file[4200];

    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelRepositoryLocationAcquire(a, m,
        TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM, &one));
    FAILS(UNAVAILABLE, TRITONREPOAGENT_ModelRepositoryLocationRelease(a, m,
        "/nonexistent"));
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocationAcquire(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &one));
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocationAcquire(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &two));
    EXPECT(strcmp(one, two) == 0);
    EXPECT(stat(one, &sb) == 0 && (sb.st_mode & 07777) == 0700);

    snprintf(path, sizeof(path), "%s", one);
    snprintf(file, sizeof(file), "%s/folder", path);
    EXPECT(mkdir(file, 0700) == 0);
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocationRelease(a, m,
        "/nonexistent"));
    EXPECT(stat(path, &sb) != 0);
    FAILS(UNAVAILABLE, TRITONREPOAGENT_ModelRepositoryLocationRelease(a, m,
        path));

    /* leftovers are the core's to remove */
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocationAcquire(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &one));
    EXPECT(stat(one, &sb) == 0);
    return NULL;
}

static TRITONSERVER_Error *
check_location(TRITONREPOAGENT_Agent *a, TRITONREPOAGENT_AgentModel *m,
    int loading)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *before, *after;
    struct stat sb;

    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocation(a, m, &type, &before));
    EXPECT(type == TRITONREPOAGENT_ARTIFACT_FILESYSTEM);
    EXPECT(before[0] == '/' && stat(before, &sb) == 0 && S_ISDIR(sb.st_mode));

    if (!loading) {
        FAILS(INVALID_ARG, TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, "/tmp"));
        return NULL;
    }

    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, ""));
    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, NULL));
    FAILS(INVALID_ARG, TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
        (TRITONREPOAGENT_ArtifactType) 7, "/tmp"));
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
        TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM, "s3://bucket/model"));
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryLocation(a, m, &type, &after));
    EXPECT(type == TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM);
    EXPECT(strcmp(after, "s3://bucket/model") == 0);
    SUCCEEDS(TRITONREPOAGENT_ModelRepositoryUpdate(a, m,
        TRITONREPOAGENT_ARTIFACT_FILESYSTEM, before));
    return NULL;
}

static TRITONSERVER_Error *
check_states(TRITONREPOAGENT_Agent *a, TRITONREPOAGENT_AgentModel *m)
{
    void *state = a;

    SUCCEEDS(TRITONREPOAGENT_ModelState(m, &state));
    EXPECT(state == &model_state);
    SUCCEEDS(TRITONREPOAGENT_State(a, &state));
    EXPECT(state == &agent_state);
    return NULL;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    uint32_t major = 99, minor = 99;
    void *state = agent;

    SUCCEEDS(TRITONREPOAGENT_ApiVersion(&major, &minor));
    EXPECT(major == 0 && minor == 1);
    SUCCEEDS(TRITONREPOAGENT_State(agent, &state));
    EXPECT(state == NULL);
    return TRITONREPOAGENT_SetState(agent, &agent_state);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model)
{
    void *state = agent;

    SUCCEEDS(TRITONREPOAGENT_ModelState(model, &state));
    EXPECT(state == NULL);
    SUCCEEDS(TRITONREPOAGENT_ModelSetState(model, &model_state));
    TRITONSERVER_Error *err = check_location(agent, model, 0);
    return err != NULL ? err : check_parameters(agent, model);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model)
{
    return check_states(agent, model);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    int loading = action_type == TRITONREPOAGENT_ACTION_LOAD;

    TRITONSERVER_Error *err = check_states(agent, model);
    if (err == NULL) {
        err = check_location(agent, model, loading);
    }
    if (err == NULL) {
        err = check_parameters(agent, model);
    }
    if (err == NULL) {
        err = check_config(agent, model);
    }
    if (err == NULL && loading) {
        err = check_folder(agent, model);
    }
    return err;
}
