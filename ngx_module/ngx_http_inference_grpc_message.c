/*
 * ngx_http_inference_grpc_message.c - a message of ModelStreamInfer: one
 *                                     inference, and its responses.
 *
 * The driver runs the message's context like a unary call's, from READING on;
 * its responses are added to the call's output.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_grpc_stream.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/points.h"
#include "core/base/slice.h"
#include "core/proto/infer_response.h"


/* memory of a response besides its bytes: an arena and buffers */
#define NGX_HTTP_INFERENCE_STREAM_COST  ((uint64_t) 5 * 1024)

/* maximum ratio of deflate */
#define NGX_HTTP_INFERENCE_STREAM_RATIO  1032


static uint64_t ngx_http_inference_stream_size(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_stream_surplus(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);
static ngx_uint_t ngx_http_inference_stream_may_send(
    ngx_http_inference_message_t *m);
static ngx_int_t ngx_http_inference_stream_open_reply(
    ngx_http_inference_message_t *m, ngx_uint_t queued);
static ngx_int_t ngx_http_inference_stream_end_with(
    ngx_http_inference_message_t *m, inf_err_code_t code, const void *text,
    size_t len);
static ngx_http_inference_stream_output_t *ngx_http_inference_stream_output(
    ngx_http_inference_message_t *m);
static ngx_int_t ngx_http_inference_stream_notice(
    ngx_http_inference_message_t *m, ngx_str_t *error, ngx_uint_t answered);
static ngx_int_t ngx_http_inference_stream_put_out(
    ngx_http_inference_message_t *m, const inf_slice_t *text);
static ngx_int_t ngx_http_inference_stream_link(
    ngx_http_inference_stream_t *stream, inf_slice_t piece, ngx_buf_t **b);


/* messages of all calls so far */

static uint64_t  ngx_http_inference_messages;


ngx_http_inference_message_t *
ngx_http_inference_stream_message(ngx_http_inference_stream_t *stream)
{
    ngx_queue_t                   *q;
    ngx_http_inference_ctx_t      *ctx, *call;
    ngx_http_inference_message_t  *m;

    call = stream->call;

    if (ngx_queue_empty(&stream->spare_messages)) {

        m = ngx_palloc(call->request->pool,
                       sizeof(ngx_http_inference_message_t));
        if (m == NULL) {
            return NULL;
        }

    } else {
        q = ngx_queue_head(&stream->spare_messages);
        ngx_queue_remove(q);
        m = ngx_http_inference_stream_of(q);
    }

    ngx_memzero(m, sizeof(ngx_http_inference_message_t));

    m->stream = stream;
    m->order = ++ngx_http_inference_messages;
    m->grpc.in = call->grpc->in;
    m->grpc.out = call->grpc->out;

    ngx_queue_init(&m->replies);

    ctx = &m->ctx;

    ngx_http_inference_init_ctx(ctx, call->request,
                                NGX_HTTP_INFERENCE_RECEIVING);

    ctx->owner = call;
    ctx->grpc = &m->grpc;
    ctx->message = m;
    ctx->endpoint = ngx_http_inference_grpc_infer_method();
    ctx->handlers = call->handlers;
    ctx->names.model = call->names.model;
    ctx->version = call->version;
    ctx->received_ns = call->turn_ns;
    ctx->turn_ns = call->turn_ns;
    ctx->client_deadline_ns = call->client_deadline_ns;
    ctx->timer.handler = call->timer.handler;
    ctx->turn.handler = call->turn.handler;
    ctx->submission.ready = call->submission.ready;
    ctx->submission.answer = call->submission.answer;

    /* inference_min_body_rate applies to a message, while a call may be idle */
    ngx_http_inference_start_rate(ctx);

    ngx_queue_insert_tail(&stream->messages, &m->queue);
    stream->open++;
    stream->receiving = m;

    return m;
}


void
ngx_http_inference_stream_complete(ngx_http_inference_message_t *m)
{
    ngx_http_inference_ctx_t  *ctx, *call;

    INF_POINT(MESSAGE_COMPLETE);

    ctx = &m->ctx;
    call = m->stream->call;

    m->stream->receiving = NULL;

    ctx->body.stage = NGX_HTTP_INFERENCE_BODY_COMPLETE;
    ctx->turn_ns = call->turn_ns;

    ngx_http_inference_stream_count(ctx, ngx_http_inference_stream_size(ctx));

    ngx_http_inference_start_timer(ctx);
    ngx_http_inference_move(ctx, ctx->status ? NGX_ERROR : NGX_OK);
    ngx_http_inference_stream_wake(ctx);
}


/* Bytes a message holds before the submission, or may hold once inflated. */

static uint64_t
ngx_http_inference_stream_size(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (ctx->message->skipped) {
        return 0;
    }

    if (!ctx->grpc->compressed) {
        return body->plain;
    }

    return ngx_min(body->packed.len * NGX_HTTP_INFERENCE_STREAM_RATIO,
                   (uint64_t) ngx_http_inference_max_inflated(ctx));
}


void
ngx_http_inference_stream_count(ngx_http_inference_ctx_t *ctx, uint64_t size)
{
    uint64_t                       before;
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *m;

    m = ctx->message;
    stream = m->stream;

    before = stream->held + stream->taken;

    stream->taken += size - m->size;
    m->size = size;

    if (before > NGX_HTTP_INFERENCE_STREAM_HELD
        && stream->held + stream->taken <= NGX_HTTP_INFERENCE_STREAM_HELD)
    {
        ngx_http_inference_stream_wake(stream->call);
    }
}


/* Rejects new requests while nginx stops: open calls keep the worker only until
   their submitted requests have ended. */

ngx_int_t
ngx_http_inference_stream_admit(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->retry || !ngx_http_inference_stopping()) {
        return NGX_OK;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   NGX_HTTP_INFERENCE_STOPPING);
}


ngx_uint_t
ngx_http_inference_stream_begun(ngx_http_inference_ctx_t *ctx)
{
    return ctx->message
           && (ctx->state != NGX_HTTP_INFERENCE_WAITING
               || !ngx_queue_empty(&ctx->message->replies));
}


/* Free numbers of calls; a call takes the last one. */

static uint16_t    ngx_http_inference_numbers[INF_MAX_SLOTS];
static ngx_uint_t  ngx_http_inference_number_count;
static ngx_uint_t  ngx_http_inference_number_next = 1;


void
ngx_http_inference_stream_name(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s)
{
    ngx_http_inference_stream_t  *stream;

    if (ctx->message == NULL) {
        return;
    }

    stream = ctx->message->stream;

    if (stream->number == 0) {

        if (ngx_http_inference_number_count > 0) {
            stream->number = ngx_http_inference_numbers[
                                           --ngx_http_inference_number_count];

        } else if (ngx_http_inference_number_next <= INF_MAX_SLOTS) {
            stream->number = ngx_http_inference_number_next++;
        }
    }

    s->call = stream->number;
    s->order = ctx->message->order;
}


void
ngx_http_inference_stream_give_number(ngx_http_inference_stream_t *stream)
{
    if (stream->number != 0
        && stream->open == 0
        && ngx_queue_empty(&stream->outputs))
    {
        ngx_http_inference_numbers[ngx_http_inference_number_count++] =
                                                               stream->number;
        stream->number = 0;
    }
}


/* Takes a completion; c NULL: the core has exited. */

void
ngx_http_inference_stream_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *m;

    m = ctx->message;
    stream = m->stream;

    if (c == NULL) {
        (void) ngx_http_inference_take_reply(ctx, &ctx->submission, NULL);
        ngx_http_inference_stream_wake(ctx);
        return;
    }

    if (c->flags & INF_COMPLETE_DECOUPLED) {
        m->decoupled = 1;
        ngx_http_inference_stream_wake_all(stream);
    }

    if (!(c->flags & (INF_COMPLETE_RESPONSE|INF_COMPLETE_FINAL))) {
        return;
    }

    ngx_http_inference_forget(&ctx->submission);

    if ((c->flags & INF_COMPLETE_FINAL) && ctx->timer.timer_set) {
        /* only its turn and the client's reading remain */
        ngx_del_timer(&ctx->timer);
    }

    if (c->flags & INF_COMPLETE_RESPONSE) {
        m->responses++;

        if (m->responses > 1 && !m->decoupled) {
            ngx_http_inference_stream_surplus(ctx, c);
            return;
        }
    }

    (void) ngx_http_inference_replies_push(&stream->replies, &m->replies, ctx,
                                           c);
    ngx_http_inference_stream_wake(ctx);
}


/* A request of a model that is not decoupled has one response: as in Triton,
   the first; the log has that there are others. */

static void
ngx_http_inference_stream_surplus(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    inf_completion_t               end;
    ngx_http_inference_message_t  *m;

    static ngx_str_t  why = ngx_string("expected a single response, and the "
                                       "first was sent");

    m = ctx->message;

    if (m->responses == 2) {
        ngx_http_inference_log_failed(ctx, "response", "dropped", why);
    }

    ngx_http_inference_drop_response(&ctx->submission, c);

    if (c->flags & INF_COMPLETE_FINAL) {

        ngx_memzero(&end, sizeof(inf_completion_t));
        end.flags = INF_COMPLETE_FINAL;

        (void) ngx_http_inference_replies_push(&m->stream->replies,
                                               &m->replies, ctx, &end);
        ngx_http_inference_stream_wake(ctx);
    }
}


/*
 * Takes the next response.  NGX_OK: prepare it.  NGX_DECLINED: no more follow.
 * NGX_DONE: not its turn, or no response yet.
 */

ngx_int_t
ngx_http_inference_stream_next(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                           none;
    ngx_http_inference_message_t       *m;
    ngx_http_inference_queued_reply_t  *item;

    m = ctx->message;

    if (ctx->status) {
        return NGX_ERROR;
    }

    for ( ;; ) {

        if (m->final) {
            return NGX_DECLINED;
        }

        if (ngx_queue_empty(&m->replies)
            || !ngx_http_inference_stream_may_send(m))
        {
            return NGX_DONE;
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        if (ngx_http_inference_stream_output(m) == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        item = ngx_http_inference_replies_pop(&m->stream->replies,
                                              &m->replies);

        m->output->reply = item->reply;
        m->final = item->final;
        ctx->cause = item->cause;

        if (item->response) {
            ctx->replies++;

            return ngx_http_inference_stream_open_reply(m, item->queued);
        }

        if (item->reply.status != INF_OK) {
            return ngx_http_inference_fail_bare(ctx, item->reply.status);
        }

        if (!m->decoupled && ctx->replies == 0) {
            return ngx_http_inference_fail_count(ctx);
        }

        ngx_str_null(&none);

        if (m->decoupled && m->grpc.empty_final
            && ngx_http_inference_stream_notice(m, &none, 1) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


/* Whether the message may send: responses of decoupled models in any order,
   others in the order of their requests. */

static ngx_uint_t
ngx_http_inference_stream_may_send(ngx_http_inference_message_t *m)
{
    ngx_queue_t                   *q;
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *other;

    stream = m->stream;

    if (m->decoupled) {
        /* unprepared responses take the least memory */
        return stream->held <= NGX_HTTP_INFERENCE_STREAM_PREPARED;
    }

    if (stream->held > NGX_HTTP_INFERENCE_STREAM_HELD) {
        return 0;
    }

    for (q = ngx_queue_head(&stream->messages);
         q != &m->queue;
         q = ngx_queue_next(q))
    {
        other = ngx_http_inference_stream_of(q);

        if (!other->decoupled) {
            return 0;
        }
    }

    return 1;
}


/* Opens a reply.  An error of the model is sent as a response, and others may
   follow; after a failed check before the queue, the response has the id
   alone. */

static ngx_int_t
ngx_http_inference_stream_open_reply(ngx_http_inference_message_t *m,
    ngx_uint_t queued)
{
    ngx_int_t                            rc;
    ngx_str_t                            error;
    inf_err_t                           *err;
    inf_slice_t                          text;
    inf_err_code_t                       code;
    inf_reply_options_t                  options;
    inf_response_record_t               *record;
    ngx_http_inference_ctx_t            *ctx, *call;
    ngx_http_inference_stream_output_t  *out;

    ctx = &m->ctx;
    out = m->output;
    call = m->stream->call;

    rc = ngx_http_inference_copy_reply(ctx, &out->reply, &out->arena, &record);

    if (rc != NGX_OK) {
        return rc;
    }

    if (record->status == INF_OK) {

        ngx_http_inference_note_response(call);

        options.outputs = ctx->infer.outputs;
        options.output_count = ctx->infer.output_count;
        options.stream = 1;
        options.final = m->final;

        m->grpc.arena = &out->arena;

        err = inf_reply_new(&m->grpc.reply, record,
                            ngx_http_inference_response(out->reply.epoch, 0,
                                      inf_client_response_size(ctx->client)),
                            &options, &out->arena);

        return err ? ngx_http_inference_fail_err(ctx, err) : NGX_OK;
    }

    code = INF_STATUS_CODE(record->status);
    text = inf_response_text(record, record->error);

    if (ngx_http_inference_preview_wants(m,
                                        ngx_http_inference_status(ctx, code)))
    {
        return ngx_http_inference_fail_text(ctx, code, text.data, text.len);
    }

    if (call->grpc->stream_errors && queued) {
        return ngx_http_inference_stream_end_with(m, code, text.data,
                                                  text.len);
    }

    error.data = (u_char *) text.data;
    error.len = text.len;

    ngx_http_inference_log_error(ctx, error);

    m->grpc.reply = NULL;

    return ngx_http_inference_stream_notice(m, &error, queued);
}


/* Ends the call with an error of the message. */

static ngx_int_t
ngx_http_inference_stream_end_with(ngx_http_inference_message_t *m,
    inf_err_code_t code, const void *text, size_t len)
{
    ngx_http_inference_ctx_t  *call;

    call = m->stream->call;

    call->cause = m->ctx.cause;

    (void) ngx_http_inference_fail_text(call, code, text, len);
    ngx_http_inference_stream_wake(call);

    return NGX_DONE;
}


/* Sends the response.  NGX_OK: it was the last.  NGX_DECLINED: others may
   follow. */

ngx_int_t
ngx_http_inference_stream_respond(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_message_t  *m;

    m = ctx->message;

    if (m->output && m->grpc.reply
        && ngx_http_inference_stream_put_out(m, NULL) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return m->final ? NGX_OK : NGX_DECLINED;
}


/* Sends the error of a failed message in the order of the stream. */

ngx_int_t
ngx_http_inference_stream_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_ctx_t      *call;
    ngx_http_inference_message_t  *m;

    m = ctx->message;

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    ngx_http_inference_replies_drop(&m->stream->replies, &m->replies);

    if (!ngx_http_inference_stream_may_send(m)) {
        return NGX_DONE;
    }

    call = m->stream->call;

    if (ngx_http_inference_preview_wants(m, ctx->status)) {
        ngx_http_inference_stream_wake(call);
        return NGX_DONE;
    }

    if (call->grpc->stream_errors
        && (ctx->submission.exits || ctx->replies != 0))
    {
        /* like an error of the model */
        return ngx_http_inference_stream_end_with(m, ctx->code,
                                                  ctx->error.data,
                                                  ctx->error.len);
    }

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    ngx_http_inference_log_error(ctx, ctx->error);

    m->final = 1;

    if (ngx_http_inference_stream_output(m) == NULL
        || ngx_http_inference_stream_notice(m, &ctx->error,
                                            ctx->replies != 0)
           != NGX_OK)
    {
        m->stream->broken = 1;
        m->stream->call->rc = NGX_ERROR;
    }

    return NGX_OK;
}


/* Ends a message, called by the driver. */

void
ngx_http_inference_stream_over(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *m;

    m = ctx->message;
    stream = m->stream;

    ngx_http_inference_replies_drop(&m->stream->replies, &m->replies);

    if (m->output) {
        ngx_http_inference_grpc_free(&m->grpc);
        ngx_http_inference_reply_release(&m->output->reply);
        inf_arena_reset(&m->output->arena);
        ngx_queue_insert_head(&stream->spare_outputs, &m->output->queue);
        m->output = NULL;
    }

    ngx_http_inference_stream_count(ctx, 0);
    ngx_http_inference_free_ctx(ctx);
    ngx_http_inference_preview_end(stream);

    ngx_queue_remove(&m->queue);
    ngx_queue_insert_head(&stream->spare_messages, &m->queue);
    stream->open--;

    ngx_http_inference_stream_give_number(stream);
    ngx_http_inference_stream_wake_all(stream);
    ngx_http_inference_stream_wake(stream->call);
}


/* ---- responses ----------------------------------------------------------- */

/* Allocates the output of the prepared response; NULL: out of memory. */

static ngx_http_inference_stream_output_t *
ngx_http_inference_stream_output(ngx_http_inference_message_t *m)
{
    ngx_queue_t                         *q;
    ngx_http_inference_stream_t         *stream;
    ngx_http_inference_stream_output_t  *out;

    stream = m->stream;

    if (m->output) {
        ngx_http_inference_grpc_free(&m->grpc);
        ngx_http_inference_reply_release(&m->output->reply);
        inf_arena_reset(&m->output->arena);
        return m->output;
    }

    if (!ngx_queue_empty(&stream->spare_outputs)) {

        q = ngx_queue_head(&stream->spare_outputs);
        ngx_queue_remove(q);

        out = ngx_queue_data(q, ngx_http_inference_stream_output_t, queue);

    } else {
        out = ngx_pcalloc(stream->call->request->pool,
                          sizeof(ngx_http_inference_stream_output_t));
        if (out == NULL) {
            return NULL;
        }

        inf_arena_init(&out->arena);
    }

    m->output = out;

    return out;
}


/* Sends a reply without tensors: an error, or an empty final response. */

static ngx_int_t
ngx_http_inference_stream_notice(ngx_http_inference_message_t *m,
    ngx_str_t *error, ngx_uint_t answered)
{
    inf_err_t                 *err;
    inf_slice_t                text;
    inf_reply_notice_t         notice;
    ngx_http_inference_ctx_t  *ctx;
    const inf_infer_call_t    *call;

    ctx = &m->ctx;

    ngx_memzero(&notice, sizeof(inf_reply_notice_t));

    notice.error = ngx_http_inference_slice(error);
    notice.answered = answered;
    notice.final = m->final;

    if (m->grpc.message) {
        call = inf_infer_message_call(m->grpc.message);

        notice.id = call->infer.id;
        notice.model_name = answered ? call->model_name : inf_slice("", 0);
        notice.model_version = answered ? call->version_text
                                        : inf_slice("", 0);
    }

    err = inf_reply_notice(&text, &notice, &m->output->arena);

    if (err) {
        inf_err_free(err);
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    return ngx_http_inference_stream_put_out(m, &text);
}


/* Moves the message's output to the call's; text NULL: the prepared reply. */

static ngx_int_t
ngx_http_inference_stream_put_out(ngx_http_inference_message_t *m,
    const inf_slice_t *text)
{
    ngx_int_t                            rc;
    ngx_buf_t                           *b;
    uint32_t                             i, n;
    inf_slice_t                          piece;
    ngx_http_inference_stream_t         *stream;
    ngx_http_inference_stream_output_t  *out;

    stream = m->stream;
    out = m->output;
    b = NULL;
    n = text ? 1 : ngx_http_inference_grpc_piece_count(&m->grpc);

    out->size = NGX_HTTP_INFERENCE_STREAM_COST + out->reply.len;

    for (i = 0; i < n; i++) {

        piece = text ? *text : ngx_http_inference_grpc_piece(&m->grpc, i);

        rc = ngx_http_inference_stream_link(stream, piece, &b);

        if (rc != NGX_OK) {
            /* an incomplete message breaks the stream */
            stream->broken = 1;
            stream->call->rc = NGX_ERROR;
            ngx_http_inference_stream_wake(stream->call);
            return ngx_http_inference_fail(&m->ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        out->size += piece.len;
    }

    b->flush = 1;

    ngx_http_inference_preview_end(stream);

    out->last = b;
    stream->held += out->size;

    m->output = NULL;
    m->grpc.reply = NULL;
    ngx_http_inference_grpc_free(&m->grpc);

    ngx_queue_insert_tail(&stream->outputs, &out->queue);
    ngx_http_inference_stream_wake(stream->call);

    INF_POINT(RESPONSE_STREAMED);

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_stream_link(ngx_http_inference_stream_t *stream,
    inf_slice_t piece, ngx_buf_t **b)
{
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(stream->call->request->pool, &stream->free);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    *b = cl->buf;

    ngx_memzero(*b, sizeof(ngx_buf_t));

    (*b)->memory = 1;
    (*b)->start = (u_char *) piece.data;
    (*b)->pos = (*b)->start;
    (*b)->last = (*b)->pos + piece.len;
    (*b)->end = (*b)->last;
    (*b)->tag = (ngx_buf_tag_t) &ngx_http_inference_module;

    cl->next = NULL;

    *stream->last = cl;
    stream->last = &cl->next;

    return NGX_OK;
}


void
ngx_http_inference_stream_wake(ngx_http_inference_ctx_t *ctx)
{
    if (!ctx->turn.posted) {
        ngx_post_event(&ctx->turn, &ngx_posted_events);
    }
}


void
ngx_http_inference_stream_wake_all(ngx_http_inference_stream_t *stream)
{
    ngx_queue_t                   *q;
    ngx_http_inference_message_t  *m;

    for (q = ngx_queue_head(&stream->messages);
         q != ngx_queue_sentinel(&stream->messages);
         q = ngx_queue_next(q))
    {
        m = ngx_http_inference_stream_of(q);

        if (!ngx_queue_empty(&m->replies)
            || m->ctx.state == NGX_HTTP_INFERENCE_REJECTING)
        {
            ngx_http_inference_stream_wake(&m->ctx);
        }
    }
}
