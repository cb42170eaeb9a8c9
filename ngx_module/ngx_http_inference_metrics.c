/*
 * ngx_http_inference_metrics.c - the directive "inference_metrics": what the
 *                                core's metrics text holds.
 */

#include "ngx_module/ngx_http_inference_directives.h"


static ngx_int_t ngx_http_inference_metrics_option(
    ngx_http_inference_metrics_t *metrics, ngx_str_t *arg);


char *
ngx_http_inference_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t                     *value;
    ngx_uint_t                     i;
    ngx_http_inference_metrics_t  *metrics;

    metrics = &imcf->metrics;

    if (metrics->set) {
        return "is duplicate";
    }

    metrics->set = 1;
    metrics->cpu = NGX_CONF_UNSET;
    metrics->gpu = NGX_CONF_UNSET;
    metrics->counters = NGX_CONF_UNSET;
    metrics->histograms = NGX_CONF_UNSET;
    metrics->summaries = NGX_CONF_UNSET;
    metrics->interval = NGX_CONF_UNSET_MSEC;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_inference_metrics_option(metrics, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid or duplicate parameter \"%V\" of "
                               "\"inference_metrics\": it takes cpu=, gpu=, "
                               "counters=, histograms= and summaries=on|off, "
                               "quantiles=Q:ERROR,... and interval=TIME",
                               &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    ngx_conf_init_value(metrics->cpu, 1);
    ngx_conf_init_value(metrics->gpu, 1);
    ngx_conf_init_value(metrics->counters, 1);
    ngx_conf_init_value(metrics->histograms, 0);
    ngx_conf_init_value(metrics->summaries, 0);
    ngx_conf_init_msec_value(metrics->interval, 2000);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_metrics_option(ngx_http_inference_metrics_t *metrics,
    ngx_str_t *arg)
{
    u_char     *p;
    ngx_int_t   n;
    ngx_str_t   value;

    if (ngx_http_inference_option(arg, "cpu=", &value) == NGX_OK) {
        return ngx_http_inference_on_off(&value, &metrics->cpu);
    }

    if (ngx_http_inference_option(arg, "gpu=", &value) == NGX_OK) {
        return ngx_http_inference_on_off(&value, &metrics->gpu);
    }

    if (ngx_http_inference_option(arg, "counters=", &value) == NGX_OK) {
        return ngx_http_inference_on_off(&value, &metrics->counters);
    }

    if (ngx_http_inference_option(arg, "histograms=", &value) == NGX_OK) {
        return ngx_http_inference_on_off(&value, &metrics->histograms);
    }

    if (ngx_http_inference_option(arg, "summaries=", &value) == NGX_OK) {
        return ngx_http_inference_on_off(&value, &metrics->summaries);
    }

    if (ngx_http_inference_option(arg, "interval=", &value) == NGX_OK
        && metrics->interval == NGX_CONF_UNSET_MSEC)
    {
        n = ngx_parse_time(&value, 0);
        metrics->interval = (ngx_msec_t) n;

        return (n != NGX_ERROR && n > 0) ? NGX_OK : NGX_ERROR;
    }

    if (ngx_http_inference_option(arg, "quantiles=", &value) != NGX_OK
        || metrics->quantiles.len > 0 || value.len == 0)
    {
        return NGX_ERROR;
    }

    for (p = value.data; p < value.data + value.len; p++) {
        if (ngx_strlchr((u_char *) "0123456789.:,",
                        (u_char *) "0123456789.:," + 13, *p)
            == NULL)
        {
            return NGX_ERROR;
        }
    }

    metrics->quantiles = value;

    return NGX_OK;
}
