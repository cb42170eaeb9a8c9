/*
 * ngx_http_inference_events.c - responses of generate_stream: each is written
 *                               as a server-sent event and flushed.
 *
 * A request waits (WAITING) for its first response, which sets the status.
 * Then it is SENDING: responses are written in order, as fast as the socket
 * drains, and each is released once written.
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_response.h"


/* size of a text buffer, and of text collected before it is sent */
#define NGX_HTTP_INFERENCE_EVENTS_BUFFER   4096
#define NGX_HTTP_INFERENCE_EVENTS_TEXT     (64 * 1024)

/* bytes of an error that are escaped at a time */
#define NGX_HTTP_INFERENCE_EVENTS_PIECE    256


struct ngx_http_inference_events_s {
    ngx_http_inference_replies_t  replies;
    ngx_queue_t                  waiting;       /* responses not opened yet  */
    inf_arena_t                  arena;         /* of the response being
                                                   written                    */
    ngx_chain_t                 *out;           /* written, not sent         */
    ngx_chain_t                 *last;          /* last link of out          */
    size_t                       size;          /* bytes of out              */
    unsigned                     printing:1;    /* ctx->writer is not done   */
    unsigned                     half:1;        /* and has begun             */
    unsigned                     final:1;       /* no more responses follow  */
};


static ngx_int_t ngx_http_inference_events_take(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_events_print(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_events_error(ngx_http_inference_ctx_t *ctx,
    const u_char *text, size_t len);
static ngx_int_t ngx_http_inference_events_put(ngx_http_inference_ctx_t *ctx,
    const void *data, size_t len);
static ngx_chain_t *ngx_http_inference_events_room(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_events_wrote(
    ngx_http_inference_events_t *events, ngx_chain_t *cl, size_t n);
static ngx_int_t ngx_http_inference_events_flush(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_events_end(ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_events_open(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_events_t  *events;

    events = ngx_pcalloc(ctx->request->pool,
                         sizeof(ngx_http_inference_events_t));
    if (events == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    ngx_http_inference_replies_init(&events->replies, ctx->request->pool);
    ngx_queue_init(&events->waiting);
    inf_arena_init(&events->arena);

    ctx->events = events;

    return NGX_OK;
}


void
ngx_http_inference_events_free(ngx_http_inference_events_t *events)
{
    ngx_http_inference_replies_drop(&events->replies, &events->waiting);
    inf_arena_fini(&events->arena);
}


void
ngx_http_inference_events_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    if (c == NULL) {
        (void) ngx_http_inference_take_reply(ctx, &ctx->submission, NULL);

    } else if (c->flags & (INF_COMPLETE_RESPONSE|INF_COMPLETE_FINAL)) {

        if (!ngx_http_inference_hand_on_wanted(ctx)) {
            ngx_http_inference_forget(&ctx->submission);
        }

        (void) ngx_http_inference_replies_push(&events->replies,
                                               &events->waiting, ctx, c);

    } else {
        return;
    }

    if (!ctx->turn.posted) {
        ngx_post_event(&ctx->turn, &ngx_posted_events);
    }
}


ngx_uint_t
ngx_http_inference_events_begun(ngx_http_inference_ctx_t *ctx)
{
    return ctx->events
           && (ctx->state != NGX_HTTP_INFERENCE_WAITING
               || !ngx_queue_empty(&ctx->events->waiting));
}


/* Takes the next response; responses before a failure are sent first. */

ngx_int_t
ngx_http_inference_events_next(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                           rc;
    ngx_http_inference_events_t        *events;
    ngx_http_inference_queued_reply_t  *item;

    events = ctx->events;

    for ( ;; ) {

        if (events->final) {
            return NGX_DECLINED;
        }

        if (ngx_queue_empty(&events->waiting)) {
            return ctx->status ? NGX_ERROR : NGX_DONE;
        }

        item = ngx_http_inference_replies_pop(&events->replies,
                                              &events->waiting);

        ctx->reply = item->reply;
        ctx->cause = item->cause;
        events->final = item->final;

        if (item->final && ctx->timer.timer_set) {
            /* only the client's reading remains */
            ngx_del_timer(&ctx->timer);
        }

        if (item->response) {
            ctx->replies++;

            rc = ngx_http_inference_events_take(ctx);

            if (rc != NGX_DECLINED) {
                return rc;
            }

        } else if (item->reply.status != INF_OK) {
            return ngx_http_inference_fail_bare(ctx, item->reply.status);
        }
    }
}


/*
 * Opens a response.  NGX_OK: prepare it.  NGX_DECLINED: it was an error, whose
 * event is written.  An error as first response fails the request.
 */

static ngx_int_t
ngx_http_inference_events_take(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_str_t                     error;
    inf_slice_t                   text;
    inf_arena_t                  *arena;
    inf_response_record_t        *record;
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    inf_arena_reset(&events->arena);

    /* the first record stays for logs */
    arena = (ctx->replies == 1) ? &ctx->arena : &events->arena;

    if (ngx_http_inference_copy_reply(ctx, &ctx->reply, arena, &record)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->replies == 1) {
        ngx_http_inference_note_record(ctx, record);
    }

    if (record->status == INF_OK) {

        ngx_http_inference_note_response(ctx);

        rc = ngx_http_inference_open_record(ctx, record, INF_RESPONSE_EVENT,
                                            &events->arena);
        events->printing = (rc == NGX_OK);

        return rc;
    }

    text = inf_response_text(record, record->error);

    if (!ctx->request->header_sent) {
        return ngx_http_inference_fail_text(ctx,
                                            INF_STATUS_CODE(record->status),
                                            text.data, text.len);
    }

    error.data = (u_char *) text.data;
    error.len = text.len;

    ngx_http_inference_log_error(ctx, error);
    ngx_http_inference_reply_release(&ctx->reply);

    return (ngx_http_inference_events_error(ctx, error.data, error.len)
            == NGX_OK) ? NGX_DECLINED : NGX_ERROR;
}


ngx_int_t
ngx_http_inference_events_respond(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r->header_sent) {
        return NGX_DECLINED;
    }

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;

    ngx_str_set(&r->headers_out.content_type,
                "text/event-stream; charset=utf-8");

    r->headers_out.content_type_len = sizeof("text/event-stream") - 1;
    r->headers_out.content_type_lowcase = NULL;

    ctx->rc = ngx_http_inference_load_header(ctx);

    if (ctx->rc == NGX_OK) {
        ctx->rc = ngx_http_inference_send_header(r);
    }

    return (ctx->rc == NGX_ERROR || ctx->rc > NGX_OK || r->header_only)
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_inference_events_send(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    if (ctx->event == NGX_HTTP_INFERENCE_WRITABLE) {

        rc = ngx_http_inference_drained(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    for ( ;; ) {

        if (ngx_http_inference_is_blocked(ctx)) {
            return ngx_http_inference_wait_writable(ctx);
        }

        if (events->size >= NGX_HTTP_INFERENCE_EVENTS_TEXT
            && ngx_http_inference_events_flush(ctx) != NGX_OK)
        {
            return NGX_OK;
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        if (events->printing) {

            if (ngx_http_inference_events_print(ctx) != NGX_OK) {
                /* an incomplete event cannot be replaced by an error */
                ngx_http_inference_log_failed(ctx, "response", "cut short",
                                              ctx->error);
                ctx->rc = NGX_ERROR;
                return NGX_OK;
            }

            continue;
        }

        rc = ngx_http_inference_events_next(ctx);

        switch (rc) {

        case NGX_OK:
            return NGX_DECLINED;

        case NGX_DECLINED:
            return ngx_http_inference_events_end(ctx);

        case NGX_DONE:

            if (ngx_http_inference_events_flush(ctx) != NGX_OK) {
                return NGX_OK;
            }

            return ngx_http_inference_is_blocked(ctx)
                   ? ngx_http_inference_wait_writable(ctx) : NGX_DONE;

        default:
            return rc;
        }
    }
}


/* Writes as much as fits into a buffer. */

static ngx_int_t
ngx_http_inference_events_print(ngx_http_inference_ctx_t *ctx)
{
    size_t                        written;
    ngx_buf_t                    *b;
    inf_err_t                    *err;
    inf_codec_t                   rc;
    ngx_chain_t                  *cl;
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    cl = ngx_http_inference_events_room(ctx);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    b = cl->buf;
    written = 0;

    rc = inf_response_fill(ctx->writer, b->last, b->end - b->last, &written,
                           &err);

    ngx_http_inference_events_wrote(events, cl, written);

    events->half = 1;

    if (rc == INF_CODEC_ERROR) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    if (rc == INF_CODEC_DONE) {
        events->printing = 0;
        events->half = 0;
        ngx_http_inference_reply_release(&ctx->reply);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_events_error(ngx_http_inference_ctx_t *ctx,
    const u_char *text, size_t len)
{
    size_t   n;
    u_char  *p, piece[NGX_HTTP_INFERENCE_EVENTS_PIECE * 6];

    static const char  before[] = "data: {\"error\":\"";
    static const char  after[] = "\"}\n\n";

    if (ngx_http_inference_events_put(ctx, before, sizeof(before) - 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for ( /* void */ ; len; len -= n) {

        n = ngx_min(len, NGX_HTTP_INFERENCE_EVENTS_PIECE);
        p = (u_char *) ngx_escape_json(piece, (u_char *) text, n);
        text += n;

        if (ngx_http_inference_events_put(ctx, piece, p - piece) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_http_inference_events_put(ctx, after, sizeof(after) - 1);
}


static ngx_int_t
ngx_http_inference_events_put(ngx_http_inference_ctx_t *ctx, const void *data,
    size_t len)
{
    size_t         n;
    ngx_chain_t   *cl;
    const u_char  *p;

    for (p = data; len; len -= n) {

        cl = ngx_http_inference_events_room(ctx);
        if (cl == NULL) {
            return NGX_ERROR;
        }

        n = ngx_min(len, (size_t) (cl->buf->end - cl->buf->last));
        ngx_memcpy(cl->buf->last, p, n);
        p += n;

        ngx_http_inference_events_wrote(ctx->events, cl, n);
    }

    return NGX_OK;
}


/* The last buffer if it has room, or a new one; NULL: failed. */

static ngx_chain_t *
ngx_http_inference_events_room(ngx_http_inference_ctx_t *ctx)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ctx->events->last;

    if (cl && cl->buf->last < cl->buf->end) {
        return cl;
    }

    cl = ngx_chain_get_free_buf(ctx->request->pool, &ctx->free);

    if (cl && cl->buf->start == NULL) {

        b = cl->buf;
        b->start = ngx_palloc(ctx->request->pool,
                              NGX_HTTP_INFERENCE_EVENTS_BUFFER);
        if (b->start == NULL) {
            cl = NULL;

        } else {
            b->end = b->start + NGX_HTTP_INFERENCE_EVENTS_BUFFER;
        }
    }

    if (cl == NULL) {
        (void) ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                       "out of memory");
        return NULL;
    }

    b = cl->buf;
    b->pos = b->start;
    b->last = b->start;
    b->temporary = 1;
    b->flush = 0;
    b->tag = (ngx_buf_tag_t) &ngx_http_inference_module;

    cl->next = NULL;

    return cl;
}


/* Counts n bytes written to cl; the first bytes link it to out. */

static void
ngx_http_inference_events_wrote(ngx_http_inference_events_t *events,
    ngx_chain_t *cl, size_t n)
{
    if (n == 0) {
        return;
    }

    cl->buf->last += n;
    events->size += n;

    if (events->last == cl) {
        return;
    }

    if (events->last) {
        events->last->next = cl;

    } else {
        events->out = cl;
    }

    events->last = cl;
}


/* Sends out.  NGX_ERROR: ctx->rc is NGX_ERROR. */

static ngx_int_t
ngx_http_inference_events_flush(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_chain_t                  *out;
    ngx_event_t                  *wev;
    ngx_http_inference_events_t  *events;

    events = ctx->events;
    out = events->out;

    if (out) {
        events->last->buf->flush = 1;
        events->out = NULL;
        events->last = NULL;
        events->size = 0;

        rc = ngx_http_inference_output(ctx, out);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    wev = ctx->request->connection->write;

    if (!ngx_http_inference_is_blocked(ctx)
        && wev->timer_set && !wev->delayed)
    {
        ngx_del_timer(wev);
    }

    return NGX_OK;
}


/* Sends the rest and the mark of the end. */

static ngx_int_t
ngx_http_inference_events_end(ngx_http_inference_ctx_t *ctx)
{
    ngx_chain_t                  *end, *out;
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    end = ngx_http_inference_end_link(ctx->request);

    if (end == NULL) {
        ctx->rc = NGX_ERROR;
        return NGX_OK;
    }

    out = events->out;

    if (out) {
        events->last->next = end;

    } else {
        out = end;
    }

    events->out = NULL;
    events->last = NULL;

    ctx->rc = ngx_http_output_filter(ctx->request, out);

    return NGX_OK;
}


void
ngx_http_inference_events_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_events_t  *events;

    events = ctx->events;

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    ngx_http_inference_replies_drop(&events->replies, &events->waiting);

    if (events->half
        || ngx_http_inference_events_error(ctx, ctx->error.data,
                                           ctx->error.len)
           != NGX_OK)
    {
        ngx_http_inference_log_failed(ctx, "response", "cut short",
                                      ctx->error);
        ctx->rc = NGX_ERROR;
        return;
    }

    (void) ngx_http_inference_events_end(ctx);
}
