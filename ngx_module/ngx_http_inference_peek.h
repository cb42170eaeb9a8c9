/*
 * ngx_http_inference_peek.h - the names in a call of gRPC before its body is
 *                             received, for limits, maps and logs.
 *
 * Owner    The names live in the request's pool; a request that waits for its
 *          first bytes is listed with its connection until it goes on or ends.
 * Thread   the worker's event loop.
 * Units    bytes; ms for timers.
 * Errors   nginx return codes of a phase.
 * Route    preaccess phase -> [preread] -> names -> variables, and the content
 *          handler, which holds the message against them.
 *
 * The bytes stay in nginx's own buffer of a stream of HTTP/2, where a reader of
 * the body finds them.
 */

#ifndef NGX_HTTP_INFERENCE_PEEK_H
#define NGX_HTTP_INFERENCE_PEEK_H

#include "ngx_module/ngx_http_inference_grpc.h"

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
    ngx_str_t                     model;
    ngx_str_t                     version_text;
    ngx_http_inference_peek_state_e  state;
    unsigned                      asked:1;      /* a directive has used the
                                                   names before our handler  */
} ngx_http_inference_peek_t;


/* ---- peek.c -------------------------------------------------------------- */

/* Adds the handler of the preaccess phase. */
ngx_int_t ngx_http_inference_peek_install(ngx_conf_t *cf);

/* The peek of a request that has passed that phase.  NULL: not gRPC, or its
   location does not read the names. */
ngx_http_inference_peek_t *ngx_http_inference_peek(ngx_http_request_t *r);

/* Compares the names of the whole message (or of a call's text) with those read
   early.  Fails if they differ and directives have used them. */
ngx_int_t ngx_http_inference_peek_check(ngx_http_inference_ctx_t *ctx,
    inf_slice_t model, inf_slice_t version);
ngx_int_t ngx_http_inference_peek_check_call(ngx_http_inference_ctx_t *ctx);

/* The names in a method's message, or in its first bytes; views into text. */
inf_names_t ngx_http_inference_peek_names(
    const ngx_http_inference_endpoint_t *method, inf_slice_t text);

/* Whether the messages of a stream have to keep to these names; NULL: no. */
ngx_uint_t ngx_http_inference_peek_binds_stream(
    ngx_http_inference_peek_t *peek);


/* ---- early.c ------------------------------------------------------------- */

/* Reads the names of a request without a context into early, from its location,
   or from the one that error_page has left.  NULL: no names. */
ngx_http_inference_ctx_t *ngx_http_inference_early(ngx_http_request_t *r,
    ngx_http_inference_ctx_t *early);

/* Adds a handler of the preaccess phase, which keeps the names for the location
   of an error_page. */
ngx_int_t ngx_http_inference_early_install(ngx_conf_t *cf);


/* ---- preread.c ----------------------------------------------------------- */

/* How many bytes of a body nginx puts aside before somebody reads it; 0: none,
   or it is being read. */
size_t ngx_http_inference_preread_max(ngx_http_request_t *r);

/* Where that is not 0: the bytes that are there, in one piece; and whether more
   may come. */
ngx_str_t ngx_http_inference_preread(ngx_http_request_t *r);
ngx_uint_t ngx_http_inference_preread_grows(ngx_http_request_t *r);

/* How many more the client may send of a body, before more is granted. */
size_t ngx_http_inference_preread_room(ngx_http_request_t *r);

/* Calls waiter->more once after bytes of the connection have been read: those
   that have been read already, but not been looked at by nginx, count. */
ngx_int_t ngx_http_inference_preread_wait(ngx_http_inference_waiter_t *waiter);

/* Does nothing where it does not wait. */
void ngx_http_inference_preread_stop(ngx_http_inference_waiter_t *waiter);


#endif /* NGX_HTTP_INFERENCE_PEEK_H */
