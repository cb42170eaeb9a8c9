/*
 * The directive of the response cache: one cache, and its settings.
 */

#include "ngx_module/ngx_http_inference_directives.h"


static ngx_int_t ngx_http_inference_cache_setting(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg);
static ngx_int_t ngx_http_inference_cache_size(ngx_conf_t *cf,
    const char *cache, ngx_str_t *arg, ngx_str_t *value);


/* inference_response_cache NAME setting=value ... */

char *
ngx_http_inference_response_cache(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (imcf->config.cache_name[0] != '\0') {
        return "is duplicate: a core has one cache";
    }

    value = cf->args->elts;

    if (value[1].len == 0 || value[1].data[0] == '.'
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, '/')
           != NULL
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, '=')
           != NULL)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is no name for a cache", &value[1]);
        return NGX_CONF_ERROR;
    }

    imcf->config.cache_name = (char *) value[1].data;

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_inference_cache_setting(cf, imcf, &value[i]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_cache_setting(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg)
{
    u_char                      *last, *equals;
    size_t                       i;
    ngx_str_t                    key, value;
    NginxInference__CoreConfig  *config;

    static ngx_str_t  directive = ngx_string("inference_response_cache");

    config = &imcf->config;
    last = arg->data + arg->len;
    equals = ngx_strlchr(arg->data, last, '=');

    if (equals == NULL || equals == arg->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_response_cache %s\" takes "
                           "setting=value, not \"%V\"", config->cache_name,
                           arg);
        return NGX_ERROR;
    }

    key.data = arg->data;
    key.len = equals - arg->data;
    value.data = equals + 1;
    value.len = last - value.data;

    for (i = 0; i < config->n_cache_settings; i++) {
        if (ngx_http_inference_is(&key, config->cache_settings[i]->key)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate setting \"%V\" of cache \"%s\"",
                               &key, config->cache_name);
            return NGX_ERROR;
        }
    }

    if (ngx_http_inference_is(&key, "size")
        && ngx_http_inference_cache_size(cf, config->cache_name, arg, &value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_inference_is(&key, "key-secret")
        && value.len
        && ngx_http_inference_absolute(cf, &directive, &value) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_add_setting(cf->pool, &config->cache_settings,
                                          &config->n_cache_settings,
                                          (char *) "", &key, &value);
}


/* Converts a size to bytes, the only unit that caches read.  A plug-in may have
   other sizes, such as a number of entries. */

static ngx_int_t
ngx_http_inference_cache_size(ngx_conf_t *cf, const char *cache,
    ngx_str_t *arg, ngx_str_t *value)
{
    off_t    size;
    u_char  *p;

    size = ngx_parse_offset(value);

    if ((size == (off_t) NGX_ERROR || size < INF_LOCAL_CACHE_MIN)
        && ngx_strcmp(cache, "local") != 0)
    {
        return NGX_OK;
    }

    if (size == (off_t) NGX_ERROR || size < INF_LOCAL_CACHE_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\" of \"inference_response_cache\": "
                           "a size of at least %d", arg,
                           INF_LOCAL_CACHE_MIN);
        return NGX_ERROR;
    }

    p = ngx_pnalloc(cf->pool, NGX_OFF_T_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->data = p;
    value->len = ngx_sprintf(p, "%O%Z", size) - p - 1;

    return NGX_OK;
}
