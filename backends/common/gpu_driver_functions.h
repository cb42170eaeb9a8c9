/*
 * gpu_driver_functions.h - types, numbers and functions of the CUDA driver
 *                          that backends call, declared here because the
 *                          toolkit's headers may be missing.
 *
 * Owner    nobody: declarations.
 * Thread   none.
 * Units    as the driver's.
 * Errors   none.
 * Route    gpu_functions.c looks the functions up by these rows; the fake
 *          driver in t/cuda-fake defines them; t/gpu/declarations.c compares
 *          them with the toolkit's header where there is one.
 */

#ifndef GPU_DRIVER_FUNCTIONS_H
#define GPU_DRIVER_FUNCTIONS_H

#include <stddef.h>

typedef unsigned long long gpu_ptr_t;            /* an address on a device    */
typedef int                gpu_result_t;
typedef void              *gpu_context_t;
typedef void              *gpu_stream_t;
typedef void              *gpu_event_t;
typedef void              *gpu_module_t;
typedef void              *gpu_function_t;
typedef void              *gpu_graph_t;
typedef void              *gpu_graph_exec_t;

typedef struct {
    unsigned char bytes[64];
} gpu_ipc_t;                                     /* memory of another process */

enum {
    GPU_SUCCESS                 = 0,
    GPU_INVALID_VALUE           = 1,
    GPU_OUT_OF_MEMORY           = 2,
    GPU_NO_DEVICE               = 100,
    GPU_INVALID_DEVICE          = 101,
    GPU_INVALID_IMAGE           = 200,
    GPU_NO_BINARY_FOR_GPU       = 209,
    GPU_INVALID_PTX             = 218,
    GPU_UNSUPPORTED_PTX         = 222,           /* driver older than toolkit */
    GPU_NOT_FOUND               = 500,
    GPU_NOT_READY               = 600,
    GPU_ILLEGAL_ADDRESS         = 700,           /* from here on sticky       */
    GPU_LAUNCH_OUT_OF_RESOURCES = 701,           /* not sticky                */
    GPU_LAUNCH_TIMEOUT          = 702,
    GPU_LAUNCH_FAILED           = 719,

    GPU_MAX_THREADS_PER_BLOCK   = 1,             /* device attributes         */
    GPU_MAX_GRID_X              = 5,             /* 6: y, 7: z                */
    GPU_SHARED_PER_BLOCK        = 8,
    GPU_CAPABILITY_MAJOR        = 75,
    GPU_CAPABILITY_MINOR        = 76,
    GPU_SHARED_PER_BLOCK_OPTIN  = 97,

    GPU_FUNCTION_MAX_THREADS    = 0,             /* function attributes       */
    GPU_FUNCTION_SHARED_STATIC  = 1,
    GPU_FUNCTION_MAX_DYNAMIC    = 8,

    GPU_JIT_INFO_LOG            = 3,             /* options of a module       */
    GPU_JIT_INFO_LOG_SIZE       = 4,
    GPU_JIT_ERROR_LOG           = 5,
    GPU_JIT_ERROR_LOG_SIZE      = 6,

    GPU_STREAM_NON_BLOCKING     = 1,
    GPU_EVENT_BLOCKING          = 1,
    GPU_EVENT_NO_TIMING         = 2,
    GPU_CAPTURE_THREAD_LOCAL    = 1,
    GPU_IPC_LAZY_PEER           = 1
};

/* field, exported name, parameters; every one returns gpu_result_t */
#define GPU_FUNCTIONS(ROW)                                                    \
    ROW(init, cuInit, (unsigned flags))                                      \
    ROW(driver_version, cuDriverGetVersion, (int *version))                  \
    ROW(error_name, cuGetErrorName, (gpu_result_t rc, const char **text))     \
    ROW(error_string, cuGetErrorString, (gpu_result_t rc,                     \
        const char **text))                                                  \
    ROW(device_count, cuDeviceGetCount, (int *count))                        \
    ROW(device_get, cuDeviceGet, (int *device, int ordinal))                 \
    ROW(device_attribute, cuDeviceGetAttribute, (int *value,                 \
        int attribute, int device))                                          \
    ROW(context_retain, cuDevicePrimaryCtxRetain, (gpu_context_t *context,    \
        int device))                                                         \
    ROW(context_release, cuDevicePrimaryCtxRelease_v2, (int device))         \
    ROW(context_push, cuCtxPushCurrent_v2, (gpu_context_t context))           \
    ROW(context_pop, cuCtxPopCurrent_v2, (gpu_context_t *context))            \
    ROW(context_sync, cuCtxSynchronize, (void))                               \
    ROW(module_load, cuModuleLoadDataEx, (gpu_module_t *module,               \
        const void *image, unsigned count, int *options, void **values))     \
    ROW(module_unload, cuModuleUnload, (gpu_module_t module))                 \
    ROW(module_function, cuModuleGetFunction, (gpu_function_t *function,      \
        gpu_module_t module, const char *name))                               \
    ROW(function_attribute, cuFuncGetAttribute, (int *value,                 \
        int attribute, gpu_function_t function))                              \
    ROW(function_set, cuFuncSetAttribute, (gpu_function_t function,           \
        int attribute, int value))                                           \
    ROW(launch, cuLaunchKernel, (gpu_function_t function,                     \
        unsigned grid_x, unsigned grid_y, unsigned grid_z,                   \
        unsigned block_x, unsigned block_y, unsigned block_z,                \
        unsigned shared_bytes, gpu_stream_t stream, void **arguments,         \
        void **extra))                                                       \
    ROW(memory_info, cuMemGetInfo_v2, (size_t *free_bytes,                    \
        size_t *total_bytes))                                                 \
    ROW(alloc, cuMemAlloc_v2, (gpu_ptr_t *base, size_t size))                 \
    ROW(free, cuMemFree_v2, (gpu_ptr_t base))                                 \
    ROW(copy_to_device, cuMemcpyHtoDAsync_v2, (gpu_ptr_t dst,                 \
        const void *src, size_t size, gpu_stream_t stream))                   \
    ROW(copy_to_host, cuMemcpyDtoHAsync_v2, (void *dst, gpu_ptr_t src,        \
        size_t size, gpu_stream_t stream))                                    \
    ROW(copy_on_device, cuMemcpyDtoDAsync_v2, (gpu_ptr_t dst, gpu_ptr_t src,   \
        size_t size, gpu_stream_t stream))                                    \
    ROW(copy_to_peer, cuMemcpyPeerAsync, (gpu_ptr_t dst, gpu_context_t to,     \
        gpu_ptr_t src, gpu_context_t from, size_t size, gpu_stream_t stream))  \
    ROW(fill, cuMemsetD8Async, (gpu_ptr_t dst, unsigned char value,           \
        size_t size, gpu_stream_t stream))                                    \
    ROW(stream_create, cuStreamCreate, (gpu_stream_t *stream,                 \
        unsigned flags))                                                     \
    ROW(stream_destroy, cuStreamDestroy_v2, (gpu_stream_t stream))            \
    ROW(stream_sync, cuStreamSynchronize, (gpu_stream_t stream))              \
    ROW(stream_query, cuStreamQuery, (gpu_stream_t stream))                   \
    ROW(event_create, cuEventCreate, (gpu_event_t *event, unsigned flags))    \
    ROW(event_destroy, cuEventDestroy_v2, (gpu_event_t event))                \
    ROW(event_record, cuEventRecord, (gpu_event_t event,                      \
        gpu_stream_t stream))                                                 \
    ROW(event_query, cuEventQuery, (gpu_event_t event))                       \
    ROW(event_sync, cuEventSynchronize, (gpu_event_t event))                  \
    ROW(capture_begin, cuStreamBeginCapture_v2, (gpu_stream_t stream,         \
        int mode))                                                           \
    ROW(capture_end, cuStreamEndCapture, (gpu_stream_t stream,                \
        gpu_graph_t *graph))                                                  \
    ROW(graph_instantiate, cuGraphInstantiateWithFlags,                      \
        (gpu_graph_exec_t *exec, gpu_graph_t graph,                            \
        unsigned long long flags))                                           \
    ROW(graph_launch, cuGraphLaunch, (gpu_graph_exec_t exec,                  \
        gpu_stream_t stream))                                                 \
    ROW(graph_destroy, cuGraphDestroy, (gpu_graph_t graph))                   \
    ROW(graph_exec_destroy, cuGraphExecDestroy, (gpu_graph_exec_t exec))

/* Memory of one process in another. */
#define GPU_IPC_FUNCTIONS(ROW)                                                \
    ROW(ipc_get, cuIpcGetMemHandle, (gpu_ipc_t *handle, gpu_ptr_t base))      \
    ROW(ipc_open, cuIpcOpenMemHandle_v2, (gpu_ptr_t *base, gpu_ipc_t handle,  \
        unsigned flags))                                                     \
    ROW(ipc_close, cuIpcCloseMemHandle, (gpu_ptr_t base))

/* Functions that older drivers lack; NULL with such a driver. */
#define GPU_LATER_FUNCTIONS(ROW)                                              \
    ROW(parameter_info, cuFuncGetParamInfo, (gpu_function_t function,         \
        size_t index, size_t *offset, size_t *size))    /* 12.4 */

typedef struct {
#define GPU_FIELD(field, symbol, parameters)                                  \
    gpu_result_t (*field) parameters;
    GPU_FUNCTIONS(GPU_FIELD)
    GPU_IPC_FUNCTIONS(GPU_FIELD)
    GPU_LATER_FUNCTIONS(GPU_FIELD)
#undef GPU_FIELD
} gpu_functions_t;

#endif /* GPU_DRIVER_FUNCTIONS_H */
