/*
 * tritonrepoagent.h - what a repository agent implements and may call.
 *
 * Owner    As in tritonserver.h: an error belongs to whoever receives it, an
 *          object from New to the caller until its Delete, a text or array to
 *          the object it was asked of.
 * Thread   Getters of one object may run at the same time, setters may not;
 *          different objects are independent.  Where more is allowed, or
 *          less, the function or its heading says so.
 * Units    sizes in bytes, timestamps in ns on the monotonic clock, timeouts
 *          in us.
 * Errors   TRITONSERVER_Error_Code; out of memory is UNAVAILABLE.  What an
 *          out-parameter holds after an error is unspecified unless said.
 *          Handles are not checked: NULL only where it is said to be
 *          accepted.
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

/* What this header describes. */
#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

/* ---- Opaque types: the core's objects, by pointer only */

typedef struct TRITONREPOAGENT_Agent TRITONREPOAGENT_Agent;
typedef struct TRITONREPOAGENT_AgentModel TRITONREPOAGENT_AgentModel;

/* ---- Values: the numbers are part of the interface */

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

/* ==== exported by the core */

/* ---- Version */

/* The version of this interface that the core has: the same major and at least
   the minor of a plug-in's own is what it needs. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(
    uint32_t *major, uint32_t *minor);

/* ---- A model on its way into the server, during a call into the agent */

/* Where the model is now: as the agent before left it. The text belongs to the
   model. INTERNAL: it has no location. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

/* A folder the agent may fill; the same one again for the same model, and
   removed with it. INVALID_ARG: not FILESYSTEM. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

/* Removes that folder early; location is not looked at. UNAVAILABLE: there is
   none. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const char *location);

/* Where the model is from now on; the text is copied. Only in the LOAD action,
   INVALID_ARG otherwise. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

/* Of this agent in the model's configuration. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    uint32_t *count);

/* Both texts live as long as the model. INVALID_ARG: index out of range. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelParameter(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const uint32_t index, const char **parameter_name,
    const char **parameter_value);

/* As JSON, a new message, which the caller deletes; an empty text without a
   configuration file. INVALID_ARG: config_version is not 1. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelConfig(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const uint32_t config_version, TRITONSERVER_Message **model_config);

/* ---- State of the agent's own, for a model and for itself */

/* NULL until it was set. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelState(
    TRITONREPOAGENT_AgentModel *model, void **state);

/* A pointer the core never touches. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelSetState(
    TRITONREPOAGENT_AgentModel *model, void *state);

/* NULL until it was set. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_State(
    TRITONREPOAGENT_Agent *agent, void **state);

/* A pointer the core never touches. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_SetState(
    TRITONREPOAGENT_Agent *agent, void *state);

/* ==== implemented by the plugin */

/* ---- Agent library: ModelAction is required, the others are optional */

/* Once the library was opened for the first model that names it. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(
    TRITONREPOAGENT_Agent *agent);

/* When no model uses it any more; the library is closed then. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(
    TRITONREPOAGENT_Agent *agent);

/* Before the first action of a model; ModelFinalize follows also after an
   error. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelInitialize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* After the last action of a model. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelFinalize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/*
 * LOAD may change where the model is, and its error fails the load.
 * LOAD_COMPLETE or LOAD_FAIL comes next, later UNLOAD and UNLOAD_COMPLETE;
 * errors of those are only logged. Agents act in the order of the
 * configuration for LOAD and UNLOAD, in reverse otherwise.
 */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelAction(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONREPOAGENT_H */
