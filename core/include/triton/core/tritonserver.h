/*
 * tritonserver.h - the in-process API: server, requests, responses.
 *
 * Owner    A function that returns TRITONSERVER_Error * returns NULL for
 *          success; any other value belongs to the caller, who ends it with
 *          TRITONSERVER_ErrorDelete.  An object from a function called New
 *          belongs to the caller until its Delete, unless said otherwise; a
 *          text or array belongs to the object it was asked of.
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

#ifndef TRITON_CORE_TRITONSERVER_H
#define TRITON_CORE_TRITONSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The core defines _COMPILING_TRITONSERVER; nobody else does. */
#if defined(_COMPILING_TRITONSERVER)
#define TRITONSERVER_DECLSPEC __attribute__((visibility("default")))
#else
#define TRITONSERVER_DECLSPEC
#endif

/* The version of the API in this header. */
#define TRITONSERVER_API_VERSION_MAJOR 1
#define TRITONSERVER_API_VERSION_MINOR 34

/* ---- Opaque types: the core's objects, by pointer only */

typedef struct TRITONSERVER_BufferAttributes TRITONSERVER_BufferAttributes;
typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_InferenceRequest TRITONSERVER_InferenceRequest;
typedef struct TRITONSERVER_InferenceResponse TRITONSERVER_InferenceResponse;
typedef struct TRITONSERVER_InferenceTrace TRITONSERVER_InferenceTrace;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;
typedef struct TRITONSERVER_MetricArgs TRITONSERVER_MetricArgs;
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
typedef struct TRITONSERVER_Metrics TRITONSERVER_Metrics;
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
typedef struct TRITONSERVER_ResponseAllocator TRITONSERVER_ResponseAllocator;
typedef struct TRITONSERVER_Server TRITONSERVER_Server;
typedef struct TRITONSERVER_ServerOptions TRITONSERVER_ServerOptions;

/* ---- Values: the numbers are part of the interface */

typedef enum TRITONSERVER_datatype_enum {
    TRITONSERVER_TYPE_INVALID = 0,
    TRITONSERVER_TYPE_BOOL    = 1,
    TRITONSERVER_TYPE_UINT8   = 2,
    TRITONSERVER_TYPE_UINT16  = 3,
    TRITONSERVER_TYPE_UINT32  = 4,
    TRITONSERVER_TYPE_UINT64  = 5,
    TRITONSERVER_TYPE_INT8    = 6,
    TRITONSERVER_TYPE_INT16   = 7,
    TRITONSERVER_TYPE_INT32   = 8,
    TRITONSERVER_TYPE_INT64   = 9,
    TRITONSERVER_TYPE_FP16    = 10,
    TRITONSERVER_TYPE_FP32    = 11,
    TRITONSERVER_TYPE_FP64    = 12,
    TRITONSERVER_TYPE_BYTES   = 13,
    TRITONSERVER_TYPE_BF16    = 14
} TRITONSERVER_DataType;

typedef enum TRITONSERVER_memorytype_enum {
    TRITONSERVER_MEMORY_CPU        = 0,
    TRITONSERVER_MEMORY_CPU_PINNED = 1,
    TRITONSERVER_MEMORY_GPU        = 2
} TRITONSERVER_MemoryType;

typedef enum TRITONSERVER_parametertype_enum {
    TRITONSERVER_PARAMETER_STRING = 0,
    TRITONSERVER_PARAMETER_INT    = 1,
    TRITONSERVER_PARAMETER_BOOL   = 2,
    TRITONSERVER_PARAMETER_DOUBLE = 3,
    TRITONSERVER_PARAMETER_BYTES  = 4
} TRITONSERVER_ParameterType;

typedef enum TRITONSERVER_instancegroupkind_enum {
    TRITONSERVER_INSTANCEGROUPKIND_AUTO  = 0,
    TRITONSERVER_INSTANCEGROUPKIND_CPU   = 1,
    TRITONSERVER_INSTANCEGROUPKIND_GPU   = 2,
    TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3
} TRITONSERVER_InstanceGroupKind;

typedef enum TRITONSERVER_loglevel_enum {
    TRITONSERVER_LOG_INFO    = 0,
    TRITONSERVER_LOG_WARN    = 1,
    TRITONSERVER_LOG_ERROR   = 2,
    TRITONSERVER_LOG_VERBOSE = 3
} TRITONSERVER_LogLevel;

typedef enum TRITONSERVER_logformat_enum {
    TRITONSERVER_LOG_DEFAULT = 0,
    TRITONSERVER_LOG_ISO8601 = 1
} TRITONSERVER_LogFormat;

typedef enum TRITONSERVER_errorcode_enum {
    TRITONSERVER_ERROR_UNKNOWN        = 0,
    TRITONSERVER_ERROR_INTERNAL       = 1,
    TRITONSERVER_ERROR_NOT_FOUND      = 2,
    TRITONSERVER_ERROR_INVALID_ARG    = 3,
    TRITONSERVER_ERROR_UNAVAILABLE    = 4,
    TRITONSERVER_ERROR_UNSUPPORTED    = 5,
    TRITONSERVER_ERROR_ALREADY_EXISTS = 6,
    TRITONSERVER_ERROR_CANCELLED      = 7
} TRITONSERVER_Error_Code;

typedef enum tritonserver_metricformat_enum {
    TRITONSERVER_METRIC_PROMETHEUS = 0
} TRITONSERVER_MetricFormat;

typedef enum tritonserver_tracelevel_enum {
    TRITONSERVER_TRACE_LEVEL_DISABLED   = 0,
    TRITONSERVER_TRACE_LEVEL_MIN        = 1,
    TRITONSERVER_TRACE_LEVEL_MAX        = 2,
    TRITONSERVER_TRACE_LEVEL_TIMESTAMPS = 4,
    TRITONSERVER_TRACE_LEVEL_TENSORS    = 8
} TRITONSERVER_InferenceTraceLevel;

typedef enum tritonserver_traceactivity_enum {
    TRITONSERVER_TRACE_REQUEST_START         = 0,
    TRITONSERVER_TRACE_QUEUE_START           = 1,
    TRITONSERVER_TRACE_COMPUTE_START         = 2,
    TRITONSERVER_TRACE_COMPUTE_INPUT_END     = 3,
    TRITONSERVER_TRACE_COMPUTE_OUTPUT_START  = 4,
    TRITONSERVER_TRACE_COMPUTE_END           = 5,
    TRITONSERVER_TRACE_REQUEST_END           = 6,
    TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT    = 7,
    TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT  = 8,
    TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT = 9,
    TRITONSERVER_TRACE_CUSTOM_ACTIVITY       = 10
} TRITONSERVER_InferenceTraceActivity;

typedef enum tritonserver_requestflag_enum {
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END   = 2
} TRITONSERVER_RequestFlag;

typedef enum tritonserver_requestreleaseflag_enum {
    TRITONSERVER_REQUEST_RELEASE_ALL        = 1,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
} TRITONSERVER_RequestReleaseFlag;

typedef enum tritonserver_responsecompleteflag_enum {
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
} TRITONSERVER_ResponseCompleteFlag;

typedef enum tritonserver_modelcontrolmode_enum {
    TRITONSERVER_MODEL_CONTROL_NONE     = 0,
    TRITONSERVER_MODEL_CONTROL_POLL     = 1,
    TRITONSERVER_MODEL_CONTROL_EXPLICIT = 2
} TRITONSERVER_ModelControlMode;

typedef enum tritonserver_ratelimitmode_enum {
    TRITONSERVER_RATE_LIMIT_OFF        = 0,
    TRITONSERVER_RATE_LIMIT_EXEC_COUNT = 1
} TRITONSERVER_RateLimitMode;

typedef enum tritonserver_batchflag_enum {
    TRITONSERVER_BATCH_UNKNOWN   = 1,
    TRITONSERVER_BATCH_FIRST_DIM = 2
} TRITONSERVER_ModelBatchFlag;

typedef enum tritonserver_modelindexflag_enum {
    TRITONSERVER_INDEX_FLAG_READY = 1
} TRITONSERVER_ModelIndexFlag;

typedef enum tritonserver_txn_property_flag_enum {
    TRITONSERVER_TXN_ONE_TO_ONE = 1,
    TRITONSERVER_TXN_DECOUPLED  = 2
} TRITONSERVER_ModelTxnPropertyFlag;

typedef enum TRITONSERVER_metrickind_enum {
    TRITONSERVER_METRIC_KIND_COUNTER   = 0,
    TRITONSERVER_METRIC_KIND_GAUGE     = 1,
    TRITONSERVER_METRIC_KIND_HISTOGRAM = 2
} TRITONSERVER_MetricKind;

/* ---- Callback types, filled in by the client */

/*
 * Gives a buffer for one output. On the thread of the backend's OutputBuffer
 * call. byte_size may be 0, and then *buffer may be NULL. The actual memory
 * type and id hold the preference already; change them if the buffer lies
 * elsewhere. buffer_userp comes back in the release function. An error goes to
 * the backend and is deleted by the core.
 */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorAllocFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
    size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, void *userp, void **buffer, void **buffer_userp,
    TRITONSERVER_MemoryType *actual_memory_type,
    int64_t *actual_memory_type_id);

/* Completes the attributes of the buffer just given, such as its CUDA IPC
   handle; size, memory type and id are overwritten afterwards. The object is
   the output's: do not delete it. */
typedef TRITONSERVER_Error *
(*TRITONSERVER_ResponseAllocatorBufferAttributesFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
    TRITONSERVER_BufferAttributes *buffer_attributes, void *userp,
    void *buffer_userp);

/* Says what memory the client would give for an output; type and id come in as
   the backend's preference. tensor_name and byte_size may be NULL. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorQueryFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp,
    const char *tensor_name, size_t *byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/* Takes back a buffer; once for each output with a non-NULL buffer, when its
   response is deleted. An error is logged and deleted by the core. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorReleaseFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id);

/* A response object was made; called once for each, before any of its buffers
   is asked for, also for one that is never sent. An error is only logged. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorStartFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp);

/* One activity of a traced request, on the thread where it happens. Must not
   block. */
typedef void (*TRITONSERVER_InferenceTraceActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp);

/* One tensor of a traced request; everything pointed to is valid during the
   call only. */
typedef void (*TRITONSERVER_InferenceTraceTensorActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp);

/* The core has no more use for the trace: the callee owns it and deletes it.
   May come after the response was delivered. */
typedef void (*TRITONSERVER_InferenceTraceReleaseFn_t)(
    TRITONSERVER_InferenceTrace *trace, void *userp);

/* The core no longer uses the request: it may be changed, submitted again or
   deleted. May come before or after its responses, and before ServerInferAsync
   returns. */
typedef void (*TRITONSERVER_InferenceRequestReleaseFn_t)(
    TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp);

/* Delivers a response, which the callee owns and deletes; NULL when only flags
   are sent. On any thread: of an instance, of a backend, of the core or of the
   submitter. After FINAL comes nothing more. */
typedef void (*TRITONSERVER_InferenceResponseCompleteFn_t)(
    TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp);

/* ==== exported by the core */

/* ---- Version */

/* The version of this interface that the core has: the same major and at least
   the minor of a plug-in's own is what it needs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ApiVersion(
    uint32_t *major, uint32_t *minor);

/* ---- Names of values: static strings, never NULL */

/* The name on the wire, such as "FP32"; "<invalid>" for unknown values. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_DataTypeString(
    TRITONSERVER_DataType datatype);

/* Wire names only, case-sensitive; anything else is INVALID. */
TRITONSERVER_DECLSPEC TRITONSERVER_DataType TRITONSERVER_StringToDataType(
    const char *dtype);

/* Bytes of one element; 0 for BYTES and INVALID. */
TRITONSERVER_DECLSPEC uint32_t TRITONSERVER_DataTypeByteSize(
    TRITONSERVER_DataType datatype);

/* "CPU", "CPU_PINNED", "GPU" or "<invalid>". */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_MemoryTypeString(
    TRITONSERVER_MemoryType memtype);

/* "STRING", "INT", "BOOL", "DOUBLE", "BYTES" or "<invalid>". */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ParameterTypeString(
    TRITONSERVER_ParameterType paramtype);

/* ---- Parameters: named values, constant once made */

/* Copies name and value; the caller deletes. value points to characters
   (STRING), int64_t (INT), bool (BOOL) or double (DOUBLE). NULL for BYTES, an
   unknown type or when out of memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(
    const char *name, const TRITONSERVER_ParameterType type, const void *value);

/* Like ParameterNew for BYTES, but keeps the pointer: the data outlive the
   parameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *TRITONSERVER_ParameterBytesNew(
    const char *name, const void *byte_ptr, const uint64_t size);

/* NULL is accepted. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ParameterDelete(
    TRITONSERVER_Parameter *parameter);

/* "AUTO", "CPU", "GPU", "MODEL" or "<invalid>". */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_InstanceGroupKindString(
    TRITONSERVER_InstanceGroupKind kind);

/* ---- Log */

/* Whether a record of that level would be written; VERBOSE is at a verbose
   level of 1 or more. Any thread. */
TRITONSERVER_DECLSPEC bool TRITONSERVER_LogIsEnabled(
    TRITONSERVER_LogLevel level);

/* Writes one record; filename and line tell where it was made. Any thread.
   INVALID_ARG: unknown level. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_LogMessage(
    TRITONSERVER_LogLevel level, const char *filename, const int line,
    const char *msg);

/* ---- Errors: owned by whoever receives one */

/* Copies msg; the caller deletes. Never NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ErrorNew(
    TRITONSERVER_Error_Code code, const char *msg);

/* NULL is accepted. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ErrorDelete(
    TRITONSERVER_Error *error);

/* The number it was made with; error is not NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(
    TRITONSERVER_Error *error);

/* Its name, such as "Invalid argument"; static. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorCodeString(
    TRITONSERVER_Error *error);

/* The text; valid until the error is deleted. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorMessage(
    TRITONSERVER_Error *error);

/* ---- Response allocator: where a client wants its outputs */

/* alloc_fn and release_fn are needed, start_fn may be NULL. The client deletes
   it, after the last request, factory and response that refer to it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator **allocator,
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn);

/* NULL by default. Set before first use: not synchronised. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn);

/* NULL by default, which answers queries with UNAVAILABLE. Set before first
   use: not synchronised. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorQueryFn_t query_fn);

/* Nothing may refer to it any more. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(
    TRITONSERVER_ResponseAllocator *allocator);

/* ---- Messages: JSON texts, constant once made */

/* Copies byte_size bytes and does not parse them: a bad text fails where it is
   used. The caller deletes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(
    TRITONSERVER_Message **message, const char *base, size_t byte_size);

/* Only a message that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MessageDelete(
    TRITONSERVER_Message *message);

/* The text, compact, with a NUL after its last byte; it belongs to the
   message. Readers may run at the same time. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(
    TRITONSERVER_Message *message, const char **base, size_t *byte_size);

/* ---- Text of metrics */

/* Ends a handle from ServerMetrics, and its text. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricsDelete(
    TRITONSERVER_Metrics *metrics);

/* Takes a snapshot now, as text that belongs to the handle until the next
   call or the delete. One thread at a time a handle. INVALID_ARG: unknown
   format. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricsFormatted(
    TRITONSERVER_Metrics *metrics, TRITONSERVER_MetricFormat format,
    const char **base, size_t *byte_size);

/* ---- Traces of requests */

/* The name of one level bit; "<unknown>" for other values. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_InferenceTraceLevelString(
    TRITONSERVER_InferenceTraceLevel level);

/* The activity's name, such as "QUEUE_START"; "<unknown>" for other values. */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity activity);

/* A trace with the next id, from 1 on; parent_id 0 means no parent. level is a
   set of bits; MIN and MAX mean TIMESTAMPS. The caller owns it until a submit
   has taken it; it ends in release_fn. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace **trace,
    TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* Like InferenceTraceNew, with a function for the TENSORS level. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace,
    TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* Adds the member "<timestamp>":"<activity_name>" to the context and reports
   CUSTOM_ACTIVITY. timestamp is ns. Any thread. NULL is accepted. INVALID_ARG:
   the context is not empty and no JSON object. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceReportActivity(
    TRITONSERVER_InferenceTrace *trace, uint64_t timestamp,
    const char *activity_name);

/* By its owner: who made it and did not submit it, or the release function.
   NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceDelete(
    TRITONSERVER_InferenceTrace *trace);

/* Unique in the process, never 0. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceId(
    TRITONSERVER_InferenceTrace *trace, uint64_t *id);

/* 0 when there is none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceParentId(
    TRITONSERVER_InferenceTrace *trace, uint64_t *parent_id);

/* "" until it was submitted; lives as long as the trace. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelName(
    TRITONSERVER_InferenceTrace *trace, const char **model_name);

/* -1 until it was submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelVersion(
    TRITONSERVER_InferenceTrace *trace, int64_t *model_version);

/* "" until it was submitted, or if the request has none; lives as long as the
   trace. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceRequestId(
    TRITONSERVER_InferenceTrace *trace, const char **request_id);

/* A trace with the same level and callbacks, and this one's id as parent; it
   needs a submit or a delete of its own. A NULL trace gives a NULL child and
   success. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(
    TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTrace **child_trace);

/* Copies a text that travels with the trace, such as an OpenTelemetry context.
   Any thread. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSetContext(
    TRITONSERVER_InferenceTrace *trace, const char *trace_context);

/* "" by default. Valid until the context is set, an activity is reported or
   the trace ends. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceContext(
    TRITONSERVER_InferenceTrace *trace, const char **trace_context);

/* ---- Inference requests: one thread at a time, but for Cancel */

/*
 * Resolves the model now and keeps it loaded; version -1 is the one the
 * version policy prefers. The client owns the request. NOT_FOUND: no such
 * model, or no version of it is ready. UNAVAILABLE: the version or the server
 * is not ready.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestNew(
    TRITONSERVER_InferenceRequest **inference_request,
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version);

/* Not between submit and release callback. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest *inference_request);

/* "" by default, never NULL; valid until it is set again. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestId(
    TRITONSERVER_InferenceRequest *inference_request, const char **id);

/* Copies the id. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetId(
    TRITONSERVER_InferenceRequest *inference_request, const char *id);

/* A set of TRITONSERVER_RequestFlag bits. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *flags);

/* Replaces all flags. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t flags);

/* 0 by default. INVALID_ARG: the id is a string. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *correlation_id);

/* Valid until it is set again. INVALID_ARG: the id is a number. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char **correlation_id);

/* The sequence the request belongs to; 0: none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t correlation_id);

/* Copies it; "": no sequence. UNSUPPORTED: longer than 128 bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request,
    const char *correlation_id);

/* Asks for the end of the current run; answers as usual tell what became of
   it. From any thread, not after the release callback began. INTERNAL: never
   submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest *inference_request);

/* Whether the current run was cancelled. INTERNAL: never submitted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest *inference_request, bool *is_cancelled);

/* INVALID_ARG: it does not fit 32 bits. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t *priority);

/* 0 stands for the model's default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *priority);

/* As SetPriorityUInt64. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest *inference_request, uint32_t priority);

/* 1 is the highest level; 0, or beyond the model's levels, becomes the model's
   default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t priority);

/* 0 by default: the model's own timeout. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t *timeout_us);

/* How long it may wait in the queue, if the model lets requests say so. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us);

/* Copies name and shape, which includes the batch dimension. INVALID_ARG:
   there is an input of that name. The model is asked only at submit. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    uint64_t dim_count);

/* Only for models with one input, of which datatype and shape come from the
   configuration; at most one dimension may vary. No other input may be added.
   INVALID_ARG otherwise. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name);

/* INVALID_ARG: unknown name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name);

/* With their data. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest *inference_request);

/* Refers to base until the request is released; nothing is copied. Pieces form
   one tensor in the order they are added; byte_size 0 adds none. INVALID_ARG:
   unknown input. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id);

/* The same, for instances under that host policy only; others see the data
   without a policy. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, size_t byte_size, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, const char *host_policy_name);

/* The same, described by an attributes object, which is copied. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name,
    const void *base, TRITONSERVER_BufferAttributes *buffer_attributes);

/* Of one input, host policies included. INVALID_ARG: unknown input. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name);

/* None at all means every output of the model. INVALID_ARG: requested already.
   The model is asked only at submit. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name);

/* An unknown name is no error. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest *inference_request, const char *name);

/* Then every output is wanted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request);

/* Needed before a submit. userp is handed on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn,
    void *request_release_userp);

/* Needed before a submit. Each submit takes a copy: changes count from the
   next run on. The allocator stays the client's. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator,
    void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn,
    void *response_userp);

/* Copies key and value. Setting a key again keeps both entries; they stay in
   order. INVALID_ARG: NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const char *value);

/* As SetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const int64_t value);

/* As SetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest *request, const char *key, const bool value);

/* As SetStringParameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest *request, const char *key,
    const double value);

/* ---- Inference responses, as the complete callback gets them */

/* Runs the allocator's release function for each buffer. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(
    TRITONSERVER_InferenceResponse *inference_response);

/* NULL: success. Otherwise a new error at each call, which the caller
   deletes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseError(
    TRITONSERVER_InferenceResponse *inference_response);

/* Name and version; the name lives as long as the response. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseModel(
    TRITONSERVER_InferenceResponse *inference_response,
    const char **model_name, int64_t *model_version);

/* The request's id, "" if it had none; lives as long as the response. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseId(
    TRITONSERVER_InferenceResponse *inference_response,
    const char **request_id);

/* How many parameters the backend has set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse *inference_response, uint32_t *count);

/* In the order they were set. vvalue is the characters (STRING), the data
   (BYTES) or points to the scalar; all belong to the response. INVALID_ARG:
   index out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const char **name, TRITONSERVER_ParameterType *type, const void **vvalue);

/* An error response may have outputs too. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse *inference_response, uint32_t *count);

/* Everything pointed to belongs to the response; userp is the allocator's
   buffer_userp. base is NULL if the backend never asked for a buffer.
   INVALID_ARG: index out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const char **name, TRITONSERVER_DataType *datatype, const int64_t **shape,
    uint64_t *dim_count, const void **base, size_t *byte_size,
    TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id,
    void **userp);

/* The label of one class of an output; NULL if it has none. INVALID_ARG: index
   out of range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label);

/* ---- Buffer attributes: size and place of a buffer */

/* In CPU memory with id 0, no handle, size 0. The caller deletes it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_BufferAttributesNew(
    TRITONSERVER_BufferAttributes **buffer_attributes);

/* Not those that belong to a tensor. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_BufferAttributesDelete(
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* Of GPU memory: the device. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(
    TRITONSERVER_BufferAttributes *buffer_attributes, int64_t memory_type_id);

/* CPU, pinned CPU or GPU memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(
    TRITONSERVER_BufferAttributes *buffer_attributes,
    TRITONSERVER_MemoryType memory_type);

/* Copies the 64 bytes of a handle; NULL: there is none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(
    TRITONSERVER_BufferAttributes *buffer_attributes, void *cuda_ipc_handle);

/* How long the buffer is. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(
    TRITONSERVER_BufferAttributes *buffer_attributes, size_t byte_size);

/* 0 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(
    TRITONSERVER_BufferAttributes *buffer_attributes, int64_t *memory_type_id);

/* CPU by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(
    TRITONSERVER_BufferAttributes *buffer_attributes,
    TRITONSERVER_MemoryType *memory_type);

/* The object's own copy; NULL when unset. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(
    TRITONSERVER_BufferAttributes *buffer_attributes, void **cuda_ipc_handle);

/* 0 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(
    TRITONSERVER_BufferAttributes *buffer_attributes, size_t *byte_size);

/* ---- Server options: set on one thread, then given to ServerNew */

/* With defaults; the caller deletes them, also after ServerNew. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerOptionsNew(
    TRITONSERVER_ServerOptions **options);

/* The server has its own copy. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerOptionsDelete(
    TRITONSERVER_ServerOptions *options);

/* The name in the server's metadata; "triton" by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(
    TRITONSERVER_ServerOptions *options, const char *server_id);

/* Adds a repository; the same path twice counts once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    TRITONSERVER_ServerOptions *options, const char *model_repository_path);

/* The model control mode; POLL by default. INVALID_ARG: unknown mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(
    TRITONSERVER_ServerOptions *options, TRITONSERVER_ModelControlMode mode);

/* Adds a model to load at start in EXPLICIT mode; "*" means all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(
    TRITONSERVER_ServerOptions *options, const char *model_name);

/* false lets backends complete configurations; true by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(
    TRITONSERVER_ServerOptions *options, bool strict);

/* The name of a custom configuration file to prefer over the usual one. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(
    TRITONSERVER_ServerOptions *options, const char *model_config_name);

/* OFF by default. INVALID_ARG: unknown mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(
    TRITONSERVER_ServerOptions *options, TRITONSERVER_RateLimitMode mode);

/* Copies of a resource on a device, -1 for each device; of repeated counts the
   smaller is kept. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(
    TRITONSERVER_ServerOptions *options, const char *resource_name,
    const size_t resource_count, const int device);

/* 256 MiB by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, uint64_t size);

/* Per device; 64 MiB by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, uint64_t size);

/* Address space of growable device memory, per device; 1 GiB by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device,
    size_t cuda_virtual_address_size);

/* The cache "local" of that size; 0 is ignored. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
    TRITONSERVER_ServerOptions *options, uint64_t size);

/* Chooses a cache and hands it config_json, unread. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(
    TRITONSERVER_ServerOptions *options, const char *cache_name,
    const char *config_json);

/* Where cache libraries are, each in a directory of its name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(
    TRITONSERVER_ServerOptions *options, const char *cache_dir);

/* GPUs below it are not used. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    TRITONSERVER_ServerOptions *options, double cc);

/* true, the default, makes ServerNew fail if initialisation does. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitOnError(
    TRITONSERVER_ServerOptions *options, bool exit);

/* true, the default: ready only if every model is. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(
    TRITONSERVER_ServerOptions *options, bool strict);

/* How many seconds ServerStop waits; 30 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(
    TRITONSERVER_ServerOptions *options, unsigned int timeout);

/* Threads that copy tensors; 0 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(
    TRITONSERVER_ServerOptions *options, unsigned int thread_count);

/* Models loaded at the same time; 4 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
    TRITONSERVER_ServerOptions *options, unsigned int thread_count);

/* Further attempts at a model that fails to load; 0 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    TRITONSERVER_ServerOptions *options, unsigned int retry_count);

/* Whether repositories may hold models of the same name; false by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(
    TRITONSERVER_ServerOptions *options, bool enable_namespace);

/* Whether GPUs may read each other's memory; false by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    TRITONSERVER_ServerOptions *options, bool enable_peer_access);

/* Where log lines go. Log settings are of the process and act at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFile(
    TRITONSERVER_ServerOptions *options, const char *file);

/* On or off, for the process, at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogInfo(
    TRITONSERVER_ServerOptions *options, bool log);

/* On or off, for the process, at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogWarn(
    TRITONSERVER_ServerOptions *options, bool log);

/* On or off, for the process, at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogError(
    TRITONSERVER_ServerOptions *options, bool log);

/* Of the process, at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFormat(
    TRITONSERVER_ServerOptions *options, const TRITONSERVER_LogFormat format);

/* 0 is off; higher says more. Of the process, at once. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogVerbose(
    TRITONSERVER_ServerOptions *options, int level);

/* Whether metrics are kept; true by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(
    TRITONSERVER_ServerOptions *options, bool metrics);

/* Whether those of GPUs are; needs metrics. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(
    TRITONSERVER_ServerOptions *options, bool gpu_metrics);

/* Whether those of the machine are; needs metrics. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(
    TRITONSERVER_ServerOptions *options, bool cpu_metrics);

/* How often polled metrics are read, in ms; 2000 by default. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(
    TRITONSERVER_ServerOptions *options, uint64_t metrics_interval_ms);

/* Where backends are, each in a directory of its name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(
    TRITONSERVER_ServerOptions *options, const char *backend_dir);

/* Where repository agents are, each in a directory of its name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    TRITONSERVER_ServerOptions *options, const char *repoagent_dir);

/* The fraction of a GPU's memory, 0 to 1, above which no model is loaded
   there. INVALID_ARG: another kind, a negative id or a fraction out of
   range. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    TRITONSERVER_ServerOptions *options,
    const TRITONSERVER_InstanceGroupKind kind, const int device_id,
    const double fraction);

/* A setting handed to one backend; an empty backend_name hands it to all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(
    TRITONSERVER_ServerOptions *options, const char *backend_name,
    const char *setting, const char *value);

/* The setting "numa-node" or "cpu-cores" of a policy. UNSUPPORTED: another
   setting. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(
    TRITONSERVER_ServerOptions *options, const char *policy_name,
    const char *setting, const char *value);

/* A setting of one kind of metrics, or with an empty name of all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(
    TRITONSERVER_ServerOptions *options, const char *name,
    const char *setting, const char *value);

/* ---- Server: any thread, also from inside a backend */

/* Loads what is to be loaded before it returns; a model that fails does not
   make it fail. The caller owns the server; ServerDelete ends it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerNew(
    TRITONSERVER_Server **server, TRITONSERVER_ServerOptions *options);

/* Stops it, finalizes the backends and frees it. An error of the stop is
   returned and the server lives on. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerDelete(
    TRITONSERVER_Server *server);

/* Rejects new requests, waits for those in flight and unloads all models, which
   requests and responses that were not deleted keep loaded. INTERNAL: the exit
   timeout has passed; another stop waits again. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerStop(
    TRITONSERVER_Server *server);

/* Seconds that the next stop waits. NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerSetExitTimeout(
    TRITONSERVER_Server *server, unsigned int timeout);

/* Adds a repository, in EXPLICIT mode only; the mapping gives directories (a
   parameter's name) other model names (its string). Names and parameters stay
   the caller's. UNSUPPORTED: another mode. ALREADY_EXISTS: the repository, or
   a mapping to that name. INVALID_ARG: it can't be listed. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(
    TRITONSERVER_Server *server, const char *repository_path,
    const TRITONSERVER_Parameter **name_mapping, const uint32_t mapping_count);

/* Its models stay until they are unloaded. UNSUPPORTED: not in EXPLICIT
   mode. INVALID_ARG: it is not registered. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnregisterModelRepository(
    TRITONSERVER_Server *server, const char *repository_path);

/* Looks for changes and acts on them before it returns. UNAVAILABLE: not in
   POLL mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerPollModelRepository(
    TRITONSERVER_Server *server);

/* UNAVAILABLE while the server is stopping. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsLive(
    TRITONSERVER_Server *server, bool *live);

/* Whether it takes requests and, with strict readiness, every model is ready.
   UNAVAILABLE while it is stopping. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsReady(
    TRITONSERVER_Server *server, bool *ready);

/* Asks the instances too, for a few seconds at most. A model or version that
   does not serve is not ready, without an error. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerModelIsReady(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, bool *ready);

/* *flags is a TRITONSERVER_ModelBatchFlag. voidp may be NULL and is set to
   NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelBatchProperties(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, uint32_t *flags, void **voidp);

/* *txn_flags is a TRITONSERVER_ModelTxnPropertyFlag. voidp may be NULL and is
   set to NULL. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelTransactionProperties(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, uint32_t *txn_flags, void **voidp);

/* Name, version and extensions as JSON; the caller deletes the message. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerMetadata(
    TRITONSERVER_Server *server, TRITONSERVER_Message **server_metadata);

/* Versions, inputs and outputs as JSON; the caller deletes the message. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerModelMetadata(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, TRITONSERVER_Message **model_metadata);

/* As JSON, of one model or, with an empty name, of all; the caller deletes the
   message. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerModelStatistics(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, TRITONSERVER_Message **model_stats);

/* The complete configuration as JSON; the caller deletes the message.
   INVALID_ARG: config_version is not 1. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerModelConfig(
    TRITONSERVER_Server *server, const char *model_name,
    const int64_t model_version, const uint32_t config_version,
    TRITONSERVER_Message **model_config);

/* Every model of the repositories with its state as JSON; flag READY leaves
   out the others. The caller deletes the message. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerModelIndex(
    TRITONSERVER_Server *server, uint32_t flags,
    TRITONSERVER_Message **model_index);

/* Loads or reloads, and returns when that is done. UNAVAILABLE: not in
   EXPLICIT mode. INVALID_ARG: a version failed, with the reasons. INTERNAL: no
   repository has it. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(
    TRITONSERVER_Server *server, const char *model_name);

/* With "config" (STRING, a JSON configuration) and then "file:<path>" (BYTES,
   a file of the model's directory) in place of what the repository says.
   INVALID_ARG: other parameters. Errors as ServerLoadModel. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(
    TRITONSERVER_Server *server, const char *model_name,
    const TRITONSERVER_Parameter **parameters, const uint64_t parameter_count);

/* Returns once unloading has begun; requests in flight are finished.
   UNAVAILABLE: not in EXPLICIT mode. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerUnloadModel(
    TRITONSERVER_Server *server, const char *model_name);

/* Also the models that only it needed. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModelAndDependents(
    TRITONSERVER_Server *server, const char *model_name);

/* A handle, which the caller ends with MetricsDelete; the numbers are read
   when it is formatted, after the server's end those of the program's own
   metrics alone. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerMetrics(
    TRITONSERVER_Server *server, TRITONSERVER_Metrics **metrics);

/*
 * On success the request is the core's until its release callback, and the
 * trace (may be NULL) until its release function; callbacks may run before
 * this returns. On error both stay the caller's and the request's callbacks
 * are not called; a trace that was taken already comes back through its
 * release function. INVALID_ARG: the request does not fit the model.
 * UNAVAILABLE: queue full or stopping.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerInferAsync(
    TRITONSERVER_Server *server,
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceTrace *trace);

/* ---- Metrics of one's own: process-wide, without a server, any thread */

/* The caller deletes the object. The same name and kind again gives another
   object of the same family, with the first description. Names are
   Prometheus's. INVALID_ARG: other kind, bad name. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(
    TRITONSERVER_MetricFamily **family, const TRITONSERVER_MetricKind kind,
    const char *name, const char *description);

/* INTERNAL, and nothing is deleted, while metrics made from this object are
   alive. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(
    TRITONSERVER_MetricFamily *family);

/* The kind it was made with. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_GetMetricFamilyKind(
    TRITONSERVER_MetricFamily *family, TRITONSERVER_MetricKind *kind);

/* The arguments of a metric beside its labels; the caller deletes it, also
   right after the metric was made. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricArgsNew(
    TRITONSERVER_MetricArgs **args);

/* Copies the upper bounds of the buckets, which must rise; "+Inf" is added. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricArgsSetHistogram(
    TRITONSERVER_MetricArgs *args, const double *buckets,
    const uint64_t buckets_count);

/* NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricArgsDelete(
    TRITONSERVER_MetricArgs *args);

/* MetricNewWithArgs with args NULL: for counters and gauges. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricNew(
    TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_Parameter **labels, const uint64_t label_count);

/*
 * Labels are STRING parameters; they and args stay the caller's. Metrics of
 * equal labels share one value, which ends with the last of them. The caller
 * deletes the metric before its family. INVALID_ARG: a label of another type
 * or with a bad name, buckets missing or not wanted.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricNewWithArgs(
    TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
    const TRITONSERVER_Parameter **labels, const uint64_t label_count,
    const TRITONSERVER_MetricArgs *args);

/* NULL is accepted. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricDelete(
    TRITONSERVER_Metric *metric);

/* UNSUPPORTED: a histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricValue(
    TRITONSERVER_Metric *metric, double *value);

/* A counter takes no negative value (INVALID_ARG), a gauge any. UNSUPPORTED: a
   histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricIncrement(
    TRITONSERVER_Metric *metric, double value);

/* UNSUPPORTED: not a gauge. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricSet(
    TRITONSERVER_Metric *metric, double value);

/* Counts value in its bucket. UNSUPPORTED: not a histogram. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricObserve(
    TRITONSERVER_Metric *metric, double value);

/* The kind of its family. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_GetMetricKind(
    TRITONSERVER_Metric *metric, TRITONSERVER_MetricKind *kind);

#ifdef __cplusplus
}
#endif

#endif /* TRITON_CORE_TRITONSERVER_H */
