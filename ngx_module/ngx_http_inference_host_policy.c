/*
 * ngx_http_inference_host_policy.c - the directive "inference_host_policy".
 */

#include "ngx_module/ngx_http_inference_directives.h"

#include "core/base/host_setting.h"


static ngx_int_t ngx_http_inference_host_setting(ngx_conf_t *cf,
    ngx_array_t *settings, ngx_str_t *policy, ngx_str_t *arg);


char *
ngx_http_inference_host_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    if (value[1].len == 0
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, '=')
           != NULL)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_host_policy\" takes a policy's name "
                           "first, not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_inference_host_setting(cf, &imcf->host_policies,
                                            &value[1], &value[i])
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_host_setting(ngx_conf_t *cf, ngx_array_t *settings,
    ngx_str_t *policy, ngx_str_t *arg)
{
    u_char                        *equals;
    inf_err_t                     *err;
    ngx_str_t                      key, value;
    ngx_uint_t                     i;
    ngx_http_inference_setting_t  *setting;

    equals = ngx_strlchr(arg->data, arg->data + arg->len, '=');

    if (equals == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_host_policy %V\" takes "
                           "setting=value, not \"%V\"", policy, arg);
        return NGX_ERROR;
    }

    key.data = arg->data;
    key.len = equals - arg->data;
    value.data = equals + 1;
    value.len = arg->data + arg->len - value.data;

    *equals = '\0';
    err = inf_host_setting_check((char *) key.data, (char *) value.data);

    if (err) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_host_policy %V\": %s", policy,
                           inf_err_msg(err));
        inf_err_free(err);
        return NGX_ERROR;
    }

    setting = settings->elts;

    for (i = 0; i < settings->nelts; i++) {
        if (setting[i].backend.len == policy->len
            && setting[i].key.len == key.len
            && ngx_strncmp(setting[i].backend.data, policy->data, policy->len)
               == 0
            && ngx_strncmp(setting[i].key.data, key.data, key.len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate setting \"%V\" of host policy "
                               "\"%V\"", &key, policy);
            return NGX_ERROR;
        }
    }

    setting = ngx_array_push(settings);
    if (setting == NULL) {
        return NGX_ERROR;
    }

    setting->backend = *policy;
    setting->key = key;
    setting->value = value;

    return NGX_OK;
}
