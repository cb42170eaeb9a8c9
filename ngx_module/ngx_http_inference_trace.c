/*
 * ngx_http_inference_trace.c - the directive "inference_trace".
 */

#include "ngx_module/ngx_http_inference_directives.h"


static ngx_int_t ngx_http_inference_trace_parameter(ngx_conf_t *cf,
    ngx_command_t *cmd, ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg);
static ngx_int_t ngx_http_inference_trace_level(
    NginxInference__TraceSettings *trace, ngx_str_t *value);
static ngx_int_t ngx_http_inference_trace_resource(ngx_conf_t *cf,
    NginxInference__TraceSettings *trace, ngx_str_t *value);
static ngx_int_t ngx_http_inference_trace_check(ngx_conf_t *cf,
    ngx_command_t *cmd, NginxInference__TraceSettings *trace);
static char *ngx_http_inference_trace_url(ngx_conf_t *cf, ngx_str_t *url);


/* off | file=PATH | otlp=URL [parameters] */

char *
ngx_http_inference_trace(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t                      *value;
    ngx_uint_t                      i;
    NginxInference__TraceSettings  *trace;

    if (ngx_http_inference_is_given(imcf, &cmd->name)) {
        return "is duplicate";
    }

    value = cf->args->elts;
    trace = imcf->config.trace;

    if (ngx_http_inference_is(&value[1], "off")) {

        if (cf->args->nelts > 2) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V off\" takes no parameter, not \"%V\"",
                               &cmd->name, &value[2]);
            return NGX_CONF_ERROR;
        }

        trace->has_timestamps = 1;
        return NGX_CONF_OK;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_inference_trace_parameter(cf, cmd, imcf, &value[i])
            != NGX_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid or duplicate parameter \"%V\" of "
                               "\"%V\": it takes off, or file=PATH or "
                               "otlp=URL with rate=, count=, "
                               "log_frequency=NUMBER, "
                               "level=off|timestamps|tensors|timestamps,"
                               "tensors, resource=KEY=VALUE, "
                               "bsp_max_queue_size=, "
                               "bsp_max_export_batch_size=NUMBER and "
                               "bsp_schedule_delay=TIME", &value[i],
                               &cmd->name);
            return NGX_CONF_ERROR;
        }
    }

    if (!trace->has_timestamps) {
        trace->has_timestamps = 1;
        trace->timestamps = 1;
    }

    return ngx_http_inference_trace_check(cf, cmd, trace) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_inference_trace_parameter(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg)
{
    ngx_str_t  value;

    if (ngx_http_inference_option(arg, "level=", &value) == NGX_OK) {
        return ngx_http_inference_trace_level(imcf->config.trace, &value);
    }

    if (ngx_http_inference_option(arg, "resource=", &value) == NGX_OK) {
        return ngx_http_inference_trace_resource(cf, imcf->config.trace,
                                                 &value);
    }

    return ngx_http_inference_parameter(imcf, &cmd->name, arg);
}


static ngx_int_t
ngx_http_inference_trace_level(NginxInference__TraceSettings *trace,
    ngx_str_t *value)
{
    ngx_uint_t  timestamps, tensors;

    if (trace->has_timestamps) {
        return NGX_DECLINED;
    }

    timestamps = ngx_http_inference_is(value, "timestamps")
                 || ngx_http_inference_is(value, "timestamps,tensors");
    tensors = ngx_http_inference_is(value, "tensors")
              || ngx_http_inference_is(value, "timestamps,tensors");

    if (!timestamps && !tensors && !ngx_http_inference_is(value, "off")) {
        return NGX_ERROR;
    }

    trace->has_timestamps = 1;
    trace->timestamps = timestamps;
    trace->has_tensors = 1;
    trace->tensors = tensors;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_trace_resource(ngx_conf_t *cf,
    NginxInference__TraceSettings *trace, ngx_str_t *value)
{
    u_char  *equals;

    equals = ngx_strlchr(value->data, value->data + value->len, '=');

    if (equals == NULL || equals == value->data) {
        return NGX_ERROR;
    }

    return ngx_http_inference_append(cf->pool, &trace->resources,
                                     &trace->n_resources, value->data);
}


static ngx_int_t
ngx_http_inference_trace_check(ngx_conf_t *cf, ngx_command_t *cmd,
    NginxInference__TraceSettings *trace)
{
    char       *problem;
    ngx_str_t   file, url;

    file.data = (u_char *) trace->file;
    file.len = ngx_strlen(file.data);
    url.data = (u_char *) trace->url;
    url.len = ngx_strlen(url.data);

    if ((file.len != 0) == (url.len != 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" takes either file=PATH or otlp=URL, "
                           "not %s", &cmd->name, file.len ? "both" : "none");
        return NGX_ERROR;
    }

    if (file.len) {

        if (trace->has_rate && trace->rate == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\": \"rate=0\" needs otlp=URL",
                               &cmd->name);
            return NGX_ERROR;
        }

        return ngx_http_inference_absolute(cf, &cmd->name, &file);
    }

    problem = ngx_http_inference_trace_url(cf, &url);

    if (problem) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\": \"otlp=%V\" is no http:// or https:// "
                           "URL: %s", &cmd->name, &url, problem);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* The reason why the URL is invalid; NULL: it is valid. */

static char *
ngx_http_inference_trace_url(ngx_conf_t *cf, ngx_str_t *url)
{
    u_char     *p, *last, *end, *at, *zone;
    ngx_url_t   u;

    p = url->data;
    last = p + url->len;

    if (ngx_strncmp(p, "http://", 7) == 0) {
        p += 7;

    } else if (ngx_strncmp(p, "https://", 8) == 0) {
        p += 8;

    } else {
        return "it begins with neither";
    }

    for (end = p; end < last && !ngx_strchr("/?#", *end); end++) {
        /* void */
    }

    /* user and password */

    at = ngx_strlchr(p, end, '@');

    if (at) {
        p = at + 1;
    }

    if (end - p >= 5 && ngx_strncasecmp(p, (u_char *) "unix:", 5) == 0) {
        return "a socket has no URL";
    }

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.default_port = 80;
    u.no_resolve = 1;
    u.url.data = ngx_pnalloc(cf->pool, url->len);

    if (u.url.data == NULL) {
        return "out of memory";
    }

    /* the zone of an IPv6 address and an empty port are left out: libcurl takes
       them, and nginx's parser does not */

    zone = (*p == '[') ? ngx_strlchr(p, end, '%') : NULL;

    for ( /* void */ ; p < end; p++) {

        if (p == zone) {
            while (p + 1 < end && p[1] != ']') {
                p++;
            }

        } else {
            u.url.data[u.url.len++] = *p;
        }
    }

    if (u.url.len && u.url.data[u.url.len - 1] == ':') {
        u.url.len--;
    }

    if (ngx_parse_url(cf->pool, &u) == NGX_OK) {
        return NULL;
    }

    return u.err ? u.err : "it cannot be parsed";
}
