/*
 * The directives of http{}: everything about the core.
 */

#include "ngx_module/ngx_http_inference_directives.h"


#define NGX_HTTP_INFERENCE_MIN       ((off_t) 1024 * 1024)
#define NGX_HTTP_INFERENCE_MAX_SPIN  1000


static ngx_int_t ngx_http_inference_core_option(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg);
static void ngx_http_inference_env_forget(ngx_conf_t *cf, ngx_str_t *var);
static char *ngx_http_inference_add_folder(ngx_conf_t *cf,
    ngx_command_t *cmd, ngx_array_t *folders, ngx_str_t *value);
static void ngx_http_inference_check_folder(ngx_conf_t *cf,
    ngx_str_t *directive, ngx_str_t *path);
static ngx_int_t ngx_http_inference_cuda_pool(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *value);
static ngx_int_t ngx_http_inference_absolute(ngx_conf_t *cf,
    ngx_str_t *directive, ngx_str_t *path);
static ngx_int_t ngx_http_inference_poll_option(
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg);
static ngx_str_t *ngx_http_inference_find(ngx_array_t *array, ngx_str_t *value);


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
        if (ngx_http_inference_core_option(cf, imcf, &value[i]) != NGX_OK) {
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
ngx_http_inference_core_option(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *arg)
{
    ngx_int_t  n;
    ngx_str_t  value, name;

    if (ngx_http_inference_option(arg, "drain=", &value) == NGX_OK
        && imcf->drain == NGX_CONF_UNSET_MSEC)
    {
        n = ngx_parse_time(&value, 0);

        if (n != NGX_ERROR) {
            imcf->drain = (ngx_msec_t) n;
            return NGX_OK;
        }

    } else if (ngx_http_inference_option(arg, "spin=", &value) == NGX_OK
               && imcf->spin_us == NGX_CONF_UNSET_UINT)
    {
        n = NGX_ERROR;

        if (value.len > 2
            && ngx_strncmp(value.data + value.len - 2, "us", 2) == 0)
        {
            n = ngx_atoi(value.data, value.len - 2);
        }

        if (n != NGX_ERROR && n <= NGX_HTTP_INFERENCE_MAX_SPIN) {
            imcf->spin_us = (ngx_uint_t) n;
            return NGX_OK;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\" of \"inference_core\": spin is "
                           "0us to %dus", arg, NGX_HTTP_INFERENCE_MAX_SPIN);
        return NGX_ERROR;

    } else if (ngx_http_inference_option(arg, "dump=", &value) == NGX_OK
               && ngx_http_inference_on_off(&value, &imcf->dump) == NGX_OK)
    {
        return NGX_OK;

    } else if (ngx_http_inference_option(arg, "external=", &value) == NGX_OK
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
                       "spin=Nus, dump=on|off and external=PATH", arg);
    return NGX_ERROR;
}


char *
ngx_http_inference_env(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    u_char      *p, *last, *equals;
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

    for (p = value[1].data; p < equals; p++) {
        if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_'
            || (*p >= '0' && *p <= '9' && p > value[1].data))
        {
            continue;
        }

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


/* The buffer that the file is read through is freed, but not cleared: workers
   would inherit what it held. */

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


/* inference_repository, inference_backends, inference_agents,
   inference_cache_directory */

char *
ngx_http_inference_folder(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t    *value;
    ngx_array_t  *folders;

    folders = (ngx_array_t *) ((u_char *) conf + cmd->offset);
    value = cf->args->elts;

    if (cmd->offset
        == offsetof(ngx_http_inference_main_conf_t, repositories)
        && value[1].len > 5 && ngx_strncmp(value[1].data, "s3://", 5) == 0)
    {
        return ngx_http_inference_add_folder(cf, cmd, folders, &value[1]);
    }

    if (ngx_strnstr(value[1].data, "://", value[1].len) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V %V\": a local folder%s is wanted",
                           &cmd->name, &value[1],
                           cmd->offset
                           == offsetof(ngx_http_inference_main_conf_t,
                                       repositories)
                           ? " or s3://bucket/path" : "");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_inference_absolute(cf, &cmd->name, &value[1]) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    while (value[1].len > 1 && value[1].data[value[1].len - 1] == '/') {
        value[1].data[--value[1].len] = '\0';
    }

    ngx_http_inference_check_folder(cf, &cmd->name, &value[1]);

    return ngx_http_inference_add_folder(cf, cmd, folders, &value[1]);
}


static char *
ngx_http_inference_add_folder(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_array_t *folders, ngx_str_t *value)
{
    ngx_str_t  *folder;

    if (ngx_http_inference_find(folders, value) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate \"%V %V\"",
                           &cmd->name, value);
        return NGX_CONF_ERROR;
    }

    folder = ngx_array_push(folders);
    if (folder == NULL) {
        return NGX_CONF_ERROR;
    }

    *folder = *value;

    return NGX_CONF_OK;
}


/* Neither start nor reload fails because of models: only a warning. */

static void
ngx_http_inference_check_folder(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *path)
{
    ngx_file_info_t  fi;

    if (ngx_file_info(path->data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, ngx_errno,
                           "\"%V %V\" is not there now", directive, path);
        return;
    }

    if (!ngx_is_dir(&fi)) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"%V %V\" is not a folder", directive, path);
    }
}


char *
ngx_http_inference_backend_config(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    u_char                        *last, *equals;
    ngx_str_t                     *value, backend, key;
    ngx_uint_t                     i, j;
    ngx_http_inference_setting_t  *setting;

    value = cf->args->elts;
    backend = value[1];

    if (backend.len == 1 && backend.data[0] == '*') {
        backend.len = 0;
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

        setting = imcf->settings.elts;

        for (j = 0; j < imcf->settings.nelts; j++) {
            if (setting[j].backend.len == backend.len
                && setting[j].key.len == key.len
                && ngx_strncmp(setting[j].backend.data, backend.data,
                               backend.len) == 0
                && ngx_strncmp(setting[j].key.data, key.data, key.len) == 0)
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "duplicate setting \"%V\" of backend "
                                   "\"%V\"", &key, &value[1]);
                return NGX_CONF_ERROR;
            }
        }

        setting = ngx_array_push(&imcf->settings);
        if (setting == NULL) {
            return NGX_CONF_ERROR;
        }

        setting->backend = backend;
        setting->key = key;
        setting->value.data = equals + 1;
        setting->value.len = last - equals - 1;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_inference_memory(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value, size;
    ngx_uint_t   i;

    if (imcf->arena != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    imcf->arena = ngx_parse_offset(&value[1]);

    if (imcf->arena == NGX_ERROR || imcf->arena < NGX_HTTP_INFERENCE_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_memory\" takes a size of at least 1m, "
                           "not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_inference_option(&value[i], "pinned=", &size) == NGX_OK
            && imcf->pinned == NGX_CONF_UNSET)
        {
            imcf->pinned = ngx_parse_offset(&size);

            if (imcf->pinned != NGX_ERROR) {
                continue;
            }

        } else if (ngx_http_inference_option(&value[i], "cuda=", &size)
                   == NGX_OK
                   && ngx_http_inference_cuda_pool(cf, imcf, &size) == NGX_OK)
        {
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid or duplicate parameter \"%V\" of "
                           "\"inference_memory\": it takes pinned=SIZE and "
                           "cuda=DEVICE:SIZE", &value[i]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_cuda_pool(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf, ngx_str_t *value)
{
    u_char      *colon, *last;
    size_t       len;
    ngx_str_t   *pool, size;
    ngx_uint_t   i;

    last = value->data + value->len;
    colon = ngx_strlchr(value->data, last, ':');

    if (colon == NULL) {
        return NGX_ERROR;
    }

    size.data = colon + 1;
    size.len = last - colon - 1;
    len = colon - value->data;

    if (ngx_atoi(value->data, len) == NGX_ERROR
        || ngx_parse_offset(&size) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    pool = imcf->cuda.elts;

    for (i = 0; i < imcf->cuda.nelts; i++) {
        if (ngx_strncmp(pool[i].data, value->data, len + 1) == 0) {
            return NGX_ERROR;
        }
    }

    pool = ngx_array_push(&imcf->cuda);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    *pool = *value;

    return NGX_OK;
}


char *
ngx_http_inference_log(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_int_t    n;
    ngx_str_t   *value, level;
    ngx_uint_t   i;

    static ngx_str_t  levels[] = {
        ngx_string("info"), ngx_string("warn"), ngx_string("error")
    };

    if (imcf->log_level != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (value[1].len == levels[i].len
            && ngx_strncmp(value[1].data, levels[i].data, levels[i].len) == 0)
        {
            imcf->log_level = i;
        }
    }

    if (imcf->log_level == NGX_CONF_UNSET_UINT) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_log\" takes info, warn or error, "
                           "not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    n = NGX_ERROR;

    if (ngx_http_inference_option(&value[2], "verbose=", &level) == NGX_OK) {
        n = ngx_atoi(level.data, level.len);
    }

    if (n == NGX_ERROR || n > NGX_MAX_INT32_VALUE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of \"inference_log\": it "
                           "takes verbose=NUMBER", &value[2]);
        return NGX_CONF_ERROR;
    }

    imcf->log_verbose = (ngx_uint_t) n;

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

    static ngx_str_t  modes[] = {
        ngx_string("none"), ngx_string("explicit"), ngx_string("poll")
    };

    if (imcf->control != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (value[1].len == modes[i].len
            && ngx_strncmp(value[1].data, modes[i].data, modes[i].len) == 0)
        {
            imcf->control = i;
        }
    }

    if (imcf->control == NGX_CONF_UNSET_UINT) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_model_control\" takes none, explicit "
                           "or poll, not \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (imcf->control != NGX_HTTP_INFERENCE_CONTROL_POLL
            || ngx_http_inference_poll_option(imcf, &value[i]) != NGX_OK)
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


static ngx_int_t
ngx_http_inference_poll_option(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *arg)
{
    ngx_int_t  n;
    ngx_str_t  value;

    if (imcf->poll == NGX_CONF_UNSET_MSEC
        && ngx_http_inference_option(arg, "interval=", &value) == NGX_OK)
    {
        n = ngx_parse_time(&value, 0);
        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        imcf->poll = (ngx_msec_t) n;
        return NGX_OK;
    }

    if (ngx_http_inference_option(arg, "inotify=", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_on_off(&value, &imcf->inotify);
}


char *
ngx_http_inference_load_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t   *value, *name;
    ngx_uint_t   star;

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

    if (ngx_http_inference_find(&imcf->load_models, &value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate model \"%V\" in "
                           "\"inference_load_model\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (imcf->load_models.nelts == 0) {
        imcf->load_file = cf->conf_file->file.name;
        imcf->load_line = cf->conf_file->line;
    }

    name = ngx_array_push(&imcf->load_models);
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    *name = value[1];

    name = imcf->load_models.elts;
    star = (ngx_strcmp(name[0].data, "*") == 0
            || ngx_strcmp(value[1].data, "*") == 0);

    if (star && imcf->load_models.nelts > 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_load_model %V\" beside another: \"*\" "
                           "means all models and stands alone", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_inference_init_models(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_conf_init_uint_value(imcf->control, NGX_HTTP_INFERENCE_CONTROL_NONE);
    ngx_conf_init_msec_value(imcf->poll, 15000);
    ngx_conf_init_value(imcf->inotify, 1);

    if (imcf->load_models.nelts > 0
        && imcf->control != NGX_HTTP_INFERENCE_CONTROL_EXPLICIT)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"inference_load_model\" needs "
                      "\"inference_model_control explicit\" in %V:%ui",
                      &imcf->load_file, imcf->load_line);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_inference_absolute(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *path)
{
    if (path->len > 0 && path->data[0] == '/') {
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "the path in \"%V %V\" is not absolute",
                       directive, path);
    return NGX_ERROR;
}


static ngx_str_t *
ngx_http_inference_find(ngx_array_t *array, ngx_str_t *value)
{
    ngx_str_t   *item;
    ngx_uint_t   i;

    item = array->elts;

    for (i = 0; i < array->nelts; i++) {
        if (item[i].len == value->len
            && ngx_strncmp(item[i].data, value->data, value->len) == 0)
        {
            return &item[i];
        }
    }

    return NULL;
}


/* "name=value": the value, if arg begins with name. */

ngx_int_t
ngx_http_inference_option(ngx_str_t *arg, const char *name, ngx_str_t *value)
{
    size_t  len;

    len = ngx_strlen(name);

    if (arg->len < len || ngx_strncmp(arg->data, name, len) != 0) {
        return NGX_DECLINED;
    }

    value->data = arg->data + len;
    value->len = arg->len - len;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_on_off(ngx_str_t *value, ngx_flag_t *flag)
{
    if (*flag != NGX_CONF_UNSET) {
        return NGX_ERROR;
    }

    if (value->len == 2 && ngx_strncmp(value->data, "on", 2) == 0) {
        *flag = 1;
        return NGX_OK;
    }

    if (value->len == 3 && ngx_strncmp(value->data, "off", 3) == 0) {
        *flag = 0;
        return NGX_OK;
    }

    return NGX_ERROR;
}
