/*
 * inputs.h - the inputs of a batch, each in one piece on the device.
 *
 * Owner    memory of requests stays theirs; copies go to the batch's memory.
 * Thread   the instance's, its device entered.
 * Units    bytes.
 * Errors   as the driver's; INTERNAL: buffers that are not as large as said.
 * Route    batch -> [inputs] -> copies
 */

#ifndef GPU_INPUTS_H
#define GPU_INPUTS_H

#include "batch.h"

/* Notes the address of each input that lies on the device in one buffer and is
 * the whole batch's: it stays there, unless kernels write to inputs.  The
 * others' are 0. */
BK_CHECK TRITONSERVER_Error *gpu_inputs_find(gpu_batch_t *b,
    const gpu_batch_request_t *reqs, uint32_t count);

/* Queues a copy for each buffer of an input for which memory was needed. */
BK_CHECK TRITONSERVER_Error *gpu_inputs_copy(gpu_batch_t *b,
    const gpu_batch_request_t *reqs, uint32_t count);

#endif /* GPU_INPUTS_H */
