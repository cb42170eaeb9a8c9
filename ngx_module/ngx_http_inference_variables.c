/*
 * ngx_http_inference_variables.c - what logs, limits and maps may know.
 */

#include "ngx_module/ngx_http_inference_peek.h"


typedef enum {
    NGX_HTTP_INFERENCE_VAR_MODEL,
    NGX_HTTP_INFERENCE_VAR_VERSION,
    NGX_HTTP_INFERENCE_VAR_VERB,
    NGX_HTTP_INFERENCE_VAR_REQUEST_ID,
    NGX_HTTP_INFERENCE_VAR_SEQUENCE_ID,
    NGX_HTTP_INFERENCE_VAR_STATUS,
    NGX_HTTP_INFERENCE_VAR_ERROR,
    NGX_HTTP_INFERENCE_VAR_TRIES,
    NGX_HTTP_INFERENCE_VAR_QUEUE_TIME,
    NGX_HTTP_INFERENCE_VAR_COMPUTE_TIME,
    NGX_HTTP_INFERENCE_VAR_COMPUTE_INPUT_TIME,
    NGX_HTTP_INFERENCE_VAR_COMPUTE_OUTPUT_TIME,
    NGX_HTTP_INFERENCE_VAR_FIRST_RESPONSE_TIME,
    NGX_HTTP_INFERENCE_VAR_RESPONSES,
    NGX_HTTP_INFERENCE_VAR_CACHE_STATUS,
    NGX_HTTP_INFERENCE_VAR_BATCH_SIZE,
    NGX_HTTP_INFERENCE_VAR_BACKEND,
    NGX_HTTP_INFERENCE_VAR_INSTANCE,
    NGX_HTTP_INFERENCE_VAR_DEVICE
} ngx_http_inference_variable_e;


static ngx_int_t ngx_http_inference_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_inference_variable_grpc_status(
    ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_inference_variable_note(ngx_http_request_t *r,
    ngx_http_inference_variable_e which);
static ngx_uint_t ngx_http_inference_variable_unread(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_variable_e which);
static ngx_http_inference_ctx_t *ngx_http_inference_variable_early(
    ngx_http_request_t *r, ngx_http_inference_ctx_t *early);
static void ngx_http_inference_variable_early_call(
    ngx_http_inference_ctx_t *early);
static ngx_int_t ngx_http_inference_variable_value(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_variable_e which,
    ngx_str_t *value);
static void ngx_http_inference_variable_status(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value);
static ngx_uint_t ngx_http_inference_was_sent(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_is_live(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_variable_number(ngx_pool_t *pool,
    uint64_t n, ngx_str_t *value);
static ngx_int_t ngx_http_inference_variable_span(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_variable_e which,
    ngx_str_t *value);
static ngx_int_t ngx_http_inference_variable_device(ngx_pool_t *pool,
    uint32_t device, ngx_str_t *value);
static ngx_int_t ngx_http_inference_variable_time(ngx_pool_t *pool,
    uint64_t ns, ngx_str_t *value);
static void ngx_http_inference_variable_text(inf_slice_t text,
    ngx_str_t *value);


static ngx_http_variable_t  ngx_http_inference_vars[] = {

    { ngx_string("inference_model"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_MODEL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_version"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_VERSION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_verb"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_VERB, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_request_id"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_REQUEST_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_sequence_id"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_SEQUENCE_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_status"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_error"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_ERROR, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_grpc_status"), NULL,
      ngx_http_inference_variable_grpc_status, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_tries"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_TRIES, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_queue_time"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_QUEUE_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_compute_time"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_COMPUTE_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_compute_input_time"), NULL,
      ngx_http_inference_variable, NGX_HTTP_INFERENCE_VAR_COMPUTE_INPUT_TIME,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_compute_output_time"), NULL,
      ngx_http_inference_variable, NGX_HTTP_INFERENCE_VAR_COMPUTE_OUTPUT_TIME,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_first_response_time"), NULL,
      ngx_http_inference_variable, NGX_HTTP_INFERENCE_VAR_FIRST_RESPONSE_TIME,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_responses"), NULL,
      ngx_http_inference_variable, NGX_HTTP_INFERENCE_VAR_RESPONSES,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_cache_status"), NULL,
      ngx_http_inference_variable, NGX_HTTP_INFERENCE_VAR_CACHE_STATUS,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_batch_size"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_BATCH_SIZE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_backend"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_BACKEND, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_instance"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_INSTANCE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("inference_device"), NULL, ngx_http_inference_variable,
      NGX_HTTP_INFERENCE_VAR_DEVICE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    /* cacheable once it is known; until then the handler sets no_cacheable */
    { ngx_string("inference_digest"), NULL,
      ngx_http_inference_variable_digest, 0, 0, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_inference_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_inference_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* As the client was told: by trailers, or by the head where that is all. */

static ngx_int_t
ngx_http_inference_variable_grpc_status(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_uint_t        i, k;
    ngx_list_t       *lists[2];
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const ngx_str_t  name = ngx_string("grpc-status");

    lists[0] = &r->headers_out.trailers;
    lists[1] = &r->headers_out.headers;

    v->not_found = 1;

    for (k = 0; k < 2; k++) {

        part = &lists[k]->part;
        i = 0;

        while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

            if (h->hash && h->key.len == name.len
                && ngx_strncmp(h->key.data, name.data, name.len) == 0)
            {
                v->data = h->value.data;
                v->len = h->value.len;
                v->valid = 1;
                v->no_cacheable = 1;
                v->not_found = 0;

                return NGX_OK;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_int_t                  rc;
    ngx_str_t                  value;
    ngx_http_inference_ctx_t  *ctx, early;

    v->not_found = 1;

    ctx = ngx_http_inference_ctx(r);

    ngx_http_inference_variable_note(r, data);

    if (ctx == NULL || ngx_http_inference_variable_unread(ctx, data)) {
        ctx = ngx_http_inference_variable_early(r, &early);
    }

    if (ctx == NULL) {
        return NGX_OK;
    }

    rc = ngx_http_inference_variable_value(ctx, data, &value);

    if (rc != NGX_OK) {
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    v->not_found = 0;
    v->valid = 1;
    v->no_cacheable = 0;
    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


/* Before our handler has its turn, here or behind a redirect: the messages of a
   stream have to keep to the names that limits and access have seen. */

static void
ngx_http_inference_variable_note(ngx_http_request_t *r,
    ngx_http_inference_variable_e which)
{
    ngx_http_inference_peek_t  *peek;

    if ((which != NGX_HTTP_INFERENCE_VAR_MODEL
         && which != NGX_HTTP_INFERENCE_VAR_VERSION)
        || ngx_http_get_module_ctx(r, ngx_http_inference_module))
    {
        return;
    }

    peek = ngx_http_inference_peek(r);

    if (peek) {
        peek->asked = 1;
    }
}


/* A call of gRPC whose handler has not read the message yet. */

static ngx_uint_t
ngx_http_inference_variable_unread(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_variable_e which)
{
    return ctx->grpc && ctx->model.len == 0
           && (which == NGX_HTTP_INFERENCE_VAR_MODEL
               || which == NGX_HTTP_INFERENCE_VAR_VERSION);
}


/*
 * Limits ask before our handler has its turn, and in a location of another
 * handler there is none: what the URI and the first bytes say is known then.
 */

static ngx_http_inference_ctx_t *
ngx_http_inference_variable_early(ngx_http_request_t *r,
    ngx_http_inference_ctx_t *early)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (!ngx_http_inference_is_served(ilcf) && !ilcf->peek) {
        return NULL;
    }

    ngx_memzero(early, sizeof(ngx_http_inference_ctx_t));

    early->request = r;
    early->version = -1;

    if (ngx_http_inference_is_grpc(r)) {
        ngx_http_inference_variable_early_call(early);

    } else {
        (void) ngx_http_inference_find_endpoint(early);
    }

    (void) ngx_http_inference_parse_version(early);

    /* it has not failed yet */

    early->status = 0;
    ngx_str_null(&early->error);
    inf_arena_fini(&early->arena);

    return early;
}


static void
ngx_http_inference_variable_early_call(ngx_http_inference_ctx_t *early)
{
    ngx_http_inference_peek_t      *peek;
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(early->request,
                                        ngx_http_inference_module);

    early->endpoint = ngx_http_inference_grpc_match(early->request);

    if (ilcf->model) {
        (void) ngx_http_inference_model_of_location(early);
        return;
    }

    peek = ngx_http_inference_peek(early->request);

    if (peek) {
        early->model = peek->model;
        early->version_text = peek->version_text;
    }
}


/* NGX_DECLINED: not known. */

static ngx_int_t
ngx_http_inference_variable_value(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_variable_e which, ngx_str_t *value)
{
    ngx_pool_t  *pool;

    pool = ctx->request->pool;

    ngx_str_null(value);

    switch (which) {

    case NGX_HTTP_INFERENCE_VAR_MODEL:

        if (ctx->endpoint == NULL
            || ctx->endpoint->part != NGX_HTTP_INFERENCE_SHARED_MEMORY)
        {
            *value = ctx->model;
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_VERSION:

        if (ctx->version >= 0) {
            return ngx_http_inference_variable_number(pool, ctx->version,
                                                      value);
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_VERB:

        if (ctx->endpoint) {
            *value = ctx->endpoint->name;
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_REQUEST_ID:
        /* a reader is left after an error alone, and has the id if it came */
        ngx_http_inference_variable_text(
            ctx->reader ? inf_infer_reader_request(ctx->reader).id
                        : ctx->infer.id, value);
        break;

    case NGX_HTTP_INFERENCE_VAR_SEQUENCE_ID:

        if (ctx->infer.correlation_id) {
            return ngx_http_inference_variable_number(pool,
                                                  ctx->infer.correlation_id,
                                                  value);
        }

        ngx_http_inference_variable_text(ctx->infer.correlation_text, value);
        break;

    case NGX_HTTP_INFERENCE_VAR_STATUS:

        ngx_http_inference_variable_status(ctx, value);
        break;

    case NGX_HTTP_INFERENCE_VAR_ERROR:
        *value = ctx->error;
        break;

    case NGX_HTTP_INFERENCE_VAR_TRIES:

        if (ngx_http_inference_was_sent(ctx)) {
            return ngx_http_inference_variable_number(pool,
                                                      ctx->submission.begun,
                                                      value);
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_QUEUE_TIME:
    case NGX_HTTP_INFERENCE_VAR_COMPUTE_TIME:
    case NGX_HTTP_INFERENCE_VAR_COMPUTE_INPUT_TIME:
    case NGX_HTTP_INFERENCE_VAR_COMPUTE_OUTPUT_TIME:
    case NGX_HTTP_INFERENCE_VAR_FIRST_RESPONSE_TIME:
        return ngx_http_inference_variable_span(ctx, which, value);

    case NGX_HTTP_INFERENCE_VAR_RESPONSES:

        if (ctx->responses || ngx_http_inference_was_sent(ctx)) {
            return ngx_http_inference_variable_number(pool, ctx->responses,
                                                      value);
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_CACHE_STATUS:

        if (ctx->execution.lookup == INF_LOOKUP_HIT) {
            ngx_str_set(value, "HIT");

        } else if (ctx->execution.lookup == INF_LOOKUP_MISS) {
            ngx_str_set(value, "MISS");
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_DEVICE:
        return ngx_http_inference_variable_device(pool, ctx->execution.device,
                                                  value);

    case NGX_HTTP_INFERENCE_VAR_BATCH_SIZE:

        if (ctx->execution.batch_size) {
            return ngx_http_inference_variable_number(pool,
                                                    ctx->execution.batch_size,
                                                      value);
        }

        break;

    case NGX_HTTP_INFERENCE_VAR_BACKEND:
        *value = ctx->backend;
        break;

    case NGX_HTTP_INFERENCE_VAR_INSTANCE:
        *value = ctx->instance;
        break;
    }

    return value->len ? ngx_http_inference_one_line(pool, value)
                      : NGX_DECLINED;
}


/* In words that a map can tell apart under any HTTP status. */

static void
ngx_http_inference_variable_status(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value)
{
    if (ctx->status) {

        if (ctx->code == INF_ERR_CANCELLED) {
            ngx_str_set(value, "Cancelled");

        } else if (ctx->cause == INF_CAUSE_FULL) {
            ngx_str_set(value, "Queue full");

        } else if (ctx->cause == INF_CAUSE_TIMED_OUT) {
            ngx_str_set(value, "Timed out");

        } else {
            value->data = (u_char *) inf_err_code_string(ctx->code);
            value->len = ngx_strlen(value->data);
        }

        return;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_LEFT) {
        ngx_str_set(value, "Cancelled");

    } else if (ctx->replies || ngx_http_inference_is_live(ctx)) {
        ngx_str_set(value, "OK");
    }
}


/* An inference that the core has had. */

static ngx_uint_t
ngx_http_inference_was_sent(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint && ngx_http_inference_is_infer(ctx)
           && ctx->submission.epoch != 0;
}


/* Answered by the worker itself, once the request is with its handler. */

static ngx_uint_t
ngx_http_inference_is_live(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint && ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE
           && ctx->received_ns != 0;
}


static ngx_int_t
ngx_http_inference_variable_number(ngx_pool_t *pool, uint64_t n,
    ngx_str_t *value)
{
    value->data = ngx_pnalloc(pool, NGX_INT64_LEN + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "%uL", n) - value->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_variable_span(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_variable_e which, ngx_str_t *value)
{
    uint64_t                         ns;
    ngx_uint_t                       known;
    ngx_http_inference_execution_t  *e;

    e = &ctx->execution;

    switch (which) {

    case NGX_HTTP_INFERENCE_VAR_QUEUE_TIME:
        known = (e->batch_size || e->queue_ns);
        ns = e->queue_ns;
        break;

    case NGX_HTTP_INFERENCE_VAR_COMPUTE_TIME:
        known = (e->batch_size != 0);
        ns = e->compute_ns;
        break;

    case NGX_HTTP_INFERENCE_VAR_COMPUTE_INPUT_TIME:
        known = (e->device != INF_DEVICE_NONE);
        ns = (uint64_t) e->input_us * 1000;
        break;

    case NGX_HTTP_INFERENCE_VAR_COMPUTE_OUTPUT_TIME:
        known = (e->device != INF_DEVICE_NONE);
        ns = (uint64_t) e->output_us * 1000;
        break;

    case NGX_HTTP_INFERENCE_VAR_FIRST_RESPONSE_TIME:
        known = (ctx->responses != 0);
        ns = ctx->first_ns - ctx->received_ns;
        break;

    default:
        return NGX_DECLINED;
    }

    return known ? ngx_http_inference_variable_time(ctx->request->pool, ns,
                                                    value)
                 : NGX_DECLINED;
}


static ngx_int_t
ngx_http_inference_variable_device(ngx_pool_t *pool, uint32_t device,
    ngx_str_t *value)
{
    if (device == INF_DEVICE_NONE) {
        return NGX_DECLINED;
    }

    if (device == INF_DEVICE_CPU) {
        ngx_str_set(value, "cpu");
        return NGX_OK;
    }

    value->data = ngx_pnalloc(pool, sizeof("gpu") + NGX_INT64_LEN);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "gpu%uD", device - INF_DEVICE_GPU)
                 - value->data;

    return NGX_OK;
}


/* Seconds with microseconds, like $request_time with milliseconds. */

static ngx_int_t
ngx_http_inference_variable_time(ngx_pool_t *pool, uint64_t ns,
    ngx_str_t *value)
{
    value->data = ngx_pnalloc(pool, NGX_INT64_LEN + sizeof(".000000"));
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "%uL.%06uL", ns / 1000000000,
                             ns / 1000 % 1000000)
                 - value->data;

    return NGX_OK;
}


static void
ngx_http_inference_variable_text(inf_slice_t text, ngx_str_t *value)
{
    value->data = (u_char *) text.data;
    value->len = text.len;
}
