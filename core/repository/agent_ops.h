/*
 * agent_ops.h - what a chain of repository agents needs of them; abi fills
 *               it in.
 *
 * Owner    The table of functions is static.  The agent table owns the agents
 *          it opened.
 * Thread   open, close: one at a time for one library; the rest: the
 *          driver of a model's chain, one call at a time for one model.
 * Units    none.
 * Errors   what the plug-in returned, or why it could not be called.
 * Route    lifecycle -> agents -> [agent operations] -> abi -> agent
 */

#ifndef INF_REPOSITORY_AGENT_OPS_H
#define INF_REPOSITORY_AGENT_OPS_H

#include "core/base/error.h"

/* A library in memory; what is in it only abi knows. */
typedef struct inf_agent_s inf_agent_t;

/* One agent's view of one model. */
typedef struct inf_agent_model_s inf_agent_model_t;

/* The values are those of TRITONREPOAGENT_ActionType. */
typedef enum {
    INF_AGENT_LOAD            = 0,
    INF_AGENT_LOAD_COMPLETE   = 1,
    INF_AGENT_LOAD_FAIL       = 2,
    INF_AGENT_UNLOAD          = 3,
    INF_AGENT_UNLOAD_COMPLETE = 4
} inf_agent_action_t;

/* The values are those of TRITONREPOAGENT_ArtifactType. */
typedef enum {
    INF_ARTIFACT_FILESYSTEM        = 0,
    INF_ARTIFACT_REMOTE_FILESYSTEM = 1
} inf_artifact_t;

typedef struct {
    /* Library, entry points, Initialize; a failing one is finalized. */
    inf_err_t *(*open)(const char *name, const char *library,
        inf_agent_t **out);
    /* Finalize, and the library is closed. */
    void (*close)(inf_agent_t *agent);

    /* A failing one is not followed by model_fini: the chain calls that. */
    inf_err_t *(*model_init)(inf_agent_t *agent, inf_agent_model_t *model);
    inf_err_t *(*model_fini)(inf_agent_t *agent, inf_agent_model_t *model);
    inf_err_t *(*act)(inf_agent_t *agent, inf_agent_model_t *model,
        inf_agent_action_t action);
} inf_agent_ops_t;

#endif /* INF_REPOSITORY_AGENT_OPS_H */
