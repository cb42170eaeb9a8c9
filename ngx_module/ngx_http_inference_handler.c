/*
 * ngx_http_inference_handler.c - the content handler and all other event
 *                                handlers of a request: each sets ctx->event
 *                                and calls the driver.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"
#include "ngx_module/ngx_http_inference_retry.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/clock.h"


static void ngx_http_inference_happened(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_event_e event);
static void ngx_http_inference_ready(
    ngx_http_inference_submission_t *submission, ngx_int_t rc);
static ngx_int_t ngx_http_inference_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_inference_body_taken(ngx_chain_t *cl);
static ngx_int_t ngx_http_inference_body_of_others(ngx_http_request_t *r);
static void ngx_http_inference_body_ready(ngx_http_request_t *r);
static void ngx_http_inference_main_read(ngx_http_request_t *r);
static void ngx_http_inference_main_ready(ngx_http_request_t *mr);
static void ngx_http_inference_completed(
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);
static void ngx_http_inference_turn(ngx_event_t *ev);
static void ngx_http_inference_timer(ngx_event_t *ev);
static void ngx_http_inference_writable(ngx_http_request_t *r);
static void ngx_http_inference_stream_read(ngx_http_request_t *r);


#define ngx_http_inference_event_ctx(ev, field)                               \
    (ngx_http_inference_ctx_t *)                                              \
        ((u_char *) (ev) - offsetof(ngx_http_inference_ctx_t, field))


static ngx_http_request_body_filter_pt  ngx_http_inference_next_body_filter;

static const ngx_http_inference_handlers_t  ngx_http_inference_handlers = {
    ngx_http_inference_body_ready,
    ngx_http_inference_main_read,
    ngx_http_inference_main_ready,
    ngx_http_inference_writable,
    ngx_http_inference_stream_read
};


void
ngx_http_inference_install_filters(void)
{
    ngx_http_inference_next_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_inference_body_filter;

    ngx_http_inference_output_install_filter();
    ngx_http_inference_grpc_install_filter();
}


/* Starts a request.  Only the driver finalizes it, even at once, and it holds
   the reference. */

ngx_int_t
ngx_http_inference_handler(ngx_http_request_t *r)
{
    uint64_t                   began_ns;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_create_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    began_ns = ngx_http_inference_turn_begin();

    ctx->received_ns = began_ns ? began_ns : inf_clock_ns();
    ctx->turn_ns = ctx->received_ns;

    ctx->timer.handler = ngx_http_inference_timer;
    ctx->turn.handler = ngx_http_inference_turn;
    ctx->submission.ready = ngx_http_inference_ready;
    ctx->submission.answer = ngx_http_inference_completed;
    ctx->handlers = &ngx_http_inference_handlers;

    r->main->count++;

    ngx_http_inference_leaving_request(r);
    ngx_http_inference_run(ctx);

    ngx_http_inference_turn_end(began_ns);

    return NGX_DONE;
}


static void
ngx_http_inference_happened(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_event_e event)
{
    uint64_t  began_ns;

    began_ns = ngx_http_inference_turn_begin();

    if (began_ns) {
        ctx->turn_ns = began_ns;
        ctx->steps = 0;
    }

    ctx->event = event;

    ngx_http_set_log_request(ctx->request->connection->log, ctx->request);

    ngx_http_inference_run(ctx);

    ngx_http_inference_turn_end(began_ns);
}


static void
ngx_http_inference_ready(ngx_http_inference_submission_t *submission,
    ngx_int_t rc)
{
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    ctx = submission->data;
    c = ctx->request->connection;

    if ((ctx->state != NGX_HTTP_INFERENCE_CONNECTING
         && ctx->state != NGX_HTTP_INFERENCE_RETRYING)
        || ngx_http_inference_disowned(ctx))
    {
        return;
    }

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_CHANNEL);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_inference_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_uint_t                 held;
    ngx_chain_t               *cl, last;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx == NULL && ngx_http_inference_body_of_others(r) != NGX_OK) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    if (ctx == NULL
        || ctx->body.origin != NGX_HTTP_INFERENCE_BODY_OWN
        || (ctx->state != NGX_HTTP_INFERENCE_RECEIVING
            && ctx->state != NGX_HTTP_INFERENCE_SWALLOWING
            && !ngx_http_inference_is_streaming(ctx)))
    {
        return ngx_http_inference_next_body_filter(r, in);
    }

    last.buf = NULL;
    last.next = NULL;

    ctx->body.arrived = in;

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_BODY_BYTES);

    for (cl = in; cl; cl = cl->next) {
        if (cl->buf->last_buf) {
            last.buf = cl->buf;
        }
    }

    held = ctx->stream && ngx_http_inference_stream_holds_window(ctx);

    if (last.buf || !held) {
        ngx_http_inference_body_taken(r->request_body->busy);
        ngx_http_inference_body_taken(in);
    }

    return ngx_http_inference_next_body_filter(r, last.buf ? &last : NULL);
}


static void
ngx_http_inference_body_taken(ngx_chain_t *cl)
{
    for ( /* void */ ; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
    }
}


/*
 * Rejects a body that another module reads before the location's handler
 * (mirror, auth_request) if it is too long: nginx's own limit is disabled
 * there.
 */

static ngx_int_t
ngx_http_inference_body_of_others(ngx_http_request_t *r)
{
    off_t                      size;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->handler != ngx_http_inference_handler) {
        return NGX_OK;
    }

    /* length announced, or received so far */

    size = ngx_max(r->headers_in.content_length_n, r->request_body->received);

    if (size <= ngx_http_inference_location_max_body(r)) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "client intended to send a body larger than "
                  "inference_max_body: %O bytes", size);

    /* no handler gets an incomplete body */

    r->error_page = 1;
    r->lingering_close = 1;

    return NGX_DECLINED;
}


static void
ngx_http_inference_body_ready(ngx_http_request_t *r)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx && ngx_http_inference_is_streaming(ctx)) {

        if (!r->reading_body) {
            ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_BODY_END);
        }

        return;
    }

    if (ctx == NULL
        || (ctx->state != NGX_HTTP_INFERENCE_RECEIVING
            && ctx->state != NGX_HTTP_INFERENCE_SWALLOWING))
    {
        /* answered or redirected earlier; this is the last frame of HTTP/2 */
        return;
    }

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_BODY_END);
}


static void
ngx_http_inference_main_read(ngx_http_request_t *r)
{
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    ctx->main_read_handler(r->main);

    if (!c->destroyed && ctx->state == NGX_HTTP_INFERENCE_BORROWING) {
        ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_READ);
    }
}


static void
ngx_http_inference_main_ready(ngx_http_request_t *mr)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_borrower(mr);

    if (ctx) {
        ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_BODY_END);
    }
}


static void
ngx_http_inference_completed(ngx_http_inference_submission_t *submission,
    const inf_completion_t *c)
{
    ngx_connection_t          *conn;
    ngx_http_inference_ctx_t  *ctx;

    ctx = submission->data;
    conn = ctx->request->connection;

    if (ngx_http_inference_is_over(ctx) || ngx_http_inference_disowned(ctx)
        || (ctx->state != NGX_HTTP_INFERENCE_WAITING && ctx->message == NULL
            && ctx->events == NULL))
    {
        /* answered already, the completion is late */
        ngx_http_inference_drop_response(submission, c);

        if (ctx->handed_on) {
            ngx_http_inference_record_free(ctx);
        }

        return;
    }

    if (!ngx_http_inference_stream_begun(ctx)
        && ngx_http_inference_retry_wanted(ctx, c))
    {
        ngx_http_inference_drop_response(submission, c);

        (void) ngx_http_inference_retry_begin(ctx, c);

        if (c) {
            ngx_http_inference_await_model(ctx);

        } else {
            ngx_http_inference_lose_core(ctx);
        }

        ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_NO_EVENT);
        ngx_http_run_posted_requests(conn);
        return;
    }

    if (ctx->message) {
        ngx_http_inference_stream_completed(ctx, c);
        return;
    }

    if (ctx->events) {
        ngx_http_inference_events_completed(ctx, c);
        return;
    }

    if (ngx_http_inference_take_reply(ctx, submission, c) == NGX_AGAIN) {
        return;
    }

    if (!ngx_http_inference_hand_on_wanted(ctx)) {
        ngx_http_inference_forget(submission);
    }

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_REPLY);
    ngx_http_run_posted_requests(conn);
}


static void
ngx_http_inference_turn(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_event_ctx(ev, turn);
    c = ctx->request->connection;

    if (ngx_http_inference_disowned(ctx)) {
        return;
    }

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_TURN);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_inference_timer(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_event_ctx(ev, timer);
    c = ctx->request->connection;

    if (ngx_http_inference_disowned(ctx)) {
        return;
    }

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_TIMER);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_inference_writable(ngx_http_request_t *r)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_WRITABLE);
}


/* Called when bytes of a stream have come, or its client has disconnected. */

static void
ngx_http_inference_stream_read(ngx_http_request_t *r)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx && ngx_http_inference_is_streaming(ctx)) {
        ngx_http_inference_happened(ctx, NGX_HTTP_INFERENCE_READ);
    }
}
