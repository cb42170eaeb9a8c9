/*
 * ngx_http_inference_deflate.c - compresses responses with zlib.
 */

#include "ngx_module/ngx_http_inference_deflate.h"

#include "core/base/arena.h"
#include "core/base/slice.h"

#include <zlib.h>


struct ngx_http_inference_deflater_s {
    z_stream    stream;
};


/* zlib's default window and memory level; GZIP selects a gzip header */
#define NGX_HTTP_INFERENCE_DEFLATE_WBITS  15
#define NGX_HTTP_INFERENCE_DEFLATE_GZIP   16
#define NGX_HTTP_INFERENCE_DEFLATE_MEM    8


ngx_http_inference_deflater_t *
ngx_http_inference_deflater_new(inf_arena_t *arena, ngx_uint_t gzip)
{
    int                             wbits;
    ngx_http_inference_deflater_t  *deflater;

    deflater = inf_arena_calloc(arena, 1,
                                sizeof(ngx_http_inference_deflater_t));
    if (deflater == NULL) {
        return NULL;
    }

    wbits = NGX_HTTP_INFERENCE_DEFLATE_WBITS;

    if (gzip) {
        wbits += NGX_HTTP_INFERENCE_DEFLATE_GZIP;
    }

    if (deflateInit2(&deflater->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     wbits, NGX_HTTP_INFERENCE_DEFLATE_MEM, Z_DEFAULT_STRATEGY)
        != Z_OK)
    {
        return NULL;
    }

    return deflater;
}


void
ngx_http_inference_deflater_free(ngx_http_inference_deflater_t *deflater)
{
    if (deflater) {
        (void) deflateEnd(&deflater->stream);
    }
}


ngx_int_t
ngx_http_inference_deflater_run(ngx_http_inference_deflater_t *deflater,
    inf_slice_t *in, u_char **out, size_t out_len, ngx_uint_t last)
{
    int        rc;
    uInt       given;
    z_stream  *z;

    z = &deflater->stream;

    given = (uInt) ngx_min(in->len, NGX_HTTP_INFERENCE_DEFLATE_STEP);

    z->next_in = (Bytef *) in->data;
    z->avail_in = given;
    z->next_out = *out;
    z->avail_out = (uInt) ngx_min(out_len, (size_t) 1 << 30);

    rc = deflate(z, (last && given == in->len) ? Z_FINISH : Z_NO_FLUSH);

    *out = z->next_out;
    *in = inf_slice(in->data + (given - z->avail_in),
                    in->len - (given - z->avail_in));

    switch (rc) {

    case Z_OK:
    case Z_BUF_ERROR:           /* more input or room needed                 */
        return NGX_OK;

    case Z_STREAM_END:
        return NGX_DONE;

    default:
        return NGX_ERROR;
    }
}
