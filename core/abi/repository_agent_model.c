/* repository_agent_model.c - functions of repository agents on a model that is
   being loaded, and their own pointers on it. */

#include "core/abi/repository_agent.h"

#include "core/base/buf.h"
#include "core/proto/config_json.h"

TRITONSERVER_Error *
TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONREPOAGENT_API_VERSION_MAJOR;
    *minor = TRITONREPOAGENT_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocation(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location)
{
    inf_artifact_t artifact;

    (void) agent;
    inf_err_t *err = inf_agent_model_location(inf_as_agent_model(model),
        &artifact, location);
    if (err == NULL) {
        *artifact_type = (TRITONREPOAGENT_ArtifactType) artifact;
    }
    return err;
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationAcquire(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location)
{
    (void) agent;
    return inf_agent_model_acquire(inf_as_agent_model(model),
        (int) artifact_type, location);
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationRelease(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, const char *location)
{
    (void) agent;
    (void) location;
    return inf_agent_model_release(inf_as_agent_model(model));
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryUpdate(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location)
{
    (void) agent;
    return inf_agent_model_relocate(inf_as_agent_model(model),
        (int) artifact_type, location);
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, uint32_t *count)
{
    (void) agent;
    *count = inf_agent_model_parameter_count(inf_as_agent_model(model));
    return NULL;
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, const uint32_t index,
    const char **parameter_name, const char **parameter_value)
{
    (void) agent;
    return inf_agent_model_parameter(inf_as_agent_model(model), index,
        parameter_name, parameter_value);
}

/* Without a configuration the message is an empty one. */
TRITONSERVER_Error *
TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, const uint32_t config_version,
    TRITONSERVER_Message **model_config)
{
    (void) agent;
    if (config_version != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model configuration version"
            " %u not supported, supported versions are: 1", config_version);
    }

    const Inference__ModelConfig *config = inf_agent_model_config(
        inf_as_agent_model(model));
    inf_buf_t json;
    inf_buf_init(&json);

    inf_err_t *err = config == NULL ? NULL
        : inf_model_config_to_json(config, &json);
    if (err == NULL) {
        err = inf_buf_status(&json);
    }
    if (err == NULL) {
        inf_json_text_t *text = inf_json_text_new(
            inf_buf_slice(&json).data, json.len);
        *model_config = inf_abi_as_message(text);
        err = text == NULL ? inf_err_nomem() : NULL;
    }

    inf_buf_fini(&json);
    return err;
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state)
{
    *state = inf_agent_model_state(inf_as_agent_model(model));
    return NULL;
}

TRITONSERVER_Error *
TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state)
{
    inf_agent_model_set_state(inf_as_agent_model(model), state);
    return NULL;
}

TRITONSERVER_Error *
TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent, void **state)
{
    *state = inf_agent_state(inf_as_agent(agent));
    return NULL;
}

TRITONSERVER_Error *
TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent, void *state)
{
    inf_agent_set_state(inf_as_agent(agent), state);
    return NULL;
}
