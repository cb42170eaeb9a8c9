/*
 * batch_request.h - one request of an execution, read and checked.
 *
 * Owner    It owns the response until that is sent or given up, and err until
 *          then.  The core's request is the backend's until it is released.
 * Thread   its instance's.
 * Units    rows of the batch dimension; 1 without batching.
 * Errors   INVALID_ARG: a tensor that does not fit the configuration.  An
 *          error stays in its request; the others of the batch run.
 * Route    Execute -> [batch_request] -> batch -> [batch_request] -> response
 */

#ifndef GPU_BATCH_REQUEST_H
#define GPU_BATCH_REQUEST_H

#include "common/request.h"
#include "program.h"

typedef struct {
    TRITONBACKEND_Request  *handle;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    int64_t                 rows;
    bk_input_t             *inputs;     /* as the program's; handle NULL:
                                         * left out                          */
    bool                   *wanted;     /* as the program's outputs          */
    TRITONBACKEND_State   **states;     /* likewise; NULL: nothing is kept   */
} gpu_batch_request_t;

/* Reads the core's request into req, whose tables are allocated; failures go
 * to req->err. */
void gpu_batch_request_open(gpu_batch_request_t *req,
    const gpu_program_t *program, TRITONBACKEND_Request *request);

/* Both can run as one batch: the same inputs of the same shapes but for the
 * batch dimension, and not more rows than the model takes. */
bool gpu_batch_requests_compatible(const gpu_batch_request_t *first,
    const gpu_batch_request_t *req, int64_t rows, const gpu_program_t *program);

/* A request without an error of its own gets a copy of err; takes err, which
 * may be NULL. */
void gpu_batch_requests_fail(gpu_batch_request_t *reqs, uint32_t count,
    TRITONSERVER_Error *err);

/* Unless the request has an error, the states that its batch has written
 * become those of its sequence.  The batch has ended. */
void gpu_batch_request_keep_states(gpu_batch_request_t *req,
    const gpu_program_t *program);

/* Reports the times, answers, releases the request. */
void gpu_batch_request_finish(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

/* Reports and answers with the request's error by another response.  Response
 * and request stay as they are: the GPU may yet write to their memory. */
void gpu_batch_request_answer_aside(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

#endif /* GPU_BATCH_REQUEST_H */
