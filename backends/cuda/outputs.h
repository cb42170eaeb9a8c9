/*
 * outputs.h - the outputs of a batch, copied into the responses.
 *
 * Owner    Responses own the buffers.
 * Thread   the instance's, its device entered.
 * Units    bytes.
 * Errors   An output without a buffer is an error of its request alone; the
 *          driver's errors are the batch's.
 * Route    batch -> [outputs] -> copies
 */

#ifndef GPU_OUTPUTS_H
#define GPU_OUTPUTS_H

#include "batch.h"

/* Asks for a buffer on the device for each wanted output and each state,
 * accepts other memory, and queues one copy into each.  Before a copy to host
 * memory that is not pinned, waits for the kernels; with b->late nothing is
 * copied. */
BK_CHECK TRITONSERVER_Error *gpu_outputs_take(gpu_batch_t *b,
    gpu_batch_request_t *reqs, uint32_t count);

#endif /* GPU_OUTPUTS_H */
