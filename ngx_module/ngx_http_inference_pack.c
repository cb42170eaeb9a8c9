/*
 * ngx_http_inference_pack.c - compresses an inference's response with deflate
 *                             ("inference_deflate"); nginx itself does gzip.
 */

#include "ngx_module/ngx_http_inference_deflate.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/accept_encoding.h"
#include "core/proto/infer_response.h"


struct ngx_http_inference_packer_s {
    ngx_http_inference_deflater_t  *deflater;
    inf_slice_t                     in;         /* not yet compressed        */
    u_char                         *text;       /* buffer of JSON            */
    uint32_t                        output;     /* index of the next tensor  */
    unsigned                        text_done:1;
};


static ngx_int_t ngx_http_inference_pack_next(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_packer_t *packer);


ngx_int_t
ngx_http_inference_pack_open(ngx_http_inference_ctx_t *ctx)
{
    inf_slice_t                     value;
    ngx_table_elt_t                *accept;
    ngx_http_request_t             *r;
    ngx_http_inference_packer_t    *packer;
    ngx_http_inference_loc_conf_t  *ilcf;

    r = ctx->request;
    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (!ilcf->deflate || r != r->main
        || ctx->endpoint->verb != NGX_HTTP_INFERENCE_MODEL_INFER)
    {
        return NGX_OK;
    }

#if (NGX_HTTP_GZIP)
    /* the encoding depends on Accept-Encoding, for "gzip_vary on" */
    r->gzip_vary = 1;
#endif

#if (NGX_HTTP_GZIP || NGX_HTTP_HEADERS)
    accept = r->headers_in.accept_encoding;
#else
    accept = NULL;
#endif

    if (accept == NULL) {
        return NGX_OK;
    }

    value = ngx_http_inference_slice(&accept->value);

    if (inf_accept_encoding(value) != INF_ENCODING_DEFLATE) {
        return NGX_OK;
    }

    packer = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_packer_t));
    if (packer == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    packer->text = ngx_pnalloc(r->pool, NGX_HTTP_INFERENCE_DEFLATE_STEP);
    packer->deflater = ngx_http_inference_deflater_new(&ctx->arena, 0);

    if (packer->text == NULL || packer->deflater == NULL) {
        ngx_http_inference_pack_close(packer);
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    ctx->packer = packer;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_pack_header(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "deflate");

    /* keeps nginx's filters from compressing again */
    r->headers_out.content_encoding = h;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_pack(ngx_http_inference_ctx_t *ctx, u_char **p, size_t len)
{
    ngx_int_t                     rc;
    ngx_http_inference_packer_t  *packer;

    packer = ctx->packer;

    if (packer->in.len == 0
        && ngx_http_inference_pack_next(ctx, packer) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_deflater_run(packer->deflater, &packer->in, p, len,
                                         packer->in.len == 0);

    if (rc == NGX_ERROR) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    return rc;
}


/* Sets the next bytes to compress; none at the end. */

static ngx_int_t
ngx_http_inference_pack_next(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_packer_t *packer)
{
    size_t        written;
    uint64_t      len;
    inf_err_t    *err;
    const void   *data;
    inf_codec_t   rc;

    while (!packer->text_done) {

        rc = inf_response_fill(ctx->writer, (char *) packer->text,
                               NGX_HTTP_INFERENCE_DEFLATE_STEP, &written,
                               &err);

        if (rc == INF_CODEC_ERROR) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        packer->text_done = (rc == INF_CODEC_DONE);

        if (written) {
            packer->in = inf_slice((char *) packer->text, written);
            return NGX_OK;
        }
    }

    while (packer->output < inf_response_output_count(ctx->writer)) {

        if (inf_response_output(ctx->writer, packer->output++, &data, &len)
            == INF_DELIVER_BINARY
            && len)
        {
            packer->in = inf_slice(data, (size_t) len);
            return NGX_OK;
        }
    }

    return NGX_OK;
}


void
ngx_http_inference_pack_close(ngx_http_inference_packer_t *packer)
{
    if (packer) {
        ngx_http_inference_deflater_free(packer->deflater);
    }
}
