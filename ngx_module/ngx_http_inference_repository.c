/*
 * ngx_http_inference_repository.c - the repository API: a REST body becomes
 *                                   the message that asks the core to list,
 *                                   load or unload models.
 */

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/json_doc.h"

#include "grpc_service.pb-c.h"


#define NGX_HTTP_INFERENCE_FILE  "file:"


typedef Inference__ModelRepositoryParameter
    ngx_http_inference_pb_parameter_t;
typedef Inference__RepositoryModelLoadRequest__ParametersEntry
    ngx_http_inference_pb_load_entry_t;
typedef Inference__RepositoryModelUnloadRequest__ParametersEntry
    ngx_http_inference_pb_unload_entry_t;


static ngx_int_t ngx_http_inference_repository_open(
    ngx_http_inference_ctx_t *ctx, inf_json_doc_t *doc);
static ngx_int_t ngx_http_inference_repository_message(
    ngx_http_inference_ctx_t *ctx, json_t *root, inf_submission_t *s);
static ngx_int_t ngx_http_inference_repository_index(
    ngx_http_inference_ctx_t *ctx, json_t *root, inf_submission_t *s);
static ngx_int_t ngx_http_inference_repository_load(
    ngx_http_inference_ctx_t *ctx, json_t *parameters, inf_submission_t *s);
static ngx_int_t ngx_http_inference_repository_parameter(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_pb_load_entry_t *entry,
    const char *key, json_t *value);
static ngx_int_t ngx_http_inference_repository_unload(
    ngx_http_inference_ctx_t *ctx, json_t *parameters, inf_submission_t *s);


ngx_int_t
ngx_http_inference_repository_pack(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s)
{
    ngx_int_t       rc;
    inf_json_doc_t  doc;

    ngx_memzero(&doc, sizeof(inf_json_doc_t));

    rc = ngx_http_inference_repository_open(ctx, &doc);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_repository_message(ctx, doc.root, s);
    }

    inf_json_doc_fini(&doc);

    return rc;
}


/* An empty body is an empty object: then doc->root stays NULL. */

static ngx_int_t
ngx_http_inference_repository_open(ngx_http_inference_ctx_t *ctx,
    inf_json_doc_t *doc)
{
    inf_err_t                   *err;
    ngx_http_inference_store_t  *text;

    text = &ctx->body.text;

    if (text->len == 0) {
        return NGX_OK;
    }

    err = inf_json_doc_parse(doc, inf_slice((char *) text->data,
                                            (size_t) text->len), 0);
    if (err) {
        return ngx_http_inference_fail_err(ctx,
                                   inf_err_add(err, "failed to parse the "
                                               "request JSON buffer"));
    }

    if (!json_is_object(doc->root)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "the request's JSON must be an object");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_repository_message(ngx_http_inference_ctx_t *ctx,
    json_t *root, inf_submission_t *s)
{
    json_t  *parameters;

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_REPOSITORY_INDEX) {
        return ngx_http_inference_repository_index(ctx, root, s);
    }

    parameters = root ? json_object_get(root, "parameters") : NULL;

    if (parameters && !json_is_object(parameters)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "'parameters' must be an object");
    }

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_REPOSITORY_LOAD) {
        return ngx_http_inference_repository_load(ctx, parameters, s);
    }

    return ngx_http_inference_repository_unload(ctx, parameters, s);
}


static ngx_int_t
ngx_http_inference_repository_index(ngx_http_inference_ctx_t *ctx,
    json_t *root, inf_submission_t *s)
{
    json_t                             *ready;
    Inference__RepositoryIndexRequest   q;

    inference__repository_index_request__init(&q);

    ready = root ? json_object_get(root, "ready") : NULL;

    if (ready && !json_is_boolean(ready)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "Invalid value for 'ready': expected a "
                                       "boolean");
    }

    q.ready = ready && json_is_true(ready);

    s->method = INF_METHOD_REPOSITORY_INDEX;

    return ngx_http_inference_control_record(ctx, &q.base);
}


static ngx_int_t
ngx_http_inference_repository_load(ngx_http_inference_ctx_t *ctx,
    json_t *parameters, inf_submission_t *s)
{
    size_t                                  n;
    json_t                                 *value;
    const char                             *key;
    ngx_http_inference_pb_load_entry_t     *entry;
    Inference__RepositoryModelLoadRequest   q;

    inference__repository_model_load_request__init(&q);

    n = parameters ? json_object_size(parameters) : 0;

    q.model_name = ngx_http_inference_control_text(ctx, &ctx->model);
    q.parameters = inf_arena_calloc(&ctx->arena, n + 1, sizeof(entry));

    entry = inf_arena_calloc(&ctx->arena, n + 1, sizeof(*entry));

    if (q.model_name == NULL || q.parameters == NULL || entry == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    json_object_foreach(parameters, key, value) {

        if (ngx_http_inference_repository_parameter(ctx, entry, key, value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        q.parameters[q.n_parameters++] = entry++;
    }

    s->method = INF_METHOD_REPOSITORY_MODEL_LOAD;

    return ngx_http_inference_control_record(ctx, &q.base);
}


/* "config" is text, "file:PATH" base64; the core judges other names. */

static ngx_int_t
ngx_http_inference_repository_parameter(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_pb_load_entry_t *entry, const char *key, json_t *value)
{
    ngx_str_t                           src, dst;
    inf_slice_t                         text;
    ngx_http_inference_pb_parameter_t  *p;

    p = inf_arena_alloc(&ctx->arena, sizeof(*p));
    if (p == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    inference__model_repository_parameter__init(p);
    inference__repository_model_load_request__parameters_entry__init(entry);

    entry->key = (char *) key;
    entry->value = p;

    if (!inf_json_doc_string(value, &text)) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "load parameter '%s' must be a string",
                                       key);
    }

    if (ngx_strncmp(key, NGX_HTTP_INFERENCE_FILE,
                    sizeof(NGX_HTTP_INFERENCE_FILE) - 1)
        != 0)
    {
        if (ngx_strlen(text.data) != text.len) {
            return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                           "load parameter '%s' holds a NUL "
                                           "character", key);
        }

        p->parameter_choice_case =
          INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
        p->string_param = (char *) text.data;

        return NGX_OK;
    }

    src.data = (u_char *) text.data;
    src.len = text.len;

    dst.data = inf_arena_alloc(&ctx->arena,
                               ngx_base64_decoded_length(src.len) + 1);
    if (dst.data == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    dst.len = 0;

    if (src.len && ngx_decode_base64(&dst, &src) != NGX_OK) {
        return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                       "load parameter '%s' is not base64",
                                       key);
    }

    p->parameter_choice_case =
           INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_BYTES_PARAM;
    p->bytes_param.data = dst.data;
    p->bytes_param.len = dst.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_repository_unload(ngx_http_inference_ctx_t *ctx,
    json_t *parameters, inf_submission_t *s)
{
    json_t                                   *value;
    ngx_http_inference_pb_parameter_t         p;
    ngx_http_inference_pb_unload_entry_t      entry, *entries[1];
    Inference__RepositoryModelUnloadRequest   q;

    inference__model_repository_parameter__init(&p);
    inference__repository_model_unload_request__parameters_entry__init(&entry);
    inference__repository_model_unload_request__init(&q);

    q.model_name = ngx_http_inference_control_text(ctx, &ctx->model);
    if (q.model_name == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    value = parameters ? json_object_get(parameters, "unload_dependents")
                       : NULL;
    if (value) {
        if (!json_is_boolean(value)) {
            return ngx_http_inference_fail(ctx, INF_ERR_INVALID_ARG,
                                           "'unload_dependents' must be a "
                                           "boolean");
        }

        p.parameter_choice_case =
            INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_BOOL_PARAM;
        p.bool_param = json_is_true(value);

        entry.key = "unload_dependents";
        entry.value = &p;

        entries[0] = &entry;

        q.parameters = entries;
        q.n_parameters = 1;
    }

    s->method = INF_METHOD_REPOSITORY_MODEL_UNLOAD;

    return ngx_http_inference_control_record(ctx, &q.base);
}
