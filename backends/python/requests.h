/*
 * requests.h - the requests that an interpreter has: by the ids that it knows
 *              them by, and how they are answered.
 *
 * Owner    A request is the core's until it is added, and again once it was
 *          released; what answers it later is a factory here.
 * Thread   the one that has the instance's consumer role; send: any.
 * Units    none.
 * Errors   An id that is none of these is INVALID_ARG.
 * Route    execute -> [requests] -> message -> results -> response
 */

#ifndef PY_REQUESTS_H
#define PY_REQUESTS_H

#include "../common/request.h"
#include "link.h"

typedef struct {
    TRITONBACKEND_Request         *request;     /* NULL: released            */
    TRITONBACKEND_ResponseFactory *factory;     /* NULL: not needed so far   */
    uint32_t                       generation;
    bool                           used;
    bool                           responded;   /* by its sender             */
    bool                           closed;      /* the last response is sent */
    bool                           dropped;     /* no sender any more        */
    bool                           lasting;     /* its batch is over, and its
                                       inputs stay until it is answered      */
} py_live_t;

typedef struct {
    py_live_t  *live;
    uint32_t    capacity;
    uint32_t    count;          /* of those in use                           */
} py_requests_t;

/* A response that can be sent.  NULL: none. */
typedef struct {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *wrong;      /* goes out in place of its outputs  */
    bool                    final;
} py_outgoing_t;

/* How inputs reach an interpreter. */
typedef struct {
    py_link_t    *link;
    bool          zero_copy;    /* a view of the server's memory where that
                                   has a file                                */
    int           socket_fd;    /* to send that file's descriptor over       */
    struct py_arenas_s *arenas;
    struct py_gpus_s   *gpus;
} py_way_t;

void py_requests_fini(py_requests_t *t);

BK_CHECK TRITONSERVER_Error *py_requests_add(py_requests_t *t,
    TRITONBACKEND_Request *request, uint64_t *id);

/* NULL: there is none. */
py_live_t *py_requests_find(py_requests_t *t, uint64_t id);

/* Forgets it; the factory goes, too. */
void py_requests_remove(py_requests_t *t, py_live_t *live);

/* All that it is, as one value. */
BK_CHECK TRITONSERVER_Error *py_request_write(py_writer_t *w,
    const py_way_t *way, TRITONBACKEND_Request *request, uint64_t id);

/* Makes the response that comes in r; the request is not closed.  A tensor in
   it that is wrong is told to the client; an error here says that there can be
   no response. */
BK_CHECK TRITONSERVER_Error *py_live_respond(py_live_t *live,
    py_link_t *link, py_reader_t *r, bool final, py_outgoing_t *out);

/* Makes the one that ends it with err, if it has had no final one; takes
   err. */
void py_live_fail(py_live_t *live, TRITONSERVER_Error *err,
    py_outgoing_t *out);

/* Sends it, which may wait for the client or an ensemble: on any thread, best
   without the consumer role. */
BK_CHECK TRITONSERVER_Error *py_outgoing_send(py_outgoing_t *out);

/* No response comes any more. */
BK_CHECK TRITONSERVER_Error *py_live_end(py_live_t *live);

/* Its request, which the caller releases; what may answer it later is kept. */
BK_CHECK TRITONSERVER_Error *py_live_take(py_live_t *live,
    TRITONBACKEND_Request **request);

/* Gives it to the core to run it again; on error it is still there. */
BK_CHECK TRITONSERVER_Error *py_live_reschedule(py_live_t *live);

BK_CHECK TRITONSERVER_Error *py_live_is_cancelled(const py_live_t *live,
    bool *cancelled);

/* Of all inputs the first's first dimension, 1 without batching. */
uint64_t py_request_rows(TRITONBACKEND_Request *request, bool batching);

#endif /* PY_REQUESTS_H */
