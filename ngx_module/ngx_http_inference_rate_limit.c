/*
 * ngx_http_inference_rate_limit.c - the directive
 * "inference_rate_limit_resource".
 */

#include "ngx_module/ngx_http_inference_directives.h"


char *
ngx_http_inference_rate_limit_resource(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_int_t                           count, device;
    ngx_str_t                          *value;
    NginxInference__RateLimitResource  *resource;

    value = cf->args->elts;

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" takes a resource's name first, not \"\"",
                           &cmd->name);
        return NGX_CONF_ERROR;
    }

    count = ngx_atoi(value[2].data, value[2].len);

    if (count == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V %V\" takes a count, not \"%V\"",
                           &cmd->name, &value[1], &value[2]);
        return NGX_CONF_ERROR;
    }

    device = -1;

    if (cf->args->nelts == 4) {
        device = ngx_atoi(value[3].data, value[3].len);

        if (device == NGX_ERROR || device > NGX_MAX_INT32_VALUE) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V %V\" takes a device's number, "
                               "not \"%V\"", &cmd->name, &value[1], &value[3]);
            return NGX_CONF_ERROR;
        }
    }

    resource = ngx_palloc(cf->pool,
                          sizeof(NginxInference__RateLimitResource));
    if (resource == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_http_inference_note_line(cf, &imcf->resource);

    nginx_inference__rate_limit_resource__init(resource);

    resource->name = (char *) value[1].data;
    resource->count = (uint64_t) count;
    resource->device = (int32_t) device;

    return ngx_http_inference_append(cf->pool,
                                     &imcf->config.rate_limit_resources,
                                     &imcf->config.n_rate_limit_resources,
                                     resource)
           == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}
