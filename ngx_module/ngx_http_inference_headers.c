/*
 * ngx_http_inference_headers.c - reads the request's headers on its body,
 *                                before the body is received.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_directives.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"


static ngx_uint_t ngx_http_inference_headers_of_main(ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_headers_length(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_headers_foreign_length(
    ngx_http_inference_ctx_t *ctx, ngx_http_request_body_t *rb);
static ngx_http_request_body_t *ngx_http_inference_headers_foreign(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_headers_find(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len);
static ngx_int_t ngx_http_inference_headers_type(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len);
static ngx_int_t ngx_http_inference_headers_encoding(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_headers_json_len(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *value);
static ngx_int_t ngx_http_inference_headers_limits(
    ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_headers_check(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                   header_len;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    body->header_len = -1;
    body->declared = 0;

    if (ngx_http_inference_headers_of_main(ctx->request)) {
        body->origin = NGX_HTTP_INFERENCE_BODY_MAIN;
        return NGX_OK;
    }

    body->origin = NGX_HTTP_INFERENCE_BODY_OWN;

    ngx_str_null(&header_len);

    if (ngx_http_inference_headers_length(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->grpc) {
        return ngx_http_inference_headers_limits(ctx);
    }

    if (ngx_http_inference_headers_find(ctx, &header_len) != NGX_OK
        || ngx_http_inference_headers_type(ctx, &header_len) != NGX_OK
        || ngx_http_inference_headers_encoding(ctx) != NGX_OK
        || ngx_http_inference_headers_json_len(ctx, &header_len) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_headers_limits(ctx);
}


/* Whether this is a subrequest, and no handler has read main's body. */

static ngx_uint_t
ngx_http_inference_headers_of_main(ngx_http_request_t *r)
{
    ngx_http_request_t  *mr;

    mr = r->main;

    return r != mr && mr->request_body == NULL && !mr->discard_body
           && (mr->headers_in.content_length_n > 0 || mr->headers_in.chunked);
}


/* Sets the length of the body, or -1 if it is not known. */

static ngx_int_t
ngx_http_inference_headers_length(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t       *r;
    ngx_http_request_body_t  *rb;

    r = ctx->request;
    rb = ngx_http_inference_headers_foreign(r);

    if (rb || r != r->main || r->discard_body) {
        return ngx_http_inference_headers_foreign_length(ctx, rb);
    }

    if (r->headers_in.content_length_n >= 0) {
        ctx->body.declared = r->headers_in.content_length_n;

    } else if (r->headers_in.chunked) {
        ctx->body.declared = -1;
    }

    return NGX_OK;
}


/* Sets the length of a body that another handler has received: rb, or NULL
   without a body. */

static ngx_int_t
ngx_http_inference_headers_foreign_length(ngx_http_inference_ctx_t *ctx,
    ngx_http_request_body_t *rb)
{
    ngx_chain_t                *cl;
    ngx_http_request_t         *r;
    ngx_http_inference_body_t  *body;

    r = ctx->request;
    body = &ctx->body;

    body->origin = NGX_HTTP_INFERENCE_BODY_FOREIGN;

    if (rb && rb->rest > 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "the body of this request is still "
                                       "being received by another handler");
    }

    body->in = rb ? rb->bufs : NULL;

    for (cl = body->in; cl; cl = cl->next) {
        body->declared += ngx_buf_size(cl->buf);
    }

    if (body->declared == 0 && r != r->main
        && !ngx_http_inference_call_has_body(ctx))
    {
        /* an auth_request without a body must not succeed */
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "an inference needs a body and "
                                       "this subrequest has none");
    }

    return NGX_OK;
}


/* The received body of the request, or of main for a subrequest. */

static ngx_http_request_body_t *
ngx_http_inference_headers_foreign(ngx_http_request_t *r)
{
    if (r != r->main
        && (r->request_body == NULL || r->request_body->bufs == NULL))
    {
        return r->main->request_body;
    }

    return r->request_body;
}


static ngx_int_t
ngx_http_inference_headers_find(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &ctx->request->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (ngx_http_inference_field_is(h, "content-encoding")) {
            ctx->body.encoding = h->value;

        } else if (ngx_http_inference_field_is(h,
                                          "inference-header-content-length"))
        {
            *header_len = h->value;

            if (h->value.len == 0 && !ngx_http_inference_is_generate(ctx)) {
                return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                    "Unable to parse Inference-Header-Content-Length, got: ");
            }
        }
    }

    return NGX_OK;
}


/* The length of the JSON in the media type: "inference_binary_type". */

static ngx_int_t
ngx_http_inference_headers_type(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len)
{
    size_t                          len;
    u_char                         *p, *last;
    ngx_str_t                      *type, *value;
    ngx_table_elt_t                *h;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);
    type = &ilcf->binary_type;
    h = ctx->request->headers_in.content_type;

    if (type->len == 0 || h == NULL || ngx_http_inference_call_has_body(ctx)
        || ngx_http_inference_is_generate(ctx))
    {
        return NGX_OK;
    }

    value = &h->value;
    last = value->data + value->len;

    for (p = value->data; /* void */ ; p++) {

        if ((size_t) (last - p) < type->len) {
            return NGX_OK;
        }

        if (ngx_strncasecmp(p, type->data, type->len) == 0) {
            break;
        }
    }

    if (p != value->data) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
            "expect MIME type for binary data starts with '%V', got: %V",
            type, value);
    }

    header_len->data = value->data + type->len;

    for (p = header_len->data; p < last && *p != ';' && *p != ' '; p++) {
        /* void */
    }

    header_len->len = p - header_len->data;

    p = header_len->data;
    len = header_len->len;

    if (len && *p == '-') {
        p++;
        len--;
    }

    if (ngx_atoof(p, len) == NGX_ERROR) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
            "Unable to parse inference header size, got: %V", header_len);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_headers_encoding(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                  *value;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    value = &body->encoding;

#define ngx_http_inference_is(v, s)                                           \
    ((v)->len == sizeof(s) - 1                                                \
     && ngx_strncmp((v)->data, s, sizeof(s) - 1) == 0)

    if (value->len == 0 || ngx_http_inference_is(value, "identity")) {
        return NGX_OK;
    }

    if (!ngx_http_inference_is(value, "gzip")
        && !ngx_http_inference_is(value, "deflate"))
    {
        ctx->hint = NGX_HTTP_INFERENCE_ACCEPT_ENCODING;

        return ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                       "Unsupported compression type");
    }

    if (body->declared == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "nothing to be decompressed: the body "
                                       "is empty but its Content-Encoding is "
                                       "%V", value);
    }

    body->inflate = ngx_http_inference_inflate_new(ctx->request->pool);
    if (body->inflate == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_headers_json_len(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value)
{
    off_t                       n;
    ngx_uint_t                  minus;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (value->len == 0 || ngx_http_inference_call_has_body(ctx)
        || ngx_http_inference_is_generate(ctx))
    {
        return NGX_OK;
    }

    minus = (value->len > 1 && value->data[0] == '-');

    n = ngx_atoof(value->data + minus, value->len - minus);

    if (n == NGX_ERROR) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
            "Unable to parse Inference-Header-Content-Length, got: %V", value);
    }

    body->header_len = n;

    if (minus
        || (body->declared >= 0 && body->inflate == NULL
            && n > body->declared))
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "inference header size should be in "
                                       "range (0, %O), got: %V",
                                       ngx_max(body->declared, 0), value);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_headers_limits(ngx_http_inference_ctx_t *ctx)
{
    off_t                       text;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->declared > ngx_http_inference_max_body(ctx)) {
        return ngx_http_inference_body_long(ctx, "request body is");
    }

    text = body->header_len;

    if (text < 0 && body->inflate == NULL) {
        text = body->declared;
    }

    if (text > (off_t) ngx_http_inference_max_text(ctx)) {
        return ngx_http_inference_text_long(ctx);
    }

    return NGX_OK;
}
