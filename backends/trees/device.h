/*
 * device.h - a forest in memory of a GPU, and walks of rows there.
 *
 * Owner    The instance owns trees_device_t, which owns memory on the device
 *          and a stream; the model owns the forest.
 * Thread   new and free: a loader's; the rest: the instance's.
 * Units    rows; one walk has rows_most of them at most.
 * Errors   those of common/gpu_driver.h and gpu_compiler.h.
 * Route    predict -> [device] -> the driver
 *
 * The device walks and sums, in the order of the trees; the host divides, adds
 * base scores and applies the last function (walk.h, postprocess.h).  Results
 * are equal bit by bit to those of the host.
 */

#ifndef TREES_DEVICE_H
#define TREES_DEVICE_H

#include "forest.h"

#include "common/gpu_compiler.h"
#include "common/gpu_driver.h"

typedef struct trees_device_s trees_device_t;

/* Copies the forest to the GPU and compiles the kernel. */
BK_CHECK TRITONSERVER_Error *trees_device_new(trees_device_t **out,
    const trees_forest_t *forest, gpu_device_t *gpu,
    const gpu_compiler_t *compiler);
void trees_device_free(trees_device_t *d);

/* The number of rows that one walk takes at most. */
uint64_t trees_device_rows_most(const trees_device_t *d);

/* Copies rows, which may lie on this device, walks them, and copies sums or
 * nodes to the host; either may be NULL.  trees_walk_finish completes sums. */
BK_CHECK TRITONSERVER_Error *trees_device_walk(trees_device_t *d,
    const float *rows, bool on_device, uint64_t count, void *sums,
    uint32_t *nodes);

/* Copies an output to memory of the device. */
BK_CHECK TRITONSERVER_Error *trees_device_put(trees_device_t *d, void *to,
    const void *from, uint64_t len_bytes);

#endif /* TREES_DEVICE_H */
