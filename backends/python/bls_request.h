/*
 * bls_request.h - a model's request to another model (BLS), built from its
 *                 message.
 *
 * Owner    The caller owns its contents, even after an error.
 * Thread   the thread with the instance's consumer role.
 * Units    bytes.
 * Errors   Errors of the message, and the server's.
 * Route    streams -> [bls_request] -> server
 */

#ifndef PY_BLS_REQUEST_H
#define PY_BLS_REQUEST_H

#include "link.h"
#include "requests.h"

/* An input with a copy of its data, or the memory of a GPU that it is in. */
typedef struct py_bls_input_s py_bls_input_t;

typedef struct {
    py_link_t                     *link;        /* the caller's              */
    TRITONSERVER_InferenceRequest *request;
    py_bls_input_t                *inputs;
    uint64_t                       copied;      /* bytes of inputs           */
    TRITONSERVER_InferenceTrace   *trace;       /* NULL: none                */
    bool                           decoupled;
    int64_t                        gpu;         /* for outputs; -1: none     */
} py_bls_request_t;

/* Builds the request from a message; q has only its link.  requests: the
   request whose trace continues is one of them. */
BK_CHECK TRITONSERVER_Error *py_bls_request_read(py_bls_request_t *q,
    TRITONSERVER_Server *server, py_requests_t *requests, py_reader_t *r);

/* Frees the list; inputs may be NULL. */
void py_bls_inputs_free(py_bls_input_t *inputs);

#endif /* PY_BLS_REQUEST_H */
