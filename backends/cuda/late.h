/*
 * late.h - requests that were answered while their kernels ran on.
 *
 * Owner    The instance owns it; it owns responses and requests of its slots:
 *          the GPU may yet read and write their memory.
 * Thread   the instance's; gpu_late_is_waiting: any.
 * Units    none.
 * Errors   Without memory for the list the requests are kept for good.
 * Route    instance -> [late] -> release
 */

#ifndef GPU_LATE_H
#define GPU_LATE_H

#include "batch.h"

typedef struct {
    gpu_slot_t  *slots;
    uint32_t     count;
    _Atomic bool waiting;               /* relaxed: what readiness says      */
} gpu_late_t;

/* Answers each with its error.  late is empty. */
void gpu_late_keep(gpu_late_t *late, const gpu_slot_t *slots, uint32_t count,
    TRITONBACKEND_ModelInstance *instance, const gpu_times_t *times);

/* Releases them if their kernels have ended; whether none is left. */
bool gpu_late_release(gpu_late_t *late, gpu_batch_t *batch);

bool gpu_late_is_waiting(const gpu_late_t *late);

#endif /* GPU_LATE_H */
