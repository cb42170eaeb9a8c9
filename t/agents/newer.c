/* newer.c - was made for a later version of the interface. */

#include <stdio.h>

#include "triton/core/tritonrepoagent.h"

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    uint32_t major = 99, minor = 99;
    char text[80];

    (void) agent;
    TRITONSERVER_Error *err = TRITONREPOAGENT_ApiVersion(&major, &minor);
    if (err != NULL) {
        return err;
    }

    snprintf(text, sizeof(text), "needs version %d.%d, the core has %u.%u",
        TRITONREPOAGENT_API_VERSION_MAJOR,
        TRITONREPOAGENT_API_VERSION_MINOR + 1, major, minor);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, text);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    (void) agent;
    (void) model;
    (void) action_type;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
        "called after Initialize had failed");
}
