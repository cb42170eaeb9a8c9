/*
 * batch_request.h - one request of an execution, read and checked.
 *
 * Owner    gpu_batch_request_t owns the core's request until its release, and
 *          response and err until the response is sent.
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
    bk_input_t             *inputs;     /* by input of the program; handle
                                         * NULL: the request lacks the input */
    bool                   *wanted;     /* by output of the program          */
    TRITONBACKEND_State   **states;     /* by output; NULL: no state         */
} gpu_batch_request_t;

/* Reads the core's request into req, whose tables are allocated; failures go
 * to req->err. */
void gpu_batch_request_open(gpu_batch_request_t *req,
    const gpu_program_t *program, TRITONBACKEND_Request *request);

/* Whether both can run as one batch: they have the same inputs, whose shapes
 * differ in the batch dimension only, and not too many rows. */
bool gpu_batch_requests_compatible(const gpu_batch_request_t *first,
    const gpu_batch_request_t *req, int64_t rows, const gpu_program_t *program);

/* Gives each request without an error a copy of err.  Takes err, which may be
 * NULL. */
void gpu_batch_requests_fail(gpu_batch_request_t *reqs, uint32_t count,
    TRITONSERVER_Error *err);

/* Called after the batch: unless the request has an error, the states that the
 * batch has written become those of its sequence. */
void gpu_batch_request_keep_states(gpu_batch_request_t *req,
    const gpu_program_t *program);

/* Reports the times, sends the response and releases the request. */
void gpu_batch_request_finish(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

/* Reports the times, and sends the request's error by a second response.  The
 * first response and the request stay, as the GPU may still write to their
 * memory. */
void gpu_batch_request_answer_aside(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

#endif /* GPU_BATCH_REQUEST_H */
