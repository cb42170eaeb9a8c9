#include "core/abi/repository_agent.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/guard.h"
#include "core/abi/plugin_library.h"
#include "core/base/log.h"

#define INITIALIZE       "TRITONREPOAGENT_Initialize"
#define FINALIZE         "TRITONREPOAGENT_Finalize"
#define MODEL_INITIALIZE "TRITONREPOAGENT_ModelInitialize"
#define MODEL_FINALIZE   "TRITONREPOAGENT_ModelFinalize"
#define MODEL_ACTION     "TRITONREPOAGENT_ModelAction"

#define WHO(agent, entry) ((inf_guard_who_t) { (agent)->name, entry })

struct inf_agent_s {
    char                     *name;
    void                     *handle;
    void                     *state;    /* of the agent                      */
    inf_guard_agent_fn        initialize;   /* NULL, like the next: missing  */
    inf_guard_agent_fn        finalize;
    inf_guard_agent_model_fn  model_initialize;
    inf_guard_agent_model_fn  model_finalize;
    inf_guard_action_fn       model_action;
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
        err = inf_guard_agent(WHO(agent, INITIALIZE), agent->initialize,
            inf_abi_as_agent(agent));
    }
    if (err != NULL) {
        agent_close(agent);
        return err;
    }

    inf_log(INF_LOG_NOTICE, "repo agent \"%s\" loaded from %s", name, library);
    *out = agent;
    return NULL;
}

static void
agent_close(inf_agent_t *agent)
{
    if (agent->finalize != NULL) {
        inf_err_t *err = inf_guard_agent(WHO(agent, FINALIZE),
            agent->finalize, inf_abi_as_agent(agent));
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
    return agent->model_initialize == NULL ? NULL : inf_guard_agent_model(
        WHO(agent, MODEL_INITIALIZE), agent->model_initialize,
        inf_abi_as_agent(agent), inf_abi_as_agent_model(model));
}

static inf_err_t *
agent_model_fini(inf_agent_t *agent, inf_agent_model_t *model)
{
    return agent->model_finalize == NULL ? NULL : inf_guard_agent_model(
        WHO(agent, MODEL_FINALIZE), agent->model_finalize,
        inf_abi_as_agent(agent), inf_abi_as_agent_model(model));
}

static inf_err_t *
agent_act(inf_agent_t *agent, inf_agent_model_t *model,
    inf_agent_action_t action)
{
    return inf_guard_action(WHO(agent, MODEL_ACTION), agent->model_action,
        inf_abi_as_agent(agent), inf_abi_as_agent_model(model),
        (TRITONREPOAGENT_ActionType) action);
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
    void *action;

    inf_err_t *err = inf_plugin_library_open(library, &agent->handle);
    if (err != NULL) {
        return err;
    }

    err = inf_plugin_library_require(agent->handle, library, MODEL_ACTION,
        &action);
    if (err != NULL) {
        dlclose(agent->handle);
        return err;
    }

    agent->model_action = (inf_guard_action_fn) action;
    agent->initialize = (inf_guard_agent_fn) dlsym(agent->handle, INITIALIZE);
    agent->finalize = (inf_guard_agent_fn) dlsym(agent->handle, FINALIZE);
    agent->model_initialize = (inf_guard_agent_model_fn)
        dlsym(agent->handle, MODEL_INITIALIZE);
    agent->model_finalize = (inf_guard_agent_model_fn)
        dlsym(agent->handle, MODEL_FINALIZE);
    return NULL;
}
