/*
 * ngx_http_inference_load_report.c - the load report (ORCA) in a format that
 *                                    the client asks for by a header.  For
 *                                    generate the values are in the core's
 *                                    first response; the readiness answer has
 *                                    the length of all workers' queue.
 */

#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/node_answer.h"
#include "core/proto/number.h"


#define NGX_HTTP_INFERENCE_LOAD_TEXT  256


static ngx_int_t ngx_http_inference_load_add(ngx_http_request_t *r, u_char *p);


void
ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &ctx->request->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (!ngx_http_inference_field_is(h, "endpoint-load-metrics-format")) {
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

    return ngx_http_inference_load_add(ctx->request, p);
}


ngx_int_t
ngx_http_inference_load_queue(ngx_http_inference_ctx_t *ctx)
{
    u_char                       *p, *last;
    const char                   *format;
    ngx_http_inference_gauges_t   sum;

    if (ctx->endpoint->call != INF_METHOD_SERVER_READY || ctx->grpc) {
        return NGX_OK;
    }

    ngx_http_inference_load_asked(ctx);

    if (ctx->load.format == NGX_HTTP_INFERENCE_LOAD_NONE) {
        return NGX_OK;
    }

    p = ngx_pnalloc(ctx->request->pool, NGX_HTTP_INFERENCE_LOAD_TEXT);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_http_inference_sum_gauges(&sum);

    format = (ctx->load.format == NGX_HTTP_INFERENCE_LOAD_JSON)
             ? "JSON {\"named_metrics\":{\"" INF_NODE_QUEUE_NAME "\":%ui}}"
             : "TEXT named_metrics." INF_NODE_QUEUE_NAME "=%ui";

    last = ngx_slprintf(p, p + NGX_HTTP_INFERENCE_LOAD_TEXT - 1, format,
                        (ngx_uint_t) sum.slots);
    *last = '\0';

    return ngx_http_inference_load_add(ctx->request, p);
}


static ngx_int_t
ngx_http_inference_load_add(ngx_http_request_t *r, u_char *p)
{
    return ngx_http_inference_add_header(r, "endpoint-load-metrics",
                                         (char *) p);
}
