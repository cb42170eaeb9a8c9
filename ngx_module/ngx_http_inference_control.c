/*
 * ngx_http_inference_control.c - calls of the core: health, metadata, config,
 *                                loads and unloads of models.  The request is a
 *                                protobuf message or the unparsed REST body,
 *                                because parsing it would block the event loop;
 *                                the answer is a REST body.
 */

#include "ngx_module/ngx_http_inference_control.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_join.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/proto/message.h"

#include "grpc_service.pb-c.h"


/* maximum text of a call's error */
#define NGX_HTTP_INFERENCE_CONTROL_ERROR  ((size_t) 64 * 1024)


static ngx_int_t ngx_http_inference_control_make(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_control_body(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_control_own_message(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_control_message(
    ngx_http_inference_ctx_t *ctx);
static char *ngx_http_inference_control_text(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *s);
static ngx_int_t ngx_http_inference_control_send(
    ngx_http_inference_ctx_t *ctx, inf_submission_t *s,
    inf_region_t **region);
static ngx_int_t ngx_http_inference_control_take(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *body);
static ngx_uint_t ngx_http_inference_control_unready(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_control_failed(
    ngx_http_inference_ctx_t *ctx, const void *text, size_t len);
static ngx_int_t ngx_http_inference_control_output(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *answer);
static ngx_buf_t *ngx_http_inference_control_shown(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_buf_t *ngx_http_inference_control_counters(ngx_http_request_t *r);


ngx_int_t
ngx_http_inference_control_room(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_store_t  *text;

    text = &ctx->body.text;

    if (text->region == NULL) {
        return NGX_OK;
    }

    return ngx_http_inference_store_ensure(ctx, text,
                                   ctx->names.model.len + sizeof(uint32_t));
}


ngx_uint_t
ngx_http_inference_control_asks_now(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint->call == INF_METHOD_SERVER_READY
           || ctx->endpoint->call == INF_METHOD_STATUS;
}


ngx_int_t
ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx)
{
    inf_submission_t  s;

    ngx_memzero(&s, sizeof(inf_submission_t));

    s.op = INF_SUBMIT_CALL;
    s.method = ctx->endpoint->call;
    s.flags = ctx->submission.taken ? INF_SUBMIT_FLAG_AGAIN : 0;

    s.received_ns = ctx->received_ns;
    s.deadline_ns = ctx->deadline_ns;

    if (ngx_http_inference_current(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a retried call has its complete record */

    if (ctx->retry == NULL && ngx_http_inference_control_make(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_join_begin(ctx) != NGX_OK
        || ngx_http_inference_missing_begin(ctx) != NGX_OK)
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (ctx->grpc == NULL || ngx_http_inference_join_wants_text(ctx)) {
        s.flags |= INF_SUBMIT_FLAG_REST_ANSWER;
    }

    if (!ngx_http_inference_call_has_body(ctx)) {
        s.length = ctx->record_size;
        return ngx_http_inference_control_send(ctx, &s, &ctx->record);
    }

    if (ctx->grpc == NULL) {
        s.flags |= INF_SUBMIT_FLAG_REST;
    }

    s.length = ctx->body.text.len;

    return ngx_http_inference_control_send(ctx, &s, &ctx->body.text.region);
}


static ngx_int_t
ngx_http_inference_control_make(ngx_http_inference_ctx_t *ctx)
{
    if (!ngx_http_inference_call_has_body(ctx)) {
        return ngx_http_inference_control_message(ctx);
    }

    return ctx->grpc ? ngx_http_inference_control_own_message(ctx)
                     : ngx_http_inference_control_body(ctx);
}


/* Appends the model's name and its length to the body. */

static ngx_int_t
ngx_http_inference_control_body(ngx_http_inference_ctx_t *ctx)
{
    uint32_t                     len;
    ngx_http_inference_store_t  *text;

    text = &ctx->body.text;
    len = (uint32_t) ctx->names.model.len;

    if (text->region == NULL
        && ngx_http_inference_store_open(ctx, text, len + sizeof(len))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_inference_store_put(ctx, text, ctx->names.model.data, len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_store_put(ctx, text, &len, sizeof(len));
}


/* The message of a gRPC call; an empty message has no region yet. */

static ngx_int_t
ngx_http_inference_control_own_message(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->body.text.region) {
        return NGX_OK;
    }

    return ngx_http_inference_store_open(ctx, &ctx->body.text, 1);
}


/*
 * Builds the message of a call without a body from model and version.  All
 * messages of such calls have them as fields 1 and 2, or are empty; only that
 * of trace settings differs.
 */

static ngx_int_t
ngx_http_inference_control_message(ngx_http_inference_ctx_t *ctx)
{
    inf_buf_t                        packed;
    inf_err_t                       *err;
    Inference__ModelReadyRequest     m;
    Inference__TraceSettingRequest   trace;

    inf_buf_init(&packed);

    err = NULL;

    if (ctx->names.model.len
        && ctx->endpoint->call == INF_METHOD_TRACE_SETTING)
    {
        inference__trace_setting_request__init(&trace);

        trace.model_name = ngx_http_inference_control_text(ctx,
                                                           &ctx->names.model);

        err = inf_message_pack(&trace.base, &packed);

    } else if (ctx->names.model.len) {
        inference__model_ready_request__init(&m);

        m.name = ngx_http_inference_control_text(ctx, &ctx->names.model);
        m.version = ngx_http_inference_control_text(ctx, &ctx->names.version);

        err = inf_message_pack(&m.base, &packed);
    }

    if (err) {
        inf_buf_fini(&packed);
        return ngx_http_inference_fail_err(ctx, err);
    }

    ctx->record_size = packed.len;
    ctx->record = inf_client_alloc_call(ctx->client, packed.len);

    if (ctx->record && packed.len) {
        ngx_memcpy(inf_client_data(ctx->client, ctx->record), packed.data,
                   packed.len);
    }

    inf_buf_fini(&packed);

    if (ctx->record == NULL) {
        return ngx_http_inference_arena_full(ctx, ctx->record_size);
    }

    return NGX_OK;
}


/* A copy with a NUL.  NULL makes packing fail later; nginx rejects texts with a
   NUL. */

static char *
ngx_http_inference_control_text(ngx_http_inference_ctx_t *ctx, ngx_str_t *s)
{
    return inf_arena_strdup(&ctx->arena, s->len ? (char *) s->data : "",
                            s->len);
}


static ngx_int_t
ngx_http_inference_control_send(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s, inf_region_t **region)
{
    ngx_int_t  rc;

    s->offset = (*region)->offset;

    /* another core may get the bytes */

    ctx->submission.keep = 1;

    rc = ngx_http_inference_submit(&ctx->submission, ctx->epoch, s,
                                   region, 1);

    if (rc == NGX_OK) {
        *region = NULL;
        return NGX_OK;
    }

    if (rc == NGX_BUSY) {
        ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;
        ctx->cause = INF_CAUSE_FULL;

        return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "too many requests are in flight");
    }

    return NGX_DECLINED;
}


/*
 * Sends the core's REST body; a long one directly from the response arena.
 */

ngx_int_t
ngx_http_inference_control_respond(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;
    ngx_str_t  body;

    rc = ngx_http_inference_missing(ctx, &body);

    if (rc == NGX_DECLINED) {

        if (!ngx_http_inference_join_waits(ctx)
            && ngx_http_inference_control_take(ctx, &body) != NGX_OK)
        {
            return NGX_ERROR;
        }

        rc = ngx_http_inference_join_end(ctx, &body);
    }

    if (rc == NGX_AGAIN) {
        /* a turn is posted when the upstream has answered */
        return NGX_DONE;
    }

    if (rc != NGX_OK || ngx_http_inference_load_queue(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->rc = ctx->grpc ? ngx_http_inference_grpc_answer(ctx, &body)
                        : ngx_http_inference_control_output(ctx, &body);

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_control_take(ngx_http_inference_ctx_t *ctx, ngx_str_t *body)
{
    size_t       len;
    const void  *answer;

    len = (size_t) ctx->reply.len;
    answer = NULL;

    if (ctx->reply.held) {
        answer = ngx_http_inference_response(ctx->reply.epoch,
                                             ctx->reply.offset, len);

        if (answer == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "cannot take the core's answer");
        }
    }

    if (ctx->reply.status != INF_OK) {

        if (ngx_http_inference_control_unready(ctx)) {
            /* "ready" is false in a message without it */
            ngx_str_null(body);
            return NGX_OK;
        }

        return ngx_http_inference_control_failed(ctx, answer, len);
    }

    body->data = (u_char *) answer;
    body->len = len;

    if (ctx->reply.held && len <= INF_CALL_COPIED) {

        body->data = ngx_pnalloc(ctx->request->pool, len);
        if (body->data == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        ngx_memcpy(body->data, answer, len);

        ctx->reply.held = 0;
        ngx_http_inference_release(ctx->reply.epoch, ctx->reply.offset, 0);
    }

    return NGX_OK;
}


/* Whether a model that does not serve is reported as not ready, not as an error
   that error_page hands on. */

static ngx_uint_t
ngx_http_inference_control_unready(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t  status;

    if (!ctx->grpc || ctx->cause != INF_CAUSE_NOT_READY) {
        return 0;
    }

    ctx->cause = INF_CAUSE_NONE;
    status = ngx_http_inference_status(ctx,
                                       INF_STATUS_CODE(ctx->reply.status));

    return ngx_http_inference_page_of(ctx, status) == NULL;
}


static ngx_int_t
ngx_http_inference_control_failed(ngx_http_inference_ctx_t *ctx,
    const void *text, size_t len)
{
    return ngx_http_inference_fail_text(ctx,
                          INF_STATUS_CODE(ctx->reply.status), len ? text : "",
                          ngx_min(len, NGX_HTTP_INFERENCE_CONTROL_ERROR));
}


static ngx_int_t
ngx_http_inference_control_output(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *answer)
{
    ngx_str_t           *type;
    ngx_uint_t           i, n;
    ngx_chain_t          out[2];
    ngx_http_request_t  *r;

    static ngx_str_t  json = ngx_string("application/json");
    static ngx_str_t  text = ngx_string("text/plain");
    static ngx_str_t  metrics = ngx_string("text/plain; charset=utf-8");

    r = ctx->request;
    n = 0;

    if (ctx->endpoint->call == INF_METHOD_STATUS && answer->len) {
        return ngx_http_inference_status_json(r, answer);
    }

    if (answer->len) {
        out[n++].buf = ngx_http_inference_control_shown(r, answer);
    }

    type = (n || ngx_http_inference_call_has_body(ctx)) ? &json : &text;

    if (ctx->endpoint->call == INF_METHOD_METRICS) {
        out[n++].buf = ngx_http_inference_control_counters(r);
        type = &metrics;

    } else {
        ngx_http_inference_keep_plain(r);
    }

    for (i = 0; i < n; i++) {

        if (out[i].buf == NULL) {
            return NGX_ERROR;
        }

        out[i].next = (i + 1 < n) ? &out[i + 1] : NULL;
    }

    return ngx_http_inference_send_chain(r, NGX_HTTP_OK, type,
                                         n ? out : NULL);
}


/* A buffer over the response arena, which is released with the request's
   pool. */

static ngx_buf_t *
ngx_http_inference_control_shown(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_buf_t  *b;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NULL;
    }

    b->memory = 1;
    b->start = text->data;
    b->pos = b->start;
    b->last = b->pos + text->len;
    b->end = b->last;

    return b;
}


/* A buffer with the workers' counters, which the core does not have. */

static ngx_buf_t *
ngx_http_inference_control_counters(ngx_http_request_t *r)
{
    ngx_buf_t  *b;
    inf_buf_t   text;

    inf_buf_init(&text);
    ngx_http_inference_counters_text(&text);

    b = text.failed ? NULL : ngx_create_temp_buf(r->pool, text.len);

    if (b) {
        b->last = ngx_cpymem(b->pos, text.data, text.len);
    }

    inf_buf_fini(&text);

    return b;
}
