/*
 * ngx_http_inference_retry.h - a request whose core has exited goes to the
 *                              next core.
 *
 * Owner    The retry owns its copies until they replace the request's regions.
 * Thread   the worker's event loop.
 * Units    bytes; ms for pauses.
 * Errors   A phase's (ngx_http_inference_request.h).
 * Route    in_flight -> [wanted -> begin -> pause, retry] -> infer, control.
 */

#ifndef NGX_HTTP_INFERENCE_RETRY_H
#define NGX_HTTP_INFERENCE_RETRY_H

#include "ngx_module/ngx_http_inference_request.h"

#include "core/wire/client.h"


/*
 * Whether the request goes to the next core.  Its core has exited (c is NULL)
 * before a response, no sequence was lost, and either the executions are fewer
 * than inference_tries or the call may be carried out twice; or the core has
 * not loaded the model yet.  Counts requests that have used all tries.
 */
ngx_uint_t ngx_http_inference_retry_wanted(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Begins the retry.  NGX_ERROR: out of memory. */
ngx_int_t ngx_http_inference_retry_begin(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* The phase PAUSING: waits before the core is asked again. */
ngx_int_t ngx_http_inference_retry_pause(ngx_http_inference_ctx_t *ctx);

/* The phase RETRYING: waits for the new core and copies the bytes into its
   arena. */
ngx_int_t ngx_http_inference_retry(ngx_http_inference_ctx_t *ctx);

/* Frees unfinished copies. */
void ngx_http_inference_retry_free(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_RETRY_H */
