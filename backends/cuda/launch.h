/*
 * launch.h - the kernel launches of one batch.
 *
 * Owner    the caller owns the arrays.
 * Thread   one instance's.
 * Units    threads, blocks, bytes.
 * Errors   INVALID_ARG: the shapes of this batch give an impossible geometry or
 *          argument.  The driver's, for the launch itself.
 * Route    batch -> [launch] -> graphs
 */

#ifndef GPU_LAUNCH_H
#define GPU_LAUNCH_H

#include "loaded.h"

/* Compared byte by byte: batches with equal launches do the same work and can
 * share a graph. */
typedef struct {
    unsigned kernel;                    /* of the program                    */
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    uint64_t values[GPU_ARGUMENTS_MAX]; /* each in its first bytes           */
} gpu_launch_t;

/* The addresses of the tensors and buffers of a batch. */
typedef struct {
    const gpu_ptr_t *tensors;
    const gpu_ptr_t *buffers;
} gpu_addresses_t;

/* Fills launches, which has room for all kernels of the program; *count leaves
 * out kernels whose grid has 0 blocks. */
BK_CHECK TRITONSERVER_Error *gpu_launches_make(gpu_launch_t *launches,
    uint32_t *count, const gpu_program_t *program, const gpu_loaded_t *loaded,
    const gpu_shapes_t *shapes, const gpu_addresses_t *addresses);

/* Queues the launches in the stream, whose device is entered. */
BK_CHECK TRITONSERVER_Error *gpu_launches_run(const gpu_launch_t *launches,
    uint32_t count, const gpu_program_t *program, const gpu_loaded_t *loaded,
    gpu_stream_t stream);

#endif /* GPU_LAUNCH_H */
