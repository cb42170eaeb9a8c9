/*
 * bls_response.h - outputs and responses of other models (BLS): the memory that
 *                  such a model writes to, and the message that the
 *                  interpreter gets.
 *
 * Owner    py_bls_outputs_t is a part of its stream, which outlives the
 *          responses.  A response is the caller's.
 * Thread   any: responses come on the threads of other models.
 * Units    bytes.
 * Errors   those of a response go into its message.
 * Route    server -> [bls_response] -> streams -> reply
 *
 * Outputs are written straight into blocks of the channel, which the
 * interpreter could write to, too.  Where a response cache may keep them, they
 * are in memory of the backend's until the interpreter is told of them.
 */

#ifndef PY_BLS_RESPONSE_H
#define PY_BLS_RESPONSE_H

#include "link.h"

typedef struct {
    py_link_t *link;
    bool       hidden;          /* from the interpreter; set in set()        */
} py_bls_outputs_t;

/* o has a link alone. */
BK_CHECK TRITONSERVER_Error *py_bls_outputs_set(py_bls_outputs_t *o,
    TRITONSERVER_InferenceRequest *request,
    TRITONSERVER_InferenceResponseCompleteFn_t on_response, void *userp);

/* [error or none, outputs, parameters]; NULL: one without outputs */
void py_bls_response_write(const py_bls_outputs_t *o, py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);

/* NULL does nothing. */
void py_bls_response_delete(TRITONSERVER_InferenceResponse *response);

#endif /* PY_BLS_RESPONSE_H */
