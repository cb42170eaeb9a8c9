/*
 * ngx_http_inference_missing.c - "inference_upstream": metadata and readiness
 *                                of a model that our core lacks come from the
 *                                other server, which is asked over REST after
 *                                the core has answered.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_fetch.h"
#include "ngx_module/ngx_http_inference_join.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/model_metadata.h"


struct ngx_http_inference_missing_s {
    ngx_http_inference_ask_t       ask;         /* first member              */
    ngx_http_inference_ctx_t      *ctx;
    inf_slice_t                    model;
    ngx_uint_t                     asked;
    ngx_uint_t                     waiting;     /* for the answer            */
};


static ngx_uint_t ngx_http_inference_asks_model(
    ngx_http_inference_ctx_t *ctx);
static inf_names_t ngx_http_inference_missing_names(
    ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_is_segment(inf_slice_t name);
static ngx_int_t ngx_http_inference_missing_request(
    ngx_http_inference_missing_t *missing, inf_names_t names);
static ngx_uint_t ngx_http_inference_is_missing(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_missing_ask(
    ngx_http_inference_missing_t *missing);
static void ngx_http_inference_missing_over(ngx_http_inference_ask_t *ask);
static ngx_int_t ngx_http_inference_missing_ready(
    ngx_http_inference_missing_t *missing, ngx_str_t *body);
static ngx_int_t ngx_http_inference_missing_metadata(
    ngx_http_inference_missing_t *missing, ngx_str_t *body);
static void ngx_http_inference_missing_cleanup(void *data);


/* Prepared before the submission, since the core owns the message's bytes
   afterwards. */

ngx_int_t
ngx_http_inference_missing_begin(ngx_http_inference_ctx_t *ctx)
{
    inf_names_t                     names;
    ngx_pool_cleanup_t             *cln;
    ngx_http_inference_missing_t   *missing;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ctx->missing || ilcf->upstream == NULL
        || !ngx_http_inference_asks_model(ctx))
    {
        return NGX_OK;
    }

    names = ngx_http_inference_missing_names(ctx);

    if (!ngx_http_inference_is_segment(names.model)
        || (names.version.len && !ngx_http_inference_is_segment(names.version)))
    {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(ctx->request->pool,
                               sizeof(ngx_http_inference_missing_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    missing = cln->data;
    ngx_memzero(missing, sizeof(ngx_http_inference_missing_t));

    missing->ctx = ctx;
    missing->ask.upstream = ilcf->upstream;

    cln->handler = ngx_http_inference_missing_cleanup;

    ctx->missing = missing;

    return ngx_http_inference_missing_request(missing, names);
}


static ngx_uint_t
ngx_http_inference_asks_model(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint->call == INF_METHOD_MODEL_METADATA
           || ctx->endpoint->call == INF_METHOD_MODEL_READY;
}


static inf_names_t
ngx_http_inference_missing_names(ngx_http_inference_ctx_t *ctx)
{
    inf_names_t                  names;
    ngx_http_inference_store_t  *text;

    if (ctx->grpc) {
        text = &ctx->body.text;
        return ngx_http_inference_peek_names(ctx->endpoint,
                                             ngx_http_inference_slice(text));
    }

    names.model = ngx_http_inference_slice(&ctx->names.model);
    names.version = ngx_http_inference_slice(&ctx->names.version);
    return names;
}


/* Names are not encoded in the other server's path: Triton does not decode
   them. */

static ngx_uint_t
ngx_http_inference_is_segment(inf_slice_t name)
{
    size_t  i;
    u_char  c;

    for (i = 0; i < name.len; i++) {

        c = (u_char) name.data[i];

        if (c <= ' ' || c >= 0x7f || c == '/' || c == '?' || c == '#'
            || c == '%')
        {
            return 0;
        }
    }

    return name.len && !(name.data[0] == '.'
                         && (name.len == 1
                             || (name.len == 2 && name.data[1] == '.')));
}


static ngx_int_t
ngx_http_inference_missing_request(ngx_http_inference_missing_t *missing,
    inf_names_t names)
{
    u_char      *p;
    ngx_str_t    path;
    ngx_pool_t  *pool;

    static const char  format[] = "/v2/models/%*s%s%*s%s";

    pool = missing->ctx->request->pool;

    path.data = ngx_pnalloc(pool, sizeof(format) + names.model.len
                                  + sizeof("/versions/") + names.version.len
                                  + sizeof("/ready"));
    if (path.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(path.data, format, names.model.len, names.model.data,
                    names.version.len ? "/versions/" : "",
                    names.version.len,
                    names.version.len ? names.version.data : "",
                    (missing->ctx->endpoint->call == INF_METHOD_MODEL_READY)
                    ? "/ready" : "");

    path.len = p - path.data;

    missing->model = inf_slice((char *) path.data + sizeof("/v2/models/") - 1,
                               names.model.len);

    return ngx_http_inference_ask_get(&missing->ask, pool, &path);
}


ngx_int_t
ngx_http_inference_missing(ngx_http_inference_ctx_t *ctx, ngx_str_t *body)
{
    ngx_http_inference_missing_t  *missing;

    missing = ctx->missing;

    if (missing == NULL || !ngx_http_inference_is_missing(ctx)) {
        return NGX_DECLINED;
    }

    if (!missing->asked && ngx_http_inference_missing_ask(missing) != NGX_OK) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (ngx_http_inference_fetch_runs(&missing->ask.fetch)) {
        missing->waiting = 1;
        return NGX_AGAIN;
    }

    if (!missing->ask.answered
        || missing->ask.answer.status != NGX_HTTP_OK)
    {
        return NGX_DECLINED;
    }

    return (ctx->endpoint->call == INF_METHOD_MODEL_READY)
           ? ngx_http_inference_missing_ready(missing, body)
           : ngx_http_inference_missing_metadata(missing, body);
}


/* A model that the core is still loading is ours. */

static ngx_uint_t
ngx_http_inference_is_missing(ngx_http_inference_ctx_t *ctx)
{
    return ctx->reply.status != INF_OK
           && INF_STATUS_CODE(ctx->reply.status) == INF_ERR_NOT_FOUND
           && ctx->cause != INF_CAUSE_STARTING;
}


static ngx_int_t
ngx_http_inference_missing_ask(ngx_http_inference_missing_t *missing)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r;
    ngx_http_inference_ask_t  *ask;

    r = missing->ctx->request;
    ask = &missing->ask;

    ask->request = r;
    ask->without = "the model stays unknown";
    ask->over = ngx_http_inference_missing_over;

    rc = (missing->ctx->endpoint->call == INF_METHOD_MODEL_READY)
         ? ngx_http_inference_ask_head(ask, r->pool)
         : ngx_http_inference_ask_whole(ask, r->pool);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    missing->asked = 1;

    ngx_http_inference_ask_start(ask,
                                 ngx_http_inference_time_left(missing->ctx));

    return NGX_OK;
}


static void
ngx_http_inference_missing_over(ngx_http_inference_ask_t *ask)
{
    ngx_http_inference_missing_t  *missing;

    missing = (ngx_http_inference_missing_t *) ask;

    if (missing->waiting && !ngx_http_inference_is_over(missing->ctx)) {
        ngx_http_inference_next_turn(&missing->ctx->turn);
    }
}


static ngx_int_t
ngx_http_inference_missing_ready(ngx_http_inference_missing_t *missing,
    ngx_str_t *body)
{
    static ngx_str_t  ready = ngx_string("\x08\x01");   /* ready: true       */
    static ngx_str_t  none = ngx_null_string;

    *body = missing->ctx->grpc ? ready : none;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_missing_metadata(ngx_http_inference_missing_t *missing,
    ngx_str_t *body)
{
    ngx_int_t   rc;
    inf_buf_t   text;
    inf_err_t  *err;

    inf_buf_init(&text);

    err = inf_model_metadata_restrict(missing->model,
                                  ngx_http_inference_ask_body(&missing->ask),
                                  &text);
    if (err) {
        inf_err_free(err);
        ngx_http_inference_ask_log(&missing->ask, 0,
                                   "sends no metadata of the model");
        rc = NGX_DECLINED;

    } else {
        rc = ngx_http_inference_join_text(missing->ctx, inf_buf_slice(&text),
                                          body);
    }

    inf_buf_fini(&text);

    return rc;
}


static void
ngx_http_inference_missing_cleanup(void *data)
{
    ngx_http_inference_missing_t *missing = data;

    ngx_http_inference_fetch_cancel(&missing->ask.fetch);
}
