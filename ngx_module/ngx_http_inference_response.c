/*
 * ngx_http_inference_response.c - sends an inference's response: JSON as the
 *                                 socket drains, tensors directly from the
 *                                 response arena.
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_response.h"

#include "core/base/error.h"
#include "core/base/points.h"
#include "core/proto/infer_response.h"
#include "core/proto/number.h"


#define NGX_HTTP_INFERENCE_FIRST_TEXT   2048
#define NGX_HTTP_INFERENCE_MORE_TEXT    ((size_t) 64 * 1024)
#define NGX_HTTP_INFERENCE_MAX_FRAMES   64


static ngx_int_t ngx_http_inference_first_text(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t **out);
static ngx_int_t ngx_http_inference_fill(ngx_http_inference_ctx_t *ctx,
    size_t size, ngx_chain_t **cl);
static ngx_int_t ngx_http_inference_fill_text(ngx_http_inference_ctx_t *ctx,
    ngx_buf_t *b);
static ngx_int_t ngx_http_inference_fill_packed(ngx_http_inference_ctx_t *ctx,
    ngx_buf_t *b);
static ngx_int_t ngx_http_inference_send_head(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *text);
static ngx_int_t ngx_http_inference_binary_header(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_last(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *out);
static ngx_int_t ngx_http_inference_tensors(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t **ll);
static ngx_int_t ngx_http_inference_output_filter(ngx_http_request_t *r,
    ngx_chain_t *in);


static ngx_http_output_body_filter_pt  ngx_http_inference_next_output_filter;


ngx_int_t
ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx)
{
    ngx_chain_t         *out;
    ngx_http_request_t  *r;

    r = ctx->request;
    out = NULL;

    if (ngx_http_inference_pack_open(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->packer == NULL
        && ngx_http_inference_first_text(ctx, &out) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->rc = ngx_http_inference_send_head(ctx, out);

    INF_POINT(HEAD_SENT);

    if (ctx->rc == NGX_ERROR || ctx->rc > NGX_OK || r->header_only) {
        return NGX_OK;
    }

    if (ctx->packer) {
        return NGX_DECLINED;
    }

    if (ctx->text_done) {
        return ngx_http_inference_last(ctx, out);
    }

    return (ngx_http_inference_output(ctx, out) == NGX_OK) ? NGX_DECLINED
                                                           : NGX_OK;
}


/* Writes the first JSON to one buffer, or to a second, larger one. */

static ngx_int_t
ngx_http_inference_first_text(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t **out)
{
    size_t  size;

    size = NGX_HTTP_INFERENCE_FIRST_TEXT;

    if (ctx->json_len >= 0) {
        size = (size_t) ngx_min(ctx->json_len,
                                (off_t) NGX_HTTP_INFERENCE_MORE_TEXT);
    }

    if (ngx_http_inference_fill(ctx, size, out) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->text_done) {
        return NGX_OK;
    }

    return ngx_http_inference_fill(ctx, NGX_HTTP_INFERENCE_MORE_TEXT,
                                   &(*out)->next);
}


/* Fills a new or drained buffer with the next bytes; *cl may become NULL. */

static ngx_int_t
ngx_http_inference_fill(ngx_http_inference_ctx_t *ctx, size_t size,
    ngx_chain_t **cl)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *link;

    link = ngx_chain_get_free_buf(ctx->request->pool, &ctx->free);

    if (link == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    b = link->buf;

    if (b->start == NULL) {
        b->start = ngx_palloc(ctx->request->pool, size);
        if (b->start == NULL) {
            return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL,
                                           "out of memory");
        }

        b->end = b->start + size;
    }

    b->pos = b->start;
    b->last = b->start;
    b->temporary = 1;
    b->recycled = 0;
    b->tag = (ngx_buf_tag_t) &ngx_http_inference_module;

    rc = ctx->packer ? ngx_http_inference_fill_packed(ctx, b)
                     : ngx_http_inference_fill_text(ctx, b);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (b->last == b->pos) {
        link->next = ctx->free;
        ctx->free = link;
        *cl = NULL;
        return NGX_OK;
    }

    *cl = link;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_fill_text(ngx_http_inference_ctx_t *ctx, ngx_buf_t *b)
{
    size_t        written;
    inf_err_t    *err;
    inf_codec_t   rc;

    for ( ;; ) {
        written = 0;

        rc = inf_response_fill(ctx->writer, b->last, b->end - b->last,
                               &written, &err);
        b->last += written;

        if (rc == INF_CODEC_ERROR) {
            return ngx_http_inference_fail_err(ctx, err);
        }

        if (rc == INF_CODEC_DONE) {
            ctx->text_done = 1;
            return NGX_OK;
        }

        if (b->last == b->end || written == 0) {
            return NGX_OK;
        }
    }
}


/* Fills the buffer until it is full or the slice is over. */

static ngx_int_t
ngx_http_inference_fill_packed(ngx_http_inference_ctx_t *ctx, ngx_buf_t *b)
{
    ngx_int_t  rc;

    do {
        rc = ngx_http_inference_pack(ctx, &b->last, b->end - b->last);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DONE) {
            ctx->text_done = 1;
            return NGX_OK;
        }

    } while (b->last < b->end && !ngx_http_inference_slice_over(ctx));

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_send_head(ngx_http_inference_ctx_t *ctx, ngx_chain_t *text)
{
    off_t                length;
    uint64_t             binary;
    ngx_http_request_t  *r;

    r = ctx->request;
    binary = inf_response_binary_size(ctx->writer);
    length = 0;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;

    if (ctx->packer) {

        if (ngx_http_inference_pack_header(r) != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (ctx->json_len >= 0) {
        r->headers_out.content_length_n = ctx->json_len + binary;

    } else if (ctx->text_done) {

        for ( /* void */ ; text; text = text->next) {
            length += ngx_buf_size(text->buf);
        }

        r->headers_out.content_length_n = length;
    }

    ngx_str_set(&r->headers_out.content_type, "application/json");

    if (binary && ngx_http_inference_binary_header(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_inference_load_header(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_send_header(r);
}


/* Adds the header with the length of the JSON, which tensors follow. */

static ngx_int_t
ngx_http_inference_binary_header(ngx_http_inference_ctx_t *ctx)
{
    u_char                         *p;
    ngx_str_t                      *type;
    ngx_http_request_t             *r;
    ngx_http_inference_loc_conf_t  *ilcf;

    r = ctx->request;
    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);
    type = &r->headers_out.content_type;

    ngx_str_set(type, "application/octet-stream");

    if (ilcf->binary_reply) {
        type->data = ngx_pnalloc(r->pool,
                                 ilcf->binary_type.len + NGX_INT64_LEN);
        if (type->data == NULL) {
            return NGX_ERROR;
        }

        type->len = ngx_sprintf(type->data, "%V%O", &ilcf->binary_type,
                                ctx->json_len)
                    - type->data;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    p[inf_number_write_int64((char *) p, ctx->json_len)] = '\0';

    return ngx_http_inference_add_header(r, "Inference-Header-Content-Length",
                                         (char *) p);
}


/* Sends the rest of the JSON and the uncompressed tensors. */

static ngx_int_t
ngx_http_inference_last(ngx_http_inference_ctx_t *ctx, ngx_chain_t *out)
{
    ngx_chain_t  **ll;

    for (ll = &out; *ll; ll = &(*ll)->next) { /* void */ }

    ctx->rc = ngx_http_inference_tensors(ctx, ll);

    if (ctx->rc == NGX_OK) {
        ctx->rc = ngx_http_inference_send_body(ctx->request, out);

        INF_POINT(BODY_SENT);
    }

    return NGX_OK;
}


/* Links the binary tensors behind the JSON, and the mark of the end. */

static ngx_int_t
ngx_http_inference_tensors(ngx_http_inference_ctx_t *ctx, ngx_chain_t **ll)
{
    uint32_t             i, n;
    uint64_t             len;
    const void          *data;
    ngx_http_request_t  *r;

    r = ctx->request;
    n = ctx->packer ? 0 : inf_response_output_count(ctx->writer);

    for (i = 0; i < n; i++) {

        if (inf_response_output(ctx->writer, i, &data, &len)
            != INF_DELIVER_BINARY
            || len == 0)
        {
            continue;
        }

        *ll = ngx_http_inference_link(r->pool, data, (size_t) len);
        if (*ll == NULL) {
            return NGX_ERROR;
        }

        ll = &(*ll)->next;
    }

    *ll = ngx_http_inference_end_link(r);

    return *ll ? NGX_OK : NGX_ERROR;
}


ngx_chain_t *
ngx_http_inference_end_link(ngx_http_request_t *r)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ngx_http_inference_link(r->pool, NULL, 0);

    if (cl) {
        b = cl->buf;
        b->last_buf = (r == r->main) ? 1 : 0;
        b->sync = !b->last_buf;
        b->last_in_chain = 1;
    }

    return cl;
}


/* Fills and sends until the socket is full or the slice is over. */

ngx_int_t
ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t     rc;
    ngx_chain_t  *out;

    if (ctx->event == NGX_HTTP_INFERENCE_WRITABLE) {

        rc = ngx_http_inference_drained(ctx);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    for ( ;; ) {

        if (ngx_http_inference_slice_over(ctx)) {
            return NGX_AGAIN;
        }

        if (ngx_http_inference_is_blocked(ctx)) {
            return ngx_http_inference_wait_writable(ctx);
        }

        if (ngx_http_inference_fill(ctx, NGX_HTTP_INFERENCE_MORE_TEXT, &out)
            != NGX_OK)
        {
            ngx_http_inference_log_failed(ctx, "response", "cut short",
                                          ctx->error);
            ctx->rc = NGX_ERROR;
            return NGX_OK;
        }

        if (ctx->text_done) {
            return ngx_http_inference_last(ctx, out);
        }

        if (ngx_http_inference_output(ctx, out) != NGX_OK) {
            return NGX_OK;
        }
    }
}


ngx_uint_t
ngx_http_inference_is_blocked(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    return ctx->busy && (r->buffered || r->connection->buffered
                         || r != r->connection->data);
}


/* NGX_DECLINED: the socket has room. */

ngx_int_t
ngx_http_inference_drained(ngx_http_inference_ctx_t *ctx)
{
    ngx_event_t         *wev;
    ngx_http_request_t  *r;

    r = ctx->request;
    wev = r->connection->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;
        ctx->rc = NGX_HTTP_REQUEST_TIME_OUT;
        return NGX_OK;
    }

    if (wev->delayed) {
        return ngx_http_inference_wait_writable(ctx);
    }

    return (ngx_http_inference_output(ctx, NULL) == NGX_OK) ? NGX_DECLINED
                                                            : NGX_OK;
}


/* NGX_ERROR: ctx->rc is NGX_ERROR. */

ngx_int_t
ngx_http_inference_output(ngx_http_inference_ctx_t *ctx, ngx_chain_t *out)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    rc = ngx_http_output_filter(r, out);

    ngx_chain_update_chains(r->pool, &ctx->free, &ctx->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_inference_module);

    ctx->rc = (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;

    return ctx->rc;
}


void
ngx_http_inference_output_install_filter(void)
{
    ngx_http_inference_next_output_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_inference_output_filter;
}


/*
 * Each time that frames of HTTP/2 have been sent, nginx creates those of
 * another sendfile_max_chunk of the body, as far as the client's window goes.
 * It closes a connection with 10000 waiting frames as a flood: a client with a
 * large window would lose a large response.  So no frames are created while
 * some wait.
 */

static ngx_int_t
ngx_http_inference_output_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
#if (NGX_HTTP_V2)

    if (in == NULL && r->stream
        && r->stream->queued > NGX_HTTP_INFERENCE_MAX_FRAMES
        && ngx_http_get_module_ctx(r, ngx_http_inference_module))
    {
        return NGX_AGAIN;
    }

#endif

    return ngx_http_inference_next_output_filter(r, in);
}


/* NGX_OK: nothing to wait for, ctx->rc is set. */

ngx_int_t
ngx_http_inference_wait_writable(ngx_http_inference_ctx_t *ctx)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    wev = r->connection->write;

    if (r != r->connection->data) {
        /* nginx runs it after the parent's output */
        return NGX_DONE;
    }

    clcf = ngx_http_get_module_loc_conf(r->main, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        ctx->rc = NGX_ERROR;
        return NGX_OK;
    }

    return NGX_DONE;
}
