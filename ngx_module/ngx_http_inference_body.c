/*
 * ngx_http_inference_body.c - receives a request's body into the arena.
 *
 * An unread body comes through a request body filter: each buffer is copied
 * once to the place of its bytes, and nginx stores nothing.  A body that
 * another handler has read is taken from memory or from its file.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_control.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/points.h"


/* bytes of a rejected body that are read to keep the connection */
#define NGX_HTTP_INFERENCE_SWALLOW      (1024 * 1024)


static ngx_int_t ngx_http_inference_body_room(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_take(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_put(ngx_http_inference_ctx_t *ctx,
    u_char *p, size_t n);
static ngx_int_t ngx_http_inference_body_text(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_source(ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_body_open(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t         *r;
    ngx_http_inference_body_t  *body;

    r = ctx->request;
    body = &ctx->body;

    if (body->origin == NGX_HTTP_INFERENCE_BODY_MAIN) {

        /* main may have read it meanwhile, or another handler may have begun
           to */

        if (ngx_http_inference_headers_check(ctx) != NGX_OK) {
            return NGX_ERROR;
        }

        if (body->origin == NGX_HTTP_INFERENCE_BODY_MAIN) {
            return NGX_DECLINED;
        }
    }

    if (ngx_http_inference_body_room(ctx) != NGX_OK
        || (!ngx_http_inference_call_has_body(ctx)
            && ngx_http_inference_infer_init(ctx) != NGX_OK)
        || (ctx->raw && ngx_http_inference_place_flat(ctx) != NGX_OK))
    {
        return NGX_ERROR;
    }

    r->request_body_no_buffering = 0;
    r->request_body_in_single_buf = 0;

    if (body->origin == NGX_HTTP_INFERENCE_BODY_OWN) {
        r->request_body_in_file_only = 0;
    }

    body->stage = NGX_HTTP_INFERENCE_BODY_ARRIVING;

    return NGX_OK;
}


/* Rejects a body before it is received if the arena has no room for its
   Content-Length. */

static ngx_int_t
ngx_http_inference_body_room(ngx_http_inference_ctx_t *ctx)
{
    off_t                            size;
    uint64_t                         used;
    ngx_http_inference_main_conf_t  *imcf;

    size = ctx->body.declared;

    if (size <= 0
        || (size <= (off_t) NGX_HTTP_INFERENCE_CALL_SIZE
            && ngx_http_inference_call_has_body(ctx)))
    {
        return NGX_OK;
    }

    /* the core may have exited while main's body was read */

    if (ngx_http_inference_current(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    used = inf_client_arena_stats(ctx->client)->in_use;

    if (size > imcf->arena || used > (uint64_t) (imcf->arena - size)) {
        return ngx_http_inference_arena_full(ctx, size);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx)
{
    switch (ctx->event) {

    case NGX_HTTP_INFERENCE_BODY_BYTES:
        return ngx_http_inference_body_take(ctx);

    case NGX_HTTP_INFERENCE_BODY_END:
        INF_POINT(BODY_RECEIVED);
        ctx->body.stage = NGX_HTTP_INFERENCE_BODY_COMPLETE;
        ngx_http_inference_start_timer(ctx);
        return NGX_OK;

    case NGX_HTTP_INFERENCE_TURN:
        return ngx_http_inference_body_text(ctx);

    default:
        return NGX_DONE;
    }
}


/* Places the received bytes.  NGX_AGAIN: a long text is parsed in a later
   turn. */

static ngx_int_t
ngx_http_inference_body_take(ngx_http_inference_ctx_t *ctx)
{
    size_t                      n;
    uint64_t                    text;
    ngx_buf_t                  *b;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    text = body->text.len;

    for ( /* void */ ; body->arrived; body->arrived = body->arrived->next) {

        b = body->arrived->buf;
        n = b->last - b->pos;

        if (n && ngx_http_inference_body_put(ctx, b->pos, n) != NGX_OK) {
            ngx_http_inference_stores_free(ctx);
            return NGX_DECLINED;
        }
    }

    return (body->lagging && body->text.len != text) ? NGX_AGAIN : NGX_DONE;
}


static ngx_int_t
ngx_http_inference_body_put(ngx_http_inference_ctx_t *ctx, u_char *p,
    size_t n)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    body->received += n;

    /* with gRPC the limit applies to each message */

    if (ctx->grpc == NULL
        && body->received > ngx_http_inference_max_body(ctx))
    {
        return ngx_http_inference_body_long(ctx, "request body is");
    }

    if (body->inflate == NULL) {
        return ngx_http_inference_place(ctx, p, n);
    }

    if (body->packed.region == NULL
        && ngx_http_inference_store_open(ctx, &body->packed,
                        body->declared > 0 ? (uint64_t) body->declared
                                           : NGX_HTTP_INFERENCE_STORE_SIZE)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_store_put(ctx, &body->packed, p, n);
}


/* Parses the received part of a long text; more bytes follow. */

static ngx_int_t
ngx_http_inference_body_text(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (!ctx->body.lagging) {
        return NGX_DONE;
    }

    rc = ngx_http_inference_store_settle(ctx, &ctx->body.text);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_infer_read(ctx);
    }

    if (rc == NGX_OK
        || (rc == NGX_AGAIN && !ngx_http_inference_slice_over(ctx)))
    {
        return NGX_DONE;
    }

    return rc;
}


/*
 * Reads a rejected body to its end if little is left, so that the connection
 * can be reused.  Otherwise the answer is sent in the next turn, because a
 * filter cannot send it.
 */

ngx_int_t
ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (ctx->event == NGX_HTTP_INFERENCE_BODY_END) {
        body->stage = NGX_HTTP_INFERENCE_BODY_DROPPED;
        return NGX_ERROR;
    }

    for ( /* void */ ; body->arrived; body->arrived = body->arrived->next) {
        body->swallowed += ngx_buf_size(body->arrived->buf);
    }

    /* a connection of HTTP/2 stays open, and a client of gRPC may wait for the
       answer before it ends its message */

    if (ctx->grpc == NULL
        && body->swallowed <= NGX_HTTP_INFERENCE_SWALLOW
        && (body->declared <= 0
            || body->declared - body->received <= NGX_HTTP_INFERENCE_SWALLOW))
    {
        return NGX_DONE;
    }

    return (ctx->event == NGX_HTTP_INFERENCE_TURN) ? NGX_ERROR : NGX_AGAIN;
}


/* ---- reading ------------------------------------------------------------ */

ngx_int_t
ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_inference_body_source(ctx);

    if (rc == NGX_OK && ctx->grpc) {
        rc = ngx_http_inference_grpc_unpack(ctx);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (!ngx_http_inference_is_infer(ctx)) {

        rc = ngx_http_inference_control_room(ctx);

        if (rc == NGX_OK) {
            rc = ngx_http_inference_stores_settle(ctx);
        }

        if (rc == NGX_OK && ctx->grpc) {
            rc = ngx_http_inference_peek_check_call(ctx);
        }

        return (rc == NGX_OK) ? NGX_DECLINED : rc;
    }

    rc = ngx_http_inference_infer_read(ctx);

    if (rc != NGX_OK || ctx->grpc) {
        return rc;
    }

    if (ctx->offsets == NULL && ngx_http_inference_place_plan(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_place_check(ctx);
}


/* Inflates and places a body received before: settles the input stores first,
   and the output stores at the end. */

static ngx_int_t
ngx_http_inference_body_source(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_inference_stores_settle(ctx);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_source(ctx);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_inference_stores_settle(ctx);
    }

    return rc;
}


void
ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r != r->main
        || ctx->body.origin == NGX_HTTP_INFERENCE_BODY_FOREIGN
        || ctx->body.stage > NGX_HTTP_INFERENCE_BODY_ARRIVING)
    {
        return;
    }

    if (ctx->body.stage == NGX_HTTP_INFERENCE_BODY_UNREAD) {

        if (r->headers_in.expect && !r->expect_tested) {
            /* the client got no "100 Continue" */
            r->expect_tested = 1;

            if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
                r->keepalive = 0;
            }
        }

        if (ngx_http_discard_request_body(r) != NGX_OK) {
            r->keepalive = 0;
        }

        return;
    }

    /* partly read: nginx closes the connection after lingering */

    r->read_event_handler = ngx_http_block_reading;
    r->reading_body = 1;
    r->keepalive = 0;
    r->lingering_close = 1;

    if (r->connection->read->timer_set) {
        ngx_del_timer(r->connection->read);
    }

#if (NGX_HTTP_V2)
    if (r->stream) {
        r->stream->skip_data = 1;
    }
#endif
}
