/*
 * ngx_http_inference_grpc_preview.c - a call of ModelStreamInfer that may
 *                                     still go on to error_page: its bytes are
 *                                     read in nginx's buffer, and stay there
 *                                     for the next handler.
 *
 * The preview ends with the first response, or before it when the buffer is
 * full; then the body is read.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_grpc_stream.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"


static void ngx_http_inference_preview_wake(
    ngx_http_inference_waiter_t *waiter);
static ngx_uint_t ngx_http_inference_preview_has_room(
    ngx_http_inference_stream_t *stream);
static ngx_http_inference_message_t *ngx_http_inference_preview_first(
    ngx_http_inference_stream_t *stream);


void
ngx_http_inference_preview_open(ngx_http_inference_stream_t *stream)
{
    ngx_http_request_t  *r;

    r = stream->call->request;

    if (!ngx_http_inference_may_intercept(r)
        || ngx_http_inference_peek_binds_stream(ngx_http_inference_peek(r)))
    {
        stream->call->body.stage = NGX_HTTP_INFERENCE_BODY_ARRIVING;
        return;
    }

    stream->waiter.request = r;
    stream->waiter.more = ngx_http_inference_preview_wake;
}


void
ngx_http_inference_preview_end(ngx_http_inference_stream_t *stream)
{
    if (!ngx_http_inference_is_preview(stream)) {
        return;
    }

    stream->call->body.stage = NGX_HTTP_INFERENCE_BODY_ARRIVING;

    ngx_http_inference_preread_stop(&stream->waiter);
}


/* Called after a read of the connection, possibly for other streams only. */

static void
ngx_http_inference_preview_wake(ngx_http_inference_waiter_t *waiter)
{
    ngx_event_t                  *turn;
    ngx_http_inference_stream_t  *stream;

    stream = (ngx_http_inference_stream_t *)
        ((u_char *) waiter - offsetof(ngx_http_inference_stream_t, waiter));

    turn = &stream->call->turn;

    if (ngx_http_inference_preview_bytes(stream).len == 0
        && ngx_http_inference_preread_grows(waiter->request)
        && ngx_http_inference_preread_wait(waiter) == NGX_OK)
    {
        return;
    }

    if (!turn->posted) {
        ngx_post_event(turn, &ngx_posted_events);
    }
}


ngx_str_t
ngx_http_inference_preview_bytes(ngx_http_inference_stream_t *stream)
{
    ngx_str_t  bytes;

    bytes = ngx_http_inference_preread(stream->call->request);

    if (bytes.len) {
        bytes.data += stream->previewed;
        bytes.len -= stream->previewed;
    }

    return bytes;
}


ngx_int_t
ngx_http_inference_preview_took(ngx_http_inference_stream_t *stream, size_t n)
{
    stream->previewed += n;

    if (!ngx_http_inference_preread_grows(stream->call->request)) {
        stream->ended = (ngx_http_inference_preview_bytes(stream).len == 0);
        return NGX_OK;
    }

    /* a waiting stream would keep the worker from exiting */

    if (ngx_exiting || !ngx_http_inference_preview_has_room(stream)) {
        ngx_http_inference_preview_end(stream);
        return NGX_OK;
    }

    if (!stream->waiter.waiting
        && ngx_http_inference_preread_wait(&stream->waiter) != NGX_OK)
    {
        return ngx_http_inference_fail(stream->call, INF_ERR_INTERNAL,
                                       "out of memory");
    }

    return NGX_OK;
}


/* Whether the client may send the rest of the current message, or a first
   byte. */

static ngx_uint_t
ngx_http_inference_preview_has_room(ngx_http_inference_stream_t *stream)
{
    uint64_t  left;

    left = stream->receiving ? stream->receiving->grpc.left : 0;

    return ngx_http_inference_preread_room(stream->call->request)
           >= ngx_max(left, 1);
}


size_t
ngx_http_inference_preview_skip(ngx_http_inference_stream_t *stream, size_t n)
{
    n = ngx_min(n, stream->previewed);

    stream->previewed -= n;

    return n;
}


ngx_uint_t
ngx_http_inference_preview_wants(ngx_http_inference_message_t *m,
    ngx_uint_t status)
{
    return ngx_http_inference_is_preview(m->stream)
           && ngx_http_inference_preview_first(m->stream) == m
           && ngx_http_inference_page_of(&m->ctx, status) != NULL;
}


/* The first message of the call, which is not over during a preview.  NULL:
   none yet. */

static ngx_http_inference_message_t *
ngx_http_inference_preview_first(ngx_http_inference_stream_t *stream)
{
    return ngx_queue_empty(&stream->messages)
           ? NULL
           : ngx_http_inference_stream_of(ngx_queue_head(&stream->messages));
}


ngx_int_t
ngx_http_inference_preview_check(ngx_http_inference_stream_t *stream)
{
    ngx_http_inference_ctx_t      *ctx, *call;
    ngx_http_inference_message_t  *m;

    m = ngx_http_inference_preview_first(stream);

    if (m == NULL
        || m->ctx.state != NGX_HTTP_INFERENCE_REJECTING
        || !ngx_http_inference_preview_wants(m, m->ctx.status))
    {
        return NGX_OK;
    }

    ctx = &m->ctx;
    call = stream->call;

    call->cause = ctx->cause;
    call->hint = ctx->hint;
    call->grpc->status = ctx->grpc->status;

    (void) ngx_http_inference_fail_text(call, ctx->code, ctx->error.data,
                                        ctx->error.len);

    /* some errors have a status that their code does not imply */
    call->status = ctx->status;

    return NGX_ERROR;
}
