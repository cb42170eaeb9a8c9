/*
 * ngx_http_inference_reject.c - answers a failed request, or passes it to the
 *                               handler of error_page.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_submission.h"


static ngx_int_t ngx_http_inference_reject_to_page(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_reject_note(ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    if (ctx->message) {
        return ngx_http_inference_stream_reject(ctx);
    }

    r = ctx->request;

    ngx_http_inference_stream_abandon(ctx);

    if (r == r->main && !r->discard_body) {
        r->read_event_handler = ngx_http_block_reading;
    }

    if (ctx->events && r->header_sent) {
        ngx_http_inference_reject_note(ctx);
        ngx_http_inference_events_reject(ctx);
        return NGX_OK;
    }

    if (ngx_http_inference_reject_to_page(ctx) == NGX_OK) {
        return NGX_OK;
    }

    ngx_http_inference_reject_note(ctx);

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    ngx_http_inference_body_stop(ctx);

    ctx->rc = ctx->grpc ? ngx_http_inference_grpc_send_error(ctx)
                        : ngx_http_inference_send_error(ctx);

    return NGX_OK;
}


/*
 * NGX_DECLINED: the client gets our own answer.  With an equals sign
 * ("error_page 404 = @other") the status of the next handler counts, and the
 * failure is logged at level info only; otherwise as an error, and counted.
 */

static ngx_int_t
ngx_http_inference_reject_to_page(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t             rc;
    ngx_http_err_page_t  *page;

    page = ngx_http_inference_intercepted(ctx);
    if (page == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_inference_is_stream(ctx)
         ? ngx_http_inference_stream_hand_on(ctx)
         : ngx_http_inference_hand_on(ctx);

    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }

    /* the bytes stay, the execution is cancelled */
    ngx_http_inference_cancel(&ctx->submission);

    if (rc == NGX_OK && page->overwrite >= 0
        && page->overwrite < NGX_HTTP_BAD_REQUEST)
    {
        ngx_http_inference_log_handed_on(ctx);
        ngx_str_null(&ctx->error);

    } else {
        ngx_http_inference_reject_note(ctx);
    }

    ctx->rc = (rc == NGX_OK) ? (ngx_int_t) ctx->status
                             : NGX_HTTP_INTERNAL_SERVER_ERROR;
    return NGX_OK;
}


static void
ngx_http_inference_reject_note(ngx_http_inference_ctx_t *ctx)
{
    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    ngx_http_inference_log_error(ctx, ctx->error);
}
