/*
 * ngx_http_inference_control.h - calls that are no inferences, and the status.
 *
 * Owner    The record lies behind the body's text, in the same store.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   A phase's (ngx_http_inference_request.h).
 * Route    body -> [room -> submit] -> client -> core -> [respond] -> socket.
 */

#ifndef NGX_HTTP_INFERENCE_CONTROL_H
#define NGX_HTTP_INFERENCE_CONTROL_H

#include "ngx_module/ngx_http_inference_request.h"


/* ---- control.c ---------------------------------------------------------- */

/* Reserves room behind the body's text for the record. */
ngx_int_t ngx_http_inference_control_room(ngx_http_inference_ctx_t *ctx);

/* Submits the call.  NGX_DECLINED: the core has exited, another may take it. */
ngx_int_t ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx);

/* Whether the call asks for the present state, so that it does not wait for a
   core to start. */
ngx_uint_t ngx_http_inference_control_asks_now(ngx_http_inference_ctx_t *ctx);

/* Sends the core's answer.  NGX_OK: ctx->rc is set. */
ngx_int_t ngx_http_inference_control_respond(ngx_http_inference_ctx_t *ctx);


/* ---- status.c ----------------------------------------------------------- */

/* Whether the status is wanted as a page: by a browser, or by an argument. */
ngx_uint_t ngx_http_inference_status_wants_page(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_status_page(ngx_http_request_t *r);

/* Sends the status as JSON; answer is the core's, not empty, and stays
   valid. */
ngx_int_t ngx_http_inference_status_json(ngx_http_request_t *r,
    ngx_str_t *answer);


#endif /* NGX_HTTP_INFERENCE_CONTROL_H */
