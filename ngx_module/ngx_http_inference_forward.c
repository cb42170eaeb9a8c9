/*
 * ngx_http_inference_forward.c - the directive "inference_forward_header":
 *                                request headers that the model gets as
 *                                parameters.
 */

#include "ngx_module/ngx_http_inference_directives.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_request.h"
#include "core/proto/message_utf8.h"


/* limits for one request: values, and bytes of names and values */
#define NGX_HTTP_INFERENCE_FORWARD_HEADERS  128
#define NGX_HTTP_INFERENCE_FORWARD_SIZE     (64 * 1024)


typedef struct {
    inf_infer_parameter_t       *next;          /* in the request's table;
                                                   NULL: no table yet        */
    ngx_uint_t                   count;
    size_t                       size;
} ngx_http_inference_forwarded_t;


static ngx_uint_t ngx_http_inference_forward_is_grpcs(ngx_str_t *name);
static ngx_int_t ngx_http_inference_forward_header(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_forwarded_t *forwarded,
    ngx_table_elt_t *h);
static ngx_uint_t ngx_http_inference_forward_is_reserved(ngx_str_t *name);
static ngx_int_t ngx_http_inference_forward_binary(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_forwarded_t *forwarded,
    ngx_table_elt_t *h);
static ngx_int_t ngx_http_inference_forward_decode(
    ngx_http_inference_ctx_t *ctx, ngx_table_elt_t *h, ngx_str_t *value);
static ngx_int_t ngx_http_inference_forward_value(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_forwarded_t *forwarded,
    ngx_table_elt_t *h, ngx_str_t *value);
static ngx_int_t ngx_http_inference_forward_too_much(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_forward_table(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_forwarded_t *forwarded);


char *
ngx_http_inference_forward_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

#if (NGX_PCRE)
    u_char                error[NGX_MAX_CONF_ERRSTR];
    ngx_str_t            *value;
    ngx_regex_elt_t      *regex;
    ngx_regex_compile_t   rc;

    value = cf->args->elts;

    (void) ngx_http_inference_note_setting(cf, NULL, NULL);

    if (ilcf->forward == NULL) {
        return "\"\" stands with others";
    }

    if (value[1].len == 0) {

        if (ilcf->forward != NGX_CONF_UNSET_PTR) {
            return "\"\" stands with others";
        }

        ilcf->forward = NULL;
        return NGX_CONF_OK;
    }

    if (ilcf->forward == NGX_CONF_UNSET_PTR) {
        ilcf->forward = ngx_array_create(cf->pool, 2, sizeof(ngx_regex_elt_t));
        if (ilcf->forward == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    ngx_memzero(&rc, sizeof(ngx_regex_compile_t));

    rc.pattern = value[1];
    rc.pool = cf->pool;
    rc.options = NGX_REGEX_CASELESS;
    rc.err.len = NGX_MAX_CONF_ERRSTR;
    rc.err.data = error;

    if (ngx_regex_compile(&rc) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%V in \"inference_forward_header\"", &rc.err);
        return NGX_CONF_ERROR;
    }

    regex = ngx_array_push(ilcf->forward);
    if (regex == NULL) {
        return NGX_CONF_ERROR;
    }

    regex->regex = rc.regex;
    regex->name = value[1].data;

    return NGX_CONF_OK;
#else
    return "needs an nginx with the PCRE library";
#endif
}


ngx_int_t
ngx_http_inference_forward(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                       rc;
    ngx_uint_t                      i;
    ngx_list_part_t                *part;
    ngx_table_elt_t                *h;
    ngx_http_inference_loc_conf_t  *ilcf;
    ngx_http_inference_forwarded_t  forwarded;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ilcf->forward == NULL
        || ctx->endpoint->verb != NGX_HTTP_INFERENCE_MODEL_INFER)
    {
        return NGX_OK;
    }

    ngx_memzero(&forwarded, sizeof(ngx_http_inference_forwarded_t));

    part = &ctx->request->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

#if (NGX_PCRE)
        rc = ngx_regex_exec_array(ilcf->forward, &h->key,
                                  ctx->request->connection->log);
#else
        rc = NGX_DECLINED;
#endif

        if (rc == NGX_ERROR) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "the headers to forward cannot be "
                                           "told");
        }

        if (rc == NGX_DECLINED
            || (ctx->grpc && ngx_http_inference_forward_is_grpcs(&h->key)))
        {
            continue;
        }

        if (ngx_http_inference_forward_header(ctx, &forwarded, h) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Whether gRPC reserves the name, which is no metadata; Host stands for
   :authority. */

static ngx_uint_t
ngx_http_inference_forward_is_grpcs(ngx_str_t *name)
{
    ngx_uint_t  i;

    static const ngx_str_t  own[] = {
        ngx_string("te"),
        ngx_string("host"),
        ngx_string("content-type"),
        ngx_string("content-length")
    };

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {

        if (name->len == own[i].len
            && ngx_strncmp(name->data, own[i].data, name->len) == 0)
        {
            return 1;
        }
    }

    return name->len >= sizeof("grpc-") - 1
           && ngx_strncmp(name->data, "grpc-", sizeof("grpc-") - 1) == 0;
}


static ngx_int_t
ngx_http_inference_forward_header(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_forwarded_t *forwarded, ngx_table_elt_t *h)
{
    if (ngx_http_inference_forward_is_reserved(&h->key)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "Header '%V' is reserved for Triton "
                                       "usage and cannot be forwarded.",
                                       &h->key);
    }

    forwarded->size += h->key.len + h->value.len;

    if (forwarded->size > NGX_HTTP_INFERENCE_FORWARD_SIZE) {
        return ngx_http_inference_forward_too_much(ctx);
    }

    if (ctx->grpc
        && h->key.len >= sizeof("-bin") - 1
        && ngx_strncmp(h->key.data + h->key.len - (sizeof("-bin") - 1), "-bin",
                       sizeof("-bin") - 1)
           == 0)
    {
        return ngx_http_inference_forward_binary(ctx, forwarded, h);
    }

    return ngx_http_inference_forward_value(ctx, forwarded, h, &h->value);
}


/*
 * Adds metadata with a name in -bin: bytes encoded as base64.  Values joined by
 * commas are added separately.
 */

static ngx_int_t
ngx_http_inference_forward_binary(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_forwarded_t *forwarded, ngx_table_elt_t *h)
{
    u_char     *p, *comma, *last;
    ngx_str_t   value;

    p = h->value.data;
    last = p + h->value.len;

    do {
        comma = ngx_strlchr(p, last, ',');

        value.data = p;
        value.len = (comma ? comma : last) - p;

        if (ngx_http_inference_forward_decode(ctx, h, &value) != NGX_OK
            || ngx_http_inference_forward_value(ctx, forwarded, h, &value)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        p = comma + 1;

    } while (comma);

    return NGX_OK;
}


/* Decodes base64 with full padding or none. */

static ngx_int_t
ngx_http_inference_forward_decode(ngx_http_inference_ctx_t *ctx,
    ngx_table_elt_t *h, ngx_str_t *value)
{
    u_char     *p, *last;
    ngx_str_t   text;

    p = value->data;
    last = p + value->len;

    while (p < last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    while (p < last && (last[-1] == ' ' || last[-1] == '\t')) {
        last--;
    }

    if ((last - p) % 4 == 0 && last - p >= 4 && last[-1] == '=') {
        last -= (last[-2] == '=') ? 2 : 1;
    }

    text.data = p;
    text.len = last - p;

    value->data = inf_arena_alloc(&ctx->arena,
                                  ngx_base64_decoded_length(text.len));
    if (value->data == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    /* nginx's decoder stops at the first '=' */

    if (ngx_strlchr(p, last, '=') != NULL
        || ngx_decode_base64(value, &text) != NGX_OK)
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "Header '%V' is no base64 and cannot "
                                       "be forwarded.", &h->key);
    }

    return NGX_OK;
}


/* Adds a parameter; its name points to the header's. */

static ngx_int_t
ngx_http_inference_forward_value(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_forwarded_t *forwarded, ngx_table_elt_t *h,
    ngx_str_t *value)
{
    inf_slice_t             name, text;
    inf_infer_parameter_t  *p;

    if (++forwarded->count > NGX_HTTP_INFERENCE_FORWARD_HEADERS) {
        return ngx_http_inference_forward_too_much(ctx);
    }

    if (forwarded->next == NULL
        && ngx_http_inference_forward_table(ctx, forwarded) != NGX_OK)
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    name = ngx_http_inference_slice(&h->key);
    text = ngx_http_inference_slice(value);

    if (ngx_strlchr(value->data, value->data + value->len, '\0') != NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "Header '%V' holds a NUL and cannot be "
                                       "forwarded.", &h->key);
    }

    if (!inf_utf8_valid(name) || !inf_utf8_valid(text)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "Header '%V' holds no UTF-8 and cannot "
                                       "be forwarded.", &h->key);
    }

    p = forwarded->next++;

    p->name = name;
    p->type = INF_PARAMETER_STRING;
    p->text = text;

    ctx->infer.parameter_count++;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_forward_too_much(ngx_http_inference_ctx_t *ctx)
{
    return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                   "headers to forward are more than %d or "
                                   "longer than %d bytes",
                                   NGX_HTTP_INFERENCE_FORWARD_HEADERS,
                                   NGX_HTTP_INFERENCE_FORWARD_SIZE);
}


/* Moves the request's parameters to a larger table. */

static ngx_int_t
ngx_http_inference_forward_table(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_forwarded_t *forwarded)
{
    size_t                  n;
    inf_infer_parameter_t  *table;

    n = ctx->infer.parameter_count;

    table = inf_arena_calloc(&ctx->arena,
                             n + NGX_HTTP_INFERENCE_FORWARD_HEADERS,
                             sizeof(inf_infer_parameter_t));
    if (table == NULL) {
        return NGX_ERROR;
    }

    if (n) {
        ngx_memcpy(table, ctx->infer.parameters,
                   n * sizeof(inf_infer_parameter_t));
    }

    ctx->infer.parameters = table;
    forwarded->next = &table[n];

    return NGX_OK;
}


/* Whether the protocol reserves the parameter's name; case matters. */

static ngx_uint_t
ngx_http_inference_forward_is_reserved(ngx_str_t *name)
{
    ngx_uint_t  i;

    static const ngx_str_t  reserved[] = {
        ngx_string("sequence_id"),
        ngx_string("sequence_start"),
        ngx_string("sequence_end"),
        ngx_string("priority"),
        ngx_string("timeout"),
        ngx_string("headers"),
        ngx_string("binary_data_output")
    };

    for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {

        if (name->len == reserved[i].len
            && ngx_strncmp(name->data, reserved[i].data, name->len) == 0)
        {
            return 1;
        }
    }

    return name->len >= sizeof("triton_") - 1
           && ngx_strncmp(name->data, "triton_", sizeof("triton_") - 1) == 0;
}
