/*
 * repository_agent.h - opens a repository agent's library and calls its entry
 *                      points.
 *
 * Owner    The agent table owns agents.
 * Thread   open, close: the table serializes per library; model calls: the
 *          driver of a model's chain, one call at a time for one model.
 * Units    none.
 * Errors   NOT_FOUND: library or entry point missing, with the loader's text;
 *          otherwise the agent's error.
 * Route    agents -> [repository agent] -> agent
 */

#ifndef INF_ABI_REPOSITORY_AGENT_H
#define INF_ABI_REPOSITORY_AGENT_H

#include "core/abi/objects.h"
#include "core/repository/agents.h"
#include "triton/core/tritonrepoagent.h"

/* open: opens the library, finds the entry points, calls Initialize, and after
   its failure Finalize.  close: Finalize, then dlclose. */
extern const inf_agent_ops_t inf_agent_ops;

/* The pointer that the agent has set. */
void *inf_agent_state(const inf_agent_t *agent);
void inf_agent_set_state(inf_agent_t *agent, void *state);

INF_ABI_OBJECT(TRITONREPOAGENT_Agent, inf_agent_t, as_agent)
INF_ABI_OBJECT(TRITONREPOAGENT_AgentModel, inf_agent_model_t, as_agent_model)

#endif /* INF_ABI_REPOSITORY_AGENT_H */
