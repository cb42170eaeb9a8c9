/*
 * no_initialize.c - fails in Initialize.  Finalize has to follow on the same
 * handle; the file that INF_T_AGENT_TRACE names says so.
 */

#include <stdio.h>
#include <stdlib.h>

#include "triton/core/tritonrepoagent.h"

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    TRITONSERVER_Error *err = TRITONREPOAGENT_SetState(agent, agent);
    return err != NULL ? err : TRITONSERVER_ErrorNew(
        TRITONSERVER_ERROR_UNAVAILABLE, "not today");
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent)
{
    const char *path = getenv("INF_T_AGENT_TRACE");
    FILE *f = path != NULL ? fopen(path, "a") : NULL;
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONREPOAGENT_State(agent, &state);
    if (f != NULL) {
        fprintf(f, "Finalize %s\n", state == agent ? "same" : "other");
        fclose(f);
    }
    return err;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    (void) agent;
    (void) model;
    (void) action_type;
    return NULL;
}
