/* throws.cc - lets an exception out of every action. */

#include <stdexcept>

#include "triton/core/tritonrepoagent.h"

extern "C" TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *,
    TRITONREPOAGENT_AgentModel *, const TRITONREPOAGENT_ActionType)
{
    throw std::runtime_error("thrown on purpose");
}
