/* no_action.c - lacks the one entry point that an agent must have. */

#include "triton/core/tritonrepoagent.h"

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    (void) agent;
    return NULL;
}
