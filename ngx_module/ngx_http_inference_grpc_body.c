/*
 * ngx_http_inference_grpc_body.c - receives the body of a gRPC call: frames,
 *                                  and one message in them.
 *
 * A plain message of an inference is split as it arrives: each raw tensor is
 * copied to its own aligned place, and all other fields become one text.  A
 * compressed message is kept and inflated in slices.
 */

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_hand_on.h"
#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/proto/infer_request.h"


#define NGX_HTTP_INFERENCE_GRPC_PIECE   ((size_t) 16 * 1024)


/* whether fields are parsed as they arrive; LIVE's message has no fields */
#define ngx_http_inference_is_split(ctx)                                      \
    (ngx_http_inference_is_infer(ctx)                                         \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_LIVE)


static ngx_int_t ngx_http_inference_grpc_begin(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_grpc_packed(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);
static ngx_int_t ngx_http_inference_grpc_plain(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);
static ngx_int_t ngx_http_inference_grpc_split(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);
static ngx_int_t ngx_http_inference_grpc_text(ngx_http_inference_ctx_t *ctx,
    const void *p, size_t n);
static ngx_int_t ngx_http_inference_grpc_tensor(ngx_http_inference_ctx_t *ctx,
    const inf_split_piece_t *piece);
static ngx_int_t ngx_http_inference_grpc_add_place(
    ngx_http_inference_ctx_t *ctx, const inf_split_piece_t *piece);
static off_t ngx_http_inference_grpc_max(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_grpc_long(ngx_http_inference_ctx_t *ctx,
    uint64_t size, off_t max);
static ngx_int_t ngx_http_inference_grpc_inflate(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_grpc_places(ngx_http_inference_ctx_t *ctx);


ngx_int_t
ngx_http_inference_grpc_place(ngx_http_inference_ctx_t *ctx, const u_char *p,
    size_t n)
{
    size_t                      size;
    ngx_int_t                   rc;
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    while (n) {

        if (grpc->prefix_len < INF_GRPC_PREFIX) {

            size = ngx_min(n, INF_GRPC_PREFIX - grpc->prefix_len);

            ngx_memcpy(grpc->prefix + grpc->prefix_len, p, size);
            grpc->prefix_len += size;

            p += size;
            n -= size;

            if (grpc->prefix_len == INF_GRPC_PREFIX
                && ngx_http_inference_grpc_begin(ctx) != NGX_OK)
            {
                return NGX_ERROR;
            }

            continue;
        }

        if (grpc->left == 0) {
            return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNIMPLEMENTED,
                                                "the call has more than one "
                                                "request message");
        }

        size = (size_t) ngx_min((uint64_t) n, grpc->left);

        rc = grpc->compressed ? ngx_http_inference_grpc_packed(ctx, p, size)
                              : ngx_http_inference_grpc_plain(ctx, p, size);
        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        grpc->left -= size;
        p += size;
        n -= size;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_grpc_begin(ngx_http_inference_ctx_t *ctx)
{
    inf_grpc_prefix_t           prefix;
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    if (!inf_grpc_read_prefix(grpc->prefix, &prefix)) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the flag of compression of the "
                                            "request message is %ui",
                                            (ngx_uint_t) grpc->prefix[0]);
    }

    if (prefix.compressed && grpc->in == INF_GRPC_IDENTITY) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the request message is "
                                            "compressed, and grpc-encoding "
                                            "does not say how");
    }

    if ((off_t) prefix.len > ngx_http_inference_grpc_max(ctx)) {
        return ngx_http_inference_grpc_long(ctx, prefix.len,
                                            ngx_http_inference_grpc_max(ctx));
    }

    grpc->messages++;
    grpc->compressed = prefix.compressed;
    grpc->left = prefix.len;

    if (!prefix.compressed) {
        inf_split_init(&grpc->split, prefix.len);
    }

    return NGX_OK;
}


static off_t
ngx_http_inference_grpc_max(ngx_http_inference_ctx_t *ctx)
{
    off_t  max;

    max = ngx_min((off_t) ngx_http_inference_max_text(ctx),
                  (off_t) INF_GRPC_MAX_MESSAGE);

    return ngx_min(max, ngx_http_inference_max_body(ctx));
}


static ngx_int_t
ngx_http_inference_grpc_long(ngx_http_inference_ctx_t *ctx, uint64_t size,
    off_t max)
{
    ngx_uint_t  fixed;

    /* the limits of the protocol and of calls */
    fixed = max == (off_t) INF_GRPC_MAX_MESSAGE
            || max < ngx_min((off_t) ngx_http_inference_max_inflated(ctx),
                             ngx_http_inference_max_body(ctx));

    return ngx_http_inference_grpc_fail(ctx, INF_GRPC_RESOURCE_EXHAUSTED,
                                        "Received message larger than max "
                                        "(%uL vs. %O)%s", size, max,
                                        fixed ? "" : "; inference_max_body "
                                                     "sets another limit");
}


static ngx_int_t
ngx_http_inference_grpc_packed(ngx_http_inference_ctx_t *ctx, const u_char *p,
    size_t n)
{
    ngx_http_inference_store_t  *packed;

    packed = &ctx->body.packed;

    if (packed->region == NULL
        && ngx_http_inference_store_open(ctx, packed, ctx->grpc->left)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_store_put(ctx, packed, p, n);
}


static ngx_int_t
ngx_http_inference_grpc_plain(ngx_http_inference_ctx_t *ctx, const u_char *p,
    size_t n)
{
    ctx->body.plain += n;

    return ngx_http_inference_is_split(ctx)
           ? ngx_http_inference_grpc_split(ctx, p, n)
           : ngx_http_inference_grpc_text(ctx, p, n);
}


static ngx_int_t
ngx_http_inference_grpc_split(ngx_http_inference_ctx_t *ctx, const u_char *p,
    size_t n)
{
    ngx_int_t           rc;
    inf_err_t          *err;
    inf_split_piece_t   piece;

    while (n) {
        err = inf_split_next(&ctx->grpc->split, p, n, &piece);
        if (err) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE) {
            /* without known fields, the message is checked but not stored */
            piece.kind = INF_SPLIT_NOTHING;
        }

        switch (piece.kind) {

        case INF_SPLIT_FIELDS:
            rc = ngx_http_inference_grpc_text(ctx, piece.data, piece.len);
            break;

        case INF_SPLIT_TENSOR:
            rc = ngx_http_inference_grpc_tensor(ctx, &piece);
            break;

        default: /* INF_SPLIT_NOTHING */
            rc = NGX_OK;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        p += piece.used;
        n -= piece.used;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_grpc_text(ngx_http_inference_ctx_t *ctx, const void *p,
    size_t n)
{
    ngx_http_inference_store_t  *text;

    if (n == 0) {
        return NGX_OK;
    }

    text = &ctx->body.text;

    /* with tensors the text is usually short, and grows otherwise */

    if (text->region == NULL
        && ngx_http_inference_store_open(ctx, text,
                                    ngx_max((uint64_t) n,
                                            NGX_HTTP_INFERENCE_STORE_STEP))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (text->len + n > ngx_http_inference_max_text(ctx)) {
        return ngx_http_inference_grpc_long(ctx, text->len + n,
                                            ngx_http_inference_grpc_max(ctx));
    }

    return ngx_http_inference_store_put(ctx, text, p, n);
}


static ngx_int_t
ngx_http_inference_grpc_tensor(ngx_http_inference_ctx_t *ctx,
    const inf_split_piece_t *piece)
{
    uint64_t                     size;
    ngx_http_inference_store_t  *data;

    if (piece->offset == 0
        && ngx_http_inference_grpc_add_place(ctx, piece) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (piece->len == 0) {
        return NGX_OK;
    }

    data = &ctx->body.data;
    size = ctx->grpc->compressed
           ? ngx_min(piece->size,
                     (uint64_t) ngx_http_inference_max_inflated(ctx))
           : ctx->grpc->split.size;

    if (data->region == NULL
        && ngx_http_inference_store_open(ctx, data, size + INF_ARENA_ALIGN)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    data->len = ctx->grpc->places[piece->index] + piece->offset;

    return ngx_http_inference_store_put(ctx, data, piece->data, piece->len);
}


/* Adds a place behind the previous tensor, aligned for vector instructions. */

static ngx_int_t
ngx_http_inference_grpc_add_place(ngx_http_inference_ctx_t *ctx,
    const inf_split_piece_t *piece)
{
    uint32_t                    max;
    uint64_t                    end, *places, *sizes;
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    if (piece->index == grpc->places_max) {

        max = ngx_max(2 * grpc->places_max, 8);

        places = inf_arena_alloc(&ctx->arena, max * sizeof(uint64_t));
        sizes = inf_arena_alloc(&ctx->arena, max * sizeof(uint64_t));

        if (places == NULL || sizes == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        if (grpc->places_max) {
            ngx_memcpy(places, grpc->places,
                       grpc->places_max * sizeof(uint64_t));
            ngx_memcpy(sizes, grpc->sizes,
                       grpc->places_max * sizeof(uint64_t));
        }

        grpc->places = places;
        grpc->sizes = sizes;
        grpc->places_max = max;
    }

    end = 0;

    if (piece->index) {
        end = grpc->places[piece->index - 1] + grpc->sizes[piece->index - 1];
    }

    grpc->places[piece->index] = ngx_align(end, (uint64_t) INF_ARENA_ALIGN);
    grpc->sizes[piece->index] = piece->size;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_grpc_end(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    if (grpc->left
        || (grpc->prefix_len && grpc->prefix_len < INF_GRPC_PREFIX))
    {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the request message is cut "
                                            "short");
    }

    if (grpc->messages == 0) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the call has no request "
                                            "message");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_grpc_unpack(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_http_inference_grpc_t  *grpc;

    grpc = ctx->grpc;

    if (!grpc->compressed) {
        return NGX_OK;
    }

    if (grpc->inflate == NULL) {

        grpc->pool = ngx_create_pool(NGX_MIN_POOL_SIZE,
                                     ctx->request->connection->log);

        if (grpc->pool) {
            grpc->inflate = ngx_http_inference_inflate_new(grpc->pool);
        }

        if (grpc->inflate == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        /* the length is known at its end */
        inf_split_init(&grpc->split, INF_GRPC_MAX_MESSAGE);
    }

    do {
        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        rc = ngx_http_inference_grpc_inflate(ctx);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

    } while (rc == NGX_OK);

    if (!ngx_http_inference_hand_on_wanted(ctx)) {
        ngx_http_inference_store_free(ctx, &ctx->body.packed);
    }

    ngx_destroy_pool(grpc->pool);

    grpc->pool = NULL;
    grpc->inflate = NULL;
    grpc->compressed = 0;

    if (ngx_http_inference_is_split(ctx)
        && !inf_split_at_field(&grpc->split))
    {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "Unable to parse request: its "
                                            "last field is cut short");
    }

    return ngx_http_inference_stores_settle(ctx);
}


/* Inflates a piece.  NGX_DONE: it was the last. */

static ngx_int_t
ngx_http_inference_grpc_inflate(ngx_http_inference_ctx_t *ctx)
{
    off_t                       max;
    size_t                      in, left;
    u_char                     *out;
    ngx_int_t                   rc;
    const u_char               *p;
    const char                 *reason;
    ngx_http_inference_body_t  *body;
    u_char                      piece[NGX_HTTP_INFERENCE_GRPC_PIECE];

    body = &ctx->body;

    p = body->packed.data + body->in_pos;
    in = (size_t) (body->packed.len - body->in_pos);

    max = ngx_min(ngx_http_inference_max_inflated(ctx),
                  ngx_http_inference_grpc_max(ctx));

    out = piece;
    left = sizeof(piece);

    rc = ngx_http_inference_inflate(ctx->grpc->inflate, &p, &in, &out, &left,
                                    &reason);

    if (rc == NGX_ERROR) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "cannot inflate the request "
                                            "message: %s", reason);
    }

    body->in_pos = body->packed.len - in;

    if (body->plain + (out - piece) > max) {
        return ngx_http_inference_grpc_long(ctx, body->plain + (out - piece),
                                            max);
    }

    if (ngx_http_inference_grpc_plain(ctx, piece, out - piece) != NGX_OK) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK && out == piece && in == 0) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "the compressed request message "
                                            "is cut short");
    }

    if (rc == NGX_DONE && in > 0) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "cannot inflate the request "
                                            "message: data follows the end of "
                                            "the compressed stream");
    }

    return rc;
}


ngx_int_t
ngx_http_inference_grpc_read(ngx_http_inference_ctx_t *ctx)
{
    inf_err_t                      *err;
    inf_codec_t                     rc;
    const inf_infer_call_t         *call;
    ngx_http_inference_grpc_t      *grpc;
    ngx_http_inference_loc_conf_t  *ilcf;

    grpc = ctx->grpc;

    if (grpc->message == NULL) {
        err = inf_infer_message_new(&grpc->message, &ctx->arena, NULL);

        if (err) {
            return ngx_http_inference_fail_err(ctx, err);
        }
    }

    do {
        rc = inf_infer_message_read(grpc->message,
                                    (char *) ctx->body.text.data,
                                    ctx->body.text.len, grpc->sizes,
                                    inf_split_count(&grpc->split),
                                    INF_CODEC_BUDGET, &err);

        if (rc == INF_CODEC_AGAIN && ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

    } while (rc == INF_CODEC_AGAIN);

    call = inf_infer_message_call(grpc->message);

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ilcf->model == NULL) {
        ctx->names.model.data = (u_char *) call->model_name.data;
        ctx->names.model.len = call->model_name.len;
        ctx->names.version.data = (u_char *) call->version_text.data;
        ctx->names.version.len = call->version_text.len;
        ctx->version = call->model_version;
    }

    if (rc == INF_CODEC_ERROR) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    if (ngx_http_inference_peek_check(ctx, call->model_name,
                                      call->version_text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->names.model.len == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_NOT_FOUND,
                                       "Request for unknown model: '' is not "
                                       "found");
    }

    ctx->infer = call->infer;
    ctx->read = 1;
    grpc->empty_final = call->empty_final;

    if (ctx->message) {
        ctx->infer.flags |= INF_REQUEST_STREAM;
    }

    return ngx_http_inference_grpc_places(ctx);
}


static ngx_int_t
ngx_http_inference_grpc_places(ngx_http_inference_ctx_t *ctx)
{
    uint32_t                  i;
    const inf_infer_input_t  *input;

    ctx->offsets = inf_arena_calloc(&ctx->arena, ctx->infer.input_count + 1,
                                    sizeof(uint64_t));
    if (ctx->offsets == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    for (i = 0; i < ctx->infer.input_count; i++) {

        input = &ctx->infer.inputs[i];

        if (input->source == INF_SOURCE_RAW) {
            ctx->offsets[i] = ctx->grpc->places[input->raw_entry];
        }
    }

    return NGX_OK;
}
