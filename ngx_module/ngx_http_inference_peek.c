/*
 * ngx_http_inference_peek.c - the preaccess phase: reads the model of a gRPC
 *                             call from the first bytes of its message.
 *
 * Limits keyed by a model run later in the same phase.  The bytes stay in
 * nginx's buffer.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_inflate.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"
#include "core/base/slice.h"


static ngx_http_inference_peek_t *ngx_http_inference_peek_create(
    ngx_http_request_t *r);
static void ngx_http_inference_peek_cleanup(void *data);
static ngx_int_t ngx_http_inference_peek_look(ngx_http_inference_peek_t *peek);
static size_t ngx_http_inference_peek_size(ngx_str_t *bytes,
    inf_grpc_prefix_t *prefix);
static ngx_int_t ngx_http_inference_peek_plain(ngx_http_inference_peek_t *peek,
    const ngx_http_inference_endpoint_t *method, inf_slice_t text);
static ngx_int_t ngx_http_inference_peek_copy(ngx_pool_t *pool,
    inf_slice_t from, ngx_str_t *to);
static ngx_int_t ngx_http_inference_peek_packed(
    ngx_http_inference_peek_t *peek,
    const ngx_http_inference_endpoint_t *method, inf_slice_t packed);
static ngx_int_t ngx_http_inference_peek_wait(ngx_http_inference_peek_t *peek);
static void ngx_http_inference_peek_more(ngx_http_inference_waiter_t *waiter);
static void ngx_http_inference_peek_late(ngx_event_t *ev);
static void ngx_http_inference_peek_leave(ngx_event_t *ev);
static void ngx_http_inference_peek_go_on(ngx_http_inference_peek_t *peek);
static ngx_uint_t ngx_http_inference_peek_binds(
    ngx_http_inference_peek_t *peek, ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_peek_same(ngx_str_t *seen,
    inf_slice_t name);
static void ngx_http_inference_peek_quiet(ngx_http_inference_peek_t *peek);
static void ngx_http_inference_peek_writable(ngx_http_request_t *r);


#define ngx_http_inference_peek_of(p, field)                                  \
    (ngx_http_inference_peek_t *)                                             \
        ((u_char *) (p) - offsetof(ngx_http_inference_peek_t, field))


ngx_int_t
ngx_http_inference_peek_handler(ngx_http_request_t *r)
{
    ngx_int_t                        rc;
    ngx_http_inference_peek_t       *peek;
    ngx_http_inference_loc_conf_t   *ilcf;
    ngx_http_inference_main_conf_t  *imcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);
    imcf = ngx_http_get_module_main_conf(r, ngx_http_inference_module);

    if ((!ilcf->peek && !(ilcf->parts && imcf->names))
        || ilcf->model
        || !ngx_http_inference_is_grpc(r))
    {
        return NGX_DECLINED;
    }

    peek = ngx_http_inference_peek(r);

    if (peek == NULL) {
        peek = ngx_http_inference_peek_create(r);
    }

    if (peek == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (peek->state >= NGX_HTTP_INFERENCE_PEEK_BLIND) {
        return NGX_DECLINED;
    }

    rc = ngx_http_inference_peek_look(peek);

    if (rc == NGX_AGAIN) {
        return ngx_http_inference_peek_wait(peek);
    }

    ngx_http_inference_peek_quiet(peek);

    return (rc == NGX_OK) ? NGX_DECLINED : rc;
}


static ngx_http_inference_peek_t *
ngx_http_inference_peek_create(ngx_http_request_t *r)
{
    ngx_http_cleanup_t         *leave;
    ngx_pool_cleanup_t         *cln;
    ngx_http_inference_peek_t  *peek;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_inference_peek_t));
    leave = ngx_http_cleanup_add(r, 0);

    if (cln == NULL || leave == NULL) {
        return NULL;
    }

    peek = cln->data;
    ngx_memzero(peek, sizeof(ngx_http_inference_peek_t));

    peek->waiter.request = r;
    peek->waiter.more = ngx_http_inference_peek_more;

    peek->timer.handler = ngx_http_inference_peek_late;
    peek->timer.data = r->connection;
    peek->timer.log = r->connection->log;

    peek->turn.handler = ngx_http_inference_peek_leave;
    peek->turn.data = r->connection;
    peek->turn.log = r->connection->log;

    cln->handler = ngx_http_inference_peek_cleanup;

    leave->handler = ngx_http_inference_peek_cleanup;
    leave->data = peek;

    return peek;
}


/* Cleanup of the request's pool. */

static void
ngx_http_inference_peek_cleanup(void *data)
{
    ngx_http_inference_peek_quiet(data);
}


ngx_http_inference_peek_t *
ngx_http_inference_peek(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t         *cln;
    ngx_http_inference_peek_t  *peek;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_peek_cleanup) {
            peek = cln->data;

            if (peek->waiter.request == r) {
                return peek;
            }
        }
    }

    return NULL;
}


/* Searches the received bytes.  NGX_AGAIN: the names may follow. */

static ngx_int_t
ngx_http_inference_peek_look(ngx_http_inference_peek_t *peek)
{
    size_t                                size;
    ngx_str_t                             bytes;
    inf_slice_t                           text;
    inf_grpc_prefix_t                     prefix;
    ngx_http_request_t                   *r;
    const ngx_http_inference_endpoint_t  *method;

    r = peek->waiter.request;
    method = ngx_http_inference_grpc_match(r);

    if (method == NULL
        || method->name_fields == NGX_HTTP_INFERENCE_NAMES_NONE)
    {
        /* an internal redirect may lead to a path that is a method */
        return NGX_OK;
    }

    if (ngx_http_inference_preread_max(r)
        < INF_GRPC_PREFIX + NGX_HTTP_INFERENCE_PEEK_SIZE)
    {
        peek->state = NGX_HTTP_INFERENCE_PEEK_BLIND;
        return NGX_OK;
    }

    bytes = ngx_http_inference_preread(r);
    size = ngx_http_inference_peek_size(&bytes, &prefix);

    if (bytes.len < size && ngx_http_inference_preread_grows(r)) {

        if (peek->state < NGX_HTTP_INFERENCE_PEEK_LATE) {
            return NGX_AGAIN;
        }

        /* a stream may be idle without limit */

        if (method->verb != NGX_HTTP_INFERENCE_STREAM_INFER) {
            return NGX_HTTP_REQUEST_TIME_OUT;
        }
    }

    peek->state = NGX_HTTP_INFERENCE_PEEK_DONE;

    if (bytes.len <= INF_GRPC_PREFIX) {
        return NGX_OK;
    }

    if (bytes.len >= size) {
        peek->state = NGX_HTTP_INFERENCE_PEEK_SEEN;
        bytes.len = size;
    }

    text = inf_slice((char *) bytes.data + INF_GRPC_PREFIX,
                     bytes.len - INF_GRPC_PREFIX);

    return prefix.compressed
           ? ngx_http_inference_peek_packed(peek, method, text)
           : ngx_http_inference_peek_plain(peek, method, text);
}


/* The number of bytes to search: those of the message, if its prefix was
   received, within the limit. */

static size_t
ngx_http_inference_peek_size(ngx_str_t *bytes, inf_grpc_prefix_t *prefix)
{
    prefix->compressed = 0;
    prefix->len = 0;

    if (bytes->len >= INF_GRPC_PREFIX) {
        (void) inf_grpc_read_prefix(bytes->data, prefix);
    }

    return INF_GRPC_PREFIX + ngx_min((size_t) prefix->len,
                                     NGX_HTTP_INFERENCE_PEEK_SIZE);
}


inf_names_t
ngx_http_inference_peek_names(const ngx_http_inference_endpoint_t *method,
    inf_slice_t text)
{
    static const inf_names_fields_t  fields[] = {
        { 0, 0 },                           /* NAMES_NONE             */
        { 1, 2 },                           /* NAMES_BOTH             */
        { 2, 0 }                            /* NAMES_SECOND           */
    };

    return inf_message_names(text, fields[method->name_fields]);
}


static ngx_int_t
ngx_http_inference_peek_plain(ngx_http_inference_peek_t *peek,
    const ngx_http_inference_endpoint_t *method, inf_slice_t text)
{
    ngx_pool_t   *pool;
    inf_names_t   names;

    pool = peek->waiter.request->pool;
    names = ngx_http_inference_peek_names(method, text);

    if (ngx_http_inference_peek_copy(pool, names.model, &peek->names.model)
        == NGX_OK
        && ngx_http_inference_peek_copy(pool, names.version,
                                        &peek->names.version)
           == NGX_OK)
    {
        return NGX_OK;
    }

    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_inference_peek_copy(ngx_pool_t *pool, inf_slice_t from,
    ngx_str_t *to)
{
    to->data = ngx_pnalloc(pool, from.len + 1);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from.data, from.len);
    to->len = from.len;

    return NGX_OK;
}


/* Inflates as much of a compressed message as was received, and no more than
   the limit. */

static ngx_int_t
ngx_http_inference_peek_packed(ngx_http_inference_peek_t *peek,
    const ngx_http_inference_endpoint_t *method, inf_slice_t packed)
{
    size_t                         in, left;
    u_char                        *out;
    ngx_int_t                      rc;
    ngx_pool_t                    *pool;
    const char                    *reason;
    const u_char                  *p;
    ngx_http_inference_inflate_t  *inflate;
    u_char                         text[NGX_HTTP_INFERENCE_PEEK_SIZE];

    pool = ngx_create_pool(NGX_MIN_POOL_SIZE,
                           peek->waiter.request->connection->log);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    inflate = ngx_http_inference_inflate_new(pool);
    if (inflate == NULL) {
        ngx_destroy_pool(pool);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = (u_char *) packed.data;
    in = packed.len;
    out = text;
    left = sizeof(text);

    do {
        rc = ngx_http_inference_inflate(inflate, &p, &in, &out, &left,
                                        &reason);
    } while (rc == NGX_OK && in && left);

    ngx_destroy_pool(pool);

    return ngx_http_inference_peek_plain(peek, method,
                                         inf_slice((char *) text, out - text));
}


static ngx_int_t
ngx_http_inference_peek_wait(ngx_http_inference_peek_t *peek)
{
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = peek->waiter.request;

    if (ngx_http_inference_preread_wait(&peek->waiter) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!peek->timer.timer_set) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        ngx_add_timer(&peek->timer, clcf->client_body_timeout);
        ngx_http_inference_leaver_add(&peek->leaver, &peek->turn);
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_inference_peek_writable;

    return NGX_DONE;
}


static void
ngx_http_inference_peek_more(ngx_http_inference_waiter_t *waiter)
{
    ngx_http_inference_peek_go_on(ngx_http_inference_peek_of(waiter, waiter));
}


static void
ngx_http_inference_peek_late(ngx_event_t *ev)
{
    ngx_http_inference_peek_t  *peek;

    peek = ngx_http_inference_peek_of(ev, timer);

    peek->state = NGX_HTTP_INFERENCE_PEEK_LATE;

    ngx_http_inference_peek_go_on(peek);
}


/* Called when the worker exits: our handler deals with an idle stream. */

static void
ngx_http_inference_peek_leave(ngx_event_t *ev)
{
    ngx_http_inference_peek_t            *peek;
    const ngx_http_inference_endpoint_t  *method;

    peek = ngx_http_inference_peek_of(ev, turn);
    method = ngx_http_inference_grpc_match(peek->waiter.request);

    if (method && method->verb == NGX_HTTP_INFERENCE_STREAM_INFER) {
        ngx_http_inference_peek_late(&peek->timer);
    }
}


/* Runs the phases again, unless nginx has redirected the request meanwhile. */

static void
ngx_http_inference_peek_go_on(ngx_http_inference_peek_t *peek)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = peek->waiter.request;
    c = r->connection;

    ngx_http_inference_preread_stop(&peek->waiter);

    if (r->write_event_handler != ngx_http_inference_peek_writable) {
        ngx_http_inference_peek_quiet(peek);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
    ngx_http_run_posted_requests(c);
}


/* Cancels all events of this peek: bytes, timer, posted event, the worker's
   exit. */

static void
ngx_http_inference_peek_quiet(ngx_http_inference_peek_t *peek)
{
    ngx_http_inference_preread_stop(&peek->waiter);
    ngx_http_inference_leaver_remove(&peek->leaver);

    if (peek->timer.timer_set) {
        ngx_del_timer(&peek->timer);
    }

    if (peek->turn.posted) {
        ngx_delete_posted_event(&peek->turn);
    }
}


static void
ngx_http_inference_peek_writable(ngx_http_request_t *r)
{
    /* the answer is not sent before the phases have run */
}


/* ---- the message --------------------------------------------------------- */

ngx_int_t
ngx_http_inference_peek_check(ngx_http_inference_ctx_t *ctx,
    inf_slice_t model, inf_slice_t version)
{
    ngx_http_inference_peek_t  *peek;

    peek = ngx_http_inference_peek(ctx->request);

    if (peek == NULL
        || !ngx_http_inference_peek_binds(peek, ctx)
        || (ngx_http_inference_peek_same(&peek->names.model, model)
            && ngx_http_inference_peek_same(&peek->names.version, version)))
    {
        return NGX_OK;
    }

    if (ctx->message) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "limits or access of this stream "
                                       "depend on model and version, which "
                                       "have to be those in the first %uz "
                                       "bytes of its first message, sent "
                                       "before client_body_timeout",
                                       NGX_HTTP_INFERENCE_PEEK_SIZE);
    }

    return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                   "the names of model and version have to "
                                   "stand in the first %uz bytes of the "
                                   "message", NGX_HTTP_INFERENCE_PEEK_SIZE);
}


ngx_int_t
ngx_http_inference_peek_check_call(ngx_http_inference_ctx_t *ctx)
{
    ngx_pool_t   *pool;
    inf_names_t   names;

    if (ctx->endpoint->name_fields == NGX_HTTP_INFERENCE_NAMES_NONE) {
        return NGX_OK;
    }

    pool = ctx->request->pool;

    names = ngx_http_inference_peek_names(
                                 ctx->endpoint,
                                 ngx_http_inference_slice(&ctx->body.text));

    if (ngx_http_inference_peek_copy(pool, names.model, &ctx->names.model)
        != NGX_OK
        || ngx_http_inference_peek_copy(pool, names.version,
                                        &ctx->names.version)
           != NGX_OK)
    {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    /* NGX_ERROR: none, or no number, which the core tells */

    ctx->version = ngx_atoof(ctx->names.version.data, ctx->names.version.len);

    return ngx_http_inference_peek_check(ctx, names.model, names.version);
}


/* Whether the message must have the names read early: a message of a stream
   only if a directive has used them. */

static ngx_uint_t
ngx_http_inference_peek_binds(ngx_http_inference_peek_t *peek,
    ngx_http_inference_ctx_t *ctx)
{
    if (ctx->message == NULL) {
        return peek->state == NGX_HTTP_INFERENCE_PEEK_SEEN;
    }

    return ngx_http_inference_peek_binds_stream(peek);
}


ngx_uint_t
ngx_http_inference_peek_binds_stream(ngx_http_inference_peek_t *peek)
{
    return peek && peek->asked && peek->state >= NGX_HTTP_INFERENCE_PEEK_DONE;
}


static ngx_uint_t
ngx_http_inference_peek_same(ngx_str_t *seen, inf_slice_t name)
{
    return inf_slice_eq(ngx_http_inference_slice(seen), name);
}
