/*
 * ngx_http_inference_load_report.c - the load report of generate (ORCA): the
 *                                    client asks for a format by a header, and
 *                                    the core's first response has the values.
 */

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/number.h"


#define NGX_HTTP_INFERENCE_LOAD_TEXT  256


void
ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const ngx_str_t  name = ngx_string("endpoint-load-metrics-format");

    part = &ctx->request->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (h->key.len != name.len
            || ngx_strncasecmp(h->key.data, name.data, name.len) != 0)
        {
            continue;
        }

        if (h->value.len == 4 && ngx_strncmp(h->value.data, "json", 4) == 0) {
            ctx->load.format = NGX_HTTP_INFERENCE_LOAD_JSON;
        }

        if (h->value.len == 4 && ngx_strncmp(h->value.data, "text", 4) == 0) {
            ctx->load.format = NGX_HTTP_INFERENCE_LOAD_TEXT_FORMAT;
        }

        return;
    }
}


ngx_int_t
ngx_http_inference_load_header(ngx_http_inference_ctx_t *ctx)
{
    size_t   n;
    u_char  *p, *last;
    char     real[INF_NUMBER_MAX_TEXT + 1];

    if (!ctx->load.reported) {
        return NGX_OK;
    }

    p = ngx_pnalloc(ctx->request->pool, NGX_HTTP_INFERENCE_LOAD_TEXT);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = p + NGX_HTTP_INFERENCE_LOAD_TEXT - 1;

    if (ctx->load.format == NGX_HTTP_INFERENCE_LOAD_JSON) {

        n = inf_number_write_double(real, ctx->load.utilization);
        real[n] = '\0';

        last = ngx_slprintf(p, last,
                            "JSON {\"named_metrics\":{"
                            "\"kv_cache_utilization\":%s,"
                            "\"max_token_capacity\":%uL}}",
                            real, ctx->load.max_tokens);

    } else {
        last = ngx_slprintf(p, last,
                            "TEXT named_metrics.kv_cache_utilization=%.6f, "
                            "named_metrics.max_token_capacity=%uL",
                            ctx->load.utilization, ctx->load.max_tokens);
    }

    *last = '\0';

    return ngx_http_inference_add_header(ctx->request,
                                         "endpoint-load-metrics", (char *) p);
}
