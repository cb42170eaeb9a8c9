/*
 * cuda_functions.h - types, constants and functions of the CUDA driver,
 *                    declared here because the toolkit's headers may be
 *                    missing.
 *
 * Owner    none; declarations.
 * Thread   none.
 * Units    those of the driver.
 * Errors   none.
 * Route    cuda_driver.c looks up the functions by these rows; the fake driver
 *          in t defines them; t/gpu/declarations.c compares them with the
 *          toolkit's header, if present.
 */

#ifndef INF_TENSOR_CUDA_FUNCTIONS_H
#define INF_TENSOR_CUDA_FUNCTIONS_H

#include <stddef.h>

typedef unsigned long long inf_cu_ptr_t;        /* an address on a device    */
typedef int                inf_cu_result_t;
typedef void              *inf_cu_context_t;
typedef void              *inf_cu_stream_t;

typedef struct {
    unsigned char bytes[64];
} inf_cu_ipc_t;

typedef struct {
    char bytes[16];
} inf_cu_uuid_t;

typedef unsigned long long inf_cu_handle_t;     /* memory without an address */

typedef struct {
    int type;
    int id;
} inf_cu_location_t;

typedef struct {
    int               type;
    int               handle_types;
    inf_cu_location_t where;
    void             *other_systems;
    unsigned char     flags[8];
} inf_cu_allocation_t;

typedef struct {
    inf_cu_location_t where;
    int               flags;
} inf_cu_access_t;

enum {
    INF_CU_SUCCESS           = 0,
    INF_CU_INVALID_VALUE     = 1,
    INF_CU_OUT_OF_MEMORY     = 2,
    INF_CU_NOT_INITIALIZED   = 3,
    INF_CU_NO_DEVICE         = 100,
    INF_CU_INVALID_DEVICE    = 101,
    INF_CU_INVALID_CONTEXT   = 201,
    INF_CU_PEER_UNSUPPORTED  = 217,
    INF_CU_PEER_ALREADY_ON   = 704,

    INF_CU_CAPABILITY_MAJOR  = 75,              /* device attributes         */
    INF_CU_CAPABILITY_MINOR  = 76,
    INF_CU_PINS_READ_ONLY    = 113,

    INF_CU_HOST_PORTABLE     = 1,               /* pinned memory, both ways  */
    INF_CU_HOST_READ_ONLY    = 8,               /* pinned memory that devices
                                                   only read                 */
    INF_CU_STREAM_NON_BLOCK  = 1,
    INF_CU_IPC_LAZY_PEER     = 1,
    INF_CU_ALLOCATION_PINNED = 1,               /* memory that gets an       */
    INF_CU_LOCATION_DEVICE   = 1,               /* address later             */
    INF_CU_ACCESS_BOTH       = 3,
    INF_CU_GRANULARITY_LEAST = 0
};

/* field, exported name, parameters; every one returns inf_cu_result_t */
#define INF_CU_FUNCTIONS(ROW)                                                \
    ROW(init, cuInit, (unsigned flags))                                      \
    ROW(error_name, cuGetErrorName, (inf_cu_result_t rc,                     \
        const char **text))                                                  \
    ROW(error_string, cuGetErrorString, (inf_cu_result_t rc,                 \
        const char **text))                                                  \
    ROW(device_count, cuDeviceGetCount, (int *count))                        \
    ROW(device_get, cuDeviceGet, (int *device, int ordinal))                 \
    ROW(device_name, cuDeviceGetName, (char *name, int len, int device))     \
    ROW(device_uuid, cuDeviceGetUuid, (inf_cu_uuid_t *uuid, int device))     \
    ROW(device_attribute, cuDeviceGetAttribute, (int *value,                 \
        int attribute, int device))                                          \
    ROW(context_retain, cuDevicePrimaryCtxRetain,                            \
        (inf_cu_context_t *context, int device))                             \
    ROW(context_release, cuDevicePrimaryCtxRelease_v2, (int device))         \
    ROW(context_push, cuCtxPushCurrent_v2, (inf_cu_context_t context))       \
    ROW(context_pop, cuCtxPopCurrent_v2, (inf_cu_context_t *context))        \
    ROW(can_access_peer, cuDeviceCanAccessPeer, (int *can, int device,       \
        int peer))                                                           \
    ROW(enable_peer, cuCtxEnablePeerAccess, (inf_cu_context_t peer,          \
        unsigned flags))                                                     \
    ROW(memory_info, cuMemGetInfo_v2, (size_t *free_bytes,                   \
        size_t *total_bytes))                                                \
    ROW(alloc, cuMemAlloc_v2, (inf_cu_ptr_t *base, size_t size))             \
    ROW(free, cuMemFree_v2, (inf_cu_ptr_t base))                             \
    ROW(alloc_host, cuMemHostAlloc, (void **base, size_t size,               \
        unsigned flags))                                                     \
    ROW(free_host, cuMemFreeHost, (void *base))                              \
    ROW(register_host, cuMemHostRegister_v2, (void *base, size_t size,       \
        unsigned flags))                                                     \
    ROW(unregister_host, cuMemHostUnregister, (void *base))                  \
    ROW(stream_create, cuStreamCreate, (inf_cu_stream_t *stream,             \
        unsigned flags))                                                     \
    ROW(stream_destroy, cuStreamDestroy_v2, (inf_cu_stream_t stream))        \
    ROW(stream_sync, cuStreamSynchronize, (inf_cu_stream_t stream))          \
    ROW(copy_to_device, cuMemcpyHtoDAsync_v2, (inf_cu_ptr_t dst,             \
        const void *src, size_t size, inf_cu_stream_t stream))               \
    ROW(copy_to_host, cuMemcpyDtoHAsync_v2, (void *dst, inf_cu_ptr_t src,    \
        size_t size, inf_cu_stream_t stream))                                \
    ROW(copy_on_device, cuMemcpyDtoDAsync_v2, (inf_cu_ptr_t dst,             \
        inf_cu_ptr_t src, size_t size, inf_cu_stream_t stream))              \
    ROW(copy_to_peer, cuMemcpyPeerAsync, (inf_cu_ptr_t dst,                  \
        inf_cu_context_t to, inf_cu_ptr_t src, inf_cu_context_t from,        \
        size_t size, inf_cu_stream_t stream))                                \
    ROW(fill, cuMemsetD8Async, (inf_cu_ptr_t dst, unsigned char value,       \
        size_t size, inf_cu_stream_t stream))                                \
    ROW(ipc_get, cuIpcGetMemHandle, (inf_cu_ipc_t *handle,                   \
        inf_cu_ptr_t base))                                                  \
    ROW(ipc_open, cuIpcOpenMemHandle_v2, (inf_cu_ptr_t *base,                \
        inf_cu_ipc_t handle, unsigned flags))                                \
    ROW(ipc_close, cuIpcCloseMemHandle, (inf_cu_ptr_t base))                 \
    ROW(address_range, cuMemGetAddressRange_v2, (inf_cu_ptr_t *base,         \
        size_t *size, inf_cu_ptr_t at))                                      \
    ROW(granularity, cuMemGetAllocationGranularity, (size_t *granularity,    \
        const inf_cu_allocation_t *what, int option))                        \
    ROW(address_reserve, cuMemAddressReserve, (inf_cu_ptr_t *base,           \
        size_t size, size_t alignment, inf_cu_ptr_t at,                      \
        unsigned long long flags))                                           \
    ROW(address_free, cuMemAddressFree, (inf_cu_ptr_t base, size_t size))    \
    ROW(create, cuMemCreate, (inf_cu_handle_t *handle, size_t size,          \
        const inf_cu_allocation_t *what, unsigned long long flags))          \
    ROW(release, cuMemRelease, (inf_cu_handle_t handle))                     \
    ROW(map, cuMemMap, (inf_cu_ptr_t at, size_t size, size_t offset,         \
        inf_cu_handle_t handle, unsigned long long flags))                   \
    ROW(unmap, cuMemUnmap, (inf_cu_ptr_t at, size_t size))                   \
    ROW(set_access, cuMemSetAccess, (inf_cu_ptr_t at, size_t size,           \
        const inf_cu_access_t *who, size_t count))

typedef struct {
#define INF_CU_FIELD(field, symbol, parameters)                              \
    inf_cu_result_t (*field) parameters;
    INF_CU_FUNCTIONS(INF_CU_FIELD)
#undef INF_CU_FIELD
} inf_cu_functions_t;

#endif /* INF_TENSOR_CUDA_FUNCTIONS_H */
