/*
 * ngx_http_inference_source.c - places bodies that are received already, in
 *                               slices: read by another handler (in memory or
 *                               in a file), or compressed.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/error.h"


#define NGX_HTTP_INFERENCE_PIECE        ((size_t) 64 * 1024)
#define NGX_HTTP_INFERENCE_SMALL_PIECE  ((size_t) 16 * 1024)
#define NGX_HTTP_INFERENCE_COPY         ((size_t) 256 * 1024)


static ngx_int_t ngx_http_inference_source_plain(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_source_file(ngx_http_inference_ctx_t *ctx,
    ngx_buf_t *b);
static ngx_int_t ngx_http_inference_source_packed(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_source_next(ngx_http_inference_ctx_t *ctx,
    const u_char **p, size_t *n);
static ngx_int_t ngx_http_inference_source_inflate(
    ngx_http_inference_ctx_t *ctx, const u_char **p, size_t *n);


ngx_int_t
ngx_http_inference_source(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->stage >= NGX_HTTP_INFERENCE_BODY_PLAIN) {
        return NGX_OK;
    }

    rc = (body->inflate) ? ngx_http_inference_source_packed(ctx)
                         : ngx_http_inference_source_plain(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    /* a gRPC message is inflated from the store once complete */

    if (body->inflate && body->packed.region
        && !ngx_http_inference_hand_on_wanted(ctx))
    {
        ngx_http_inference_store_free(ctx, &body->packed);
    }

    return ngx_http_inference_place_end(ctx);
}


static ngx_int_t
ngx_http_inference_source_plain(ngx_http_inference_ctx_t *ctx)
{
    off_t                       left;
    size_t                      n;
    ngx_buf_t                  *b;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    while (body->in) {

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        b = body->in->buf;
        left = ngx_buf_size(b) - body->in_pos;

        if (left == 0) {
            body->in = body->in->next;
            body->in_pos = 0;
            continue;
        }

        if (!ngx_buf_in_memory(b)) {

            if (ngx_http_inference_source_file(ctx, b) != NGX_OK) {
                return NGX_ERROR;
            }

            continue;
        }

        n = (size_t) ngx_min(left, (off_t) NGX_HTTP_INFERENCE_COPY);

        if (ngx_http_inference_place(ctx, b->pos + body->in_pos, n)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        body->in_pos += n;
    }

    return NGX_OK;
}


/* Reads from the file directly to the place of the bytes. */

static ngx_int_t
ngx_http_inference_source_file(ngx_http_inference_ctx_t *ctx, ngx_buf_t *b)
{
    off_t     left;
    size_t    room;
    u_char   *dst;
    ssize_t   n;
    u_char    piece[NGX_HTTP_INFERENCE_SMALL_PIECE];

    left = ngx_buf_size(b) - ctx->body.in_pos;

    if (ctx->grpc) {
        /* the frames must be parsed first */
        dst = piece;
        room = (size_t) ngx_min(left, (off_t) sizeof(piece));

    } else if (ngx_http_inference_place_window(ctx,
                     (size_t) ngx_min(left, (off_t) NGX_HTTP_INFERENCE_COPY),
                     &dst, &room)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    n = ngx_read_file(b->file, dst, room, b->file_pos + ctx->body.in_pos);

    if (n == NGX_ERROR || n == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                       "cannot read the request body from "
                                       "its file");
    }

    ctx->body.in_pos += n;

    return ctx->grpc ? ngx_http_inference_place(ctx, piece, n)
                     : ngx_http_inference_place_commit(ctx, n);
}


static ngx_int_t
ngx_http_inference_source_packed(ngx_http_inference_ctx_t *ctx)
{
    size_t         n, left;
    ngx_int_t      rc;
    const u_char  *p;

    n = 0;

    for ( ;; ) {

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        rc = ngx_http_inference_source_next(ctx, &p, &n);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DONE) {

            if (ngx_http_inference_inflate_ended(ctx->body.inflate)) {
                return NGX_OK;
            }

            return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                           "the %V request body is cut short",
                                           &ctx->body.encoding);
        }

        left = n;

        rc = ngx_http_inference_source_inflate(ctx, &p, &left);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        ctx->body.in_pos += n - left;
    }
}


/* Sets the next compressed bytes.  NGX_DONE: no more. */

static ngx_int_t
ngx_http_inference_source_next(ngx_http_inference_ctx_t *ctx,
    const u_char **p, size_t *n)
{
    off_t                       left;
    ssize_t                     size;
    ngx_buf_t                  *b;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->origin == NGX_HTTP_INFERENCE_BODY_OWN) {
        *p = body->packed.data + body->in_pos;
        *n = (size_t) (body->packed.len - body->in_pos);

        return *n ? NGX_OK : NGX_DONE;
    }

    while (body->in && ngx_buf_size(body->in->buf) == body->in_pos) {
        body->in = body->in->next;
        body->in_pos = 0;
    }

    if (body->in == NULL) {
        return NGX_DONE;
    }

    b = body->in->buf;
    left = ngx_buf_size(b) - body->in_pos;

    if (ngx_buf_in_memory(b)) {
        *p = b->pos + body->in_pos;
        *n = (size_t) left;
        return NGX_OK;
    }

    if (body->piece == NULL) {
        body->piece = ngx_create_temp_buf(ctx->request->pool,
                                          NGX_HTTP_INFERENCE_PIECE);
        if (body->piece == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }
    }

    size = ngx_read_file(b->file, body->piece->start,
                  (size_t) ngx_min(left, (off_t) NGX_HTTP_INFERENCE_PIECE),
                  b->file_pos + body->in_pos);

    if (size == NGX_ERROR || size == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                       "cannot read the request body from "
                                       "its file");
    }

    *p = body->piece->start;
    *n = size;

    return NGX_OK;
}


/* Inflates some of n bytes.  NGX_DONE: the stream has ended. */

static ngx_int_t
ngx_http_inference_source_inflate(ngx_http_inference_ctx_t *ctx,
    const u_char **p, size_t *n)
{
    off_t                       limit;
    size_t                      room, left;
    u_char                     *dst;
    ngx_int_t                   rc;
    const char                 *reason;
    ngx_http_inference_body_t  *body;
    u_char                      probe[1];

    body = &ctx->body;
    limit = ngx_http_inference_max_inflated(ctx);

    if (ngx_http_inference_place_is_full(ctx) || body->plain == limit) {
        /* only the end of the stream may follow */
        dst = probe;
        room = 1;

    } else if (ngx_http_inference_place_window(ctx,
                         (size_t) ngx_min(limit - body->plain,
                                          (off_t) NGX_HTTP_INFERENCE_PIECE),
                         &dst, &room)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    left = room;

    rc = ngx_http_inference_inflate(body->inflate, p, n,
                                    &dst, &left, &reason);

    if (rc == NGX_ERROR) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "cannot inflate the %V request body: "
                                       "%s", &body->encoding, reason);
    }

    room -= left;

    if (room == 0) {
        return rc;
    }

    if (body->plain == limit) {
        return ngx_http_inference_inflated_long(ctx);
    }

    if (ngx_http_inference_place_is_full(ctx)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "unexpected additional input data for "
                                       "model '%V'", &ctx->names.model);
    }

    if (ngx_http_inference_place_commit(ctx, room) != NGX_OK) {
        return NGX_ERROR;
    }

    return rc;
}
