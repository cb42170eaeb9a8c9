/*
 * declarations.c - compares what core/tensor/cuda_functions.h and
 * backends/common/gpu_driver_functions.h say of the CUDA driver with the
 * toolkit's own header, where there is one.  Values and sizes by the compiler, names
 * when it runs; needs no driver.
 */

#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "backends/common/gpu_driver_functions.h"
#include "core/tensor/cuda_functions.h"

#define SAME(ours, theirs) \
    _Static_assert((int) (ours) == (int) (theirs), #theirs)
#define SIZE(ours, theirs) \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)

SAME(INF_CU_SUCCESS, CUDA_SUCCESS);
SAME(INF_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(INF_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(INF_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(INF_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(INF_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(INF_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(INF_CU_PEER_UNSUPPORTED, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME(INF_CU_PEER_ALREADY_ON, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(INF_CU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(INF_CU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(INF_CU_PINS_READ_ONLY,
    CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
SAME(INF_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(INF_CU_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(INF_CU_HOST_READ_ONLY, CU_MEMHOSTREGISTER_READ_ONLY);
SAME(INF_CU_STREAM_NON_BLOCK, CU_STREAM_NON_BLOCKING);
SAME(INF_CU_IPC_LAZY_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

SAME(INF_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(INF_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(INF_CU_ACCESS_BOTH, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(INF_CU_GRANULARITY_LEAST, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

SIZE(inf_cu_ptr_t, CUdeviceptr);
SIZE(inf_cu_handle_t, CUmemGenericAllocationHandle);
SIZE(inf_cu_location_t, CUmemLocation);
SIZE(inf_cu_allocation_t, CUmemAllocationProp);
SIZE(inf_cu_access_t, CUmemAccessDesc);
SIZE(inf_cu_result_t, CUresult);
SIZE(inf_cu_context_t, CUcontext);
SIZE(inf_cu_stream_t, CUstream);
SIZE(inf_cu_ipc_t, CUipcMemHandle);
SIZE(inf_cu_uuid_t, CUuuid);
SIZE(int, CUdevice);
SIZE(int, CUdevice_attribute);

SAME(GPU_SUCCESS, CUDA_SUCCESS);
SAME(GPU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GPU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(GPU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(GPU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(GPU_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(GPU_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(GPU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(GPU_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(GPU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(GPU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(GPU_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(GPU_MAX_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(GPU_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(GPU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(GPU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(GPU_SHARED_PER_BLOCK_OPTIN,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(GPU_FUNCTION_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(GPU_FUNCTION_SHARED_STATIC, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(GPU_FUNCTION_MAX_DYNAMIC,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(GPU_JIT_INFO_LOG, CU_JIT_INFO_LOG_BUFFER);
SAME(GPU_JIT_INFO_LOG_SIZE, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(GPU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(GPU_JIT_ERROR_LOG_SIZE, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC);
SAME(GPU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(GPU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(GPU_IPC_LAZY_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

SIZE(gpu_ptr_t, CUdeviceptr);
SIZE(gpu_result_t, CUresult);
SIZE(gpu_context_t, CUcontext);
SIZE(gpu_stream_t, CUstream);
SIZE(gpu_event_t, CUevent);
SIZE(gpu_module_t, CUmodule);
SIZE(gpu_function_t, CUfunction);
SIZE(gpu_graph_t, CUgraph);
SIZE(gpu_graph_exec_t, CUgraphExec);
SIZE(gpu_ipc_t, CUipcMemHandle);

/* The header's macros make the exported name of a function. */
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static int compare(const char *const *ours, const char *const *theirs,
    size_t count);

int
main(void)
{
    static const char *const core[] = {
#define ROW(field, symbol, parameters) #symbol,
        INF_CU_FUNCTIONS(ROW)
    };
    static const char *const for_core[] = {
        NAME_OF(cuInit), NAME_OF(cuGetErrorName), NAME_OF(cuGetErrorString),
        NAME_OF(cuDeviceGetCount), NAME_OF(cuDeviceGet),
        NAME_OF(cuDeviceGetName), NAME_OF(cuDeviceGetUuid),
        NAME_OF(cuDeviceGetAttribute), NAME_OF(cuDevicePrimaryCtxRetain),
        NAME_OF(cuDevicePrimaryCtxRelease), NAME_OF(cuCtxPushCurrent),
        NAME_OF(cuCtxPopCurrent), NAME_OF(cuDeviceCanAccessPeer),
        NAME_OF(cuCtxEnablePeerAccess), NAME_OF(cuMemGetInfo),
        NAME_OF(cuMemAlloc), NAME_OF(cuMemFree), NAME_OF(cuMemHostAlloc),
        NAME_OF(cuMemFreeHost), NAME_OF(cuMemHostRegister),
        NAME_OF(cuMemHostUnregister), NAME_OF(cuStreamCreate),
        NAME_OF(cuStreamDestroy), NAME_OF(cuStreamSynchronize),
        NAME_OF(cuMemcpyHtoDAsync), NAME_OF(cuMemcpyDtoHAsync),
        NAME_OF(cuMemcpyDtoDAsync), NAME_OF(cuMemcpyPeerAsync),
        NAME_OF(cuMemsetD8Async), NAME_OF(cuIpcGetMemHandle),
        NAME_OF(cuIpcOpenMemHandle), NAME_OF(cuIpcCloseMemHandle),
        NAME_OF(cuMemGetAddressRange),
        NAME_OF(cuMemGetAllocationGranularity), NAME_OF(cuMemAddressReserve),
        NAME_OF(cuMemAddressFree), NAME_OF(cuMemCreate),
        NAME_OF(cuMemRelease), NAME_OF(cuMemMap), NAME_OF(cuMemUnmap),
        NAME_OF(cuMemSetAccess)
    };
    static const char *const backend[] = {
        GPU_FUNCTIONS(ROW)
        GPU_IPC_FUNCTIONS(ROW)
        GPU_LATER_FUNCTIONS(ROW)
    };
    static const char *const for_backend[] = {
        NAME_OF(cuInit), NAME_OF(cuDriverGetVersion), NAME_OF(cuGetErrorName),
        NAME_OF(cuGetErrorString), NAME_OF(cuDeviceGetCount),
        NAME_OF(cuDeviceGet), NAME_OF(cuDeviceGetAttribute),
        NAME_OF(cuDevicePrimaryCtxRetain), NAME_OF(cuDevicePrimaryCtxRelease),
        NAME_OF(cuCtxPushCurrent), NAME_OF(cuCtxPopCurrent),
        NAME_OF(cuCtxSynchronize), NAME_OF(cuModuleLoadDataEx), NAME_OF(cuModuleUnload),
        NAME_OF(cuModuleGetFunction), NAME_OF(cuFuncGetAttribute),
        NAME_OF(cuFuncSetAttribute), NAME_OF(cuLaunchKernel),
        NAME_OF(cuMemGetInfo), NAME_OF(cuMemAlloc), NAME_OF(cuMemFree),
        NAME_OF(cuMemcpyHtoDAsync), NAME_OF(cuMemcpyDtoHAsync),
        NAME_OF(cuMemcpyDtoDAsync), NAME_OF(cuMemcpyPeerAsync), NAME_OF(cuMemsetD8Async),
        NAME_OF(cuStreamCreate), NAME_OF(cuStreamDestroy),
        NAME_OF(cuStreamSynchronize), NAME_OF(cuStreamQuery),
        NAME_OF(cuEventCreate), NAME_OF(cuEventDestroy),
        NAME_OF(cuEventRecord), NAME_OF(cuEventQuery),
        NAME_OF(cuEventSynchronize), NAME_OF(cuStreamBeginCapture),
        NAME_OF(cuStreamEndCapture), NAME_OF(cuGraphInstantiateWithFlags),
        NAME_OF(cuGraphLaunch), NAME_OF(cuGraphDestroy),
        NAME_OF(cuGraphExecDestroy), NAME_OF(cuIpcGetMemHandle),
        NAME_OF(cuIpcOpenMemHandle), NAME_OF(cuIpcCloseMemHandle),
        NAME_OF(cuFuncGetParamInfo)
    };

    _Static_assert(COUNT(core) == COUNT(for_core), "rows of the core");
    _Static_assert(COUNT(backend) == COUNT(for_backend), "rows of the backend");
    int wrong = compare(core, for_core, COUNT(core))
        + compare(backend, for_backend, COUNT(backend));

    printf("declarations: %zu functions of the core, %zu of backend cuda, CUDA"
        " %d\n", COUNT(core), COUNT(backend), CUDA_VERSION);
    return wrong != 0;
}

static int
compare(const char *const *ours, const char *const *theirs, size_t count)
{
    int wrong = 0;

    for (size_t i = 0; i < count; i++) {
        /* of this one the name without a version still is exported, too */
        if (strcmp(ours[i], theirs[i]) != 0
            && strcmp(ours[i], "cuDeviceGetUuid") != 0)
        {
            printf("%s is called %s in cuda.h\n", ours[i], theirs[i]);
            wrong++;
        }
    }

    return wrong;
}
