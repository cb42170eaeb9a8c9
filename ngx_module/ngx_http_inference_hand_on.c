/*
 * ngx_http_inference_hand_on.c - a body that another handler wants after us,
 *                                as with "error_page 503 = @upstream".
 */

#include "ngx_module/ngx_http_inference_request.h"


typedef struct {
    ngx_pool_t                  *pool;
    ngx_chain_t                 *bufs;
    ngx_chain_t                **last;
    off_t                        size;
} ngx_http_inference_pieces_t;


static ngx_int_t ngx_http_inference_hand_on_pieces(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pieces_t *pieces);
static ngx_int_t ngx_http_inference_hand_on_tensors(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pieces_t *pieces);
static ngx_int_t ngx_http_inference_hand_on_piece(
    ngx_http_inference_pieces_t *pieces, u_char *p, uint64_t n);


ngx_uint_t
ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;

    if (ctx->grpc || ctx->body.origin == NGX_HTTP_INFERENCE_BODY_FOREIGN
        || r->error_page || r->uri_changes == 0)
    {
        return 0;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return clcf->error_pages != NULL;
}


/* In the original order and encoding, as memory over the arena. */

ngx_int_t
ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_http_request_t           *r;
    ngx_http_inference_body_t    *body;
    ngx_http_inference_pieces_t   pieces;

    r = ctx->request;
    body = &ctx->body;

    if (body->origin == NGX_HTTP_INFERENCE_BODY_FOREIGN
        || body->stage == NGX_HTTP_INFERENCE_BODY_UNREAD
        || r->request_body == NULL)
    {
        return NGX_OK;
    }

    if (body->stage < NGX_HTTP_INFERENCE_BODY_COMPLETE
        || ngx_http_inference_call_has_body(ctx)
        || !ngx_http_inference_hand_on_wanted(ctx))
    {
        return NGX_DECLINED;
    }

    ngx_http_inference_store_settle_now(ctx, &body->packed);
    ngx_http_inference_store_settle_now(ctx, &body->text);
    ngx_http_inference_store_settle_now(ctx, &body->data);

    pieces.pool = r->pool;
    pieces.last = &pieces.bufs;
    pieces.bufs = NULL;
    pieces.size = 0;

    rc = ngx_http_inference_hand_on_pieces(ctx, &pieces);

    if (rc != NGX_OK) {
        return rc;
    }

    if (pieces.size != body->received) {
        /* the next handler announces what was received */
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "inference: %O of %O bytes of a request body are left "
                      "for error_page", pieces.size, body->received);
        return NGX_DECLINED;
    }

    r->request_body->bufs = pieces.bufs;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_hand_on_pieces(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pieces_t *pieces)
{
    ngx_int_t                   rc;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->inflate) {
        return ngx_http_inference_hand_on_piece(pieces, body->packed.data,
                                                body->packed.len);
    }

    rc = ngx_http_inference_hand_on_piece(pieces, body->text.data,
                                          body->text.len);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_inference_is_flat(body) || ctx->offsets == NULL) {
        return ngx_http_inference_hand_on_piece(pieces, body->data.data,
                                                body->data.len);
    }

    return ngx_http_inference_hand_on_tensors(ctx, pieces);
}


/* Of each tensor what was received of it, which may be less than declared. */

static ngx_int_t
ngx_http_inference_hand_on_tensors(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pieces_t *pieces)
{
    uint64_t                  n, left;
    ngx_int_t                 rc;
    ngx_uint_t                i;
    const inf_infer_input_t  *input;

    left = ctx->body.plain - ctx->body.text.len;

    if (left && ctx->body.data.data == NULL) {
        return NGX_DECLINED;
    }

    for (i = 0; i < ctx->infer.input_count && left; i++) {

        input = &ctx->infer.inputs[i];

        if (input->source != INF_SOURCE_BINARY) {
            continue;
        }

        n = ngx_min(input->byte_size, left);
        left -= n;

        rc = ngx_http_inference_hand_on_piece(pieces,
                                              ctx->body.data.data
                                              + ctx->offsets[i], n);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_hand_on_piece(ngx_http_inference_pieces_t *pieces,
    u_char *p, uint64_t n)
{
    ngx_chain_t  *cl;

    if (n == 0) {
        return NGX_OK;
    }

    if (p == NULL) {
        return NGX_DECLINED;
    }

    cl = ngx_http_inference_link(pieces->pool, p, (size_t) n);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    *pieces->last = cl;
    pieces->last = &cl->next;
    pieces->size += n;

    return NGX_OK;
}
