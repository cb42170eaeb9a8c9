/*
 * sequence_inputs.h - what is added to requests of a sequence model: control
 *                     tensors, states, and padding requests for empty slots.
 *
 * Owner    The model owns its inputs (sched.sequence_inputs).  The sequence
 *          batcher owns the inputs of each slot.  After close a slot's inputs
 *          stay until the backend has released the padding requests, which
 *          hold references of the model.
 * Thread   The model's inputs: any.  A slot's inputs: one at a time.  A padding
 *          request may be released by any.
 * Units    bytes.  Shapes are the backend's: [1], or [1, 1] if the model
 *          batches.
 * Errors   new: INVALID_ARG, with state and file.  open: INVALID_ARG, the
 *          instance does not support growing memory.  check, add_controls:
 *          INVALID_ARG, the kind of id does not suit the CORRID control.  All:
 *          out of memory.
 * Route    configuration, storage -> [sequence inputs] <- sequence batcher
 *
 * Order for a slot: open; check, then add_controls for each request, fill for
 * the payloads in which the slot is empty; close.
 *
 * Rules: control_input and state of sequence_batching in the model
 * configuration; implicit state management.
 */

#ifndef INF_SCHED_SEQUENCE_INPUTS_H
#define INF_SCHED_SEQUENCE_INPUTS_H

#include "core/model/config_storage.h"
#include "core/model/model.h"
#include "core/tensor/request.h"

typedef struct inf_sequence_inputs_s inf_sequence_inputs_t;
typedef struct inf_slot_inputs_s     inf_slot_inputs_t;

/* Creates the inputs from model->built and <model>/initial_state/<data_file>.
   *out is NULL if the model has no sequence_batching. */
INF_CHECK inf_err_t *inf_sequence_inputs_new(const inf_storage_t *st,
    const char *model_dir, const inf_model_t *model,
    inf_sequence_inputs_t **out);

/* Frees inputs, which may be NULL, when no slot's inputs are open. */
void inf_sequence_inputs_free(inf_sequence_inputs_t *inputs);

/* Whether a request leaves a state for the next request of its sequence, which
   then runs after the release of the first. */
bool inf_sequence_inputs_keep(const inf_sequence_inputs_t *inputs);

/* Checks that req's correlation id can be passed to the backend. */
INF_CHECK inf_err_t *inf_sequence_inputs_check(
    const inf_sequence_inputs_t *inputs, const inf_request_t *req);

/* Opens the inputs of one slot of instance; inputs and instance are not used
   after close. */
INF_CHECK inf_err_t *inf_slot_inputs_open(
    const inf_sequence_inputs_t *inputs, inf_instance_t *instance,
    inf_slot_inputs_t **out);

/* Closes the inputs of a slot; slot may be NULL. */
void inf_slot_inputs_close(inf_slot_inputs_t *slot);

/*
 * Prepares req for execution in the slot: adds controls and states to req.
 * Controls that an earlier step of an iterative sequence has added are set.
 * start initializes the states.  The request that ran in the slot before is
 * released.  req and its states are valid until the next add_controls or close.
 */
INF_CHECK inf_err_t *inf_slot_inputs_add_controls(inf_slot_inputs_t *slot,
    inf_request_t *req, bool start, bool end);

/*
 * Returns a padding request for an empty slot: READY is false, CORRID is 0.
 * Its inputs have the shapes of those of like, which may have controls already;
 * the bytes are zeros, and shape tensors are copies.  A padding request wants
 * no outputs and is not counted (inf_request_t.padding), and its response is
 * dropped.  The request is IDLE; its release gives the request back to the
 * slot.
 */
INF_CHECK inf_err_t *inf_slot_inputs_fill(inf_slot_inputs_t *slot,
    const inf_request_t *like, inf_request_t **out);

#endif /* INF_SCHED_SEQUENCE_INPUTS_H */
