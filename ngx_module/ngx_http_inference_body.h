/*
 * ngx_http_inference_body.h - how a body is received, and where its bytes
 *                             belong.
 *
 * Owner    The body is part of the context.  Its stores own regions of the
 *          request arena; its chains and buffers are nginx's.
 * Thread   the worker's event loop.
 * Units    bytes; ms for the rated period.
 * Errors   A phase's (ngx_http_inference_request.h).
 * Route    driver -> [headers -> body -> source -> place] -> store.
 *
 * A body passes through these calls: headers_check, body_open (borrow, if main
 * has to read the body for a subrequest), body_receive until the end,
 * body_read.  body_stop may be called at any stage; body_swallow follows a
 * failure.
 */

#ifndef NGX_HTTP_INFERENCE_BODY_H
#define NGX_HTTP_INFERENCE_BODY_H

#include "ngx_module/ngx_http_inference.h"
#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_store.h"


/* JSON up to this size is parsed while it arrives, larger JSON in slices */
#define NGX_HTTP_INFERENCE_INLINE_TEXT  (256 * 1024)


/* the reader of the body from the connection */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_OWN = 0,    /* the request itself, by a filter   */
    NGX_HTTP_INFERENCE_BODY_FOREIGN,    /* another handler has read it       */
    NGX_HTTP_INFERENCE_BODY_MAIN        /* main reads it for a subrequest    */
} ngx_http_inference_origin_e;


/* progress of the body, in this order */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_UNREAD = 0,
    NGX_HTTP_INFERENCE_BODY_ARRIVING,
    NGX_HTTP_INFERENCE_BODY_DROPPED,    /* the end was received, bytes
                                           discarded                         */
    NGX_HTTP_INFERENCE_BODY_COMPLETE,   /* the last byte was received        */
    NGX_HTTP_INFERENCE_BODY_PLAIN,      /* and all plain bytes are placed    */
    NGX_HTTP_INFERENCE_BODY_CHECKED     /* and the length of the tail is
                                           right                             */
} ngx_http_inference_body_e;


/* destination of the next plain bytes */

typedef enum {
    NGX_HTTP_INFERENCE_TEXT = 0,        /* the JSON header                   */
    NGX_HTTP_INFERENCE_TENSOR,          /* each tensor, at its aligned place */
    NGX_HTTP_INFERENCE_TENSOR_END,      /* no more bytes allowed             */
    NGX_HTTP_INFERENCE_FLAT,            /* tensors in one piece              */
    NGX_HTTP_INFERENCE_FLAT_END         /* no more bytes allowed             */
} ngx_http_inference_place_e;


typedef struct {
    ngx_http_inference_origin_e  origin;
    ngx_http_inference_body_e    stage;
    ngx_http_inference_place_e   place;
    ngx_chain_t                 *arrived;       /* in the filter             */
    ngx_chain_t                 *in;            /* read by another handler   */
    off_t                        in_pos;        /* position in the link's
                                                   buffer, or in packed      */
    ngx_buf_t                   *piece;         /* part of a file, to
                                                   inflate                   */
    off_t                        declared;      /* Content-Length, or -1     */
    off_t                        received;      /* bytes received            */
    off_t                        plain;         /* bytes after inflating     */
    off_t                        header_len;    /* length of the JSON, -1: the
                                                   whole body                */
    off_t                        swallowed;
    off_t                        rated;         /* request_length at the start
                                                   of the rated period       */
    ngx_msec_t                   rated_since;   /* start of the rated period */
    ngx_str_t                    encoding;
    ngx_http_inference_inflate_t  *inflate;     /* NULL: not compressed      */
    ngx_http_inference_store_t   packed;        /* compressed, as received   */
    ngx_http_inference_store_t   text;
    ngx_http_inference_store_t   data;          /* binary tensors, raw body  */
    ngx_uint_t                   tensor;        /* index of the input received
                                                   now                       */
    uint64_t                     filled;        /* bytes of that input       */
    unsigned                     lagging:1;     /* text is parsed in slices  */
} ngx_http_inference_body_t;


/* whether the tensors behind the JSON are kept in one piece */
#define ngx_http_inference_is_flat(body)                                      \
    ((body)->place >= NGX_HTTP_INFERENCE_FLAT)


/* ---- headers.c ---------------------------------------------------------- */

/* Sets the body's origin, length and encoding from the headers. */
ngx_int_t ngx_http_inference_headers_check(ngx_http_inference_ctx_t *ctx);


/* ---- borrow.c ----------------------------------------------------------- */

/* Saves main's handlers before its body is read. */
void ngx_http_inference_borrow_begin(ngx_http_inference_ctx_t *ctx);

/* Called when nginx has begun to read main's body. */
void ngx_http_inference_borrow_begun(ngx_http_inference_ctx_t *ctx);

/* The phase BORROWING.  NGX_OK: main has its body.  NGX_DECLINED: main was
   answered. */
ngx_int_t ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx);


/* ---- body.c ------------------------------------------------------------- */

/* Prepares to receive the body.  NGX_DECLINED: main has to read it first. */
ngx_int_t ngx_http_inference_body_open(ngx_http_inference_ctx_t *ctx);

/* Receives the body.  NGX_OK: the end was received.  NGX_DECLINED: the request
   has failed, and the rest of the body is to be swallowed. */
ngx_int_t ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx);

/* Reads the rest of a failed request's body.  NGX_ERROR: the limit is
   reached. */
ngx_int_t ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx);

/* Inflates and places the body, parses its JSON.  NGX_DECLINED: it is a call's
   body. */
ngx_int_t ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx);

/* Stops or discards the body before the answer, at any stage. */
void ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx);


/* ---- source.c ----------------------------------------------------------- */

/* Inflates and places bytes that were received before. */
ngx_int_t ngx_http_inference_source(ngx_http_inference_ctx_t *ctx);


/* ---- place.c ------------------------------------------------------------ */

/* Copies n plain bytes to their places. */
ngx_int_t ngx_http_inference_place(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);

/* The place of the next bytes, and its size of at most want (not 0) bytes. */
ngx_int_t ngx_http_inference_place_window(ngx_http_inference_ctx_t *ctx,
    size_t want, u_char **p, size_t *n);

/* Counts n bytes written to that window. */
ngx_int_t ngx_http_inference_place_commit(ngx_http_inference_ctx_t *ctx,
    size_t n);

/* Whether no more bytes are allowed. */
ngx_uint_t ngx_http_inference_place_is_full(ngx_http_inference_ctx_t *ctx);

/* Keeps all further bytes in one piece. */
ngx_int_t ngx_http_inference_place_flat(ngx_http_inference_ctx_t *ctx);

/* Called at the end of the plain bytes. */
ngx_int_t ngx_http_inference_place_end(ngx_http_inference_ctx_t *ctx);

/* Allocates the places of the binary tensors of ctx->infer. */
ngx_int_t ngx_http_inference_place_plan(ngx_http_inference_ctx_t *ctx);

/* Checks, after the end, that the binary tensors fill the tail. */
ngx_int_t ngx_http_inference_place_check(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_BODY_H */
