/*
 * ngx_http_inference_trace_context.c - the trace context in a request's
 *                                      headers.
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_request.h"
#include "core/proto/trace_context.h"


static void ngx_http_inference_trace_find(ngx_http_request_t *r,
    inf_slice_t *parent, inf_slice_t *state);
static void ngx_http_inference_trace_parameter(inf_infer_parameter_t *p,
    const char *name, inf_slice_t value);


ngx_int_t
ngx_http_inference_trace_headers(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                       n;
    inf_slice_t                      parent, state;
    inf_trace_context_t              context;
    inf_infer_parameter_t           *list;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    if (imcf->config.trace->url[0] == '\0') {
        return NGX_OK;
    }

    ngx_http_inference_trace_find(ctx->request, &parent, &state);

    if (!inf_trace_context_read(parent, &context)) {
        return NGX_OK;
    }

    n = ctx->infer.parameter_count;

    list = inf_arena_calloc(&ctx->arena, n + 2, sizeof(*list));
    if (list == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (n) {
        ngx_memcpy(list, ctx->infer.parameters, n * sizeof(*list));
    }

    parent.len = INF_TRACEPARENT_LEN;

    ngx_http_inference_trace_parameter(&list[n++], INF_TRACEPARENT_PARAMETER,
                                       parent);

    if (inf_trace_state_valid(state)) {
        ngx_http_inference_trace_parameter(&list[n++],
                                           INF_TRACESTATE_PARAMETER, state);
    }

    ctx->infer.parameters = list;
    ctx->infer.parameter_count = n;

    return NGX_OK;
}


static void
ngx_http_inference_trace_find(ngx_http_request_t *r, inf_slice_t *parent,
    inf_slice_t *state)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    *parent = inf_slice(NULL, 0);
    *state = inf_slice(NULL, 0);

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (ngx_http_inference_field_is(h, "traceparent")) {
            *parent = ngx_http_inference_slice(&h->value);

        } else if (ngx_http_inference_field_is(h, "tracestate")) {
            *state = ngx_http_inference_slice(&h->value);
        }
    }
}


static void
ngx_http_inference_trace_parameter(inf_infer_parameter_t *p, const char *name,
    inf_slice_t value)
{
    p->name = inf_slice_str(name);
    p->type = INF_PARAMETER_STRING;
    p->text = value;
}
