/*
 * ngx_http_inference_grpc_deflate.c - compresses a response message in slices,
 *                                     with the encoding that its client
 *                                     accepts.
 */

#include "ngx_module/ngx_http_inference_deflate.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_limits.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"

/* size of an allocated piece of the compressed message */
#define NGX_HTTP_INFERENCE_DEFLATE_PIECE  ((size_t) 32 * 1024)


struct ngx_http_inference_deflate_s {
    ngx_http_inference_deflater_t  *deflater;
    inf_arena_t                 *arena;         /* of the pieces             */
    inf_reply_t                 *reply;
    uint32_t                     from;          /* index of the current
                                                   piece                     */
    size_t                       pos;           /* offset in that piece      */
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
    ngx_http_inference_deflate_t  *d;

    d = inf_arena_calloc(arena, 1, sizeof(ngx_http_inference_deflate_t));
    if (d == NULL) {
        return NULL;
    }

    d->deflater = ngx_http_inference_deflater_new(arena,
                                                  encoding == INF_GRPC_GZIP);
    if (d->deflater == NULL) {
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
        ngx_http_inference_deflater_free(d->deflater);
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


/* Compresses a step.  NGX_DONE: all is compressed. */

static ngx_int_t
ngx_http_inference_deflate_step(ngx_http_inference_deflate_t *d)
{
    u_char       *p;
    ngx_int_t     rc;
    inf_slice_t   in, rest, *out;

    out = (d->count == 0) ? NULL : &d->pieces[d->count - 1];

    if (out == NULL || out->len == NGX_HTTP_INFERENCE_DEFLATE_PIECE) {

        if (ngx_http_inference_deflate_piece(d) != NGX_OK) {
            return NGX_ERROR;
        }

        out = &d->pieces[d->count - 1];
    }

    in = inf_reply_piece(d->reply, d->from);
    rest = inf_slice(in.data + d->pos, in.len - d->pos);

    p = (u_char *) out->data + out->len;

    rc = ngx_http_inference_deflater_run(d->deflater, &rest, &p,
                    NGX_HTTP_INFERENCE_DEFLATE_PIECE - out->len,
                    d->from + 1 == inf_reply_piece_count(d->reply));

    d->size += (size_t) ((char *) p - out->data) - out->len;
    out->len = (size_t) ((char *) p - out->data);
    d->pos = in.len - rest.len;

    if (rest.len == 0 && d->from + 1 < inf_reply_piece_count(d->reply)) {
        d->from++;
        d->pos = 0;
    }

    return rc;
}


/* Allocates room for the next bytes; the first piece begins with the prefix. */

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
