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

#include "driver.h"

/* *in_time: the stream is empty, or has failed.  timeout_ms 0: no limit; then
 * event is recorded, which the driver wakes the thread by. */
BK_CHECK TRITONSERVER_Error *gpu_wait(gpu_device_t *device,
    gpu_stream_t stream, gpu_event_t event, int64_t timeout_ms,
    bool *in_time);

#endif /* GPU_WAIT_H */
