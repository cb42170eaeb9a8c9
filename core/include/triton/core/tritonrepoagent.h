/*
 * tritonrepoagent.h - what a repository agent implements and may call.
 *
 * Owner    A function that returns TRITONSERVER_Error * returns NULL for
 *          success; any other value belongs to the caller, who ends it with
 *          TRITONSERVER_ErrorDelete.  Out-parameters are valid on success.
 * Thread   see reference text of each function; getters of one object may
 *          run at the same time, setters may not.
 * Units    sizes in bytes, timestamps in ns on the monotonic clock, timeouts
 *          in us.
 * Errors   TRITONSERVER_Error_Code.
 * Route    binary compatible with the interface of the same name that
 *          prebuilt Triton plugins were compiled against.
 */

#ifndef TRITON_CORE_TRITONREPOAGENT_H
#define TRITON_CORE_TRITONREPOAGENT_H

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin marks its entry points with TRITONREPOAGENT_ISPEC. */
#define TRITONREPOAGENT_DECLSPEC TRITONSERVER_DECLSPEC
#define TRITONREPOAGENT_ISPEC __attribute__((visibility("default")))

#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

typedef struct TRITONREPOAGENT_Agent TRITONREPOAGENT_Agent;
typedef struct TRITONREPOAGENT_AgentModel TRITONREPOAGENT_AgentModel;

typedef enum TRITONREPOAGENT_artifacttype_enum {
    TRITONREPOAGENT_ARTIFACT_FILESYSTEM        = 0,
    TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM = 1
} TRITONREPOAGENT_ArtifactType;

typedef enum TRITONREPOAGENT_actiontype_enum {
    TRITONREPOAGENT_ACTION_LOAD            = 0,
    TRITONREPOAGENT_ACTION_LOAD_COMPLETE   = 1,
    TRITONREPOAGENT_ACTION_LOAD_FAIL       = 2,
    TRITONREPOAGENT_ACTION_UNLOAD          = 3,
    TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE = 4
} TRITONREPOAGENT_ActionType;

/* ---- exported by the core */

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(
    uint32_t *major, uint32_t *minor);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const char *location);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelParameterCount(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    uint32_t *count);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelParameter(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const uint32_t index, const char **parameter_name,
    const char **parameter_value);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelConfig(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const uint32_t config_version, TRITONSERVER_Message **model_config);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelState(
    TRITONREPOAGENT_AgentModel *model, void **state);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelSetState(
    TRITONREPOAGENT_AgentModel *model, void *state);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_State(
    TRITONREPOAGENT_Agent *agent, void **state);

TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_SetState(
    TRITONREPOAGENT_Agent *agent, void *state);

/* ---- implemented by the plugin */

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(
    TRITONREPOAGENT_Agent *agent);

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(
    TRITONREPOAGENT_Agent *agent);

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelInitialize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelFinalize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelAction(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONREPOAGENT_H */
