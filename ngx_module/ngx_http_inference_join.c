/*
 * ngx_http_inference_join.c - "inference_upstream": joins repository index,
 *                             server metadata and readiness of our core with
 *                             those of another server, which is asked over
 *                             REST at the same time.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_fetch.h"
#include "ngx_module/ngx_http_inference_join.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/index_join.h"
#include "core/proto/message.h"
#include "core/proto/metadata_join.h"
#include "core/proto/rest_message.h"

#include "grpc_service.pb-c.h"


/* of the client's body, which is forwarded */
#define NGX_HTTP_INFERENCE_JOIN_BODY  4096


/* a call whose answer is joined from both */

typedef struct {
    uint16_t                       call;
    ngx_int_t                    (*request)(ngx_http_inference_join_t *join);
    inf_err_t                   *(*answers)(inf_slice_t ours,
                                            inf_slice_t theirs,
                                            inf_buf_t *out);

    /* for the log: effect, and cause, of a missing upstream answer */
    const char                    *without;
    const char                    *declined;
    const char                    *wrong;
} ngx_http_inference_joined_t;


struct ngx_http_inference_join_s {
    ngx_http_inference_ask_t       ask;         /* first member; for a call with
                                                   joined answers            */
    ngx_http_inference_ready_t     ready;       /* for the readiness         */
    const ngx_http_inference_joined_t  *joined; /* NULL: the readiness       */
    ngx_http_inference_ctx_t      *ctx;
    ngx_str_t                      ours;        /* the core's answer         */
    ngx_uint_t                     waiting;     /* the core has answered     */
    ngx_uint_t                     pending;     /* the upstream has not      */
};


static const ngx_http_inference_joined_t *ngx_http_inference_joined(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_asks_ready(
    ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_join_ask_ready(ngx_http_inference_join_t *join,
    ngx_http_inference_upstream_t *upstream);
static ngx_int_t ngx_http_inference_join_ask(ngx_http_inference_join_t *join,
    ngx_http_inference_upstream_t *upstream);
static ngx_int_t ngx_http_inference_join_index(
    ngx_http_inference_join_t *join);
static void ngx_http_inference_join_question(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);
static void ngx_http_inference_join_message(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);
static ngx_int_t ngx_http_inference_join_metadata(
    ngx_http_inference_join_t *join);
static void ngx_http_inference_join_ready_over(
    ngx_http_inference_ready_t *wait);
static void ngx_http_inference_join_ask_over(ngx_http_inference_ask_t *ask);
static void ngx_http_inference_join_over(ngx_http_inference_join_t *join);
static ngx_int_t ngx_http_inference_join_end_ready(
    ngx_http_inference_join_t *join, ngx_str_t *body);
static ngx_int_t ngx_http_inference_join_end_parts(
    ngx_http_inference_join_t *join, ngx_str_t *body);
static ngx_uint_t ngx_http_inference_join_parts(
    ngx_http_inference_join_t *join, inf_buf_t *out);
static void ngx_http_inference_join_cleanup(void *data);


static const ngx_http_inference_joined_t  ngx_http_inference_joined_calls[] = {

    { INF_METHOD_REPOSITORY_INDEX, ngx_http_inference_join_index,
      inf_index_join,
      "the answer lacks its models", "does not list its models",
      "sends no list of models" },

    { INF_METHOD_SERVER_METADATA, ngx_http_inference_join_metadata,
      inf_metadata_join,
      "the answer has all extensions of ours", "does not describe itself",
      "sends no metadata of a server" },

    { 0, NULL, NULL, NULL, NULL, NULL }
};


ngx_int_t
ngx_http_inference_join_begin(ngx_http_inference_ctx_t *ctx)
{
    ngx_pool_cleanup_t                 *cln;
    ngx_http_inference_join_t          *join;
    ngx_http_inference_loc_conf_t      *ilcf;
    const ngx_http_inference_joined_t  *joined;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);
    joined = ngx_http_inference_joined(ctx);

    if (ctx->join || ilcf->upstream == NULL
        || (joined == NULL && !ngx_http_inference_asks_ready(ctx)))
    {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(ctx->request->pool,
                               sizeof(ngx_http_inference_join_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    join = cln->data;
    ngx_memzero(join, sizeof(ngx_http_inference_join_t));

    join->ctx = ctx;
    join->joined = joined;

    cln->handler = ngx_http_inference_join_cleanup;

    ctx->join = join;

    if (joined) {
        return ngx_http_inference_join_ask(join, ilcf->upstream);
    }

    ngx_http_inference_join_ask_ready(join, ilcf->upstream);

    return NGX_OK;
}


static const ngx_http_inference_joined_t *
ngx_http_inference_joined(ngx_http_inference_ctx_t *ctx)
{
    const ngx_http_inference_joined_t  *joined;

    for (joined = ngx_http_inference_joined_calls; joined->request; joined++) {

        if (ctx->endpoint->call == joined->call) {
            return joined;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_inference_asks_ready(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint->call == INF_METHOD_SERVER_READY;
}


static void
ngx_http_inference_join_ask_ready(ngx_http_inference_join_t *join,
    ngx_http_inference_upstream_t *upstream)
{
    join->pending = 1;

    join->ready.upstream = upstream;
    join->ready.over = ngx_http_inference_join_ready_over;

    ngx_http_inference_ready_wait(&join->ready);
    ngx_http_inference_ready_ask(upstream);
}


static ngx_int_t
ngx_http_inference_join_ask(ngx_http_inference_join_t *join,
    ngx_http_inference_upstream_t *upstream)
{
    ngx_http_request_t        *r;
    ngx_http_inference_ask_t  *ask;

    r = join->ctx->request;
    ask = &join->ask;

    ask->upstream = upstream;
    ask->request = r;
    ask->without = join->joined->without;
    ask->over = ngx_http_inference_join_ask_over;

    if (ngx_http_inference_ask_whole(ask, r->pool) != NGX_OK
        || join->joined->request(join) != NGX_OK)
    {
        return NGX_ERROR;
    }

    join->pending = 1;

    ngx_http_inference_ask_start(ask,
                                 ngx_http_inference_time_left(join->ctx));

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_join_index(ngx_http_inference_join_t *join)
{
    u_char     *p;
    ngx_str_t   body, *name;

    static const char  index[] =
        "POST /v2/repository/index HTTP/1.0" CRLF "Host: %V" CRLF
        "Connection: close" CRLF "Content-Type: application/json" CRLF
        "Content-Length: %uz" CRLF CRLF "%V";

    name = &join->ask.upstream->name;

    ngx_http_inference_join_question(join->ctx, &body);

    p = ngx_pnalloc(join->ctx->request->pool,
                    sizeof(index) + name->len + body.len + NGX_SIZE_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    join->ask.fetch.request.data = p;

    p = ngx_sprintf(p, index, name, body.len, &body);

    join->ask.fetch.request.len = p - join->ask.fetch.request.data;

    return NGX_OK;
}


/* After the body of REST the region has the name of the model and its
   length. */

static void
ngx_http_inference_join_question(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body)
{
    ngx_http_inference_store_t  *text;

    if (ctx->grpc) {
        ngx_http_inference_join_message(ctx, body);
        return;
    }

    text = &ctx->body.text;

    body->data = text->data;
    body->len = text->len - ctx->names.model.len - sizeof(uint32_t);

    if (body->len == 0 || body->len > NGX_HTTP_INFERENCE_JOIN_BODY) {
        ngx_str_set(body, "{}");
    }
}


/* The core rejects an invalid message. */

static void
ngx_http_inference_join_message(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body)
{
    inf_err_t                           *err;
    ProtobufCMessage                    *m;
    Inference__RepositoryIndexRequest   *request;

    ngx_str_set(body, "{}");

    err = inf_message_unpack_request(
                     &inference__repository_index_request__descriptor,
                     ngx_http_inference_slice(&ctx->body.text), &m);
    if (err) {
        inf_err_free(err);
        return;
    }

    request = (Inference__RepositoryIndexRequest *) m;

    if (request->ready) {
        ngx_str_set(body, "{\"ready\":true}");
    }

    inf_message_free(m);
}


static ngx_int_t
ngx_http_inference_join_metadata(ngx_http_inference_join_t *join)
{
    static ngx_str_t  path = ngx_string("/v2");

    return ngx_http_inference_ask_get(&join->ask, join->ctx->request->pool,
                                      &path);
}


static void
ngx_http_inference_join_ready_over(ngx_http_inference_ready_t *wait)
{
    ngx_http_inference_join_over((ngx_http_inference_join_t *)
                     ((u_char *) wait
                      - offsetof(ngx_http_inference_join_t, ready)));
}


static void
ngx_http_inference_join_ask_over(ngx_http_inference_ask_t *ask)
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
ngx_http_inference_join_wants_text(ngx_http_inference_ctx_t *ctx)
{
    return ctx->join && ctx->join->joined;
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

        if (join->joined == NULL) {
            /* others may have started the request, with more time */
            ngx_http_inference_arm_timer(ctx);
        }

        return NGX_AGAIN;
    }

    *body = join->ours;

    return join->joined ? ngx_http_inference_join_end_parts(join, body)
                        : ngx_http_inference_join_end_ready(join, body);
}


/* gRPC has no error for it: an empty message means "ready: false". */

static ngx_int_t
ngx_http_inference_join_end_ready(ngx_http_inference_join_t *join,
    ngx_str_t *body)
{
    if (join->ready.ready) {
        return NGX_OK;
    }

    if (join->ctx->grpc) {
        body->len = 0;
        return NGX_OK;
    }

    return ngx_http_inference_fail(join->ctx, INF_ERR_UNAVAILABLE,
                                   "upstream \"%V\" is not ready",
                                   &join->ready.upstream->name);
}


/* Without the upstream's answer ours is sent. */

static ngx_int_t
ngx_http_inference_join_end_parts(ngx_http_inference_join_t *join,
    ngx_str_t *body)
{
    ngx_int_t   rc;
    inf_buf_t   text;

    inf_buf_init(&text);

    if (ngx_http_inference_join_parts(join, &text)) {
        rc = ngx_http_inference_join_text(join->ctx, inf_buf_slice(&text),
                                          body);

    } else {
        rc = ngx_http_inference_join_text(join->ctx,
                                          ngx_http_inference_slice(&join->ours),
                                          body);
    }

    inf_buf_fini(&text);

    return rc;
}


static ngx_uint_t
ngx_http_inference_join_parts(ngx_http_inference_join_t *join, inf_buf_t *out)
{
    inf_err_t                 *err;
    ngx_http_inference_ask_t  *ask;

    ask = &join->ask;

    if (!ask->answered) {
        return 0;
    }

    if (ask->answer.status != NGX_HTTP_OK) {
        ngx_http_inference_ask_log(ask, 0, join->joined->declined);
        return 0;
    }

    err = join->joined->answers(ngx_http_inference_slice(&join->ours),
                                ngx_http_inference_ask_body(ask), out);
    if (err) {
        inf_err_free(err);
        ngx_http_inference_ask_log(ask, 0, join->joined->wrong);
        return 0;
    }

    return 1;
}


/* Copies the answer to the request's memory, for gRPC as its message. */

ngx_int_t
ngx_http_inference_join_text(ngx_http_inference_ctx_t *ctx, inf_slice_t text,
    ngx_str_t *body)
{
    inf_buf_t   message;
    inf_err_t  *err;

    inf_buf_init(&message);

    if (ctx->grpc) {

        err = inf_rest_message(ctx->endpoint->call, text, &message);
        if (err) {
            inf_buf_fini(&message);
            return ngx_http_inference_fail_err(ctx, err);
        }

        text = inf_buf_slice(&message);
    }

    body->len = text.len;
    body->data = ngx_pnalloc(ctx->request->pool, text.len + 1);

    if (body->data) {
        ngx_memcpy(body->data, text.data, text.len);
    }

    inf_buf_fini(&message);

    return body->data
           ? NGX_OK
           : ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
}


static void
ngx_http_inference_join_cleanup(void *data)
{
    ngx_http_inference_join_t *join = data;

    ngx_http_inference_ready_leave(&join->ready);

    if (join->joined) {
        ngx_http_inference_fetch_cancel(&join->ask.fetch);
    }
}
