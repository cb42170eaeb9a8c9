/*
 * ngx_http_inference_body.c - a request's body on its way into the arena.
 *
 * An unread body comes through a request body filter: each buffer is copied
 * once to where its bytes belong and nothing is left for nginx to store.  A
 * body that somebody has read before is taken from memory or from its file.
 */

#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_body_length(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_foreign_length(
    ngx_http_inference_ctx_t *ctx, ngx_http_request_body_t *rb);
static ngx_http_request_body_t *ngx_http_inference_body_foreign(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_body_headers(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len);
static ngx_int_t ngx_http_inference_body_encoding(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_header_len(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *value);
static ngx_int_t ngx_http_inference_body_limits(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_room(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_inference_body_of_others(ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx,
    u_char *p, size_t n);
static void ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx,
    size_t n);
static void ngx_http_inference_body_ready(ngx_http_request_t *r);


static ngx_http_request_body_filter_pt  ngx_http_inference_next_body_filter;


ngx_int_t
ngx_http_inference_install_filters(ngx_conf_t *cf)
{
    ngx_http_inference_next_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_inference_body_filter;

    return NGX_OK;
}


/* ---- before anything is received ---------------------------------------- */

ngx_int_t
ngx_http_inference_body_check(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                   header_len;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    body->header_len = -1;
    body->declared = 0;

    if (ngx_http_inference_borrow_wanted(ctx->request)) {
        body->borrow = 1;
        return NGX_OK;
    }

    ngx_str_null(&header_len);

    if (ngx_http_inference_body_length(ctx) != NGX_OK
        || ngx_http_inference_body_headers(ctx, &header_len) != NGX_OK
        || ngx_http_inference_body_encoding(ctx) != NGX_OK
        || ngx_http_inference_body_header_len(ctx, &header_len) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_body_limits(ctx);
}


/* How long the body is, or that nobody knows. */

static ngx_int_t
ngx_http_inference_body_length(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t       *r;
    ngx_http_request_body_t  *rb;

    r = ctx->request;
    rb = ngx_http_inference_body_foreign(r);

    if (rb || r != r->main || r->discard_body) {
        return ngx_http_inference_body_foreign_length(ctx, rb);
    }

    if (r->headers_in.content_length_n >= 0) {
        ctx->body.declared = r->headers_in.content_length_n;

    } else if (r->headers_in.chunked) {
        ctx->body.declared = -1;
    }

    return NGX_OK;
}


/* Another handler has received it: rb, or NULL if there is none. */

static ngx_int_t
ngx_http_inference_body_foreign_length(ngx_http_inference_ctx_t *ctx,
    ngx_http_request_body_t *rb)
{
    ngx_chain_t                *cl;
    ngx_http_request_t         *r;
    ngx_http_inference_body_t  *body;

    r = ctx->request;
    body = &ctx->body;

    body->foreign = 1;

    if (rb && rb->rest > 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "the body of this request is still "
                                       "being received by another handler");
    }

    body->in = rb ? rb->bufs : NULL;

    for (cl = body->in; cl; cl = cl->next) {
        body->declared += ngx_buf_size(cl->buf);
    }

    if (body->declared == 0 && r != r->main
        && !ngx_http_inference_call_has_body(ctx))
    {
        /* nothing to judge is no consent, where this is an auth_request */
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "an inference needs a body and "
                                       "this subrequest has none");
    }

    return NGX_OK;
}


/* The body that is there already; a subrequest may look at its main's. */

static ngx_http_request_body_t *
ngx_http_inference_body_foreign(ngx_http_request_t *r)
{
    if (r != r->main
        && (r->request_body == NULL || r->request_body->bufs == NULL))
    {
        return r->main->request_body;
    }

    return r->request_body;
}


static ngx_int_t
ngx_http_inference_body_headers(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *header_len)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const ngx_str_t  encoding = ngx_string("Content-Encoding");
    static const ngx_str_t  length =
                                ngx_string("Inference-Header-Content-Length");

    part = &ctx->request->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == encoding.len
            && ngx_strncasecmp(h[i].key.data, encoding.data, encoding.len)
               == 0)
        {
            ctx->body.encoding = h[i].value;

        } else if (h[i].key.len == length.len
                   && ngx_strncasecmp(h[i].key.data, length.data, length.len)
                      == 0)
        {
            *header_len = h[i].value;

            if (h[i].value.len == 0) {
                return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                    "Unable to parse Inference-Header-Content-Length, got: ");
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_body_encoding(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                  *value;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    value = &body->encoding;

#define ngx_http_inference_is(v, s)                                           \
    ((v)->len == sizeof(s) - 1                                                \
     && ngx_strncmp((v)->data, s, sizeof(s) - 1) == 0)

    if (value->len == 0 || ngx_http_inference_is(value, "identity")) {
        return NGX_OK;
    }

    if (!ngx_http_inference_is(value, "gzip")
        && !ngx_http_inference_is(value, "deflate"))
    {
        ctx->accept_encoding = 1;
        return ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                       "Unsupported compression type");
    }

    if (body->declared == 0) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "the body is empty but its "
                                       "Content-Encoding is %V", value);
    }

    body->inflate = ngx_http_inference_inflate_new(ctx->request->pool);
    if (body->inflate == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_body_header_len(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value)
{
    off_t                       n;
    ngx_uint_t                  minus;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (value->len == 0 || ngx_http_inference_call_has_body(ctx)) {
        return NGX_OK;
    }

    minus = (value->len > 1 && value->data[0] == '-');

    n = ngx_atoof(value->data + minus, value->len - minus);

    if (n == NGX_ERROR) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
            "Unable to parse Inference-Header-Content-Length, got: %V", value);
    }

    body->header_len = n;

    if (minus
        || (body->declared >= 0 && body->inflate == NULL
            && n > body->declared))
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "inference header size should be in "
                                       "range (0, %O), got: %V",
                                       ngx_max(body->declared, 0), value);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_body_limits(ngx_http_inference_ctx_t *ctx)
{
    off_t                       text;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->declared > ngx_http_inference_max_body(ctx)) {
        return ngx_http_inference_body_long(ctx, "request body is");
    }

    text = body->header_len;

    if (text < 0 && body->inflate == NULL) {
        text = body->declared;
    }

    if (text > (off_t) ngx_http_inference_max_text(ctx)) {
        return ngx_http_inference_text_long(ctx);
    }

    return NGX_OK;
}


/* A body too long by its Content-Length is rejected before it is sent. */

static ngx_int_t
ngx_http_inference_body_room(ngx_http_inference_ctx_t *ctx)
{
    off_t                            size;
    uint64_t                         used;
    ngx_http_inference_main_conf_t  *imcf;

    size = ctx->body.declared;

    if (size <= 0
        || (size <= (off_t) NGX_HTTP_INFERENCE_CALL_SIZE
            && ngx_http_inference_call_has_body(ctx)))
    {
        return NGX_OK;
    }

    imcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_inference_module);

    used = inf_client_arena_stats(ctx->client)->in_use;

    if (size > imcf->arena || used > (uint64_t) (imcf->arena - size)) {
        return ngx_http_inference_arena_full(ctx, size);
    }

    return NGX_OK;
}


/* ---- receiving ---------------------------------------------------------- */

ngx_int_t
ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->body.borrow && ngx_http_inference_borrow_wanted(r)) {
        return ngx_http_inference_borrow(ctx);
    }

    if (ctx->body.borrow) {
        /* somebody has begun to read it in the meantime */
        ctx->body.borrow = 0;

        if (ngx_http_inference_body_check(ctx) != NGX_OK) {
            return ngx_http_inference_reject_early(ctx);
        }
    }

    if (ngx_http_inference_body_room(ctx) != NGX_OK
        || (!ngx_http_inference_call_has_body(ctx)
            && ngx_http_inference_infer_init(ctx) != NGX_OK))
    {
        return ngx_http_inference_reject_early(ctx);
    }

    if (ctx->raw && ngx_http_inference_place_flat(ctx) != NGX_OK) {
        return ngx_http_inference_reject_early(ctx);
    }

    r->request_body_no_buffering = 0;
    r->request_body_in_single_buf = 0;

    if (!ctx->body.foreign) {
        r->request_body_in_file_only = 0;
    }

    ctx->state = NGX_HTTP_INFERENCE_RECEIVING;

    rc = ngx_http_read_client_request_body(r, ngx_http_inference_body_ready);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        ctx->state = NGX_HTTP_INFERENCE_DONE;
        return rc;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_RECEIVING) {
        ngx_http_inference_start_rate(ctx);
    }

    return NGX_DONE;
}


static ngx_int_t
ngx_http_inference_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    size_t                     n;
    uint64_t                   began_ns;
    ngx_chain_t               *cl, last;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx == NULL && ngx_http_inference_body_of_others(r) != NGX_OK) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    if (ctx == NULL
        || ctx->state != NGX_HTTP_INFERENCE_RECEIVING
        || ctx->body.foreign)
    {
        return ngx_http_inference_next_body_filter(r, in);
    }

    last.buf = NULL;
    last.next = NULL;

    began_ns = inf_clock_ns();

    ngx_http_inference_slice(ctx);

    for (cl = in; cl; cl = cl->next) {

        n = cl->buf->last - cl->buf->pos;

        if (n) {
            if (ngx_http_inference_body_receive(ctx, cl->buf->pos, n)
                != NGX_OK)
            {
                ctx->body.rejected = 1;
                ngx_http_inference_body_free(ctx);
                ngx_http_inference_body_swallow(ctx, n);
            }

            cl->buf->pos = cl->buf->last;
        }

        if (cl->buf->last_buf) {
            last.buf = cl->buf;
        }
    }

    ngx_http_inference_turn_ended(began_ns);

    return ngx_http_inference_next_body_filter(r, last.buf ? &last : NULL);
}


/*
 * Another module may read the body before the location's handler does (mirror,
 * auth_request), and nginx's own limit is off there.
 */

static ngx_int_t
ngx_http_inference_body_of_others(ngx_http_request_t *r)
{
    off_t                      size;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->handler != ngx_http_inference_handler) {
        return NGX_OK;
    }

    /* announced, or so far */

    size = ngx_max(r->headers_in.content_length_n, r->request_body->received);

    if (size <= ngx_http_inference_location_max_body(r)) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "client intended to send a body larger than "
                  "inference_max_body: %O bytes", size);

    /* half a body is passed to no handler */

    r->error_page = 1;
    r->lingering_close = 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx, u_char *p,
    size_t n)
{
    size_t                      room;
    u_char                     *dst;
    ngx_http_inference_body_t  *body;

    body = &ctx->body;

    if (body->rejected) {
        ngx_http_inference_body_swallow(ctx, n);
        return NGX_OK;
    }

    body->received += n;

    if (body->received > ngx_http_inference_max_body(ctx)) {
        return ngx_http_inference_body_long(ctx, "request body is");
    }

    if (body->inflate == NULL) {
        return ngx_http_inference_place(ctx, p, n);
    }

    if (body->packed.region == NULL
        && ngx_http_inference_store_open(ctx, &body->packed,
                        body->declared > 0 ? (uint64_t) body->declared
                                           : NGX_HTTP_INFERENCE_STORE_SIZE)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    while (n) {
        if (ngx_http_inference_store_room(ctx, &body->packed, n, &dst, &room)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_memcpy(dst, p, room);

        body->packed.len += room;
        p += room;
        n -= room;
    }

    return NGX_OK;
}


/*
 * A rejected body is read to its end when little is left, so that the
 * connection can be used again; else the answer comes at once.
 */

static void
ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx, size_t n)
{
    ngx_http_inference_body_t  *body;

    body = &ctx->body;
    body->swallowed += n;

    if (body->swallowed > NGX_HTTP_INFERENCE_SWALLOW
        || (body->declared > 0
            && body->declared - body->received > NGX_HTTP_INFERENCE_SWALLOW))
    {
        ngx_http_inference_yield(ctx);
    }
}


static void
ngx_http_inference_body_ready(ngx_http_request_t *r)
{
    uint64_t                   began_ns;
    ngx_http_inference_ctx_t  *ctx;

    began_ns = inf_clock_ns();
    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx == NULL || ctx->state != NGX_HTTP_INFERENCE_RECEIVING) {
        /* was answered or redirected before; this is h2's last frame */
        return;
    }

    ctx->body.complete = 1;
    ctx->state = NGX_HTTP_INFERENCE_READING;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_inference_start_timer(ctx);

    ngx_http_inference_slice(ctx);
    ngx_http_inference_step(ctx);

    ngx_http_inference_turn_ended(began_ns);
}


void
ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r != r->main || ctx->body.complete || ctx->body.foreign) {
        return;
    }

    if (ctx->state != NGX_HTTP_INFERENCE_RECEIVING) {

        if (r->headers_in.expect && !r->expect_tested) {
            /* nobody was told to continue */
            r->expect_tested = 1;
            r->keepalive = 0;
        }

        if (ngx_http_discard_request_body(r) != NGX_OK) {
            r->keepalive = 0;
        }

        return;
    }

    /* half of it was read: nginx closes after some lingering */

    r->read_event_handler = ngx_http_block_reading;
    r->reading_body = 1;
    r->keepalive = 0;
    r->lingering_close = 1;

    if (r->connection->read->timer_set) {
        ngx_del_timer(r->connection->read);
    }

#if (NGX_HTTP_V2)
    if (r->stream) {
        r->stream->skip_data = 1;
    }
#endif
}


ngx_int_t
ngx_http_inference_body_settle(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_inference_store_settle(ctx, &ctx->body.packed) != NGX_OK
        || ngx_http_inference_store_settle(ctx, &ctx->body.text) != NGX_OK
        || ngx_http_inference_store_settle(ctx, &ctx->body.data) != NGX_OK)
    {
        return NGX_AGAIN;
    }

    return NGX_OK;
}


void
ngx_http_inference_body_free(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_store_free(ctx, &ctx->body.packed);
    ngx_http_inference_store_free(ctx, &ctx->body.text);
    ngx_http_inference_store_free(ctx, &ctx->body.data);
}
