/*
 * late.h - keeps requests that were answered before their kernels ended.
 *
 * Owner    The instance owns gpu_late_t, which owns requests and responses: the
 *          GPU may still read and write their memory.
 * Thread   the instance's; stop also the one that frees the instance;
 *          gpu_late_is_waiting: any.  A thread of its own, the watcher,
 *          releases the requests and then ends.
 * Units    none.
 * Errors   Without memory for the list the requests are leaked.  Without a
 *          watcher they are released when the instance executes.
 * Route    instance -> [late] -> release
 */

#ifndef GPU_LATE_H
#define GPU_LATE_H

#include "batch.h"

#include <pthread.h>

typedef struct {
    /* the watcher's, as is the batch's stream, while waiting is true */
    gpu_batch_t         *batch;
    gpu_batch_request_t *requests;
    uint32_t             count;

    pthread_t            watcher;
    bool                 watched;       /* the watcher is to be joined       */
    _Atomic bool         stopping;      /* relaxed: the watcher ends         */
    _Atomic bool         waiting;       /* release, acquire: false gives the
                                         * fields above back                 */
} gpu_late_t;

/* Sends each request's error and keeps the requests.  late is not waiting. */
void gpu_late_keep(gpu_late_t *late, gpu_batch_t *batch,
    const gpu_batch_request_t *reqs, uint32_t count,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

/* Whether no request is left; without a watcher, releases those whose kernels
 * have ended. */
bool gpu_late_release(gpu_late_t *late);

/* Ends the watcher; leaks requests whose kernels have not ended. */
void gpu_late_stop(gpu_late_t *late);

/* Whether kernels of an answered request may still run. */
bool gpu_late_is_waiting(const gpu_late_t *late);

#endif /* GPU_LATE_H */
