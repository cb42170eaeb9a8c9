/*
 * Checks of directives against others: noted while read, compared after http{}
 * was read.
 */

#include "ngx_module/ngx_http_inference_directives.h"


static ngx_uint_t ngx_http_inference_has_page(ngx_http_core_loc_conf_t *clcf,
    ngx_int_t status);


void
ngx_http_inference_note_line(ngx_conf_t *cf, ngx_http_inference_line_t *line)
{
    if (line->file == NULL) {
        line->file = cf->conf_file->file.name.data;
        line->number = cf->conf_file->line;
    }
}


/*
 * Warns only where the directive cannot have effect: nested blocks may inherit
 * values or return errors, and a rewrite may leave a location without a
 * handler.
 */

void
ngx_http_inference_warn_idle(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *prev, ngx_http_inference_loc_conf_t *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    conf->pages = clcf->error_pages;

    if (clcf->locations || clcf->handler == NULL) {
        return;
    }

    if (conf->line.file == NULL && conf->setting.len > 0) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" has no effect in a location that another "
                      "handler answers in %s:%ui", &conf->setting,
                      conf->setting_line.file, conf->setting_line.number);
    }

    if (conf->line.file && !clcf->internal
        && conf->intercept == NGX_CONF_UNSET && prev->intercept != 1
        && conf->pages != prev->pages
        && ngx_http_inference_has_page(clcf, NGX_HTTP_NOT_FOUND))
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"error_page 404\" has no effect on errors of "
                      "\"%s\" without \"inference_intercept_errors on\" in "
                      "the location in %s:%ui",
                      conf->model ? "inference_model" : "inference",
                      conf->line.file, conf->line.number);
    }
}


static ngx_uint_t
ngx_http_inference_has_page(ngx_http_core_loc_conf_t *clcf, ngx_int_t status)
{
    ngx_uint_t            i;
    ngx_http_err_page_t  *page;

    if (clcf->error_pages) {
        page = clcf->error_pages->elts;

        for (i = 0; i < clcf->error_pages->nelts; i++) {
            if (page[i].status == status) {
                return 1;
            }
        }
    }

    return 0;
}


ngx_int_t
ngx_http_inference_name_model(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *version, ngx_uint_t load)
{
    u_char                          *place;
    size_t                           len;
    NginxInference__NamedModel      *model;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);

    if (!load && ngx_http_script_variables_count(name) > 0) {
        return NGX_OK;
    }

    len = cf->conf_file->file.name.len + sizeof(":") + NGX_INT_T_LEN;

    model = ngx_palloc(cf->pool, sizeof(NginxInference__NamedModel));
    place = ngx_pnalloc(cf->pool, len);

    if (model == NULL || place == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(place, "%V:%ui%Z", &cf->conf_file->file.name,
                cf->conf_file->line);

    nginx_inference__named_model__init(model);

    model->place = (char *) place;
    model->name = (char *) name->data;
    model->load = load;

    if (version && ngx_http_script_variables_count(version) == 0) {
        model->version = ngx_atoi(version->data, version->len);
    }

    return ngx_http_inference_append(cf->pool, &imcf->named, &imcf->n_named,
                                     model);
}


char *
ngx_http_inference_compare(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_uint_t                   explicitly;
    NginxInference__CoreConfig  *config;

    config = &imcf->config;
    explicitly = (config->model_control
                  == NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT);

    if (config->n_load_models > 0 && !explicitly) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"inference_load_model\" needs "
                      "\"inference_model_control explicit\" in %s:%ui",
                      imcf->load.file, imcf->load.number);
        return NGX_CONF_ERROR;
    }

    /* an external core has its own configuration */

    if (imcf->external.len > 0) {
        return NGX_CONF_OK;
    }

    /* a request that loads a model may bring its files */

    if (imcf->serving.file && config->n_repositories == 0 && !explicitly) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "no \"inference_repository\": there are no models for "
                      "the location in %s:%ui",
                      imcf->serving.file, imcf->serving.number);
    }

    if (imcf->resource.file
        && config->rate_limit == NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_OFF)
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"inference_rate_limit_resource\" has no effect without "
                      "\"inference_rate_limit execution_count\" in %s:%ui",
                      imcf->resource.file, imcf->resource.number);
    }

    return NGX_CONF_OK;
}
