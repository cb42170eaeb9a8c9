/*
 * ngx_http_inference_place.c - places the plain bytes of a body: JSON in one
 *                              store, each binary tensor at its own aligned
 *                              offset in another.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/error.h"
#include "core/proto/infer_request.h"


static uint64_t ngx_http_inference_place_text_size(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_place_next(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_place_text(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_place_text_end(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_place_fits(ngx_http_inference_ctx_t *ctx);
static uint64_t ngx_http_inference_place_offsets(
    ngx_http_inference_ctx_t *ctx, uint64_t *offsets);


ngx_int_t
ngx_http_inference_place(ngx_http_inference_ctx_t *ctx, const u_char *p,
    size_t n)
{
    size_t   room;
    u_char  *dst;

    if (ctx->grpc) {
        return ngx_http_inference_grpc_place(ctx, p, n);
    }

    while (n) {
        if (ngx_http_inference_place_window(ctx, n, &dst, &room) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_memcpy(dst, p, room);

        p += room;
        n -= room;

        if (ngx_http_inference_place_commit(ctx, room) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_place_window(ngx_http_inference_ctx_t *ctx, size_t want,
    u_char **p, size_t *n)
{
    uint64_t                     left, start;
    ngx_http_inference_body_t   *body;
    ngx_http_inference_store_t  *data;

    body = &ctx->body;
    data = &body->data;

    switch (body->place) {

    case NGX_HTTP_INFERENCE_TEXT:

        if (body->text.region == NULL
            && ngx_http_inference_store_open(ctx, &body->text,
                                    ngx_http_inference_place_text_size(ctx))
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (body->header_len >= 0) {
            left = body->header_len - body->text.len;
            want = (size_t) ngx_min((uint64_t) want, left);
        }

        return ngx_http_inference_store_room(ctx, &body->text, want, p, n);

    case NGX_HTTP_INFERENCE_TENSOR:

        start = ctx->offsets[body->tensor];
        left = ctx->infer.inputs[body->tensor].byte_size - body->filled;

        data->len = start + body->filled;

        return ngx_http_inference_store_room(ctx, data,
                                (size_t) ngx_min((uint64_t) want, left), p, n);

    case NGX_HTTP_INFERENCE_FLAT:

        return ngx_http_inference_store_room(ctx, data, want, p, n);

    case NGX_HTTP_INFERENCE_TENSOR_END:
    case NGX_HTTP_INFERENCE_FLAT_END:
        break;
    }

    return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                   "unexpected additional input data for "
                                   "model '%V'", &ctx->names.model);
}


/* The expected length of the text, as far as it is known. */

static uint64_t
ngx_http_inference_place_text_size(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->header_len >= 0) {
        return body->header_len;
    }

    if (body->declared > 0 && body->inflate == NULL) {
        /* room for the name behind a call's body, so that it need not move */
        return body->declared + (ngx_http_inference_call_has_body(ctx)
                                 ? ctx->names.model.len + sizeof(uint32_t) : 0);
    }

    return NGX_HTTP_INFERENCE_STORE_SIZE;
}


ngx_int_t
ngx_http_inference_place_commit(ngx_http_inference_ctx_t *ctx, size_t n)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    body->plain += n;

    switch (body->place) {

    case NGX_HTTP_INFERENCE_TEXT:

        body->text.len += n;

        return ngx_http_inference_place_text(ctx);

    case NGX_HTTP_INFERENCE_TENSOR:

        body->filled += n;
        body->data.len += n;

        return ngx_http_inference_place_next(ctx);

    case NGX_HTTP_INFERENCE_FLAT:

        body->data.len += n;

        if (ngx_http_inference_is_generate(ctx)
            && body->data.len > ngx_http_inference_max_text(ctx))
        {
            return ngx_http_inference_text_long(ctx);
        }

        break;

    case NGX_HTTP_INFERENCE_TENSOR_END:
    case NGX_HTTP_INFERENCE_FLAT_END:
        break;
    }

    return NGX_OK;
}


/* Parses a short text as it arrives. */

static ngx_int_t
ngx_http_inference_place_text(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->text.len > ngx_http_inference_max_text(ctx)) {
        return ngx_http_inference_text_long(ctx);
    }

    if (body->header_len >= 0
        && body->text.len == (uint64_t) body->header_len)
    {
        return ngx_http_inference_place_text_end(ctx);
    }

    if (ngx_http_inference_call_has_body(ctx)) {
        /* parsed once complete */
        return NGX_OK;
    }

    if (body->text.len > NGX_HTTP_INFERENCE_INLINE_TEXT) {
        body->lagging = 1;
    }

    if (body->lagging) {
        return NGX_OK;
    }

    rc = ngx_http_inference_infer_read(ctx);

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* Advances to the next input that needs binary bytes. */

static ngx_int_t
ngx_http_inference_place_next(ngx_http_inference_ctx_t *ctx)
{
    const inf_infer_input_t    *input;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    while (body->tensor < ctx->infer.input_count) {

        input = &ctx->infer.inputs[body->tensor];

        if (input->source == INF_SOURCE_BINARY
            && body->filled < input->byte_size)
        {
            return NGX_OK;
        }

        body->tensor++;
        body->filled = 0;
    }

    body->place = NGX_HTTP_INFERENCE_TENSOR_END;

    return NGX_OK;
}


ngx_uint_t
ngx_http_inference_place_is_full(ngx_http_inference_ctx_t *ctx)
{
    return ctx->body.place == NGX_HTTP_INFERENCE_TENSOR_END
           || ctx->body.place == NGX_HTTP_INFERENCE_FLAT_END;
}


/* Called at the end of the JSON header; tensors follow if it was parsed in
   time. */

static ngx_int_t
ngx_http_inference_place_text_end(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (!ctx->body.lagging) {
        rc = ngx_http_inference_infer_read(ctx);

        if (rc == NGX_OK) {
            return ngx_http_inference_place_plan(ctx);
        }

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    /* later bytes cannot wait: they are kept in one piece */

    ctx->body.lagging = 1;

    return ngx_http_inference_place_flat(ctx);
}


ngx_int_t
ngx_http_inference_place_flat(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                    size;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    size = NGX_HTTP_INFERENCE_STORE_SIZE;

    if (body->declared >= 0 && body->inflate == NULL) {
        size = body->declared - body->text.len;
    }

    body->place = NGX_HTTP_INFERENCE_FLAT;

    if (size == 0) {
        body->place = NGX_HTTP_INFERENCE_FLAT_END;
        return NGX_OK;
    }

    return ngx_http_inference_store_open(ctx, &body->data, size);
}


ngx_int_t
ngx_http_inference_place_plan(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                    end, *offsets;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (ngx_http_inference_place_fits(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    offsets = ngx_pcalloc(ctx->request->pool,
                          (ctx->infer.input_count + 1) * sizeof(uint64_t));
    if (offsets == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    end = ngx_http_inference_place_offsets(ctx, offsets);

    if (end
        && ngx_http_inference_store_open(ctx, &body->data, end) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->offsets = offsets;

    if (ngx_http_inference_is_flat(body)) {
        return NGX_OK;
    }

    body->place = NGX_HTTP_INFERENCE_TENSOR;

    return ngx_http_inference_place_next(ctx);
}


/* Compares the declared tensors with the bytes sent and with the limits. */

static ngx_int_t
ngx_http_inference_place_fits(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t                       *err;
    ngx_http_inference_body_t       *body;
    ngx_http_inference_main_conf_t  *imcf;

    body = &ctx->body;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    if (body->declared >= 0 && body->inflate == NULL) {
        err = inf_infer_request_check_tail(&ctx->infer,
                          body->declared - body->text.len,
                          ngx_http_inference_slice(&ctx->names.model));
        if (err) {
            return ngx_http_inference_fail_err(ctx, err);
        }
    }

    if (ctx->infer.binary_size
        > (uint64_t) ngx_http_inference_max_body(ctx))
    {
        return ngx_http_inference_body_long(ctx,
                                            "the request's binary tensors are");
    }

    if (ctx->infer.binary_size > (uint64_t) imcf->arena) {
        return ngx_http_inference_arena_full(ctx, ctx->infer.binary_size);
    }

    return NGX_OK;
}


/* Sets the offset of each binary tensor and returns the total size; 0 if the
   tensors are kept in one piece. */

static uint64_t
ngx_http_inference_place_offsets(ngx_http_inference_ctx_t *ctx,
    uint64_t *offsets)
{
    uint64_t                  end;
    ngx_uint_t                i;
    const inf_infer_input_t  *input;

    end = 0;

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (input->source != INF_SOURCE_BINARY) {
            continue;
        }

        if (ngx_http_inference_is_flat(&ctx->body)) {
            offsets[i] = input->binary_offset;
            continue;
        }

        offsets[i] = end;
        end = ngx_align(end + input->byte_size, (uint64_t) INF_ARENA_ALIGN);
    }

    return end;
}


ngx_int_t
ngx_http_inference_place_check(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t                  *err;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (ctx->raw || body->stage >= NGX_HTTP_INFERENCE_BODY_CHECKED) {
        return NGX_OK;
    }

    body->stage = NGX_HTTP_INFERENCE_BODY_CHECKED;

    err = inf_infer_request_check_tail(&ctx->infer,
                          body->plain - body->text.len,
                          ngx_http_inference_slice(&ctx->names.model));
    if (err) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_place_end(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    body->stage = NGX_HTTP_INFERENCE_BODY_PLAIN;

    if (ctx->grpc) {
        return ngx_http_inference_grpc_end(ctx);
    }

    if (body->place == NGX_HTTP_INFERENCE_TEXT && body->header_len > 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "inference header size should be in "
                                       "range (0, %O), got: %O",
                                       body->plain, body->header_len);
    }

    if (body->plain == 0) {
        ctx->raw = 1;
    }

    return NGX_OK;
}
