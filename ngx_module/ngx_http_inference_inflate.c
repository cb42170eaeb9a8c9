/*
 * ngx_http_inference_inflate.c - inflates compressed request bodies with zlib.
 */

#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_request.h"

#include <zlib.h>


struct ngx_http_inference_inflate_s {
    z_stream    stream;
    unsigned    ended:1;
};


/* accept zlib and gzip formats, independent of Content-Encoding */
#define NGX_HTTP_INFERENCE_WINDOW_BITS  (MAX_WBITS + 32)


static void *ngx_http_inference_inflate_alloc(void *opaque, u_int items,
    u_int size);
static void ngx_http_inference_inflate_free(void *opaque, void *address);
static uInt ngx_http_inference_inflate_count(size_t n);


ngx_http_inference_inflate_t *
ngx_http_inference_inflate_new(ngx_pool_t *pool)
{
    ngx_http_inference_inflate_t  *inflate;

    inflate = ngx_pcalloc(pool, sizeof(ngx_http_inference_inflate_t));
    if (inflate == NULL) {
        return NULL;
    }

    inflate->stream.zalloc = ngx_http_inference_inflate_alloc;
    inflate->stream.zfree = ngx_http_inference_inflate_free;
    inflate->stream.opaque = pool;

    if (inflateInit2(&inflate->stream, NGX_HTTP_INFERENCE_WINDOW_BITS)
        != Z_OK)
    {
        return NULL;
    }

    return inflate;
}


ngx_int_t
ngx_http_inference_inflate(ngx_http_inference_inflate_t *ctx,
    const u_char **in, size_t *in_len, u_char **out, size_t *out_len,
    const char **reason)
{
    int        rc;
    uInt       given, room;
    z_stream  *z;

    z = &ctx->stream;

    if (ctx->ended) {
        *reason = "data follows the end of the compressed stream";
        return NGX_ERROR;
    }

    given = ngx_http_inference_inflate_count(*in_len);
    room = ngx_http_inference_inflate_count(*out_len);

    z->next_in = (u_char *) *in;
    z->avail_in = given;
    z->next_out = *out;
    z->avail_out = room;

    rc = inflate(z, Z_NO_FLUSH);

    *in += given - z->avail_in;
    *in_len -= given - z->avail_in;
    *out += room - z->avail_out;
    *out_len -= room - z->avail_out;

    switch (rc) {

    case Z_OK:
    case Z_BUF_ERROR:           /* more input or room needed                 */
        return NGX_OK;

    case Z_STREAM_END:
        ctx->ended = 1;
        (void) inflateEnd(z);
        return NGX_DONE;

    case Z_NEED_DICT:
        *reason = "it needs a preset dictionary";
        return NGX_ERROR;

    default:
        *reason = z->msg ? z->msg : "the stream is corrupt";
        return NGX_ERROR;
    }
}


ngx_uint_t
ngx_http_inference_inflate_ended(ngx_http_inference_inflate_t *inflate)
{
    return inflate->ended;
}


static uInt
ngx_http_inference_inflate_count(size_t n)
{
    return (uInt) ngx_min(n, (size_t) 1 << 30);
}


static void *
ngx_http_inference_inflate_alloc(void *opaque, u_int items, u_int size)
{
    ngx_pool_t *pool = opaque;

    return ngx_palloc(pool, (size_t) items * size);
}


static void
ngx_http_inference_inflate_free(void *opaque, void *address)
{
    ngx_pool_t *pool = opaque;

    (void) ngx_pfree(pool, address);
}
