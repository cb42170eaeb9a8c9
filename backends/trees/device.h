/*
 * device.h - a forest on a GPU: its arrays there, and the walks of rows.
 *
 * Owner    trees_device_new gives it to an instance; memory on the device and
 *          the stream are its own, the forest stays the model's.
 * Thread   new and free: a loader's; the rest: the instance's.
 * Units    rows; a device takes rows_most of them at a time.
 * Errors   as common/gpu_driver and gpu_compiler have them.
 * Route    predict -> [device] -> the driver
 *
 * The device walks and sums, in the order of the trees; divisions, base scores
 * and last functions are the host's (walk.h, postprocess.h).  So answers are
 * the same bits as those of the host.
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

/* Copies rows, which may lie on this device, and walks them; then sums or
 * nodes are copied to the host: one of both may be NULL.  Sums are not
 * finished (trees_walk_finish). */
BK_CHECK TRITONSERVER_Error *trees_device_walk(trees_device_t *d,
    const float *rows, bool on_device, uint64_t count, void *sums,
    uint32_t *nodes);

/* Copies an output to memory of the device. */
BK_CHECK TRITONSERVER_Error *trees_device_put(trees_device_t *d, void *to,
    const void *from, uint64_t len_bytes);

#endif /* TREES_DEVICE_H */
