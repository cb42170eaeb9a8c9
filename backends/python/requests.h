/*
 * requests.h - the requests that an interpreter has, by their ids, and their
 *              answers.
 *
 * Owner    A request is the core's until it is added, and again after its
 *          release; later answers use a factory.
 * Thread   the thread with the instance's consumer role; send: any.
 * Units    none.
 * Errors   INVALID_ARG: an unknown id.
 * Route    execute -> [requests] -> message -> results -> response
 */

#ifndef PY_REQUESTS_H
#define PY_REQUESTS_H

#include "../common/request.h"
#include "link.h"

typedef enum {
    PY_LIVE_FREE,               /* no request                                */
    PY_LIVE_OPEN,
    PY_LIVE_RESPONDED,          /* by its sender; more may follow            */
    PY_LIVE_CLOSED              /* the last response was sent                */
} py_live_state_t;

typedef struct {
    TRITONBACKEND_Request         *request;     /* NULL: released            */
    TRITONBACKEND_ResponseFactory *factory;     /* NULL: not needed yet      */
    uint32_t                       generation;
    py_live_state_t                state;
    bool                           dropped;     /* its sender is gone        */
    bool                           again;       /* given back to the core: a
                                                   later execution answers   */
    bool                           lasting;     /* its batch has ended, and its
                                                   inputs stay until it is
                                                   answered                  */
} py_live_t;

typedef struct {
    py_live_t  *live;
    uint32_t    capacity;
    uint32_t    count;          /* number in use                             */
} py_requests_t;

/* A response to be sent; NULL: none. */
typedef struct {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *wrong;      /* sent instead of its outputs       */
    bool                    final;
} py_outgoing_t;

/* How inputs are passed to an interpreter. */
typedef struct {
    py_link_t    *link;
    bool          zero_copy;    /* as a view of the server's memory if that has
                                   a file                                    */
    int           socket_fd;    /* for that file's descriptor                */
    struct py_arenas_s *arenas;
    struct py_gpus_s   *gpus;
    bool          on_gpu;       /* inputs that lie on a GPU stay there        */
} py_way_t;

/* Frees the table; no request is left. */
void py_requests_fini(py_requests_t *t);

/* Adds a request, which gets an id. */
BK_CHECK TRITONSERVER_Error *py_requests_add(py_requests_t *t,
    TRITONBACKEND_Request *request, uint64_t *id);

/* The request of that id, or NULL. */
py_live_t *py_requests_find(py_requests_t *t, uint64_t id);

/* Removes the request, and its factory. */
void py_requests_remove(py_requests_t *t, py_live_t *live);

/* Writes the request as one value. */
BK_CHECK TRITONSERVER_Error *py_request_write(py_writer_t *w,
    const py_way_t *way, TRITONBACKEND_Request *request, uint64_t id);

/* Makes the response in r; the request stays open.  An invalid tensor is
   reported to the client; an error here means that no response is possible. */
BK_CHECK TRITONSERVER_Error *py_live_respond(py_live_t *live,
    py_link_t *link, py_reader_t *r, bool final, py_outgoing_t *out);

/* Makes the response that ends the request with err (taken), unless a final one
   was sent or the request was given back. */
void py_live_fail(py_live_t *live, TRITONSERVER_Error *err,
    py_outgoing_t *out);

/* Sends the response, which may wait for the client or an ensemble; on any
   thread, preferably without the consumer role. */
BK_CHECK TRITONSERVER_Error *py_outgoing_send(py_outgoing_t *out);

/* Reports that no more responses follow. */
BK_CHECK TRITONSERVER_Error *py_live_end(py_live_t *live);

/* Takes the request, which the caller releases; a factory for later responses
   is kept. */
BK_CHECK TRITONSERVER_Error *py_live_take(py_live_t *live,
    TRITONBACKEND_Request **request);

/* Returns it to the core to run again; a factory for later responses is kept
   if it has a sender.  On error it still has the request. */
BK_CHECK TRITONSERVER_Error *py_live_reschedule(py_live_t *live);

/* Whether the client has cancelled the request. */
BK_CHECK TRITONSERVER_Error *py_live_is_cancelled(const py_live_t *live,
    bool *cancelled);

/* Rows of the request: the first dimension of its first input; 1 without
   batching. */
uint64_t py_request_rows(TRITONBACKEND_Request *request, bool batching);

#endif /* PY_REQUESTS_H */
