/*
 * ngx_http_inference_store.c - bytes in the request arena that grow.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/error.h"


static inf_region_t *ngx_http_inference_store_region(
    ngx_http_inference_ctx_t *ctx, uint64_t size);
static uint64_t ngx_http_inference_store_size(
    const ngx_http_inference_store_t *store);
static void ngx_http_inference_store_move(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n);


/*
 * Makes sure that ctx->client is a channel that exists, before a first region
 * is allocated: the channel of an exited core is freed once nothing of it is
 * held and another is up.  Bytes in the arena of an exited core are copied when
 * submitted (retry.c).
 */

ngx_int_t
ngx_http_inference_current(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->record || ctx->body.packed.region || ctx->body.text.region
        || ctx->body.data.region)
    {
        return NGX_OK;
    }

    ctx->client = ngx_http_inference_last_channel(&ctx->epoch);

    if (ctx->client) {
        return NGX_OK;
    }

    ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "the inference core ended while the "
                                   "request was being received");
}


ngx_int_t
ngx_http_inference_store_open(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t size)
{
    if (ngx_http_inference_current(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    store->region = ngx_http_inference_store_region(ctx, size);

    if (store->region == NULL) {
        return ngx_http_inference_arena_full(ctx, size);
    }

    ngx_http_inference_client_plan_sweep();

    store->data = inf_client_data(ctx->client, store->region);
    store->len = 0;

    return NGX_OK;
}


/*
 * Charges small stores at once, large ones as they fill.  If a large announced
 * size cannot be reserved, the store begins small and moves as it grows.
 */

static inf_region_t *
ngx_http_inference_store_region(ngx_http_inference_ctx_t *ctx, uint64_t size)
{
    inf_region_t  *region;

    if (size <= NGX_HTTP_INFERENCE_CALL_SIZE
        && ngx_http_inference_call_has_body(ctx))
    {
        /* includes room for bytes appended to a call */
        return inf_client_alloc_call(ctx->client,
                                     2 * NGX_HTTP_INFERENCE_CALL_SIZE);
    }

    if (size <= NGX_HTTP_INFERENCE_STORE_STEP) {
        return inf_client_alloc(ctx->client, size);
    }

    region = inf_client_reserve(ctx->client, size);

    return region ? region : inf_client_alloc(ctx->client,
                                             NGX_HTTP_INFERENCE_STORE_STEP);
}


ngx_int_t
ngx_http_inference_store_room(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, size_t want, u_char **p, size_t *n)
{
    uint64_t  end, size;

    if (ngx_http_inference_store_ensure(ctx, store, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    end = ngx_min(store->len + want, store->region->size);

    if (end > store->region->charged) {

        size = ngx_min(ngx_align(end, NGX_HTTP_INFERENCE_STORE_STEP),
                       store->region->size);

        if (!inf_client_charge(ctx->client, store->region, size)
            && !inf_client_charge(ctx->client, store->region, end))
        {
            return ngx_http_inference_arena_full(ctx, end);
        }
    }

    *p = store->data + store->len;
    *n = (size_t) (end - store->len);

    /*
     * Moves two bytes for each new byte, so the move ends before the new half
     * is full.
     */

    ngx_http_inference_store_move(ctx, store, 2 * (uint64_t) *n);

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_store_put(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, const void *data, size_t n)
{
    size_t         room;
    u_char        *dst;
    const u_char  *p;

    for (p = data; n; p += room, n -= room) {

        if (ngx_http_inference_store_room(ctx, store, n, &dst, &room)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_memcpy(dst, p, room);

        store->len += room;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_store_ensure(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n)
{
    uint64_t       size;
    inf_region_t  *region;

    if (store->region->size - store->len >= n) {
        return NGX_OK;
    }

    ngx_http_inference_store_settle_now(ctx, store);

    size = ngx_max(store->len + ngx_max(store->len, n),
                   NGX_HTTP_INFERENCE_STORE_STEP);

    if (inf_client_grow(ctx->client, store->region, size)) {
        return NGX_OK;
    }

    region = inf_client_replace(ctx->client, store->region, size);

    if (region == NULL) {
        return ngx_http_inference_arena_full(ctx, size);
    }

    store->old = store->region;
    store->old_len = store->len;
    store->moved = 0;
    store->region = region;
    store->data = inf_client_data(ctx->client, region);

    if (store->len <= NGX_HTTP_INFERENCE_INLINE_TEXT) {
        /* a short text is parsed as it arrives */
        ngx_http_inference_store_settle_now(ctx, store);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_store_settle(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store)
{
    while (store->old) {

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        ngx_http_inference_store_move(ctx, store, INF_CODEC_BUDGET);
    }

    return NGX_OK;
}


void
ngx_http_inference_store_settle_now(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store)
{
    ngx_http_inference_store_move(ctx, store, store->old_len);
}


/* Moves at most so many of the bytes left in the old region. */

static void
ngx_http_inference_store_move(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n)
{
    u_char  *old;

    if (store->old == NULL) {
        return;
    }

    old = inf_client_data(ctx->client, store->old);
    n = ngx_min(n, store->old_len - store->moved);

    ngx_memcpy(store->data + store->moved, old + store->moved, (size_t) n);

    store->moved += n;

    if (store->moved == store->old_len) {
        inf_client_free_region(ctx->client, store->old);
        store->old = NULL;
    }
}


void
ngx_http_inference_store_free(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store)
{
    if (store->old) {
        inf_client_free_region(ctx->client, store->old);
    }

    if (store->region) {
        inf_client_free_region(ctx->client, store->region);
    }

    ngx_memzero(store, sizeof(ngx_http_inference_store_t));
}


ngx_int_t
ngx_http_inference_stores_settle(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_inference_store_settle(ctx, &ctx->body.packed) != NGX_OK
        || ngx_http_inference_store_settle(ctx, &ctx->body.text) != NGX_OK
        || ngx_http_inference_store_settle(ctx, &ctx->body.data) != NGX_OK)
    {
        return NGX_AGAIN;
    }

    return NGX_OK;
}


void
ngx_http_inference_stores_free(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_store_free(ctx, &ctx->body.packed);
    ngx_http_inference_store_free(ctx, &ctx->body.text);
    ngx_http_inference_store_free(ctx, &ctx->body.data);
}


ngx_int_t
ngx_http_inference_stores_check_rate(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_inference_check_rate(ctx) == NGX_OK) {
        return NGX_OK;
    }

    ngx_http_inference_stores_free(ctx);

    return NGX_ERROR;
}


uint64_t
ngx_http_inference_stores_size(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                          size;
    ngx_uint_t                        i;
    ngx_http_inference_submission_t  *submission;

    submission = &ctx->submission;

    size = ngx_http_inference_store_size(&ctx->body.packed)
           + ngx_http_inference_store_size(&ctx->body.text)
           + ngx_http_inference_store_size(&ctx->body.data);

    /* the first region of an inference is its record */

    for (i = ngx_http_inference_is_infer(ctx); i < submission->nregions; i++) {
        size += submission->regions[i]->charged;
    }

    return size;
}


static uint64_t
ngx_http_inference_store_size(const ngx_http_inference_store_t *store)
{
    return store->region ? store->region->charged : 0;
}


void
ngx_http_inference_record_free(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_submission_t  *submission;

    submission = &ctx->submission;

    if (ctx->record == NULL
        && submission->nregions
        && ctx->endpoint && ngx_http_inference_is_infer(ctx)
        && submission->state != NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED
        && submission->state != NGX_HTTP_INFERENCE_SUBMISSION_FINAL)
    {
        ctx->record = submission->regions[0];
        submission->regions[0] = NULL;
    }

    if (ctx->record) {
        inf_client_free_region(ctx->client, ctx->record);
        ctx->record = NULL;
    }
}


ngx_int_t
ngx_http_inference_arena_full(ngx_http_inference_ctx_t *ctx, uint64_t size)
{
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->arena_full, 1);

    if (size > (uint64_t) imcf->arena) {
        return ngx_http_inference_fail_status(ctx,
                        NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                        "%uL bytes are more than inference_memory of %O bytes "
                        "can hold", size, imcf->arena);
    }

    ctx->cause = INF_CAUSE_FULL;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "no room for %uL bytes: inference_memory "
                                   "of %O bytes is in use",
                                   size, imcf->arena);
}
