/*
 * tritonbackend.h - what a backend implements and what it may call.
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

#ifndef TRITON_CORE_TRITONBACKEND_H
#define TRITON_CORE_TRITONBACKEND_H

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin marks its entry points with TRITONBACKEND_ISPEC. */
#define TRITONBACKEND_DECLSPEC TRITONSERVER_DECLSPEC
#define TRITONBACKEND_ISPEC __attribute__((visibility("default")))

/* The version of the API in this header. */
#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

/* ---- Opaque types: the core's objects, by pointer only */

typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
typedef struct TRITONBACKEND_Batcher TRITONBACKEND_Batcher;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_MemoryManager TRITONBACKEND_MemoryManager;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_ModelInstanceResponseStatistics
    TRITONBACKEND_ModelInstanceResponseStatistics;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_ResponseFactory TRITONBACKEND_ResponseFactory;
typedef struct TRITONBACKEND_State TRITONBACKEND_State;

/* ---- Values: the numbers are part of the interface */

typedef enum TRITONBACKEND_artifacttype_enum {
    TRITONBACKEND_ARTIFACT_FILESYSTEM = 0
} TRITONBACKEND_ArtifactType;

typedef enum TRITONBACKEND_execpolicy_enum {
    TRITONBACKEND_EXECUTION_BLOCKING        = 0,
    TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1
} TRITONBACKEND_ExecutionPolicy;

/* ==== exported by the core */

/* ---- Version */

/* A backend compares it with its own in Initialize: the same major, and at
   least its minor, is what it needs. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ApiVersion(
    uint32_t *major, uint32_t *minor);

/* ---- Memory manager: any thread */

/* byte_size 0 gives a valid pointer too. End it with MemoryManagerFree.
   UNAVAILABLE: out of that memory. UNSUPPORTED: no such memory here. Backends
   then try the next kind. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerAllocate(
    TRITONBACKEND_MemoryManager *manager, void **buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id,
    const uint64_t byte_size);

/* With the type and id it was allocated with. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_MemoryManagerFree(
    TRITONBACKEND_MemoryManager *manager, void *buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id);

/* ---- Inputs: belong to their request, gone at its release */

/* Any out pointer may be NULL. The shape has the batch dimension first if the
   model batches; byte_size is the sum over buffer_count buffers. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input *input, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count);

/* With the size of the data given for that policy; without such data, or with
   NULL, as InputProperties. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name,
    const char **name, TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count);

/* One piece of the data, where the client put it; pieces may end anywhere. An
   index out of range is success with NULL, size 0, CPU. The preferred type and
   id on entry do not move data. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input *input, const uint32_t index, const void **buffer,
    uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* The same of the data given for that policy; without such data, or with NULL,
   as InputBuffer. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name,
    const uint32_t index, const void **buffer, uint64_t *buffer_byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/* A piece and its attributes, which belong to the input. An index out of range
   is success with NULL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(
    TRITONBACKEND_Input *input, const uint32_t index, const void **buffer,
    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Outputs: belong to their response */

/* Asks the client's allocator, on this thread. Type and id come in as the
   preference and go out as they are: any may come. Size 0 may give NULL.
   ALREADY_EXISTS: it has a buffer. Other errors are the allocator's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(
    TRITONBACKEND_Output *output, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* The output's own object; meaningful after OutputBuffer. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(
    TRITONBACKEND_Output *output,
    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Requests: read until released; getters from several threads */

/* "" if unset, never NULL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestId(
    TRITONBACKEND_Request *request, const char **id);

/* Whether the client has lost interest; any thread. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(
    TRITONBACKEND_Request *request, bool *is_cancelled);

/* The same, also after the request was released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryIsCancelled(
    TRITONBACKEND_ResponseFactory *factory, bool *is_cancelled);

/* 0: no sequence. INVALID_ARG: it is a string. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationId(
    TRITONBACKEND_Request *request, uint64_t *id);

/* The client's timeout; 0: none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request *request, uint64_t *timeout);

/* INVALID_ARG: it is a number. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationIdString(
    TRITONBACKEND_Request *request, const char **id);

/* TRITONSERVER_RequestFlag bits: start and end of a sequence. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestFlags(
    TRITONBACKEND_Request *request, uint32_t *flags);

/* How many parameters the client has set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(
    TRITONBACKEND_Request *request, uint32_t *count);

/* In order. vvalue is the characters (STRING), the data (BYTES) or points to
   the scalar. INVALID_ARG: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestParameter(
    TRITONBACKEND_Request *request, const uint32_t index, const char **key,
    TRITONSERVER_ParameterType *type, const void **vvalue);

/* Includes what the core adds, such as sequence controls. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(
    TRITONBACKEND_Request *request, uint32_t *count);

/* INVALID_ARG, and NULL: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestInputName(
    TRITONBACKEND_Request *request, const uint32_t index,
    const char **input_name);

/* INVALID_ARG, and NULL: unknown name. An optional input that was not sent is
   unknown. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestInput(
    TRITONBACKEND_Request *request, const char *name,
    TRITONBACKEND_Input **input);

/* The order may differ between requests. INVALID_ARG: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(
    TRITONBACKEND_Request *request, const uint32_t index,
    TRITONBACKEND_Input **input);

/* The outputs the client wants; 0 for padding requests. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(
    TRITONBACKEND_Request *request, uint32_t *count);

/* Sorted by name. INVALID_ARG, and NULL: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(
    TRITONBACKEND_Request *request, const uint32_t index,
    const char **output_name);

/* The memory that the client prefers; type and id are in and out, name and
   byte_size may be NULL. UNAVAILABLE: unknown, take CPU. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(
    TRITONBACKEND_Request *request, const char *name, size_t *byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/*
 * ALL, or no flag, ends the backend's use: the pointer is dead, the client is
 * called. RESCHEDULE, whatever is beside it, puts it back into the queue, for
 * iterative sequences only. On error (INVALID_ARG) the backend still owns it.
 * From any thread, also after Execute has returned.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestRelease(
    TRITONBACKEND_Request *request, uint32_t release_flags);

/* NULL: not traced. Belongs to the request. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestTrace(
    TRITONBACKEND_Request *request, TRITONSERVER_InferenceTrace **trace);

/* ---- Response factories: answers after the request is gone */

/* A handle that outlives the request; several are possible. Each keeps the
   model loaded and is ended by FactoryDelete. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryNew(
    TRITONBACKEND_ResponseFactory **factory, TRITONBACKEND_Request *request);

/* Sends nothing: FINAL is the backend's to send. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryDelete(
    TRITONBACKEND_ResponseFactory *factory);

/* Calls the client with no response; any thread. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactorySendFlags(
    TRITONBACKEND_ResponseFactory *factory, const uint32_t send_flags);

/* ---- Responses: one thread at a time; the backend owns them until sent */

/* An empty response to a request not yet released. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ResponseNew(
    TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);

/* The same by a factory; any thread. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNewFromFactory(
    TRITONBACKEND_Response **response, TRITONBACKEND_ResponseFactory *factory);

/* Instead of a send: frees the buffers, tells nobody. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(
    TRITONBACKEND_Response *response);

/* Copies key and value. The same name again keeps both entries. INVALID_ARG:
   response is NULL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(
    TRITONBACKEND_Response *response, const char *name, const char *value);

/* As ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(
    TRITONBACKEND_Response *response, const char *name, const int64_t value);

/* As ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(
    TRITONBACKEND_Response *response, const char *name, const bool value);

/* As ResponseSetStringParameter. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(
    TRITONBACKEND_Response *response, const char *name, const double value);

/* Copies name and shape, batch dimension included. The output belongs to the
   response and stays where it is. INVALID_ARG: not an output of the model,
   response is NULL; after an error delete the response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response *response, TRITONBACKEND_Output **output,
    const char *name, const TRITONSERVER_DataType datatype,
    const int64_t *shape, const uint32_t dims_count);

/* Takes the response, whatever happens. error may be NULL and stays the
   caller's; an error response needs no outputs. FINAL is in the last one's
   flags, and nothing may follow it. INVALID_ARG: response is NULL. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ResponseSend(
    TRITONBACKEND_Response *response, const uint32_t send_flags,
    TRITONSERVER_Error *error);

/* ---- Sequence states: belong to the sequence, one request at a time */

/* The state of that output_name, the same object every time; it gets datatype
   and shape. INVALID_ARG: the request has no states, unknown name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateNew(
    TRITONBACKEND_State **state, TRITONBACKEND_Request *request,
    const char *name, const TRITONSERVER_DataType datatype,
    const int64_t *shape, const uint32_t dims_count);

/* The bytes written are the input of the sequence's next request. Without it
   the old state stays; twice in one request cancels out. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateUpdate(
    TRITONBACKEND_State *state);

/* Memory to write the state into; the held buffer if it fits. Type and id are
   in and out: any may come. UNAVAILABLE: out of memory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateBuffer(
    TRITONBACKEND_State *state, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* The state's own object; meaningful after StateBuffer. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(
    TRITONBACKEND_State *state,
    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Backends: as long as the server lives */

/* Lives as long as the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendName(
    TRITONBACKEND_Backend *backend, const char **name);

/* {"cmdline":{...}}, all values strings; belongs to the backend, the same
   message each time. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendConfig(
    TRITONBACKEND_Backend *backend, TRITONSERVER_Message **backend_config);

/* BLOCKING by default. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendExecutionPolicy(
    TRITONBACKEND_Backend *backend, TRITONBACKEND_ExecutionPolicy *policy);

/* From Initialize; read when a model is loaded. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(
    TRITONBACKEND_Backend *backend, TRITONBACKEND_ExecutionPolicy policy);

/* The directory the library was found in, without a slash at its end; lives as
   long as the backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendArtifacts(
    TRITONBACKEND_Backend *backend, TRITONBACKEND_ArtifactType *artifact_type,
    const char **location);

/* One for the process; never deleted. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendMemoryManager(
    TRITONBACKEND_Backend *backend, TRITONBACKEND_MemoryManager **manager);

/* NULL until it was set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendState(
    TRITONBACKEND_Backend *backend, void **state);

/* A pointer the core never touches; not synchronised. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendSetState(
    TRITONBACKEND_Backend *backend, void *state);

/* ---- Models: from ModelInitialize to ModelFinalize */

/* Lives as long as the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelName(
    TRITONBACKEND_Model *model, const char **name);

/* The number of its directory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelVersion(
    TRITONBACKEND_Model *model, uint64_t *version);

/* The model's directory, not the version's; lives as long as the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelRepository(
    TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *artifact_type,
    const char **location);

/* The configuration as JSON, a new message each call, which the caller
   deletes. INVALID_ARG: config_version is not 1. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelConfig(
    TRITONBACKEND_Model *model, const uint32_t config_version,
    TRITONSERVER_Message **model_config);

/* Whether ModelSetConfig is welcome. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(
    TRITONBACKEND_Model *model, bool *auto_complete_config);

/*
 * Takes over max_batch_size, inputs, outputs, a scheduling choice where there
 * was none, and the transaction policy. From ModelInitialize; the message
 * stays the caller's. INVALID_ARG: no such configuration, config_version is
 * not 1. INTERNAL: another scheduling choice than before.
 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(
    TRITONBACKEND_Model *model, const uint32_t config_version,
    TRITONSERVER_Message *model_config);

/* Usable in ModelInitialize already. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelServer(
    TRITONBACKEND_Model *model, TRITONSERVER_Server **server);

/* The backend that executes it. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelBackend(
    TRITONBACKEND_Model *model, TRITONBACKEND_Backend **backend);

/* NULL until it was set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelState(
    TRITONBACKEND_Model *model, void **state);

/* A pointer the core never touches; not synchronised. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelSetState(
    TRITONBACKEND_Model *model, void *state);

/* Replaces the model's last report, shown in its statistics together with its
   instances'. The array stays the caller's. Any thread. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(
    TRITONBACKEND_Model *model, TRITONSERVER_BufferAttributes **usage,
    uint32_t usage_size);

/* ---- Instances: from ModelInstanceInitialize to ModelInstanceFinalize */

/* Lives as long as the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(
    TRITONBACKEND_ModelInstance *instance, const char **name);

/* CPU, GPU or MODEL; never AUTO. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(
    TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_InstanceGroupKind *kind);

/* The GPU; 0 for other kinds. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(
    TRITONBACKEND_ModelInstance *instance, int32_t *device_id);

/* {"<policy>":{...}} with one member; belongs to the instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceHostPolicy(
    TRITONBACKEND_ModelInstance *instance, TRITONSERVER_Message **host_policy);

/* A passive instance is never executed. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceIsPassive(
    TRITONBACKEND_ModelInstance *instance, bool *is_passive);

/* Optimisation profiles in its group's configuration. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileCount(
    TRITONBACKEND_ModelInstance *instance, uint32_t *count);

/* INVALID_ARG, and NULL: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileName(
    TRITONBACKEND_ModelInstance *instance, const uint32_t index,
    const char **profile_name);

/* Devices beside the main one. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    TRITONBACKEND_ModelInstance *instance, uint32_t *count);

/* kind as in the configuration, such as "KIND_NVDLA". INVALID_ARG: index out
   of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind,
    int64_t *id);

/* Its model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Model **model);

/* NULL until it was set. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(
    TRITONBACKEND_ModelInstance *instance, void **state);

/* A pointer the core never touches; not synchronised. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(
    TRITONBACKEND_ModelInstance *instance, void *state);

/* As ModelReportMemoryUsage, for one instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance *instance,
    TRITONSERVER_BufferAttributes **usage, uint32_t usage_size);

/* ---- Statistics: optional, any thread, ns on the monotonic clock */

/* Once a request, before its release: when its execution began, inputs were
   ready, outputs were, and it ended. success false counts a failure. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    const bool success, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

/* An empty set of what is known of one response; the caller deletes it and may
   use it again. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics);

/* NULL is accepted. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Needed; only the pointer is kept. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance);

/* Needed; only the pointer is kept. Reports of one factory's run count 0, 1,
   2, ... */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory);

/* When work on this response began. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t response_start);

/* When its outputs were computed; 0, the default: it has none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start);

/* When it was sent. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t response_end);

/* The response failed, or was cancelled if the code says so; NULL: it did not.
   The error stays the caller's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONSERVER_Error *error);

/* Counts the response. INVALID_ARG: instance or factory is missing, or the
   times are out of order. UNAVAILABLE: statistics of so many responses to one
   request are not kept. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* Once an execution, with its rows over all requests. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns);

/* ---- Backend attributes: valid inside GetBackendAttribute only */

/* The group that stands in for groups without a kind, count or devices; the
   first usable one counts. count 0: the default. The ids are copied. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes,
    const TRITONSERVER_InstanceGroupKind kind, const uint64_t count,
    const uint64_t *device_ids, const uint64_t id_count);

/* Whether instances of a model may be initialised at the same time; false by
   default. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled);

/* ---- Outputs of a response not yet sent */

/* Shape and datatype belong to the response. NOT_FOUND: no such output. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutputByName(
    TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint64_t *dim_count);

/* The same by index. INVALID_ARG: index out of range. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutput(
    TRITONBACKEND_Response *response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint64_t *dim_count);

/* ==== implemented by the plugin */

/* ---- Backend library: optional but ModelInstanceExecute */

/* Once, after the library was opened. After an error Finalize follows, and the
   next model to use it opens it again. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Initialize(
    TRITONBACKEND_Backend *backend);

/* When the server ends; also after a failed Initialize, with no state set. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Finalize(
    TRITONBACKEND_Backend *backend);

/* Once a version, on a loader thread; an error fails the load, and
   ModelFinalize follows. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(
    TRITONBACKEND_Model *model);

/* After the last instance's; no request, response or factory of the model is
   left. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(
    TRITONBACKEND_Model *model);

/* Once an instance, serially unless the backend agreed to parallel loading.
   After an error ModelInstanceFinalize follows. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(
    TRITONBACKEND_ModelInstance *instance);

/* No execution is running; it may block. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(
    TRITONBACKEND_ModelInstance *instance);

/*
 * On success every request belongs to the backend, which answers and releases
 * each, now or later. On error none was touched: the core answers and releases
 * them all, and deletes the error. The array dies at return. Never twice at
 * once on one instance.
 */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
    const uint32_t request_count);

/* Success: ready. Any thread, also during Execute. Absent: always ready. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReady(
    TRITONBACKEND_ModelInstance *instance);

/* Right after Initialize; its error is ignored. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(
    TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *backend_attributes);

/* ---- Batch strategy library: all five or none */

/* After ModelInitialize. *batcher is the library's own object. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatcherInitialize(
    TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model);

/* When the model is unloaded. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatcherFinalize(
    TRITONBACKEND_Batcher *batcher);

/* Whether the request, queued and read only, joins the batch; false closes it.
   Must be quick. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(
    TRITONBACKEND_Request *request, void *userp, bool *should_include);

/* A new batch begins; *userp goes to the other calls. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatchInitialize(
    const TRITONBACKEND_Batcher *batcher, void **userp);

/* The batch was sent or dropped; not called if userp is NULL. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(
    void *userp);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONBACKEND_H */
