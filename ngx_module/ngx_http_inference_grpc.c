/*
 * ngx_http_inference_grpc.c - which call of gRPC a request is, and what its
 *                             metadata ask for.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_request.h"

#include "core/base/error.h"


static ngx_int_t ngx_http_inference_grpc_method(ngx_http_inference_ctx_t *ctx);
static ngx_uint_t ngx_http_inference_grpc_names(ngx_str_t *path,
    const ngx_str_t *method, ngx_http_inference_loc_conf_t *ilcf);
static ngx_int_t ngx_http_inference_grpc_metadata(
    ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_grpc_encoding(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *value);
static ngx_int_t ngx_http_inference_grpc_timeout(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *value);


#define ngx_http_inference_method(service, name, part, verb, call, variable,  \
                                  names)                                      \
    { ngx_string(service name), NGX_HTTP_POST, NGX_HTTP_INFERENCE_##part,     \
      NGX_HTTP_INFERENCE_##verb, call, ngx_string(variable),                  \
      NGX_HTTP_INFERENCE_NAMES_##names }

#define ngx_http_inference_kserve(name, part, verb, call, variable, names)    \
    ngx_http_inference_method("/inference.GRPCInferenceService/", name, part, \
                              verb, call, variable, names)

static const ngx_http_inference_endpoint_t  ngx_http_inference_methods[] = {

    ngx_http_inference_kserve("ModelInfer", INFER, MODEL_INFER, 0, "infer",
                              BOTH),
    ngx_http_inference_kserve("ModelStreamInfer", INFER, STREAM_INFER, 0,
                              "stream_infer", BOTH),

    ngx_http_inference_kserve("ServerLive", HEALTH, LIVE, 0, "live", NONE),
    ngx_http_inference_kserve("ServerReady", HEALTH, CALL_BODY,
                              INF_METHOD_SERVER_READY, "ready", NONE),
    ngx_http_inference_kserve("ModelReady", HEALTH, CALL_BODY,
                              INF_METHOD_MODEL_READY, "model_ready", BOTH),
    ngx_http_inference_method("/grpc.health.v1.Health/", "Check", HEALTH,
                              HEALTH_CHECK, INF_METHOD_SERVER_READY,
                              "health_check", NONE),
    ngx_http_inference_method("/grpc.health.v1.Health/", "Watch", HEALTH,
                              HEALTH_WATCH, INF_METHOD_SERVER_READY,
                              "health_watch", NONE),

    ngx_http_inference_kserve("ServerMetadata", METADATA, CALL_BODY,
                              INF_METHOD_SERVER_METADATA, "metadata", NONE),
    ngx_http_inference_kserve("ModelMetadata", METADATA, CALL_BODY,
                              INF_METHOD_MODEL_METADATA, "model_metadata",
                              BOTH),
    ngx_http_inference_kserve("ModelConfig", CONFIG, CALL_BODY,
                              INF_METHOD_MODEL_CONFIG, "config", BOTH),
    ngx_http_inference_kserve("ModelStatistics", STATISTICS, CALL_BODY,
                              INF_METHOD_MODEL_STATISTICS, "statistics", BOTH),

    ngx_http_inference_kserve("RepositoryIndex", REPOSITORY, CALL_BODY,
                              INF_METHOD_REPOSITORY_INDEX, "index", NONE),
    ngx_http_inference_kserve("RepositoryModelLoad", REPOSITORY, CALL_BODY,
                              INF_METHOD_REPOSITORY_MODEL_LOAD, "load",
                              SECOND),
    ngx_http_inference_kserve("RepositoryModelUnload", REPOSITORY, CALL_BODY,
                              INF_METHOD_REPOSITORY_MODEL_UNLOAD, "unload",
                              SECOND),

    ngx_http_inference_kserve("SystemSharedMemoryStatus", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_SYSTEM_SHM_STATUS,
                              "system_shm", NONE),
    ngx_http_inference_kserve("SystemSharedMemoryRegister", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_SYSTEM_SHM_REGISTER,
                              "system_shm", NONE),
    ngx_http_inference_kserve("SystemSharedMemoryUnregister", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_SYSTEM_SHM_UNREGISTER,
                              "system_shm", NONE),
    ngx_http_inference_kserve("CudaSharedMemoryStatus", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_CUDA_SHM_STATUS,
                              "cuda_shm", NONE),
    ngx_http_inference_kserve("CudaSharedMemoryRegister", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_CUDA_SHM_REGISTER,
                              "cuda_shm", NONE),
    ngx_http_inference_kserve("CudaSharedMemoryUnregister", SHARED_MEMORY,
                              CALL_BODY, INF_METHOD_CUDA_SHM_UNREGISTER,
                              "cuda_shm", NONE),
    ngx_http_inference_kserve("TraceSetting", TRACE, CALL_BODY,
                              INF_METHOD_TRACE_SETTING, "trace", SECOND),
    ngx_http_inference_kserve("LogSettings", LOGGING, CALL_BODY,
                              INF_METHOD_LOG_SETTINGS, "logging", NONE),

    { ngx_null_string, 0, 0, 0, 0, ngx_null_string, 0 }
};


/*
 * Over HTTP/1 there are no trailers, the names of a call over HTTP/3 would be
 * unknown to limits (preread.c), and a subrequest is another module's question,
 * which is answered by a status of HTTP: all are REST's.
 */

ngx_uint_t
ngx_http_inference_is_grpc(ngx_http_request_t *r)
{
    u_char           *p;
    size_t            len;
    ngx_table_elt_t  *type;

    static const ngx_str_t  grpc = ngx_string("application/grpc");

    type = r->headers_in.content_type;

    if (type == NULL || r != r->main
        || r->http_version != NGX_HTTP_VERSION_20)
    {
        return 0;
    }

    p = type->value.data;
    len = type->value.len;

    return len >= grpc.len
           && ngx_strncasecmp(p, grpc.data, grpc.len) == 0
           && (len == grpc.len || p[grpc.len] == '+' || p[grpc.len] == ';');
}


const ngx_http_inference_endpoint_t *
ngx_http_inference_grpc_infer_method(void)
{
    return &ngx_http_inference_methods[0];
}


ngx_int_t
ngx_http_inference_grpc_find_method(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_request_t             *r;
    ngx_http_inference_loc_conf_t  *ilcf;

    r = ctx->request;

    ctx->grpc = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_grpc_t));
    if (ctx->grpc == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (!(r->method & NGX_HTTP_POST)) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNKNOWN,
                                            "Bad method header");
    }

    if (ngx_http_inference_grpc_method(ctx) != NGX_OK
        || ngx_http_inference_grpc_metadata(ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (ilcf->model == NULL) {
        return NGX_OK;
    }

    return ngx_http_inference_model_of_location(ctx);
}


/* The client gets no text, as from Triton; the log has one. */

static ngx_int_t
ngx_http_inference_grpc_method(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t  text;

    ctx->endpoint = ngx_http_inference_grpc_match(ctx->request);

    if (ctx->endpoint) {
        return NGX_OK;
    }

    ngx_str_set(&text, "the location does not serve this method");
    ngx_http_inference_log_error(ctx, text);

    return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNIMPLEMENTED, "");
}


/* A location of one model has only its inferences.  As in REST, an escaped path
   is no method's. */

const ngx_http_inference_endpoint_t *
ngx_http_inference_grpc_match(ngx_http_request_t *r)
{
    ngx_str_t                             path;
    ngx_uint_t                            parts;
    ngx_http_inference_loc_conf_t        *ilcf;
    const ngx_http_inference_endpoint_t  *method;

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    if (ngx_http_inference_path(r, &path) != NGX_OK) {
        return NULL;
    }

    parts = ilcf->model ? NGX_HTTP_INFERENCE_INFER
                        : ngx_http_inference_parts_of(ilcf);

    for (method = ngx_http_inference_methods; method->pattern.len; method++) {

        if ((method->part & parts)
            && ngx_http_inference_grpc_names(&path, &method->pattern, ilcf))
        {
            return method;
        }
    }

    return NULL;
}


/* Whether the path is the method's, as it is or behind the prefix; where the
   location is one model's, behind anything: it is so at any path. */

static ngx_uint_t
ngx_http_inference_grpc_names(ngx_str_t *path, const ngx_str_t *method,
    ngx_http_inference_loc_conf_t *ilcf)
{
    size_t      skip;
    ngx_str_t  *prefix;

    prefix = &ilcf->prefix;

    if (path->len == method->len) {
        skip = 0;

    } else if (ilcf->model && path->len > method->len) {
        skip = path->len - method->len;

    } else if (path->len == prefix->len + method->len
               && ngx_strncmp(path->data, prefix->data, prefix->len) == 0)
    {
        skip = prefix->len;

    } else {
        return 0;
    }

    return ngx_strncmp(path->data + skip, method->data, method->len) == 0;
}


static ngx_int_t
ngx_http_inference_grpc_metadata(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t                      *value, accept, te;
    ngx_uint_t                      i;
    ngx_list_part_t                *part;
    ngx_table_elt_t                *h;
    ngx_http_inference_loc_conf_t  *ilcf;

    ngx_str_null(&accept);
    ngx_str_null(&te);

    part = &ctx->request->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        value = &h->value;

        if (ngx_http_inference_field_is(h, "te")) {
            te = *value;

        } else if (ngx_http_inference_field_is(h, "grpc-accept-encoding")) {
            accept = *value;

        } else if (ngx_http_inference_field_is(h, "grpc-encoding")) {

            if (ngx_http_inference_grpc_encoding(ctx, value) != NGX_OK) {
                return NGX_ERROR;
            }

        } else if (ngx_http_inference_field_is(h, "triton_grpc_error")) {
            ctx->grpc->stream_errors = (value->len == sizeof("true") - 1
                                        && ngx_strncmp(value->data, "true",
                                                       value->len) == 0);

        } else if (ngx_http_inference_field_is(h, "grpc-timeout")
                   && ngx_http_inference_grpc_timeout(ctx, value) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (te.len != sizeof("trailers") - 1
        || ngx_strncasecmp(te.data, (u_char *) "trailers", te.len) != 0)
    {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNKNOWN,
                                            "Missing :te header");
    }

    if (ctx->endpoint->part != NGX_HTTP_INFERENCE_INFER) {
        return NGX_OK;
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    ctx->grpc->out = inf_grpc_reply_encoding(
                         ngx_http_inference_slice(&accept),
                         (inf_grpc_level_t) ilcf->grpc_compression);

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_grpc_encoding(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value)
{
    if (inf_grpc_encoding(ngx_http_inference_slice(value), &ctx->grpc->in)) {
        return NGX_OK;
    }

    ctx->hint = NGX_HTTP_INFERENCE_GRPC_ENCODINGS;

    return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNIMPLEMENTED,
                                        "Compression algorithm '%V' is not "
                                        "supported", value);
}


static ngx_int_t
ngx_http_inference_grpc_timeout(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *value)
{
    uint64_t  ns;

    if (!inf_grpc_timeout(ngx_http_inference_slice(value), &ns)) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_INTERNAL,
                                            "invalid grpc-timeout '%V'",
                                            value);
    }

    ctx->client_deadline_ns = (ns > UINT64_MAX - ctx->received_ns)
                              ? UINT64_MAX : ctx->received_ns + ns;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_grpc_fail(ngx_http_inference_ctx_t *ctx,
    inf_grpc_status_t status, const char *fmt, ...)
{
    u_char          *last;
    va_list          args;
    inf_err_code_t   code;
    u_char           text[NGX_MAX_ERROR_STR];

    va_start(args, fmt);
    last = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    if (ctx->status == 0) {
        ctx->grpc->status = status;
    }

    code = (status == INF_GRPC_UNIMPLEMENTED) ? INF_ERR_UNSUPPORTED
                                              : INF_ERR_INTERNAL;

    return ngx_http_inference_fail_text(ctx, code, text, last - text);
}
