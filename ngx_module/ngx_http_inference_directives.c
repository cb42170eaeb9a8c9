/*
 * Handlers of the core's directives in http{}.
 */

#include "ngx_module/ngx_http_inference_directives.h"


static ngx_int_t ngx_http_inference_core_option(ngx_conf_t *cf,
    ngx_command_t *cmd, ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *arg);
static ngx_uint_t ngx_http_inference_is_env_name(u_char *name, u_char *end);
static void ngx_http_inference_env_forget(ngx_conf_t *cf, ngx_str_t *var);
static ngx_int_t ngx_http_inference_device_option(ngx_conf_t *cf,
    NginxInference__CoreConfig *config, ngx_str_t *arg);
static ngx_int_t ngx_http_inference_device_size(ngx_conf_t *cf,
    NginxInference__CudaPool ***list, size_t *n, ngx_str_t *value);


char *
ngx_http_inference_core(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (imcf->configured) {
        return "is duplicate";
    }

    imcf->configured = 1;
    imcf->used = 1;

    value = cf->args->elts;
    i = 1;

    if (ngx_strlchr(value[1].data, value[1].data + value[1].len, '=') == NULL
        || value[1].data[0] == '/')
    {
        if (ngx_http_inference_absolute(cf, &cmd->name, &value[1]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        imcf->core = value[1];
        i = 2;
    }

    for ( /* void */ ; i < cf->args->nelts; i++) {
        if (ngx_http_inference_core_option(cf, cmd, imcf, &value[i])
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (imcf->core.len > 0
        && ngx_http_inference_check_core(cf, imcf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_inference_check_core(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_file_info_t  fi;

    if (imcf->external.len > 0) {
        return NGX_OK;
    }

    if (ngx_file_info(imcf->core.data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "there is no core program \"%V\"; "
                           "\"inference_core\" names another", &imcf->core);
        return NGX_ERROR;
    }

    if (!ngx_is_file(&fi) || (fi.st_mode & 0111) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not a program; \"inference_core\" names "
                           "another", &imcf->core);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_option(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg)
{
    ngx_int_t  rc;
    ngx_str_t  value, name;

    rc = ngx_http_inference_parameter(imcf, &cmd->name, arg);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    if (rc == NGX_ERROR
        && ngx_http_inference_option(arg, "spin=", &value) == NGX_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\" of \"inference_core\": spin is "
                           "0us to %dus", arg, INF_SPIN_US_MAX);
        return NGX_ERROR;
    }

    if (ngx_http_inference_option(arg, "external=", &value) == NGX_OK
        && imcf->external.len == 0)
    {
        ngx_str_set(&name, "inference_core external");

        if (ngx_http_inference_absolute(cf, &name, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if (value.len >= sizeof(((struct sockaddr_un *) 0)->sun_path)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the path in \"%V\" is too long for a socket",
                               arg);
            return NGX_ERROR;
        }

        imcf->external = value;
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid or duplicate parameter \"%V\" of "
                       "\"inference_core\": it takes a program, drain=TIME, "
                       "hang=TIME, spin=Nus, dump=on|off and external=PATH",
                       arg);
    return NGX_ERROR;
}


char *
ngx_http_inference_env(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    u_char      *last, *equals;
    ngx_str_t   *value, *env, *other;
    ngx_uint_t   i;

    value = cf->args->elts;
    last = value[1].data + value[1].len;
    equals = ngx_strlchr(value[1].data, last, '=');

    if (equals == NULL || equals == value[1].data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_env\" takes NAME=value, not \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (!ngx_http_inference_is_env_name(value[1].data, equals)) {
        value[1].len = equals - value[1].data;

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is no name for an environment variable",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    other = imcf->env.elts;

    for (i = 0; i < imcf->env.nelts; i++) {
        if (ngx_strncmp(other[i].data, value[1].data,
                        equals + 1 - value[1].data) == 0)
        {
            value[1].len = equals - value[1].data;

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate \"inference_env\" of \"%V\"",
                               &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    env = ngx_array_push(&imcf->env);
    if (env == NULL) {
        return NGX_CONF_ERROR;
    }

    *env = value[1];

    ngx_http_inference_env_forget(cf, env);

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_inference_is_env_name(u_char *name, u_char *end)
{
    u_char  *p;

    for (p = name; p < end; p++) {
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')
              || *p == '_' || (*p >= '0' && *p <= '9' && p > name)))
        {
            return 0;
        }
    }

    return 1;
}


/* Clears the value in the buffer that the file was read through: nginx frees
   that buffer without clearing it, and workers inherit the memory. */

static void
ngx_http_inference_env_forget(ngx_conf_t *cf, ngx_str_t *var)
{
    u_char     *p;
    ngx_buf_t  *b;

    if (cf->conf_file == NULL || cf->conf_file->buffer == NULL) {
        return;
    }

    b = cf->conf_file->buffer;

    for (p = b->start; p < b->pos; p += var->len) {
        p = memmem(p, (size_t) (b->pos - p), var->data, var->len);
        if (p == NULL) {
            return;
        }

        ngx_memset(p, 'x', var->len);
    }
}


char *
ngx_http_inference_backend_config(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    char                        *backend;
    u_char                      *last, *equals;
    size_t                       j;
    ngx_str_t                   *value, key, text;
    ngx_uint_t                   i;
    NginxInference__CoreConfig  *config;

    config = &imcf->config;
    value = cf->args->elts;

    backend = (char *) value[1].data;
    if (ngx_strcmp(backend, "*") == 0) {
        backend++;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        last = value[i].data + value[i].len;
        equals = ngx_strlchr(value[i].data, last, '=');

        if (equals == NULL || equals == value[i].data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"inference_backend_config %V\" takes "
                               "setting=value, not \"%V\"",
                               &value[1], &value[i]);
            return NGX_CONF_ERROR;
        }

        key.data = value[i].data;
        key.len = equals - value[i].data;
        text.data = equals + 1;
        text.len = last - equals - 1;

        for (j = 0; j < config->n_backend_settings; j++) {
            if (ngx_strcmp(config->backend_settings[j]->backend, backend) == 0
                && ngx_http_inference_is(&key,
                                         config->backend_settings[j]->key))
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "duplicate setting \"%V\" of backend "
                                   "\"%V\"", &key, &value[1]);
                return NGX_CONF_ERROR;
            }
        }

        if (ngx_http_inference_add_setting(cf->pool,
                                           &config->backend_settings,
                                           &config->n_backend_settings,
                                           backend, &key, &text)
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


char *
ngx_http_inference_memory(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (imcf->arena != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    imcf->arena = ngx_parse_offset(&value[1]);

    if (imcf->arena == NGX_ERROR || imcf->arena < INF_MEMORY_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_memory\" takes a size of at least 1m, "
                           "not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_inference_parameter(imcf, &cmd->name, &value[i])
            == NGX_OK
            || ngx_http_inference_device_option(cf, &imcf->config, &value[i])
               == NGX_OK)
        {
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid or duplicate parameter \"%V\" of "
                           "\"inference_memory\": it takes responses=SIZE, "
                           "pinned=SIZE, pinned_arenas=SIZE, "
                           "cuda=DEVICE:SIZE and cuda_virtual=DEVICE:SIZE",
                           &value[i]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_device_option(ngx_conf_t *cf,
    NginxInference__CoreConfig *config, ngx_str_t *arg)
{
    ngx_str_t  size;

    if (ngx_http_inference_option(arg, "cuda=", &size) == NGX_OK) {
        return ngx_http_inference_device_size(cf, &config->cuda_pools,
                                              &config->n_cuda_pools, &size);
    }

    if (ngx_http_inference_option(arg, "cuda_virtual=", &size) == NGX_OK) {
        return ngx_http_inference_device_size(cf, &config->cuda_virtual_sizes,
                                              &config->n_cuda_virtual_sizes,
                                              &size);
    }

    return NGX_ERROR;
}


/* Parses "device:size"; a device may be given once. */

static ngx_int_t
ngx_http_inference_device_size(ngx_conf_t *cf,
    NginxInference__CudaPool ***list, size_t *n, ngx_str_t *value)
{
    off_t                      bytes;
    u_char                    *colon, *last;
    size_t                     i;
    ngx_int_t                  device;
    ngx_str_t                  size;
    NginxInference__CudaPool  *pool;

    last = value->data + value->len;
    colon = ngx_strlchr(value->data, last, ':');

    if (colon == NULL) {
        return NGX_ERROR;
    }

    size.data = colon + 1;
    size.len = last - colon - 1;

    device = ngx_atoi(value->data, colon - value->data);
    bytes = ngx_parse_offset(&size);

    if (device == NGX_ERROR || device > NGX_MAX_INT32_VALUE
        || bytes == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < *n; i++) {
        if ((*list)[i]->device == device) {
            return NGX_ERROR;
        }
    }

    pool = ngx_palloc(cf->pool, sizeof(NginxInference__CudaPool));
    if (pool == NULL) {
        return NGX_ERROR;
    }

    nginx_inference__cuda_pool__init(pool);

    pool->device = (int32_t) device;
    pool->bytes = (uint64_t) bytes;

    return ngx_http_inference_append(cf->pool, list, n, pool);
}


char *
ngx_http_inference_log(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t                    *value;
    ngx_uint_t                    i, level;
    NginxInference__LogSettings  *log;

    static ngx_str_t  levels[] = {
        ngx_string("info"), ngx_string("warn"), ngx_string("error")
    };

    if (ngx_http_inference_is_given(imcf, &cmd->name)) {
        return "is duplicate";
    }

    value = cf->args->elts;
    level = sizeof(levels) / sizeof(levels[0]);

    for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (value[1].len == levels[i].len
            && ngx_strncmp(value[1].data, levels[i].data, levels[i].len) == 0)
        {
            level = i;
        }
    }

    if (level == sizeof(levels) / sizeof(levels[0])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_log\" takes info, warn or error, "
                           "not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    log = imcf->config.log;

    log->has_info = 1;
    log->info = level < 1;
    log->has_warn = 1;
    log->warn = level < 2;

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_inference_parameter(imcf, &cmd->name, &value[i])
            != NGX_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of "
                               "\"inference_log\": it takes verbose=NUMBER and "
                               "format=default|ISO8601, once each", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* none | explicit | poll [interval=TIME] [inotify=on|off] */

char *
ngx_http_inference_model_control(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (ngx_http_inference_is_given(imcf, &cmd->name)) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_inference_own_value(imcf, &cmd->name, &value[1]) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_model_control\" takes none, explicit "
                           "or poll, not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (imcf->config.model_control != NGINX_INFERENCE__MODEL_CONTROL__POLL
            || ngx_http_inference_parameter(imcf, &cmd->name, &value[i])
               != NGX_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of "
                               "\"inference_model_control\": poll alone takes "
                               "interval=TIME and inotify=on|off, each once",
                               &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


char *
ngx_http_inference_load_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    size_t                       i;
    ngx_str_t                   *value;
    ngx_uint_t                   star;
    NginxInference__CoreConfig  *config;

    config = &imcf->config;
    value = cf->args->elts;

    if (value[1].len == 0
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, '/')
        || ngx_strcmp(value[1].data, ".") == 0
        || ngx_strcmp(value[1].data, "..") == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" in \"inference_load_model\" can't be a "
                           "model's name", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < config->n_load_models; i++) {
        if (ngx_strcmp(config->load_models[i], value[1].data) == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate model \"%V\" in "
                               "\"inference_load_model\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    ngx_http_inference_note_line(cf, &imcf->load);

    if (ngx_http_inference_append(cf->pool, &config->load_models,
                                  &config->n_load_models, value[1].data)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    star = (ngx_strcmp(value[1].data, "*") == 0);

    if (!star && ngx_http_inference_name_model(cf, &value[1], NULL, 1)
                 != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    star |= (ngx_strcmp(config->load_models[0], "*") == 0);

    if (star && config->n_load_models > 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_load_model %V\" beside another: \"*\" "
                           "means all models and stands alone", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
