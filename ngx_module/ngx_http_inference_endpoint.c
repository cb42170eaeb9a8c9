/*
 * ngx_http_inference_endpoint.c - finds the endpoint of a request's URI.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"


static const ngx_http_inference_endpoint_t *
    ngx_http_inference_match_location(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *path, ngx_http_inference_loc_conf_t *ilcf);
static ngx_uint_t ngx_http_inference_any_method(ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_is_decoded(ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_name_is_seen(
    ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_find_endpoint(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                             path;
    ngx_http_request_t                   *r;
    ngx_http_inference_loc_conf_t        *ilcf;
    const ngx_http_inference_endpoint_t  *ep;

    r = ctx->request;
    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (ilcf->parts & NGX_HTTP_INFERENCE_GRPC) {
        return ngx_http_inference_fail_status(ctx,
                                              NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                              "only gRPC is served here");
    }

    if (ilcf->model) {
        ctx->endpoint = ilcf->endpoint;
        return ngx_http_inference_model_of_location(ctx);
    }

    if (ngx_http_inference_path(r, &path) != NGX_OK) {
        return ngx_http_inference_fail_status(ctx, NGX_HTTP_NOT_FOUND,
                                              "Not Found");
    }

    ep = ngx_http_inference_match_location(ctx, &path, ilcf);

    if (ep == NULL) {
        return ngx_http_inference_fail_status(ctx, NGX_HTTP_NOT_FOUND,
                                              "Not Found");
    }

    ctx->endpoint = ep;

    if (!(r->method & ep->methods) && !ngx_http_inference_any_method(r)) {
        return ngx_http_inference_fail_status(ctx, NGX_HTTP_NOT_ALLOWED,
                                              "Method Not Allowed");
    }

    if (!ngx_http_inference_name_is_seen(ctx)) {
        return ngx_http_inference_fail(ctx, INF_ERR_NOT_FOUND,
                                       (ep->part
                                        == NGX_HTTP_INFERENCE_SHARED_MEMORY)
                                       ? "Unable to find shared memory "
                                         "region: '%V'"
                                       : "Request for unknown model: '%V' is "
                                         "not found", &ctx->names.model);
    }

    return ngx_http_inference_parse_version(ctx);
}


/* The endpoint of a path among the parts of its location, by the whole path or
   by the rest behind the location's prefix; NULL: none. */

static const ngx_http_inference_endpoint_t *
ngx_http_inference_match_location(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *path, ngx_http_inference_loc_conf_t *ilcf)
{
    ngx_uint_t                            parts;
    const ngx_http_inference_endpoint_t  *ep;

    parts = ngx_http_inference_parts_of(ilcf);

    if (ilcf->alone.len) {
        parts = ilcf->parts;
    }

    ep = ngx_http_inference_match_endpoint(ctx, path, parts);

    if (ep == NULL
        && ilcf->alone.len
        && path->len == ilcf->name.len
        && ngx_strncmp(path->data, ilcf->name.data, path->len) == 0)
    {
        *path = ilcf->alone;

        ep = ngx_http_inference_match_endpoint(ctx, path, parts);
    }

    if (ep == NULL
        && ilcf->prefix.len
        && path->len > ilcf->prefix.len
        && ngx_strncmp(path->data, ilcf->prefix.data, ilcf->prefix.len) == 0)
    {
        path->data += ilcf->prefix.len;
        path->len -= ilcf->prefix.len;

        ep = ngx_http_inference_match_endpoint(ctx, path, parts);
    }

    return ep;
}


/*
 * Whether the method is ignored: a subrequest has its own method, and
 * error_page and X-Accel-Redirect change POST to GET.
 */

static ngx_uint_t
ngx_http_inference_any_method(ngx_http_request_t *r)
{
    if (r != r->main) {
        return 1;
    }

    return r->internal && r->method == NGX_HTTP_GET
           && r->request_line.len > sizeof("POST ") - 1
           && ngx_strncmp(r->request_line.data, "POST ", sizeof("POST ") - 1)
              == 0;
}


/*
 * The path as sent: as in Triton, the words of an endpoint and the model's name
 * are not decoded.  The location was chosen by r->uri, so both must have the
 * same segments.  NGX_DECLINED: nginx has resolved dots, merged slashes or
 * decoded a slash.
 */

ngx_int_t
ngx_http_inference_path(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char     *p, *last, *seen, *end;
    ngx_int_t   c;

    if (ngx_http_inference_is_decoded(r)) {
        *path = r->uri;
        return NGX_OK;
    }

    *path = r->unparsed_uri;

    if (path->len == r->uri.len
        && ngx_memcmp(path->data, r->uri.data, path->len) == 0)
    {
        /* nothing to resolve, merge or decode */
        return NGX_OK;
    }

    p = ngx_strlchr(path->data, path->data + path->len, '?');

    if (p) {
        path->len = p - path->data;
    }

    p = path->data;
    last = p + path->len;

    seen = r->uri.data;
    end = seen + r->uri.len;

    while (p < last) {
        c = *p++;

        if (c == '%') {
            c = (last - p >= 2) ? ngx_hextoi(p, 2) : NGX_ERROR;

            if (c == NGX_ERROR || c == '/') {
                return NGX_DECLINED;
            }

            p += 2;
        }

        if (seen == end || *seen++ != c) {
            return NGX_DECLINED;
        }
    }

    return (seen == end) ? NGX_OK : NGX_DECLINED;
}


/*
 * Whether r->uri is the path: after a rewrite, in subrequests and in internal
 * redirects.  In front of another server (inference_peek) proxy_pass with a URI
 * sends r->uri, so that an escaped name cannot bypass limits.
 */

static ngx_uint_t
ngx_http_inference_is_decoded(ngx_http_request_t *r)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    return !r->valid_unparsed_uri || !ngx_http_inference_is_served(ilcf);
}


/*
 * Whether the location was chosen by the same name.  An escaped name differs
 * from the decoded one, which the location may deny.
 */

static ngx_uint_t
ngx_http_inference_name_is_seen(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t  *name;

    name = &ctx->names.model;

    return name->len == 0
           || ngx_http_inference_is_decoded(ctx->request)
           || ngx_strlchr(name->data, name->data + name->len, '%') == NULL;
}


/* In a location of "inference_model": any URI is the endpoint of one model. */

ngx_int_t
ngx_http_inference_model_of_location(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t             *r;
    ngx_http_inference_loc_conf_t  *ilcf;

    r = ctx->request;
    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (ngx_http_complex_value(r, ilcf->model, &ctx->names.model) != NGX_OK
        || (ilcf->version
            && ngx_http_complex_value(r, ilcf->version, &ctx->names.version)
               != NGX_OK))
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (!(r->method & NGX_HTTP_POST) && !ngx_http_inference_any_method(r)) {
        return ngx_http_inference_fail_status(ctx, NGX_HTTP_NOT_ALLOWED,
                                              "Method Not Allowed");
    }

    if (ctx->names.model.len == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_NOT_FOUND,
                                       "this location names no model: \"%V\" "
                                       "is empty", &ilcf->model->value);
    }

    return ngx_http_inference_parse_version(ctx);
}


ngx_int_t
ngx_http_inference_parse_version(ngx_http_inference_ctx_t *ctx)
{
    size_t       i;
    int64_t      value;
    const char  *why;
    ngx_str_t   *text;

    text = &ctx->names.version;
    value = 0;
    why = NULL;

    if (text->len == 0) {
        ctx->version = -1;
        return NGX_OK;
    }

    for (i = 0; i < text->len; i++) {

        if (text->data[i] < '0' || text->data[i] > '9') {
            why = "not a number";
            break;
        }

        if (value > (INT64_MAX - (text->data[i] - '0')) / 10) {
            why = "out of range";
            break;
        }

        value = value * 10 + (text->data[i] - '0');
    }

    if (why) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "failed to get model version from "
                                       "specified version string '%V' "
                                       "(details: %s), version should be an "
                                       "integral value > 0", text, why);
    }

    ctx->version = value;

    return NGX_OK;
}
