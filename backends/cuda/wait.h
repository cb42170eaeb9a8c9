/*
 * wait.h - waiting for a stream, for a limited time.
 *
 * Owner    nobody.
 * Thread   the stream's, its device entered.
 * Units    milliseconds.
 * Errors   as the driver's, among them the faults of kernels.
 * Route    batch -> [wait] -> driver
 */

#ifndef GPU_WAIT_H
#define GPU_WAIT_H

#include "common/gpu_driver.h"

/* *ended: nothing in the stream touches memory any more, because it is empty
 * or the device has failed.  timeout_ms 0: no limit; then event is recorded,
 * which the driver wakes the thread by. */
BK_CHECK TRITONSERVER_Error *gpu_wait(gpu_device_t *device,
    gpu_stream_t stream, gpu_event_t event, int64_t timeout_ms, bool *ended);

/* The driver's own wait. */
BK_CHECK TRITONSERVER_Error *gpu_wait_long(gpu_device_t *device,
    gpu_stream_t stream, bool *ended);

#endif /* GPU_WAIT_H */
