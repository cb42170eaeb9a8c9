/*
 * ngx_http_inference_context.c - contexts of requests, and the table of their
 *                                states.
 */

#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"
#include "ngx_module/ngx_http_inference_retry.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/proto/infer_request.h"


static void ngx_http_inference_quiet(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_leave(void *data);
static void ngx_http_inference_cleanup(void *data);


/* spare blocks of finished requests, to avoid allocations */
static inf_arena_spares_t  ngx_http_inference_spares;


/* The next states, by the result of the phase.  A failed phase leads to
   REJECTING or DONE; a client may disconnect from any waiting state. */

#define ngx_http_inference_then(next, other)                                  \
    { NGX_HTTP_INFERENCE_##next, NGX_HTTP_INFERENCE_##other }

static const struct {
    ngx_http_inference_state_e  next;           /* NGX_OK                    */
    ngx_http_inference_state_e  other;          /* NGX_DECLINED              */

} ngx_http_inference_moves[] = {

    /* CHECKING */    ngx_http_inference_then(CONNECTING, DONE),
    /* CONNECTING */  ngx_http_inference_then(OPENING, SUBMITTING),
    /* OPENING */     ngx_http_inference_then(RECEIVING, BORROWING),
    /* BORROWING */   ngx_http_inference_then(OPENING, DONE),
    /* RECEIVING */   ngx_http_inference_then(READING, SWALLOWING),
    /* SWALLOWING */  ngx_http_inference_then(REJECTING, REJECTING),
    /* READING */     ngx_http_inference_then(DECODING, SUBMITTING),
    /* DECODING */    ngx_http_inference_then(SUBMITTING, REJECTING),
    /* SUBMITTING */  ngx_http_inference_then(WAITING, RETRYING),
    /* WAITING */     ngx_http_inference_then(PREPARING, RESPONDING),
    /* PAUSING */     ngx_http_inference_then(RETRYING, REJECTING),
    /* RETRYING */    ngx_http_inference_then(SUBMITTING, REJECTING),
    /* PREPARING */   ngx_http_inference_then(RESPONDING, REJECTING),
    /* RESPONDING */  ngx_http_inference_then(DONE, SENDING),
    /* SENDING */     ngx_http_inference_then(DONE, PREPARING),
    /* REJECTING */   ngx_http_inference_then(DONE, DONE),
    /* DONE */        ngx_http_inference_then(DONE, DONE),
    /* LEFT */        ngx_http_inference_then(LEFT, LEFT)
};


ngx_http_inference_ctx_t *
ngx_http_inference_create_ctx(ngx_http_request_t *r)
{
    ngx_http_cleanup_t        *leave;
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_ctx_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);
    leave = ngx_http_cleanup_add(r, 0);

    if (ctx == NULL || cln == NULL || leave == NULL) {
        return NULL;
    }

    ngx_http_inference_init_ctx(ctx, r, NGX_HTTP_INFERENCE_CHECKING);

    cln->handler = ngx_http_inference_cleanup;
    cln->data = ctx;

    leave->handler = ngx_http_inference_leave;
    leave->data = ctx;

    ngx_http_set_ctx(r, ctx, ngx_http_inference_module);

    return ctx;
}


void
ngx_http_inference_init_ctx(ngx_http_inference_ctx_t *ctx,
    ngx_http_request_t *r, ngx_http_inference_state_e state)
{
    ctx->request = r;
    ctx->owner = ctx;
    ctx->state = state;
    ctx->version = -1;
    ctx->json_len = -1;

    ctx->timer.data = r->connection;
    ctx->timer.log = r->connection->log;

    ctx->turn.data = r->connection;
    ctx->turn.log = r->connection->log;

    ctx->submission.data = ctx;

    inf_arena_take(&ctx->arena, &ngx_http_inference_spares);
}


void
ngx_http_inference_move(ngx_http_inference_ctx_t *ctx, ngx_int_t rc)
{
    switch (rc) {

    case NGX_OK:
        ctx->state = ngx_http_inference_moves[ctx->state].next;
        break;

    case NGX_DECLINED:
        ctx->state = ngx_http_inference_moves[ctx->state].other;
        break;

    default: /* NGX_ERROR */
        ctx->state = NGX_HTTP_INFERENCE_REJECTING;
        break;
    }
}


void
ngx_http_inference_lose_core(ngx_http_inference_ctx_t *ctx)
{
    ctx->state = NGX_HTTP_INFERENCE_RETRYING;
}


void
ngx_http_inference_await_model(ngx_http_inference_ctx_t *ctx)
{
    ctx->state = NGX_HTTP_INFERENCE_PAUSING;
}


void
ngx_http_inference_over(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_quiet(ctx);

    ctx->state = NGX_HTTP_INFERENCE_DONE;
}


/* Cancels timer and posted turn. */

static void
ngx_http_inference_quiet(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->turn.posted) {
        ngx_delete_posted_event(&ctx->turn);
    }
}


/* Finds the context in the pool's cleanups: a redirect clears r->ctx. */

ngx_http_inference_ctx_t *
ngx_http_inference_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx) {
        return ctx;
    }

    if (!r->internal && !r->filter_finalize) {
        return NULL;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_cleanup) {
            ctx = cln->data;

            if (ctx->request == r) {
                return ctx;
            }
        }
    }

    return NULL;
}


/*
 * Whether nginx has redirected the request while events of its context may
 * follow, after an error while reading the body or by post_action.  Another
 * handler has the request then, and the context is unused.
 */

ngx_uint_t
ngx_http_inference_disowned(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_get_module_ctx(ctx->request, ngx_http_inference_module)
        == ctx->owner)
    {
        return 0;
    }

    if (!ngx_http_inference_is_over(ctx)) {
        ngx_http_inference_leave(ctx);
    }

    return 1;
}


ngx_http_inference_ctx_t *
ngx_http_inference_borrower(ngx_http_request_t *mr)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    for (cln = mr->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_cleanup) {
            ctx = cln->data;

            if (ctx->request->main == mr
                && ctx->state == NGX_HTTP_INFERENCE_BORROWING)
            {
                return ctx;
            }
        }
    }

    return NULL;
}


void
ngx_http_inference_test_reading(ngx_http_inference_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    if (r != r->main) {
        return;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (c->read->ready) {
        /* an end of file received with the request causes no event */
        ngx_post_event(c->read, &ngx_posted_events);
    }
}


/* Cleanup of the request: cancels the core's answer. */

static void
ngx_http_inference_leave(void *data)
{
    ngx_http_inference_leave_ctx(data);
}


void
ngx_http_inference_leave_ctx(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_quiet(ctx);

    if (ngx_http_inference_unanswered(&ctx->submission)) {
        ngx_http_inference_abandon(&ctx->submission);
    }

    if (!ngx_http_inference_is_over(ctx)) {
        ctx->state = (ctx->state == NGX_HTTP_INFERENCE_SENDING)
                     ? NGX_HTTP_INFERENCE_DONE : NGX_HTTP_INFERENCE_LEFT;
    }
}


/* Cleanup of the pool: nothing reads the arenas any more, not even an HTTP/2
   frame. */

static void
ngx_http_inference_cleanup(void *data)
{
    ngx_http_inference_free_ctx(data);
}


void
ngx_http_inference_free_ctx(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_abandon(&ctx->submission);

    ngx_http_inference_reply_release(&ctx->reply);

    if (ctx->retry) {
        ngx_http_inference_retry_free(ctx);
    }

    ngx_http_inference_record_free(ctx);
    ngx_http_inference_stores_free(ctx);
    ngx_http_inference_hand_on_end(ctx);

    if (ctx->grpc) {
        ngx_http_inference_grpc_free(ctx->grpc);
    }

    if (ctx->events) {
        ngx_http_inference_events_free(ctx->events);
    }

    ngx_http_inference_pack_close(ctx->packer);
    inf_infer_reader_free(ctx->reader);
    inf_arena_give(&ctx->arena, &ngx_http_inference_spares);
}
