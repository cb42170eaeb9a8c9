/*
 * ngx_http_inference_hand_on.c - passes a body to the next handler, as with
 *                                "error_page 503 = @upstream".
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/proto/infer_request.h"


/* the fraction of the arena for bodies held by other handlers: 1/4 */
#define NGX_HTTP_INFERENCE_HAND_ON_PART  4


typedef struct {
    ngx_pool_t                  *pool;
    ngx_chain_t                 *bufs;
    ngx_chain_t                **last;
    off_t                        size;
} ngx_http_inference_pieces_t;


static ngx_int_t ngx_http_inference_hand_on_begin(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_hand_on_pieces(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pieces_t *pieces);
static ngx_int_t ngx_http_inference_hand_on_tensors(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pieces_t *pieces);
static ngx_int_t ngx_http_inference_hand_on_frame(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pieces_t *pieces);
static ngx_int_t ngx_http_inference_hand_on_raw(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pieces_t *pieces, uint32_t i);
static ngx_int_t ngx_http_inference_hand_on_piece(
    ngx_http_inference_pieces_t *pieces, u_char *p, uint64_t n);


/* bytes of this worker's arena held by other handlers */
static uint64_t  ngx_http_inference_handed_on;


ngx_uint_t
ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx)
{
    return ctx->message == NULL
           && ctx->body.origin != NGX_HTTP_INFERENCE_BODY_FOREIGN
           && ngx_http_inference_may_intercept(ctx->request);
}


/* Passes the body in its original order and encoding, as memory in the
   arena. */

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

    rc = ctx->grpc ? ngx_http_inference_hand_on_frame(ctx, &pieces)
                   : ngx_http_inference_hand_on_pieces(ctx, &pieces);

    if (rc != NGX_OK) {
        return rc;
    }

    /* The next handler sends a Content-Length of the bytes received. */

    if (pieces.size != body->received) {

        if (ctx->grpc == NULL) {
            ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                          "inference: %O of %O bytes of a request body are "
                          "left for error_page", pieces.size, body->received);
        }

        /* A gRPC call may differ: its client wrote lengths of tensors as
           varints that are longer than necessary. */

        return NGX_DECLINED;
    }

    if (ngx_http_inference_hand_on_begin(ctx) != NGX_OK) {
        return NGX_DECLINED;
    }

    r->request_body->bufs = pieces.bufs;

    return NGX_OK;
}


/*
 * A body stays in the arena until the request ends, which may take as long as
 * the client reads the next handler's answer: such bodies are limited to a
 * part of the arena, so that the rest is left for executions.
 */

static ngx_int_t
ngx_http_inference_hand_on_begin(ngx_http_inference_ctx_t *ctx)
{
    uint64_t                         size;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    ngx_http_inference_reply_release(&ctx->reply);
    ngx_http_inference_record_free(ctx);

    size = ngx_http_inference_stores_size(ctx);

    if (ngx_http_inference_handed_on + size
        > (uint64_t) imcf->arena / NGX_HTTP_INFERENCE_HAND_ON_PART)
    {
        ngx_log_error(NGX_LOG_INFO, ctx->request->connection->log, 0,
                      "inference: no room to hand %uL bytes of a request body "
                      "on to error_page: %uL bytes of others are with it",
                      size, ngx_http_inference_handed_on);
        return NGX_DECLINED;
    }

    ctx->handed_on = size;
    ngx_http_inference_handed_on += size;

    return NGX_OK;
}


void
ngx_http_inference_hand_on_end(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_handed_on -= ctx->handed_on;
    ctx->handed_on = 0;
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

    if (ngx_http_inference_call_has_body(ctx)) {
        /* after these bytes the buffer has the record's own fields */
        return ngx_http_inference_hand_on_piece(pieces, body->text.data,
                                                body->plain);
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


/* Adds the received bytes of each tensor, which may be fewer than declared. */

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


/* Adds the fields and then each raw tensor: an equivalent message. */

static ngx_int_t
ngx_http_inference_hand_on_frame(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pieces_t *pieces)
{
    uint32_t                    i;
    ngx_int_t                   rc;
    ngx_http_inference_body_t  *body;
    ngx_http_inference_grpc_t  *grpc;

    body = &ctx->body;
    grpc = ctx->grpc;

    rc = ngx_http_inference_hand_on_piece(pieces, grpc->prefix,
                                          INF_GRPC_PREFIX);

    if (rc == NGX_OK && body->packed.region) {
        return ngx_http_inference_hand_on_piece(pieces, body->packed.data,
                                                body->packed.len);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_inference_hand_on_piece(pieces, body->text.data,
                                              body->text.len);
    }

    for (i = 0; rc == NGX_OK && i < inf_split_count(&grpc->split); i++) {
        rc = ngx_http_inference_hand_on_raw(ctx, pieces, i);
    }

    return rc;
}


static ngx_int_t
ngx_http_inference_hand_on_raw(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pieces_t *pieces, uint32_t i)
{
    u_char     *head, *data;
    size_t      len;
    uint64_t    size;

    size = ctx->grpc->sizes[i];
    data = ctx->body.data.data;         /* NULL: no tensor has bytes yet     */

    head = ngx_pnalloc(pieces->pool, INF_WIRE_HEAD_MAX);
    if (head == NULL) {
        return NGX_ERROR;
    }

    len = inf_split_raw_head((char *) head, size);

    if (ngx_http_inference_hand_on_piece(pieces, head, len) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_hand_on_piece(pieces,
                                            data ? data + ctx->grpc->places[i]
                                                 : NULL, size);
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
