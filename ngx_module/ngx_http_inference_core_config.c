/*
 * The core's configuration: the directives as a serialised CoreConfig in a
 * memory file.  Its generation rises with each change, across reloads and
 * binary upgrades, so that the core can tell the newest.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core_config.pb-c.h"


typedef NginxInference__CoreConfig      ngx_http_inference_core_config_t;
typedef NginxInference__BackendSetting  ngx_http_inference_pb_setting_t;
typedef NginxInference__CudaPool        ngx_http_inference_pb_cuda_t;
typedef NginxInference__LogSettings     ngx_http_inference_pb_log_t;
typedef NginxInference__HostPolicySetting  ngx_http_inference_pb_policy_t;
typedef NginxInference__MetricsSettings    ngx_http_inference_pb_metrics_t;
typedef NginxInference__RateLimitResource  ngx_http_inference_pb_resource_t;


static const NginxInference__ModelControl
    ngx_http_inference_core_config_controls[] =
{
    NGINX_INFERENCE__MODEL_CONTROL__NONE,
    NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT,
    NGINX_INFERENCE__MODEL_CONTROL__POLL
};


static ngx_int_t ngx_http_inference_core_config_fill(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_loading(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_strings(ngx_array_t *array,
    char ***strings, size_t *n, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_settings(
    ngx_array_t *settings, ngx_http_inference_pb_setting_t ***messages,
    size_t *n, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_cache(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_cuda(
    ngx_http_inference_core_config_t *config, ngx_array_t *cuda,
    ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_log(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_policies(
    ngx_http_inference_core_config_t *config, ngx_array_t *settings,
    ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_metrics(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_metrics_t *metrics, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_resources(
    ngx_http_inference_core_config_t *config, ngx_array_t *resources,
    ngx_pool_t *pool);
static u_char *ngx_http_inference_core_config_pack(
    ngx_http_inference_core_config_t *config, uint64_t generation,
    size_t *len, ngx_pool_t *pool);
static ngx_int_t ngx_http_inference_core_config_same(u_char *data, size_t len,
    ngx_log_t *log);
static char *ngx_http_inference_core_config_string(ngx_str_t *value,
    ngx_pool_t *pool);


ngx_int_t
ngx_http_inference_core_config_update(ngx_http_inference_main_conf_t *imcf,
    ngx_log_t *log)
{
    size_t                            len;
    u_char                           *data;
    uint64_t                          generation;
    ngx_int_t                         rc;
    ngx_pool_t                       *pool;
    ngx_http_inference_core_config_t  config;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    if (ngx_http_inference_core_config_fill(&config, imcf, pool) != NGX_OK) {
        goto done;
    }

    generation = ngx_http_inference_core_config_generation(log);

    /* the same values would make the same bytes */

    data = ngx_http_inference_core_config_pack(&config, generation, &len,
                                               pool);
    if (data == NULL) {
        goto done;
    }

    if (ngx_http_inference_core_config_same(data, len, log) == NGX_OK) {
        rc = NGX_DECLINED;
        goto done;
    }

    data = ngx_http_inference_core_config_pack(&config, generation + 1, &len,
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
    ngx_http_inference_core_config_t  config;

    if (ngx_http_inference_core_config_fill(&config, imcf, pool) != NGX_OK) {
        return NULL;
    }

    return ngx_http_inference_core_config_pack(&config, 0, len, pool);
}


/* 0: there is none. */

uint64_t
ngx_http_inference_core_config_generation(ngx_log_t *log)
{
    size_t                             len;
    u_char                            *data;
    uint64_t                           generation;
    ngx_http_inference_core_config_t  *config;

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


static ngx_int_t
ngx_http_inference_core_config_fill(ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool)
{
    nginx_inference__core_config__init(config);

    if (ngx_http_inference_core_config_strings(&imcf->repositories,
                                               &config->repositories,
                                               &config->n_repositories, pool)
        != NGX_OK
        || ngx_http_inference_core_config_strings(&imcf->backends,
                                         &config->backend_directories,
                                         &config->n_backend_directories, pool)
           != NGX_OK
        || ngx_http_inference_core_config_strings(&imcf->load_models,
                                                  &config->load_models,
                                                  &config->n_load_models,
                                                  pool)
           != NGX_OK
        || ngx_http_inference_core_config_strings(&imcf->agents,
                                           &config->agent_directories,
                                           &config->n_agent_directories, pool)
           != NGX_OK
        || ngx_http_inference_core_config_settings(&imcf->settings,
                                         &config->backend_settings,
                                         &config->n_backend_settings, pool)
           != NGX_OK
        || ngx_http_inference_core_config_cache(config, imcf, pool) != NGX_OK
        || ngx_http_inference_core_config_cuda(config, &imcf->cuda, pool)
           != NGX_OK
        || ngx_http_inference_core_config_log(config, imcf, pool) != NGX_OK
        || ngx_http_inference_core_config_policies(config,
                                                   &imcf->host_policies, pool)
           != NGX_OK
        || ngx_http_inference_core_config_metrics(config, &imcf->metrics,
                                                  pool)
           != NGX_OK
        || ngx_http_inference_core_config_resources(config,
                                                    &imcf->rate_resources,
                                                    pool)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    config->has_model_control = 1;
    config->model_control = ngx_http_inference_core_config_controls[
                                                               imcf->control];
    config->has_poll_interval_ms = 1;
    config->poll_interval_ms = imcf->poll;
    config->has_poll_inotify = 1;
    config->poll_inotify = (imcf->inotify != 0);
    config->has_rate_limit = 1;
    config->rate_limit = (NginxInference__RateLimit) imcf->rate_limit;

    config->has_pinned_pool_bytes = 1;
    config->pinned_pool_bytes = (uint64_t) imcf->pinned;

    config->has_drain_ms = 1;
    config->drain_ms = imcf->drain;

    config->has_auto_complete = 1;
    config->auto_complete = (imcf->auto_complete != 0);

    config->has_strict_readiness = 1;
    config->strict_readiness = (imcf->strict_readiness != 0);

    config->has_dump = 1;
    config->dump = (imcf->dump != 0);

    config->has_spin_us = 1;
    config->spin_us = imcf->spin_us;

    return ngx_http_inference_core_config_loading(config, imcf, pool);
}


static ngx_int_t
ngx_http_inference_core_config_loading(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool)
{
    config->has_model_namespacing = 1;
    config->model_namespacing = (imcf->namespacing != 0);

    config->has_load_threads = 1;
    config->load_threads = (uint32_t) imcf->load_threads;

    config->has_load_retries = 1;
    config->load_retries = (uint32_t) imcf->load_retries;

    config->has_code_upload = 1;
    config->code_upload = (imcf->code_upload != 0);

    config->has_peer_access = 1;
    config->peer_access = (imcf->peer_access != 0);

    if (imcf->config_name.len == 0) {
        return NGX_OK;
    }

    config->model_config_name = ngx_http_inference_core_config_string(
                                                    &imcf->config_name, pool);

    return config->model_config_name != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_inference_core_config_strings(ngx_array_t *array, char ***strings,
    size_t *n, ngx_pool_t *pool)
{
    ngx_str_t   *value;
    ngx_uint_t   i;

    if (array->nelts == 0) {
        return NGX_OK;
    }

    *strings = ngx_palloc(pool, array->nelts * sizeof(char *));
    if (*strings == NULL) {
        return NGX_ERROR;
    }

    value = array->elts;

    for (i = 0; i < array->nelts; i++) {
        (*strings)[i] = ngx_http_inference_core_config_string(&value[i],
                                                              pool);
        if ((*strings)[i] == NULL) {
            return NGX_ERROR;
        }
    }

    *n = array->nelts;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_config_cache(ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool)
{
    if (imcf->cache.len == 0) {
        return NGX_OK;
    }

    config->cache_name = ngx_http_inference_core_config_string(&imcf->cache,
                                                               pool);

    if (config->cache_name == NULL
        || ngx_http_inference_core_config_settings(&imcf->cache_settings,
                                          &config->cache_settings,
                                          &config->n_cache_settings, pool)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_core_config_strings(&imcf->cache_folders,
                                             &config->cache_directories,
                                             &config->n_cache_directories,
                                             pool);
}


static ngx_int_t
ngx_http_inference_core_config_settings(ngx_array_t *settings,
    ngx_http_inference_pb_setting_t ***messages, size_t *n, ngx_pool_t *pool)
{
    ngx_uint_t                        i;
    ngx_http_inference_setting_t     *setting;
    ngx_http_inference_pb_setting_t  *message;

    if (settings->nelts == 0) {
        return NGX_OK;
    }

    *messages = ngx_palloc(pool, settings->nelts * sizeof(message));
    if (*messages == NULL) {
        return NGX_ERROR;
    }

    setting = settings->elts;

    for (i = 0; i < settings->nelts; i++) {
        message = ngx_palloc(pool, sizeof(*message));
        if (message == NULL) {
            return NGX_ERROR;
        }

        nginx_inference__backend_setting__init(message);

        message->backend =
            ngx_http_inference_core_config_string(&setting[i].backend, pool);
        message->key =
            ngx_http_inference_core_config_string(&setting[i].key, pool);
        message->value =
            ngx_http_inference_core_config_string(&setting[i].value, pool);

        if (message->backend == NULL || message->key == NULL
            || message->value == NULL)
        {
            return NGX_ERROR;
        }

        (*messages)[i] = message;
    }

    *n = settings->nelts;

    return NGX_OK;
}


/* "dev:size", both checked when they were read */

static ngx_int_t
ngx_http_inference_core_config_cuda(ngx_http_inference_core_config_t *config,
    ngx_array_t *cuda, ngx_pool_t *pool)
{
    u_char                        *colon;
    ngx_str_t                     *value, size;
    ngx_uint_t                     i;
    ngx_http_inference_pb_cuda_t  *message;

    if (cuda->nelts == 0) {
        return NGX_OK;
    }

    config->cuda_pools = ngx_palloc(pool, cuda->nelts * sizeof(message));
    if (config->cuda_pools == NULL) {
        return NGX_ERROR;
    }

    value = cuda->elts;

    for (i = 0; i < cuda->nelts; i++) {
        message = ngx_palloc(pool, sizeof(*message));
        if (message == NULL) {
            return NGX_ERROR;
        }

        colon = ngx_strlchr(value[i].data, value[i].data + value[i].len, ':');
        size.data = colon + 1;
        size.len = value[i].data + value[i].len - size.data;

        nginx_inference__cuda_pool__init(message);

        message->has_device = 1;
        message->device = (int32_t) ngx_atoi(value[i].data,
                                             colon - value[i].data);
        message->has_bytes = 1;
        message->bytes = (uint64_t) ngx_parse_offset(&size);

        config->cuda_pools[i] = message;
    }

    config->n_cuda_pools = cuda->nelts;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_config_log(ngx_http_inference_core_config_t *config,
    ngx_http_inference_main_conf_t *imcf, ngx_pool_t *pool)
{
    ngx_http_inference_pb_log_t  *message;

    message = ngx_palloc(pool, sizeof(*message));
    if (message == NULL) {
        return NGX_ERROR;
    }

    nginx_inference__log_settings__init(message);

    message->has_info = 1;
    message->info = imcf->log_level < 1;

    message->has_warn = 1;
    message->warn = imcf->log_level < 2;

    message->has_error = 1;
    message->error = 1;

    message->has_verbose = 1;
    message->verbose = (int32_t) imcf->log_verbose;

    config->log = message;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_config_policies(
    ngx_http_inference_core_config_t *config, ngx_array_t *settings,
    ngx_pool_t *pool)
{
    ngx_uint_t                       i;
    ngx_http_inference_setting_t    *setting;
    ngx_http_inference_pb_policy_t  *message;

    if (settings->nelts == 0) {
        return NGX_OK;
    }

    config->host_policies = ngx_palloc(pool, settings->nelts
                                             * sizeof(message));
    if (config->host_policies == NULL) {
        return NGX_ERROR;
    }

    setting = settings->elts;

    for (i = 0; i < settings->nelts; i++) {
        message = ngx_palloc(pool, sizeof(*message));
        if (message == NULL) {
            return NGX_ERROR;
        }

        nginx_inference__host_policy_setting__init(message);

        message->policy = ngx_http_inference_core_config_string(
                                                  &setting[i].backend, pool);
        message->key = ngx_http_inference_core_config_string(&setting[i].key,
                                                             pool);
        message->value = ngx_http_inference_core_config_string(
                                                    &setting[i].value, pool);

        if (message->policy == NULL || message->key == NULL
            || message->value == NULL)
        {
            return NGX_ERROR;
        }

        config->host_policies[i] = message;
    }

    config->n_host_policies = settings->nelts;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_config_metrics(
    ngx_http_inference_core_config_t *config,
    ngx_http_inference_metrics_t *metrics, ngx_pool_t *pool)
{
    ngx_http_inference_pb_metrics_t  *message;

    if (!metrics->set) {
        return NGX_OK;
    }

    message = ngx_palloc(pool, sizeof(*message));
    if (message == NULL) {
        return NGX_ERROR;
    }

    nginx_inference__metrics_settings__init(message);

    message->has_cpu = 1;
    message->cpu = (metrics->cpu != 0);

    message->has_gpu = 1;
    message->gpu = (metrics->gpu != 0);

    message->has_counters = 1;
    message->counters = (metrics->counters != 0);

    message->has_histograms = 1;
    message->histograms = (metrics->histograms != 0);

    message->has_summaries = 1;
    message->summaries = (metrics->summaries != 0);

    message->has_interval_ms = 1;
    message->interval_ms = metrics->interval;

    message->quantiles = ngx_http_inference_core_config_string(
                                               &metrics->quantiles, pool);
    if (message->quantiles == NULL) {
        return NGX_ERROR;
    }

    config->metrics = message;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_core_config_resources(
    ngx_http_inference_core_config_t *config, ngx_array_t *resources,
    ngx_pool_t *pool)
{
    ngx_uint_t                         i;
    ngx_http_inference_resource_t     *resource;
    ngx_http_inference_pb_resource_t  *message;

    if (resources->nelts == 0) {
        return NGX_OK;
    }

    config->rate_limit_resources = ngx_palloc(pool, resources->nelts
                                                    * sizeof(message));
    if (config->rate_limit_resources == NULL) {
        return NGX_ERROR;
    }

    resource = resources->elts;

    for (i = 0; i < resources->nelts; i++) {
        message = ngx_palloc(pool, sizeof(*message));
        if (message == NULL) {
            return NGX_ERROR;
        }

        nginx_inference__rate_limit_resource__init(message);

        message->name = ngx_http_inference_core_config_string(
                                                     &resource[i].name, pool);
        if (message->name == NULL) {
            return NGX_ERROR;
        }

        message->has_count = 1;
        message->count = resource[i].count;
        message->has_device = 1;
        message->device = (int32_t) resource[i].device;

        config->rate_limit_resources[i] = message;
    }

    config->n_rate_limit_resources = resources->nelts;

    return NGX_OK;
}


static u_char *
ngx_http_inference_core_config_pack(ngx_http_inference_core_config_t *config,
    uint64_t generation, size_t *len, ngx_pool_t *pool)
{
    u_char  *data;

    config->has_generation = 1;
    config->generation = generation;

    *len = nginx_inference__core_config__get_packed_size(config);

    data = ngx_pnalloc(pool, *len);
    if (data != NULL) {
        (void) nginx_inference__core_config__pack(config, data);
    }

    return data;
}


static char *
ngx_http_inference_core_config_string(ngx_str_t *value, ngx_pool_t *pool)
{
    u_char  *p;

    p = ngx_pnalloc(pool, value->len + 1);
    if (p != NULL) {
        (void) ngx_cpystrn(p, value->data, value->len + 1);
    }

    return (char *) p;
}
