/*
 * ngx_http_inference_replies.c - queues of core responses that wait until
 *                                earlier ones are sent.
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/error.h"


/* limit for one call or one request */
#define NGX_HTTP_INFERENCE_REPLIES_MAX  65536


void
ngx_http_inference_replies_init(ngx_http_inference_replies_t *replies,
    ngx_pool_t *pool)
{
    replies->pool = pool;
    replies->count = 0;

    ngx_queue_init(&replies->spare);
}


ngx_int_t
ngx_http_inference_replies_push(ngx_http_inference_replies_t *replies,
    ngx_queue_t *to, ngx_http_inference_ctx_t *ctx, const inf_completion_t *c)
{
    ngx_queue_t                        *q;
    ngx_http_inference_queued_reply_t  *item;

    if (replies->count >= NGX_HTTP_INFERENCE_REPLIES_MAX) {

        ngx_http_inference_drop_response(&ctx->submission, c);

        ctx->cause = INF_CAUSE_UNTAKEN;
        return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "the client does not take its "
                                       "responses: %ui of them wait",
                                       replies->count);
    }

    if (ngx_queue_empty(&replies->spare)) {

        item = ngx_palloc(replies->pool,
                          sizeof(ngx_http_inference_queued_reply_t));
        if (item == NULL) {
            ngx_http_inference_drop_response(&ctx->submission, c);
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

    } else {
        q = ngx_queue_head(&replies->spare);
        ngx_queue_remove(q);
        item = ngx_queue_data(q, ngx_http_inference_queued_reply_t, queue);
    }

    item->response = (c->flags & INF_COMPLETE_RESPONSE) != 0;
    item->final = (c->flags & INF_COMPLETE_FINAL) != 0;
    item->cause = c->cause;
    item->queued = (c->batch_size != 0 || c->cause == INF_CAUSE_TIMED_OUT
                    || c->status == INF_STATUS(INF_ERR_CANCELLED));

    item->reply.epoch = ctx->submission.epoch;
    item->reply.offset = c->offset;
    item->reply.len = item->response ? c->length : 0;
    item->reply.status = c->status;
    item->reply.held = (item->reply.len != 0);
    item->reply.traced = (c->traced != 0);

    ngx_http_inference_note_execution(ctx, c);

    ngx_queue_insert_tail(to, &item->queue);
    replies->count++;

    return NGX_OK;
}


ngx_http_inference_queued_reply_t *
ngx_http_inference_replies_pop(ngx_http_inference_replies_t *replies,
    ngx_queue_t *from)
{
    ngx_queue_t  *q;

    q = ngx_queue_head(from);
    ngx_queue_remove(q);
    ngx_queue_insert_head(&replies->spare, q);
    replies->count--;

    return ngx_queue_data(q, ngx_http_inference_queued_reply_t, queue);
}


void
ngx_http_inference_replies_drop(ngx_http_inference_replies_t *replies,
    ngx_queue_t *from)
{
    ngx_http_inference_queued_reply_t  *item;

    while (!ngx_queue_empty(from)) {
        item = ngx_http_inference_replies_pop(replies, from);
        ngx_http_inference_reply_release(&item->reply);
    }
}


void
ngx_http_inference_reply_release(ngx_http_inference_reply_t *reply)
{
    if (reply->held) {
        reply->held = 0;
        ngx_http_inference_release(reply->epoch, reply->offset,
                                   reply->traced);
    }

    reply->len = 0;
}
