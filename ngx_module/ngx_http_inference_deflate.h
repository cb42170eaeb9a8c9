/*
 * ngx_http_inference_deflate.h - encodes a response in gzip or zlib format.
 *
 * Owner    The compressor's memory is the arena's, except for what
 *          ngx_http_inference_deflater_free() frees.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   NGX_ERROR: out of memory; the caller fails the request.
 * Route    pack -> [deflate] -> pack.
 */

#ifndef NGX_HTTP_INFERENCE_DEFLATE_H
#define NGX_HTTP_INFERENCE_DEFLATE_H

#include "ngx_module/ngx_http_inference.h"

#include "core/base/arena.h"
#include "core/base/slice.h"


/* bytes compressed in one step */
#define NGX_HTTP_INFERENCE_DEFLATE_STEP ((size_t) 16 * 1024)


typedef struct ngx_http_inference_deflater_s  ngx_http_inference_deflater_t;

/* A compressor for the zlib or gzip format.  Its memory is the arena's, except
   for what free() frees.  NULL: out of memory. */
ngx_http_inference_deflater_t *ngx_http_inference_deflater_new(
    inf_arena_t *arena, ngx_uint_t gzip);

/* deflater may be NULL. */
void ngx_http_inference_deflater_free(ngx_http_inference_deflater_t *deflater);

/*
 * One step: consumes bytes of in and writes at most out_len bytes at *out,
 * which is advanced.  last: in holds the last bytes.  NGX_OK: call again (with
 * room at *out); NGX_DONE: all is written; NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_inference_deflater_run(
    ngx_http_inference_deflater_t *deflater, inf_slice_t *in, u_char **out,
    size_t out_len, ngx_uint_t last);


#endif /* NGX_HTTP_INFERENCE_DEFLATE_H */
