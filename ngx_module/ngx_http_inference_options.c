/*
 * ngx_http_inference_options.c - reads the core's options by their table
 *                                (core/proto/core_options.h): directives of one
 *                                value or of parameters, and parameters of
 *                                other directives.
 */

#include "ngx_module/ngx_http_inference_directives.h"

#include "core/base/config_name.h"
#include "core/base/object_address.h"
#include "core/proto/message_field.h"


static const inf_core_option_t *ngx_http_inference_find_option(
    ngx_str_t *directive, ngx_str_t *parameter);
static ngx_uint_t ngx_http_inference_option_is_set(
    NginxInference__CoreConfig *config, const inf_core_option_t *option);
static ngx_int_t ngx_http_inference_set_option(
    ngx_http_inference_main_conf_t *imcf, const inf_core_option_t *option,
    ngx_str_t *value);
static char *ngx_http_inference_invalid(ngx_conf_t *cf, ngx_command_t *cmd,
    const inf_core_option_t *option, ngx_str_t *value);
static u_char *ngx_http_inference_wanted(const inf_core_option_t *option);
static ngx_int_t ngx_http_inference_read_number(
    const inf_core_option_t *option, ngx_str_t *value, int64_t *number);
static ngx_int_t ngx_http_inference_read_choice(const char *words,
    ngx_str_t *value, int64_t *number);
static ngx_int_t ngx_http_inference_is_text(const inf_core_option_t *option,
    ngx_str_t *value);
static size_t ngx_http_inference_before_query(ngx_str_t *value);
static char *ngx_http_inference_directory(ngx_conf_t *cf, ngx_command_t *cmd,
    const inf_core_option_t *option, ngx_str_t *value);
static ngx_int_t ngx_http_inference_check_address(ngx_conf_t *cf,
    ngx_str_t *directive, ngx_str_t *address);
static void ngx_http_inference_check_directory(ngx_conf_t *cf,
    ngx_str_t *directive, ngx_str_t *path);


ngx_int_t
ngx_http_inference_init_options(ngx_pool_t *pool,
    NginxInference__CoreConfig *config)
{
    nginx_inference__core_config__init(config);

    config->log = ngx_palloc(pool, sizeof(NginxInference__LogSettings));
    config->metrics = ngx_palloc(pool,
                                 sizeof(NginxInference__MetricsSettings));

    config->trace = ngx_palloc(pool, sizeof(NginxInference__TraceSettings));

    if (config->log == NULL || config->metrics == NULL
        || config->trace == NULL)
    {
        return NGX_ERROR;
    }

    nginx_inference__log_settings__init(config->log);
    nginx_inference__metrics_settings__init(config->metrics);
    nginx_inference__trace_settings__init(config->trace);

    return NGX_OK;
}


/* inference_x VALUE */

char *
ngx_http_inference_value(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t                *value;
    const inf_core_option_t  *option;

    option = ngx_http_inference_find_option(&cmd->name, NULL);
    value = cf->args->elts;

    if (option->kind == INF_OPTION_DIRECTORY
        || option->kind == INF_OPTION_REPOSITORY)
    {
        return ngx_http_inference_directory(cf, cmd, option, &value[1]);
    }

    if (ngx_http_inference_option_is_set(&imcf->config, option)) {
        return "is duplicate";
    }

    if (ngx_http_inference_set_option(imcf, option, &value[1]) != NGX_OK) {
        return ngx_http_inference_invalid(cf, cmd, option, &value[1]);
    }

    return NGX_CONF_OK;
}


char *
ngx_http_inference_enum_slot(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char           *p, words[128];
    ngx_str_t        *value;
    ngx_conf_enum_t  *e;

    value = cf->args->elts;
    p = words;

    for (e = cmd->post; e->name.len > 0; e++) {

        if (e->name.len == value[1].len
            && ngx_strcasecmp(e->name.data, value[1].data) == 0)
        {
            if (cmd->conf == NGX_HTTP_LOC_CONF_OFFSET) {
                (void) ngx_http_inference_note_setting(cf, NULL, NULL);
            }

            return ngx_conf_set_enum_slot(cf, cmd, conf);
        }

        p = ngx_slprintf(p, words + sizeof(words), " %V", &e->name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, it must be "
                       "one of:%*s", &value[1], &cmd->name,
                       (size_t) (p - words), words);

    return NGX_CONF_ERROR;
}


char *
ngx_http_inference_note_setting(ngx_conf_t *cf, void *post, void *data)
{
    ngx_str_t                      *value;
    ngx_http_inference_loc_conf_t  *ilcf;

    value = cf->args->elts;
    ilcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_inference_module);

    if (ilcf->setting.len == 0) {
        ilcf->setting = value[0];
        ilcf->setting_line.file = cf->conf_file->file.name.data;
        ilcf->setting_line.number = cf->conf_file->line;
    }

    return NGX_CONF_OK;
}


/* inference_x parameter=VALUE ... */

char *
ngx_http_inference_group(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    ngx_str_t                *value;
    ngx_uint_t                i;
    const inf_core_option_t  *group;

    if (ngx_http_inference_is_given(imcf, &cmd->name)) {
        return "is duplicate";
    }

    group = ngx_http_inference_find_option(&cmd->name, NULL);
    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_inference_parameter(imcf, &cmd->name, &value[i])
            != NGX_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, group->usage, &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_inference_parameter(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive, ngx_str_t *arg)
{
    u_char                   *equals;
    ngx_str_t                 name, value;
    const inf_core_option_t  *option;

    equals = ngx_strlchr(arg->data, arg->data + arg->len, '=');
    if (equals == NULL) {
        return NGX_DECLINED;
    }

    name.data = arg->data;
    name.len = equals - arg->data;
    value.data = equals + 1;
    value.len = arg->len - name.len - 1;

    option = ngx_http_inference_find_option(directive, &name);

    if (option == NULL || option->kind == INF_OPTION_OTHER
        || ngx_http_inference_option_is_set(&imcf->config, option))
    {
        return NGX_DECLINED;
    }

    return ngx_http_inference_set_option(imcf, option, &value);
}


ngx_int_t
ngx_http_inference_own_value(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive, ngx_str_t *value)
{
    return ngx_http_inference_set_option(imcf,
                            ngx_http_inference_find_option(directive, NULL),
                            value);
}


ngx_uint_t
ngx_http_inference_is_given(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive)
{
    size_t                    i;
    const inf_core_option_t  *option;

    for (i = 0; i < inf_core_options_count; i++) {
        option = &inf_core_options[i];

        if (option->field != NULL
            && ngx_strcmp(option->directive, directive->data) == 0
            && ngx_http_inference_option_is_set(&imcf->config, option))
        {
            return 1;
        }
    }

    return 0;
}


static const inf_core_option_t *
ngx_http_inference_find_option(ngx_str_t *directive, ngx_str_t *parameter)
{
    size_t                    i;
    const inf_core_option_t  *option;

    for (i = 0; i < inf_core_options_count; i++) {
        option = &inf_core_options[i];

        if (ngx_strcmp(option->directive, directive->data) != 0) {
            continue;
        }

        if (parameter == NULL) {
            if (option->parameter == NULL
                && option->kind != INF_OPTION_OTHER)
            {
                return option;
            }

        } else if (option->parameter != NULL
                   && ngx_strlen(option->parameter) == parameter->len
                   && ngx_strncmp(option->parameter, parameter->data,
                                  parameter->len)
                      == 0)
        {
            return option;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_inference_option_is_set(NginxInference__CoreConfig *config,
    const inf_core_option_t *option)
{
    ProtobufCMessage                *in;
    const ProtobufCFieldDescriptor  *f;

    f = inf_core_option_field(option, config, &in);

    return inf_field_count(in, f) > 0;
}


static ngx_int_t
ngx_http_inference_set_option(ngx_http_inference_main_conf_t *imcf,
    const inf_core_option_t *option, ngx_str_t *value)
{
    u_char                          *p;
    int64_t                          number;
    ProtobufCMessage                *in;
    const ProtobufCFieldDescriptor  *f;

    f = inf_core_option_field(option, &imcf->config, &in);
    p = (u_char *) in + f->offset;

    if (f->type == PROTOBUF_C_TYPE_STRING) {
        if (ngx_http_inference_is_text(option, value) != NGX_OK) {
            return NGX_ERROR;
        }

        *(char **) p = (char *) value->data;
        return NGX_OK;
    }

    if (ngx_http_inference_read_number(option, value, &number) != NGX_OK
        || number < option->min
        || (option->max != 0 && number > option->max))
    {
        return NGX_ERROR;
    }

    switch (f->type) {

    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *) p = (uint64_t) number;
        break;

    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *) p = (protobuf_c_boolean) number;
        break;

    default: /* 32 bits: int32, uint32, enum */
        *(uint32_t *) p = (uint32_t) number;
        break;
    }

    *(protobuf_c_boolean *) ((u_char *) in + f->quantifier_offset) = 1;

    return NGX_OK;
}


/* Logs an invalid value, worded as by nginx's own readers. */

static char *
ngx_http_inference_invalid(ngx_conf_t *cf, ngx_command_t *cmd,
    const inf_core_option_t *option, ngx_str_t *value)
{
    switch (option->kind) {

    case INF_OPTION_FLAG:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%s\" in \"%s\" directive, "
                           "it must be \"on\" or \"off\"",
                           value->data, cmd->name.data);
        return NGX_CONF_ERROR;

    case INF_OPTION_CONFIG_NAME:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" in \"%V\" can't be the name of a model "
                           "configuration: %s", value, &cmd->name,
                           inf_config_name_problem((char *) value->data,
                                                   value->len));
        return NGX_CONF_ERROR;

    default:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be %s", value, &cmd->name,
                           ngx_http_inference_wanted(option));
        return NGX_CONF_ERROR;
    }
}


/* The text of the allowed values; valid until the next call. */

static u_char *
ngx_http_inference_wanted(const inf_core_option_t *option)
{
    u_char         *p, *last;
    static u_char   text[128];

    static const char  *kinds[] = {
        [INF_OPTION_NUMBER] = "a number",
        [INF_OPTION_TIME] = "a time, such as 30s",
        [INF_OPTION_MICROSECONDS] = "microseconds, such as 5us",
        [INF_OPTION_SIZE] = "a size, such as 64m",
        [INF_OPTION_TEXT] = "a text that is not empty",
        [INF_OPTION_QUANTILES] = "like 0.5:0.05,0.9:0.01"
    };

    p = text;
    last = text + sizeof(text) - 1;

    if (option->kind == INF_OPTION_CHOICE) {
        p = ngx_slprintf(p, last, "one of: %s", option->words);

    } else {
        p = ngx_slprintf(p, last, "%s", kinds[option->kind]);
    }

    if (option->kind == INF_OPTION_NUMBER) {
        p = ngx_slprintf(p, last, " from %L", option->min);

        if (option->max) {
            p = ngx_slprintf(p, last, " to %L", option->max);
        }
    }

    *p = '\0';

    return text;
}


static ngx_int_t
ngx_http_inference_read_number(const inf_core_option_t *option,
    ngx_str_t *value, int64_t *number)
{
    ngx_str_t  digits;

    switch (option->kind) {

    case INF_OPTION_FLAG:
        return ngx_http_inference_read_choice("off on", value, number);

    case INF_OPTION_CHOICE:
        return ngx_http_inference_read_choice(option->words, value, number);

    case INF_OPTION_NUMBER:
        *number = ngx_atoi(value->data, value->len);
        break;

    case INF_OPTION_TIME:
        *number = ngx_parse_time(value, 0);
        break;

    case INF_OPTION_SIZE:
        *number = ngx_parse_offset(value);
        break;

    case INF_OPTION_MICROSECONDS:
        digits = *value;

        if (digits.len < 3
            || ngx_strncmp(digits.data + digits.len - 2, "us", 2) != 0)
        {
            return NGX_ERROR;
        }

        *number = ngx_atoi(digits.data, digits.len - 2);
        break;

    default:
        return NGX_ERROR;
    }

    return *number == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_inference_read_choice(const char *words, ngx_str_t *value,
    int64_t *number)
{
    size_t       len;
    const char  *p;

    *number = 0;

    for (p = words; *p != '\0'; p += len + (p[len] == ' ')) {
        len = strcspn(p, " ");

        if (value->len == len
            && ngx_strncasecmp(value->data, (u_char *) p, len) == 0)
        {
            return NGX_OK;
        }

        (*number)++;
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_inference_is_text(const inf_core_option_t *option, ngx_str_t *value)
{
    if (option->kind == INF_OPTION_CONFIG_NAME) {
        return inf_config_name_problem((char *) value->data, value->len)
               == NULL ? NGX_OK : NGX_ERROR;
    }

    if (option->kind == INF_OPTION_TEXT) {
        return value->len > 0 ? NGX_OK : NGX_ERROR;
    }

    return inf_quantiles_are_valid((char *) value->data)
           ? NGX_OK : NGX_ERROR;
}


static char *
ngx_http_inference_directory(ngx_conf_t *cf, ngx_command_t *cmd,
    const inf_core_option_t *option, ngx_str_t *value)
{
    ngx_http_inference_main_conf_t  *imcf;

    size_t                          *n, i;
    char                          ***list;
    ngx_uint_t                       remote;
    ProtobufCMessage                *in;
    const ProtobufCFieldDescriptor  *f;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);

    remote = (option->kind == INF_OPTION_REPOSITORY
              && inf_object_address_has_scheme((char *) value->data));

    if (remote && ngx_http_inference_check_address(cf, &cmd->name, value)
                  != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!remote && ngx_strnstr(value->data, "://", value->len) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V %*s\": a local directory%s is wanted",
                           &cmd->name,
                           ngx_http_inference_before_query(value), value->data,
                           option->kind == INF_OPTION_REPOSITORY
                           ? ", s3://bucket/path, gs://bucket/path or "
                             "as://account/container/path" : "");
        return NGX_CONF_ERROR;
    }

    if (!remote) {
        if (ngx_http_inference_absolute(cf, &cmd->name, value) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        while (value->len > 1 && value->data[value->len - 1] == '/') {
            value->data[--value->len] = '\0';
        }

        ngx_http_inference_check_directory(cf, &cmd->name, value);
    }

    f = inf_core_option_field(option, &imcf->config, &in);
    list = (char ***) ((u_char *) in + f->offset);
    n = (size_t *) ((u_char *) in + f->quantifier_offset);

    for (i = 0; i < *n; i++) {
        if (ngx_strcmp((*list)[i], value->data) == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate \"%V %*s\"",
                               &cmd->name,
                               inf_object_address_shown((char *) value->data),
                               value->data);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_inference_append(cf->pool, list, n, value->data) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_inference_check_address(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *address)
{
    inf_err_t             *err;
    inf_object_address_t   parsed;

    err = inf_object_address_parse((char *) address->data, &parsed);

    if (err != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\": %s", directive,
                           inf_err_msg(err));
        inf_err_free(err);
        return NGX_ERROR;
    }

    inf_object_address_fini(&parsed);

    return NGX_OK;
}


/* Warns of a missing directory; models must not fail a start or a reload. */

static void
ngx_http_inference_check_directory(ngx_conf_t *cf, ngx_str_t *directive,
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
                           "\"%V %V\" is not a directory", directive, path);
    }
}


/* Appends item; the list's capacity is the next power of two. */

ngx_int_t
ngx_http_inference_append(ngx_pool_t *pool, void *list, size_t *n, void *item)
{
    void  **items, ***at;

    at = list;

    if ((*n & (*n - 1)) == 0) {
        items = ngx_palloc(pool, (*n > 0 ? 2 * *n : 1) * sizeof(void *));
        if (items == NULL) {
            return NGX_ERROR;
        }

        if (*n > 0) {
            ngx_memcpy(items, *at, *n * sizeof(void *));
        }

        *at = items;
    }

    (*at)[(*n)++] = item;

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_add_setting(ngx_pool_t *pool,
    NginxInference__BackendSetting ***list, size_t *n, char *backend,
    ngx_str_t *key, ngx_str_t *value)
{
    NginxInference__BackendSetting  *setting;

    setting = ngx_palloc(pool, sizeof(NginxInference__BackendSetting));
    if (setting == NULL) {
        return NGX_ERROR;
    }

    nginx_inference__backend_setting__init(setting);

    key->data[key->len] = '\0';       /* instead of "=" */

    setting->backend = backend;
    setting->key = (char *) key->data;
    setting->value = (char *) value->data;

    return ngx_http_inference_append(pool, list, n, setting);
}


ngx_int_t
ngx_http_inference_absolute(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *path)
{
    if (path->len > 0 && path->data[0] == '/') {
        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "the path in \"%V %*s\" is not absolute", directive,
                       ngx_http_inference_before_query(path), path->data);
    return NGX_ERROR;
}


/* The length of what errors show of a path that may be a URL, whose query may
   have a signature. */

static size_t
ngx_http_inference_before_query(ngx_str_t *value)
{
    u_char  *query;

    query = ngx_strlchr(value->data, value->data + value->len, '?');

    return query ? (size_t) (query - value->data) : value->len;
}


ngx_uint_t
ngx_http_inference_is(ngx_str_t *value, const char *text)
{
    return ngx_strlen(text) == value->len
           && ngx_strncmp(value->data, text, value->len) == 0;
}


/* Parses "name=value"; NGX_DECLINED: arg does not begin with name. */

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
