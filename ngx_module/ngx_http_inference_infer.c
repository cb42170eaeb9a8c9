/*
 * ngx_http_inference_infer.c - builds the record of an inference from the
 *                              request's bytes, and submits it.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/points.h"
#include "core/proto/infer_contents.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_request.h"
#include "core/wire/request_record.h"


static ngx_int_t ngx_http_inference_infer_record(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_infer_is_decoded(
    const inf_infer_input_t *input);
static void ngx_http_inference_infer_target(ngx_http_inference_ctx_t *ctx,
    inf_infer_target_t *target);
static ngx_int_t ngx_http_inference_infer_input(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_infer_count(ngx_http_inference_ctx_t *ctx,
    inf_region_t **regions, ngx_uint_t n);
static void ngx_http_inference_infer_clear_gaps(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_infer_clear(u_char *p, uint64_t len);
static uint64_t *ngx_http_inference_infer_absolute(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_infer_regions(
    ngx_http_inference_ctx_t *ctx, inf_region_t **regions);
static void ngx_http_inference_infer_next(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t i);


ngx_int_t
ngx_http_inference_infer_init(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t           *err;
    inf_infer_limits_t   limits;

    if (ctx->grpc) {
        /* the reader is created with its message */
        return NGX_OK;
    }

    if (ngx_http_inference_is_generate(ctx)
        || ctx->body.header_len == 0
        || (ctx->body.declared == 0 && ctx->body.header_len < 0))
    {
        ctx->raw = 1;
        return NGX_OK;
    }

    ngx_memzero(&limits, sizeof(inf_infer_limits_t));
    limits.max_json_bytes = ngx_http_inference_max_text(ctx);

    err = inf_infer_reader_new(&ctx->reader, &ctx->arena, &limits);

    if (err) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_infer_read(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                  last;
    inf_err_t                  *err;
    inf_codec_t                 rc;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (ctx->read) {
        return NGX_OK;
    }

    if (ctx->grpc) {
        return ngx_http_inference_grpc_read(ctx);
    }

    if (ctx->raw) {
        ctx->read = 1;

        err = inf_infer_request_raw(&ctx->infer, &ctx->arena, body->plain);

        if (ngx_http_inference_is_generate(ctx)) {
            /* the core decides which members are inputs */
            ctx->infer.flags |= INF_REQUEST_GENERATE|INF_REQUEST_STREAM;

            ngx_http_inference_load_asked(ctx);

            if (ctx->load.format) {
                ctx->infer.flags |= INF_REQUEST_LOAD_REPORT;
            }
        }

        return err ? ngx_http_inference_fail_err(ctx, err) : NGX_OK;
    }

    last = (body->header_len >= 0)
           ? body->text.len == (uint64_t) body->header_len
           : body->stage >= NGX_HTTP_INFERENCE_BODY_PLAIN;

    for ( ;; ) {
        rc = inf_infer_reader_feed(ctx->reader, (char *) body->text.data,
                                   (size_t) body->text.len, last,
                                   INF_CODEC_BUDGET, &err);

        switch (rc) {

        case INF_CODEC_ERROR:
            return ngx_http_inference_fail_err(ctx, err);

        case INF_CODEC_DONE:
            ctx->read = 1;
            ctx->infer = inf_infer_reader_request(ctx->reader);

            inf_infer_reader_free(ctx->reader);
            ctx->reader = NULL;

            return NGX_OK;

        case INF_CODEC_AGAIN:

            if ((!last && inf_infer_reader_offset(ctx->reader)
                          == body->text.len)
                || ngx_http_inference_slice_over(ctx))
            {
                return NGX_AGAIN;
            }
        }
    }
}


/*
 * Allocates one region for the record and for the tensors decoded from JSON.
 */

static ngx_int_t
ngx_http_inference_infer_record(ngx_http_inference_ctx_t *ctx)
{
    size_t                           size;
    uint64_t                         end;
    ngx_uint_t                       i;
    inf_err_t                       *err;
    inf_infer_target_t               target;
    const inf_infer_input_t         *input;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    if (ngx_http_inference_check_regions(ctx) != NGX_OK
        || ngx_http_inference_forward(ctx) != NGX_OK
        || ngx_http_inference_trace_headers(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_inference_infer_target(ctx, &target);

    err = inf_infer_record_size(&ctx->infer, &target, &size);
    if (err) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    ctx->record_size = size;

    end = ngx_align((uint64_t) size, (uint64_t) INF_ARENA_ALIGN);

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (!ngx_http_inference_infer_is_decoded(input)) {
            continue;
        }

        if (input->byte_size > (uint64_t) imcf->arena) {
            return ngx_http_inference_arena_full(ctx, input->byte_size);
        }

        ctx->offsets[i] = end;
        end = ngx_align(end + input->byte_size, (uint64_t) INF_ARENA_ALIGN);
    }

    if (ngx_http_inference_check_share(ctx,
                         end - ngx_align(size, (uint64_t) INF_ARENA_ALIGN))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_inference_current(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->record = inf_client_alloc(ctx->client, end);

    if (ctx->record == NULL) {
        return ngx_http_inference_arena_full(ctx, end);
    }

    ngx_http_inference_infer_next(ctx, 0);

    return NGX_OK;
}


/* Whether the input's bytes are decoded from a text. */

static ngx_uint_t
ngx_http_inference_infer_is_decoded(const inf_infer_input_t *input)
{
    return input->source == INF_SOURCE_JSON
           || input->source == INF_SOURCE_CONTENTS;
}


/* Sets ctx->input to the next input to decode, from i on. */

static void
ngx_http_inference_infer_next(ngx_http_inference_ctx_t *ctx, ngx_uint_t i)
{
    const inf_infer_input_t  *input;

    for ( /* void */ ; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (input->source == INF_SOURCE_JSON && input->json_length) {
            inf_data_decoder_init(&ctx->decoder.json, input);
            break;
        }

        if (input->source == INF_SOURCE_CONTENTS && input->byte_size) {
            inf_contents_decoder_init(&ctx->decoder.contents, input);
            break;
        }
    }

    ctx->input = i;
}


static void
ngx_http_inference_infer_target(ngx_http_inference_ctx_t *ctx,
    inf_infer_target_t *target)
{
    target->model_name = ngx_http_inference_slice(&ctx->names.model);
    target->model_version = ctx->version;
    target->protocol = ctx->grpc ? INF_PROTOCOL_GRPC : INF_PROTOCOL_HTTP;
    target->data_offsets = NULL;
}


ngx_int_t
ngx_http_inference_infer_decode(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->record == NULL
        && ngx_http_inference_infer_record(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    while (ctx->input < ctx->infer.input_count) {

        rc = ngx_http_inference_infer_input(ctx);

        if (rc != NGX_OK) {
            return rc;
        }

        ngx_http_inference_infer_next(ctx, ctx->input + 1);
    }

    if (!ngx_http_inference_hand_on_wanted(ctx)) {
        ngx_http_inference_store_free(ctx, &ctx->body.text);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_infer_input(ngx_http_inference_ctx_t *ctx)
{
    char         *text;
    u_char       *dst;
    inf_err_t    *err;
    inf_codec_t   rc;

    text = (char *) ctx->body.text.data;

    dst = inf_client_data(ctx->client, ctx->record);
    dst += ctx->offsets[ctx->input];

    for ( ;; ) {
        rc = ctx->grpc
             ? inf_contents_decoder_run(&ctx->decoder.contents, text, dst,
                                        INF_CODEC_BUDGET, &err)
             : inf_data_decoder_run(&ctx->decoder.json, text, dst,
                                    INF_CODEC_BUDGET, &err);

        switch (rc) {

        case INF_CODEC_ERROR:
            return ngx_http_inference_fail_err(ctx, err);

        case INF_CODEC_DONE:
            return NGX_OK;

        case INF_CODEC_AGAIN:

            if (ngx_http_inference_slice_over(ctx)) {
                return NGX_AGAIN;
            }
        }
    }
}


ngx_int_t
ngx_http_inference_infer_submit(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_uint_t           n;
    inf_region_t        *regions[NGX_HTTP_INFERENCE_REGIONS];
    inf_submission_t     s;
    inf_infer_target_t   target;

    ngx_http_inference_infer_target(ctx, &target);

    target.data_offsets = ngx_http_inference_infer_absolute(ctx);

    if (target.data_offsets == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    inf_infer_record_write(&ctx->infer, &target,
                           inf_client_data(ctx->client, ctx->record),
                           ctx->record_size);

    ngx_http_inference_infer_clear_gaps(ctx);

    INF_POINT(RECORD_WRITTEN);

    ngx_memzero(&s, sizeof(inf_submission_t));

    s.op = INF_SUBMIT_INFER;
    s.offset = ctx->record->offset;
    s.length = ctx->record_size;
    s.deadline_ns = ctx->deadline_ns;
    s.received_ns = ctx->received_ns;
    ngx_http_inference_stream_name(ctx, &s);

    if (ctx->submission.begun) {
        s.flags |= INF_SUBMIT_FLAG_SUSPECT;

    } else if (ctx->submission.exits > 1) {
        s.flags |= INF_SUBMIT_FLAG_ALONE;
    }

    if (ctx->submission.exits > 0) {
        s.flags |= INF_SUBMIT_FLAG_LOST;
    }

    n = ngx_http_inference_infer_regions(ctx, regions);

    if (ctx->message) {
        ngx_http_inference_infer_count(ctx, regions, n);
    }

    /* another core or handler may get the bytes */

    ctx->submission.keep = 1;

    rc = ngx_http_inference_submit(&ctx->submission, ctx->epoch, &s, regions,
                                   n);

    if (rc == NGX_OK && (s.flags & INF_SUBMIT_FLAG_SUSPECT)) {
        (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->suspects,
                                    1);
    }

    if (rc == NGX_OK) {
        /* the client frees the regions */
        ctx->record = NULL;
        ctx->body.data.region = NULL;
        return NGX_OK;
    }

    if (rc == NGX_BUSY) {
        ctx->cause = INF_CAUSE_FULL;

        return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "too many requests are in flight");
    }

    return NGX_DECLINED;
}


/* Counts the bytes of a message, which a stream holds until its last
   response. */

static void
ngx_http_inference_infer_count(ngx_http_inference_ctx_t *ctx,
    inf_region_t **regions, ngx_uint_t n)
{
    uint64_t    size;
    ngx_uint_t  i;

    size = 0;

    for (i = 0; i < n; i++) {
        size += regions[i]->charged;
    }

    ngx_http_inference_stream_count(ctx, size);
}


/*
 * Clears the gaps: a backend may read to the end of a tensor's last
 * INF_ARENA_ALIGN bytes, which must not show an earlier request's data.
 */

static void
ngx_http_inference_infer_clear_gaps(ngx_http_inference_ctx_t *ctx)
{
    u_char                     *record;
    ngx_uint_t                  i;
    const inf_infer_input_t    *input;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    record = inf_client_data(ctx->client, ctx->record);

    ngx_http_inference_infer_clear(record, ctx->record_size);

    if (body->data.region) {
        ngx_http_inference_infer_clear(body->data.data, body->data.len);
    }

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (ngx_http_inference_infer_is_decoded(input)) {
            ngx_http_inference_infer_clear(record + ctx->offsets[i],
                                           input->byte_size);

        } else if (input->source != INF_SOURCE_SHM
                   && !ngx_http_inference_is_flat(body)
                   && input->byte_size)
        {
            ngx_http_inference_infer_clear(body->data.data + ctx->offsets[i],
                                           input->byte_size);
        }
    }
}


/* Clears from p + len to the next aligned address; p is aligned. */

static void
ngx_http_inference_infer_clear(u_char *p, uint64_t len)
{
    ngx_memzero(p + len, ngx_align(len, (uint64_t) INF_ARENA_ALIGN) - len);
}


/* Converts offsets in a region to offsets in the arena. */

static uint64_t *
ngx_http_inference_infer_absolute(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                 *offsets;
    ngx_uint_t                i;
    const inf_infer_input_t  *input;

    if (ctx->absolute == NULL) {
        ctx->absolute = inf_arena_calloc(&ctx->arena,
                                         ctx->infer.input_count + 1,
                                         sizeof(uint64_t));
        if (ctx->absolute == NULL) {
            return NULL;
        }
    }

    offsets = ctx->absolute;

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (input->byte_size == 0) {
            continue;
        }

        switch (input->source) {

        case INF_SOURCE_JSON:
        case INF_SOURCE_CONTENTS:
            offsets[i] = ctx->offsets[i] + ctx->record->offset;
            break;

        case INF_SOURCE_BINARY:
        case INF_SOURCE_RAW:
            offsets[i] = ctx->offsets[i] + ctx->body.data.region->offset;
            break;

        case INF_SOURCE_SHM:
            break;
        }
    }

    return offsets;
}


static ngx_uint_t
ngx_http_inference_infer_regions(ngx_http_inference_ctx_t *ctx,
    inf_region_t **regions)
{
    ngx_uint_t  n;

    n = 0;

    regions[n++] = ctx->record;

    if (ctx->body.data.region) {
        regions[n++] = ctx->body.data.region;
    }

    return n;
}
