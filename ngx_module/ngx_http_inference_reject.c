/*
 * ngx_http_inference_reject.c - a request that has failed is answered, or given
 *                               to the handler that error_page names.
 */

#include "ngx_module/ngx_http_inference_grpc.h"


ngx_int_t
ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    if (ctx->message) {
        return ngx_http_inference_stream_reject(ctx);
    }

    r = ctx->request;

    ngx_http_inference_stream_abandon(ctx);

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    ngx_http_inference_log_error(ctx, ctx->error);

    if (r == r->main && !r->discard_body) {
        r->read_event_handler = ngx_http_block_reading;
    }

    if (ctx->events && r->header_sent) {
        ngx_http_inference_events_reject(ctx);
        return NGX_OK;
    }

    if (ngx_http_inference_intercepted(ctx)) {

        rc = ngx_http_inference_hand_on(ctx);

        if (rc != NGX_DECLINED) {
            ctx->rc = (rc == NGX_OK) ? (ngx_int_t) ctx->status
                                     : NGX_HTTP_INTERNAL_SERVER_ERROR;
            return NGX_OK;
        }
    }

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    ngx_http_inference_body_stop(ctx);

    ctx->rc = ctx->grpc ? ngx_http_inference_grpc_send_error(ctx)
                        : ngx_http_inference_send_error(ctx);

    return NGX_OK;
}
