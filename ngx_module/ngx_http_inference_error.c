/*
 * ngx_http_inference_error.c - failures of a request and their texts; short
 *                              answers in general.
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/proto/message_utf8.h"


#define NGX_HTTP_INFERENCE_ERROR_MAX    2048

/* limit of a text chosen by a client, in bytes */
#define NGX_HTTP_INFERENCE_LINE_MAX     1024

#define NGX_HTTP_INFERENCE_LOADING                                            \
    "; the next core still loads the models of the one that ended"


static ngx_uint_t ngx_http_inference_sagemaker(inf_err_code_t code,
    inf_err_cause_t cause);
static ngx_uint_t ngx_http_inference_precise(inf_err_code_t code,
    inf_err_cause_t cause);
static ngx_int_t ngx_http_inference_fail_with(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status, inf_err_code_t code, const void *text, size_t len);
static ngx_uint_t ngx_http_inference_says_not_ready(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_log_end(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t level, const char *what, const char *how, ngx_str_t why);
static ngx_uint_t ngx_http_inference_serves_part(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_error_body(ngx_http_inference_ctx_t *ctx,
    ngx_buf_t **b);
static ngx_uint_t ngx_http_inference_hold_socket(ngx_http_request_t *r);
static void ngx_http_inference_let_socket(ngx_http_request_t *r,
    ngx_uint_t held);


/* ---- internal codes and HTTP -------------------------------------------- */

ngx_uint_t
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

    status = 0;

    if (ilcf->errors != NGX_HTTP_INFERENCE_ERRORS_TRITON) {
        status = ngx_http_inference_sagemaker(code, ctx->cause);
    }

    if (status == 0 && ilcf->errors == NGX_HTTP_INFERENCE_ERRORS_PRECISE) {
        status = ngx_http_inference_precise(code, ctx->cause);
    }

    return status ? status : statuses[code];
}


/* The status that Triton uses on its port of SageMaker alone; 0: none. */

static ngx_uint_t
ngx_http_inference_sagemaker(inf_err_code_t code, inf_err_cause_t cause)
{
    if (code == INF_ERR_ALREADY_EXISTS) {
        return NGX_HTTP_CONFLICT;
    }

    if (cause == INF_CAUSE_NO_MEMORY) {
        return NGX_HTTP_INSUFFICIENT_STORAGE;
    }

    return 0;
}


/* The status used only by "inference_errors precise"; 0: none. */

static ngx_uint_t
ngx_http_inference_precise(inf_err_code_t code, inf_err_cause_t cause)
{
    if (code == INF_ERR_CANCELLED) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    switch (cause) {

    case INF_CAUSE_FULL:
    case INF_CAUSE_UNTAKEN:
        return NGX_HTTP_TOO_MANY_REQUESTS;

    case INF_CAUSE_TIMED_OUT:
        return NGX_HTTP_GATEWAY_TIME_OUT;

    case INF_CAUSE_NONE:
    case INF_CAUSE_STRINGS:
    case INF_CAUSE_NOT_READY:
    case INF_CAUSE_STARTING:
    case INF_CAUSE_UNNAMED:
    case INF_CAUSE_QUARANTINED:
    case INF_CAUSE_NO_MEMORY:
        break;
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_fail_with(ngx_http_inference_ctx_t *ctx, ngx_uint_t status,
    inf_err_code_t code, const void *text, size_t len)
{
    if (ctx->status) {
        return NGX_ERROR;
    }

    ctx->status = status;
    ctx->code = code;

    ctx->error.data = inf_arena_alloc(&ctx->arena, len + 1);

    if (ctx->error.data) {
        ngx_memcpy(ctx->error.data, text, len);
        ctx->error.len = len;

        /* quoted names may have any bytes, and the end may be truncated */
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
    ngx_uint_t                      loading;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    loading = (ctx->state == NGX_HTTP_INFERENCE_PAUSING);

    ctx->cause = INF_CAUSE_TIMED_OUT;

    if (ctx->grpc) {
        ctx->grpc->status = INF_GRPC_DEADLINE_EXCEEDED;
    }

    if (loading) {
        ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;
    }

    if (ctx->deadline_ns && ctx->deadline_ns == ctx->client_deadline_ns) {
        return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                       "Deadline Exceeded");
    }

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "Request timeout expired: no answer "
                                   "within inference_timeout of %M ms%s",
                                   ilcf->timeout,
                                   loading ? NGX_HTTP_INFERENCE_LOADING
                                           : "");
}


ngx_int_t
ngx_http_inference_fail_loading(ngx_http_inference_ctx_t *ctx, ngx_msec_t ms)
{
    ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "no answer within %M s"
                                   NGX_HTTP_INFERENCE_LOADING, ms / 1000);
}


ngx_int_t
ngx_http_inference_fail_no_core(ngx_http_inference_ctx_t *ctx)
{
    ctx->hint = NGX_HTTP_INFERENCE_RETRY_AFTER;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "the inference core is not running%V",
                                   ngx_http_inference_why_no_channel());
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


void
ngx_http_inference_log_error(ngx_http_inference_ctx_t *ctx, ngx_str_t error)
{
    if (error.len) {
        ngx_http_inference_log_end(ctx,
                                   ngx_http_inference_says_not_ready(ctx)
                                   ? NGX_LOG_INFO : NGX_LOG_ERR,
                                   "request", "failed", error);
    }
}


/* Clients that wait for a model ask again and again. */

static ngx_uint_t
ngx_http_inference_says_not_ready(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint
           && ctx->endpoint->call == INF_METHOD_MODEL_READY
           && (ctx->code == INF_ERR_NOT_FOUND
               || ctx->code == INF_ERR_UNAVAILABLE);
}


void
ngx_http_inference_log_failed(ngx_http_inference_ctx_t *ctx, const char *what,
    const char *how, ngx_str_t why)
{
    ngx_http_inference_log_end(ctx, NGX_LOG_ERR, what, how, why);
}


void
ngx_http_inference_log_handed_on(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_log_end(ctx, NGX_LOG_INFO, "request",
                               "handed on to error_page", ctx->error);
}


/* Logs, for example: repository load of model "m" failed: ... */

static void
ngx_http_inference_log_end(ngx_http_inference_ctx_t *ctx, ngx_uint_t level,
    const char *what, const char *how, ngx_str_t why)
{
    ngx_str_t                             model, kind;
    ngx_http_request_t                   *r;
    const ngx_http_inference_endpoint_t  *ep;

    r = ctx->request;
    ep = ctx->endpoint;
    model = ctx->names.model;

    ngx_str_set(&kind, "inference");

    if (ep && ep->part == NGX_HTTP_INFERENCE_REPOSITORY) {
        ngx_str_set(&kind, "repository");
        what = (const char *) ep->name.data;

    } else if (ep && !(ep->part & (NGX_HTTP_INFERENCE_INFER
                                   |NGX_HTTP_INFERENCE_GENERATE)))
    {
        kind = ep->name;
    }

    if (ep && ep->part == NGX_HTTP_INFERENCE_SHARED_MEMORY) {
        ngx_str_null(&model);                   /* the name is that of a
                                                   region                   */
    }

    if (ngx_http_inference_one_line(r->pool, &model) == NGX_OK
        && ngx_http_inference_one_line(r->pool, &why) == NGX_OK)
    {
        ngx_log_error(level, r->connection->log, 0, "%V %s%s%V%s %s: %V",
                      &kind, what, model.len ? " of model \"" : "", &model,
                      model.len ? "\"" : "", how, &why);
    }
}


/* ---- answers ------------------------------------------------------------ */

ngx_http_err_page_t *
ngx_http_inference_intercepted(ngx_http_inference_ctx_t *ctx)
{
    return ngx_http_inference_page_of(ctx, ctx->status);
}


/*
 * The row of error_page for the status, if inference_intercept_errors is on.
 * A request for a part that is not served here keeps our error: the next
 * handler may be a server that clients may use for models only.
 */

ngx_http_err_page_t *
ngx_http_inference_page_of(ngx_http_inference_ctx_t *ctx, ngx_uint_t status)
{
    ngx_uint_t                 i;
    ngx_http_request_t        *r;
    ngx_http_err_page_t       *page;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;

    if (!ngx_http_inference_may_intercept(r)
        || !ngx_http_inference_serves_part(ctx))
    {
        return NULL;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {
        if (page[i].status == (ngx_int_t) status) {
            return &page[i];
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_inference_serves_part(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    return ctx->endpoint
           && (ilcf->model || (ctx->endpoint->part & ilcf->parts));
}


ngx_uint_t
ngx_http_inference_may_intercept(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return ilcf->intercept && clcf->error_pages
           && !r->error_page && r->uri_changes;
}


ngx_int_t
ngx_http_inference_send_error(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_chain_t          out;
    ngx_http_request_t  *r;

    static ngx_str_t  json = ngx_string("application/json");
    static ngx_str_t  plain = ngx_string("text/plain");

    r = ctx->request;
    rc = NGX_OK;

    ngx_http_inference_keep_plain(r);

    if (ctx->hint == NGX_HTTP_INFERENCE_RETRY_AFTER
        || ctx->cause == INF_CAUSE_FULL)
    {
        rc = ngx_http_inference_add_header(r, "Retry-After", "1");
    }

    if (ctx->hint == NGX_HTTP_INFERENCE_ACCEPT_ENCODING) {
        rc = ngx_http_inference_add_header(r, "Accept-Encoding",
                                           "gzip, deflate");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->error.len == 0
        && !(ctx->endpoint && ngx_http_inference_is_infer(ctx)))
    {
        return ngx_http_inference_send_chain(r, ctx->status, &plain, NULL);
    }

    if (ngx_http_inference_error_body(ctx, &out.buf) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    out.next = NULL;

    return ngx_http_inference_send_chain(r, ctx->status, &json, &out);
}


static ngx_int_t
ngx_http_inference_error_body(ngx_http_inference_ctx_t *ctx, ngx_buf_t **b)
{
    size_t   len;
    u_char  *p;

    len = ctx->error.len
          + ngx_escape_json(NULL, ctx->error.data, ctx->error.len);

    *b = ngx_create_temp_buf(ctx->request->pool,
                             len + sizeof("{\"error\":\"\"}") - 1);
    if (*b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem((*b)->pos, "{\"error\":\"", sizeof("{\"error\":\"") - 1);
    p = (u_char *) ngx_escape_json(p, ctx->error.data, ctx->error.len);
    *p++ = '"';
    *p++ = '}';

    (*b)->last = p;

    return NGX_OK;
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
        /* filters may add data */
        return ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    last->last_buf = (r == r->main) ? 1 : 0;
    last->last_in_chain = 1;

    return ngx_http_inference_send_body(r, out);
}


/*
 * Keeps nginx's gzip from an answer.  Triton compresses inferences alone, and
 * clients that take compressed ones read errors and other calls as they come.
 */

void
ngx_http_inference_keep_plain(ngx_http_request_t *r)
{
#if (NGX_HTTP_GZIP)
    r->gzip_tested = 1;
    r->gzip_ok = 0;
#endif
}


/* An answer is never a cached copy, so conditions of the request are
   ignored. */

ngx_int_t
ngx_http_inference_send_header(ngx_http_request_t *r)
{
    ngx_int_t   rc;
    ngx_uint_t  held;

    r->disable_not_modified = 1;

    /* a head that ends the stream is sent at once */

    held = !r->header_only
           && (r->headers_out.content_length_n || r->expect_trailers)
           && ngx_http_inference_hold_socket(r);

    rc = ngx_http_send_header(r);

    ngx_http_inference_let_socket(r, held);

    if (held) {
        /* allows the stream's own event to send the body */
        r->connection->write->active = 0;
        r->connection->write->ready = 1;
    }

    return rc;
}


ngx_int_t
ngx_http_inference_send_body(ngx_http_request_t *r, ngx_chain_t *out)
{
    ngx_int_t   rc;
    ngx_uint_t  held;

    held = ngx_http_inference_hold_socket(r);

    rc = ngx_http_output_filter(r, out);

    ngx_http_inference_let_socket(r, held);

    return rc;
}


/*
 * nginx writes frames of HTTP/2 to the socket as they are created: a head, a
 * body, each response separately.  While the socket is marked not ready,
 * frames wait in the connection's queue; all frames of an event loop iteration
 * are then written at its end.
 */

static ngx_uint_t
ngx_http_inference_hold_socket(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    ngx_event_t  *wev;

    if (r->stream) {
        wev = r->stream->connection->connection->write;

        if (wev->ready) {
            wev->ready = 0;
            return 1;
        }
    }

#endif

    return 0;
}


static void
ngx_http_inference_let_socket(ngx_http_request_t *r, ngx_uint_t held)
{
#if (NGX_HTTP_V2)
    ngx_event_t  *wev;

    if (held) {
        wev = r->stream->connection->connection->write;

        wev->ready = 1;

        ngx_post_event(wev, &ngx_posted_events);
    }

#endif
}


ngx_int_t
ngx_http_inference_add_header(ngx_http_request_t *r, char *key, char *value)
{
    return ngx_http_inference_add_field(&r->headers_out.headers, key,
                                        (u_char *) value, ngx_strlen(value));
}


ngx_int_t
ngx_http_inference_add_field(ngx_list_t *list, const char *key,
    const u_char *value, size_t len)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(list);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value.data = (u_char *) value;
    h->value.len = len;

    return NGX_OK;
}


ngx_table_elt_t *
ngx_http_inference_next_field(ngx_list_part_t **part, ngx_uint_t *i)
{
    ngx_table_elt_t  *fields;

    while (*part && *i >= (*part)->nelts) {
        *part = (*part)->next;
        *i = 0;
    }

    if (*part == NULL) {
        return NULL;
    }

    fields = (*part)->elts;

    return &fields[(*i)++];
}


ngx_chain_t *
ngx_http_inference_link(ngx_pool_t *pool, const void *p, size_t n)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_calloc_buf(pool);
    cl = ngx_alloc_chain_link(pool);

    if (b == NULL || cl == NULL) {
        return NULL;
    }

    if (n) {
        b->memory = 1;
        b->start = (u_char *) p;
        b->pos = b->start;
        b->last = b->pos + n;
        b->end = b->last;
    }

    cl->buf = b;
    cl->next = NULL;

    return cl;
}


ngx_int_t
ngx_http_inference_one_line(ngx_pool_t *pool, ngx_str_t *value)
{
    char    *text;
    u_char  *p;
    size_t   i, n, len, controls;

    ngx_http_inference_cut(value, NGX_HTTP_INFERENCE_LINE_MAX);

    text = (char *) value->data;
    len = value->len;
    controls = 0;

    for (i = 0; i < len; i += n ? n : 1) {
        n = inf_log_control(text + i, len - i);
        controls += n;
    }

    if (controls == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, len + 3 * controls);
    if (p == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < len; /* void */ ) {

        n = inf_log_control(text + i, len - i);

        if (n == 0) {
            *p++ = value->data[i++];
        }

        for ( /* void */ ; n; n--, i++) {
            p = ngx_sprintf(p, "\\x%02Xi", (ngx_int_t) value->data[i]);
        }
    }

    value->len = len + 3 * controls;
    value->data = p - value->len;

    return NGX_OK;
}


void
ngx_http_inference_cut(ngx_str_t *value, size_t len)
{
    if (value->len <= len) {
        return;
    }

    while (len > 0 && (value->data[len] & 0xc0) == 0x80) {
        len--;
    }

    value->len = len;
}
