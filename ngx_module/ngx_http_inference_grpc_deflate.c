/*
 * ngx_http_inference_grpc_deflate.c - a response message compressed as its
 *                                     client asks for, in slices.
 */

#include "ngx_module/ngx_http_inference_grpc.h"

#include <zlib.h>


/* of the compressed message, allocated at a time */
#define NGX_HTTP_INFERENCE_DEFLATE_PIECE  ((size_t) 32 * 1024)

/* bytes of the message in one step */
#define NGX_HTTP_INFERENCE_DEFLATE_STEP   ((size_t) 16 * 1024)

/* of zlib: its own default of both, and a header of gzip's */
#define NGX_HTTP_INFERENCE_DEFLATE_WBITS  15
#define NGX_HTTP_INFERENCE_DEFLATE_GZIP   16
#define NGX_HTTP_INFERENCE_DEFLATE_MEM    8


struct ngx_http_inference_deflate_s {
    z_stream                     zlib;
    inf_arena_t                 *arena;         /* of the pieces             */
    inf_reply_t                 *reply;
    uint32_t                     from;          /* piece of the reply that   */
    size_t                       pos;           /* comes next, from here on  */
    inf_slice_t                 *pieces;
    uint32_t                     count;
    uint32_t                     max;
    uint64_t                     size;          /* without the prefix        */
};


static ngx_int_t ngx_http_inference_deflate_piece(
    ngx_http_inference_deflate_t *d);
static ngx_int_t ngx_http_inference_deflate_step(
    ngx_http_inference_deflate_t *d);


ngx_http_inference_deflate_t *
ngx_http_inference_deflate_new(inf_reply_t *reply, inf_grpc_encoding_t encoding,
    inf_arena_t *arena)
{
    int                            wbits;
    ngx_http_inference_deflate_t  *d;

    d = inf_arena_calloc(arena, 1, sizeof(ngx_http_inference_deflate_t));
    if (d == NULL) {
        return NULL;
    }

    wbits = NGX_HTTP_INFERENCE_DEFLATE_WBITS;

    if (encoding == INF_GRPC_GZIP) {
        wbits += NGX_HTTP_INFERENCE_DEFLATE_GZIP;
    }

    if (deflateInit2(&d->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, wbits,
                     NGX_HTTP_INFERENCE_DEFLATE_MEM, Z_DEFAULT_STRATEGY)
        != Z_OK)
    {
        return NULL;
    }

    d->arena = arena;
    d->reply = reply;
    d->pos = INF_GRPC_PREFIX;

    return d;
}


void
ngx_http_inference_deflate_free(ngx_http_inference_deflate_t *d)
{
    if (d) {
        (void) deflateEnd(&d->zlib);
    }
}


ngx_int_t
ngx_http_inference_deflate(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_deflate_t *d)
{
    ngx_int_t          rc;
    inf_grpc_prefix_t  prefix;

    for ( ;; ) {
        rc = ngx_http_inference_deflate_step(d);

        if (rc == NGX_ERROR) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        if (rc == NGX_DONE) {
            break;
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }
    }

    prefix.compressed = 1;
    prefix.len = (uint32_t) d->size;

    inf_grpc_put_prefix((char *) d->pieces[0].data, &prefix);

    return NGX_OK;
}


/* NGX_DONE: all of it is compressed. */

static ngx_int_t
ngx_http_inference_deflate_step(ngx_http_inference_deflate_t *d)
{
    int           rc, last;
    size_t        n;
    inf_slice_t   in, *out;

    if ((d->count == 0 || d->zlib.avail_out == 0)
        && ngx_http_inference_deflate_piece(d) != NGX_OK)
    {
        return NGX_ERROR;
    }

    out = &d->pieces[d->count - 1];
    in = inf_reply_piece(d->reply, d->from);

    n = ngx_min(in.len - d->pos, NGX_HTTP_INFERENCE_DEFLATE_STEP);
    last = (d->from + 1 == inf_reply_piece_count(d->reply)
            && d->pos + n == in.len);

    d->zlib.next_in = (Bytef *) in.data + d->pos;
    d->zlib.avail_in = (uInt) n;

    d->size += d->zlib.avail_out;

    rc = deflate(&d->zlib, last ? Z_FINISH : Z_NO_FLUSH);

    d->size -= d->zlib.avail_out;

    if (rc == Z_STREAM_ERROR) {
        return NGX_ERROR;
    }

    out->len = (char *) d->zlib.next_out - out->data;
    d->pos += n - d->zlib.avail_in;

    if (rc == Z_STREAM_END) {
        return NGX_DONE;
    }

    if (d->pos == in.len && !last) {
        d->from++;
        d->pos = 0;
    }

    return NGX_OK;
}


/* Room for the next bytes; in the first piece behind the prefix. */

static ngx_int_t
ngx_http_inference_deflate_piece(ngx_http_inference_deflate_t *d)
{
    char         *p;
    size_t        prefix;
    uint32_t      max;
    inf_slice_t  *pieces;

    if (d->count == d->max) {

        max = ngx_max(2 * d->max, 8);

        pieces = inf_arena_alloc(d->arena, max * sizeof(inf_slice_t));
        if (pieces == NULL) {
            return NGX_ERROR;
        }

        if (d->count) {
            ngx_memcpy(pieces, d->pieces, d->count * sizeof(inf_slice_t));
        }

        d->pieces = pieces;
        d->max = max;
    }

    p = inf_arena_alloc(d->arena, NGX_HTTP_INFERENCE_DEFLATE_PIECE);
    if (p == NULL) {
        return NGX_ERROR;
    }

    prefix = (d->count == 0) ? INF_GRPC_PREFIX : 0;

    d->pieces[d->count++] = inf_slice(p, prefix);

    d->zlib.next_out = (Bytef *) p + prefix;
    d->zlib.avail_out = (uInt) (NGX_HTTP_INFERENCE_DEFLATE_PIECE - prefix);

    return NGX_OK;
}


uint64_t
ngx_http_inference_deflate_size(const ngx_http_inference_deflate_t *d)
{
    return d->size + INF_GRPC_PREFIX;
}


uint32_t
ngx_http_inference_deflate_count(const ngx_http_inference_deflate_t *d)
{
    return d->count;
}


inf_slice_t
ngx_http_inference_deflate_get(const ngx_http_inference_deflate_t *d,
    uint32_t i)
{
    return d->pieces[i];
}
