/*
 * ngx_http_inference_hand_on.c - a body that another handler wants after us,
 *                                as with "error_page 503 = @upstream".
 */

#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_hand_on_piece(ngx_http_request_t *r,
    ngx_chain_t ***ll, u_char *p, uint64_t n);


ngx_uint_t
ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;

    if (ctx->body.foreign || r->error_page || r->uri_changes == 0) {
        return 0;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->error_pages != NULL;
}


/* In the original order and encoding, as memory over the arena. */

ngx_int_t
ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                   i;
    ngx_chain_t                **ll;
    ngx_http_request_t          *r;
    const inf_infer_input_t     *input;
    ngx_http_inference_body_t   *body;

    r = ctx->request;
    body = &ctx->body;

    if (body->foreign || r->request_body == NULL) {
        return NGX_OK;
    }

    if (body->refused || !body->complete
        || ngx_http_inference_call_has_body(ctx)
        || !ngx_http_inference_hand_on_wanted(ctx))
    {
        return NGX_DECLINED;
    }

    r->request_body->bufs = NULL;
    ll = &r->request_body->bufs;

    if (body->inflate) {
        return ngx_http_inference_hand_on_piece(r, &ll, body->packed.data,
                                                body->packed.len);
    }

    if (ngx_http_inference_hand_on_piece(r, &ll, body->text.data,
                                         body->text.len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (body->flat || !ctx->planned) {
        return ngx_http_inference_hand_on_piece(r, &ll, body->data.data,
                                                body->data.len);
    }

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (input->source == INF_SOURCE_BINARY
            && ngx_http_inference_hand_on_piece(r, &ll,
                                   body->data.data + ctx->offsets[i],
                                   input->byte_size)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_hand_on_piece(ngx_http_request_t *r, ngx_chain_t ***ll,
    u_char *p, uint64_t n)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (n == 0) {
        return NGX_OK;
    }

    b = ngx_calloc_buf(r->pool);
    cl = ngx_alloc_chain_link(r->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->memory = 1;
    b->start = p;
    b->pos = p;
    b->last = p + n;
    b->end = b->last;

    cl->buf = b;
    cl->next = NULL;

    **ll = cl;
    *ll = &cl->next;

    return NGX_OK;
}
