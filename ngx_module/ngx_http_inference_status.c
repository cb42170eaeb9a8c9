/*
 * ngx_http_inference_status.c - the status: a static page for people, and the
 *                               JSON that the page requests.
 */

#include "ngx_module/ngx_http_inference_control.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/buf.h"

#include "ngx_http_inference_status_page.h"


static ngx_uint_t ngx_http_inference_status_accepts_page(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_status_headers(ngx_http_request_t *r);


ngx_uint_t
ngx_http_inference_status_wants_page(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t            format;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->endpoint->call != INF_METHOD_STATUS) {
        return 0;
    }

    if (ngx_http_arg(r, (u_char *) "format", sizeof("format") - 1, &format)
        == NGX_OK)
    {
        return format.len == 4 && ngx_strncmp(format.data, "html", 4) == 0;
    }

    return ngx_http_inference_status_accepts_page(r);
}


/* Whether Accept names HTML; a client that accepts anything (curl) gets
   JSON. */

static ngx_uint_t
ngx_http_inference_status_accepts_page(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (ngx_http_inference_field_is(h, "accept")
            && ngx_strlcasestrn(h->value.data, h->value.data + h->value.len,
                                (u_char *) "text/html",
                                sizeof("text/html") - 2)
               != NULL)
        {
            return 1;
        }
    }

    return 0;
}


/* Sends the page, which the worker has, also without a core. */

ngx_int_t
ngx_http_inference_status_page(ngx_http_request_t *r)
{
    ngx_chain_t  *out;

    static const char  page[] = NGX_HTTP_INFERENCE_STATUS_PAGE;
    static ngx_str_t   type = ngx_string("text/html; charset=utf-8");

    out = ngx_http_inference_link(r->pool, page, sizeof(page) - 1);

    if (out == NULL
        || ngx_http_inference_status_headers(r) != NGX_OK
        || ngx_http_inference_add_header(r, "Content-Security-Policy",
                                         NGX_HTTP_INFERENCE_STATUS_POLICY)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_send_chain(r, NGX_HTTP_OK, &type, out);
}


/* Sends the core's answer with the workers' counters around it. */

ngx_int_t
ngx_http_inference_status_json(ngx_http_request_t *r, ngx_str_t *answer)
{
    inf_buf_t     text;
    ngx_str_t     head;
    ngx_chain_t  *out;

    static ngx_str_t  type = ngx_string("application/json");

    inf_buf_init(&text);
    inf_buf_puts(&text, "{\"workers\":");
    ngx_http_inference_counters_json(&text);
    inf_buf_puts(&text, ",\"core\":");

    head.len = text.len;
    head.data = text.failed ? NULL : ngx_pnalloc(r->pool, text.len);

    if (head.data) {
        ngx_memcpy(head.data, text.data, text.len);
    }

    inf_buf_fini(&text);

    if (head.data == NULL
        || ngx_http_inference_status_headers(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    out = ngx_http_inference_link(r->pool, head.data, head.len);

    if (out) {
        out->next = ngx_http_inference_link(r->pool, answer->data,
                                            answer->len);
    }

    if (out && out->next) {
        out->next->next = ngx_http_inference_link(r->pool, "}", 1);
    }

    if (out == NULL || out->next == NULL || out->next->next == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_inference_send_chain(r, NGX_HTTP_OK, &type, out);
}


static ngx_int_t
ngx_http_inference_status_headers(ngx_http_request_t *r)
{
    if (ngx_http_inference_add_header(r, "Vary", "Accept") != NGX_OK
        || ngx_http_inference_add_header(r, "X-Content-Type-Options",
                                         "nosniff")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_add_header(r, "Cache-Control", "no-store");
}
