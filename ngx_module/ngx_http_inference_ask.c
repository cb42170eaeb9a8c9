/*
 * ngx_http_inference_ask.c - asks the servers of an upstream, one after
 *                            another until one answers.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_fetch.h"


/* limit for all servers together, ms */
#define NGX_HTTP_INFERENCE_ASK_TIMEOUT  2000

/* limit of an answer with its body */
#define NGX_HTTP_INFERENCE_ASK_SIZE     (1024 * 1024)


static void ngx_http_inference_ask_next(ngx_http_inference_ask_t *ask);
static ngx_uint_t ngx_http_inference_ask_addrs(
    ngx_http_upstream_srv_conf_t *upstream);
static ngx_addr_t *ngx_http_inference_ask_addr(
    ngx_http_upstream_srv_conf_t *upstream, ngx_uint_t n);
static ngx_uint_t ngx_http_inference_ask_enough(
    ngx_http_inference_fetch_t *fetch);
static void ngx_http_inference_ask_done(ngx_http_inference_fetch_t *fetch);
static ngx_int_t ngx_http_inference_ask_take(ngx_http_inference_ask_t *ask);
static inf_node_answer_state_t ngx_http_inference_ask_read(
    ngx_http_inference_ask_t *ask);
static ngx_int_t ngx_http_inference_ask_room(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool, size_t size);


/* The server that answered is asked first the next time. */

void
ngx_http_inference_ask_start(ngx_http_inference_ask_t *ask, ngx_msec_t within)
{
    ask->first = ask->upstream->last;
    ask->tried = 0;
    ask->answered = 0;
    ask->until = ngx_current_msec
                 + ngx_min(within, NGX_HTTP_INFERENCE_ASK_TIMEOUT);

    ask->fetch.enough = ngx_http_inference_ask_enough;
    ask->fetch.done = ngx_http_inference_ask_done;

    ngx_http_inference_ask_next(ask);
}


/* Divides the remaining time among the servers still to be asked. */

static void
ngx_http_inference_ask_next(ngx_http_inference_ask_t *ask)
{
    ngx_uint_t       n;
    ngx_addr_t      *addr;
    ngx_msec_int_t   left;

    n = ngx_http_inference_ask_addrs(ask->upstream->conf);
    left = (ngx_msec_int_t) (ask->until - ngx_current_msec);

    if (ask->tried >= n || left <= 0) {
        ask->over(ask);
        return;
    }

    addr = ngx_http_inference_ask_addr(ask->upstream->conf,
                                       (ask->first + ask->tried) % n);

    ask->fetch.timeout = (ngx_msec_t) left / (n - ask->tried);

    ngx_http_inference_fetch_init(&ask->fetch, addr->sockaddr, addr->socklen,
                                  &addr->name);
    ngx_http_inference_fetch_start(&ask->fetch);
}


static ngx_uint_t
ngx_http_inference_ask_addrs(ngx_http_upstream_srv_conf_t *upstream)
{
    ngx_uint_t                   i, n;
    ngx_http_upstream_server_t  *server;

    server = upstream->servers->elts;
    n = 0;

    for (i = 0; i < upstream->servers->nelts; i++) {
        n += server[i].down ? 0 : server[i].naddrs;
    }

    return n;
}


static ngx_addr_t *
ngx_http_inference_ask_addr(ngx_http_upstream_srv_conf_t *upstream,
    ngx_uint_t n)
{
    ngx_uint_t                   i;
    ngx_http_upstream_server_t  *server;

    server = upstream->servers->elts;

    for (i = 0; server[i].down || n >= server[i].naddrs; i++) {
        n -= server[i].down ? 0 : server[i].naddrs;
    }

    return &server[i].addrs[n];
}


static ngx_uint_t
ngx_http_inference_ask_enough(ngx_http_inference_fetch_t *fetch)
{
    ngx_http_inference_ask_t *ask = (ngx_http_inference_ask_t *) fetch;

    inf_node_answer_state_t  state;

    state = ngx_http_inference_ask_read(ask);

    return state == INF_NODE_ANSWER_GARBAGE
           || (state == INF_NODE_ANSWER_COMPLETE && !ask->whole);
}


static void
ngx_http_inference_ask_done(ngx_http_inference_fetch_t *fetch)
{
    ngx_http_inference_ask_t *ask = (ngx_http_inference_ask_t *) fetch;

    if (fetch->why) {
        ngx_http_inference_ask_log(ask, fetch->err, fetch->why);

    } else if (ngx_http_inference_ask_take(ask) == NGX_OK) {
        ask->answered = 1;
        ask->upstream->last = ask->first + ask->tried;
        ask->over(ask);
        return;
    }

    ask->tried++;

    ngx_http_inference_ask_next(ask);
}


/* NGX_DECLINED: not an answer. */

static ngx_int_t
ngx_http_inference_ask_take(ngx_http_inference_ask_t *ask)
{
    if (ngx_http_inference_ask_read(ask) != INF_NODE_ANSWER_COMPLETE
        || (ask->whole && ask->answer.chunked))
    {
        ngx_http_inference_ask_log(ask, 0, "answers no HTTP/1.0");
        return NGX_DECLINED;
    }

    if (ask->whole && ask->fetch.received == ask->fetch.size) {
        ngx_http_inference_ask_log(ask, 0, "answers more than 1 MiB");
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static inf_node_answer_state_t
ngx_http_inference_ask_read(ngx_http_inference_ask_t *ask)
{
    return inf_node_answer_read(inf_slice((char *) ask->fetch.answer,
                                          ngx_min(ask->fetch.received,
                                                  INF_NODE_ANSWER_MAX)),
                                &ask->answer);
}


void
ngx_http_inference_ask_log(ngx_http_inference_ask_t *ask, ngx_err_t err,
    const char *why)
{
    ngx_log_t  *log;

    log = ngx_cycle->log;

    if (ask->request) {
        log = ask->request->connection->log;
        ngx_http_set_log_request(log, ask->request);
    }

    ngx_log_error(NGX_LOG_ERR, log, err,
                  "inference: server %V of upstream \"%V\" %s: %s",
                  ask->fetch.pc.name, &ask->upstream->name, why, ask->without);
}


ngx_int_t
ngx_http_inference_ask_get(ngx_http_inference_ask_t *ask, ngx_pool_t *pool,
    ngx_str_t *path)
{
    ngx_str_t  *request, *host;

    static const char  get[] = "GET %V HTTP/1.0" CRLF "Host: %V" CRLF
                               "Connection: close" CRLF CRLF;

    request = &ask->fetch.request;
    host = &ask->upstream->name;

    request->data = ngx_pnalloc(pool, sizeof(get) + path->len + host->len);
    if (request->data == NULL) {
        return NGX_ERROR;
    }

    request->len = ngx_sprintf(request->data, get, path, host)
                   - request->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_ask_head(ngx_http_inference_ask_t *ask, ngx_pool_t *pool)
{
    return ngx_http_inference_ask_room(ask, pool, INF_NODE_ANSWER_MAX);
}


ngx_int_t
ngx_http_inference_ask_whole(ngx_http_inference_ask_t *ask, ngx_pool_t *pool)
{
    ask->whole = 1;

    return ngx_http_inference_ask_room(ask, pool, NGX_HTTP_INFERENCE_ASK_SIZE);
}


static ngx_int_t
ngx_http_inference_ask_room(ngx_http_inference_ask_t *ask, ngx_pool_t *pool,
    size_t size)
{
    ask->fetch.size = size;
    ask->fetch.answer = ngx_palloc(pool, size);

    return ask->fetch.answer ? NGX_OK : NGX_ERROR;
}


inf_slice_t
ngx_http_inference_ask_body(ngx_http_inference_ask_t *ask)
{
    return inf_slice((char *) ask->fetch.answer + ask->answer.head,
                     ask->fetch.received - ask->answer.head);
}
