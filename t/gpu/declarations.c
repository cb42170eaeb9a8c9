/*
 * declarations.c - compares what core/tensor/cuda_functions.h says of the
 * CUDA driver with the toolkit's own header, where there is one.  Values and
 * sizes by the compiler, names when it runs; needs no driver.
 */

#include <cuda.h>
#include <stdio.h>
#include <string.h>

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
SAME(INF_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(INF_CU_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
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

/* The header's macros make the exported name of a function. */
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

int
main(void)
{
    static const char *const ours[] = {
#define ROW(field, symbol, parameters) #symbol,
        INF_CU_FUNCTIONS(ROW)
    };
    static const char *const theirs[] = {
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
    size_t count = sizeof(ours) / sizeof(ours[0]);
    int wrong = 0;

    _Static_assert(sizeof(ours) == sizeof(theirs), "rows");
    for (size_t i = 0; i < count; i++) {
        /* of this one the name without a version still is exported, too */
        if (strcmp(ours[i], theirs[i]) != 0
            && strcmp(ours[i], "cuDeviceGetUuid") != 0)
        {
            printf("%s is called %s in cuda.h\n", ours[i], theirs[i]);
            wrong++;
        }
    }

    printf("declarations: %zu functions, CUDA %d\n", count, CUDA_VERSION);
    return wrong != 0;
}
