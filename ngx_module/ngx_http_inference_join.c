/*
 * ngx_http_inference_join.c - "inference_upstream": repository index and
 *                             readiness are those of our core and of another
 *                             server, which is asked at the same time.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/index_join.h"


/* of an answer with an index */
#define NGX_HTTP_INFERENCE_JOIN_SIZE  (1024 * 1024)

/* of the client's body, which is sent on */
#define NGX_HTTP_INFERENCE_JOIN_BODY  4096


struct ngx_http_inference_join_s {
    ngx_http_inference_ask_t       ask;         /* first: it is the join; for
                                                   an index                  */
    ngx_queue_t                    queue;       /* of those that wait for the
                                                   readiness                 */
    ngx_http_inference_ctx_t      *ctx;
    ngx_http_inference_upstream_t  *upstream;
    ngx_str_t                      ours;        /* the core's answer         */
    ngx_uint_t                     waiting;     /* ours is there             */
    ngx_uint_t                     pending;     /* the upstream's is not     */
    ngx_uint_t                     ready;       /* the upstream is           */
};


static ngx_uint_t ngx_http_inference_is_joined(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_asks_ready(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_join_ask_ready(ngx_http_inference_join_t *join);
static void ngx_http_inference_join_ready_over(ngx_http_inference_ask_t *ask);
static ngx_int_t ngx_http_inference_join_ask_index(
    ngx_http_inference_join_t *join);
static ngx_int_t ngx_http_inference_join_request(
    ngx_http_inference_join_t *join);
static void ngx_http_inference_join_index_over(ngx_http_inference_ask_t *ask);
static void ngx_http_inference_join_over(ngx_http_inference_join_t *join);
static ngx_int_t ngx_http_inference_join_ready(
    ngx_http_inference_join_t *join);
static ngx_int_t ngx_http_inference_join_index(
    ngx_http_inference_join_t *join, ngx_str_t *body);
static void ngx_http_inference_join_cleanup(void *data);


ngx_int_t
ngx_http_inference_join_begin(ngx_http_inference_ctx_t *ctx)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_inference_join_t      *join;
    ngx_http_inference_loc_conf_t  *ilcf;

    if (ctx->join || !ngx_http_inference_is_joined(ctx)) {
        return NGX_OK;
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    cln = ngx_pool_cleanup_add(ctx->request->pool,
                               sizeof(ngx_http_inference_join_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    join = cln->data;
    ngx_memzero(join, sizeof(ngx_http_inference_join_t));

    join->ctx = ctx;
    join->upstream = ilcf->upstream;

    cln->handler = ngx_http_inference_join_cleanup;

    ctx->join = join;

    if (ngx_http_inference_asks_ready(ctx)) {
        ngx_http_inference_join_ask_ready(join);
        return NGX_OK;
    }

    return ngx_http_inference_join_ask_index(join);
}


static ngx_uint_t
ngx_http_inference_is_joined(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    return ilcf->upstream && ctx->grpc == NULL
           && (ngx_http_inference_asks_ready(ctx)
               || ctx->endpoint->call == INF_METHOD_REPOSITORY_INDEX);
}


static ngx_uint_t
ngx_http_inference_asks_ready(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint->call == INF_METHOD_SERVER_READY;
}


/* Probes come without a key: however many there are, a worker has one
   connection for all of them. */

static void
ngx_http_inference_join_ask_ready(ngx_http_inference_join_t *join)
{
    ngx_http_inference_readiness_t  *readiness;

    readiness = join->upstream->readiness;

    join->pending = 1;
    ngx_queue_insert_tail(&readiness->waiting, &join->queue);

    if (ngx_http_inference_fetch_runs(&readiness->ask.fetch)) {
        return;
    }

    readiness->ask.log = ngx_cycle->log;
    readiness->ask.over = ngx_http_inference_join_ready_over;

    ngx_http_inference_ask_start(&readiness->ask,
                                 NGX_HTTP_INFERENCE_NO_TIMEOUT);
}


static void
ngx_http_inference_join_ready_over(ngx_http_inference_ask_t *ask)
{
    ngx_queue_t                     *q;
    ngx_http_inference_join_t       *join;
    ngx_http_inference_readiness_t  *readiness;

    readiness = (ngx_http_inference_readiness_t *) ask;

    while (!ngx_queue_empty(&readiness->waiting)) {
        q = ngx_queue_head(&readiness->waiting);
        ngx_queue_remove(q);

        join = ngx_queue_data(q, ngx_http_inference_join_t, queue);
        join->ready = ask->answered && ask->answer.status == NGX_HTTP_OK;

        ngx_http_inference_join_over(join);
    }
}


static ngx_int_t
ngx_http_inference_join_ask_index(ngx_http_inference_join_t *join)
{
    ngx_http_request_t        *r;
    ngx_http_inference_ask_t  *ask;

    r = join->ctx->request;
    ask = &join->ask;

    ask->upstream = join->upstream;
    ask->log = r->connection->log;
    ask->without = "the answer lacks its models";
    ask->whole = 1;
    ask->over = ngx_http_inference_join_index_over;
    ask->fetch.size = NGX_HTTP_INFERENCE_JOIN_SIZE;
    ask->fetch.answer = ngx_palloc(r->pool, ask->fetch.size);

    if (ask->fetch.answer == NULL
        || ngx_http_inference_join_request(join) != NGX_OK)
    {
        return NGX_ERROR;
    }

    join->pending = 1;

    ngx_http_inference_ask_start(ask,
                                 ngx_http_inference_time_left(join->ctx));

    return NGX_OK;
}


/* Behind the body in the region are the name of the model and its length. */

static ngx_int_t
ngx_http_inference_join_request(ngx_http_inference_join_t *join)
{
    u_char                      *p;
    ngx_str_t                    body, *name;
    ngx_http_inference_ctx_t    *ctx;
    ngx_http_inference_store_t  *text;

    static const char  index[] =
        "POST /v2/repository/index HTTP/1.0" CRLF "Host: %V" CRLF
        "Connection: close" CRLF "Content-Type: application/json" CRLF
        "Content-Length: %uz" CRLF CRLF "%V";

    ctx = join->ctx;
    name = &join->upstream->name;
    text = &ctx->body.text;

    body.data = text->data;
    body.len = text->len - ctx->model.len - sizeof(uint32_t);

    if (body.len == 0 || body.len > NGX_HTTP_INFERENCE_JOIN_BODY) {
        ngx_str_set(&body, "{}");
    }

    p = ngx_pnalloc(ctx->request->pool, sizeof(index) + name->len + body.len
                                        + NGX_SIZE_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    join->ask.fetch.request.data = p;

    p = ngx_sprintf(p, index, name, body.len, &body);

    join->ask.fetch.request.len = p - join->ask.fetch.request.data;

    return NGX_OK;
}


static void
ngx_http_inference_join_index_over(ngx_http_inference_ask_t *ask)
{
    ngx_http_inference_join_over((ngx_http_inference_join_t *) ask);
}


static void
ngx_http_inference_join_over(ngx_http_inference_join_t *join)
{
    join->pending = 0;

    if (join->waiting && !ngx_http_inference_is_over(join->ctx)) {
        ngx_http_inference_next_turn(&join->ctx->turn);
    }
}


ngx_uint_t
ngx_http_inference_join_waits(ngx_http_inference_ctx_t *ctx)
{
    return ctx->join && ctx->join->waiting;
}


ngx_int_t
ngx_http_inference_join_end(ngx_http_inference_ctx_t *ctx, ngx_str_t *body)
{
    ngx_http_inference_join_t  *join;

    join = ctx->join;

    if (join == NULL) {
        return NGX_OK;
    }

    if (!join->waiting) {
        join->waiting = 1;
        join->ours = *body;
    }

    if (join->pending) {

        if (ngx_http_inference_asks_ready(ctx)) {
            /* others may have begun it, and may have more time */
            ngx_http_inference_arm_timer(ctx);
        }

        return NGX_AGAIN;
    }

    *body = join->ours;

    return ngx_http_inference_asks_ready(ctx)
           ? ngx_http_inference_join_ready(join)
           : ngx_http_inference_join_index(join, body);
}


static ngx_int_t
ngx_http_inference_join_ready(ngx_http_inference_join_t *join)
{
    if (join->ready) {
        return NGX_OK;
    }

    return ngx_http_inference_fail(join->ctx, INF_ERR_UNAVAILABLE,
                                   "upstream \"%V\" is not ready",
                                   &join->upstream->name);
}


/* Without the other's there is ours. */

static ngx_int_t
ngx_http_inference_join_index(ngx_http_inference_join_t *join, ngx_str_t *body)
{
    inf_buf_t                  out;
    inf_err_t                 *err;
    ngx_http_inference_ask_t  *ask;

    ask = &join->ask;

    if (!ask->answered) {
        return NGX_OK;
    }

    if (ask->answer.status != NGX_HTTP_OK) {
        ngx_http_inference_ask_log(ask, 0, "does not list its models");
        return NGX_OK;
    }

    inf_buf_init(&out);

    err = inf_index_join(inf_slice((char *) join->ours.data, join->ours.len),
                         inf_slice((char *) ask->fetch.answer
                                   + ask->answer.head,
                                   ask->fetch.received - ask->answer.head),
                         &out);
    if (err) {
        inf_err_free(err);
        inf_buf_fini(&out);
        ngx_http_inference_ask_log(ask, 0, "sends no list of models");
        return NGX_OK;
    }

    body->len = out.len;
    body->data = ngx_pnalloc(join->ctx->request->pool, out.len);

    if (body->data) {
        ngx_memcpy(body->data, out.data, out.len);
    }

    inf_buf_fini(&out);

    return body->data ? NGX_OK : NGX_ERROR;
}


/* The exchange ends with the last request that waits for it. */

static void
ngx_http_inference_join_cleanup(void *data)
{
    ngx_http_inference_join_t *join = data;

    ngx_http_inference_readiness_t  *readiness;

    if (!join->pending) {
        return;
    }

    if (join->queue.next == NULL) {
        ngx_http_inference_fetch_cancel(&join->ask.fetch);
        return;
    }

    readiness = join->upstream->readiness;

    ngx_queue_remove(&join->queue);

    if (ngx_queue_empty(&readiness->waiting)) {
        ngx_http_inference_fetch_cancel(&readiness->ask.fetch);
    }
}
