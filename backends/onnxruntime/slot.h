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

#ifndef ORT_SLOT_H
#define ORT_SLOT_H

#include "model.h"

#include "common/request.h"

typedef struct {
    TRITONBACKEND_Request  *request;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    uint64_t                rows;
    bool                    on_device;  /* a tensor of it lies on the GPU of
                                         * the session: it runs alone        */
    bk_input_t             *inputs;     /* as the session's; handle NULL:
                                         * left out                          */
    bool                   *wanted;     /* as the session's outputs          */
} ort_slot_t;

typedef struct {
    uint64_t start_ns;
    uint64_t compute_start_ns;
    uint64_t compute_end_ns;
    uint64_t end_ns;
} ort_times_t;

/* Reads request into slot, whose tables are there; failures go to slot->err. */
void ort_slot_open(ort_slot_t *slot, const ort_model_t *model,
    const ort_session_t *session, TRITONBACKEND_Request *request);

/* Both can run as one batch: the same inputs of the same shapes but for the
 * batch dimension. */
bool ort_slot_joins(const ort_slot_t *a, const ort_slot_t *b,
    const ort_session_t *session);

/* Throws away what the response holds so far and starts another. */
void ort_slot_restart(ort_slot_t *slot);

/* Reports the times, answers, releases the request. */
void ort_slot_finish(ort_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const ort_times_t *times);

/* Product of dims; false when one is negative or it overflows. */
bool ort_elements(const int64_t *shape, uint32_t dims_count,
    uint64_t *elements);

#endif /* ORT_SLOT_H */
