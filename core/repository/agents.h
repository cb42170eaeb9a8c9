/*
 * agents.h - the chain of repository agents for one load of a model, and the
 *            location where it leaves the model.
 *
 * Owner    The model source, and with it the load and every version of it. free
 *          runs the actions still due (LOAD_FAIL, or UNLOAD and
 *          UNLOAD_COMPLETE), finalizes the agents' models and removes their
 *          temporary directories.
 * Thread   any that holds the source, no lock held: agents are called.
 * Units    none.
 * Errors   load: the error of the first agent that failed.  Errors of later
 *          actions are logged.
 * Route    lifecycle -> [agents] -> agent operations -> abi -> agent
 *
 * LOAD and UNLOAD run in the order of the configuration, the other actions in
 * reverse.  The list and its parameters are those of the configuration before
 * the first agent, for the whole life of the chain.
 */

#ifndef INF_REPOSITORY_AGENTS_H
#define INF_REPOSITORY_AGENTS_H

#include "core/base/os/private_dir.h"
#include "core/model/config_load.h"
#include "core/repository/agent_table.h"

typedef struct inf_agents_s inf_agents_t;

/* The model to load; everything is copied or used only during the call, except
   storage, which outlives the chain. */
typedef struct {
    inf_storage_t              *storage;
    const char                 *dir;        /* of the model, without last
                                               slash                         */
    const char                 *name;
    const inf_config_options_t *config;
    inf_agent_dirs_t            agent_dirs;
} inf_agents_model_t;

/* Reads the agents that the model names and runs LOAD.  *out is NULL if there
   are none. */
INF_CHECK inf_err_t *inf_agents_load(inf_agent_table_t *table,
    const inf_agents_model_t *model, inf_agents_t **out);

/* The location where the last agent left the model. */
inf_storage_t *inf_agents_storage(const inf_agents_t *c);
const char *inf_agents_dir(const inf_agents_t *c);

/* Run LOAD_COMPLETE or LOAD_FAIL at the end of the load.  Repeated calls of
   either do nothing; c may be NULL, here and below. */
void inf_agents_complete(inf_agents_t *c);
void inf_agents_fail(inf_agents_t *c);

/* Runs UNLOAD, once and only after LOAD_COMPLETE. */
void inf_agents_unload(inf_agents_t *c);
void inf_agents_free(inf_agents_t *c);

/* ---- an agent's functions on the model, for abi */

/* The present location of the model.  INTERNAL: none.  The text lives as long
   as the model, even after a relocation. */
INF_CHECK inf_err_t *inf_agent_model_location(const inf_agent_model_t *m,
    inf_artifact_t *artifact, const char **location);

/* Sets the location.  INVALID_ARG: not in LOAD, or no location. */
INF_CHECK inf_err_t *inf_agent_model_relocate(inf_agent_model_t *m,
    int artifact, const char *location);

/* The agent's own directory, created by the first call.  INVALID_ARG: not on a
   local file system. */
INF_CHECK inf_err_t *inf_agent_model_acquire(inf_agent_model_t *m,
    int artifact, const char **location);

/* Removes that directory.  UNAVAILABLE: there is none. */
INF_CHECK inf_err_t *inf_agent_model_release(inf_agent_model_t *m);

/* The agent's parameters in the configuration. */
uint32_t inf_agent_model_parameter_count(const inf_agent_model_t *m);
INF_CHECK inf_err_t *inf_agent_model_parameter(const inf_agent_model_t *m,
    uint32_t index, const char **name, const char **value);

/* The configuration at the location left by the previous agent; NULL: none, or
   unreadable. */
const Inference__ModelConfig *inf_agent_model_config(
    const inf_agent_model_t *m);

/* The agent's own pointer; NULL at first. */
void *inf_agent_model_state(const inf_agent_model_t *m);
void inf_agent_model_set_state(inf_agent_model_t *m, void *state);

#endif /* INF_REPOSITORY_AGENTS_H */
