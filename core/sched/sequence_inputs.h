/*
 * sequence_inputs.h - what requests of a sequence model carry beside what
 *                     their clients sent: control tensors and the sequence's
 *                     states; and requests that fill empty slots.
 *
 * Owner    The model owns its inputs (sched.sequence_inputs).  The sequence
 *          batcher owns the inputs of each slot of an instance.  They outlive
 *          close until the backend has given up the padding requests, which
 *          hold references to the model.
 * Thread   inputs: any.  A slot's: one thread at a time (it changes between
 *          payloads); padding requests are released on any.
 * Units    bytes; shapes as the backend sees them: [1], or [1, 1] where the
 *          model batches.
 * Errors   new: INVALID_ARG naming state and file.  open: INVALID_ARG, memory
 *          can't grow on that instance.  check, add_controls: INVALID_ARG, the
 *          id's kind does not suit the CORRID control.  Out of memory.
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

/* Of model->built.  *out is NULL if the model has no sequence_batching.  Reads
   <model>/initial_state/<data_file>. */
INF_CHECK inf_err_t *inf_sequence_inputs_new(const inf_storage_t *st,
    const char *model_dir, const inf_model_t *model,
    inf_sequence_inputs_t **out);

/* No slot's inputs are open; inputs may be NULL. */
void inf_sequence_inputs_free(inf_sequence_inputs_t *inputs);

/* Whether a request leaves something for the next one of its sequence, which
   therefore runs after its release. */
bool inf_sequence_inputs_keep(const inf_sequence_inputs_t *inputs);

/* Whether req's correlation id can be given to the backend. */
INF_CHECK inf_err_t *inf_sequence_inputs_check(
    const inf_sequence_inputs_t *inputs, const inf_request_t *req);

/* The inputs of one slot of instance; inputs and instance are not used after
   close. */
INF_CHECK inf_err_t *inf_slot_inputs_open(
    const inf_sequence_inputs_t *inputs, inf_instance_t *instance,
    inf_slot_inputs_t **out);

/* slot may be NULL. */
void inf_slot_inputs_close(inf_slot_inputs_t *slot);

/*
 * req is about to execute in that slot: adds its controls (or sets those that
 * an earlier step added: iterative sequences) and its states.  With start the
 * states begin anew.  The request that ran in that slot before has been
 * released; req, and the states that it points at, are valid until the slot
 * is closed or its controls are added again.
 */
INF_CHECK inf_err_t *inf_slot_inputs_add_controls(inf_slot_inputs_t *slot,
    inf_request_t *req, bool start, bool end);

/*
 * A padding request for an empty slot (READY false, CORRID 0): inputs as
 * like's, which may have controls already, with zeros but for shape tensors,
 * whose values are like's; it wants no outputs, counts nowhere
 * (inf_request_t.padding) and ends in nothing.  State IDLE; the slot's again
 * when it is released.
 */
INF_CHECK inf_err_t *inf_slot_inputs_fill(inf_slot_inputs_t *slot,
    const inf_request_t *like, inf_request_t **out);

#endif /* INF_SCHED_SEQUENCE_INPUTS_H */
