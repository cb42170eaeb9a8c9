/* api_options.c - options of an embedding program: the values of the core's
   configuration. */

#include "core/abi/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/config_name.h"
#include "core/base/host_setting.h"
#include "core/base/log.h"
#include "core/base/log_stream.h"
#include "core/proto/message.h"
#include "core/proto/number.h"

static inf_err_t *set_text(TRITONSERVER_ServerOptions *options,
    const char *name, const char *value);
static inf_err_t *add_text(TRITONSERVER_ServerOptions *options,
    const char *name, const char *text);
static inf_err_t *set_directory(TRITONSERVER_ServerOptions *options,
    const char *name, const char *value);
static inf_err_t *add_setting(NginxInference__CoreConfig *values,
    const char *name, const char *owner, const char *key, const char *value);
static inf_err_t *set_device_bytes(TRITONSERVER_ServerOptions *options,
    const char *name, int device, uint64_t bytes);
static const ProtobufCFieldDescriptor *field(const char *name);
static void drop_last(NginxInference__CoreConfig *values,
    const ProtobufCFieldDescriptor *f);
static void set_log(TRITONSERVER_LogLevel level, bool on);
static int by_text(const void *a, const void *b);

/* The defaults differ from those of nginx's directives. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options)
{
    NginxInference__CoreConfig usual = NGINX_INFERENCE__CORE_CONFIG__INIT;
    TRITONSERVER_ServerOptions *o = calloc(1, sizeof(*o));
    *options = NULL;
    if (o == NULL) {
        return inf_err_nomem();
    }

    usual.model_control = NGINX_INFERENCE__MODEL_CONTROL__POLL;
    usual.auto_complete = false;
    usual.peer_access = false;
    usual.code_upload = true;       /* the program can run its own code
                                       anyway                                */
    o->exit_on_error = true;
    inf_err_t *err = inf_core_config_new(&usual, &o->config);
    if (err == NULL) {
        err = set_directory(o, "backend_directories",
            "/opt/tritonserver/backends");
    }
    if (err == NULL) {
        err = set_directory(o, "cache_directories",
            "/opt/tritonserver/caches");
    }
    if (err == NULL) {
        err = set_directory(o, "agent_directories",
            "/opt/tritonserver/repoagents");
    }
    if (err != NULL) {
        TRITONSERVER_ServerOptionsDelete(o);
        return err;
    }

    *options = o;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options)
{
    if (options != NULL) {
        inf_core_config_unref(options->config);
        free(options);
    }
    return NULL;
}

/* The core's default for the least compute capability stays, unless the program
   set one: the last setting of the name counts. */
inf_err_t *
inf_api_options_config(const TRITONSERVER_ServerOptions *options,
    inf_core_config_t **out)
{
    char number[INF_NUMBER_MAX_FIXED];

    inf_err_t *err = inf_core_config_new(options->config->values, out);
    if (err != NULL || !options->has_min_compute) {
        return err;
    }

    (void) inf_number_write_fixed(number, options->min_compute);
    err = add_setting((*out)->values, "backend_settings", "",
        INF_MIN_CAPABILITY_KEY, number);
    if (err != NULL) {
        inf_core_config_unref(*out);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options,
    const char *server_id)
{
    return set_text(options, "server_id", server_id);
}

/* The paths are a set, in order of addition. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    TRITONSERVER_ServerOptions *options, const char *model_repository_path)
{
    NginxInference__CoreConfig *c = options->config->values;

    inf_err_t *err = add_text(options, "repositories", model_repository_path);
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
    NginxInference__CoreConfig *c = options->config->values;

    switch (mode) {
    case TRITONSERVER_MODEL_CONTROL_NONE:
        c->model_control = NGINX_INFERENCE__MODEL_CONTROL__NONE;
        return NULL;
    case TRITONSERVER_MODEL_CONTROL_POLL:
        c->model_control = NGINX_INFERENCE__MODEL_CONTROL__POLL;
        return NULL;
    case TRITONSERVER_MODEL_CONTROL_EXPLICIT:
        c->model_control = NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT;
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown control mode '%d'",
        (int) mode);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
    const char *model_name)
{
    return add_text(options, "load_models", model_name);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(
    TRITONSERVER_ServerOptions *options, bool strict)
{
    options->config->values->auto_complete = !strict;
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
    return set_text(options, "model_config_name", name);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(
    TRITONSERVER_ServerOptions *options, TRITONSERVER_RateLimitMode mode)
{
    switch (mode) {
    case TRITONSERVER_RATE_LIMIT_OFF:
        options->config->values->rate_limit =
            NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_OFF;
        return NULL;
    case TRITONSERVER_RATE_LIMIT_EXEC_COUNT:
        options->config->values->rate_limit =
            NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_EXECUTION_COUNT;
        return NULL;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown rate limit mode '%d'",
        (int) mode);
}

/* Of one resource and device the smallest count is kept. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(
    TRITONSERVER_ServerOptions *options, const char *resource_name,
    const size_t resource_count, const int device)
{
    NginxInference__CoreConfig *c = options->config->values;

    for (size_t i = 0; i < c->n_rate_limit_resources; i++) {
        NginxInference__RateLimitResource *r = c->rate_limit_resources[i];
        if (r->device == device && strcmp(r->name, resource_name) == 0) {
            r->count = resource_count < r->count ? resource_count : r->count;
            return NULL;
        }
    }

    ProtobufCMessage *made;
    inf_err_t *err = inf_field_put_message(&c->base,
        field("rate_limit_resources"), &made);
    if (err != NULL) {
        return err;
    }

    NginxInference__RateLimitResource *r = (void *) made;
    r->count = resource_count;
    r->device = device;
    err = inf_field_put(made, &made->descriptor->fields[0],
        (inf_scalar_t) { .s = inf_slice_str(resource_name) });
    if (err != NULL) {
        drop_last(c, field("rate_limit_resources"));
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, uint64_t size)
{
    options->config->values->pinned_pool_bytes = size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, uint64_t size)
{
    return set_device_bytes(options, "cuda_pools", gpu_device, size);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device,
    size_t cuda_virtual_address_size)
{
    return set_device_bytes(options, "cuda_virtual_sizes", gpu_device,
        cuda_virtual_address_size);
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

/* A server has one cache, whose configuration may be set again; a second one is
   an error when the server starts. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
    const char *cache_name, const char *config_json)
{
    const char *now = options->config->values->cache_name;

    if (inf_slice_str(cache_name).len == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a response cache needs a name");
    }
    if (now[0] != '\0' && strcmp(now, cache_name) != 0) {
        options->several_caches = true;
        return NULL;
    }

    inf_err_t *err = set_text(options, "cache_name", cache_name);
    return err != NULL ? err : set_text(options, "cache_config", config_json);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(
    TRITONSERVER_ServerOptions *options, const char *cache_dir)
{
    return set_directory(options, "cache_directories", cache_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    TRITONSERVER_ServerOptions *options, double cc)
{
    options->min_compute = cc < 0 ? 0 : cc;     /* every GPU                 */
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
    options->config->values->strict_readiness = strict;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options,
    unsigned int timeout)
{
    options->config->values->drain_ms = (uint64_t) timeout * 1000;
    return NULL;
}

/* Has no effect: backends gather inputs, and the core's few copies use a GPU's
   stream, so there are no such threads. */
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
    options->config->values->load_threads = thread_count > 0 ? thread_count : 1;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    TRITONSERVER_ServerOptions *options, unsigned int retry_count)
{
    options->config->values->load_retries = retry_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(
    TRITONSERVER_ServerOptions *options, bool enable_namespace)
{
    options->config->values->model_namespacing = enable_namespace;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    TRITONSERVER_ServerOptions *options, bool enable_peer_access)
{
    options->config->values->peer_access = enable_peer_access;
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

/* Statistics are always counted; these options select the families in the
   server's metrics text. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options,
    bool metrics)
{
    options->config->values->metrics->enabled = metrics;
    return NULL;
}

/* Enables the families of GPUs. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options,
    bool gpu_metrics)
{
    options->config->values->metrics->gpu = gpu_metrics;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options,
    bool cpu_metrics)
{
    options->config->values->metrics->cpu = cpu_metrics;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(
    TRITONSERVER_ServerOptions *options, uint64_t metrics_interval_ms)
{
    options->config->values->metrics->interval_ms = metrics_interval_ms;
    return NULL;
}

/* Settings of unknown names (of caches, for example) are ignored. */
TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options,
    const char *name, const char *setting, const char *value)
{
    NginxInference__MetricsSettings *m = options->config->values->metrics;
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
        return inf_field_put(&m->base, inf_field_find(m->base.descriptor,
            INF_SLICE("quantiles")),
            (inf_scalar_t) { .s = inf_slice_str(value) });
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
    return set_directory(options, "backend_directories", backend_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    TRITONSERVER_ServerOptions *options, const char *repoagent_dir)
{
    return set_directory(options, "agent_directories", repoagent_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    TRITONSERVER_ServerOptions *options,
    const TRITONSERVER_InstanceGroupKind kind, const int device_id,
    const double fraction)
{
    char key[64], value[INF_NUMBER_MAX_FIXED];

    if (device_id < 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "expects device ID >= 0, got %d", device_id);
    }
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expects limit fraction to be"
            " in range [0.0, 1.0], got %f", fraction);
    }
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return inf_err_new(INF_ERR_INVALID_ARG, "given device kind is not"
            " supported, got: %s", TRITONSERVER_InstanceGroupKindString(kind));
    }

    snprintf(key, sizeof(key), "model-load-gpu-limit-device-%d", device_id);
    (void) inf_number_write_fixed(value, fraction);
    return add_setting(options->config->values, "backend_settings", "", key,
        value);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
    const char *backend_name, const char *setting, const char *value)
{
    return add_setting(options->config->values, "backend_settings",
        backend_name, setting, value);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
    const char *policy_name, const char *setting, const char *value)
{
    inf_err_t *err = inf_host_setting_check(setting, value);
    return err != NULL ? err : add_setting(options->config->values,
        "host_policies", policy_name, setting, value);
}

static inf_err_t *
set_text(TRITONSERVER_ServerOptions *options, const char *name,
    const char *value)
{
    return inf_field_put(&options->config->values->base, field(name),
        (inf_scalar_t) { .s = inf_slice_str(value) });
}

/* Adds a text to a list, unless it is there already. */
static inf_err_t *
add_text(TRITONSERVER_ServerOptions *options, const char *name,
    const char *text)
{
    const ProtobufCMessage *m = &options->config->values->base;
    const ProtobufCFieldDescriptor *f = field(name);

    for (size_t i = 0; i < inf_field_count(m, f); i++) {
        if (inf_slice_eq(inf_field_get(m, f, i).s, inf_slice_str(text))) {
            return NULL;
        }
    }
    return set_text(options, name, text);       /* appends                   */
}

/* Makes value the only text of a list. */
static inf_err_t *
set_directory(TRITONSERVER_ServerOptions *options, const char *name,
    const char *value)
{
    ProtobufCMessage *m = &options->config->values->base;
    const ProtobufCFieldDescriptor *f = field(name);

    inf_err_t *err = set_text(options, name, value);
    if (err == NULL && inf_field_count(m, f) > 1) {
        char **list = *(char ***) (void *) ((char *) m + f->offset);
        free(list[0]);
        list[0] = list[1];
        *(size_t *) (void *) ((char *) m + f->quantifier_offset) = 1;
    }
    return err;
}

/* Adds a message of three texts to a list. */
static inf_err_t *
add_setting(NginxInference__CoreConfig *values, const char *name,
    const char *owner, const char *key, const char *value)
{
    const char *const texts[] = { owner, key, value };
    const ProtobufCFieldDescriptor *f = field(name);
    ProtobufCMessage *made;

    inf_err_t *err = inf_field_put_message(&values->base, f, &made);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; err == NULL && i < 3; i++) {
        err = inf_field_put(made, &made->descriptor->fields[i],
            (inf_scalar_t) { .s = inf_slice_str(texts[i]) });
    }
    if (err != NULL) {
        drop_last(values, f);
    }
    return err;
}

/* Sets the bytes of a device; the last call for a device counts. */
static inf_err_t *
set_device_bytes(TRITONSERVER_ServerOptions *options, const char *name,
    int device, uint64_t bytes)
{
    ProtobufCMessage *m = &options->config->values->base;
    const ProtobufCFieldDescriptor *f = field(name);
    NginxInference__CudaPool *pool = NULL;
    ProtobufCMessage *made;

    for (size_t i = 0; i < inf_field_count(m, f); i++) {
        NginxInference__CudaPool *p = (void *) (uintptr_t)
            inf_field_get(m, f, i).m;
        pool = p->device == device ? p : pool;
    }
    if (pool == NULL) {
        inf_err_t *err = inf_field_put_message(m, f, &made);
        if (err != NULL) {
            return err;
        }
        pool = (void *) made;
    }

    pool->device = device;
    pool->bytes = bytes;
    return NULL;
}

static const ProtobufCFieldDescriptor *
field(const char *name)
{
    return inf_field_find(&nginx_inference__core_config__descriptor,
        inf_slice_str(name));
}

/* Removes the last message of a list. */
static void
drop_last(NginxInference__CoreConfig *values,
    const ProtobufCFieldDescriptor *f)
{
    size_t *n = (size_t *) (void *) ((char *) values + f->quantifier_offset);

    (*n)--;
    inf_message_free((ProtobufCMessage *) (uintptr_t)
        inf_field_get(&values->base, f, *n).m);
}

/* Changes the process's log at once. */
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
