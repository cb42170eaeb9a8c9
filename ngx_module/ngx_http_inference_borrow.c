/*
 * ngx_http_inference_borrow.c - a subrequest that needs the body before its
 *                               main request has read it (auth_request).  It
 *                               is read for main as nginx does it, and main
 *                               finds it in memory or in its file later.
 */

#include "ngx_module/ngx_http_inference_request.h"


static void ngx_http_inference_borrow_event(ngx_http_request_t *r);
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

    ngx_http_inference_start_timer(ctx);

    mr->count++;
    mr->request_body_no_buffering = 0;

    rc = ngx_http_read_client_request_body(mr,
                                           ngx_http_inference_borrow_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        mr->count--;
        ctx->state = NGX_HTTP_INFERENCE_DONE;
        return rc;
    }

    if (ctx->body.borrow) {
        /* the connection's events come to the active request */
        r->read_event_handler = ngx_http_inference_borrow_event;
    }

    return NGX_DONE;
}


static void
ngx_http_inference_borrow_event(ngx_http_request_t *r)
{
    ngx_connection_t           *c;
    ngx_http_request_t         *mr;
    ngx_http_event_handler_pt   handler;
    ngx_http_inference_ctx_t   *ctx;

    c = r->connection;
    mr = r->main;
    handler = mr->read_event_handler;

    handler(mr);

    if (c->destroyed) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx->body.borrow
        && ctx->state == NGX_HTTP_INFERENCE_BORROWING
        && mr->read_event_handler != handler)
    {
        /* reading has failed: main was finalized, this one has to follow */
        ngx_http_inference_finalize(ctx, NGX_ERROR);
    }
}


static void
ngx_http_inference_borrow_ready(ngx_http_request_t *mr)
{
    ngx_http_inference_ctx_t  *ctx;

    /* the count of reading; the subrequest has its own */
    mr->count--;

    ctx = ngx_http_inference_borrower(mr);

    if (ctx == NULL) {
        return;
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

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    rc = (ngx_http_inference_body_check(ctx) == NGX_OK)
         ? ngx_http_inference_body_read(ctx)
         : ngx_http_inference_refuse(ctx);

    /* the count taken while borrowing goes with this */
    ngx_http_finalize_request(ctx->request, rc);
}
