/*
 * ngx_http_inference_grpc_stream.c - ModelStreamInfer: requests and responses
 *                                    of many inferences on one call.
 *
 * The call's own context receives: it waits (WAITING) for bytes, for drained
 * sockets and for the end.  Each message gets a context of its own, which the
 * driver runs as it runs a unary call's, from READING on; where it has
 * responses they go to the call's output in turn.
 */

#include "ngx_module/ngx_http_inference_grpc.h"


/* what a client that does not read may hold, beyond one response */
#define NGX_HTTP_INFERENCE_STREAM_HELD  ((uint64_t) 8 * 1024 * 1024)

/* of that, what a response takes beside its bytes: an arena and buffers */
#define NGX_HTTP_INFERENCE_STREAM_COST  ((uint64_t) 5 * 1024)

/* responses of one call that wait for it */
#define NGX_HTTP_INFERENCE_STREAM_QUEUED  65536

/* requests of one call at a time; more of them are not received yet */
#define NGX_HTTP_INFERENCE_STREAM_OPEN  256


typedef struct ngx_http_inference_message_s  ngx_http_inference_message_t;


/* a response of the core that has not been sent */

typedef struct {
    ngx_queue_t                  queue;
    ngx_http_inference_reply_t   reply;
    inf_err_cause_t              cause;
    unsigned                     response:1;    /* not flags alone           */
    unsigned                     queued:1;      /* it was no check before    */
    unsigned                     final:1;
} ngx_http_inference_stream_reply_t;


/* a message on its way to the socket */

typedef struct {
    ngx_queue_t                  queue;
    inf_arena_t                  arena;         /* of all but the tensors    */
    ngx_http_inference_reply_t   reply;         /* held: has the tensors     */
    ngx_buf_t                   *last;          /* sent: so is the message   */
    uint64_t                     size;
} ngx_http_inference_stream_output_t;


struct ngx_http_inference_stream_s {
    ngx_http_inference_ctx_t    *call;
    ngx_queue_t                  messages;      /* in the order of arrival   */
    ngx_uint_t                   open;          /* so many                   */
    ngx_http_inference_message_t  *receiving;   /* not whole, or NULL        */
    ngx_buf_t                   *rest;          /* of the call's bytes, which
                                                   came while it was full    */
    ngx_uint_t                   queued;        /* replies of all messages   */
    off_t                        sent;          /* when the timer of sending
                                                   was started               */

    ngx_queue_t                  outputs;       /* not drained, in order     */
    uint64_t                     held;          /* bytes of them             */
    ngx_chain_t                 *pending;       /* to be given to nginx      */
    ngx_chain_t                **last;
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;

    ngx_queue_t                  spare_messages;
    ngx_queue_t                  spare_replies;
    ngx_queue_t                  spare_outputs;

    unsigned                     ended:1;       /* by the client: no more    */
    unsigned                     broken:1;      /* nothing can be sent       */
};


/* one request on the call, in the end with the last of its responses */

struct ngx_http_inference_message_s {
    ngx_http_inference_ctx_t     ctx;           /* the first member          */
    ngx_http_inference_grpc_t    grpc;
    ngx_http_inference_stream_t *stream;
    ngx_queue_t                  queue;         /* of messages, or spare     */
    ngx_queue_t                  replies;       /* not sent yet              */
    ngx_http_inference_stream_output_t  *output;    /* being prepared        */
    unsigned                     decoupled:1;   /* its model                 */
    unsigned                     skipped:1;     /* failed while received     */
    unsigned                     final:1;       /* output is the last        */
};


static void ngx_http_inference_stream_leave(void *data);
static void ngx_http_inference_stream_cleanup(void *data);
static ngx_int_t ngx_http_inference_stream_start(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_receive(
    ngx_http_inference_stream_t *stream);
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
static void ngx_http_inference_stream_complete(
    ngx_http_inference_message_t *m);
static ngx_int_t ngx_http_inference_stream_go_on(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_flush(
    ngx_http_inference_stream_t *stream);
static void ngx_http_inference_stream_drained(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_head(
    ngx_http_inference_stream_t *stream);
static ngx_int_t ngx_http_inference_stream_broken(
    ngx_http_inference_stream_t *stream, ngx_int_t rc);

static ngx_http_inference_message_t *ngx_http_inference_stream_message(
    ngx_http_inference_stream_t *stream);
static ngx_uint_t ngx_http_inference_stream_may_send(
    ngx_http_inference_message_t *m);
static ngx_int_t ngx_http_inference_stream_open_reply(
    ngx_http_inference_message_t *m, ngx_uint_t queued);
static ngx_int_t ngx_http_inference_stream_notice(
    ngx_http_inference_message_t *m, ngx_str_t *error, ngx_uint_t answered);
static ngx_int_t ngx_http_inference_stream_put_out(
    ngx_http_inference_message_t *m, const inf_slice_t *text);
static ngx_int_t ngx_http_inference_stream_link(
    ngx_http_inference_stream_t *stream, inf_slice_t piece, ngx_buf_t **b);
static ngx_http_inference_stream_output_t *ngx_http_inference_stream_output(
    ngx_http_inference_message_t *m);
static void ngx_http_inference_stream_drop_replies(
    ngx_http_inference_message_t *m);
static void ngx_http_inference_stream_wake(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_stream_wake_all(
    ngx_http_inference_stream_t *stream);
static void ngx_http_inference_stream_release(
    ngx_http_inference_reply_t *reply);


/* bytes that came while the call was full */
#define NGX_HTTP_INFERENCE_STREAM_REST  ((size_t) 64 * 1024)

#define ngx_http_inference_stream_has_rest(stream)                            \
    ((stream)->rest && (stream)->rest->pos != (stream)->rest->last)

#define ngx_http_inference_stream_of(q)                                       \
    (ngx_queue_data(q, ngx_http_inference_message_t, queue))


/* ---- the call ------------------------------------------------------------ */

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
    ngx_queue_init(&stream->spare_replies);
    ngx_queue_init(&stream->spare_outputs);

    cln->handler = ngx_http_inference_stream_cleanup;
    cln->data = stream;

    leave->handler = ngx_http_inference_stream_leave;
    leave->data = stream;

    ctx->stream = stream;
    ctx->body.stage = NGX_HTTP_INFERENCE_BODY_ARRIVING;

    r->request_body_no_buffering = 1;
    r->request_body_in_single_buf = 0;
    r->request_body_in_file_only = 0;

    /* inference_timeout is each message's */

    ctx->deadline_ns = ctx->client_deadline_ns;
    ngx_http_inference_arm_timer(ctx);

    return NGX_OK;
}


/* The call ends: no answer of the core is wanted any more. */

static void
ngx_http_inference_stream_leave(void *data)
{
    ngx_http_inference_stream_t *stream = data;

    ngx_queue_t  *q;

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


/* Nothing reads the arenas for it any more. */

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

        ngx_http_inference_stream_drop_replies(m);

        if (m->output) {
            ngx_queue_insert_tail(&stream->outputs, &m->output->queue);
        }

        ngx_http_inference_free_ctx(&m->ctx);
    }

    ngx_queue_add(&stream->outputs, &stream->spare_outputs);

    while (!ngx_queue_empty(&stream->outputs)) {

        q = ngx_queue_head(&stream->outputs);
        ngx_queue_remove(q);

        out = ngx_queue_data(q, ngx_http_inference_stream_output_t, queue);

        ngx_http_inference_stream_release(&out->reply);
        inf_arena_fini(&out->arena);
    }
}


static void
ngx_http_inference_stream_release(ngx_http_inference_reply_t *reply)
{
    if (reply->held) {
        reply->held = 0;
        ngx_http_inference_release(reply->epoch, reply->offset);
    }

    reply->len = 0;
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
        rc = ngx_http_inference_stream_start(stream);
        break;

    case NGX_HTTP_INFERENCE_BODY_BYTES:
        /* from inside of nginx's reading: what follows is done after it */

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
        /* what was answered before the call failed */
        (void) ngx_http_inference_stream_flush(stream);
    }

    if (stream->broken) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR || ctx->status) {
        return NGX_ERROR;
    }

    return (stream->ended && stream->open == 0
            && !ngx_http_inference_stream_has_rest(stream)) ? NGX_DECLINED
                                                            : NGX_DONE;
}


/* Nothing more can be sent; ctx->rc is why. */

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

    rc = ngx_http_read_client_request_body(r, ctx->handlers->body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return ngx_http_inference_stream_broken(stream, rc);
    }

    if (r->reading_body) {
        r->read_event_handler = ctx->handlers->stream_read;
    }

    r->write_event_handler = ctx->handlers->writable;

    /* the count that reading has taken */
    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_OK;
}


/* As far as there is something to do: receives, sends. */

static ngx_int_t
ngx_http_inference_stream_go_on(ngx_http_inference_stream_t *stream)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = stream->call;

    if (ctx->request->connection->error) {
        return ngx_http_inference_stream_broken(stream,
                                            NGX_HTTP_CLIENT_CLOSED_REQUEST);
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


/*
 * What is not read here is not granted to the client's window: a call that
 * holds much or has many requests is read on when some of it has gone.
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
            return ngx_http_inference_stream_broken(stream,
                              c->error ? NGX_HTTP_CLIENT_CLOSED_REQUEST : rc);
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

    /* a call may be idle for as long as it likes */

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_inference_stream_is_full(ngx_http_inference_stream_t *stream)
{
    return stream->held > NGX_HTTP_INFERENCE_STREAM_HELD
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

    for (cl = ctx->body.arrived; cl && !ctx->status; cl = cl->next) {

        b = cl->buf;
        p = b->pos;

        ctx->body.received += b->last - p;

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


/* For later: the call has as much as it may. */

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


/* Goes on with what was kept. */

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


/* NGX_AGAIN: the call has as much as it may. */

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

            /* it has failed before it counted them */
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
 * Broken frames end the call, for nobody knows where the next message begins,
 * and so do bytes that are no protobuf: their sender is broken.  A message
 * that there is no room for fails alone, when all of it has come.
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


/* All of the message is here. */

static void
ngx_http_inference_stream_complete(ngx_http_inference_message_t *m)
{
    ngx_http_inference_ctx_t  *ctx, *call;

    ctx = &m->ctx;
    call = m->stream->call;

    m->stream->receiving = NULL;

    ctx->body.stage = NGX_HTTP_INFERENCE_BODY_COMPLETE;
    ctx->turn_ns = call->turn_ns;

    ngx_http_inference_start_timer(ctx);
    ngx_http_inference_move(ctx, ctx->status ? NGX_ERROR : NGX_OK);
    ngx_http_inference_stream_wake(ctx);
}


/* The time has come to judge how fast it comes; where it is too slow, the call
   fails. */

ngx_int_t
ngx_http_inference_stream_check_rate(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_ctx_t     *call;
    ngx_http_inference_stream_t  *stream;

    stream = ctx->message->stream;
    call = stream->call;

    if (ngx_http_inference_stream_is_full(stream)) {
        /* it is the worker that does not read */
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
        /* a client that only sends doesn't put it off */
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


/* What the socket has taken is given back. */

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

        ngx_http_inference_stream_release(&out->reply);
        inf_arena_reset(&out->arena);
    }

    if (held > NGX_HTTP_INFERENCE_STREAM_HELD
        && stream->held <= NGX_HTTP_INFERENCE_STREAM_HELD)
    {
        ngx_http_inference_stream_wake_all(stream);
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


/* ---- messages ------------------------------------------------------------ */

/* A new one, at the end of the line. */

static ngx_http_inference_message_t *
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
    ctx->model = call->model;
    ctx->version = call->version;
    ctx->received_ns = call->turn_ns;
    ctx->turn_ns = call->turn_ns;
    ctx->client_deadline_ns = call->client_deadline_ns;
    ctx->timer.handler = call->timer.handler;
    ctx->turn.handler = call->turn.handler;
    ctx->submission.ready = call->submission.ready;
    ctx->submission.answer = call->submission.answer;

    /* a message comes at inference_min_body_rate, a call may be idle */
    ngx_http_inference_start_rate(ctx);

    ngx_queue_insert_tail(&stream->messages, &m->queue);
    stream->open++;
    stream->receiving = m;

    return m;
}


/* A completion of the core for it, or NULL: the core has ended. */

void
ngx_http_inference_stream_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    ngx_queue_t                        *q;
    ngx_http_inference_message_t       *m;
    ngx_http_inference_stream_t        *stream;
    ngx_http_inference_stream_reply_t  *item;

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

    if (stream->queued >= NGX_HTTP_INFERENCE_STREAM_QUEUED) {

        ngx_http_inference_drop_response(&ctx->submission, c);

        ctx->cause = INF_CAUSE_FULL;
        (void) ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "the client does not take its "
                                       "responses: %ui of them wait",
                                       stream->queued);
        ngx_http_inference_stream_wake(ctx);
        return;
    }

    if (ngx_queue_empty(&stream->spare_replies)) {

        item = ngx_palloc(stream->call->request->pool,
                          sizeof(ngx_http_inference_stream_reply_t));
        if (item == NULL) {
            ngx_http_inference_drop_response(&ctx->submission, c);
            (void) ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
            ngx_http_inference_stream_wake(ctx);
            return;
        }

    } else {
        q = ngx_queue_head(&stream->spare_replies);
        ngx_queue_remove(q);
        item = ngx_queue_data(q, ngx_http_inference_stream_reply_t, queue);
    }

    item->response = (c->flags & INF_COMPLETE_RESPONSE) != 0;
    item->final = (c->flags & INF_COMPLETE_FINAL) != 0;
    item->cause = c->cause;
    item->queued = (c->batch_size != 0 || c->cause == INF_CAUSE_TIMED_OUT);

    item->reply.epoch = ctx->submission.epoch;
    item->reply.offset = c->offset;
    item->reply.len = item->response ? c->length : 0;
    item->reply.status = c->status;
    item->reply.held = (item->reply.len != 0);

    ctx->queue_ns = c->queue_ns;
    ctx->compute_ns = c->compute_ns;
    ctx->batch_size = c->batch_size;

    ngx_queue_insert_tail(&m->replies, &item->queue);
    stream->queued++;
    ngx_http_inference_stream_wake(ctx);
}


/*
 * The next response: NGX_OK: it is to be prepared; NGX_DECLINED: there is none
 * any more; NGX_DONE: it is not its turn, or there is none yet.
 */

ngx_int_t
ngx_http_inference_stream_next(ngx_http_inference_ctx_t *ctx)
{
    ngx_queue_t                        *q;
    ngx_str_t                           none;
    ngx_http_inference_message_t       *m;
    ngx_http_inference_stream_reply_t  *item;

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

        q = ngx_queue_head(&m->replies);
        ngx_queue_remove(q);
        ngx_queue_insert_head(&m->stream->spare_replies, q);
        m->stream->queued--;

        item = ngx_queue_data(q, ngx_http_inference_stream_reply_t, queue);

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


/* Responses of models that are not decoupled leave in the order in which the
   requests came; those of the others as they come. */

static ngx_uint_t
ngx_http_inference_stream_may_send(ngx_http_inference_message_t *m)
{
    ngx_queue_t                   *q;
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *other;

    stream = m->stream;

    if (stream->held > NGX_HTTP_INFERENCE_STREAM_HELD) {
        return 0;
    }

    if (m->decoupled) {
        return 1;
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


/* An error of the model is a response, and others may follow it; where a check
   has failed before the request was queued, its client learns the id alone. */

static ngx_int_t
ngx_http_inference_stream_open_reply(ngx_http_inference_message_t *m,
    ngx_uint_t queued)
{
    ngx_int_t                            rc;
    ngx_str_t                            error;
    inf_err_t                           *err;
    inf_slice_t                          text;
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

    text = inf_response_text(record, record->error);

    if (call->grpc->stream_errors && queued) {
        (void) ngx_http_inference_fail_text(call,
                                            INF_STATUS_CODE(record->status),
                                            text.data, text.len);
        ngx_http_inference_stream_wake(call);
        return NGX_DONE;
    }

    error.data = (u_char *) text.data;
    error.len = text.len;

    m->grpc.reply = NULL;

    return ngx_http_inference_stream_notice(m, &error, queued);
}


/* NGX_OK: that was the last one; NGX_DECLINED: others may follow. */

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


/* It has failed, and its client is told in turn. */

ngx_int_t
ngx_http_inference_stream_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_message_t  *m;

    m = ctx->message;

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    ngx_http_inference_stream_drop_replies(m);

    if (!ngx_http_inference_stream_may_send(m)) {
        return NGX_DONE;
    }

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

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


/* Nobody is going to send them. */

static void
ngx_http_inference_stream_drop_replies(ngx_http_inference_message_t *m)
{
    ngx_queue_t                        *q;
    ngx_http_inference_stream_reply_t  *item;

    while (!ngx_queue_empty(&m->replies)) {

        q = ngx_queue_head(&m->replies);
        ngx_queue_remove(q);
        ngx_queue_insert_head(&m->stream->spare_replies, q);
        m->stream->queued--;

        item = ngx_queue_data(q, ngx_http_inference_stream_reply_t, queue);
        ngx_http_inference_stream_release(&item->reply);
    }
}


/* The driver is done with it. */

void
ngx_http_inference_stream_over(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_stream_t   *stream;
    ngx_http_inference_message_t  *m;

    m = ctx->message;
    stream = m->stream;

    ngx_http_inference_stream_drop_replies(m);

    if (m->output) {
        ngx_http_inference_grpc_free(&m->grpc);
        ngx_http_inference_stream_release(&m->output->reply);
        inf_arena_reset(&m->output->arena);
        ngx_queue_insert_head(&stream->spare_outputs, &m->output->queue);
        m->output = NULL;
    }

    ngx_http_inference_free_ctx(ctx);

    ngx_queue_remove(&m->queue);
    ngx_queue_insert_head(&stream->spare_messages, &m->queue);
    stream->open--;

    ngx_http_inference_stream_wake_all(stream);
    ngx_http_inference_stream_wake(stream->call);
}


/* ---- responses ----------------------------------------------------------- */

/* The one that is prepared; NULL: out of memory. */

static ngx_http_inference_stream_output_t *
ngx_http_inference_stream_output(ngx_http_inference_message_t *m)
{
    ngx_queue_t                         *q;
    ngx_http_inference_stream_t         *stream;
    ngx_http_inference_stream_output_t  *out;

    stream = m->stream;

    if (m->output) {
        ngx_http_inference_grpc_free(&m->grpc);
        ngx_http_inference_stream_release(&m->output->reply);
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


/* A reply without tensors: an error, or that no more will come. */

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

    notice.error = inf_slice((char *) error->data, error->len);
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


/* The message's output goes to the call's; text NULL: the prepared one. */

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
            /* half a message is as bad as none */
            stream->broken = 1;
            stream->call->rc = NGX_ERROR;
            ngx_http_inference_stream_wake(stream->call);
            return ngx_http_inference_fail(&m->ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        out->size += piece.len;
    }

    b->flush = 1;

    out->last = b;
    stream->held += out->size;

    m->output = NULL;
    m->grpc.reply = NULL;
    ngx_http_inference_grpc_free(&m->grpc);

    ngx_queue_insert_tail(&stream->outputs, &out->queue);
    ngx_http_inference_stream_wake(stream->call);

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


/* It goes on in a turn of its own, soon. */

static void
ngx_http_inference_stream_wake(ngx_http_inference_ctx_t *ctx)
{
    if (!ctx->turn.posted) {
        ngx_post_event(&ctx->turn, &ngx_posted_events);
    }
}


/* Those with something to send. */

static void
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
