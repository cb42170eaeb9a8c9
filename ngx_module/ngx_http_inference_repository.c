/*
 * ngx_http_inference_repository.c - the repository API: the core gets the REST
 *                                   body as it came, because the files in it
 *                                   would keep the loop for too long.
 */

#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_repository_append(
    ngx_http_inference_ctx_t *ctx, const void *data, size_t len);


ngx_int_t
ngx_http_inference_repository_room(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_store_t  *text;

    text = &ctx->body.text;

    if (text->region == NULL) {
        return NGX_OK;
    }

    return ngx_http_inference_store_ensure(ctx, text,
                                           ctx->model.len + sizeof(uint32_t));
}


ngx_int_t
ngx_http_inference_repository_pack(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s)
{
    uint32_t                     len;
    ngx_http_inference_store_t  *text;

    text = &ctx->body.text;
    len = (uint32_t) ctx->model.len;

    if (text->region == NULL
        && ngx_http_inference_store_open(ctx, text, len + sizeof(len))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_inference_repository_append(ctx, ctx->model.data, len)
        != NGX_OK
        || ngx_http_inference_repository_append(ctx, &len, sizeof(len))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (ctx->endpoint->verb) {

    case NGX_HTTP_INFERENCE_REPOSITORY_LOAD:
        s->method = INF_METHOD_REPOSITORY_MODEL_LOAD;
        break;

    case NGX_HTTP_INFERENCE_REPOSITORY_UNLOAD:
        s->method = INF_METHOD_REPOSITORY_MODEL_UNLOAD;
        break;

    default:
        s->method = INF_METHOD_REPOSITORY_INDEX;
        break;
    }

    s->flags |= INF_SUBMIT_FLAG_REST;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_repository_append(ngx_http_inference_ctx_t *ctx,
    const void *data, size_t len)
{
    size_t         room;
    u_char        *dst;
    const u_char  *p;

    p = data;

    while (len) {
        if (ngx_http_inference_store_room(ctx, &ctx->body.text, len, &dst,
                                          &room)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_memcpy(dst, p, room);

        ctx->body.text.len += room;
        p += room;
        len -= room;
    }

    return NGX_OK;
}
