/*
 * slot.h - one request of an execution, read and checked.
 *
 * Owner    The slot owns the response until slot_finish sends it, and err
 *          until then.  The request is the backend's until slot_finish.
 * Thread   its instance's.
 * Units    rows of the batch dimension; 1 without batching.
 * Errors   what is wrong with one request stays in its slot.
 * Route    Execute -> [slot] -> batch -> [slot] -> response
 */

#ifndef BK_SLOT_H
#define BK_SLOT_H

#include "request.h"
#include "tensors.h"

typedef struct {
    TRITONBACKEND_Request  *request;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    uint64_t                rows;
    bool                    on_device;  /* a tensor of it lies on the GPU of
                                         * the instance: it runs alone       */
    bk_input_t             *inputs;     /* as the model's; handle NULL: left
                                         * out                               */
    bool                   *wanted;     /* as the model's outputs            */
} bk_slot_t;

/* The same for all requests of an instance. */
typedef struct {
    const bk_tensors_t *tensors;
    bool                batching;
    int32_t             device_id;      /* GPU, or BK_NO_DEVICE              */
} bk_slot_rules_t;

/* Reads request into slot, whose tables are there; failures go to its err. */
void bk_slot_open(bk_slot_t *slot, const bk_slot_rules_t *rules,
    TRITONBACKEND_Request *request);

/* A slot without an error gets one if its client has given up. */
void bk_slot_check_cancelled(bk_slot_t *slot);

/* Both can run as one batch: the same inputs of the same shapes but for the
 * batch dimension. */
bool bk_slot_joins(const bk_slot_t *a, const bk_slot_t *b,
    const bk_tensors_t *tensors);

/* Throws away what the response holds so far and starts another. */
void bk_slot_restart(bk_slot_t *slot);

/* Reports the times, answers, releases the request. */
void bk_slot_finish(bk_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const bk_times_t *times);

#endif /* BK_SLOT_H */
