#include "core/abi/repository_agent.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/forwarding.h"
#include "core/base/log.h"

typedef TRITONSERVER_Error *(*agent_fn)(TRITONREPOAGENT_Agent *);
typedef TRITONSERVER_Error *(*agent_model_fn)(TRITONREPOAGENT_Agent *,
    TRITONREPOAGENT_AgentModel *);
typedef TRITONSERVER_Error *(*agent_action_fn)(TRITONREPOAGENT_Agent *,
    TRITONREPOAGENT_AgentModel *, const TRITONREPOAGENT_ActionType);

struct inf_agent_s {
    char            *name;
    void            *handle;
    void            *state;         /* the agent's                           */
    agent_fn         initialize;    /* NULL, as the next: it has none        */
    agent_fn         finalize;
    agent_model_fn   model_initialize;
    agent_model_fn   model_finalize;
    agent_action_fn  model_action;
};

static inf_err_t *agent_open(const char *name, const char *library,
    inf_agent_t **out);
static void agent_close(inf_agent_t *agent);
static inf_err_t *agent_model_init(inf_agent_t *agent,
    inf_agent_model_t *model);
static inf_err_t *agent_model_fini(inf_agent_t *agent,
    inf_agent_model_t *model);
static inf_err_t *agent_act(inf_agent_t *agent, inf_agent_model_t *model,
    inf_agent_action_t action);
static inf_err_t *agent_load(inf_agent_t *agent, const char *library);
static void *agent_symbol(const inf_agent_t *agent, const char *name);

const inf_agent_ops_t inf_agent_ops = {
    .open = agent_open,
    .close = agent_close,
    .model_init = agent_model_init,
    .model_fini = agent_model_fini,
    .act = agent_act
};

static inf_err_t *
agent_open(const char *name, const char *library, inf_agent_t **out)
{
    inf_agent_t *agent = calloc(1, sizeof(*agent));
    char *copy = strdup(name);
    if (agent == NULL || copy == NULL) {
        free(agent);
        free(copy);
        return inf_err_nomem();
    }
    agent->name = copy;

    inf_err_t *err = agent_load(agent, library);
    if (err != NULL) {
        free(agent->name);
        free(agent);
        return err;
    }

    if (agent->initialize != NULL) {
        err = agent->initialize(inf_abi_as_agent(agent));
    }
    if (err != NULL) {
        agent_close(agent);
        return err;
    }

    inf_log(INF_LOG_INFO, "repo agent \"%s\" loaded from %s", name, library);
    *out = agent;
    return NULL;
}

static void
agent_close(inf_agent_t *agent)
{
    if (agent->finalize != NULL) {
        inf_err_t *err = agent->finalize(inf_abi_as_agent(agent));
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "finalizing repo agent \"%s\"",
                agent->name));
        }
    }

    dlclose(agent->handle);
    free(agent->name);
    free(agent);
}

static inf_err_t *
agent_model_init(inf_agent_t *agent, inf_agent_model_t *model)
{
    return agent->model_initialize != NULL ? agent->model_initialize(
        inf_abi_as_agent(agent), inf_abi_as_agent_model(model)) : NULL;
}

static inf_err_t *
agent_model_fini(inf_agent_t *agent, inf_agent_model_t *model)
{
    return agent->model_finalize != NULL ? agent->model_finalize(
        inf_abi_as_agent(agent), inf_abi_as_agent_model(model)) : NULL;
}

static inf_err_t *
agent_act(inf_agent_t *agent, inf_agent_model_t *model,
    inf_agent_action_t action)
{
    return agent->model_action(inf_abi_as_agent(agent),
        inf_abi_as_agent_model(model), (TRITONREPOAGENT_ActionType) action);
}

void *
inf_agent_state(const inf_agent_t *agent)
{
    return agent->state;
}

void
inf_agent_set_state(inf_agent_t *agent, void *state)
{
    agent->state = state;
}

static inf_err_t *
agent_load(inf_agent_t *agent, const char *library)
{
    inf_err_t *err = inf_forwarding_load(library);
    if (err != NULL) {
        return err;
    }

    agent->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (agent->handle == NULL) {
        return inf_err_new(INF_ERR_NOT_FOUND, "unable to load shared library:"
            " %s", dlerror());
    }

    agent->model_action = (agent_action_fn)
        agent_symbol(agent, "TRITONREPOAGENT_ModelAction");
    if (agent->model_action == NULL) {
        dlclose(agent->handle);
        return inf_err_new(INF_ERR_NOT_FOUND, "unable to find required"
            " entrypoint 'TRITONREPOAGENT_ModelAction' in shared library %s",
            library);
    }

    agent->initialize = (agent_fn)
        agent_symbol(agent, "TRITONREPOAGENT_Initialize");
    agent->finalize = (agent_fn)
        agent_symbol(agent, "TRITONREPOAGENT_Finalize");
    agent->model_initialize = (agent_model_fn)
        agent_symbol(agent, "TRITONREPOAGENT_ModelInitialize");
    agent->model_finalize = (agent_model_fn)
        agent_symbol(agent, "TRITONREPOAGENT_ModelFinalize");
    return NULL;
}

static void *
agent_symbol(const inf_agent_t *agent, const char *name)
{
    return dlsym(agent->handle, name);
}
