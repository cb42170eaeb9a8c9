/*
 * streams.h - requests of a model for other models, and their responses.
 *
 * Owner    A stream has two references: the interpreter's table, until its
 *          last response was handed over or nobody wants it any more, and the
 *          server's, until request and responses have come back.
 * Thread   start, next, cancel, close, fini: the consumer role's.  Responses
 *          come on any thread; a stream has a lock.
 * Units    bytes.
 * Errors   What is wrong with a request becomes its response.
 * Route    calls -> [streams] -> server -> model -> [streams] -> reply
 *
 * Outputs are written by the model that runs straight into a block of the
 * channel; the interpreter gets that block.
 */

#ifndef PY_STREAMS_H
#define PY_STREAMS_H

#include "link.h"
#include "requests.h"

typedef struct py_stream_s py_stream_t;

typedef struct {
    py_stream_t  **streams;
    uint32_t       capacity;
    uint64_t       last;        /* id                                        */
} py_streams_t;

/* Cancels what is under way: nobody takes it any more. */
void py_streams_fini(py_streams_t *t);

/* Begins the request that comes in r.  Its slot gets the response, or, of a
   decoupled one, the stream's id at once.  An error is for that slot. */
BK_CHECK TRITONSERVER_Error *py_streams_start(py_streams_t *t,
    py_link_t *link, TRITONSERVER_Server *server, py_requests_t *requests,
    uint32_t slot, py_reader_t *r);

/* The next response goes to that slot, once it is there. */
BK_CHECK TRITONSERVER_Error *py_streams_next(py_streams_t *t, uint64_t id,
    uint32_t slot);

/* An id of nothing is none to cancel. */
void py_streams_cancel(py_streams_t *t, uint64_t id);
void py_streams_close(py_streams_t *t, uint64_t id);

#endif /* PY_STREAMS_H */
