/*
 * runner.h - runs the requests of an execution on one instance of a runtime:
 *            reads them, batches compatible ones and sends the responses.
 *
 * Owner    The backend's instance contains the runner, at one address, from
 *          ModelInstanceInitialize to ModelInstanceFinalize.  Tensors, runtime
 *          and self outlive the runner.
 * Thread   init and fini on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   If execute returns an error, the caller still owns all requests.
 * Route    instance thread -> [runner] -> batch_request, batch
 */

#ifndef BK_RUNNER_H
#define BK_RUNNER_H

#include "batch.h"
#include "device.h"

typedef struct {
    TRITONBACKEND_ModelInstance *handle;
    bk_instance_config_t         config;
    bk_batch_t                   batch;
    bk_batch_request_t          *requests;
    bk_input_t                  *request_inputs;
    bool                        *request_wanted;
    uint32_t                     request_cap;
} bk_runner_t;

/* Copies config; the tensors in it are not copied. */
BK_CHECK TRITONSERVER_Error *bk_runner_init(bk_runner_t *r,
    TRITONBACKEND_ModelInstance *handle, const bk_instance_config_t *config,
    const bk_runtime_t *runtime, void *self);
void bk_runner_fini(bk_runner_t *r);

/* Answers and releases all requests. */
BK_CHECK TRITONSERVER_Error *bk_runner_execute(bk_runner_t *r,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* BK_RUNNER_H */
