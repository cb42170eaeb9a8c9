/*
 * copies.h - queues a copy between memory of any kind and a device.
 *
 * Owner    The caller keeps the memory unchanged until the stream has been
 *          waited for.
 * Thread   the stream's, its device entered.
 * Units    bytes.
 * Errors   as the driver's.
 * Route    inputs, outputs -> [copies] -> driver
 */

#ifndef GPU_COPIES_H
#define GPU_COPIES_H

#include "common/gpu_driver.h"

/* Memory as the core describes it. */
typedef struct {
    void                   *base;
    uint64_t                len;
    TRITONSERVER_MemoryType type;
    int64_t                 id;
} gpu_memory_t;

/* Queues a copy from memory of any kind to the device. */
BK_CHECK TRITONSERVER_Error *gpu_copy_in(gpu_device_t *device, gpu_ptr_t to,
    const gpu_memory_t *from, gpu_stream_t stream);

/* Queues a copy from the device to memory of any kind. */
BK_CHECK TRITONSERVER_Error *gpu_copy_out(gpu_device_t *device,
    const gpu_memory_t *to, gpu_ptr_t from, gpu_stream_t stream);

/* Whether the memory is on that device. */
bool gpu_memory_is_on(const gpu_memory_t *m, const gpu_device_t *device);

#endif /* GPU_COPIES_H */
