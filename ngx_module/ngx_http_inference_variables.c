/*
 * ngx_http_inference_variables.c - variables for logs, limits and maps.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_variables.h"

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_request.h"


/*
 * Prints a value; field is the context's member of the variable's row.
 * NGX_DECLINED, or an empty text: no value.
 */
typedef ngx_int_t (*ngx_http_inference_print_pt)(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value);


typedef struct {
    ngx_str_t                    name;
    ngx_http_inference_print_pt  print;
    size_t                       offset;        /* of the member; 0: several */
    ngx_uint_t                   named;         /* a name, which a gRPC call
                                                   has in its message        */
} ngx_http_inference_variable_t;


static ngx_int_t ngx_http_inference_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_inference_variable_grpc_status(
    ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_inference_variable_note(ngx_http_request_t *r,
    ngx_http_inference_variable_t *var);
static ngx_uint_t ngx_http_inference_variable_unread(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_variable_t *var);
static ngx_int_t ngx_http_inference_print_text(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_model(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_version(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_verb(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_request_id(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_sequence_id(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_status(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_tries(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_queue_time(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_compute_time(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_copy_time(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_first_response_time(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_responses(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_cache_status(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_batch_size(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_int_t ngx_http_inference_print_device(
    ngx_http_inference_ctx_t *ctx, const void *field, ngx_str_t *value);
static ngx_uint_t ngx_http_inference_was_sent(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_is_live(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_variable_number(ngx_pool_t *pool,
    uint64_t n, ngx_str_t *value);
static ngx_int_t ngx_http_inference_variable_time(ngx_pool_t *pool,
    uint64_t ns, ngx_str_t *value);


/* all but $inference_grpc_status and $inference_digest */

static ngx_http_inference_variable_t  ngx_http_inference_fields[] = {

    { ngx_string("inference_model"),
      ngx_http_inference_print_model,
      0, 1 },

    { ngx_string("inference_version"),
      ngx_http_inference_print_version,
      0, 1 },

    { ngx_string("inference_verb"),
      ngx_http_inference_print_verb,
      0, 0 },

    { ngx_string("inference_request_id"),
      ngx_http_inference_print_request_id,
      0, 0 },

    { ngx_string("inference_sequence_id"),
      ngx_http_inference_print_sequence_id,
      0, 0 },

    { ngx_string("inference_status"),
      ngx_http_inference_print_status,
      0, 0 },

    { ngx_string("inference_error"),
      ngx_http_inference_print_text,
      offsetof(ngx_http_inference_ctx_t, error), 0 },

    { ngx_string("inference_tries"),
      ngx_http_inference_print_tries,
      0, 0 },

    { ngx_string("inference_queue_time"),
      ngx_http_inference_print_queue_time,
      0, 0 },

    { ngx_string("inference_compute_time"),
      ngx_http_inference_print_compute_time,
      0, 0 },

    { ngx_string("inference_compute_input_time"),
      ngx_http_inference_print_copy_time,
      offsetof(ngx_http_inference_ctx_t, execution.input_us), 0 },

    { ngx_string("inference_compute_output_time"),
      ngx_http_inference_print_copy_time,
      offsetof(ngx_http_inference_ctx_t, execution.output_us), 0 },

    { ngx_string("inference_first_response_time"),
      ngx_http_inference_print_first_response_time,
      0, 0 },

    { ngx_string("inference_responses"),
      ngx_http_inference_print_responses,
      0, 0 },

    { ngx_string("inference_cache_status"),
      ngx_http_inference_print_cache_status,
      0, 0 },

    { ngx_string("inference_batch_size"),
      ngx_http_inference_print_batch_size,
      0, 0 },

    { ngx_string("inference_backend"),
      ngx_http_inference_print_text,
      offsetof(ngx_http_inference_ctx_t, backend), 0 },

    { ngx_string("inference_instance"),
      ngx_http_inference_print_text,
      offsetof(ngx_http_inference_ctx_t, instance), 0 },

    { ngx_string("inference_device"),
      ngx_http_inference_print_device,
      0, 0 },

    { ngx_null_string, NULL, 0, 0 }
};


static ngx_http_variable_t  ngx_http_inference_vars[] = {

    { ngx_string("inference_grpc_status"), NULL,
      ngx_http_inference_variable_grpc_status, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    /* cacheable once known; until then the handler sets no_cacheable */
    { ngx_string("inference_digest"), NULL,
      ngx_http_inference_variable_digest, 0, 0, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_inference_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t            *var, *v;
    ngx_http_inference_variable_t  *field;

    for (v = ngx_http_inference_vars; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    for (field = ngx_http_inference_fields; field->name.len; field++) {

        var = ngx_http_add_variable(cf, &field->name,
                                    NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = ngx_http_inference_variable;
        var->data = (uintptr_t) field;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_inference_names_are_used(ngx_conf_t *cf)
{
    ngx_uint_t                      i;
    ngx_http_variable_t            *v;
    ngx_http_core_main_conf_t      *cmcf;
    ngx_http_inference_variable_t  *field;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {

        for (field = ngx_http_inference_fields; field->name.len; field++) {

            if (field->named
                && v[i].name.len == field->name.len
                && ngx_strncmp(v[i].name.data, field->name.data,
                               field->name.len)
                   == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


/* The status sent to the client, in trailers or in the head. */

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
    ngx_int_t                       rc;
    ngx_str_t                       value;
    ngx_http_inference_ctx_t       *ctx, early;
    ngx_http_inference_variable_t  *var;

    var = (ngx_http_inference_variable_t *) data;

    v->not_found = 1;

    ctx = ngx_http_inference_ctx(r);

    ngx_http_inference_variable_note(r, var);

    if (ctx == NULL || ngx_http_inference_variable_unread(ctx, var)) {
        ctx = ngx_http_inference_early(r, &early);
    }

    if (ctx == NULL) {
        return NGX_OK;
    }

    ngx_str_null(&value);

    rc = var->print(ctx, (u_char *) ctx + var->offset, &value);

    if (rc == NGX_OK && value.len) {
        rc = ngx_http_inference_one_line(r->pool, &value);
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (value.len == 0) {
        return NGX_OK;
    }

    v->not_found = 0;
    v->valid = 1;
    v->no_cacheable = 0;
    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


/* Records that a directive has used the names before our handler runs, in this
   request, behind a redirect or in a subrequest: the messages of a stream must
   then keep the names. */

static void
ngx_http_inference_variable_note(ngx_http_request_t *r,
    ngx_http_inference_variable_t *var)
{
    ngx_http_inference_peek_t  *peek;

    if (!var->named) {
        return;
    }

    for ( /* void */ ;
         r && !ngx_http_get_module_ctx(r, ngx_http_inference_module);
         r = r->parent)
    {
        peek = ngx_http_inference_peek(r);

        if (peek) {
            peek->asked = 1;
            return;
        }
    }
}


/* Whether this is a gRPC call whose message is not parsed yet. */

static ngx_uint_t
ngx_http_inference_variable_unread(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_variable_t *var)
{
    return ctx->grpc && ctx->names.model.len == 0 && var->named;
}


/* ---- printers ------------------------------------------------------------ */

static ngx_int_t
ngx_http_inference_print_text(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    *value = *(const ngx_str_t *) field;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_print_model(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->endpoint == NULL
        || ctx->endpoint->part != NGX_HTTP_INFERENCE_SHARED_MEMORY)
    {
        *value = ctx->names.model;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_print_version(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->version < 0) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_number(ctx->request->pool,
                                              ctx->version, value);
}


static ngx_int_t
ngx_http_inference_print_verb(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->endpoint) {
        *value = ctx->endpoint->name;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_print_request_id(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    inf_slice_t  id;

    /* after an error only the reader may have the id */

    id = ctx->reader ? inf_infer_reader_request(ctx->reader).id
                     : ctx->infer.id;

    value->data = (u_char *) id.data;
    value->len = id.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_print_sequence_id(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->infer.correlation_id) {
        return ngx_http_inference_variable_number(ctx->request->pool,
                                                  ctx->infer.correlation_id,
                                                  value);
    }

    value->data = (u_char *) ctx->infer.correlation_text.data;
    value->len = ctx->infer.correlation_text.len;

    return NGX_OK;
}


/* Prints the outcome as a word, independent of the HTTP status. */

static ngx_int_t
ngx_http_inference_print_status(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
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

    } else if (ctx->state == NGX_HTTP_INFERENCE_LEFT) {
        ngx_str_set(value, "Cancelled");

    } else if (ctx->replies || ngx_http_inference_is_live(ctx)) {
        ngx_str_set(value, "OK");
    }

    return NGX_OK;
}


/* Whether the worker answers the request, and our handler has it. */

static ngx_uint_t
ngx_http_inference_is_live(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint && ctx->endpoint->verb == NGX_HTTP_INFERENCE_LIVE
           && ctx->received_ns != 0;
}


static ngx_int_t
ngx_http_inference_print_tries(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (!ngx_http_inference_was_sent(ctx)) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_number(ctx->request->pool,
                                              ctx->submission.begun, value);
}


/* Whether the core has had the inference. */

static ngx_uint_t
ngx_http_inference_was_sent(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint && ngx_http_inference_is_infer(ctx)
           && ctx->submission.epoch != 0;
}


static ngx_int_t
ngx_http_inference_print_queue_time(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->execution.batch_size == 0 && ctx->execution.queue_ns == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_time(ctx->request->pool,
                                            ctx->execution.queue_ns, value);
}


static ngx_int_t
ngx_http_inference_print_compute_time(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->execution.batch_size == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_time(ctx->request->pool,
                                            ctx->execution.compute_ns, value);
}


/* Prints microseconds of a copy to or from a device. */

static ngx_int_t
ngx_http_inference_print_copy_time(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->execution.device == INF_DEVICE_NONE) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_time(ctx->request->pool,
                                            *(const uint32_t *) field
                                            * (uint64_t) 1000, value);
}


static ngx_int_t
ngx_http_inference_print_first_response_time(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->responses == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_time(ctx->request->pool,
                                            ctx->first_ns - ctx->received_ns,
                                            value);
}


static ngx_int_t
ngx_http_inference_print_responses(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->responses == 0 && !ngx_http_inference_was_sent(ctx)) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_number(ctx->request->pool,
                                              ctx->responses, value);
}


static ngx_int_t
ngx_http_inference_print_cache_status(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->execution.lookup == INF_LOOKUP_HIT) {
        ngx_str_set(value, "HIT");

    } else if (ctx->execution.lookup == INF_LOOKUP_MISS) {
        ngx_str_set(value, "MISS");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_print_batch_size(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    if (ctx->execution.batch_size == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_inference_variable_number(ctx->request->pool,
                                              ctx->execution.batch_size,
                                              value);
}


static ngx_int_t
ngx_http_inference_print_device(ngx_http_inference_ctx_t *ctx,
    const void *field, ngx_str_t *value)
{
    uint32_t  device;

    device = ctx->execution.device;

    if (device == INF_DEVICE_NONE) {
        return NGX_DECLINED;
    }

    if (device == INF_DEVICE_CPU) {
        ngx_str_set(value, "cpu");
        return NGX_OK;
    }

    value->data = ngx_pnalloc(ctx->request->pool,
                              sizeof("gpu") + NGX_INT64_LEN);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = ngx_sprintf(value->data, "gpu%uD", device - INF_DEVICE_GPU)
                 - value->data;

    return NGX_OK;
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


/* Prints seconds with microseconds; $request_time has milliseconds. */

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
