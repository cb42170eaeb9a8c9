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


/* ---- http{}: the core's settings (directives.c) -------------------------- */

char *ngx_http_inference_core(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_inference_check_core(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);
char *ngx_http_inference_env(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_folder(ngx_conf_t *cf, ngx_command_t *cmd,
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

char *ngx_http_inference_model_load(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);                        /* loading.c */
char *ngx_http_inference_model_config_name(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);    /* loading.c */

/* Completes and checks settings of models once all of http{} is read. */
char *ngx_http_inference_init_models(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);

/* Takes "name" off the front of arg; NGX_DECLINED: it is not there. */
ngx_int_t ngx_http_inference_option(ngx_str_t *arg, const char *name,
    ngx_str_t *value);

/* Sets a flag, once; NGX_ERROR: it is set, or value is neither on nor off. */
ngx_int_t ngx_http_inference_on_off(ngx_str_t *value, ngx_flag_t *flag);


/* ---- http{}: where instances run (host_policy.c), metrics (metrics.c),
        what limits them (rate_limit.c) ------------------------------------- */

char *ngx_http_inference_host_policy(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_rate_limit_resource(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);


/* ---- locations (location.c) ---------------------------------------------- */

char *ngx_http_inference_parts(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_model(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_inference_tries(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_inference_min_body_rate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void *ngx_http_inference_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_inference_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);


#endif /* NGX_HTTP_INFERENCE_DIRECTIVES_H */
