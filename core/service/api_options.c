/* api_options.c - what a program that embeds the core may set, kept as the
   configuration that the core reads anyway. */

#include "core/service/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/config_name.h"
#include "core/base/host_setting.h"
#include "core/base/log.h"
#include "core/base/log_stream.h"
#include "core/proto/message.h"

static inf_err_t *set_text(char **field, const char *value);
static inf_err_t *add_text(char ***list, size_t *count, const char *text);
static inf_err_t *add_setting(TRITONSERVER_ServerOptions *options,
    const char *backend, const char *key, const char *value);
static inf_err_t *add_host_setting(TRITONSERVER_ServerOptions *options,
    const char *policy, const char *key, const char *value);
static void free_lists(NginxInference__CoreConfig *c);
static inf_err_t *set_device_bytes(NginxInference__CudaPool ***list,
    size_t *count, int device, uint64_t bytes);
static void set_log(TRITONSERVER_LogLevel level, bool on);
static int by_text(const void *a, const void *b);

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options)
{
    TRITONSERVER_ServerOptions *o = calloc(1, sizeof(*o));
    *options = o;
    if (o == NULL) {
        return inf_err_nomem();
    }

    nginx_inference__core_config__init(&o->config);
    o->config.model_control = NGINX_INFERENCE__MODEL_CONTROL__POLL;
    o->config.auto_complete = false;
    nginx_inference__metrics_settings__init(&o->metrics);
    o->config.metrics = &o->metrics;
    o->config.peer_access = false;
    /* a program that embeds us runs its own code anyway */
    o->config.code_upload = true;
    o->exit_on_error = true;
    o->backend_dir = strdup("/opt/tritonserver/backends");
    o->cache_dir = strdup("/opt/tritonserver/caches");
    o->agent_dir = strdup("/opt/tritonserver/repoagents");
    if (o->backend_dir == NULL || o->cache_dir == NULL
        || o->agent_dir == NULL)
    {
        free(o->backend_dir);
        free(o->cache_dir);
        free(o->agent_dir);
        free(o);
        *options = NULL;
        return inf_err_nomem();
    }

    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options)
{
    if (options == NULL) {
        return NULL;
    }

    NginxInference__CoreConfig *c = &options->config;
    for (size_t i = 0; i < c->n_repositories; i++) {
        free(c->repositories[i]);
    }
    for (size_t i = 0; i < c->n_load_models; i++) {
        free(c->load_models[i]);
    }
    for (size_t i = 0; i < c->n_backend_settings; i++) {
        free(c->backend_settings[i]->backend);
        free(c->backend_settings[i]->key);
        free(c->backend_settings[i]->value);
        free(c->backend_settings[i]);
    }
    for (size_t i = 0; i < c->n_cuda_pools; i++) {
        free(c->cuda_pools[i]);
    }
    for (size_t i = 0; i < c->n_cuda_virtual_sizes; i++) {
        free(c->cuda_virtual_sizes[i]);
    }

    free_lists(c);
    free(options->model_config_name);
    free(options->quantiles);
    free(c->repositories);
    free(c->load_models);
    free(c->backend_settings);
    free(c->cuda_pools);
    free(c->cuda_virtual_sizes);
    free(options->server_id);
    free(options->backend_dir);
    free(options->cache_name);
    free(options->cache_config);
    free(options->cache_dir);
    free(options->agent_dir);
    free(options);
    return NULL;
}

inf_err_t *
inf_api_options_config(const TRITONSERVER_ServerOptions *options,
    NginxInference__CoreConfig **out)
{
    NginxInference__CoreConfig c = options->config;
    char *dirs[1] = { options->backend_dir };
    char *cache_dirs[1] = { options->cache_dir };
    char *agent_dirs[1] = { options->agent_dir };
    char number[32];
    NginxInference__BackendSetting compute =
        NGINX_INFERENCE__BACKEND_SETTING__INIT;
    ProtobufCMessage *clone;

    if (options->server_id != NULL) {
        c.server_id = options->server_id;
    }
    if (options->model_config_name != NULL) {
        c.model_config_name = options->model_config_name;
    }
    NginxInference__MetricsSettings metrics = options->metrics;
    if (options->quantiles != NULL) {
        metrics.quantiles = options->quantiles;
    }
    c.metrics = &metrics;
    c.backend_directories = dirs;
    c.n_backend_directories = 1;
    if (options->cache_name != NULL) {
        c.cache_name = options->cache_name;
        c.cache_config = options->cache_config;
        c.cache_directories = cache_dirs;
        c.n_cache_directories = 1;
    }
    c.agent_directories = agent_dirs;
    c.n_agent_directories = 1;

    /* the core's own default stands unless the program gave another */
    NginxInference__BackendSetting **settings = calloc(
        c.n_backend_settings + 1, sizeof(NginxInference__BackendSetting *));
    if (settings == NULL) {
        return inf_err_nomem();
    }
    if (c.n_backend_settings > 0) {
        memcpy(settings, c.backend_settings,
            c.n_backend_settings * sizeof(*settings));
    }
    if (options->has_min_compute) {
        snprintf(number, sizeof(number), "%f", options->min_compute);
        compute.key = "min-compute-capability";
        compute.value = number;
        settings[c.n_backend_settings++] = &compute;
    }
    c.backend_settings = settings;

    inf_message_mark_set(&c.base);
    inf_err_t *err = inf_message_clone(&c.base, &clone);
    free(settings);
    if (err == NULL) {
        *out = (NginxInference__CoreConfig *) (void *) clone;
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options,
    const char *server_id)
{
    return set_text(&options->server_id, server_id);
}

/* A set, in the order of its texts. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    TRITONSERVER_ServerOptions *options, const char *model_repository_path)
{
    NginxInference__CoreConfig *c = &options->config;

    inf_err_t *err = add_text(&c->repositories, &c->n_repositories,
        model_repository_path);
    if (err == NULL) {
        qsort(c->repositories, c->n_repositories, sizeof(*c->repositories),
            by_text);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(
    TRITONSERVER_ServerOptions *options, TRITONSERVER_ModelControlMode mode)
{
    switch (mode) {
    case TRITONSERVER_MODEL_CONTROL_NONE:
        options->config.model_control = NGINX_INFERENCE__MODEL_CONTROL__NONE;
        return NULL;
    case TRITONSERVER_MODEL_CONTROL_POLL:
        options->config.model_control = NGINX_INFERENCE__MODEL_CONTROL__POLL;
        return NULL;
    case TRITONSERVER_MODEL_CONTROL_EXPLICIT:
        options->config.model_control =
            NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT;
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown control mode '%d'",
        (int) mode);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
    const char *model_name)
{
    return add_text(&options->config.load_models,
        &options->config.n_load_models, model_name);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(
    TRITONSERVER_ServerOptions *options, bool strict)
{
    options->config.auto_complete = !strict;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(
    TRITONSERVER_ServerOptions *options, const char *model_config_name)
{
    const char *name = model_config_name != NULL ? model_config_name : "";

    const char *problem = name[0] != '\0'
        ? inf_config_name_problem(name, strlen(name)) : NULL;

    if (problem != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model configuration name "
            "'%s': %s", name, problem);
    }
    return set_text(&options->model_config_name, name);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(
    TRITONSERVER_ServerOptions *options, TRITONSERVER_RateLimitMode mode)
{
    switch (mode) {
    case TRITONSERVER_RATE_LIMIT_OFF:
        options->config.rate_limit =
            NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_OFF;
        return NULL;
    case TRITONSERVER_RATE_LIMIT_EXEC_COUNT:
        options->config.rate_limit =
            NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_EXECUTION_COUNT;
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown rate limit mode '%d'",
        (int) mode);
}

/* Of one resource and device the smallest count stays. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(
    TRITONSERVER_ServerOptions *options, const char *resource_name,
    const size_t resource_count, const int device)
{
    NginxInference__CoreConfig *c = &options->config;

    for (size_t i = 0; i < c->n_rate_limit_resources; i++) {
        NginxInference__RateLimitResource *r = c->rate_limit_resources[i];
        if (r->device == device && strcmp(r->name, resource_name) == 0) {
            r->count = resource_count < r->count ? resource_count : r->count;
            return NULL;
        }
    }

    NginxInference__RateLimitResource *r = malloc(sizeof(*r));
    char *name = strdup(resource_name);
    NginxInference__RateLimitResource **wider = realloc(
        c->rate_limit_resources, (c->n_rate_limit_resources + 1)
            * sizeof(NginxInference__RateLimitResource *));
    if (wider != NULL) {
        c->rate_limit_resources = wider;
    }
    if (r == NULL || name == NULL || wider == NULL) {
        free(r);
        free(name);
        return inf_err_nomem();
    }

    nginx_inference__rate_limit_resource__init(r);
    r->name = name;
    r->count = resource_count;
    r->device = device;
    wider[c->n_rate_limit_resources++] = r;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, uint64_t size)
{
    options->config.pinned_pool_bytes = size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, uint64_t size)
{
    NginxInference__CoreConfig *c = &options->config;
    return set_device_bytes(&c->cuda_pools, &c->n_cuda_pools, gpu_device,
        size);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device,
    size_t cuda_virtual_address_size)
{
    NginxInference__CoreConfig *c = &options->config;
    return set_device_bytes(&c->cuda_virtual_sizes, &c->n_cuda_virtual_sizes,
        gpu_device, cuda_virtual_address_size);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
    TRITONSERVER_ServerOptions *options, uint64_t size)
{
    char json[64];
    if (size == 0) {
        return NULL;
    }

    snprintf(json, sizeof(json), "{\"size\":%llu}", (unsigned long long) size);
    return TRITONSERVER_ServerOptionsSetCacheConfig(options, "local", json);
}

/* One cache a server; its configuration may be given again. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
    const char *cache_name, const char *config_json)
{
    if (options->cache_name != NULL
        && strcmp(options->cache_name, cache_name) != 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "response cache \"%s\": a"
            " server has one, and \"%s\" is configured", cache_name,
            options->cache_name);
    }

    inf_err_t *err = set_text(&options->cache_name, cache_name);
    return err != NULL ? err : set_text(&options->cache_config, config_json);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(
    TRITONSERVER_ServerOptions *options, const char *cache_dir)
{
    return set_text(&options->cache_dir, cache_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    TRITONSERVER_ServerOptions *options, double cc)
{
    options->min_compute = cc;
    options->has_min_compute = true;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options,
    bool exit)
{
    options->exit_on_error = exit;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(
    TRITONSERVER_ServerOptions *options, bool strict)
{
    options->config.strict_readiness = strict;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options,
    unsigned int timeout)
{
    options->config.drain_ms = (uint64_t) timeout * 1000;
    return NULL;
}

/* Gathering inputs is the backend's here, and the core's few copies go to a
   GPU's own queue: there are no such threads. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(
    TRITONSERVER_ServerOptions *options, unsigned int thread_count)
{
    (void) options;
    (void) thread_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
    TRITONSERVER_ServerOptions *options, unsigned int thread_count)
{
    options->config.load_threads = thread_count > 0 ? thread_count : 1;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    TRITONSERVER_ServerOptions *options, unsigned int retry_count)
{
    options->config.load_retries = retry_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(
    TRITONSERVER_ServerOptions *options, bool enable_namespace)
{
    options->config.model_namespacing = enable_namespace;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    TRITONSERVER_ServerOptions *options, bool enable_peer_access)
{
    options->config.peer_access = enable_peer_access;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options,
    const char *file)
{
    (void) options;
    return inf_log_stream_open(file);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options,
    bool log)
{
    (void) options;
    set_log(TRITONSERVER_LOG_INFO, log);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options,
    bool log)
{
    (void) options;
    set_log(TRITONSERVER_LOG_WARN, log);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options,
    bool log)
{
    (void) options;
    set_log(TRITONSERVER_LOG_ERROR, log);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
    const TRITONSERVER_LogFormat format)
{
    (void) options;

    switch (format) {
    case TRITONSERVER_LOG_DEFAULT:
        inf_log_stream_set_format(INF_LOG_DEFAULT);
        return NULL;
    case TRITONSERVER_LOG_ISO8601:
        inf_log_stream_set_format(INF_LOG_ISO8601);
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown log format '%d'",
        (int) format);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options,
    int level)
{
    (void) options;
    inf_log_set_levels(inf_log_enabled(INF_LOG_INFO),
        inf_log_enabled(INF_LOG_WARN), inf_log_enabled(INF_LOG_ERROR), level);
    return NULL;
}

/* Statistics are counted whatever is set; these choose what the metrics text
   of the server holds. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options,
    bool metrics)
{
    options->metrics.enabled = metrics;
    return NULL;
}

/* There are no families of GPUs yet. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options,
    bool gpu_metrics)
{
    options->metrics.gpu = gpu_metrics;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options,
    bool cpu_metrics)
{
    options->metrics.cpu = cpu_metrics;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(
    TRITONSERVER_ServerOptions *options, uint64_t metrics_interval_ms)
{
    options->metrics.interval_ms = metrics_interval_ms;
    return NULL;
}

/* Settings of other names (of caches, say) are nobody's here. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options,
    const char *name, const char *setting, const char *value)
{
    NginxInference__MetricsSettings *m = &options->metrics;
    bool on = strcmp(value, "true") == 0;

    if (name != NULL && name[0] != '\0') {
        inf_log(INF_LOG_WARN, "metrics setting \"%s\" of \"%s\" has no"
            " effect", setting, name);
    } else if (strcmp(setting, "counter_latencies") == 0) {
        m->counters = on;
    } else if (strcmp(setting, "histogram_latencies") == 0) {
        m->histograms = on;
    } else if (strcmp(setting, "summary_latencies") == 0) {
        m->summaries = on;
    } else if (strcmp(setting, "summary_quantiles") == 0) {
        return set_text(&options->quantiles, value);
    } else {
        inf_log(INF_LOG_WARN, "metrics setting \"%s\" is unknown and has no"
            " effect", setting);
    }

    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(
    TRITONSERVER_ServerOptions *options, const char *backend_dir)
{
    return set_text(&options->backend_dir, backend_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    TRITONSERVER_ServerOptions *options, const char *repoagent_dir)
{
    if (repoagent_dir[0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "the directory of repository"
            " agents must not be empty");
    }

    return set_text(&options->agent_dir, repoagent_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    TRITONSERVER_ServerOptions *options,
    const TRITONSERVER_InstanceGroupKind kind, const int device_id,
    const double fraction)
{
    char key[64], value[32];

    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return inf_err_new(INF_ERR_INVALID_ARG, "given device kind is not"
            " supported, got: %s", TRITONSERVER_InstanceGroupKindString(kind));
    }
    if (device_id < 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "expects device ID >= 0, got %d", device_id);
    }
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "expects limit fraction in range [0.0, 1.0], got %f", fraction);
    }

    snprintf(key, sizeof(key), "model-load-gpu-limit-device-%d", device_id);
    snprintf(value, sizeof(value), "%f", fraction);
    return add_setting(options, "", key, value);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
    const char *backend_name, const char *setting, const char *value)
{
    return add_setting(options, backend_name, setting, value);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
    const char *policy_name, const char *setting, const char *value)
{
    inf_err_t *err = inf_host_setting_check(setting, value);
    return err != NULL ? err : add_host_setting(options, policy_name, setting,
        value);
}

static inf_err_t *
set_text(char **field, const char *value)
{
    char *copy = strdup(value);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    free(*field);
    *field = copy;
    return NULL;
}

/* Unless it is there already. */
static inf_err_t *
add_text(char ***list, size_t *count, const char *text)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*list)[i], text) == 0) {
            return NULL;
        }
    }

    char *copy = strdup(text);
    char **wider = realloc(*list, (*count + 1) * sizeof(char *));
    if (wider != NULL) {
        *list = wider;
    }
    if (copy == NULL || wider == NULL) {
        free(copy);
        return inf_err_nomem();
    }

    wider[(*count)++] = copy;
    return NULL;
}

static inf_err_t *
add_setting(TRITONSERVER_ServerOptions *options, const char *backend,
    const char *key, const char *value)
{
    NginxInference__CoreConfig *c = &options->config;
    NginxInference__BackendSetting *s = malloc(sizeof(*s));
    NginxInference__BackendSetting **wider = realloc(c->backend_settings,
        (c->n_backend_settings + 1)
            * sizeof(NginxInference__BackendSetting *));

    if (wider != NULL) {
        c->backend_settings = wider;
    }
    if (s == NULL || wider == NULL) {
        free(s);
        return inf_err_nomem();
    }

    nginx_inference__backend_setting__init(s);
    s->backend = strdup(backend);
    s->key = strdup(key);
    s->value = strdup(value);
    if (s->backend == NULL || s->key == NULL || s->value == NULL) {
        free(s->backend);
        free(s->key);
        free(s->value);
        free(s);
        return inf_err_nomem();
    }

    wider[c->n_backend_settings++] = s;
    return NULL;
}

static inf_err_t *
add_host_setting(TRITONSERVER_ServerOptions *options, const char *policy,
    const char *key, const char *value)
{
    NginxInference__CoreConfig *c = &options->config;
    NginxInference__HostPolicySetting *s = calloc(1, sizeof(*s));
    NginxInference__HostPolicySetting **wider = realloc(c->host_policies,
        (c->n_host_policies + 1)
            * sizeof(NginxInference__HostPolicySetting *));

    if (wider != NULL) {
        c->host_policies = wider;
    }
    if (s == NULL || wider == NULL) {
        free(s);
        return inf_err_nomem();
    }

    nginx_inference__host_policy_setting__init(s);
    s->policy = strdup(policy);
    s->key = strdup(key);
    s->value = strdup(value);
    if (s->policy == NULL || s->key == NULL || s->value == NULL) {
        free(s->policy);
        free(s->key);
        free(s->value);
        free(s);
        return inf_err_nomem();
    }

    wider[c->n_host_policies++] = s;
    return NULL;
}

static void
free_lists(NginxInference__CoreConfig *c)
{
    for (size_t i = 0; i < c->n_host_policies; i++) {
        free(c->host_policies[i]->policy);
        free(c->host_policies[i]->key);
        free(c->host_policies[i]->value);
        free(c->host_policies[i]);
    }
    for (size_t i = 0; i < c->n_rate_limit_resources; i++) {
        free(c->rate_limit_resources[i]->name);
        free(c->rate_limit_resources[i]);
    }

    free(c->host_policies);
    free(c->rate_limit_resources);
}

/* The last word on a device counts. */
static inf_err_t *
set_device_bytes(NginxInference__CudaPool ***list, size_t *count, int device,
    uint64_t bytes)
{
    for (size_t i = 0; i < *count; i++) {
        if ((*list)[i]->device == device) {
            (*list)[i]->bytes = bytes;
            return NULL;
        }
    }

    NginxInference__CudaPool *pool = malloc(sizeof(*pool));
    NginxInference__CudaPool **wider = realloc(*list,
        (*count + 1) * sizeof(NginxInference__CudaPool *));
    if (wider != NULL) {
        *list = wider;
    }
    if (pool == NULL || wider == NULL) {
        free(pool);
        return inf_err_nomem();
    }

    nginx_inference__cuda_pool__init(pool);
    pool->device = device;
    pool->bytes = bytes;
    wider[(*count)++] = pool;
    return NULL;
}

/* The process's log, at once. */
static void
set_log(TRITONSERVER_LogLevel level, bool on)
{
    bool now[3] = {
        inf_log_enabled(INF_LOG_INFO), inf_log_enabled(INF_LOG_WARN),
        inf_log_enabled(INF_LOG_ERROR)
    };

    now[level] = on;
    inf_log_set_levels(now[0], now[1], now[2], inf_log_verbose_level());
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}
