/*
 * launch.h - the kernels of one batch with all numbers filled in.
 *
 * Owner    the caller owns the arrays.
 * Thread   one instance's.
 * Units    threads, blocks, bytes.
 * Errors   INVALID_ARG: a geometry or argument that cannot be, by the shapes
 *          of this batch.  As the driver's for the launch itself.
 * Route    batch -> [launch] -> graphs
 */

#ifndef GPU_LAUNCH_H
#define GPU_LAUNCH_H

#include "loaded.h"

/* All bytes count: two batches with the same launches do the same work, and
 * a graph of one serves the other. */
typedef struct {
    unsigned kernel;                    /* of the program                    */
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    uint64_t values[GPU_ARGUMENTS_MAX]; /* each at its beginning             */
} gpu_launch_t;

/* Where the tensors and buffers of the batch are. */
typedef struct {
    const gpu_ptr_t *tensors;
    const gpu_ptr_t *buffers;
} gpu_addresses_t;

/* Fills launches, of the program's number of kernels; *count: those that have
 * something to do (a grid of 0 blocks has not). */
BK_CHECK TRITONSERVER_Error *gpu_launches_make(gpu_launch_t *launches,
    uint32_t *count, const gpu_program_t *program, const gpu_loaded_t *loaded,
    const gpu_shapes_t *shapes, const gpu_addresses_t *addresses);

/* Puts them into the stream, whose device is entered. */
BK_CHECK TRITONSERVER_Error *gpu_launches_run(const gpu_launch_t *launches,
    uint32_t count, const gpu_program_t *program, const gpu_loaded_t *loaded,
    gpu_stream_t stream);

#endif /* GPU_LAUNCH_H */
