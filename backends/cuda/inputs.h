/*
 * inputs.h - puts each input of a batch on the device, in one piece.
 *
 * Owner    Requests own their memory; copies are in the batch's memory.
 * Thread   the instance's, its device entered.
 * Units    bytes.
 * Errors   The driver's.  INTERNAL: the size of buffers contradicts the input.
 * Route    batch -> [inputs] -> copies
 */

#ifndef GPU_INPUTS_H
#define GPU_INPUTS_H

#include "batch.h"

/* Sets the address of each input of the whole batch that is one buffer on the
 * device: it is used in place, unless kernels write to inputs.  The address of
 * other inputs is 0. */
BK_CHECK TRITONSERVER_Error *gpu_inputs_find(gpu_batch_t *b,
    const gpu_batch_request_t *reqs, uint32_t count);

/* Queues copies of all buffers of the inputs that are not used in place. */
BK_CHECK TRITONSERVER_Error *gpu_inputs_copy(gpu_batch_t *b,
    const gpu_batch_request_t *reqs, uint32_t count);

#endif /* GPU_INPUTS_H */
