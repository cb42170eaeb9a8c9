/*
 * ngx_http_inference_borrow.c - reads main's body for a subrequest that needs
 *                               it first (auth_request).  Main then finds it in
 *                               memory or in its file, as if nginx had read it.
 *
 * Main continues with a whole body or not at all: when reading ends early, main
 * is finalized with that status before the subrequest ends.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"


/* interval of the check whether main was finalized, which HTTP/2 does not
   report */
#define NGX_HTTP_INFERENCE_BORROW_POLL  1000    /* ms */


static ngx_uint_t ngx_http_inference_borrow_failed(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_borrow_late(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_borrow_wait(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_borrow_timed_out(ngx_http_inference_ctx_t *ctx);


void
ngx_http_inference_borrow_begin(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *mr;

    mr = ctx->request->main;

    ctx->main_write_handler = mr->write_event_handler;

    mr->request_body_no_buffering = 0;
}


void
ngx_http_inference_borrow_begun(ngx_http_inference_ctx_t *ctx)
{
    ctx->main_read_handler = ctx->request->main->read_event_handler;

    ngx_http_inference_set_deadline(ctx);
    ngx_http_inference_borrow_wait(ctx);
}


ngx_int_t
ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx)
{
    switch (ctx->event) {

    case NGX_HTTP_INFERENCE_BODY_END:

        if (ctx->timer.timer_set) {
            ngx_del_timer(&ctx->timer);
        }

        ctx->request->main->write_event_handler = ctx->main_write_handler;
        ctx->request->read_event_handler = ngx_http_block_reading;

        /* nginx has not called the body's handler yet */
        return NGX_AGAIN;

    case NGX_HTTP_INFERENCE_TURN:
        return NGX_OK;

    case NGX_HTTP_INFERENCE_READ:
    case NGX_HTTP_INFERENCE_TIMER:

        if (ngx_http_inference_borrow_failed(ctx)) {
            return NGX_DECLINED;
        }

        if (ctx->event == NGX_HTTP_INFERENCE_TIMER) {

            if (ngx_http_inference_borrow_late(ctx)) {
                ngx_http_inference_borrow_timed_out(ctx);
                return NGX_DECLINED;
            }

            ngx_http_inference_borrow_wait(ctx);
        }

        return NGX_DONE;

    default:
        return NGX_DONE;
    }
}


/* Whether reading has ended with an error that finalized main. */

static ngx_uint_t
ngx_http_inference_borrow_failed(ngx_http_inference_ctx_t *ctx)
{
    return !ctx->turn.posted
           && ctx->request->main->read_event_handler
              != ctx->main_read_handler;
}


static ngx_uint_t
ngx_http_inference_borrow_late(ngx_http_inference_ctx_t *ctx)
{
    return ctx->deadline_ns && ctx->turn_ns >= ctx->deadline_ns;
}


static void
ngx_http_inference_borrow_wait(ngx_http_inference_ctx_t *ctx)
{
    ngx_msec_t  delay;

    delay = NGX_HTTP_INFERENCE_BORROW_POLL;

    if (ctx->deadline_ns) {
        delay = ngx_http_inference_borrow_late(ctx)
                ? 0
                : ngx_min(delay,
                          (ctx->deadline_ns - ctx->turn_ns) / 1000000 + 1);
    }

    ngx_add_timer(&ctx->timer, delay);
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
     * The rest of the body must not be parsed as a request, and no handler gets
     * an incomplete body.
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
}
