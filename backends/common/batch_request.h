/*
 * batch_request.h - one request of an execution, read and checked.
 *
 * Owner    It owns the response until batch_request_finish sends it, and err
 *          until then.  The core's request is the backend's until then.
 * Thread   its instance's.
 * Units    rows of the batch dimension; 1 without batching.
 * Errors   what is wrong with one request stays in its err.
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
    bool                    on_device;  /* a tensor of it is on the GPU of
                                         * the instance: it runs alone       */
    bk_input_t             *inputs;     /* as the model's; handle NULL: left
                                         * out                               */
    bool                   *wanted;     /* as the model's outputs            */
} bk_batch_request_t;

/* Reads the core's request into req, whose tables are allocated; failures go
 * to req->err. */
void bk_batch_request_open(bk_batch_request_t *req,
    const bk_instance_config_t *config, TRITONBACKEND_Request *request);

/* A request without an error gets one if its client has given up. */
void bk_batch_request_check_cancelled(bk_batch_request_t *req);

/* Both can run as one batch: the same inputs of the same shapes but for the
 * batch dimension. */
bool bk_batch_requests_compatible(const bk_batch_request_t *a,
    const bk_batch_request_t *b, const bk_tensors_t *tensors);

/* Throws away what the response holds so far and starts another. */
void bk_batch_request_restart(bk_batch_request_t *req);

/* Reports the times, answers, releases the request. */
void bk_batch_request_finish(bk_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

#endif /* BK_BATCH_REQUEST_H */
