/*
 * sequence_inputs.h - additions to requests of a sequence model: control
 *                     tensors and the sequence's states; and padding requests
 *                     for empty slots.
 *
 * Owner    The model owns its inputs (sched.sequence_inputs).  The sequence
 *          batcher owns the inputs of each slot of an instance.  They outlive
 *          close until the backend has released the padding requests, which
 *          hold references to the model.
 * Thread   inputs: any.  A slot's: one thread at a time (another one for each
 *          payload); padding requests are released by any thread.
 * Units    bytes; shapes as seen by the backend: [1], or [1, 1] if the model
 *          batches.
 * Errors   new: INVALID_ARG naming state and file.  open: INVALID_ARG, the
 *          instance does not support growing memory.  check, add_controls:
 *          INVALID_ARG, the kind of id does not suit the CORRID control.  Out
 *          of memory.
 * Route    configuration, storage -> [sequence inputs] <- sequence batcher
 *
 * Rules: sequence_batching's control_input and state of the model
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

/* Frees inputs, which may be NULL; no slot's inputs are open. */
void inf_sequence_inputs_free(inf_sequence_inputs_t *inputs);

/* Whether a request leaves state for the next one of its sequence, which must
   run after its release. */
bool inf_sequence_inputs_keep(const inf_sequence_inputs_t *inputs);

/* Checks that req's correlation id can be passed to the backend. */
INF_CHECK inf_err_t *inf_sequence_inputs_check(
    const inf_sequence_inputs_t *inputs, const inf_request_t *req);

/* Opens the inputs of one slot of instance; inputs and instance are not used
   after close. */
INF_CHECK inf_err_t *inf_slot_inputs_open(
    const inf_sequence_inputs_t *inputs, inf_instance_t *instance,
    inf_slot_inputs_t **out);

/* slot may be NULL. */
void inf_slot_inputs_close(inf_slot_inputs_t *slot);

/*
 * Prepares req for execution in the slot: adds its controls (or sets those that
 * an earlier step of an iterative sequence added) and its states, which start
 * initializes.  The request that ran in the slot before has been released; req
 * and its states are valid until the slot is closed or controls are added
 * again.
 */
INF_CHECK inf_err_t *inf_slot_inputs_add_controls(inf_slot_inputs_t *slot,
    inf_request_t *req, bool start, bool end);

/*
 * A padding request for an empty slot (READY false, CORRID 0): inputs like
 * those of like, which may have controls already, with zeros except for shape
 * tensors, which are copied.  It wants no outputs, is not counted
 * (inf_request_t.padding) and its response is dropped.  State IDLE; its release
 * gives it back to the slot.
 */
INF_CHECK inf_err_t *inf_slot_inputs_fill(inf_slot_inputs_t *slot,
    const inf_request_t *like, inf_request_t **out);

#endif /* INF_SCHED_SEQUENCE_INPUTS_H */
