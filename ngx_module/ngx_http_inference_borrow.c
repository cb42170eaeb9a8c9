/*
 * ngx_http_inference_borrow.c - a subrequest that needs the body before its
 *                               main request has read it (auth_request).  It
 *                               is read for main as nginx does it, and main
 *                               finds it in memory or in its file later.
 *
 * Main goes on with a whole body or not at all: where reading ends early, for
 * whatever reason, main is answered with that reason's status and only then
 * does the subrequest end.
 */

#include "ngx_module/ngx_http_inference_request.h"


/* interval of the check whether main was finalized: HTTP/2 sends no event */
#define NGX_HTTP_INFERENCE_BORROW_POLL  1000


static void ngx_http_inference_borrow_event(ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_borrow_failed(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_borrow_wait(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_borrow_timed_out(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_borrow_ready(ngx_http_request_t *mr);


ngx_uint_t
ngx_http_inference_borrow_wanted(ngx_http_request_t *r)
{
    ngx_http_request_t  *mr;

    mr = r->main;

    return r != mr && mr->request_body == NULL && !mr->discard_body
           && (mr->headers_in.content_length_n > 0 || mr->headers_in.chunked);
}


ngx_int_t
ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r, *mr;

    r = ctx->request;
    mr = r->main;

    ctx->state = NGX_HTTP_INFERENCE_BORROWING;
    ctx->main_write_handler = mr->write_event_handler;

    mr->request_body_no_buffering = 0;

    rc = ngx_http_read_client_request_body(mr,
                                           ngx_http_inference_borrow_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        ctx->state = NGX_HTTP_INFERENCE_DONE;
        ngx_http_finalize_request(mr, rc);
        return NGX_OK;
    }

    if (ctx->body.borrow) {
        /* the connection's events come to the active request */
        r->read_event_handler = ngx_http_inference_borrow_event;

        ctx->main_read_handler = mr->read_event_handler;

        ngx_http_inference_set_deadline(ctx);
        ngx_http_inference_borrow_wait(ctx);
    }

    return NGX_DONE;
}


static void
ngx_http_inference_borrow_event(ngx_http_request_t *r)
{
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    ctx->main_read_handler(r->main);

    if (!c->destroyed && ngx_http_inference_borrow_failed(ctx)) {
        ngx_http_inference_finalize(ctx, NGX_OK);
    }
}


/* Whether reading has ended with an error, by which main was finalized. */

static ngx_uint_t
ngx_http_inference_borrow_failed(ngx_http_inference_ctx_t *ctx)
{
    return ctx->state == NGX_HTTP_INFERENCE_BORROWING
           && ctx->body.borrow
           && ctx->request->main->read_event_handler
              != ctx->main_read_handler;
}


static void
ngx_http_inference_borrow_wait(ngx_http_inference_ctx_t *ctx)
{
    uint64_t    now;
    ngx_msec_t  delay;

    delay = NGX_HTTP_INFERENCE_BORROW_POLL;

    if (ctx->deadline_ns) {
        now = inf_clock_ns();
        delay = (now < ctx->deadline_ns)
                ? ngx_min(delay, (ctx->deadline_ns - now) / 1000000 + 1) : 0;
    }

    ngx_add_timer(&ctx->timer, delay);
}


void
ngx_http_inference_borrow_poll(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_inference_borrow_failed(ctx)) {
        ngx_http_inference_finalize(ctx, NGX_OK);

    } else if (ctx->deadline_ns && inf_clock_ns() >= ctx->deadline_ns) {
        ngx_http_inference_borrow_timed_out(ctx);

    } else {
        ngx_http_inference_borrow_wait(ctx);
    }
}


static void
ngx_http_inference_borrow_timed_out(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *mr;

    mr = ctx->request->main;

    (void) ngx_http_inference_fail_timeout(ctx);
    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    ngx_log_error(NGX_LOG_ERR, mr->connection->log, 0,
                  "inference subrequest ended before the body had come: %V",
                  &ctx->error);

    /*
     * The rest of the body is no request, and half a body is passed to no
     * handler.
     */

    mr->reading_body = 1;
    mr->keepalive = 0;
    mr->error_page = 1;

#if (NGX_HTTP_V2)
    if (mr->stream) {
        mr->stream->skip_data = 1;
    }
#endif

    ngx_http_finalize_request(mr, ctx->status);
    ngx_http_inference_finalize(ctx, NGX_OK);
}


static void
ngx_http_inference_borrow_ready(ngx_http_request_t *mr)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_borrower(mr);

    if (ctx == NULL) {
        return;
    }

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    mr->write_event_handler = ctx->main_write_handler;
    ctx->request->read_event_handler = ngx_http_block_reading;

    ctx->body.borrow = 0;

    ngx_http_inference_yield(ctx);
}


void
ngx_http_inference_borrowed(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = (ngx_http_inference_body_check(ctx) == NGX_OK)
         ? ngx_http_inference_body_read(ctx)
         : ngx_http_inference_reject_early(ctx);

    /* the count taken by body_read goes with this */
    ngx_http_finalize_request(ctx->request, rc);
}
