/*
 * ngx_http_inference_join.c - "inference_upstream": repository index and
 *                             readiness are those of our core and of another
 *                             server, which is asked at the same time.
 */

#include "ngx_module/ngx_http_inference_fetch.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/index_join.h"
#include "core/proto/node_answer.h"


/* The time and the size that the answer of each server may have. */
#define NGX_HTTP_INFERENCE_JOIN_TIMEOUT  2000
#define NGX_HTTP_INFERENCE_JOIN_SIZE     (1024 * 1024)

/* In the place of a longer body of the client the upstream gets {}. */
#define NGX_HTTP_INFERENCE_JOIN_BODY     4096


struct ngx_http_inference_join_s {
    ngx_http_inference_fetch_t     fetch;       /* first: it is the join     */
    ngx_http_inference_ctx_t      *ctx;
    ngx_http_upstream_srv_conf_t  *upstream;
    ngx_uint_t                     server;      /* of its addresses: the one
                                                   that is asked             */
    ngx_str_t                      ours;        /* the core's answer         */
    ngx_uint_t                     waiting;     /* ours is there             */
};


static ngx_uint_t ngx_http_inference_is_joined(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_asks_ready(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_join_request(
    ngx_http_inference_join_t *join);
static void ngx_http_inference_join_next(ngx_http_inference_join_t *join);
static void ngx_http_inference_join_over(ngx_http_inference_join_t *join);
static ngx_addr_t *ngx_http_inference_join_addr(
    ngx_http_upstream_srv_conf_t *upstream, ngx_uint_t n);
static ngx_uint_t ngx_http_inference_join_enough(
    ngx_http_inference_fetch_t *fetch);
static void ngx_http_inference_join_done(ngx_http_inference_fetch_t *fetch);
static ngx_int_t ngx_http_inference_join_answer(
    ngx_http_inference_join_t *join, inf_node_answer_t *answer);
static void ngx_http_inference_join_log(ngx_http_inference_join_t *join,
    ngx_err_t err, const char *why);
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
    join->upstream = ilcf->upstream->conf;

    cln->handler = ngx_http_inference_join_cleanup;

    join->fetch.timeout = NGX_HTTP_INFERENCE_JOIN_TIMEOUT;
    join->fetch.size = ngx_http_inference_asks_ready(ctx)
                       ? INF_NODE_ANSWER_MAX : NGX_HTTP_INFERENCE_JOIN_SIZE;
    join->fetch.enough = ngx_http_inference_join_enough;
    join->fetch.done = ngx_http_inference_join_done;
    join->fetch.answer = ngx_palloc(ctx->request->pool, join->fetch.size);

    if (join->fetch.answer == NULL
        || ngx_http_inference_join_request(join) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->join = join;

    ngx_http_inference_join_next(join);

    return NGX_OK;
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


/* Behind the body in the region are the name of the model and its length. */


static ngx_int_t
ngx_http_inference_join_request(ngx_http_inference_join_t *join)
{
    u_char                      *p;
    ngx_str_t                    body, *name;
    ngx_http_inference_ctx_t    *ctx;
    ngx_http_inference_store_t  *text;

    static const char  ready[] =
        "GET /v2/health/ready HTTP/1.0" CRLF "Host: %V" CRLF
        "Connection: close" CRLF CRLF;
    static const char  index[] =
        "POST /v2/repository/index HTTP/1.0" CRLF "Host: %V" CRLF
        "Connection: close" CRLF "Content-Type: application/json" CRLF
        "Content-Length: %uz" CRLF CRLF "%V";

    ctx = join->ctx;
    name = &join->upstream->host;

    ngx_str_null(&body);

    if (!ngx_http_inference_asks_ready(ctx)) {
        text = &ctx->body.text;

        body.data = text->data;
        body.len = text->len - ctx->model.len - sizeof(uint32_t);
    }

    if (body.len == 0 || body.len > NGX_HTTP_INFERENCE_JOIN_BODY) {
        ngx_str_set(&body, "{}");
    }

    p = ngx_pnalloc(ctx->request->pool, sizeof(index) + name->len + body.len
                                        + NGX_SIZE_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    join->fetch.request.data = p;

    p = ngx_http_inference_asks_ready(ctx)
        ? ngx_sprintf(p, ready, name)
        : ngx_sprintf(p, index, name, body.len, &body);

    join->fetch.request.len = p - join->fetch.request.data;

    return NGX_OK;
}


/* Asks the next server; the answer of the first one that answers is used. */

static void
ngx_http_inference_join_next(ngx_http_inference_join_t *join)
{
    ngx_addr_t  *addr;

    addr = ngx_http_inference_join_addr(join->upstream, join->server);

    if (addr == NULL) {
        ngx_http_inference_join_over(join);
        return;
    }

    ngx_http_inference_fetch_init(&join->fetch, addr->sockaddr, addr->socklen,
                                  &addr->name);
    ngx_http_inference_fetch_start(&join->fetch);
}


static void
ngx_http_inference_join_over(ngx_http_inference_join_t *join)
{
    if (join->waiting && !ngx_http_inference_is_over(join->ctx)) {
        ngx_http_inference_next_turn(&join->ctx->turn);
    }
}


static ngx_addr_t *
ngx_http_inference_join_addr(ngx_http_upstream_srv_conf_t *upstream,
    ngx_uint_t n)
{
    ngx_uint_t                   i;
    ngx_http_upstream_server_t  *server;

    server = upstream->servers->elts;

    for (i = 0; i < upstream->servers->nelts; i++) {

        if (server[i].down) {
            continue;
        }

        if (n < server[i].naddrs) {
            return &server[i].addrs[n];
        }

        n -= server[i].naddrs;
    }

    return NULL;
}


/* An index ends where the server closes: the request is one of HTTP/1.0. */

static ngx_uint_t
ngx_http_inference_join_enough(ngx_http_inference_fetch_t *fetch)
{
    inf_node_answer_t           answer;
    inf_node_answer_state_t     state;
    ngx_http_inference_join_t  *join;

    join = (ngx_http_inference_join_t *) fetch;

    state = inf_node_answer_read(inf_slice((char *) fetch->answer,
                                           ngx_min(fetch->received,
                                                   INF_NODE_ANSWER_MAX)),
                                 &answer);

    return state == INF_NODE_ANSWER_GARBAGE
           || (state == INF_NODE_ANSWER_COMPLETE
               && ngx_http_inference_asks_ready(join->ctx));
}


static void
ngx_http_inference_join_done(ngx_http_inference_fetch_t *fetch)
{
    inf_node_answer_t           answer;
    ngx_http_inference_join_t  *join;

    join = (ngx_http_inference_join_t *) fetch;

    if (fetch->why) {
        ngx_http_inference_join_log(join, fetch->err, fetch->why);

    } else if (ngx_http_inference_join_answer(join, &answer) == NGX_OK) {
        ngx_http_inference_join_over(join);
        return;
    }

    join->server++;
    fetch->received = 0;

    ngx_http_inference_join_next(join);
}


/* NGX_DECLINED: what was received is no answer that can be used. */

static ngx_int_t
ngx_http_inference_join_answer(ngx_http_inference_join_t *join,
    inf_node_answer_t *answer)
{
    ngx_http_inference_fetch_t  *fetch;

    fetch = &join->fetch;

    if (inf_node_answer_read(inf_slice((char *) fetch->answer,
                                       ngx_min(fetch->received,
                                               INF_NODE_ANSWER_MAX)),
                             answer)
        != INF_NODE_ANSWER_COMPLETE
        || answer->chunked)
    {
        ngx_http_inference_join_log(join, 0, "answers no HTTP/1.0");
        return NGX_DECLINED;
    }

    if (fetch->received == fetch->size) {
        ngx_http_inference_join_log(join, 0, "answers more than 1 MiB");
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_http_inference_join_log(ngx_http_inference_join_t *join, ngx_err_t err,
    const char *why)
{
    ngx_log_error(NGX_LOG_ERR, join->ctx->request->connection->log, err,
                  "inference: server %V of upstream \"%V\" %s: the answer "
                  "lacks its models", join->fetch.pc.name,
                  &join->upstream->host, why);
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

    if (ngx_http_inference_fetch_runs(&join->fetch)) {
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
    ngx_uint_t         ready;
    inf_node_answer_t  answer;

    ready = join->fetch.received
            && ngx_http_inference_join_answer(join, &answer) == NGX_OK
            && answer.status == NGX_HTTP_OK;

    return ready ? NGX_OK
                 : ngx_http_inference_fail(join->ctx, INF_ERR_UNAVAILABLE,
                                           "upstream \"%V\" is not ready",
                                           &join->upstream->host);
}


/* The core's own index is sent when the upstream's is missing or malformed. */

static ngx_int_t
ngx_http_inference_join_index(ngx_http_inference_join_t *join, ngx_str_t *body)
{
    inf_buf_t          out;
    inf_err_t         *err;
    inf_node_answer_t  answer;

    if (join->fetch.received == 0
        || ngx_http_inference_join_answer(join, &answer) != NGX_OK)
    {
        return NGX_OK;
    }

    if (answer.status != NGX_HTTP_OK) {
        ngx_http_inference_join_log(join, 0, "does not list its models");
        return NGX_OK;
    }

    inf_buf_init(&out);

    err = inf_index_join(inf_slice((char *) join->ours.data, join->ours.len),
                         inf_slice((char *) join->fetch.answer + answer.head,
                                   join->fetch.received - answer.head),
                         &out);
    if (err) {
        inf_err_free(err);
        inf_buf_fini(&out);
        ngx_http_inference_join_log(join, 0, "sends no list of models");
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


static void
ngx_http_inference_join_cleanup(void *data)
{
    ngx_http_inference_join_t *join = data;

    ngx_http_inference_fetch_cancel(&join->fetch);
}
