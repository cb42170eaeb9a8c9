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
 * Errors   TRITONSERVER_Error_Code; out of memory is UNAVAILABLE.  The value
 *          of an out-parameter after an error is unspecified unless said.
 *          Handles are not checked: NULL only where it is said to be accepted.
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

/* The version of the API in this header. */
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

/* Where the model is now: as the agent before left it, or this one by
   ModelRepositoryUpdate. The text lives as long as the model, also after an
   update. INTERNAL: it has no location. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

/* A directory of its own that the agent may fill, readable by the server's
   user alone and empty at first; the same one again for the same model, and
   removed with it, after ModelFinalize. It lies in $TMPDIR, or /tmp. The text
   belongs to the model. INVALID_ARG: not FILESYSTEM. INTERNAL: it can not be
   made. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

/* Removes that directory early, with all in it; location is not looked at. Not
   while the model is loaded from there. UNAVAILABLE: there is none. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const char *location);

/* Where the model is from now on; the text is copied. The next agent gets it
   as it is; the last one has to leave a directory that can be read, else the
   load fails. INVALID_ARG: outside of the LOAD action, an unknown type, an
   empty text. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

/* Of this agent in the model's configuration, as it was before the first agent
   of the model ran. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    uint32_t *count);

/* In the order of the map, the first at index 0. Both texts live as long as the
   model. INVALID_ARG: index out of range. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelParameter(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const uint32_t index, const char **parameter_name,
    const char **parameter_value);

/* As JSON, a new message, which the caller deletes: the configuration at the
   location that the agent before left, as written there, neither completed nor
   checked; an empty text where there is none or none that can be read.
   INVALID_ARG: config_version is not 1. */
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

/* Once the library was opened for the first model that names it. Its error
   fails the load of that model, and Finalize follows; the next model that names
   the agent tries again. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(
    TRITONREPOAGENT_Agent *agent);

/* When no model uses it any more; the library is closed then, whatever this
   returns. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(
    TRITONREPOAGENT_Agent *agent);

/* Before the first action of a model. Its error fails the load; ModelFinalize
   follows also then. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelInitialize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* After the last action of a model; an error is only logged. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelFinalize(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/*
 * LOAD may change where the model is, and its error fails the load; the agents
 * after it are not asked then. LOAD_COMPLETE comes next, when all versions
 * serve, or LOAD_FAIL, which the agent that failed hears too; after
 * LOAD_COMPLETE UNLOAD, before the versions are taken apart, and
 * UNLOAD_COMPLETE, when the last one is. Errors of those are only logged.
 * Agents act in the order of the configuration for LOAD and UNLOAD, in reverse
 * otherwise. Each load of a model is a model of its own here: a reload begins
 * with a new ModelInitialize, and the one before ends after it. Called on any
 * thread, one call at a time for one model; calls for different models run at
 * the same time.
 */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelAction(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONREPOAGENT_H */
