/*
 * ngx_http_inference_directives.h - how the directives are read.
 *
 * Owner    All values belong to the configuration's pool.
 * Thread   the process that reads the configuration.
 * Units    as the fields they fill.
 * Errors   NGX_CONF_ERROR, logged with file, line and the offending value.
 * Route    module.c's table -> here -> main and location configuration.
 */

#ifndef NGX_HTTP_INFERENCE_DIRECTIVES_H
#define NGX_HTTP_INFERENCE_DIRECTIVES_H

#include "ngx_module/ngx_http_inference.h"

#include "core/proto/core_config.h"


/* ---- http{}: the core's settings (directives.c) -------------------------- */

/* Handlers of the directives of these names. */
char *ngx_http_inference_core(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_inference_check_core(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);
char *ngx_http_inference_env(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_backend_config(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
char *ngx_http_inference_response_cache(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);    /* response_cache.c */
char *ngx_http_inference_memory(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_log(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_model_control(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_load_model(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* ---- http{}: directives that are compared with others (compared.c) ------- */

/* Notes the line that is being read, unless an earlier one is noted. */
void ngx_http_inference_note_line(ngx_conf_t *cf,
    ngx_http_inference_line_t *line);

/* Warns of directives without effect in a location; called before its values
   are merged. */
void ngx_http_inference_warn_idle(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *prev, ngx_http_inference_loc_conf_t *conf);

/* Notes a model for the check of nginx -t, unless its name has variables.
   version NULL, or with variables: any version. */
ngx_int_t ngx_http_inference_name_model(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *version, ngx_uint_t load);

/* Compares directives with each other, after http{} was read. */
char *ngx_http_inference_compare(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);


/* ---- http{}: by the table of the core's options (options.c) -------------- */

/* Initializes all options.  NGX_ERROR: out of memory. */
ngx_int_t ngx_http_inference_init_options(ngx_pool_t *pool,
    NginxInference__CoreConfig *config);

/* Handlers for options of one value, and of "parameter=value" words. */
char *ngx_http_inference_value(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_group(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Whether an option of that directive is set. */
ngx_uint_t ngx_http_inference_is_given(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive);

/* Sets an option of the directive by "parameter=value".  NGX_DECLINED: no such
   option, or already set.  NGX_ERROR: invalid value. */
ngx_int_t ngx_http_inference_parameter(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive, ngx_str_t *arg);

/* Sets the option that the directive itself stands for.  Returns likewise. */
ngx_int_t ngx_http_inference_own_value(ngx_http_inference_main_conf_t *imcf,
    ngx_str_t *directive, ngx_str_t *value);

/* Appends item to a list of *n pointers. */
ngx_int_t ngx_http_inference_append(ngx_pool_t *pool, void *list, size_t *n,
    void *item);

/* Adds a setting "key=value" to a list of BackendSetting. */
ngx_int_t ngx_http_inference_add_setting(ngx_pool_t *pool,
    NginxInference__BackendSetting ***list, size_t *n, char *backend,
    ngx_str_t *key, ngx_str_t *value);

/* Sets value to the rest of arg behind "name".  NGX_DECLINED: arg begins
   otherwise. */
ngx_int_t ngx_http_inference_option(ngx_str_t *arg, const char *name,
    ngx_str_t *value);

/* As ngx_conf_set_enum_slot(); the error lists the known words. */
char *ngx_http_inference_enum_slot(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Notes a directive that has effect in our handler alone.  Also called after
   nginx's own handlers of directives. */
char *ngx_http_inference_note_setting(ngx_conf_t *cf, void *post, void *data);

/* Whether value equals text. */
ngx_uint_t ngx_http_inference_is(ngx_str_t *value, const char *text);

/* Checks that the path is absolute; logs the error. */
ngx_int_t ngx_http_inference_absolute(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *path);


/* ---- http{}: where instances run (host_policy.c), what limits them
        (rate_limit.c), where traces go (trace.c) --------------------------- */

/* Handlers of the directives of these names. */
char *ngx_http_inference_host_policy(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_rate_limit_resource(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
char *ngx_http_inference_trace(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* ---- locations (location.c, forward.c) ----------------------------------- */

/* Handlers of directives, and nginx's callbacks for a location's values. */
char *ngx_http_inference_parts(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_model(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_tries(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_inference_min_body_rate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_binary_type_directive(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
char *ngx_http_inference_forward_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_upstream_directive(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);        /* upstream.c */
void *ngx_http_inference_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_inference_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);

/* Finds the upstream named by the location, after all were read. */
ngx_int_t ngx_http_inference_find_upstream(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf);   /* upstream.c */

/* After the merge: changes nginx's defaults for connections of servers with
   inference locations. */
void ngx_http_inference_override_connections(ngx_conf_t *cf);


#endif /* NGX_HTTP_INFERENCE_DIRECTIVES_H */
