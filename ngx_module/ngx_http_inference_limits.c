/*
 * ngx_http_inference_limits.c - limits of one request: bytes received and held,
 *                               regions of shared memory, minimum rate, total
 *                               time, and time in one turn of the event loop.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/proto/infer_request.h"


/* limit of an inflated message of gRPC where inference_max_body is not set */
#define NGX_HTTP_INFERENCE_MESSAGE_MAX  ((uint64_t) 64 * 1024 * 1024)

/* limit of a call's inflated body, except that of a load */
#define NGX_HTTP_INFERENCE_CALL_MAX     ((uint64_t) 64 * 1024)


static ngx_http_inference_loc_conf_t *ngx_http_inference_limits(
    ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_is_small_call(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_body_limits_text(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_plan_rate(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t waited);


off_t
ngx_http_inference_max_body(ngx_http_inference_ctx_t *ctx)
{
    return ngx_http_inference_location_max_body(ctx->request);
}


off_t
ngx_http_inference_location_max_body(ngx_http_request_t *r)
{
    ngx_http_inference_loc_conf_t   *ilcf;
    ngx_http_inference_main_conf_t  *imcf;

    ilcf = ngx_http_inference_limits(r);

    if (ilcf->max_body == NGX_CONF_UNSET) {
        imcf = ngx_http_get_module_main_conf(r, ngx_http_inference_module);
        return imcf->arena / 2;
    }

    return ilcf->max_body ? ilcf->max_body : NGX_MAX_OFF_T_VALUE;
}


ngx_int_t
ngx_http_inference_body_long(ngx_http_inference_ctx_t *ctx, const char *what)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    return ngx_http_inference_fail_status(ctx,
                        NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                        "%s larger than inference_max_body of %O bytes%s",
                        what, ngx_http_inference_max_body(ctx),
                        ilcf->max_body == NGX_CONF_UNSET
                        ? ", which is half of inference_memory" : "");
}


/*
 * The default limit keeps a small compressed body from inflating to gigabytes;
 * the compressed bytes are held until all is inflated.
 */

off_t
ngx_http_inference_max_inflated(ngx_http_inference_ctx_t *ctx)
{
    off_t                            limit;
    uint64_t                         max;
    ngx_http_inference_loc_conf_t   *ilcf;
    ngx_http_inference_main_conf_t  *imcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    limit = ngx_http_inference_max_body(ctx);

    if (ilcf->max_body > 0) {
        return limit;
    }

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    max = ctx->grpc ? NGX_HTTP_INFERENCE_MESSAGE_MAX
                    : imcf->config.max_json_bytes;

    return ngx_min(limit - (off_t) ctx->body.packed.len, (off_t) max);
}


ngx_int_t
ngx_http_inference_inflated_long(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    if (ilcf->max_body > 0) {
        return ngx_http_inference_body_long(ctx,
                                            "the inflated request body is");
    }

    return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                   "the inflated request body is larger than "
                                   "%O bytes; " INF_INFER_MAX_JSON_SETTING
                                   " or inference_max_body sets another limit",
                                   ngx_http_inference_max_inflated(ctx));
}


/* A load may carry files, and a message of gRPC has no JSON: the location's
   limit of a body is theirs. */

uint64_t
ngx_http_inference_max_text(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_main_conf_t  *imcf;

    if (ngx_http_inference_is_small_call(ctx)) {
        return NGX_HTTP_INFERENCE_CALL_MAX;
    }

    if (ctx->grpc || ngx_http_inference_body_limits_text(ctx)) {
        return ngx_http_inference_max_body(ctx);
    }

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    return imcf->config.max_json_bytes;
}


/* Whether the body is a call's, but not a load's. */

static ngx_uint_t
ngx_http_inference_is_small_call(ngx_http_inference_ctx_t *ctx)
{
    return ngx_http_inference_call_has_body(ctx)
           && !ngx_http_inference_is_load(ctx);
}


/* Whether the location has a limit of its own for a load. */

static ngx_uint_t
ngx_http_inference_body_limits_text(ngx_http_inference_ctx_t *ctx)
{
    return ngx_http_inference_is_load(ctx)
           && ngx_http_inference_limits(ctx->request)->max_body > 0;
}


ngx_int_t
ngx_http_inference_text_long(ngx_http_inference_ctx_t *ctx)
{
    const char  *setting;

    if (ngx_http_inference_is_small_call(ctx)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "request JSON is larger than the limit "
                                       "of %uL bytes, which no setting changes",
                                       NGX_HTTP_INFERENCE_CALL_MAX);
    }

    setting = ngx_http_inference_body_limits_text(ctx)
              ? "inference_max_body" : INF_INFER_MAX_JSON_SETTING;

    return ngx_http_inference_fail_err(ctx,
                   inf_infer_json_long(ngx_http_inference_max_text(ctx),
                                       setting));
}


/*
 * Fails if body and decoded tensors together exceed half of the arena, or the
 * limit of a body: decoded numbers can be larger than their JSON.
 */

ngx_int_t
ngx_http_inference_check_share(ngx_http_inference_ctx_t *ctx,
    uint64_t decoded)
{
    uint64_t                         share, held;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    share = ngx_max(ngx_http_inference_max_body(ctx), imcf->arena / 2);
    share = ngx_min(share, (uint64_t) imcf->arena);

    held = (uint64_t) ctx->body.plain + ctx->body.packed.len;

    if (decoded <= share && held <= share - decoded) {
        return NGX_OK;
    }

    return ngx_http_inference_fail_status(ctx,
                        NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                        "request body of %O bytes, %uL bytes of it compressed "
                        "and %uL bytes of tensors in its JSON are more than "
                        "the %uL bytes of inference_memory that one request "
                        "may hold; inference_max_body sets another limit",
                        ctx->body.plain, ctx->body.packed.len, decoded, share);
}


ngx_int_t
ngx_http_inference_regions_allowed(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    if (ilcf->parts & NGX_HTTP_INFERENCE_SHARED_MEMORY) {
        return NGX_OK;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                   "Client shared memory is disabled. List "
                                   "'shared_memory' in this location's "
                                   "'inference' to enable it (the option "
                                   "--allow-client-shm=true of "
                                   "inference-server).");
}


ngx_int_t
ngx_http_inference_check_regions(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t  i;

    for (i = 0; i < ctx->infer.input_count; i++) {
        if (ctx->infer.inputs[i].source == INF_SOURCE_SHM) {
            return ngx_http_inference_regions_allowed(ctx);
        }
    }

    for (i = 0; i < ctx->infer.output_count; i++) {
        if (ctx->infer.outputs[i].shm_region.len) {
            return ngx_http_inference_regions_allowed(ctx);
        }
    }

    return NGX_OK;
}


/* The configuration of the current location; an internal redirect may have
   changed it. */

static ngx_http_inference_loc_conf_t *
ngx_http_inference_limits(ngx_http_request_t *r)
{
    return ngx_http_get_module_loc_conf(r, ngx_http_inference_module);
}


/* ---- time ---------------------------------------------------------------- */

/* Uses nginx's own count of received bytes, because nginx may buffer bytes
   before the body filter. */

void
ngx_http_inference_start_rate(ngx_http_inference_ctx_t *ctx)
{
    ctx->body.rated = ctx->request->request_length;
    ctx->body.rated_since = ngx_current_msec;

    ngx_http_inference_plan_rate(ctx, 0);
}


/* Sets the timer to the end of the period or to the client's deadline. */

static void
ngx_http_inference_plan_rate(ngx_http_inference_ctx_t *ctx, ngx_msec_t waited)
{
    ngx_msec_t                      next;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    next = ilcf->min_rate.size ? ilcf->min_rate.over - waited
                               : NGX_HTTP_INFERENCE_NO_TIMEOUT;

    if (ctx->client_deadline_ns) {
        ctx->deadline_ns = ctx->client_deadline_ns;
        next = ngx_min(next, ngx_http_inference_time_left(ctx));
    }

    if (next < NGX_HTTP_INFERENCE_NO_TIMEOUT) {
        ngx_add_timer(&ctx->timer, next);
    }
}


ngx_int_t
ngx_http_inference_check_rate(ngx_http_inference_ctx_t *ctx)
{
    off_t                           n;
    ngx_msec_t                      waited;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    if (ctx->client_deadline_ns && ngx_http_inference_time_left(ctx) == 0) {
        return ngx_http_inference_fail_timeout(ctx);
    }

    waited = ngx_current_msec - ctx->body.rated_since;

    if (ilcf->min_rate.size == 0 || waited < ilcf->min_rate.over) {
        ngx_http_inference_plan_rate(ctx, waited);
        return NGX_OK;
    }

    n = ctx->request->request_length - ctx->body.rated;

    if (n * 1000
        >= (off_t) ilcf->min_rate.size * (off_t) ilcf->min_rate.over)
    {
        ngx_http_inference_start_rate(ctx);
        return NGX_OK;
    }

    ctx->cause = INF_CAUSE_TIMED_OUT;

    return ngx_http_inference_fail_status(ctx, NGX_HTTP_REQUEST_TIME_OUT,
                        "%O bytes of the request body have arrived in %M ms; "
                        "inference_min_body_rate is %uz bytes per second",
                        n, ilcf->min_rate.over, ilcf->min_rate.size);
}


void
ngx_http_inference_set_deadline(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                        own;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_inference_limits(ctx->request);

    ctx->deadline_ns = ctx->client_deadline_ns;

    if (ilcf->timeout) {
        own = ctx->turn_ns + (uint64_t) ilcf->timeout * 1000000;

        if (ctx->deadline_ns == 0 || own < ctx->deadline_ns) {
            ctx->deadline_ns = own;
        }
    }
}


void
ngx_http_inference_start_timer(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_set_deadline(ctx);
    ngx_http_inference_arm_timer(ctx);
}


void
ngx_http_inference_arm_timer(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_arm_timer_within(ctx, NGX_HTTP_INFERENCE_NO_TIMEOUT);
}


void
ngx_http_inference_arm_timer_within(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t within)
{
    ngx_msec_t  left;

    left = ngx_http_inference_time_left(ctx);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_add_timer(&ctx->timer, ngx_min(left, within));
}


ngx_msec_t
ngx_http_inference_time_left(ngx_http_inference_ctx_t *ctx)
{
    uint64_t  ms;

    if (ctx->deadline_ns == 0) {
        return NGX_HTTP_INFERENCE_NO_TIMEOUT;
    }

    if (ctx->deadline_ns <= ctx->turn_ns) {
        return 0;
    }

    ms = (ctx->deadline_ns - ctx->turn_ns - 1) / 1000000 + 1;

    return (ngx_msec_t) ngx_min(ms, NGX_HTTP_INFERENCE_NO_TIMEOUT);
}


ngx_int_t
ngx_http_inference_check_timer(ngx_http_inference_ctx_t *ctx)
{
    ngx_msec_t  left;

    left = ngx_http_inference_time_left(ctx);

    if (left == 0) {
        return ngx_http_inference_fail_timeout(ctx);
    }

    ngx_add_timer(&ctx->timer, left);

    return NGX_OK;
}


ngx_uint_t
ngx_http_inference_slice_over(ngx_http_inference_ctx_t *ctx)
{
    return ++ctx->steps >= NGX_HTTP_INFERENCE_SLICE_STEPS
           || inf_clock_ns() - ctx->turn_ns >= NGX_HTTP_INFERENCE_SLICE_NS;
}
