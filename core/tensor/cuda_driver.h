/*
 * cuda_driver.h - the functions of the CUDA driver that the core uses, from a
 *                 library opened at run time.
 *
 * Owner    The memory manager opens one driver.  Contexts, memory and streams
 *          are released before close.
 * Thread   open, use, close: one; the rest: any.
 * Units    bytes; devices by the driver's numbers.
 * Errors   NOT_FOUND: no such library.  UNAVAILABLE: a device out of memory,
 *          or one that is not in use.  INTERNAL, UNSUPPORTED: the driver's
 *          error; its name and text are in the message.
 * Route    memory.c, copy.c -> [driver] -> libcuda.so.1
 *
 * The core is not linked to the driver and needs none of its headers.
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

/* Loads the library, starts the driver and reads the devices. */
INF_CHECK inf_err_t *inf_cuda_open(const char *library, inf_cuda_t **out);

/* Releases the contexts; cuda may be NULL.  The library stays loaded: its
   threads and backends may use it. */
void inf_cuda_close(inf_cuda_t *cuda);

/* The number of devices the driver has for this process. */
int inf_cuda_device_count(const inf_cuda_t *cuda);

/* NULL: no such device. */
const inf_cuda_device_t *inf_cuda_device(const inf_cuda_t *cuda,
    int64_t device);

/* NULL: usable.  Otherwise the reason why even its properties cannot be
   read. */
const char *inf_cuda_device_fault(const inf_cuda_t *cuda, int64_t device);

/* Retains the device's primary context, which the functions below need. */
INF_CHECK inf_err_t *inf_cuda_use(inf_cuda_t *cuda, int64_t device);

/*
 * A device counts as failed if a call fails and then an unrelated query of the
 * driver fails too: a kernel has corrupted the context, or the device is lost.
 * No call succeeds any more in this process.  check makes the query, after a
 * failure met by a backend: UNAVAILABLE with the reason; a failed query alone
 * is not a failure of the device.  failure is the reason if already known,
 * from any call; NULL: none.
 */
INF_CHECK inf_err_t *inf_cuda_check(inf_cuda_t *cuda, int64_t device);
const char *inf_cuda_failure(const inf_cuda_t *cuda, int64_t device);

/* Lets kernels and copies on device access peer's memory directly; succeeds if
   they already can.  UNSUPPORTED: the hardware cannot. */
INF_CHECK inf_err_t *inf_cuda_reach_peer(inf_cuda_t *cuda, int64_t device,
    int64_t peer);

/* Free and total memory. */
INF_CHECK inf_err_t *inf_cuda_memory_info(inf_cuda_t *cuda, int64_t device,
    uint64_t *free_bytes, uint64_t *total_bytes);

/* Allocate and free memory of a device in use. */
INF_CHECK inf_err_t *inf_cuda_alloc(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free(inf_cuda_t *cuda, int64_t device,
    void *base);

/* Allocate and free host memory that every device can access directly; device:
   any in use. */
INF_CHECK inf_err_t *inf_cuda_alloc_pinned(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free_pinned(inf_cuda_t *cuda, int64_t device,
    void *base);

/* Pin and unpin existing memory (whole pages).  read_only: no device writes to
   it, so it may be mapped read-only. */
INF_CHECK inf_err_t *inf_cuda_pin(inf_cuda_t *cuda, int64_t device,
    void *base, uint64_t size, bool read_only);
INF_CHECK inf_err_t *inf_cuda_unpin(inf_cuda_t *cuda, int64_t device,
    void *base);

/* A queue of copies on device; sync waits until all are done. */
INF_CHECK inf_err_t *inf_cuda_stream_new(inf_cuda_t *cuda, int64_t device,
    void **out);
INF_CHECK inf_err_t *inf_cuda_stream_free(inf_cuda_t *cuda, int64_t device,
    void *stream);
INF_CHECK inf_err_t *inf_cuda_stream_sync(inf_cuda_t *cuda, int64_t device,
    void *stream);

/* Queues a copy on device's stream.  to, from: devices or INF_CUDA_HOST; at
   least one is a device, and one is the stream's. */
INF_CHECK inf_err_t *inf_cuda_copy(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, int64_t to, const void *src, int64_t from,
    uint64_t size);

/* Queues a fill of device memory with zeros. */
INF_CHECK inf_err_t *inf_cuda_zero(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, uint64_t size);

/* An address range on device that gets memory later: the size unit, the range,
   memory for a part of it, and their release. */
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

/* A handle, for another process, of the allocation that begins at base. */
INF_CHECK inf_err_t *inf_cuda_ipc_get(inf_cuda_t *cuda, int64_t device,
    void *base, uint8_t handle[INF_CUDA_IPC_SIZE]);

/* Maps memory of another process; close when it is no longer used. */
INF_CHECK inf_err_t *inf_cuda_ipc_open(inf_cuda_t *cuda, int64_t device,
    const uint8_t handle[INF_CUDA_IPC_SIZE], void **out);
INF_CHECK inf_err_t *inf_cuda_ipc_close(inf_cuda_t *cuda, int64_t device,
    void *base);

/* The number of bytes from at to the end of its allocation. */
INF_CHECK inf_err_t *inf_cuda_range(inf_cuda_t *cuda, int64_t device,
    const void *at, uint64_t *size);

#endif /* INF_TENSOR_CUDA_DRIVER_H */
