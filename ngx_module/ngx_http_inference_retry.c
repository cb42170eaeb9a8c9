/*
 * ngx_http_inference_retry.c - submits a request to the next core, with its
 *                              bytes, after its own core has exited.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_retry.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/error.h"
#include "core/base/points.h"


/* While models load, the new core is asked after the first pause, which doubles
   up to the second: ms. */
#define NGX_HTTP_INFERENCE_RETRY_PAUSE      20
#define NGX_HTTP_INFERENCE_RETRY_MAX_PAUSE  1000

/* limit of the wait for a model, without a deadline: ms */
#define NGX_HTTP_INFERENCE_RETRY_LOADING    60000

/* limit of cores that exit with the request, executed or not */
#define NGX_HTTP_INFERENCE_RETRY_EXITS      10


/* The copies of the request's bytes for the channel of the next core. */

struct ngx_http_inference_retry_s {
    inf_client_t                *client;        /* NULL: no channel yet      */
    uint64_t                     epoch;
    inf_region_t                *to[4];         /* copies of record, data, text
                                                   and packed                */
    ngx_uint_t                   i;             /* index being copied        */
    uint64_t                     copied;        /* bytes of it               */
    ngx_msec_t                   next;          /* next pause while the model
                                                   is loaded                 */
    uint64_t                     loading_ns;    /* start of the wait for the
                                                   model; 0: none            */
};


static ngx_uint_t ngx_http_inference_retry_call(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_retry_take_back(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_retry_open(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_retry_copy(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_retry_swap(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_retry_late(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_retry_from(ngx_http_inference_ctx_t *ctx,
    inf_region_t **from[]);


ngx_uint_t
ngx_http_inference_retry_wanted(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    ngx_http_inference_loc_conf_t    *ilcf;
    ngx_http_inference_submission_t  *submission;

    submission = &ctx->submission;

    if (ctx->replies || ctx->status || ngx_http_inference_events_begun(ctx)) {
        return 0;
    }

    if (c) {
        return c->cause == INF_CAUSE_STARTING
               && (c->flags & INF_COMPLETE_FINAL);
    }

    if (!ngx_http_inference_is_infer(ctx)) {
        return ngx_http_inference_retry_call(ctx);
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (submission->sequence) {
        return 0;
    }

    if (submission->begun < ilcf->tries + submission->excused
        && submission->exits < NGX_HTTP_INFERENCE_RETRY_EXITS)
    {
        return 1;
    }

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->out_of_tries,
                                1);

    return 0;
}


/*
 * Whether a call may be repeated.  Repeating it has the effect of doing it
 * once, except that what is registered already, or is no more, fails.  A load
 * may have caused the core's exit.
 */

static ngx_uint_t
ngx_http_inference_retry_call(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t    *ilcf;
    ngx_http_inference_submission_t  *submission;

    submission = &ctx->submission;

    switch (ctx->endpoint->call) {

    case INF_METHOD_SYSTEM_SHM_REGISTER:
    case INF_METHOD_CUDA_SHM_REGISTER:
    case INF_METHOD_ARCHIVE_LOAD:
    case INF_METHOD_ARCHIVE_UNLOAD:
        return !submission->taken
               && submission->exits < NGX_HTTP_INFERENCE_RETRY_EXITS;

    case INF_METHOD_REPOSITORY_MODEL_LOAD:

        ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                            ngx_http_inference_module);

        return submission->exits < ilcf->tries;

    default:
        return submission->exits < NGX_HTTP_INFERENCE_RETRY_EXITS;
    }
}


ngx_int_t
ngx_http_inference_retry_begin(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    if (ctx->retry == NULL) {
        ctx->retry = ngx_pcalloc(ctx->request->pool,
                                 sizeof(ngx_http_inference_retry_t));
        if (ctx->retry == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }
    }

    INF_POINT(RETRY_BEGUN);

    if (c == NULL || ctx->retry->next == 0) {
        ctx->retry->next = NGX_HTTP_INFERENCE_RETRY_PAUSE;
    }

    if (c == NULL) {
        ctx->retry->loading_ns = 0;

        (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->retried, 1);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_retry_pause(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_retry_t  *retry;

    if (ctx->status) {
        return NGX_ERROR;
    }

    retry = ctx->retry;

    if (retry->loading_ns == 0) {
        retry->loading_ns = ctx->turn_ns;
    }

    if (ctx->event == NGX_HTTP_INFERENCE_TIMER
        && ctx->submission.state == NGX_HTTP_INFERENCE_SUBMISSION_FREE)
    {
        if (ngx_http_inference_retry_late(ctx)) {
            return ngx_http_inference_fail_loading(ctx,
                                            NGX_HTTP_INFERENCE_RETRY_LOADING);
        }

        retry->next = ngx_min(retry->next * 2,
                              NGX_HTTP_INFERENCE_RETRY_MAX_PAUSE);

        return NGX_OK;
    }

    if (ctx->event == NGX_HTTP_INFERENCE_NO_EVENT
        || ctx->event == NGX_HTTP_INFERENCE_TIMER)
    {
        ngx_http_inference_arm_timer_within(ctx, retry->next);
    }

    return NGX_DONE;
}


static ngx_uint_t
ngx_http_inference_retry_late(ngx_http_inference_ctx_t *ctx)
{
    uint64_t  waited;

    if (ctx->deadline_ns) {
        return 0;
    }

    waited = ctx->turn_ns - ctx->retry->loading_ns;

    return waited >= NGX_HTTP_INFERENCE_RETRY_LOADING * UINT64_C(1000000);
}


ngx_int_t
ngx_http_inference_retry(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                    rc;
    ngx_http_inference_retry_t  *retry;

    retry = ctx->retry;

    if (ctx->status) {
        return NGX_ERROR;
    }

    ngx_http_inference_retry_take_back(ctx);

    if (retry->client == NULL) {

        rc = ngx_http_inference_retry_open(ctx);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (retry->client != ctx->client) {

        if (ngx_http_inference_retry_copy(ctx) != NGX_OK) {
            return NGX_AGAIN;
        }

        ngx_http_inference_retry_swap(ctx);

        INF_POINT(RETRY_COPIED);
    }

    retry->client = NULL;

    ngx_http_inference_arm_timer(ctx);

    return NGX_OK;
}


void
ngx_http_inference_retry_free(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                   i;
    ngx_http_inference_retry_t  *retry;

    retry = ctx->retry;

    for (i = 0; i < 4; i++) {

        if (retry->to[i]) {
            inf_client_free_region(retry->client, retry->to[i]);
            retry->to[i] = NULL;
        }
    }
}


/* Takes the regions back: the core has exited, or has released them. */

static void
ngx_http_inference_retry_take_back(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_submission_t  *submission;

    submission = &ctx->submission;

    if (submission->nregions == 0) {
        return;
    }

    if (ngx_http_inference_call_has_body(ctx)) {
        ctx->body.text.region = submission->regions[0];

    } else {
        ctx->record = submission->regions[0];
    }

    if (submission->nregions > 1) {
        ctx->body.data.region = submission->regions[1];
    }

    submission->nregions = 0;
}


/* Opens the copies on the current channel, or waits for one. */

static ngx_int_t
ngx_http_inference_retry_open(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                      size;
    ngx_uint_t                    i;
    inf_region_t                **from[4];
    ngx_http_inference_retry_t   *retry;

    retry = ctx->retry;

    retry->client = ngx_http_inference_channel(&retry->epoch);

    if (retry->client == NULL) {

        if (ngx_http_inference_wait_ready(&ctx->submission) != NGX_AGAIN) {
            return ngx_http_inference_fail_no_core(ctx);
        }

        ngx_http_inference_arm_timer(ctx);

        return NGX_DONE;
    }

    if (retry->epoch == ctx->epoch) {
        return NGX_OK;
    }

    ngx_http_inference_retry_from(ctx, from);

    retry->i = 0;
    retry->copied = 0;

    for (i = 0; i < 4; i++) {

        if (*from[i] == NULL) {
            continue;
        }

        size = ngx_max((*from[i])->charged, 1);

        retry->to[i] = ngx_http_inference_is_infer(ctx)
                       ? inf_client_alloc(retry->client, size)
                       : inf_client_alloc_call(retry->client, size);

        if (retry->to[i] == NULL) {
            return ngx_http_inference_arena_full(ctx, size);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_retry_copy(ngx_http_inference_ctx_t *ctx)
{
    u_char                       *dst, *src;
    uint64_t                      n;
    inf_region_t                **from[4];
    ngx_http_inference_retry_t   *retry;

    retry = ctx->retry;

    ngx_http_inference_retry_from(ctx, from);

    while (retry->i < 4) {

        n = retry->to[retry->i] ? (*from[retry->i])->charged - retry->copied
                                : 0;

        if (n == 0) {
            retry->i++;
            retry->copied = 0;
            continue;
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        n = ngx_min(n, INF_CODEC_BUDGET);

        dst = inf_client_data(retry->client, retry->to[retry->i]);
        src = inf_client_data(ctx->client, *from[retry->i]);

        ngx_memcpy(dst + retry->copied, src + retry->copied, (size_t) n);

        retry->copied += n;
    }

    return NGX_OK;
}


/* Replaces the request's regions by the copies. */

static void
ngx_http_inference_retry_swap(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                    i;
    inf_region_t                **from[4];
    ngx_http_inference_body_t    *body;
    ngx_http_inference_retry_t   *retry;

    body = &ctx->body;
    retry = ctx->retry;

    ngx_http_inference_retry_from(ctx, from);

    for (i = 0; i < 4; i++) {

        if (retry->to[i]) {
            inf_client_free_region(ctx->client, *from[i]);
            *from[i] = retry->to[i];
            retry->to[i] = NULL;
        }
    }

    ctx->client = retry->client;
    ctx->epoch = retry->epoch;

    body->data.data = body->data.region
                      ? inf_client_data(ctx->client, body->data.region) : NULL;
    body->text.data = body->text.region
                      ? inf_client_data(ctx->client, body->text.region) : NULL;
    body->packed.data = body->packed.region
                        ? inf_client_data(ctx->client, body->packed.region)
                        : NULL;

    ngx_http_inference_client_plan_sweep();
}


static void
ngx_http_inference_retry_from(ngx_http_inference_ctx_t *ctx,
    inf_region_t **from[])
{
    from[0] = &ctx->record;
    from[1] = &ctx->body.data.region;
    from[2] = &ctx->body.text.region;
    from[3] = &ctx->body.packed.region;
}
