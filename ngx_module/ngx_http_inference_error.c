/*
 * ngx_http_inference_error.c - why a request fails, and what it is told.
 */

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/message_utf8.h"


#define NGX_HTTP_INFERENCE_ERROR_MAX    2048


static ngx_uint_t ngx_http_inference_status(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code);
static ngx_uint_t ngx_http_inference_precise(inf_err_code_t code,
    inf_err_cause_t cause);
static ngx_int_t ngx_http_inference_fail_with(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status, inf_err_code_t code, const void *text, size_t len);
static ngx_uint_t ngx_http_inference_intercepted(ngx_http_request_t *r,
    ngx_uint_t status);
static ngx_int_t ngx_http_inference_send_error(ngx_http_inference_ctx_t *ctx);


/* ---- internal codes and HTTP -------------------------------------------- */

static ngx_uint_t
ngx_http_inference_status(ngx_http_inference_ctx_t *ctx, inf_err_code_t code)
{
    ngx_uint_t                      status;
    ngx_http_inference_loc_conf_t  *ilcf;

    static const ngx_uint_t  statuses[] = {
        NGX_HTTP_BAD_REQUEST,               /* INF_ERR_UNKNOWN        */
        NGX_HTTP_INTERNAL_SERVER_ERROR,     /* INF_ERR_INTERNAL       */
        NGX_HTTP_NOT_FOUND,                 /* INF_ERR_NOT_FOUND      */
        NGX_HTTP_BAD_REQUEST,               /* INF_ERR_INVALID_ARG    */
        NGX_HTTP_SERVICE_UNAVAILABLE,       /* INF_ERR_UNAVAILABLE    */
        NGX_HTTP_NOT_IMPLEMENTED,           /* INF_ERR_UNSUPPORTED    */
        NGX_HTTP_BAD_REQUEST,               /* INF_ERR_ALREADY_EXISTS */
        NGX_HTTP_BAD_REQUEST                /* INF_ERR_CANCELLED      */
    };

    if ((size_t) code >= sizeof(statuses) / sizeof(statuses[0])) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->cause == INF_CAUSE_NOT_READY) {
        return NGX_HTTP_BAD_REQUEST;
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ilcf->errors == NGX_HTTP_INFERENCE_ERRORS_PRECISE) {

        status = ngx_http_inference_precise(code, ctx->cause);

        if (status) {
            return status;
        }
    }

    return statuses[code];
}


/* The status that only "inference_errors precise" has; 0: none. */

static ngx_uint_t
ngx_http_inference_precise(inf_err_code_t code, inf_err_cause_t cause)
{
    if (code == INF_ERR_CANCELLED) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    switch (cause) {

    case INF_CAUSE_FULL:
        return NGX_HTTP_TOO_MANY_REQUESTS;

    case INF_CAUSE_TIMED_OUT:
        return NGX_HTTP_GATEWAY_TIME_OUT;

    case INF_CAUSE_NONE:
    case INF_CAUSE_STRINGS:
    case INF_CAUSE_NOT_READY:
        break;
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_fail_with(ngx_http_inference_ctx_t *ctx, ngx_uint_t status,
    inf_err_code_t code, const void *text, size_t len)
{
    if (ctx->failed) {
        return NGX_ERROR;
    }

    ctx->failed = 1;
    ctx->status = status;
    ctx->code = code;

    ctx->error.data = ngx_pnalloc(ctx->request->pool, len + 1);

    if (ctx->error.data) {
        ngx_memcpy(ctx->error.data, text, len);
        ctx->error.len = len;

        /* names that it quotes may be of any bytes, its end may be cut off */
        inf_utf8_repair((char *) ctx->error.data, len);
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_http_inference_fail(ngx_http_inference_ctx_t *ctx, inf_err_code_t code,
    const char *fmt, ...)
{
    u_char   *last;
    va_list   args;
    u_char    text[NGX_HTTP_INFERENCE_ERROR_MAX];

    va_start(args, fmt);
    last = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    return ngx_http_inference_fail_with(ctx,
                                        ngx_http_inference_status(ctx, code),
                                        code, text, last - text);
}


ngx_int_t
ngx_http_inference_fail_status(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status, const char *fmt, ...)
{
    u_char          *last;
    va_list          args;
    inf_err_code_t   code;
    u_char           text[NGX_HTTP_INFERENCE_ERROR_MAX];

    va_start(args, fmt);
    last = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    code = (status == NGX_HTTP_NOT_FOUND) ? INF_ERR_NOT_FOUND
                                          : INF_ERR_INVALID_ARG;

    return ngx_http_inference_fail_with(ctx, status, code, text, last - text);
}


ngx_int_t
ngx_http_inference_fail_timeout(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    ctx->cause = INF_CAUSE_TIMED_OUT;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "Request timeout expired: no answer "
                                   "within inference_timeout of %M ms",
                                   ilcf->timeout);
}


ngx_int_t
ngx_http_inference_fail_no_core(ngx_http_inference_ctx_t *ctx)
{
    ctx->retry_after = 1;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "the inference core is not running");
}


ngx_int_t
ngx_http_inference_fail_text(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code, const void *text, size_t len)
{
    return ngx_http_inference_fail_with(ctx,
                                        ngx_http_inference_status(ctx, code),
                                        code, text, len);
}


ngx_int_t
ngx_http_inference_fail_err(ngx_http_inference_ctx_t *ctx, inf_err_t *err)
{
    const char  *text;

    text = inf_err_msg(err);

    (void) ngx_http_inference_fail_text(ctx, inf_err_code(err), text,
                                        ngx_strlen(text));
    inf_err_free(err);

    return NGX_ERROR;
}


/* ---- errors ------------------------------------------------------------- */

ngx_int_t
ngx_http_inference_reject_early(ngx_http_inference_ctx_t *ctx)
{
    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ngx_http_inference_intercepted(ctx->request, ctx->status)) {
        ctx->state = NGX_HTTP_INFERENCE_DONE;
        return ctx->status;
    }

    ngx_http_inference_body_stop(ctx);

    ctx->state = NGX_HTTP_INFERENCE_DONE;

    return ngx_http_inference_send_error(ctx);
}


void
ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->state == NGX_HTTP_INFERENCE_CONNECTING) {
        /* its body was not touched */
        ngx_http_inference_finalize(ctx, ngx_http_inference_reject_early(ctx));
        return;
    }

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->failed, 1);

    if (r == r->main && !r->discard_body) {
        r->read_event_handler = ngx_http_block_reading;
    }

    if (ngx_http_inference_intercepted(r, ctx->status)) {

        rc = ngx_http_inference_hand_on(ctx);

        if (rc == NGX_OK) {
            ngx_http_inference_finalize(ctx, ctx->status);
            return;
        }

        if (rc == NGX_ERROR) {
            ngx_http_inference_finalize(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    if (ctx->ticket.submitted && !ctx->ticket.final) {
        ngx_http_inference_abandon(&ctx->ticket);
        ctx->abandoned = 1;
    }

    ngx_http_inference_body_stop(ctx);

    rc = ngx_http_inference_send_error(ctx);

    ngx_http_inference_finalize(ctx, rc);
}


/* Whether error_page names this status: then it has the word. */

static ngx_uint_t
ngx_http_inference_intercepted(ngx_http_request_t *r, ngx_uint_t status)
{
    ngx_uint_t                 i;
    ngx_http_err_page_t       *page;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->error_pages == NULL || r->error_page || r->uri_changes == 0) {
        return 0;
    }

    page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {
        if (page[i].status == (ngx_int_t) status) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_send_error(ngx_http_inference_ctx_t *ctx)
{
    u_char              *p;
    size_t               len;
    ngx_str_t            body;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (((ctx->retry_after || ctx->cause == INF_CAUSE_FULL)
         && ngx_http_inference_add_header(r, "Retry-After", "1") != NGX_OK)
        || (ctx->accept_encoding
            && ngx_http_inference_add_header(r, "Accept-Encoding",
                                             "gzip, deflate") != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->error.len == 0) {
        ngx_str_null(&body);
        return ngx_http_inference_send(r, ctx->status, &body);
    }

    len = ctx->error.len
          + ngx_escape_json(NULL, ctx->error.data, ctx->error.len);

    body.data = ngx_pnalloc(r->pool, len + sizeof("{\"error\":\"\"}") - 1);
    if (body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_cpymem(body.data, "{\"error\":\"", sizeof("{\"error\":\"") - 1);
    p = (u_char *) ngx_escape_json(p, ctx->error.data, ctx->error.len);
    *p++ = '"';
    *p++ = '}';

    body.len = p - body.data;

    return ngx_http_inference_send(r, ctx->status, &body);
}


ngx_int_t
ngx_http_inference_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *body)
{
    static ngx_str_t  json = ngx_string("application/json");
    static ngx_str_t  plain = ngx_string("text/plain");

    return ngx_http_inference_send_as(r, status, body->len ? &json : &plain,
                                      body);
}


ngx_int_t
ngx_http_inference_send_as(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_str_t *body)
{
    ngx_buf_t    *b;
    ngx_chain_t   out;

    if (body->len == 0) {
        return ngx_http_inference_send_chain(r, status, type, NULL);
    }

    b = ngx_create_temp_buf(r->pool, body->len);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->last = ngx_cpymem(b->pos, body->data, body->len);

    out.buf = b;
    out.next = NULL;

    return ngx_http_inference_send_chain(r, status, type, &out);
}


ngx_int_t
ngx_http_inference_send_chain(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_chain_t *out)
{
    off_t         len;
    ngx_int_t     rc;
    ngx_buf_t    *last;
    ngx_chain_t  *cl;

    len = 0;
    last = NULL;

    for (cl = out; cl; cl = cl->next) {
        last = cl->buf;
        len += ngx_buf_size(last);
    }

    r->headers_out.status = status;
    r->headers_out.content_length_n = len;

    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_inference_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    if (last == NULL) {
        /* filters may have something to add */
        return ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    last->last_buf = (r == r->main) ? 1 : 0;
    last->last_in_chain = 1;

    return ngx_http_output_filter(r, out);
}


/* Nothing is a copy of anything: conditions are not for us. */

ngx_int_t
ngx_http_inference_send_header(ngx_http_request_t *r)
{
    r->disable_not_modified = 1;

    return ngx_http_send_header(r);
}


ngx_int_t
ngx_http_inference_add_header(ngx_http_request_t *r, char *key, char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    return NGX_OK;
}
