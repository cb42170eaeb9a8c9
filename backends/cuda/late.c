/* late.c - see late.h */

#include "late.h"

#include <stdlib.h>
#include <time.h>

#define PAUSE_NS 20000000       /* between two questions to the driver       */

static void *watch(void *arg);
static bool release_if_done(gpu_late_t *late);

void
gpu_late_keep(gpu_late_t *late, gpu_batch_t *batch,
    const gpu_batch_request_t *reqs, uint32_t count,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    gpu_late_stop(late);
    late->batch = batch;
    late->requests = calloc(count, sizeof(*late->requests));
    late->count = count;
    atomic_store_explicit(&late->stopping, false, memory_order_relaxed);
    atomic_store_explicit(&late->waiting, true, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        gpu_batch_request_t req = reqs[i];

        gpu_batch_request_answer_aside(&req, instance, times);
        if (late->requests != NULL) {
            late->requests[i] = req;
        }
    }

    int rc = late->requests == NULL ? -1
        : pthread_create(&late->watcher, NULL, watch, late);
    late->watched = rc == 0;
    if (rc > 0) {
        bk_log(TRITONSERVER_LOG_ERROR, "no thread waits for kernels that are"
            " late (error %d): the instance asks when it executes", rc);
    }
}

bool
gpu_late_release(gpu_late_t *late)
{
    return !gpu_late_is_waiting(late)
        || (!late->watched && late->requests != NULL && release_if_done(late));
}

void
gpu_late_stop(gpu_late_t *late)
{
    if (late->watched) {
        atomic_store_explicit(&late->stopping, true, memory_order_relaxed);
        (void) pthread_join(late->watcher, NULL);
        late->watched = false;
    }
}

bool
gpu_late_is_waiting(const gpu_late_t *late)
{
    return atomic_load_explicit(&late->waiting, memory_order_acquire);
}

/* The instance may execute nothing more, because it is being unloaded, and
   the core unloads no instance that has requests: so this does not wait for
   an execution. */
static void *
watch(void *arg)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    gpu_late_t *late = arg;

    while (!release_if_done(late)
        && !atomic_load_explicit(&late->stopping, memory_order_relaxed))
    {
        (void) nanosleep(&pause, NULL);
    }
    return NULL;
}

static bool
release_if_done(gpu_late_t *late)
{
    if (!gpu_batch_is_done(late->batch)) {
        return false;
    }

    for (uint32_t i = 0; i < late->count; i++) {
        bk_err_log(TRITONBACKEND_ResponseDelete(late->requests[i].response),
            "cannot delete a response");
        bk_request_release(late->requests[i].handle);
    }

    bk_log(TRITONSERVER_LOG_WARN, "kernels that were late have ended on GPU"
        " %d; their instance runs again", late->batch->device->ordinal);
    free(late->requests);
    late->requests = NULL;
    late->count = 0;
    atomic_store_explicit(&late->waiting, false, memory_order_release);
    return true;
}
