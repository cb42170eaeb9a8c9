/*
 * ngx_http_inference_grpc_stream.c - ModelStreamInfer: a call that receives
 *                                    requests and sends responses.
 *
 * The call's own context waits (WAITING) for bytes, for drained sockets and
 * for the end.  Each message has its own context (grpc_message.c).
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_grpc_stream.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/arena.h"
#include "core/base/error.h"


/* limit of open requests of one call; further ones are not received yet */
#define NGX_HTTP_INFERENCE_STREAM_OPEN  256

/* an idle call ends after this time when its worker exits, ms */
#define NGX_HTTP_INFERENCE_STREAM_LINGER  5000

/* limit of bytes received while the call was full */
#define NGX_HTTP_INFERENCE_STREAM_REST  ((size_t) 64 * 1024)

#define ngx_http_inference_stream_has_rest(stream)                            \
    ((stream)->rest && (stream)->rest->pos != (stream)->rest->last)

/* whether held bytes fell from above the bound to it or below */
#define ngx_http_inference_stream_fell(before, now, bound)                    \
    ((before) > (bound) && (now) <= (bound))


static void ngx_http_inference_stream_leave(void *data);
static void ngx_http_inference_stream_cleanup(void *data);
static void ngx_http_inference_stream_linger(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_broken(
    ngx_http_inference_stream_t *stream, ngx_int_t rc);
static ngx_int_t ngx_http_inference_stream_start(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_go_on(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_preview(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_receive(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_rejected(
    ngx_http_inference_stream_t *stream, ngx_int_t rc);
static ngx_uint_t ngx_http_inference_stream_is_full(
    ngx_http_inference_stream_t *stream);
static void ngx_http_inference_stream_take(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_keep(
    ngx_http_inference_stream_t *stream, const u_char *p, size_t n);
static ngx_int_t ngx_http_inference_stream_resume(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_put(
    ngx_http_inference_stream_t *stream, u_char **p, u_char *last);
static ngx_int_t ngx_http_inference_stream_failed(
    ngx_http_inference_message_t *m);
static ngx_int_t ngx_http_inference_stream_flush(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_head(
    ngx_http_inference_stream_t *stream);
static void ngx_http_inference_stream_drained(
    ngx_http_inference_stream_t *stream);


ngx_int_t
ngx_http_inference_stream_open(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_cleanup_t           *leave;
    ngx_pool_cleanup_t           *cln;
    ngx_http_request_t           *r;
    ngx_http_inference_stream_t  *stream;

    r = ctx->request;

    if (ctx->body.origin != NGX_HTTP_INFERENCE_BODY_OWN) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNIMPLEMENTED,
                                            "another handler has read this "
                                            "stream, as mirror and "
                                            "auth_request may: no request of "
                                            "it can be answered before its "
                                            "end");
    }

    stream = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_stream_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);
    leave = ngx_http_cleanup_add(r, 0);

    if (stream == NULL || cln == NULL || leave == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    stream->call = ctx;
    stream->last = &stream->pending;

    ngx_queue_init(&stream->messages);
    ngx_queue_init(&stream->outputs);
    ngx_queue_init(&stream->spare_messages);
    ngx_queue_init(&stream->spare_outputs);

    ngx_http_inference_replies_init(&stream->replies, r->pool);

    cln->handler = ngx_http_inference_stream_cleanup;
    cln->data = stream;

    leave->handler = ngx_http_inference_stream_leave;
    leave->data = stream;

    ctx->stream = stream;

    ngx_http_inference_preview_open(stream);

    /* inference_timeout applies to each message */

    ctx->deadline_ns = ctx->client_deadline_ns;
    ngx_http_inference_arm_timer(ctx);

    ngx_http_inference_leaver_add(&stream->leaver, &ctx->turn);

    return NGX_OK;
}


/* Ends the call: cancels all answers of the core. */

static void
ngx_http_inference_stream_leave(void *data)
{
    ngx_http_inference_stream_t *stream = data;

    ngx_queue_t  *q;

    ngx_http_inference_leaver_remove(&stream->leaver);
    ngx_http_inference_preread_stop(&stream->waiter);

    for (q = ngx_queue_head(&stream->messages);
         q != ngx_queue_sentinel(&stream->messages);
         q = ngx_queue_next(q))
    {
        ngx_http_inference_leave_ctx(&ngx_http_inference_stream_of(q)->ctx);
    }

    if (stream->receiving) {
        ngx_http_inference_stores_free(&stream->receiving->ctx);
    }
}


void
ngx_http_inference_stream_abandon(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->stream) {
        ngx_http_inference_stream_leave(ctx->stream);
    }
}


ngx_int_t
ngx_http_inference_stream_hand_on(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_peek_t  *peek;

    peek = ngx_http_inference_peek(ctx->request);

    if (ctx->body.stage != NGX_HTTP_INFERENCE_BODY_UNREAD
        || ngx_http_inference_peek_binds_stream(peek))
    {
        return NGX_DECLINED;
    }

    if (ctx->stream) {
        ngx_http_inference_stream_cleanup(ctx->stream);
    }

    return NGX_OK;
}


/* Frees the call; nothing uses the arenas any more. */

static void
ngx_http_inference_stream_cleanup(void *data)
{
    ngx_http_inference_stream_t *stream = data;

    ngx_queue_t                         *q;
    ngx_http_inference_message_t        *m;
    ngx_http_inference_stream_output_t  *out;

    while (!ngx_queue_empty(&stream->messages)) {

        m = ngx_http_inference_stream_of(ngx_queue_head(&stream->messages));
        ngx_queue_remove(&m->queue);

        ngx_http_inference_replies_drop(&stream->replies, &m->replies);

        if (m->output) {
            ngx_queue_insert_tail(&stream->outputs, &m->output->queue);
        }

        ngx_http_inference_free_ctx(&m->ctx);
    }

    stream->receiving = NULL;

    ngx_queue_add(&stream->outputs, &stream->spare_outputs);
    ngx_queue_init(&stream->spare_outputs);

    while (!ngx_queue_empty(&stream->outputs)) {

        q = ngx_queue_head(&stream->outputs);
        ngx_queue_remove(q);

        out = ngx_queue_data(q, ngx_http_inference_stream_output_t, queue);

        ngx_http_inference_reply_release(&out->reply);
        inf_arena_fini(&out->arena);
    }

    stream->open = 0;
    ngx_http_inference_stream_give_number(stream);
}


ngx_int_t
ngx_http_inference_stream(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_http_request_t           *r;
    ngx_http_inference_stream_t  *stream;

    r = ctx->request;
    stream = ctx->stream;
    rc = NGX_OK;

    switch (ctx->event) {

    case NGX_HTTP_INFERENCE_NO_EVENT:
        r->read_event_handler = ctx->handlers->stream_read;
        r->write_event_handler = ctx->handlers->writable;
        break;

    case NGX_HTTP_INFERENCE_BODY_BYTES:
        /* within nginx's reading: the rest is done after it */

        if (ctx->body.arrived) {
            ngx_http_inference_stream_take(stream);
            ngx_http_inference_stream_wake(ctx);
        }

        return NGX_DONE;

    case NGX_HTTP_INFERENCE_BODY_END:
        stream->ended = 1;
        r->read_event_handler = ctx->handlers->stream_read;
        ngx_http_inference_stream_wake(ctx);
        return NGX_DONE;

    case NGX_HTTP_INFERENCE_WRITABLE:

        if (r->connection->write->timedout) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                          "client timed out");
            r->connection->timedout = 1;
            rc = ngx_http_inference_stream_broken(stream,
                                                  NGX_HTTP_REQUEST_TIME_OUT);
        }

        break;

    default:
        break;
    }

    if (rc == NGX_OK && !ctx->status && !stream->broken) {
        rc = ngx_http_inference_stream_go_on(stream);
    }

    if (ctx->status && !stream->broken) {
        /* sends the replies from before the failure */
        (void) ngx_http_inference_stream_flush(stream);
    }

    if (stream->broken) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR || ctx->status) {
        return NGX_ERROR;
    }

    if (stream->ended && stream->open == 0
        && !ngx_http_inference_stream_has_rest(stream))
    {
        return NGX_DECLINED;
    }

    if (ngx_exiting) {
        ngx_http_inference_stream_linger(stream);
    }

    return NGX_DONE;
}


/*
 * nginx has told the client by GOAWAY to use another connection for new calls,
 * but open streams stay.  An idle stream would keep the worker from exiting,
 * so it is ended after a while; an active one continues until nginx exits and
 * rejects requests.
 */

static void
ngx_http_inference_stream_linger(ngx_http_inference_stream_t *stream)
{
    ngx_uint_t                 idle;
    ngx_msec_int_t             left;
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;
    idle = (stream->open == 0 && stream->busy == NULL)
           || (stream->lingering && ngx_http_inference_stopping());

    if (idle && !stream->lingering) {

        left = (ngx_msec_int_t) (ctx->timer.timer.key - ngx_current_msec);

        if (left > NGX_HTTP_INFERENCE_STREAM_LINGER) {
            ngx_add_timer(&ctx->timer, NGX_HTTP_INFERENCE_STREAM_LINGER);
        }

    } else if (!idle && stream->lingering) {
        ngx_http_inference_arm_timer(ctx);
    }

    stream->lingering = idle;
}


ngx_int_t
ngx_http_inference_stream_check_time(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_inference_check_timer(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->stream->lingering) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNAVAILABLE,
                                            ngx_http_inference_stopping()
                                            ? NGX_HTTP_INFERENCE_STOPPING
                                            : "the worker of this stream is "
                                              "leaving");
    }

    return NGX_OK;
}


/* Ends sending; ctx->rc is the cause. */

static ngx_int_t
ngx_http_inference_stream_broken(ngx_http_inference_stream_t *stream,
    ngx_int_t rc)
{
    stream->broken = 1;
    stream->call->rc = rc;

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_inference_stream_start(ngx_http_inference_stream_t *stream)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r;
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;
    r = ctx->request;

    r->request_body_no_buffering = 1;
    r->request_body_in_single_buf = 0;
    r->request_body_in_file_only = 0;

    rc = ngx_http_read_client_request_body(r, ctx->handlers->body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return ngx_http_inference_stream_broken(stream, rc);
    }

    if (r->reading_body) {
        r->read_event_handler = ctx->handlers->stream_read;
    }

    r->write_event_handler = ctx->handlers->writable;

    /* drops the count taken for reading */
    ngx_http_finalize_request(r, NGX_DONE);

    /* a failed message is answered now */
    ngx_http_inference_stream_wake_all(stream);

    return ctx->status ? NGX_ERROR : NGX_OK;
}


/* Receives and sends as far as possible. */

static ngx_int_t
ngx_http_inference_stream_go_on(ngx_http_inference_stream_t *stream)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;

    if (ctx->request->connection->error) {
        return ngx_http_inference_stream_broken(stream,
                                            NGX_HTTP_CLIENT_CLOSED_REQUEST);
    }

    if (ngx_http_inference_preview_check(stream) != NGX_OK
        || ngx_http_inference_stream_preview(stream) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!ngx_http_inference_is_preview(stream)
        && ctx->request->request_body == NULL
        && ngx_http_inference_stream_start(stream) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_inference_stream_receive(stream) != NGX_OK) {
        return NGX_ERROR;
    }

    if (stream->ended && stream->receiving
        && !ngx_http_inference_stream_has_rest(stream))
    {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the last request message is cut "
                                            "short");
    }

    return ngx_http_inference_stream_flush(stream);
}


/* Takes the bytes that nginx has buffered. */

static ngx_int_t
ngx_http_inference_stream_preview(ngx_http_inference_stream_t *stream)
{
    u_char     *p;
    ngx_str_t   bytes;

    if (!ngx_http_inference_is_preview(stream)) {
        return NGX_OK;
    }

    bytes = ngx_http_inference_preview_bytes(stream);
    p = bytes.data;

    if (bytes.len
        && ngx_http_inference_stream_put(stream, &p, p + bytes.len)
           == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_preview_took(stream, p - bytes.data);
}


/*
 * Bytes that are not read are not added to the client's window: a call that
 * holds many bytes or requests is read again after some are gone.
 */

static ngx_int_t
ngx_http_inference_stream_receive(ngx_http_inference_stream_t *stream)
{
    off_t                      received;
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;
    r = ctx->request;
    c = r->connection;

    if (ngx_http_inference_stream_resume(stream) != NGX_OK) {
        return NGX_ERROR;
    }

    while (r->reading_body
           && !ngx_http_inference_stream_has_rest(stream)
           && !ngx_http_inference_stream_is_full(stream))
    {

        received = ctx->body.received;

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            return ngx_http_inference_stream_rejected(stream, rc);
        }

        if (ctx->status) {
            return NGX_ERROR;
        }

        if (!r->reading_body) {
            stream->ended = 1;
            break;
        }

        if (ctx->body.received == received) {
            break;
        }
    }

    /* a call may be idle without limit */

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    return NGX_OK;
}


/*
 * nginx reads no further, for rc (a limit of bytes, a wrong length): that is
 * the answer's status, or is told by trailers when the head has been sent.
 * NGX_HTTP_INTERNAL_SERVER_ERROR is a connection that has failed, too.
 */

static ngx_int_t
ngx_http_inference_stream_rejected(ngx_http_inference_stream_t *stream,
    ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = stream->call->request;

    if (r->connection->error
        || (r->header_sent && rc == NGX_HTTP_INTERNAL_SERVER_ERROR))
    {
        return ngx_http_inference_stream_broken(stream,
                                            NGX_HTTP_CLIENT_CLOSED_REQUEST);
    }

    if (!r->header_sent || rc == NGX_HTTP_REQUEST_TIME_OUT) {
        return ngx_http_inference_stream_broken(stream, rc);
    }

    return ngx_http_inference_grpc_fail(stream->call,
                               ngx_http_inference_grpc_status_of(rc),
                               "rejected by nginx with HTTP status %i", rc);
}


/*
 * nginx adds bytes that left its buffer to the client's window, by one frame
 * each time: therefore half of the buffer is taken at once, not each message
 * separately.  Padding of frames uses the window, but not the buffer.
 */

ngx_uint_t
ngx_http_inference_stream_holds_window(ngx_http_inference_ctx_t *ctx)
{
    size_t               half;
    ngx_buf_t           *b;
    ngx_http_request_t  *r;

    r = ctx->request;
    b = r->request_body->buf;

    if (b == NULL) {
        return 0;
    }

    half = (b->end - b->start) / 2;

    return (size_t) (b->last - b->start) < half
           && ngx_http_inference_preread_room(r) > half;
}


static ngx_uint_t
ngx_http_inference_stream_is_full(ngx_http_inference_stream_t *stream)
{
    return stream->held + stream->taken > NGX_HTTP_INFERENCE_STREAM_HELD
           || stream->open >= NGX_HTTP_INFERENCE_STREAM_OPEN;
}


static void
ngx_http_inference_stream_take(ngx_http_inference_stream_t *stream)
{
    u_char                    *p;
    ngx_int_t                  rc;
    ngx_buf_t                 *b;
    ngx_chain_t               *cl;
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;

    if (stream->lingering && !ngx_http_inference_stopping()) {
        stream->lingering = 0;
        ngx_http_inference_arm_timer(ctx);
    }

    for (cl = ctx->body.arrived; cl && !ctx->status; cl = cl->next) {

        b = cl->buf;
        p = b->pos;

        ctx->body.received += b->last - p;
        p += ngx_http_inference_preview_skip(stream, b->last - p);

        rc = ngx_http_inference_stream_has_rest(stream)
             ? NGX_AGAIN
             : ngx_http_inference_stream_put(stream, &p, b->last);

        if (rc == NGX_AGAIN) {
            rc = ngx_http_inference_stream_keep(stream, p, b->last - p);
        }

        if (rc != NGX_OK) {
            break;
        }
    }

    ctx->body.arrived = NULL;
}


/* Keeps bytes for later: the call is full. */

static ngx_int_t
ngx_http_inference_stream_keep(ngx_http_inference_stream_t *stream,
    const u_char *p, size_t n)
{
    size_t      left;
    ngx_buf_t  *b, *rest;

    b = stream->rest;
    left = b ? b->last - b->pos : 0;

    if (b == NULL || (size_t) (b->end - b->last) < n) {

        rest = ngx_create_temp_buf(stream->call->request->pool,
                                   ngx_max(left + n,
                                           NGX_HTTP_INFERENCE_STREAM_REST));
        if (rest == NULL) {
            return ngx_http_inference_fail(stream->call, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        if (left) {
            rest->last = ngx_cpymem(rest->pos, b->pos, left);
        }

        if (b) {
            ngx_pfree(stream->call->request->pool, b->start);
        }

        stream->rest = rest;
        b = rest;
    }

    b->last = ngx_cpymem(b->last, p, n);

    return NGX_OK;
}


/* Continues with the kept bytes. */

static ngx_int_t
ngx_http_inference_stream_resume(ngx_http_inference_stream_t *stream)
{
    ngx_int_t   rc;
    ngx_buf_t  *b;

    if (!ngx_http_inference_stream_has_rest(stream)) {
        return NGX_OK;
    }

    b = stream->rest;

    rc = ngx_http_inference_stream_put(stream, &b->pos, b->last);

    if (rc == NGX_OK) {
        b->pos = b->start;
        b->last = b->start;
    }

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* NGX_AGAIN: the call is full. */

static ngx_int_t
ngx_http_inference_stream_put(ngx_http_inference_stream_t *stream,
    u_char **p, u_char *last)
{
    size_t                         n, size;
    ngx_http_inference_grpc_t     *grpc;
    ngx_http_inference_message_t  *m;

    while (*p < last) {

        n = last - *p;
        m = stream->receiving;

        if (m == NULL) {

            if (ngx_http_inference_stream_is_full(stream)) {
                return NGX_AGAIN;
            }

            m = ngx_http_inference_stream_message(stream);

            if (m == NULL) {
                return ngx_http_inference_fail(stream->call, INF_ERR_INTERNAL,
                                               "out of memory");
            }
        }

        grpc = &m->grpc;

        size = (grpc->prefix_len < INF_GRPC_PREFIX)
               ? INF_GRPC_PREFIX - grpc->prefix_len : (size_t) grpc->left;
        size = ngx_min(size, n);

        if (m->skipped) {
            grpc->left -= size;

        } else if (ngx_http_inference_grpc_place(&m->ctx, *p, size) != NGX_OK) {

            if (ngx_http_inference_stream_failed(m) != NGX_OK) {
                return NGX_ERROR;
            }

            /* a failed message has not counted them */
            grpc->left -= size;
        }

        *p += size;

        if (grpc->prefix_len == INF_GRPC_PREFIX && grpc->left == 0) {
            ngx_http_inference_stream_complete(m);
        }
    }

    return NGX_OK;
}


/*
 * Invalid frames end the call, since the start of the next message is unknown,
 * and so do bytes that are not protobuf: their sender is faulty.  A message
 * without memory fails alone, after it was received completely.
 */

static ngx_int_t
ngx_http_inference_stream_failed(ngx_http_inference_message_t *m)
{
    ngx_http_inference_ctx_t  *ctx, *call;

    ctx = &m->ctx;
    call = m->stream->call;

    if (ctx->grpc->status == INF_GRPC_OK && ctx->code != INF_ERR_INTERNAL) {
        ngx_http_inference_stores_free(ctx);
        m->skipped = 1;
        return NGX_OK;
    }

    call->grpc->status = ctx->grpc->status;

    return ngx_http_inference_fail_text(call, ctx->code, ctx->error.data,
                                        ctx->error.len);
}


/* Checks the rate of the body; a call that is too slow fails. */

ngx_int_t
ngx_http_inference_stream_check_rate(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_ctx_t     *call;
    ngx_http_inference_stream_t  *stream;

    stream = ctx->message->stream;
    call = stream->call;

    if (ngx_http_inference_stream_is_full(stream)) {
        /* the worker is not reading */
        ngx_http_inference_start_rate(ctx);

    } else if (ngx_http_inference_check_rate(ctx) != NGX_OK) {

        call->grpc->status = INF_GRPC_DEADLINE_EXCEEDED;
        (void) ngx_http_inference_fail_text(call, ctx->code, ctx->error.data,
                                            ctx->error.len);
        ngx_http_inference_stream_wake(call);
    }

    return NGX_OK;
}


/* ---- output -------------------------------------------------------------- */

static ngx_int_t
ngx_http_inference_stream_flush(ngx_http_inference_stream_t *stream)
{
    ngx_int_t                  rc;
    ngx_chain_t               *out;
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = stream->call->request;
    wev = r->connection->write;

    out = stream->pending;
    stream->pending = NULL;
    stream->last = &stream->pending;

    if (out == NULL && stream->busy == NULL) {
        return NGX_OK;
    }

    if (!r->header_sent && ngx_http_inference_stream_head(stream) != NGX_OK) {
        return ngx_http_inference_stream_broken(stream, NGX_ERROR);
    }

    rc = ngx_http_output_filter(r, out);

    ngx_http_inference_stream_drained(stream);

    ngx_chain_update_chains(r->pool, &stream->free, &stream->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_inference_module);

    if (rc == NGX_ERROR) {
        return ngx_http_inference_stream_broken(stream, NGX_ERROR);
    }

    if (stream->busy == NULL) {

        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->delayed
        && (!wev->timer_set || r->connection->sent != stream->sent))
    {
        /* a client that only sends must not extend it */
        stream->sent = r->connection->sent;
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        return ngx_http_inference_stream_broken(stream, NGX_ERROR);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_stream_head(ngx_http_inference_stream_t *stream)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = stream->call->request;

    if (ngx_http_inference_grpc_head(stream->call) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_send_header(r);

    return (rc == NGX_ERROR || rc > NGX_OK || r->header_only) ? NGX_ERROR
                                                              : NGX_OK;
}


/* Frees the buffers that were written to the socket. */

static void
ngx_http_inference_stream_drained(ngx_http_inference_stream_t *stream)
{
    uint64_t                             held;
    ngx_queue_t                         *q;
    ngx_http_inference_stream_output_t  *out;

    held = stream->held;

    while (!ngx_queue_empty(&stream->outputs)) {

        q = ngx_queue_head(&stream->outputs);
        out = ngx_queue_data(q, ngx_http_inference_stream_output_t, queue);

        if (ngx_buf_size(out->last)) {
            break;
        }

        ngx_queue_remove(q);
        ngx_queue_insert_head(&stream->spare_outputs, q);

        stream->held -= out->size;

        ngx_http_inference_reply_release(&out->reply);
        inf_arena_reset(&out->arena);
    }

    ngx_http_inference_stream_give_number(stream);

    if (ngx_http_inference_stream_fell(held, stream->held,
                                       NGX_HTTP_INFERENCE_STREAM_PREPARED)
        || ngx_http_inference_stream_fell(held, stream->held,
                                          NGX_HTTP_INFERENCE_STREAM_HELD))
    {
        ngx_http_inference_stream_wake_all(stream);
    }

    if (ngx_http_inference_stream_fell(held + stream->taken,
                                       stream->held + stream->taken,
                                       NGX_HTTP_INFERENCE_STREAM_HELD))
    {
        ngx_http_inference_stream_wake(stream->call);
    }
}


ngx_int_t
ngx_http_inference_stream_close(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_stream_t  *stream;

    stream = ctx->stream;

    if (stream->broken) {
        ngx_http_inference_stream_leave(stream);
        return NGX_OK;
    }

    if (!ctx->request->header_sent
        && ngx_http_inference_stream_head(stream) != NGX_OK)
    {
        ctx->rc = NGX_ERROR;
        return NGX_OK;
    }

    ctx->rc = ngx_http_inference_grpc_send_trailers(ctx, INF_GRPC_OK, NULL);

    return NGX_OK;
}
