/*
 * agent_ops.h - functions on repository agents, for chains of agents; set by
 *               abi.
 *
 * Owner    The table of functions is static.  The agent table owns the agents
 *          it opened.
 * Thread   open, close: one at a time for one library; the rest: the
 *          driver of a model's chain, one call at a time for one model.
 * Units    none.
 * Errors   The plug-in's error, or why it could not be called.
 * Route    lifecycle -> agents -> [agent operations] -> abi -> agent
 */

#ifndef INF_REPOSITORY_AGENT_OPS_H
#define INF_REPOSITORY_AGENT_OPS_H

#include "core/base/error.h"

/* A loaded agent library; its contents belong to abi. */
typedef struct inf_agent_s inf_agent_t;

/* One agent's data on one model. */
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
    /* Opens the library, finds its functions and calls Initialize; after a
       failure it is finalized. */
    inf_err_t *(*open)(const char *name, const char *library,
        inf_agent_t **out);
    /* Calls Finalize and closes the library. */
    void (*close)(inf_agent_t *agent);

    /* model_init: after a failure the chain calls model_fini. */
    inf_err_t *(*model_init)(inf_agent_t *agent, inf_agent_model_t *model);
    inf_err_t *(*model_fini)(inf_agent_t *agent, inf_agent_model_t *model);
    inf_err_t *(*act)(inf_agent_t *agent, inf_agent_model_t *model,
        inf_agent_action_t action);
} inf_agent_ops_t;

#endif /* INF_REPOSITORY_AGENT_OPS_H */
