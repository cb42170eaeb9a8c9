/*
 * wait.h - waits for a stream, for a limited time.
 *
 * Owner    nothing is kept.
 * Thread   the stream's, its device entered.
 * Units    milliseconds.
 * Errors   The driver's, including faults of kernels.
 * Route    batch -> [wait] -> driver
 */

#ifndef GPU_WAIT_H
#define GPU_WAIT_H

#include "common/gpu_driver.h"

/* *ended: work in the stream accesses no memory any more, because the stream is
 * empty or the device has failed.  timeout_ms 0: no limit; the thread then
 * sleeps until event, which is recorded. */
BK_CHECK TRITONSERVER_Error *gpu_wait(gpu_device_t *device,
    gpu_stream_t stream, gpu_event_t event, int64_t timeout_ms, bool *ended);

/* Waits by the driver, without a limit. */
BK_CHECK TRITONSERVER_Error *gpu_wait_long(gpu_device_t *device,
    gpu_stream_t stream, bool *ended);

#endif /* GPU_WAIT_H */
