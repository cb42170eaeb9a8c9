/*
 * ngx_http_inference_inflate.h - decodes bytes in gzip or zlib format.
 *
 * Owner    The decoder's memory is the pool's.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   NGX_ERROR and a reason; the caller fails the request.
 * Route    source, grpc_body -> [inflate] -> place.
 */

#ifndef NGX_HTTP_INFERENCE_INFLATE_H
#define NGX_HTTP_INFERENCE_INFLATE_H

#include "ngx_module/ngx_http_inference.h"


typedef struct ngx_http_inference_inflate_s  ngx_http_inference_inflate_t;

/* A decoder in memory of the pool; NULL: out of memory. */
ngx_http_inference_inflate_t *ngx_http_inference_inflate_new(ngx_pool_t *pool);

/*
 * Inflates from *in (in_len bytes) to out, and decreases both counts by the
 * bytes used.  NGX_OK: call again; NGX_DONE: the stream has ended; NGX_ERROR:
 * the stream is corrupt, *reason says why.
 */
ngx_int_t ngx_http_inference_inflate(ngx_http_inference_inflate_t *inflate,
    const u_char **in, size_t *in_len, u_char **out, size_t *out_len,
    const char **reason);

/* Whether the stream has ended. */
ngx_uint_t ngx_http_inference_inflate_ended(
    ngx_http_inference_inflate_t *inflate);


#endif /* NGX_HTTP_INFERENCE_INFLATE_H */
