/*
 * ngx_http_inference_peek.h - the names in a call of gRPC before its body is
 *                             received, for limits, maps and logs.
 *
 * Owner    The names are in the request's pool.  A request that waits for its
 *          first bytes is listed with its connection, until the request goes on
 *          or ends.
 * Thread   the worker's event loop.
 * Units    bytes; ms for timers.
 * Errors   nginx return codes of a phase.
 * Route    preaccess phase -> [preread] -> names -> variables, content handler
 *
 * The bytes stay in nginx's own buffer of the HTTP/2 stream, where the reader
 * of the body finds them.  The content handler compares the names of the whole
 * message with the names that were read early.
 */

#ifndef NGX_HTTP_INFERENCE_PEEK_H
#define NGX_HTTP_INFERENCE_PEEK_H

#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_leaving.h"

#include "core/proto/message_names.h"


/* bytes of the first message that are read */
#define NGX_HTTP_INFERENCE_PEEK_SIZE  ((size_t) 4096)


typedef struct ngx_http_inference_waiter_s  ngx_http_inference_waiter_t;

/* may finalize the waiter's request */
typedef void (*ngx_http_inference_waiter_pt)(
    ngx_http_inference_waiter_t *waiter);

/* a request that waits for bytes of a body not read yet; zeroed first */
struct ngx_http_inference_waiter_s {
    ngx_queue_t                   queue;
    ngx_http_request_t           *request;
    ngx_http_inference_waiter_pt  more;
    unsigned                      waiting:1;
    unsigned                      again:1;      /* has waited before         */
};

typedef enum {
    NGX_HTTP_INFERENCE_PEEK_NEW = 0,
    NGX_HTTP_INFERENCE_PEEK_LATE,               /* not waited for any more   */
    NGX_HTTP_INFERENCE_PEEK_BLIND,              /* nginx buffers too little  */
    NGX_HTTP_INFERENCE_PEEK_DONE,               /* finished, without names   */
    NGX_HTTP_INFERENCE_PEEK_SEEN                /* finished, names found     */
} ngx_http_inference_peek_state_e;


/* the names of a gRPC call */
typedef struct {
    ngx_http_inference_waiter_t   waiter;
    ngx_event_t                   timer;
    ngx_event_t                   turn;         /* posted: worker exits      */
    ngx_http_inference_leaver_t   leaver;
    ngx_http_inference_names_t    names;        /* empty until SEEN          */
    ngx_http_inference_peek_state_e  state;
    unsigned                      asked:1;      /* a directive has used the
                                                   names before our handler  */
} ngx_http_inference_peek_t;


/* ---- peek.c -------------------------------------------------------------- */

/* The handler of the preaccess phase that reads the names. */
ngx_int_t ngx_http_inference_peek_handler(ngx_http_request_t *r);

/* The peek of a request that has passed that phase.  NULL: the request is not
   gRPC, or its location does not read the names. */
ngx_http_inference_peek_t *ngx_http_inference_peek(ngx_http_request_t *r);

/* Compare the names of the whole message, or of the text of a call, which are
   noted for logs, with the names that were read early.  The request fails if
   the names differ and directives have used them. */
ngx_int_t ngx_http_inference_peek_check(ngx_http_inference_ctx_t *ctx,
    inf_slice_t model, inf_slice_t version);
ngx_int_t ngx_http_inference_peek_check_call(ngx_http_inference_ctx_t *ctx);

/* The names in the message of a method, or in the first bytes of the message.
   The names are views into text. */
inf_names_t ngx_http_inference_peek_names(
    const ngx_http_inference_endpoint_t *method, inf_slice_t text);

/* Whether all messages of a stream must have the names of peek, which may be
   NULL. */
ngx_uint_t ngx_http_inference_peek_binds_stream(
    ngx_http_inference_peek_t *peek);


/* ---- early.c ------------------------------------------------------------- */

/* Reads the names of a request without a context into early.  The names are of
   the request's location, or of the location that error_page has left.  NULL:
   there are no names. */
ngx_http_inference_ctx_t *ngx_http_inference_early(ngx_http_request_t *r,
    ngx_http_inference_ctx_t *early);

/* The handler of the preaccess phase that keeps the names for a location of
   error_page. */
ngx_int_t ngx_http_inference_early_handler(ngx_http_request_t *r);


/* ---- preread.c ----------------------------------------------------------- */

/* How many bytes of a body nginx buffers before a handler reads the body.  0:
   none, or a handler reads the body. */
size_t ngx_http_inference_preread_max(ngx_http_request_t *r);

/* If that is not 0: the bytes that have been received, in one piece, and
   whether more may come. */
ngx_str_t ngx_http_inference_preread(ngx_http_request_t *r);
ngx_uint_t ngx_http_inference_preread_grows(ngx_http_request_t *r);

/* How many more bytes of a body the client may send before nginx grants
   more. */
size_t ngx_http_inference_preread_room(ngx_http_request_t *r);

/* Calls waiter->more once, when more bytes of the connection have been read.
   Bytes that nginx has read and not yet parsed count as more. */
ngx_int_t ngx_http_inference_preread_wait(ngx_http_inference_waiter_t *waiter);

/* Ends a wait; does nothing if the waiter does not wait. */
void ngx_http_inference_preread_stop(ngx_http_inference_waiter_t *waiter);


#endif /* NGX_HTTP_INFERENCE_PEEK_H */
