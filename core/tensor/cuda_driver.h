/*
 * cuda_driver.h - the functions of the CUDA driver that the core uses.
 *
 * Owner    The memory manager opens one driver.  The callers release memory
 *          and streams before close; close releases the contexts.
 * Thread   open, use, close: one thread.  All others: any thread.
 * Units    bytes.  Devices have the driver's numbers.
 * Errors   NOT_FOUND: no such library.  UNAVAILABLE: the device is out of
 *          memory, or not in use.  INTERNAL, UNSUPPORTED: an error of the
 *          driver, whose name and text are in the message.
 * Route    memory.c, copy.c -> [driver] -> libcuda.so.1
 *
 * The library is opened at run time: the core is not linked to the driver, and
 * needs none of its headers.
 *
 * Order: open, then use for each device; a function with a device number needs
 * a device in use, except the first four below.
 */

#ifndef INF_TENSOR_CUDA_DRIVER_H
#define INF_TENSOR_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_CUDA_LIBRARY     "libcuda.so.1"
#define INF_CUDA_IPC_SIZE    64u
#define INF_CUDA_DEVICES_MAX 64u        /* further devices are ignored       */
#define INF_CUDA_HOST        (-1)       /* instead of a device               */

typedef struct inf_cuda_s inf_cuda_t;

typedef struct {
    char    name[128];
    char    uuid[48];           /* "GPU-...", as in the management library   */
    int     capability;         /* 10 * major + minor: 75 for 7.5            */
    bool    pins_read_only;     /* can pin host memory mapped read-only      */
} inf_cuda_device_t;

/* Opens the library, starts the driver and reads the devices' properties. */
INF_CHECK inf_err_t *inf_cuda_open(const char *library, inf_cuda_t **out);

/* Releases the contexts; cuda may be NULL.  The library stays loaded, because
   threads of the driver and backends may still run its code. */
void inf_cuda_close(inf_cuda_t *cuda);

/* The number of devices that the driver shows this process. */
int inf_cuda_device_count(const inf_cuda_t *cuda);

/* The properties of a device; NULL: no such device. */
const inf_cuda_device_t *inf_cuda_device(const inf_cuda_t *cuda,
    int64_t device);

/* Why the properties of a device could not be read; NULL: they were read. */
const char *inf_cuda_device_fault(const inf_cuda_t *cuda, int64_t device);

/* Takes the device into use: retains its primary context. */
INF_CHECK inf_err_t *inf_cuda_use(inf_cuda_t *cuda, int64_t device);

/*
 * A device has failed when a call fails and an unrelated query of the driver
 * fails after the call: a kernel has corrupted the context, or the device is
 * lost.  No later call of this process succeeds on a failed device.
 *
 * check makes that query after a backend has met a failure.  UNAVAILABLE, with
 * the reason: the device has failed.  failure returns the reason once any call
 * has found the device failed; NULL: not failed.
 */
INF_CHECK inf_err_t *inf_cuda_check(inf_cuda_t *cuda, int64_t device);
const char *inf_cuda_failure(const inf_cuda_t *cuda, int64_t device);

/* Lets kernels and copies on device access the memory of peer directly.  A
   repetition succeeds.  UNSUPPORTED: the hardware cannot. */
INF_CHECK inf_err_t *inf_cuda_reach_peer(inf_cuda_t *cuda, int64_t device,
    int64_t peer);

/* The free and the total memory of a device. */
INF_CHECK inf_err_t *inf_cuda_memory_info(inf_cuda_t *cuda, int64_t device,
    uint64_t *free_bytes, uint64_t *total_bytes);

/* Allocate and free memory of a device. */
INF_CHECK inf_err_t *inf_cuda_alloc(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free(inf_cuda_t *cuda, int64_t device,
    void *base);

/* Allocate and free host memory that all devices access directly; device: any
   one in use. */
INF_CHECK inf_err_t *inf_cuda_alloc_pinned(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free_pinned(inf_cuda_t *cuda, int64_t device,
    void *base);

/* Pin and unpin whole pages of existing memory.  read_only: no device writes to
   the pages, which may be mapped read-only. */
INF_CHECK inf_err_t *inf_cuda_pin(inf_cuda_t *cuda, int64_t device,
    void *base, uint64_t size, bool read_only);
INF_CHECK inf_err_t *inf_cuda_unpin(inf_cuda_t *cuda, int64_t device,
    void *base);

/* A stream is a queue of copies; sync waits until all copies are done. */
INF_CHECK inf_err_t *inf_cuda_stream_new(inf_cuda_t *cuda, int64_t device,
    void **out);
INF_CHECK inf_err_t *inf_cuda_stream_free(inf_cuda_t *cuda, int64_t device,
    void *stream);
INF_CHECK inf_err_t *inf_cuda_stream_sync(inf_cuda_t *cuda, int64_t device,
    void *stream);

/* Queues a copy on a stream of device.  to and from are devices or
   INF_CUDA_HOST; one of them is the stream's device. */
INF_CHECK inf_err_t *inf_cuda_copy(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, int64_t to, const void *src, int64_t from,
    uint64_t size);

/* Queues a fill of device memory with zeros. */
INF_CHECK inf_err_t *inf_cuda_zero(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, uint64_t size);

/*
 * An address range on a device, which gets memory later.  granule: the unit of
 * all sizes.  reserve, unreserve: the range without memory.  back, unback:
 * memory for a part of the range.
 */
INF_CHECK inf_err_t *inf_cuda_granule(inf_cuda_t *cuda, int64_t device,
    uint64_t *out);
INF_CHECK inf_err_t *inf_cuda_reserve(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_unreserve(inf_cuda_t *cuda, int64_t device,
    void *base, uint64_t size);
INF_CHECK inf_err_t *inf_cuda_back(inf_cuda_t *cuda, int64_t device,
    void *at, uint64_t size);
INF_CHECK inf_err_t *inf_cuda_unback(inf_cuda_t *cuda, int64_t device,
    void *at, uint64_t size);

/* The handle by which another process opens the allocation at base. */
INF_CHECK inf_err_t *inf_cuda_ipc_get(inf_cuda_t *cuda, int64_t device,
    void *base, uint8_t handle[INF_CUDA_IPC_SIZE]);

/* open maps memory of another process, close unmaps the memory. */
INF_CHECK inf_err_t *inf_cuda_ipc_open(inf_cuda_t *cuda, int64_t device,
    const uint8_t handle[INF_CUDA_IPC_SIZE], void **out);
INF_CHECK inf_err_t *inf_cuda_ipc_close(inf_cuda_t *cuda, int64_t device,
    void *base);

/* The number of bytes from at to the end of its allocation. */
INF_CHECK inf_err_t *inf_cuda_range(inf_cuda_t *cuda, int64_t device,
    const void *at, uint64_t *size);

#endif /* INF_TENSOR_CUDA_DRIVER_H */
