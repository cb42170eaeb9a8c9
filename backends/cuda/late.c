/* late.c - see late.h */

#include "late.h"

#include <stdlib.h>

void
gpu_late_keep(gpu_late_t *late, const gpu_slot_t *slots, uint32_t count,
    TRITONBACKEND_ModelInstance *instance, const gpu_times_t *times)
{
    late->slots = calloc(count, sizeof(*late->slots));
    late->count = count;
    atomic_store_explicit(&late->waiting, true, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        gpu_slot_t slot = slots[i];

        gpu_slot_answer_aside(&slot, instance, times);
        if (late->slots != NULL) {
            late->slots[i] = slot;
        }
    }
}

bool
gpu_late_release(gpu_late_t *late, gpu_batch_t *batch)
{
    if (late->count == 0) {
        return true;
    }
    if (late->slots == NULL || !gpu_batch_is_done(batch)) {
        return false;
    }

    for (uint32_t i = 0; i < late->count; i++) {
        bk_err_log(TRITONBACKEND_ResponseDelete(late->slots[i].response),
            "cannot delete a response");
        bk_request_release(late->slots[i].request);
    }

    bk_log(TRITONSERVER_LOG_WARN, "kernels that were late have ended on GPU"
        " %d; their instance runs again", batch->device->ordinal);
    free(late->slots);
    late->slots = NULL;
    late->count = 0;
    atomic_store_explicit(&late->waiting, false, memory_order_relaxed);
    return true;
}

bool
gpu_late_is_waiting(const gpu_late_t *late)
{
    return atomic_load_explicit(&late->waiting, memory_order_relaxed);
}
