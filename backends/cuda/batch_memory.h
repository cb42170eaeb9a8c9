/*
 * batch_memory.h - memory on the device for the tensors and buffers of a
 *                  batch.
 *
 * Owner    The batch owns the memory, which grows and is kept.
 * Thread   the batch's, its device entered.
 * Units    bytes.
 * Errors   UNAVAILABLE: the device has no memory left.  INVALID_ARG: a size
 *          that cannot be, or more than an instance may take.
 * Route    batch -> [batch memory] -> driver
 */

#ifndef GPU_BATCH_MEMORY_H
#define GPU_BATCH_MEMORY_H

#include "batch.h"

/* Takes memory for all of the largest batch; *known: the configuration tells
 * its size, which it does not with open dimensions. */
BK_CHECK TRITONSERVER_Error *gpu_batch_memory_largest(gpu_batch_t *b,
    bool *known);

/* For all inputs without an address, outputs and scratch memory, by the shapes
 * of this batch; notes the addresses of these and of the weights.  Nothing is
 * queued in the stream: the content of this memory is lost. */
BK_CHECK TRITONSERVER_Error *gpu_batch_memory_take(gpu_batch_t *b);

#endif /* GPU_BATCH_MEMORY_H */
