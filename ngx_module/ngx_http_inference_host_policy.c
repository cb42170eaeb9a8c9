/*
 * ngx_http_inference_host_policy.c - the directive "inference_host_policy".
 */

#include "ngx_module/ngx_http_inference_directives.h"

#include "core/base/host_setting.h"


static ngx_int_t ngx_http_inference_host_setting(ngx_conf_t *cf,
    NginxInference__CoreConfig *config, ngx_str_t *policy, ngx_str_t *arg);


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

    if (cf->args->nelts == 2) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_host_policy %V\" has no setting: it "
                           "takes numa-node=N and cpu-cores=LIST", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_inference_host_setting(cf, &imcf->config, &value[1],
                                            &value[i])
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_host_setting(ngx_conf_t *cf,
    NginxInference__CoreConfig *config, ngx_str_t *policy, ngx_str_t *arg)
{
    u_char                             *equals;
    size_t                              i;
    inf_err_t                          *err;
    ngx_str_t                           key, value;
    NginxInference__HostPolicySetting  *setting;

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

    for (i = 0; i < config->n_host_policies; i++) {
        setting = config->host_policies[i];

        if (ngx_http_inference_is(policy, setting->policy)
            && ngx_http_inference_is(&key, setting->key))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate setting \"%V\" of host policy "
                               "\"%V\"", &key, policy);
            return NGX_ERROR;
        }
    }

    setting = ngx_palloc(cf->pool, sizeof(NginxInference__HostPolicySetting));
    if (setting == NULL) {
        return NGX_ERROR;
    }

    nginx_inference__host_policy_setting__init(setting);

    setting->policy = (char *) policy->data;
    setting->key = (char *) key.data;
    setting->value = (char *) value.data;

    return ngx_http_inference_append(cf->pool, &config->host_policies,
                                     &config->n_host_policies, setting);
}
