/*
 * ngx_http_inference_join.h - answers of inference_upstream, joined with the
 *                             core's.
 *
 * Owner    The question to the upstream lives in the request's pool; the end of
 *          the request cancels the question.
 * Thread   the worker's event loop.
 * Units    bytes, ms.
 * Errors   An upstream that does not answer is logged, and the core's answer is
 *          sent alone.  NGX_ERROR: the request has failed.
 * Route    control -> [begin] -> ask -> server -> [end] -> control.
 *
 * begin is called before the submission, end after the core's answer.
 */

#ifndef NGX_HTTP_INFERENCE_JOIN_H
#define NGX_HTTP_INFERENCE_JOIN_H

#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/slice.h"


/* ---- missing.c ---------------------------------------------------------- */

/* Called before the submission; notes that inference_upstream may be asked. */
ngx_int_t ngx_http_inference_missing_begin(ngx_http_inference_ctx_t *ctx);

/* NGX_DECLINED: the core's answer is valid.  NGX_OK: body is the answer of the
   upstream, which has the model.  NGX_AGAIN: as join_end. */
ngx_int_t ngx_http_inference_missing(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);


/* ---- join.c ------------------------------------------------------------- */

/* Starts the request to the upstream of inference_upstream, if there is one. */
ngx_int_t ngx_http_inference_join_begin(ngx_http_inference_ctx_t *ctx);

/* Whether the core is to answer in REST's form, even for a gRPC call. */
ngx_uint_t ngx_http_inference_join_wants_text(ngx_http_inference_ctx_t *ctx);

/* Whether the core has answered, and only the upstream's answer is missing. */
ngx_uint_t ngx_http_inference_join_waits(ngx_http_inference_ctx_t *ctx);

/* Joins the upstream's answer with body, the core's, which is kept.  NGX_AGAIN:
   the upstream has not answered; a turn is posted when it does. */
ngx_int_t ngx_http_inference_join_end(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);

/* Converts a REST answer to the client's: for gRPC, the message of the call. */
ngx_int_t ngx_http_inference_join_text(ngx_http_inference_ctx_t *ctx,
    inf_slice_t text, ngx_str_t *body);


#endif /* NGX_HTTP_INFERENCE_JOIN_H */
