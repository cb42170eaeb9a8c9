/*
 * slot.h - one request of an execution, read and checked.
 *
 * Owner    The slot owns the response until it is sent or given up, and err
 *          until then.  The request is the backend's until it is released.
 * Thread   its instance's.
 * Units    rows of the batch dimension; 1 without batching.
 * Errors   INVALID_ARG: a tensor that does not fit the configuration.  An
 *          error stays in its slot and costs no other request anything.
 * Route    Execute -> [slot] -> batch -> [slot] -> response
 */

#ifndef GPU_SLOT_H
#define GPU_SLOT_H

#include "common/request.h"
#include "program.h"

typedef struct {
    TRITONBACKEND_Request  *request;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err;
    int64_t                 rows;
    bk_input_t             *inputs;     /* as the program's; handle NULL:
                                         * left out                          */
    bool                   *wanted;     /* as the program's outputs          */
    TRITONBACKEND_State   **states;     /* likewise; NULL: nothing is kept   */
} gpu_slot_t;

/* Reads request into slot, whose tables are there; failures go to slot->err. */
void gpu_slot_open(gpu_slot_t *slot, const gpu_program_t *program,
    TRITONBACKEND_Request *request);

/* Both can run as one batch: the same inputs of the same shapes but for the
 * batch dimension, and not more rows than the model takes. */
bool gpu_slot_joins(const gpu_slot_t *first, const gpu_slot_t *slot,
    int64_t rows, const gpu_program_t *program);

/* A slot without an error of its own gets a copy of err; takes err, which may
 * be NULL. */
void gpu_slots_fail(gpu_slot_t *slots, uint32_t count,
    TRITONSERVER_Error *err);

/* Unless the slot has an error, the states that its batch has written become
 * those of its sequence.  The batch has ended. */
void gpu_slot_keep_states(gpu_slot_t *slot, const gpu_program_t *program);

/* Reports the times, answers, releases the request. */
void gpu_slot_finish(gpu_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const bk_times_t *times);

/* Reports and answers with the slot's error by another response.  Response
 * and request stay as they are: the GPU may yet write to their memory. */
void gpu_slot_answer_aside(gpu_slot_t *slot,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

#endif /* GPU_SLOT_H */
