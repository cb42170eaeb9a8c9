/*
 * bls_request.h - a request of a model for another model (BLS), made of the
 *                 message that describes it.
 *
 * Owner    The caller has all that is in it, also after an error.
 * Thread   the one that has the instance's consumer role.
 * Units    bytes.
 * Errors   those of the message, and the server's.
 * Route    streams -> [bls_request] -> server
 */

#ifndef PY_BLS_REQUEST_H
#define PY_BLS_REQUEST_H

#include "link.h"
#include "requests.h"

/* Its data, copied. */
typedef struct py_bls_input_s py_bls_input_t;

typedef struct {
    py_link_t                     *link;        /* the caller's              */
    TRITONSERVER_InferenceRequest *request;
    py_bls_input_t                *inputs;
    uint64_t                       copied;      /* bytes of inputs           */
    TRITONSERVER_InferenceTrace   *trace;       /* NULL: none                */
    bool                           decoupled;
} py_bls_request_t;

/* q has a link alone.  requests: of which one's trace may go on. */
BK_CHECK TRITONSERVER_Error *py_bls_request_read(py_bls_request_t *q,
    TRITONSERVER_Server *server, py_requests_t *requests, py_reader_t *r);

void py_bls_inputs_free(py_bls_input_t *inputs);

#endif /* PY_BLS_REQUEST_H */
