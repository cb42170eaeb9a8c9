/*
 * ngx_http_inference_endpoints.c - the table of endpoints, and the search for
 *                                  the row of a path.
 */

#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_match_pattern(ngx_str_t *pattern,
    ngx_str_t *path, ngx_str_t *model, ngx_str_t *version);
static u_char *ngx_http_inference_match_version(u_char *p, u_char *last,
    ngx_str_t *version);


/*
 * A pattern matches the whole path: '*' is one segment (the last one names the
 * model, or a region of shared memory), '~' an optional "/versions/NUMBER".  Of
 * the matching rows in a served part, the first with the request's method is
 * taken, or else the first.
 */

#define ngx_http_inference_row(pattern, methods, part, verb, name)            \
    { ngx_string(pattern), methods, NGX_HTTP_INFERENCE_##part,                \
      NGX_HTTP_INFERENCE_##verb, 0, ngx_string(name),                         \
      NGX_HTTP_INFERENCE_NAMES_NONE }

#define ngx_http_inference_call(pattern, methods, part, verb, call, name)     \
    { ngx_string(pattern), methods, NGX_HTTP_INFERENCE_##part,                \
      NGX_HTTP_INFERENCE_##verb, INF_METHOD_##call, ngx_string(name),         \
      NGX_HTTP_INFERENCE_NAMES_NONE }

/* number of rows at the top for "inference_model" */
#define NGX_HTTP_INFERENCE_MODEL_ENDPOINTS  3

static const ngx_http_inference_endpoint_t  ngx_http_inference_endpoints[] = {

    ngx_http_inference_row("/v2/models/*~/infer", NGX_HTTP_POST,
                           INFER, MODEL_INFER, "infer"),
    ngx_http_inference_row("/v2/models/*~/generate", NGX_HTTP_POST,
                           GENERATE, GENERATE_ONE, "generate"),
    ngx_http_inference_row("/v2/models/*~/generate_stream", NGX_HTTP_POST,
                           GENERATE, GENERATE_ALL, "generate_stream"),

    ngx_http_inference_row("/v2/health/live", NGX_HTTP_GET,
                           HEALTH, LIVE, "live"),
    ngx_http_inference_call("/v2/health/ready", NGX_HTTP_GET,
                            HEALTH, CALL, SERVER_READY, "ready"),
    ngx_http_inference_call("/v2/models/*~/ready", NGX_HTTP_GET,
                            HEALTH, CALL, MODEL_READY, "model_ready"),

    ngx_http_inference_call("/v2/models/stats", NGX_HTTP_GET,
                            STATISTICS, CALL, MODEL_STATISTICS, "statistics"),
    ngx_http_inference_call("/v2/models/*~/stats", NGX_HTTP_GET,
                            STATISTICS, CALL, MODEL_STATISTICS, "statistics"),
    ngx_http_inference_call("/v2/models/*~/config", NGX_HTTP_GET,
                            CONFIG, CALL, MODEL_CONFIG, "config"),

    ngx_http_inference_call("/v2", NGX_HTTP_GET,
                            METADATA, CALL, SERVER_METADATA, "metadata"),
    ngx_http_inference_call("/v2/models/*~", NGX_HTTP_GET,
                            METADATA, CALL, MODEL_METADATA, "model_metadata"),

    ngx_http_inference_call("/v2/logging", NGX_HTTP_GET,
                            LOGGING, CALL, LOG_SETTINGS, "logging"),
    ngx_http_inference_call("/v2/logging", NGX_HTTP_POST,
                            LOGGING, CALL_BODY, LOG_SETTINGS, "logging"),
    ngx_http_inference_call("/v2/trace/setting", NGX_HTTP_GET,
                            TRACE, CALL, TRACE_SETTING, "trace"),
    ngx_http_inference_call("/v2/trace/setting", NGX_HTTP_POST,
                            TRACE, CALL_BODY, TRACE_SETTING, "trace"),
    ngx_http_inference_call("/v2/models/*/trace/setting", NGX_HTTP_GET,
                            TRACE, CALL, TRACE_SETTING, "trace"),
    ngx_http_inference_call("/v2/models/*/trace/setting", NGX_HTTP_POST,
                            TRACE, CALL_BODY, TRACE_SETTING, "trace"),

    ngx_http_inference_call("/v2/repository/index", NGX_HTTP_POST,
                            REPOSITORY, CALL_BODY, REPOSITORY_INDEX, "index"),
    ngx_http_inference_call("/v2/repository/*/index", NGX_HTTP_POST,
                            REPOSITORY, CALL_BODY, REPOSITORY_INDEX, "index"),
    ngx_http_inference_call("/v2/repository/models/*/load", NGX_HTTP_POST,
                            REPOSITORY, CALL_BODY, REPOSITORY_MODEL_LOAD,
                            "load"),
    ngx_http_inference_call("/v2/repository/models/*/unload", NGX_HTTP_POST,
                            REPOSITORY, CALL_BODY, REPOSITORY_MODEL_UNLOAD,
                            "unload"),
    ngx_http_inference_row("/v2/repository/*/models/*/load", NGX_HTTP_POST,
                           REPOSITORY, NAMED, "load"),
    ngx_http_inference_row("/v2/repository/*/models/*/unload", NGX_HTTP_POST,
                           REPOSITORY, NAMED, "unload"),

    ngx_http_inference_call("/v2/archives", NGX_HTTP_GET,
                            ARCHIVES, CALL, ARCHIVE_LIST, "archives"),
    ngx_http_inference_call("/v2/archives", NGX_HTTP_POST,
                            ARCHIVES, CALL_BODY, ARCHIVE_LOAD, "load"),
    ngx_http_inference_call("/v2/archives/*", NGX_HTTP_GET,
                            ARCHIVES, CALL, ARCHIVE_LIST, "archives"),
    ngx_http_inference_call("/v2/archives/*", NGX_HTTP_DELETE,
                            ARCHIVES, CALL_BODY, ARCHIVE_UNLOAD, "unload"),

    ngx_http_inference_call("/v2/systemsharedmemory/status",
                            NGX_HTTP_GET, SHARED_MEMORY, CALL,
                            SYSTEM_SHM_STATUS, "system_shm"),
    ngx_http_inference_call("/v2/systemsharedmemory/region/*/status",
                            NGX_HTTP_GET, SHARED_MEMORY, CALL,
                            SYSTEM_SHM_STATUS, "system_shm"),
    ngx_http_inference_call("/v2/systemsharedmemory/register",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            SYSTEM_SHM_REGISTER, "system_shm"),
    ngx_http_inference_call("/v2/systemsharedmemory/region/*/register",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            SYSTEM_SHM_REGISTER, "system_shm"),
    ngx_http_inference_call("/v2/systemsharedmemory/unregister",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            SYSTEM_SHM_UNREGISTER, "system_shm"),
    ngx_http_inference_call("/v2/systemsharedmemory/region/*/unregister",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            SYSTEM_SHM_UNREGISTER, "system_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/status",
                            NGX_HTTP_GET, SHARED_MEMORY, CALL,
                            CUDA_SHM_STATUS, "cuda_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/region/*/status",
                            NGX_HTTP_GET, SHARED_MEMORY, CALL,
                            CUDA_SHM_STATUS, "cuda_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/register",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            CUDA_SHM_REGISTER, "cuda_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/region/*/register",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            CUDA_SHM_REGISTER, "cuda_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/unregister",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            CUDA_SHM_UNREGISTER, "cuda_shm"),
    ngx_http_inference_call("/v2/cudasharedmemory/region/*/unregister",
                            NGX_HTTP_POST, SHARED_MEMORY, CALL_BODY,
                            CUDA_SHM_UNREGISTER, "cuda_shm"),

    ngx_http_inference_call("/metrics", NGX_HTTP_GET,
                            METRICS, CALL, METRICS, "metrics"),
    ngx_http_inference_call("/metrics/", NGX_HTTP_GET,
                            METRICS, CALL, METRICS, "metrics"),

    ngx_http_inference_call("/status", NGX_HTTP_GET,
                            STATUS, CALL, STATUS, "status"),

    { ngx_null_string, 0, 0, 0, 0, ngx_null_string, 0 }
};


const ngx_http_inference_endpoint_t *
ngx_http_inference_match_endpoint(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *path, ngx_uint_t parts)
{
    ngx_str_t                             model, version, pattern;
    const ngx_http_inference_endpoint_t  *ep, *first;

    first = NULL;

    for (ep = ngx_http_inference_endpoints; ep->pattern.len; ep++) {

        if (!(ep->part & parts)
            || (first && !(ctx->request->method & ep->methods)))
        {
            continue;
        }

        ngx_str_null(&model);
        ngx_str_null(&version);

        pattern = ep->pattern;

        if (ngx_http_inference_match_pattern(&pattern, path, &model, &version)
            == NGX_OK)
        {
            ctx->names.model = model;
            ctx->names.version = version;

            if (ctx->request->method & ep->methods) {
                return ep;
            }

            if (first == NULL) {
                first = ep;
            }
        }
    }

    return first;
}


static ngx_int_t
ngx_http_inference_match_pattern(ngx_str_t *pattern, ngx_str_t *path,
    ngx_str_t *model, ngx_str_t *version)
{
    u_char  *p, *last, *t, *end, *start;

    p = path->data;
    last = p + path->len;

    end = pattern->data + pattern->len;

    for (t = pattern->data; t < end; t++) {

        if (*t == '*') {
            start = p;

            while (p < last && *p != '/') {
                p++;
            }

            if (p == start) {
                return NGX_DECLINED;
            }

            model->data = start;
            model->len = p - start;

            continue;
        }

        if (*t == '~') {
            p = ngx_http_inference_match_version(p, last, version);
            continue;
        }

        if (p == last || *p != *t) {
            return NGX_DECLINED;
        }

        p++;
    }

    return (p == last) ? NGX_OK : NGX_DECLINED;
}


static u_char *
ngx_http_inference_match_version(u_char *p, u_char *last, ngx_str_t *version)
{
    u_char  *start, *end;

    static const ngx_str_t  word = ngx_string("/versions/");

    if ((size_t) (last - p) <= word.len
        || ngx_memcmp(p, word.data, word.len) != 0)
    {
        return p;
    }

    start = p + word.len;

    for (end = start; end < last && *end >= '0' && *end <= '9'; end++) {
        /* void */
    }

    if (end == start || (end < last && *end != '/')) {
        return p;
    }

    version->data = start;
    version->len = end - start;

    return end;
}


const ngx_http_inference_endpoint_t *
ngx_http_inference_model_endpoint(ngx_str_t *name)
{
    ngx_uint_t                            i;
    const ngx_http_inference_endpoint_t  *ep;

    for (i = 0; i < NGX_HTTP_INFERENCE_MODEL_ENDPOINTS; i++) {

        ep = &ngx_http_inference_endpoints[i];

        if (ep->name.len == name->len
            && ngx_strncmp(ep->name.data, name->data, name->len) == 0)
        {
            return ep;
        }
    }

    return NULL;
}
