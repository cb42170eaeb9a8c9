/*
 * ngx_http_inference_reply.c - takes, copies and checks the core's replies.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/points.h"
#include "core/base/slice.h"
#include "core/proto/infer_response.h"
#include "core/wire/response_record.h"


static ngx_str_t *ngx_http_inference_last_words(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_log_name(const inf_response_record_t *record,
    inf_ref_t ref, ngx_str_t *name);
static ngx_int_t ngx_http_inference_measure(ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_submission_t *submission, const inf_completion_t *c)
{
    ngx_http_inference_reply_t  *reply;

    reply = &ctx->reply;

    if (c == NULL && submission->sequence) {
        (void) ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "the inference core ended: sequence "
                                       "lost, start again%V",
                                       ngx_http_inference_last_words(ctx));
        return NGX_OK;
    }

    if (c == NULL) {
        ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;
        (void) ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "the inference core ended before it "
                                       "answered%s%V",
                                       ngx_http_inference_is_infer(ctx)
                                       ? "" : ": the call may have been "
                                              "carried out",
                                       ngx_http_inference_last_words(ctx));
        return NGX_OK;
    }

    if (c->flags & INF_COMPLETE_RESPONSE) {

        ctx->replies++;

        if (ctx->replies == 1) {
            reply->epoch = submission->epoch;
            reply->offset = c->offset;
            reply->len = c->length;
            reply->status = c->status;
            reply->held = (c->length != 0);
            reply->traced = (c->traced != 0);

            ngx_http_inference_note_execution(ctx, c);
            ctx->cause = c->cause;

        } else if (c->length) {
            ngx_http_inference_release(submission->epoch, c->offset, 0);
        }
    }

    if (!(c->flags & INF_COMPLETE_FINAL)) {
        return NGX_AGAIN;
    }

    if (ctx->replies == 0 && c->status != INF_OK) {
        ctx->cause = c->cause;
        (void) ngx_http_inference_fail_bare(ctx, c->status);
    }

    return NGX_OK;
}


/* The last core's crash text, to be appended to the client's error; empty if it
   names another model, which only the log may show. */

static ngx_str_t *
ngx_http_inference_last_words(ngx_http_inference_ctx_t *ctx)
{
    u_char     *p, *last;
    ngx_str_t  *text, *model;

    static ngx_str_t   none = ngx_null_string;
    static const char  version[] = " version=";

    text = ngx_http_inference_last_crash();
    model = &ctx->names.model;

    if (text->len == 0) {
        return text;
    }

    p = text->data;
    last = p + text->len;

    while ((p = ngx_strlcasestrn(p, last, (u_char *) "model=",
                                 sizeof("model=") - 2))
           != NULL)
    {
        p += sizeof("model=") - 1;

        if ((size_t) (last - p) < model->len + sizeof(version) - 1
            || ngx_memcmp(p, model->data, model->len) != 0
            || ngx_memcmp(p + model->len, version, sizeof(version) - 1) != 0)
        {
            return &none;
        }
    }

    return text;
}


/* Fails by a status alone: the core had no memory for a text. */

ngx_int_t
ngx_http_inference_fail_bare(ngx_http_inference_ctx_t *ctx, uint32_t status)
{
    inf_err_code_t  code;

    code = INF_STATUS_CODE(status);

    return ngx_http_inference_fail(ctx, code, "the inference failed: %s",
                                   inf_err_code_string(code));
}


/*
 * Fails because the model did not send exactly one response.  For generate the
 * text is Triton's, and the status 200 unless inference_errors is "precise".
 */

ngx_int_t
ngx_http_inference_fail_count(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    static const char  one[] = "generate expects model to produce exactly 1 "
                               "response, use generate stream for model that "
                               "generates various number of responses";

    if (!ngx_http_inference_is_generate(ctx)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                       "expected a single response, got %ui",
                                       ctx->replies);
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    return (ilcf->errors == NGX_HTTP_INFERENCE_ERRORS_PRECISE)
           ? ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "%s", one)
           : ngx_http_inference_fail_status(ctx, NGX_HTTP_OK, "%s", one);
}


ngx_int_t
ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                   failed;
    inf_slice_t                  text;
    inf_response_form_t          form;
    inf_response_record_t       *record;
    ngx_http_inference_reply_t  *reply;

    reply = &ctx->reply;

    if (ctx->replies == 0) {
        return ngx_http_inference_fail_count(ctx);
    }

    if (ngx_http_inference_copy_reply(ctx, reply, &ctx->arena, &record)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    INF_POINT(REPLY_OPENED);

    ngx_http_inference_note_record(ctx, record);

    failed = (record->status != INF_OK);

    if (ctx->replies > 1 && !(failed && ngx_http_inference_is_generate(ctx))) {
        return ngx_http_inference_fail_count(ctx);
    }

    if (failed) {
        text = inf_response_text(record, record->error);
        return ngx_http_inference_fail_text(ctx,
                                            INF_STATUS_CODE(record->status),
                                            text.data, text.len);
    }

    ngx_http_inference_note_response(ctx);

    if (ctx->grpc) {
        return ngx_http_inference_grpc_open_reply(ctx, record,
                     ngx_http_inference_response(reply->epoch, 0,
                                     inf_client_response_size(ctx->client)));
    }

    form = ngx_http_inference_is_generate(ctx) ? INF_RESPONSE_GENERATE
                                               : INF_RESPONSE_INFER;

    return ngx_http_inference_open_record(ctx, record, form, &ctx->arena);
}


ngx_int_t
ngx_http_inference_open_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, inf_response_form_t form,
    inf_arena_t *arena)
{
    inf_err_t               *err;
    const void              *base;
    inf_response_options_t   options;

    base = ngx_http_inference_response(ctx->reply.epoch, 0,
                                       inf_client_response_size(ctx->client));

    ngx_memzero(&options, sizeof(inf_response_options_t));

    options.form = form;

    if (form == INF_RESPONSE_INFER) {
        options.outputs = ctx->infer.outputs;
        options.output_count = ctx->infer.output_count;
        options.binary_data_output = ctx->infer.binary_data_output;
        options.raw = ctx->raw;
    }

    err = inf_response_writer_new(&ctx->writer, record, base, &options,
                                  arena);

    return err ? ngx_http_inference_fail_err(ctx, err) : NGX_OK;
}


ngx_int_t
ngx_http_inference_copy_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_reply_t *reply, inf_arena_t *arena,
    inf_response_record_t **record)
{
    void        *copy;
    size_t       len;
    inf_err_t   *err;
    const void  *shared;

    len = (size_t) reply->len;

    if (len == 0 && reply->status != INF_OK) {
        return ngx_http_inference_fail_bare(ctx, reply->status);
    }

    shared = ngx_http_inference_response(reply->epoch, reply->offset, len);

    if (len > INF_RECORD_MAX || len == 0 || shared == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                       "the core's answer has no record");
    }

    copy = inf_arena_alloc(arena, len);
    if (copy == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    ngx_memcpy(copy, shared, len);

    err = inf_response_record_check(copy, len,
                                    inf_client_response_size(ctx->client));
    if (err) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    *record = copy;

    return NGX_OK;
}


void
ngx_http_inference_drop_response(
    const ngx_http_inference_submission_t *submission,
    const inf_completion_t *c)
{
    if (c && (c->flags & INF_COMPLETE_RESPONSE) && c->length) {
        ngx_http_inference_release(submission->epoch, c->offset, 0);
    }
}


void
ngx_http_inference_note_execution(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    ctx->execution.queue_ns = c->queue_ns;
    ctx->execution.compute_ns = c->compute_ns;
    ctx->execution.batch_size = c->batch_size;
    ctx->execution.device = c->device;
    ctx->execution.input_us = c->compute_input_us;
    ctx->execution.output_us = c->compute_output_us;
    ctx->execution.lookup = c->lookup;
}


void
ngx_http_inference_note_response(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->responses++ == 0) {
        ctx->first_ns = inf_clock_ns();
    }
}


void
ngx_http_inference_note_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record)
{
    ngx_http_inference_log_name(record, record->backend, &ctx->backend);
    ngx_http_inference_log_name(record, record->instance, &ctx->instance);

    if (record->model_version > 0) {
        ctx->version = record->model_version;
    }

    if (record->kv_reported && ctx->load.format) {
        ctx->load.utilization = record->kv_utilization;
        ctx->load.max_tokens = record->kv_max_tokens;
        ctx->load.reported = 1;
    }
}


/* The name is a view into the record's copy, which lives as long as the
   request. */

static void
ngx_http_inference_log_name(const inf_response_record_t *record, inf_ref_t ref,
    ngx_str_t *name)
{
    inf_slice_t  text;

    text = inf_response_text(record, ref);

    name->data = (u_char *) text.data;
    name->len = text.len;
}


ngx_int_t
ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t    *err;
    inf_codec_t   rc;

    do {
        rc = inf_response_prepare(ctx->writer, INF_CODEC_BUDGET, &err);

        if (rc == INF_CODEC_ERROR) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        if (rc == INF_CODEC_AGAIN && ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

    } while (rc == INF_CODEC_AGAIN);

    if (ctx->events) {
        return NGX_OK;
    }

    if (inf_response_binary_size(ctx->writer) == 0
        && inf_response_has_json_data(ctx->writer))
    {
        /* the length is optional */
        return NGX_OK;
    }

    return ngx_http_inference_measure(ctx);
}


static ngx_int_t
ngx_http_inference_measure(ngx_http_inference_ctx_t *ctx)
{
    uint64_t      len;
    inf_err_t    *err;
    inf_codec_t   rc;

    for ( ;; ) {
        rc = inf_response_measure(ctx->writer, INF_CODEC_BUDGET, &len, &err);

        if (rc == INF_CODEC_ERROR) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        if (rc == INF_CODEC_DONE) {
            ctx->json_len = (off_t) len;
            return NGX_OK;
        }

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }
    }
}
