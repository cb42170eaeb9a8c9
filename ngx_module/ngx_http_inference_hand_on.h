/*
 * ngx_http_inference_hand_on.h - gives a body to another handler (error_page).
 *
 * Owner    The request keeps its regions while the next handler reads them,
 *          until ngx_http_inference_hand_on_end().
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   NGX_DECLINED: the body is not given away, and our error is sent.
 * Route    reject -> [hand_on] -> nginx -> the next handler.
 */

#ifndef NGX_HTTP_INFERENCE_HAND_ON_H
#define NGX_HTTP_INFERENCE_HAND_ON_H

#include "ngx_module/ngx_http_inference_request.h"


/* Whether another handler may use the body afterwards. */
ngx_uint_t ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx);

/* Passes the body as r->request_body->bufs to the next handler of r;
   NGX_DECLINED: it is incomplete, or other handlers hold too many bytes. */
ngx_int_t ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx);

/* Ends the next handler's use of the body. */
void ngx_http_inference_hand_on_end(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_HAND_ON_H */
