/*
 * The core's configuration: the directives as a serialised CoreConfig in a
 * memory file.  Each change increments its generation, across reloads and
 * binary upgrades, so that the core knows the newest.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core/proto/message_field.h"


static u_char *ngx_http_inference_core_config_pack(
    ngx_http_inference_main_conf_t *imcf, uint64_t generation, size_t *len,
    ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_same(u_char *data, size_t len,
    ngx_log_t *log);


ngx_int_t
ngx_http_inference_core_config_update(ngx_http_inference_main_conf_t *imcf,
    ngx_log_t *log)
{
    size_t       len;
    u_char      *data;
    uint64_t     generation;
    ngx_int_t    rc;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    generation = ngx_http_inference_core_config_generation(log);

    /* equal values give equal bytes */

    data = ngx_http_inference_core_config_pack(imcf, generation, &len, pool);
    if (data == NULL) {
        goto done;
    }

    if (ngx_http_inference_core_config_same(data, len, log) == NGX_OK) {
        rc = NGX_DECLINED;
        goto done;
    }

    data = ngx_http_inference_core_config_pack(imcf, generation + 1, &len,
                                               pool);
    if (data != NULL) {
        rc = ngx_http_inference_keep_bytes(NGX_HTTP_INFERENCE_KEEP_CONFIG,
                                           "inference configuration",
                                           data, len, log);
    }

done:

    ngx_destroy_pool(pool);

    return rc;
}


u_char *
ngx_http_inference_core_config_bytes(ngx_http_inference_main_conf_t *imcf,
    size_t *len, ngx_pool_t *pool)
{
    NginxInference__CoreConfig  *config;

    config = &imcf->config;
    config->named_models = imcf->named;
    config->n_named_models = imcf->n_named;

    return ngx_http_inference_core_config_pack(imcf, 0, len, pool);
}


/* 0: none is kept. */

uint64_t
ngx_http_inference_core_config_generation(ngx_log_t *log)
{
    size_t                       len;
    u_char                      *data;
    uint64_t                     generation;
    NginxInference__CoreConfig  *config;

    data = ngx_http_inference_kept_bytes(NGX_HTTP_INFERENCE_KEEP_CONFIG, &len,
                                         log);
    if (data == NULL) {
        return 0;
    }

    config = nginx_inference__core_config__unpack(NULL, len, data);
    ngx_free(data);

    if (config == NULL) {
        return 0;
    }

    generation = config->generation;
    nginx_inference__core_config__free_unpacked(config, NULL);

    return generation;
}


static ngx_int_t
ngx_http_inference_core_config_same(u_char *data, size_t len, ngx_log_t *log)
{
    size_t      now_len;
    u_char     *now;
    ngx_int_t   rc;

    now = ngx_http_inference_kept_bytes(NGX_HTTP_INFERENCE_KEEP_CONFIG,
                                        &now_len, log);
    if (now == NULL) {
        return NGX_DECLINED;
    }

    rc = now_len == len && ngx_memcmp(now, data, len) == 0 ? NGX_OK
                                                           : NGX_DECLINED;
    ngx_free(now);

    return rc;
}


/* Serialises the options; default values are omitted. */

static u_char *
ngx_http_inference_core_config_pack(ngx_http_inference_main_conf_t *imcf,
    uint64_t generation, size_t *len, ngx_pool_t *pool)
{
    u_char                      *data;
    NginxInference__CoreConfig  *config;

    config = &imcf->config;
    config->generation = generation;

    inf_message_mark_set(&config->base);

    *len = nginx_inference__core_config__get_packed_size(config);

    data = ngx_pnalloc(pool, *len + 1);
    if (data != NULL) {
        (void) nginx_inference__core_config__pack(config, data);
    }

    return data;
}
