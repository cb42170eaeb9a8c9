/*
 * bls_response.h - outputs and responses of other models (BLS): the output
 *                  memory, and the message to the interpreter.
 *
 * Owner    py_bls_outputs_t is a part of its stream, which outlives the
 *          responses.  A response is the caller's.
 * Thread   any: responses come on the threads of other models.
 * Units    bytes.
 * Errors   Errors of a response are in its message.
 * Route    server -> [bls_response] -> streams -> reply
 *
 * Outputs are written directly to blocks of the channel, which the interpreter
 * can write to, too.  Outputs that a response cache may keep are in memory of
 * the backend until the interpreter gets them.
 */

#ifndef PY_BLS_RESPONSE_H
#define PY_BLS_RESPONSE_H

#include "link.h"

typedef struct {
    py_link_t *link;
    int64_t    gpu;             /* where outputs on a GPU are to be; -1: on
                                   the CPU                                   */
    bool       hidden;          /* not mapped by the interpreter; set in
                                   set()                                     */
} py_bls_outputs_t;

/* Sets the allocator and callback of request; o has only its link and GPU. */
BK_CHECK TRITONSERVER_Error *py_bls_outputs_set(py_bls_outputs_t *o,
    TRITONSERVER_InferenceRequest *request,
    TRITONSERVER_InferenceResponseCompleteFn_t on_response, void *userp);

/* Writes [error or none, outputs, parameters]; response NULL: one without
   outputs. */
void py_bls_response_write(const py_bls_outputs_t *o, py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);

/* Deletes a response, which may be NULL. */
void py_bls_response_delete(TRITONSERVER_InferenceResponse *response);

#endif /* PY_BLS_RESPONSE_H */
