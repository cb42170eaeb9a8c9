/*
 * ngx_http_inference_events.h - the responses of generate_stream as server-sent
 *                               events.
 *
 * Owner    The events own the replies that wait to be written.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   A phase's (ngx_http_inference_request.h); a failure after the
 *          head is sent as the last event.
 * Route    client -> [completed -> next -> respond, send] -> socket.
 */

#ifndef NGX_HTTP_INFERENCE_EVENTS_H
#define NGX_HTTP_INFERENCE_EVENTS_H

#include "ngx_module/ngx_http_inference_request.h"


/* Prepares server-sent events of generate_stream, before the submission. */
ngx_int_t ngx_http_inference_events_open(ngx_http_inference_ctx_t *ctx);

/* Frees what events holds. */
void ngx_http_inference_events_free(ngx_http_inference_events_t *events);

/* Whether a response has come or was sent. */
ngx_uint_t ngx_http_inference_events_begun(ngx_http_inference_ctx_t *ctx);

/* Takes a completion; c NULL: the core has exited. */
void ngx_http_inference_events_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Takes the next response.  NGX_OK: it is to be prepared.  NGX_DECLINED: no
   more come. */
ngx_int_t ngx_http_inference_events_next(ngx_http_inference_ctx_t *ctx);

/* Sends the head once.  NGX_DECLINED: events follow. */
ngx_int_t ngx_http_inference_events_respond(ngx_http_inference_ctx_t *ctx);

/* Sends events.  NGX_OK: all is sent, ctx->rc is set.  NGX_DECLINED: another
   response is to be prepared. */
ngx_int_t ngx_http_inference_events_send(ngx_http_inference_ctx_t *ctx);

/* Sends a failure after the head as the last event. */
void ngx_http_inference_events_reject(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_EVENTS_H */
