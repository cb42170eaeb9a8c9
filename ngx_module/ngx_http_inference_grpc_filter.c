/*
 * ngx_http_inference_grpc_filter.c - turns errors of nginx or another module
 *                                    for a gRPC call (limit_req, auth_request,
 *                                    413 ...) into a gRPC status.
 */

#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_grpc_header_filter(ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_grpc_is_own(ngx_http_request_t *r);


static ngx_http_output_header_filter_pt  ngx_http_inference_next_header_filter;


void
ngx_http_inference_grpc_install_filter(void)
{
    ngx_http_inference_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_inference_grpc_header_filter;
}


/*
 * Replaces the head by a gRPC status.  Without it a client gets only the HTTP
 * status, and gRPC libraries map 404 to "unimplemented".
 */

static ngx_int_t
ngx_http_inference_grpc_header_filter(ngx_http_request_t *r)
{
    u_char      *p;
    ngx_str_t    text;
    ngx_uint_t   status;

    status = r->headers_out.status;

    if (status == NGX_HTTP_OK || r != r->main
        || !ngx_http_inference_is_grpc(r)
        || !ngx_http_inference_grpc_is_own(r))
    {
        return ngx_http_inference_next_header_filter(r);
    }

    p = ngx_pnalloc(r->pool, sizeof("rejected by nginx with HTTP status 999")
                             - 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text.data = p;
    text.len = ngx_sprintf(p, "rejected by nginx with HTTP status %03ui",
                           status)
               - p;

    if (ngx_http_inference_grpc_trailers_only(r,
                            ngx_http_inference_grpc_status_of(status), &text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_next_header_filter(r);
}


/*
 * Whether to replace the answer: in our locations any answer, elsewhere only an
 * error of nginx itself: without a location (a client without a certificate),
 * or in an error_page of ours.
 */

static ngx_uint_t
ngx_http_inference_grpc_is_own(ngx_http_request_t *r)
{
    ngx_http_inference_loc_conf_t   *ilcf;
    ngx_http_inference_main_conf_t  *imcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (ilcf->parts || ilcf->model || ngx_http_inference_ctx(r)) {
        return 1;
    }

    imcf = ngx_http_get_module_main_conf(r, ngx_http_inference_module);

    return imcf->used && r->upstream == NULL
           && r->headers_out.status >= NGX_HTTP_BAD_REQUEST;
}


inf_grpc_status_t
ngx_http_inference_grpc_status_of(ngx_uint_t status)
{
    switch (status) {

    case NGX_HTTP_BAD_REQUEST:
        return INF_GRPC_INTERNAL;

    case NGX_HTTP_UNAUTHORIZED:
        return INF_GRPC_UNAUTHENTICATED;

    case NGX_HTTP_FORBIDDEN:
        return INF_GRPC_PERMISSION_DENIED;

    case NGX_HTTP_NOT_FOUND:
        return INF_GRPC_UNIMPLEMENTED;

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return INF_GRPC_RESOURCE_EXHAUSTED;

    case NGX_HTTP_TOO_MANY_REQUESTS:
    case NGX_HTTP_BAD_GATEWAY:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
    case NGX_HTTP_GATEWAY_TIME_OUT:
        return INF_GRPC_UNAVAILABLE;

    default:
        return INF_GRPC_UNKNOWN;
    }
}
