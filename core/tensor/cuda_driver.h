/*
 * cuda_driver.h - the few functions of the CUDA driver that the core needs,
 *                 from a library found when the program runs.
 *
 * Owner    The memory manager opens one driver.  Contexts, memory and streams
 *          that it gives are given back before close.
 * Thread   open, use, close: one; the rest: any, each call on its own.
 * Units    bytes; devices by the number the driver counts them by.
 * Errors   NOT_FOUND: no such library.  UNAVAILABLE: a device out of memory,
 *          or one that is not in use.  INTERNAL, UNSUPPORTED: as the driver
 *          says; its name and text for the error are in the message.
 * Route    memory.c, copy.c -> [driver] -> libcuda.so.1
 *
 * Nothing is linked to the driver and none of its headers is needed.
 */

#ifndef INF_TENSOR_CUDA_DRIVER_H
#define INF_TENSOR_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_CUDA_LIBRARY     "libcuda.so.1"
#define INF_CUDA_IPC_SIZE    64u
#define INF_CUDA_DEVICES_MAX 64u        /* further ones are not seen         */
#define INF_CUDA_HOST        (-1)       /* as a device: no device            */

typedef struct inf_cuda_s inf_cuda_t;

typedef struct {
    char    name[128];
    char    uuid[48];           /* "GPU-...", as the management library says */
    int     capability;         /* 10 * major + minor: 75 for 7.5            */
    bool    pins_read_only;     /* host memory that is mapped read-only      */
} inf_cuda_device_t;

/* Loads the library, starts the driver, looks at the devices. */
INF_CHECK inf_err_t *inf_cuda_open(const char *library, inf_cuda_t **out);

/* Releases the contexts; cuda may be NULL.  The library stays loaded: its own
   threads and backends may use it. */
void inf_cuda_close(inf_cuda_t *cuda);

/* Devices that the driver has for this process. */
int inf_cuda_device_count(const inf_cuda_t *cuda);

/* NULL: there is none of that number. */
const inf_cuda_device_t *inf_cuda_device(const inf_cuda_t *cuda,
    int64_t device);

/* NULL: it may be used.  Else why not: it did not even say what it is. */
const char *inf_cuda_device_fault(const inf_cuda_t *cuda, int64_t device);

/* Retains the device's primary context; nothing below works before. */
INF_CHECK inf_err_t *inf_cuda_use(inf_cuda_t *cuda, int64_t device);

/*
 * A device fails when a call fails and the driver then answers a question that
 * has nothing to do with it by an error, too: a kernel has poisoned the
 * context, or the device is lost.  No call succeeds any more in this process.
 * check asks, for failures that a backend has met: UNAVAILABLE with the reason;
 * a question that fails alone is no failure.
 * failure is the reason as far as is known, from any call; NULL: none.
 */
INF_CHECK inf_err_t *inf_cuda_check(inf_cuda_t *cuda, int64_t device);
const char *inf_cuda_failure(const inf_cuda_t *cuda, int64_t device);

/* Lets kernels and copies on device reach peer's memory directly; success if
   they can already.  UNSUPPORTED: the hardware can't. */
INF_CHECK inf_err_t *inf_cuda_reach_peer(inf_cuda_t *cuda, int64_t device,
    int64_t peer);

/* Free memory and all memory. */
INF_CHECK inf_err_t *inf_cuda_memory_info(inf_cuda_t *cuda, int64_t device,
    uint64_t *free_bytes, uint64_t *total_bytes);

/* Memory of a device in use. */
INF_CHECK inf_err_t *inf_cuda_alloc(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free(inf_cuda_t *cuda, int64_t device,
    void *base);

/* Host memory that every device reaches by itself; device: any in use. */
INF_CHECK inf_err_t *inf_cuda_alloc_pinned(inf_cuda_t *cuda, int64_t device,
    uint64_t size, void **out);
INF_CHECK inf_err_t *inf_cuda_free_pinned(inf_cuda_t *cuda, int64_t device,
    void *base);

/* The same for memory that exists already (whole pages).  read_only: no device
   writes there, so it may be mapped read-only. */
INF_CHECK inf_err_t *inf_cuda_pin(inf_cuda_t *cuda, int64_t device,
    void *base, uint64_t size, bool read_only);
INF_CHECK inf_err_t *inf_cuda_unpin(inf_cuda_t *cuda, int64_t device,
    void *base);

/* A queue of copies on device; sync waits until all of them are done. */
INF_CHECK inf_err_t *inf_cuda_stream_new(inf_cuda_t *cuda, int64_t device,
    void **out);
INF_CHECK inf_err_t *inf_cuda_stream_free(inf_cuda_t *cuda, int64_t device,
    void *stream);
INF_CHECK inf_err_t *inf_cuda_stream_sync(inf_cuda_t *cuda, int64_t device,
    void *stream);

/* Queues a copy on device's stream.  to, from: devices or INF_CUDA_HOST, at
   least one of them is a device and one of them is the stream's. */
INF_CHECK inf_err_t *inf_cuda_copy(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, int64_t to, const void *src, int64_t from,
    uint64_t size);

/* Queues the filling of device memory with zeros. */
INF_CHECK inf_err_t *inf_cuda_zero(inf_cuda_t *cuda, int64_t device,
    void *stream, void *dst, uint64_t size);

/* Addresses on device that grow their memory later: how much at least at a
   time, a range of them, memory for a part of it, and all of that back. */
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

/* For another process: names the allocation that base is the begin of. */
INF_CHECK inf_err_t *inf_cuda_ipc_get(inf_cuda_t *cuda, int64_t device,
    void *base, uint8_t handle[INF_CUDA_IPC_SIZE]);

/* Of another process: its memory, here; close when nobody uses it. */
INF_CHECK inf_err_t *inf_cuda_ipc_open(inf_cuda_t *cuda, int64_t device,
    const uint8_t handle[INF_CUDA_IPC_SIZE], void **out);
INF_CHECK inf_err_t *inf_cuda_ipc_close(inf_cuda_t *cuda, int64_t device,
    void *base);

/* How many bytes of its allocation there are from at on. */
INF_CHECK inf_err_t *inf_cuda_range(inf_cuda_t *cuda, int64_t device,
    const void *at, uint64_t *size);

#endif /* INF_TENSOR_CUDA_DRIVER_H */
