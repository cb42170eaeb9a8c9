/*
 * ngx_http_inference_response.h - sends the response of an inference of REST.
 *
 * Owner    JSON is in buffers of the pool, which are reused.  Tensors stay in
 *          the response arena until they are sent.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   A phase's (ngx_http_inference_request.h).
 * Route    reply -> [respond -> respond_more] -> filters -> socket.
 */

#ifndef NGX_HTTP_INFERENCE_RESPONSE_H
#define NGX_HTTP_INFERENCE_RESPONSE_H

#include "ngx_module/ngx_http_inference_request.h"


/* ---- response.c --------------------------------------------------------- */

/* Sends the head and the bytes available.  NGX_OK: all is sent, ctx->rc is set.
   NGX_DECLINED: the rest follows as the socket drains. */
ngx_int_t ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx);

/* Sends more.  NGX_OK: all is sent, ctx->rc is set. */
ngx_int_t ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx);

/* Passes out to nginx's filters with ctx->free and ctx->busy.  NGX_ERROR:
   ctx->rc is NGX_ERROR, too. */
ngx_int_t ngx_http_inference_output(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *out);

/* Checks for room in the socket.  NGX_DECLINED: there is room.  Else as a
   phase. */
ngx_int_t ngx_http_inference_drained(ngx_http_inference_ctx_t *ctx);

/* Whether bytes passed to nginx are not sent yet. */
ngx_uint_t ngx_http_inference_is_blocked(ngx_http_inference_ctx_t *ctx);

/* Waits for the socket.  NGX_OK: it cannot, ctx->rc is set. */
ngx_int_t ngx_http_inference_wait_writable(ngx_http_inference_ctx_t *ctx);

/* Bounds the frames of HTTP/2 that wait for the socket. */
void ngx_http_inference_output_install_filter(void);

/* A link with the mark of the response's last byte; NULL: out of memory. */
ngx_chain_t *ngx_http_inference_end_link(ngx_http_request_t *r);


/* ---- pack.c ------------------------------------------------------------- */

/* Sets ctx->packer if client and location want compression.  NGX_ERROR:
   failed. */
ngx_int_t ngx_http_inference_pack_open(ngx_http_inference_ctx_t *ctx);

/* Adds Content-Encoding to the head. */
ngx_int_t ngx_http_inference_pack_header(ngx_http_request_t *r);

/* Compresses a step of ctx->writer's JSON and tensors to *p.  NGX_DONE: all is
   written. */
ngx_int_t ngx_http_inference_pack(ngx_http_inference_ctx_t *ctx, u_char **p,
    size_t len);

/* packer may be NULL. */
void ngx_http_inference_pack_close(ngx_http_inference_packer_t *packer);


#endif /* NGX_HTTP_INFERENCE_RESPONSE_H */
