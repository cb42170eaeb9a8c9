/*
 * batch_request.h - one request of an execution, read and checked.
 *
 * Owner    bk_batch_request_t owns the core's request, the response and err
 *          until bk_batch_request_finish.
 * Thread   its instance's.
 * Units    rows of the batch dimension; 1 without batching.
 * Errors   An error of one request is kept in its err.
 * Route    Execute -> [batch_request] -> batch -> [batch_request] -> response
 */

#ifndef BK_BATCH_REQUEST_H
#define BK_BATCH_REQUEST_H

#include "instance_config.h"
#include "request.h"

typedef struct {
    TRITONBACKEND_Request  *handle;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    uint64_t                rows;
    bool                    on_device;  /* a tensor lies on the instance's
                                         * GPU: the request runs alone       */
    bk_input_t             *inputs;     /* by input of the model; handle
                                         * NULL: the request lacks the input */
    bool                   *wanted;     /* by output of the model            */
} bk_batch_request_t;

/* Reads the core's request into req, whose tables are allocated; failures go
 * to req->err. */
void bk_batch_request_open(bk_batch_request_t *req,
    const bk_instance_config_t *config, TRITONBACKEND_Request *request);

/* Sets err, if it is NULL, when the request has been cancelled. */
void bk_batch_request_check_cancelled(bk_batch_request_t *req);

/* Whether both can run as one batch: they have the same inputs, whose shapes
 * differ in the batch dimension only. */
bool bk_batch_requests_compatible(const bk_batch_request_t *a,
    const bk_batch_request_t *b, const bk_tensors_t *tensors);

/* Replaces the response by a new one without outputs. */
void bk_batch_request_restart(bk_batch_request_t *req);

/* Reports the times, sends the response and releases the request. */
void bk_batch_request_finish(bk_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

#endif /* BK_BATCH_REQUEST_H */
