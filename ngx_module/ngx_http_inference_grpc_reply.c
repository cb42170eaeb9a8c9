/*
 * ngx_http_inference_grpc_reply.c - answers of gRPC calls: a head, messages
 *                                   with tensors directly from the response
 *                                   arena, and trailers; or a head alone.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"
#include "core/base/slice.h"


/* limit of an error's text: clients accept 8k of metadata */
#define NGX_HTTP_INFERENCE_GRPC_TEXT    2048


static ngx_int_t ngx_http_inference_grpc_compress(
    ngx_http_inference_ctx_t *ctx);
static inf_grpc_status_t ngx_http_inference_grpc_status(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_grpc_send(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *out);
static ngx_int_t ngx_http_inference_grpc_add_status(ngx_http_request_t *r,
    ngx_list_t *list, inf_grpc_status_t status, const ngx_str_t *text);
static void ngx_http_inference_grpc_type(ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_grpc_add_encodings(ngx_http_request_t *r);


ngx_int_t
ngx_http_inference_grpc_open_reply(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, const void *arena)
{
    inf_err_t            *err;
    inf_reply_options_t   options;

    options.outputs = ctx->infer.outputs;
    options.output_count = ctx->infer.output_count;
    options.stream = 0;
    options.final = 0;

    ctx->grpc->arena = &ctx->arena;

    err = inf_reply_new(&ctx->grpc->reply, record, arena, &options,
                        ctx->grpc->arena);

    return err ? ngx_http_inference_fail_err(ctx, err) : NGX_OK;
}


ngx_int_t
ngx_http_inference_grpc_prepare(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t    *err;
    inf_codec_t   rc;

    if (ctx->grpc->reply == NULL) {
        /* of a stream, sent already */
        return NGX_OK;
    }

    for ( ;; ) {
        rc = inf_reply_prepare(ctx->grpc->reply, INF_CODEC_BUDGET, &err);

        if (rc == INF_CODEC_ERROR) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        if (rc == INF_CODEC_DONE) {
            return ngx_http_inference_grpc_compress(ctx);
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }
    }
}


/* Compresses the reply; it is sent plain if that is not longer. */

static ngx_int_t
ngx_http_inference_grpc_compress(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    if (grpc->out == INF_GRPC_IDENTITY) {
        return NGX_OK;
    }

    if (grpc->deflate == NULL) {

        grpc->deflate = ngx_http_inference_deflate_new(grpc->reply, grpc->out,
                                                       grpc->arena);
        if (grpc->deflate == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }
    }

    rc = ngx_http_inference_deflate(ctx, grpc->deflate);

    if (rc == NGX_OK
        && ngx_http_inference_deflate_size(grpc->deflate)
           >= inf_reply_size(grpc->reply))
    {
        ngx_http_inference_grpc_free(grpc);
    }

    return rc;
}


uint32_t
ngx_http_inference_grpc_piece_count(const ngx_http_inference_grpc_t *grpc)
{
    return grpc->deflate ? ngx_http_inference_deflate_count(grpc->deflate)
                         : inf_reply_piece_count(grpc->reply);
}


inf_slice_t
ngx_http_inference_grpc_piece(const ngx_http_inference_grpc_t *grpc,
    uint32_t i)
{
    return grpc->deflate ? ngx_http_inference_deflate_get(grpc->deflate, i)
                         : inf_reply_piece(grpc->reply, i);
}


void
ngx_http_inference_grpc_free(ngx_http_inference_grpc_t *grpc)
{
    ngx_http_inference_deflate_free(grpc->deflate);
    grpc->deflate = NULL;

    if (grpc->pool) {
        ngx_destroy_pool(grpc->pool);
        grpc->pool = NULL;
    }
}


/* Sends the reply.  The arena's bytes are released with the request's pool. */

ngx_int_t
ngx_http_inference_grpc_respond(ngx_http_inference_ctx_t *ctx)
{
    uint32_t      i, n;
    inf_slice_t   piece;
    ngx_chain_t  *out, **ll;

    n = ngx_http_inference_grpc_piece_count(ctx->grpc);
    ll = &out;

    for (i = 0; i < n; i++) {

        piece = ngx_http_inference_grpc_piece(ctx->grpc, i);

        *ll = ngx_http_inference_link(ctx->request->pool, piece.data,
                                      piece.len);
        if (*ll == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        ll = &(*ll)->next;
    }

    ctx->rc = ngx_http_inference_grpc_send(ctx, out);

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_grpc_answer(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *message)
{
    u_char              *p;
    ngx_chain_t         *out;
    ngx_pool_t          *pool;
    inf_grpc_prefix_t    prefix;

    static ngx_str_t  not_serving = ngx_string("\x08\x02");

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_CHECK
        && message->len == 0)
    {
        /* "ready: true" and "status: SERVING" have the same encoding */
        message = &not_serving;
    }

    pool = ctx->request->pool;

    p = ngx_pnalloc(pool, INF_GRPC_PREFIX);
    if (p == NULL) {
        return NGX_ERROR;
    }

    prefix.compressed = 0;
    prefix.len = (uint32_t) message->len;

    inf_grpc_put_prefix(p, &prefix);

    out = ngx_http_inference_link(pool, p, INF_GRPC_PREFIX);
    if (out == NULL) {
        return NGX_ERROR;
    }

    if (message->len) {
        out->next = ngx_http_inference_link(pool, message->data,
                                            message->len);
        if (out->next == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_inference_grpc_send(ctx, out);
}


/* Sends one message and the status OK.  Returns the code to finalize the
   request with. */

static ngx_int_t
ngx_http_inference_grpc_send(ngx_http_inference_ctx_t *ctx, ngx_chain_t *out)
{
    ngx_int_t            rc;
    ngx_chain_t         *cl;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ngx_http_inference_grpc_head(ctx) != NGX_OK
        || ngx_http_inference_grpc_add_status(r, &r->headers_out.trailers,
                                              INF_GRPC_OK, NULL)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    for (cl = out; cl->next; cl = cl->next) { /* void */ }

    cl->buf->last_buf = (r == r->main) ? 1 : 0;
    cl->buf->last_in_chain = 1;

    return ngx_http_inference_send_body(r, out);
}


ngx_int_t
ngx_http_inference_grpc_head(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_http_inference_grpc_type(r);

    r->expect_trailers = 1;

    /* gRPC compresses messages */
    ngx_http_inference_keep_plain(r);

    if (ctx->grpc->out != INF_GRPC_IDENTITY
        && ngx_http_inference_add_header(r, "grpc-encoding",
                            (char *) inf_grpc_encoding_name(ctx->grpc->out))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_grpc_add_encodings(r);
}


/* Sets status 200 and the content type, also for a failed call. */

static void
ngx_http_inference_grpc_type(ngx_http_request_t *r)
{
    r->headers_out.status = NGX_HTTP_OK;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);

    ngx_str_set(&r->headers_out.content_type, "application/grpc");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
}


/* Adds the encodings accepted in requests. */

static ngx_int_t
ngx_http_inference_grpc_add_encodings(ngx_http_request_t *r)
{
    return ngx_http_inference_add_header(r, "grpc-accept-encoding",
                                         "identity, deflate, gzip");
}


/* ---- failures ------------------------------------------------------------ */

ngx_int_t
ngx_http_inference_grpc_send_error(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r->header_sent) {
        return ngx_http_inference_grpc_send_trailers(ctx,
                                  ngx_http_inference_grpc_status(ctx),
                                  &ctx->error);
    }

    if (ctx->hint == NGX_HTTP_INFERENCE_GRPC_ENCODINGS
        && ngx_http_inference_grpc_add_encodings(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_grpc_trailers_only(r,
                                  ngx_http_inference_grpc_status(ctx),
                                  &ctx->error);

    return (rc == NGX_OK) ? ngx_http_inference_send_header(r) : NGX_ERROR;
}


static inf_grpc_status_t
ngx_http_inference_grpc_status(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->grpc->status != INF_GRPC_OK) {
        return ctx->grpc->status;
    }

    if (ctx->cause == INF_CAUSE_UNTAKEN) {
        return INF_GRPC_RESOURCE_EXHAUSTED;
    }

    switch (ctx->status) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        return INF_GRPC_RESOURCE_EXHAUSTED;

    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_GATEWAY_TIME_OUT:
        return INF_GRPC_DEADLINE_EXCEEDED;

    default:
        return inf_grpc_status(ctx->code);
    }
}


ngx_int_t
ngx_http_inference_grpc_send_trailers(ngx_http_inference_ctx_t *ctx,
    inf_grpc_status_t status, const ngx_str_t *text)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ngx_http_inference_grpc_add_status(r, &r->headers_out.trailers,
                                           status, text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_send_special(r, NGX_HTTP_LAST);
}


ngx_int_t
ngx_http_inference_grpc_trailers_only(ngx_http_request_t *r,
    inf_grpc_status_t status, const ngx_str_t *text)
{
    ngx_http_inference_grpc_type(r);
    ngx_http_clear_last_modified(r);

    r->headers_out.status_line.len = 0;
    r->header_only = 1;

    return ngx_http_inference_grpc_add_status(r, &r->headers_out.headers,
                                              status, text);
}


static ngx_int_t
ngx_http_inference_grpc_add_status(ngx_http_request_t *r, ngx_list_t *list,
    inf_grpc_status_t status, const ngx_str_t *text)
{
    u_char       *p;
    size_t        size;
    ngx_str_t     line;
    inf_slice_t   raw;

    p = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    size = ngx_sprintf(p, "%ui", (ngx_uint_t) status) - p;

    if (ngx_http_inference_add_field(list, "grpc-status", p, size) != NGX_OK) {
        return NGX_ERROR;
    }

    if (text == NULL || text->len == 0) {
        return NGX_OK;
    }

    line = *text;

    ngx_http_inference_cut(&line, NGX_HTTP_INFERENCE_GRPC_TEXT);

    raw = ngx_http_inference_slice(&line);
    size = inf_grpc_escaped_size(raw);

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    inf_grpc_escape((char *) p, raw);

    return ngx_http_inference_add_field(list, "grpc-message", p, size);
}
