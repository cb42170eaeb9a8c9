/*
 * batch.h - one run of the session for one or more requests.
 *
 * Owner    ort_batch_t belongs to its instance; its tables live as long, the
 *          tensors in it for one run.
 * Thread   its instance's.
 * Units    rows of the batch dimension, times in ns.
 * Errors   ort_batch_run fails for all its slots alike; a slot whose own
 *          outputs cannot be made keeps its own error.
 * Route    slot -> [batch] -> the library -> [batch] -> slot
 *
 * One request's data is used where it lies; several are copied together.
 * Where an output's shape is known beforehand the library writes it straight
 * into the response, otherwise it is copied there once.
 */

#ifndef ORT_BATCH_H
#define ORT_BATCH_H

#include "slot.h"

typedef struct {
    void  *data;                        /* 64-byte aligned                   */
    size_t cap;
} ort_scratch_t;

typedef struct {
    const ort_session_t *session;
    bool                 batching;
    bool                 bind_outputs;  /* the model keeps its word on shapes */
    ort_scratch_t       *scratch;       /* one per input                     */
    const char         **input_names;   /* of this run, as all below         */
    OrtValue           **inputs;
    uint32_t             input_count;
    const char         **output_names;
    OrtValue           **outputs;
    uint32_t            *output_index;  /* into the session's outputs        */
    bool                *bound;         /* lies in the response already      */
    uint32_t             output_count;
    bk_batch_source_t   *sources;       /* shapes that batch inputs count    */
    uint32_t             source_cap;
} ort_batch_t;

BK_CHECK TRITONSERVER_Error *ort_batch_init(ort_batch_t *b,
    const ort_session_t *session, bool batching);
void ort_batch_fini(ort_batch_t *b);

/* Fills the responses of count slots that join; notes the times between. */
BK_CHECK TRITONSERVER_Error *ort_batch_run(ort_batch_t *b, ort_slot_t *slots,
    uint32_t count, ort_times_t *times);

#endif /* ORT_BATCH_H */
