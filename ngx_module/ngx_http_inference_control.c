/*
 * ngx_http_inference_control.c - calls of the core: health, metadata, config,
 *                                models that come and go.  A protobuf message
 *                                goes, the REST body that answers it comes
 *                                back.
 */

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/message.h"

#include "core_calls.pb-c.h"
#include "grpc_service.pb-c.h"


/* of the text of a call's error */
#define NGX_HTTP_INFERENCE_CONTROL_ERROR  ((size_t) 64 * 1024)


static ngx_int_t ngx_http_inference_control_pack(
    ngx_http_inference_ctx_t *ctx, inf_submission_t *s);
static ngx_int_t ngx_http_inference_control_record(
    ngx_http_inference_ctx_t *ctx, const ProtobufCMessage *m);
static char *ngx_http_inference_control_text(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *s);
static ngx_int_t ngx_http_inference_control_send(
    ngx_http_inference_ctx_t *ctx, inf_submission_t *s,
    inf_region_t **region);
static void ngx_http_inference_control_answer(
    ngx_http_inference_ticket_t *ticket, const inf_completion_t *c);
static ngx_int_t ngx_http_inference_control_reply(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_control_failed(
    ngx_http_inference_ctx_t *ctx, const void *text, size_t len);
static ngx_int_t ngx_http_inference_control_output(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *answer);
static ngx_buf_t *ngx_http_inference_control_shown(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_buf_t *ngx_http_inference_control_counters(ngx_http_request_t *r);


ngx_int_t
ngx_http_inference_control(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_start_timer(ctx);

    if (ngx_http_inference_control_submit(ctx) != NGX_OK) {
        return ngx_http_inference_reject_early(ctx);
    }

    ngx_http_inference_body_stop(ctx);

    ctx->request->main->count++;

    if (!ctx->request->discard_body) {
        ngx_http_inference_watch(ctx);
    }

    return NGX_DONE;
}


ngx_int_t
ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t          rc;
    inf_region_t     **region;
    inf_submission_t   s;

    ngx_memzero(&s, sizeof(inf_submission_t));

    s.op = INF_SUBMIT_CALL;
    s.flags = INF_SUBMIT_FLAG_REST_ANSWER;
    s.received_ns = ctx->received_ns;
    s.deadline_ns = ctx->deadline_ns;

    if (ngx_http_inference_current(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_call_has_body(ctx)) {
        rc = ngx_http_inference_repository_pack(ctx, &s);

        region = &ctx->body.text.region;
        s.length = ctx->body.text.len;

    } else {
        rc = ngx_http_inference_control_pack(ctx, &s);

        region = &ctx->record;
        s.length = ctx->record_size;
    }

    if (rc != NGX_OK
        || ngx_http_inference_control_send(ctx, &s, region) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_READING) {
        ngx_http_inference_watch(ctx);
    }

    ctx->state = NGX_HTTP_INFERENCE_WAITING;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_control_pack(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s)
{
    Inference__ModelReadyRequest      model_ready;
    Inference__ServerReadyRequest     ready;
    Inference__ModelConfigRequest     config;
    Inference__ModelMetadataRequest   model_metadata;
    Inference__ServerMetadataRequest  metadata;
    NginxInference__MetricsRequest    metrics;
    Inference__ModelStatisticsRequest statistics;

    switch (ctx->endpoint->verb) {

    case NGX_HTTP_INFERENCE_SERVER_READY:
        inference__server_ready_request__init(&ready);
        s->method = INF_METHOD_SERVER_READY;
        return ngx_http_inference_control_record(ctx, &ready.base);

    case NGX_HTTP_INFERENCE_MODEL_READY:
        inference__model_ready_request__init(&model_ready);
        model_ready.name = ngx_http_inference_control_text(ctx, &ctx->model);
        model_ready.version = ngx_http_inference_control_text(ctx,
                                                     &ctx->version_text);
        s->method = INF_METHOD_MODEL_READY;
        return ngx_http_inference_control_record(ctx, &model_ready.base);

    case NGX_HTTP_INFERENCE_SERVER_METADATA:
        inference__server_metadata_request__init(&metadata);
        s->method = INF_METHOD_SERVER_METADATA;
        return ngx_http_inference_control_record(ctx, &metadata.base);

    case NGX_HTTP_INFERENCE_MODEL_METADATA:
        inference__model_metadata_request__init(&model_metadata);
        model_metadata.name = ngx_http_inference_control_text(ctx,
                                                     &ctx->model);
        model_metadata.version = ngx_http_inference_control_text(ctx,
                                                     &ctx->version_text);
        s->method = INF_METHOD_MODEL_METADATA;
        return ngx_http_inference_control_record(ctx, &model_metadata.base);

    case NGX_HTTP_INFERENCE_MODEL_CONFIG:
        inference__model_config_request__init(&config);
        config.name = ngx_http_inference_control_text(ctx, &ctx->model);
        config.version = ngx_http_inference_control_text(ctx,
                                                     &ctx->version_text);
        s->method = INF_METHOD_MODEL_CONFIG;
        return ngx_http_inference_control_record(ctx, &config.base);

    case NGX_HTTP_INFERENCE_STATISTICS_READ:
        inference__model_statistics_request__init(&statistics);
        statistics.name = ngx_http_inference_control_text(ctx, &ctx->model);
        statistics.version = ngx_http_inference_control_text(ctx,
                                                     &ctx->version_text);
        s->method = INF_METHOD_MODEL_STATISTICS;
        return ngx_http_inference_control_record(ctx, &statistics.base);

    case NGX_HTTP_INFERENCE_METRICS_TEXT:
        nginx_inference__metrics_request__init(&metrics);
        s->method = INF_METHOD_METRICS;
        return ngx_http_inference_control_record(ctx, &metrics.base);

    case NGX_HTTP_INFERENCE_SERVER_LIVE:
    case NGX_HTTP_INFERENCE_MODEL_INFER:
    case NGX_HTTP_INFERENCE_REPOSITORY_INDEX:
    case NGX_HTTP_INFERENCE_REPOSITORY_LOAD:
    case NGX_HTTP_INFERENCE_REPOSITORY_UNLOAD:
    case NGX_HTTP_INFERENCE_REPOSITORY_NAMED:
    case NGX_HTTP_INFERENCE_NOT_BUILT:
        break;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                   "the %V endpoint is no call of the core",
                                   &ctx->endpoint->name);
}


/* NULL makes packing fail below; the texts hold no NUL (nginx rejects it). */

static char *
ngx_http_inference_control_text(ngx_http_inference_ctx_t *ctx, ngx_str_t *s)
{
    return inf_arena_strdup(&ctx->arena, s->len ? (char *) s->data : "",
                            s->len);
}


static ngx_int_t
ngx_http_inference_control_record(ngx_http_inference_ctx_t *ctx,
    const ProtobufCMessage *m)
{
    inf_buf_t   packed;
    inf_err_t  *err;

    inf_buf_init(&packed);

    err = inf_message_pack(m, &packed);

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


static ngx_int_t
ngx_http_inference_control_send(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s, inf_region_t **region)
{
    ngx_int_t  rc;

    s->offset = (*region)->offset;

    ctx->ticket.data = ctx;
    ctx->ticket.answer = ngx_http_inference_control_answer;

    rc = ngx_http_inference_submit(&ctx->ticket, ctx->epoch, s,
                                   region, 1);

    if (rc == NGX_OK) {
        *region = NULL;
        return NGX_OK;
    }

    ctx->retry_after = 1;

    if (rc == NGX_BUSY) {
        ctx->cause = INF_CAUSE_FULL;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   (rc == NGX_BUSY)
                                   ? "too many requests are in flight"
                                   : "the inference core is not running");
}


static void
ngx_http_inference_control_answer(ngx_http_inference_ticket_t *ticket,
    const inf_completion_t *c)
{
    uint64_t                   began_ns;
    ngx_connection_t          *conn;
    ngx_http_inference_ctx_t  *ctx;

    began_ns = inf_clock_ns();
    ctx = ticket->data;
    conn = ctx->request->connection;

    if (ngx_http_inference_take_reply(ctx, ticket, c) == NGX_AGAIN) {
        return;
    }

    if (ctx->failed || ngx_http_inference_control_reply(ctx) != NGX_OK) {
        ngx_http_inference_reject(ctx);
    }

    ngx_http_inference_turn_ended(began_ns);

    ngx_http_run_posted_requests(conn);
}


/*
 * NGX_OK: it was sent.  The core has made the REST body: a long one goes to
 * the socket from the response arena.
 */

static ngx_int_t
ngx_http_inference_control_reply(ngx_http_inference_ctx_t *ctx)
{
    size_t       len;
    ngx_int_t    rc;
    ngx_str_t    body;
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
        return ngx_http_inference_control_failed(ctx, answer, len);
    }

    body.data = (u_char *) answer;
    body.len = len;

    if (ctx->reply.held && len <= INF_CALL_COPIED) {

        body.data = ngx_pnalloc(ctx->request->pool, len);
        if (body.data == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        ngx_memcpy(body.data, answer, len);

        ctx->reply.held = 0;
        ngx_http_inference_release(ctx->reply.epoch, ctx->reply.offset);
    }

    rc = ngx_http_inference_control_output(ctx, &body);

    ngx_http_inference_finalize(ctx, rc);

    return NGX_OK;
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

    if (answer->len) {
        out[n++].buf = ngx_http_inference_control_shown(r, answer);
    }

    type = (n || ngx_http_inference_call_has_body(ctx)) ? &json : &text;

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_METRICS_TEXT) {
        out[n++].buf = ngx_http_inference_control_counters(r);
        type = &metrics;
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


/* Over the arena: it is released with the request's pool. */

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


/* Counters of the workers, which the core does not have. */

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
