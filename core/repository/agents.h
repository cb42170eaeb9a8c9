/*
 * agents.h - the chain of repository agents that one load of a model goes
 *            through, and where it leaves the model.
 *
 * Owner    The model source, and with it the load and every version that came
 *          of it.  free runs the actions that are still due (LOAD_FAIL, or
 *          UNLOAD and UNLOAD_COMPLETE), finalizes their models and removes
 *          their temporary directories.
 * Thread   any that holds the source, no lock held: agents are called.
 * Units    none.
 * Errors   load: what the first agent that failed said.  Errors of later
 *          actions are logged.
 * Route    lifecycle -> [agents] -> agent operations -> abi -> agent
 *
 * LOAD and UNLOAD go in the order of the configuration, the other actions in
 * reverse.  The list and its parameters are those of the configuration that
 * was there before the first agent ran, for the whole life of the chain.
 */

#ifndef INF_REPOSITORY_AGENTS_H
#define INF_REPOSITORY_AGENTS_H

#include "core/base/os/private_dir.h"
#include "core/model/config_load.h"
#include "core/repository/agent_table.h"

typedef struct inf_agents_s inf_agents_t;

/* The model to be loaded; all of it is copied or used during the call only,
   but for storage, which outlives the chain. */
typedef struct {
    inf_storage_t              *storage;
    const char                 *dir;        /* the model's, no last slash    */
    const char                 *name;
    const inf_config_options_t *config;
    inf_agent_dirs_t            agent_dirs;
} inf_agents_model_t;

/* Reads which agents the model names and runs LOAD.  *out is NULL when it
   names none: the model is loaded from where it is. */
INF_CHECK inf_err_t *inf_agents_load(inf_agent_table_t *table,
    const inf_agents_model_t *model, inf_agents_t **out);

/* Where the last agent left the model. */
inf_storage_t *inf_agents_storage(const inf_agents_t *c);
const char *inf_agents_dir(const inf_agents_t *c);

/* LOAD_COMPLETE, or LOAD_FAIL: the load has ended.  Each but the first call
   of either does nothing. */
void inf_agents_complete(inf_agents_t *c);
void inf_agents_fail(inf_agents_t *c);

/* UNLOAD, once and only after LOAD_COMPLETE. */
void inf_agents_unload(inf_agents_t *c);

/* c may be NULL. */
void inf_agents_free(inf_agents_t *c);

/* ---- one agent's view of the model, for abi */

/* Where the model is now.  INTERNAL: nowhere.  The text lives as long as the
   model, also when the location changes. */
INF_CHECK inf_err_t *inf_agent_model_location(const inf_agent_model_t *m,
    inf_artifact_t *artifact, const char **location);

/* Where it is from now on.  INVALID_ARG: not in LOAD, or nowhere. */
INF_CHECK inf_err_t *inf_agent_model_relocate(inf_agent_model_t *m,
    int artifact, const char *location);

/* The agent's own directory, made at the first call.  INVALID_ARG: not on a
   local file system. */
INF_CHECK inf_err_t *inf_agent_model_acquire(inf_agent_model_t *m,
    int artifact, const char **location);

/* Removes it.  UNAVAILABLE: there is none. */
INF_CHECK inf_err_t *inf_agent_model_release(inf_agent_model_t *m);

/* As the configuration has them. */
uint32_t inf_agent_model_parameter_count(const inf_agent_model_t *m);
INF_CHECK inf_err_t *inf_agent_model_parameter(const inf_agent_model_t *m,
    uint32_t index, const char **name, const char **value);

/* The configuration at the location that the agent before left; NULL: none,
   or none that can be read. */
const Inference__ModelConfig *inf_agent_model_config(
    const inf_agent_model_t *m);

/* The agent's pointer; NULL until it is set. */
void *inf_agent_model_state(const inf_agent_model_t *m);
void inf_agent_model_set_state(inf_agent_model_t *m, void *state);

#endif /* INF_REPOSITORY_AGENTS_H */
