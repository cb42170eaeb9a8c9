/*
 * runner.h - runs requests on one instance of a runtime: reads them, joins
 *            what fits to batches, answers each.
 *
 * Owner    The backend's instance has the runner in it, from
 *          ModelInstanceInitialize to ModelInstanceFinalize; it does not move
 *          meanwhile.  Tensors, runtime and self outlive the runner.
 * Thread   init and fini on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   execute fails as a whole only before it has touched a request.
 * Route    instance thread -> [runner] -> slot, batch
 */

#ifndef BK_RUNNER_H
#define BK_RUNNER_H

#include "batch.h"
#include "device.h"

typedef struct {
    TRITONBACKEND_ModelInstance *handle;
    bk_slot_rules_t              rules;
    bk_batch_t                   batch;
    bk_slot_t                   *slots;
    bk_input_t                  *slot_inputs;
    bool                        *slot_wanted;
    uint32_t                     slot_cap;
} bk_runner_t;

/* rules is copied: the model's tensors, whether it batches, its GPU. */
BK_CHECK TRITONSERVER_Error *bk_runner_init(bk_runner_t *r,
    TRITONBACKEND_ModelInstance *handle, const bk_slot_rules_t *rules,
    const bk_runtime_t *runtime, void *self);
void bk_runner_fini(bk_runner_t *r);

/* Answers and releases all requests. */
BK_CHECK TRITONSERVER_Error *bk_runner_execute(bk_runner_t *r,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* BK_RUNNER_H */
