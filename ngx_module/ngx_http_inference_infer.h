/*
 * ngx_http_inference_infer.h - an inference, from its JSON to its submission.
 *
 * Owner    Tables and texts are ctx->arena's.  Record and decoded tensors are a
 *          region, which the submission takes.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   A phase's (ngx_http_inference_request.h).
 * Route    body -> [init -> read] -> driver -> [decode -> submit] -> client.
 */

#ifndef NGX_HTTP_INFERENCE_INFER_H
#define NGX_HTTP_INFERENCE_INFER_H

#include "ngx_module/ngx_http_inference_request.h"


/* ---- infer.c ------------------------------------------------------------ */

/* Prepares the reader, or raw mode. */
ngx_int_t ngx_http_inference_infer_init(ngx_http_inference_ctx_t *ctx);

/* Parses more JSON.  NGX_OK: all is parsed.  NGX_AGAIN: the slice is over, or
   bytes are missing. */
ngx_int_t ngx_http_inference_infer_read(ngx_http_inference_ctx_t *ctx);

/* Converts numbers in JSON to tensors. */
ngx_int_t ngx_http_inference_infer_decode(ngx_http_inference_ctx_t *ctx);

/* Submits the request.  NGX_DECLINED: the core has exited, another may take
   it. */
ngx_int_t ngx_http_inference_infer_submit(ngx_http_inference_ctx_t *ctx);


/* ---- forward.c ---------------------------------------------------------- */

/* Adds headers of inference_forward to ctx->infer as parameters. */
ngx_int_t ngx_http_inference_forward(ngx_http_inference_ctx_t *ctx);


/* ---- trace_context.c ---------------------------------------------------- */

/* If traces go to a collector, adds the client's trace context to ctx->infer as
   parameters, which the core removes. */
ngx_int_t ngx_http_inference_trace_headers(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_INFER_H */
