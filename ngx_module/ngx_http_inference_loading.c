/*
 * The directives of http{} that say how models are loaded.
 */

#include "ngx_module/ngx_http_inference_directives.h"
#include "core/base/config_name.h"


#define NGX_HTTP_INFERENCE_MAX_LOADERS  128
#define NGX_HTTP_INFERENCE_MAX_RETRIES  1000


static ngx_int_t ngx_http_inference_loading_number(ngx_str_t *arg,
    const char *name, ngx_int_t min, ngx_int_t max, ngx_uint_t *number);


/* [threads=N] [retries=N] */

char *
ngx_http_inference_model_load(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (imcf->load_threads != NGX_CONF_UNSET_UINT
        || imcf->load_retries != NGX_CONF_UNSET_UINT)
    {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_inference_loading_number(&value[i], "threads=", 1,
                                              NGX_HTTP_INFERENCE_MAX_LOADERS,
                                              &imcf->load_threads)
            == NGX_OK
            || ngx_http_inference_loading_number(&value[i], "retries=", 0,
                                               NGX_HTTP_INFERENCE_MAX_RETRIES,
                                               &imcf->load_retries)
               == NGX_OK)
        {
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of "
                           "\"inference_model_load\": it takes threads=, 1 to "
                           "%d, and retries=, 0 to %d, once each", &value[i],
                           NGX_HTTP_INFERENCE_MAX_LOADERS,
                           NGX_HTTP_INFERENCE_MAX_RETRIES);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_loading_number(ngx_str_t *arg, const char *name,
    ngx_int_t min, ngx_int_t max, ngx_uint_t *number)
{
    ngx_int_t  n;
    ngx_str_t  value;

    if (*number != NGX_CONF_UNSET_UINT
        || ngx_http_inference_option(arg, name, &value) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    n = ngx_atoi(value.data, value.len);
    if (n == NGX_ERROR || n < min || n > max) {
        return NGX_DECLINED;
    }

    *number = (ngx_uint_t) n;

    return NGX_OK;
}


char *
ngx_http_inference_model_config_name(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    const char  *problem;

    if (imcf->config_name.len > 0) {
        return "is duplicate";
    }

    value = cf->args->elts;
    problem = inf_config_name_problem((char *) value[1].data, value[1].len);

    if (problem != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" in \"inference_model_config_name\" can't "
                           "be the name of a model configuration: %s",
                           &value[1], problem);
        return NGX_CONF_ERROR;
    }

    imcf->config_name = value[1];

    return NGX_CONF_OK;
}
