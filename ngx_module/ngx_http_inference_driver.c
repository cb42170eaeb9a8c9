/*
 * ngx_http_inference_driver.c - runs a request: calls the phase of its state
 *                               until a phase waits or the request ends.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_control.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"
#include "ngx_module/ngx_http_inference_retry.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/error.h"


static ngx_int_t ngx_http_inference_phase(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_check_time(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_checking(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_connecting(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_wait_channel(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_borrowing(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_receiving(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_submitting(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_waiting(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_responding(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_sending(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_finalize(ngx_http_inference_ctx_t *ctx,
    ngx_int_t rc);


void
ngx_http_inference_run(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    for ( ;; ) {

        rc = ngx_http_inference_phase(ctx);

        if (rc == NGX_DONE) {
            /* the context may be freed */
            return;
        }

        if (rc == NGX_AGAIN) {
            (void) ngx_atomic_fetch_add(
                                  &ngx_http_inference_counters()->slices, 1);
            ngx_http_inference_next_turn(&ctx->turn);
            return;
        }

        ngx_http_inference_move(ctx, rc);

        ctx->event = NGX_HTTP_INFERENCE_NO_EVENT;

        if (ctx->state == NGX_HTTP_INFERENCE_DONE) {
            ngx_http_inference_finalize(ctx, ctx->rc);
            return;
        }
    }
}


static ngx_int_t
ngx_http_inference_phase(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->event == NGX_HTTP_INFERENCE_TIMER
        && ngx_http_inference_check_time(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (ctx->state) {

    case NGX_HTTP_INFERENCE_CHECKING:
        return ngx_http_inference_run_checking(ctx);

    case NGX_HTTP_INFERENCE_CONNECTING:
        return ngx_http_inference_run_connecting(ctx);

    case NGX_HTTP_INFERENCE_OPENING:
        return ngx_http_inference_body_open(ctx);

    case NGX_HTTP_INFERENCE_BORROWING:
        return ngx_http_inference_run_borrowing(ctx);

    case NGX_HTTP_INFERENCE_RECEIVING:
        return ngx_http_inference_run_receiving(ctx);

    case NGX_HTTP_INFERENCE_SWALLOWING:
        return ngx_http_inference_body_swallow(ctx);

    case NGX_HTTP_INFERENCE_READING:
        return ngx_http_inference_body_read(ctx);

    case NGX_HTTP_INFERENCE_DECODING:
        return ngx_http_inference_infer_decode(ctx);

    case NGX_HTTP_INFERENCE_SUBMITTING:
        return ngx_http_inference_run_submitting(ctx);

    case NGX_HTTP_INFERENCE_WAITING:
        return ngx_http_inference_run_waiting(ctx);

    case NGX_HTTP_INFERENCE_PAUSING:
        return ngx_http_inference_retry_pause(ctx);

    case NGX_HTTP_INFERENCE_RETRYING:
        return ngx_http_inference_retry(ctx);

    case NGX_HTTP_INFERENCE_PREPARING:
        return ctx->grpc ? ngx_http_inference_grpc_prepare(ctx)
                         : ngx_http_inference_prepare(ctx);

    case NGX_HTTP_INFERENCE_RESPONDING:
        return ngx_http_inference_run_responding(ctx);

    case NGX_HTTP_INFERENCE_SENDING:
        return ngx_http_inference_run_sending(ctx);

    case NGX_HTTP_INFERENCE_REJECTING:
        return ngx_http_inference_reject(ctx);

    case NGX_HTTP_INFERENCE_DONE:
    case NGX_HTTP_INFERENCE_LEFT:
        break;
    }

    return NGX_DONE;
}


/* Handles the timer, which is that of inference_timeout unless a state has its
   own. */

static ngx_int_t
ngx_http_inference_check_time(ngx_http_inference_ctx_t *ctx)
{
    switch (ctx->state) {

    case NGX_HTTP_INFERENCE_BORROWING:
        return NGX_OK;

    case NGX_HTTP_INFERENCE_RECEIVING:
    case NGX_HTTP_INFERENCE_SWALLOWING:
        return ctx->message ? ngx_http_inference_stream_check_rate(ctx)
                            : ngx_http_inference_stores_check_rate(ctx);

    case NGX_HTTP_INFERENCE_CONNECTING:

        if (ngx_http_inference_control_asks_now(ctx)) {
            return ngx_http_inference_fail_no_core(ctx);
        }

        break;

    case NGX_HTTP_INFERENCE_WAITING:

        if (ctx->stream) {
            return ngx_http_inference_stream_check_time(ctx);
        }

        break;

    default:
        break;
    }

    return ngx_http_inference_check_timer(ctx);
}


/*
 * Checks the request, and answers LIVE.  A worker that answers is live, with or
 * without a core, because a restart would not help.  A gRPC call is answered
 * after its message: clients take an earlier answer for a reset.  NGX_DECLINED:
 * answered.
 */

static ngx_int_t
ngx_http_inference_run_checking(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    static ngx_str_t  plain = ngx_string("text/plain");

    rc = ngx_http_inference_is_grpc(ctx->request)
         ? ngx_http_inference_grpc_find_method(ctx)
         : ngx_http_inference_find_endpoint(ctx);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->endpoint->part == NGX_HTTP_INFERENCE_SHARED_MEMORY
        && ngx_http_inference_regions_allowed(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (ctx->endpoint->verb) {

    case NGX_HTTP_INFERENCE_LIVE:

        if (ctx->grpc) {
            return ngx_http_inference_headers_check(ctx);
        }

        ngx_http_inference_body_stop(ctx);

        ctx->rc = ngx_http_inference_send_chain(ctx->request, NGX_HTTP_OK,
                                                &plain, NULL);
        return NGX_DECLINED;

    case NGX_HTTP_INFERENCE_MODEL_INFER:
    case NGX_HTTP_INFERENCE_GENERATE_ONE:
    case NGX_HTTP_INFERENCE_GENERATE_ALL:
    case NGX_HTTP_INFERENCE_STREAM_INFER:
    case NGX_HTTP_INFERENCE_CALL_BODY:
    case NGX_HTTP_INFERENCE_HEALTH_CHECK:
    case NGX_HTTP_INFERENCE_HEALTH_WATCH:
        return ngx_http_inference_headers_check(ctx);

    case NGX_HTTP_INFERENCE_CALL:

        if (!ngx_http_inference_status_wants_page(ctx)) {
            return NGX_OK;
        }

        ngx_http_inference_body_stop(ctx);

        ctx->rc = ngx_http_inference_status_page(ctx->request);
        return NGX_DECLINED;

    case NGX_HTTP_INFERENCE_NAMED:
        break;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                   "'repository_name' specification is not "
                                   "supported");
}


/* Waits for the channel.  NGX_DECLINED: a call without a body, or a stream. */

static ngx_int_t
ngx_http_inference_run_connecting(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE) {
        return NGX_OK;
    }

    ctx->client = ngx_http_inference_channel(&ctx->epoch);

    if (ctx->client == NULL) {

        if (ctx->event == NGX_HTTP_INFERENCE_CHANNEL) {
            return ngx_http_inference_fail_no_core(ctx);
        }

        return ngx_http_inference_wait_channel(ctx);
    }

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_CALL) {
        ngx_http_inference_start_timer(ctx);
        return NGX_DECLINED;
    }

    if (ngx_http_inference_is_stream(ctx)) {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_wait_channel(ngx_http_inference_ctx_t *ctx)
{
    ngx_msec_t  grace;

    if (ngx_http_inference_control_asks_now(ctx)) {
        /* a question about the server: a new worker waits a little for its
           channel before the answer is "not ready" */

        grace = ngx_http_inference_grace();

        if (grace == 0) {
            return ngx_http_inference_fail_no_core(ctx);
        }

        ngx_add_timer(&ctx->timer, grace);

    } else {
        ngx_http_inference_start_timer(ctx);
    }

    if (ngx_http_inference_wait_ready(&ctx->submission) != NGX_AGAIN) {
        return ngx_http_inference_fail_no_core(ctx);
    }

    ngx_http_inference_test_reading(ctx);

    return NGX_DONE;
}


/*
 * Reads the body.  nginx calls the filter and the body's handler from its first
 * read, for bytes it already has, and both run the driver: the request may have
 * ended afterwards.
 */

static ngx_int_t
ngx_http_inference_run_receiving(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    if (ctx->event != NGX_HTTP_INFERENCE_NO_EVENT) {
        return ngx_http_inference_body_receive(ctx);
    }

    r = ctx->request;

    rc = ngx_http_read_client_request_body(r, ctx->handlers->body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_http_inference_finalize(ctx, rc);
        return NGX_DONE;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_RECEIVING
        || ctx->state == NGX_HTTP_INFERENCE_SWALLOWING)
    {
        ngx_http_inference_start_rate(ctx);
    }

    /* drops the reference taken by reading */
    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


/* Reads main's body likewise. */

static ngx_int_t
ngx_http_inference_run_borrowing(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r, *mr;

    if (ctx->event != NGX_HTTP_INFERENCE_NO_EVENT) {
        return ngx_http_inference_borrow(ctx);
    }

    r = ctx->request;
    mr = r->main;

    ngx_http_inference_borrow_begin(ctx);

    rc = ngx_http_read_client_request_body(mr, ctx->handlers->main_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        ngx_http_finalize_request(mr, rc);
        ngx_http_inference_finalize(ctx, NGX_OK);
        return NGX_DONE;
    }

    if (!ctx->turn.posted) {
        /* nginx passes the connection's events to the active request */
        r->read_event_handler = ctx->handlers->main_read;

        ngx_http_inference_borrow_begun(ctx);
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


/* Submits the request.  NGX_DECLINED: the core has exited. */

static ngx_int_t
ngx_http_inference_run_submitting(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE) {
        return NGX_OK;
    }

    if (ngx_http_inference_is_stream(ctx)) {
        return ngx_http_inference_stream_open(ctx);
    }

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_WATCH) {
        ngx_http_inference_test_reading(ctx);
        return ngx_http_inference_watcher_open(ctx);
    }

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ALL
        && ctx->events == NULL
        && ngx_http_inference_events_open(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->message && ngx_http_inference_stream_admit(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_is_infer(ctx)
         ? ngx_http_inference_infer_submit(ctx)
         : ngx_http_inference_control_submit(ctx);

    if (rc == NGX_DECLINED
        && ngx_http_inference_retry_begin(ctx, NULL) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ctx->body.stage == NGX_HTTP_INFERENCE_BODY_UNREAD) {
        ngx_http_inference_body_stop(ctx);
    }

    if (!ctx->request->discard_body && ctx->message == NULL) {
        ngx_http_inference_test_reading(ctx);
    }

    return NGX_OK;
}


/* Takes the answer.  NGX_DECLINED: a call's answer, or no more responses. */

static ngx_int_t
ngx_http_inference_run_waiting(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE) {
        return NGX_DECLINED;
    }

    if (ctx->stream) {
        return ngx_http_inference_stream(ctx);
    }

    if (ctx->watch) {
        return ngx_http_inference_watcher(ctx);
    }

    if (ctx->message) {
        return ngx_http_inference_stream_next(ctx);
    }

    if (ctx->events) {
        return ngx_http_inference_events_next(ctx);
    }

    if (ctx->event != NGX_HTTP_INFERENCE_REPLY) {
        return NGX_DONE;
    }

    if (ctx->status) {
        return NGX_ERROR;
    }

    return ngx_http_inference_is_infer(ctx)
           ? ngx_http_inference_open_reply(ctx) : NGX_DECLINED;
}


/* Sends the head.  NGX_DECLINED: the rest follows as the socket drains. */

static ngx_int_t
ngx_http_inference_run_responding(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    static ngx_str_t  live = ngx_string("\x08\x01");   /* live: true         */

    if (ctx->events) {
        /* inference_timeout stays in force */

        rc = ngx_http_inference_events_respond(ctx);

        if (rc == NGX_DECLINED) {
            ctx->request->write_event_handler = ctx->handlers->writable;
        }

        return rc;
    }

    if (ctx->timer.timer_set && ctx->message == NULL) {
        /* a message may have more responses */
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->stream) {
        return ngx_http_inference_stream_close(ctx);
    }

    if (ctx->watch) {
        /* sending failed */
        return NGX_OK;
    }

    if (ctx->message) {
        return ngx_http_inference_stream_respond(ctx);
    }

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE) {
        ctx->rc = ngx_http_inference_grpc_answer(ctx, &live);
        return NGX_OK;
    }

    if (!ngx_http_inference_is_infer(ctx)) {
        return ngx_http_inference_control_respond(ctx);
    }

    if (ctx->grpc) {
        return ngx_http_inference_grpc_respond(ctx);
    }

    rc = ngx_http_inference_respond(ctx);

    if (rc == NGX_DECLINED) {
        ctx->request->write_event_handler = ctx->handlers->writable;
    }

    return rc;
}


/* Sends the rest.  NGX_DECLINED: prepare the next response, of a stream or
   generate_stream. */

static ngx_int_t
ngx_http_inference_run_sending(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->events) {
        return ngx_http_inference_events_send(ctx);
    }

    if (ctx->message == NULL) {
        return ngx_http_inference_respond_more(ctx);
    }

    rc = ngx_http_inference_stream_next(ctx);

    switch (rc) {

    case NGX_OK:
        return NGX_DECLINED;

    case NGX_DECLINED:
        return NGX_OK;

    default:
        return rc;
    }
}


static void
ngx_http_inference_finalize(ngx_http_inference_ctx_t *ctx, ngx_int_t rc)
{
    ngx_http_inference_over(ctx);

    if (ctx->message) {
        ngx_http_inference_stream_over(ctx);
        return;
    }

    ngx_http_finalize_request(ctx->request, rc);
}
