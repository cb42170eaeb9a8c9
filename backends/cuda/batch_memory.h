/*
 * batch_memory.h - memory on the device for the tensors and buffers of a
 *                  batch.
 *
 * Owner    The batch owns the memory, which grows and is kept.
 * Thread   the batch's, its device entered.
 * Units    bytes.
 * Errors   UNAVAILABLE: the device has no memory left.  INVALID_ARG: an
 *          impossible size, or more memory than an instance may have.
 * Route    batch -> [batch memory] -> driver
 */

#ifndef GPU_BATCH_MEMORY_H
#define GPU_BATCH_MEMORY_H

#include "batch.h"

/* Allocates all memory for the largest batch.  *known: the size follows from
 * the configuration, which has no open dimensions. */
BK_CHECK TRITONSERVER_Error *gpu_batch_memory_largest(gpu_batch_t *b,
    bool *known);

/* Allocates memory of this batch's shapes for outputs, scratch memory and
 * inputs without an address, and notes all addresses and those of the weights.
 * The stream must be empty, as the contents of the memory are lost. */
BK_CHECK TRITONSERVER_Error *gpu_batch_memory_take(gpu_batch_t *b);

#endif /* GPU_BATCH_MEMORY_H */
