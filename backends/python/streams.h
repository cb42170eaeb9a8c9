/*
 * streams.h - requests of a model to other models, and their responses.
 *
 * Owner    A stream has two references: of the interpreter's table, until its
 *          last response was handed over or is not wanted, and of the server,
 *          until request and responses are returned.
 * Thread   start, next, cancel, close, fini: the consumer role's.  Responses
 *          come on any thread; a stream has a lock.
 * Units    bytes.
 * Errors   A problem of a request becomes its response.
 * Route    calls -> [streams] -> server -> model -> [streams] -> reply
 *
 * The running model writes outputs directly to a block of the channel, which
 * the interpreter gets.
 */

#ifndef PY_STREAMS_H
#define PY_STREAMS_H

#include "link.h"
#include "requests.h"

typedef struct py_stream_s py_stream_t;

typedef struct {
    py_stream_t  **streams;
    uint32_t       capacity;
    uint64_t       last;        /* last id                                   */
} py_streams_t;

/* Cancels all requests, whose responses are dropped. */
void py_streams_fini(py_streams_t *t);

/* Starts the request in r.  Its slot gets the response or, for a decoupled
   request, the stream's id at once.  An error is for that slot. */
BK_CHECK TRITONSERVER_Error *py_streams_start(py_streams_t *t,
    py_link_t *link, TRITONSERVER_Server *server, py_requests_t *requests,
    uint32_t slot, py_reader_t *r);

/* Sends the next response to that slot, when it is there. */
BK_CHECK TRITONSERVER_Error *py_streams_next(py_streams_t *t, uint64_t id,
    uint32_t slot);

/* Cancel or close a stream; an unknown id is ignored. */
void py_streams_cancel(py_streams_t *t, uint64_t id);
void py_streams_close(py_streams_t *t, uint64_t id);

#endif /* PY_STREAMS_H */
