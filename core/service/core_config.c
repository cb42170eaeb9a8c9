#include "core/service/core_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/channel/sockets.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/service/memory_options.h"

#define CONFIG_MAX (16u << 20)

static inf_err_t *read_all(int fd, char **data, size_t *len);
static bool same_lists(char *const *a, size_t na, char *const *b, size_t nb);
static bool same_settings(NginxInference__BackendSetting *const *a, size_t na,
    NginxInference__BackendSetting *const *b, size_t nb);
static bool same_cache(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b);
static bool same_pools(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b);
static bool same_host_policies(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b);
static bool same_metrics(const NginxInference__MetricsSettings *a,
    const NginxInference__MetricsSettings *b);
static const char *core_setting(const NginxInference__CoreConfig *config);
static bool same_rate_limits(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b);
static void put_name(char *text, size_t cap, const char *name);

inf_err_t *
inf_core_config_from_fd(int fd, NginxInference__CoreConfig **out)
{
    char *data;
    size_t len;

    inf_err_t *err = inf_memfd_check_sealed(fd);
    if (err == NULL) {
        err = read_all(fd, &data, &len);
    }
    if (err != NULL) {
        return inf_err_add(err, "configuration");
    }

    ProtobufCMessage *message;
    err = inf_message_unpack(&nginx_inference__core_config__descriptor,
        inf_slice(data, len), &message);
    free(data);
    if (err != NULL) {
        return inf_err_add(err, "configuration");
    }

    *out = (NginxInference__CoreConfig *) (void *) message;
    return NULL;
}

inf_err_t *
inf_core_config_from_file(const char *path, NginxInference__CoreConfig **out)
{
    char *data;
    size_t len;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return inf_err_os(errno, "cannot open \"%s\"", path);
    }

    inf_err_t *err = read_all(fd, &data, &len);
    close(fd);
    if (err != NULL) {
        return inf_err_add(err, "%s", path);
    }

    ProtobufCMessage *message;
    err = inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice(data, len), path, &message);
    free(data);
    if (err == NULL) {
        *out = (NginxInference__CoreConfig *) (void *) message;
    }
    return err;
}

void
inf_core_config_apply_log(const NginxInference__CoreConfig *config)
{
    const NginxInference__LogSettings *log = config->log;
    if (log == NULL) {
        inf_log_set_levels(true, true, true, 0);
        return;
    }

    inf_log_set_levels(log->info, log->warn, log->error, log->verbose);
}

bool
inf_core_config_limits_rates(const NginxInference__CoreConfig *config)
{
    return config->rate_limit
        != NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_OFF;
}

inf_rate_resource_t *
inf_core_config_rates(const NginxInference__CoreConfig *config)
{
    inf_rate_resource_t *resources = calloc(
        config->n_rate_limit_resources + 1, sizeof(*resources));

    for (size_t i = 0; resources != NULL
        && i < config->n_rate_limit_resources; i++)
    {
        const NginxInference__RateLimitResource *r =
            config->rate_limit_resources[i];
        resources[i] = (inf_rate_resource_t) {
            .name = r->name,
            .count = r->count,
            .device = r->device >= 0 ? r->device : INF_RATE_EVERY_DEVICE
        };
    }
    return resources;
}

bool
inf_core_config_same_loads(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b)
{
    char text[64];

    inf_core_config_later(a, b, text, sizeof(text));
    return text[0] == '\0';
}

void
inf_core_config_later(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap)
{
    text[0] = '\0';

    if (!same_lists(now->backend_directories, now->n_backend_directories,
            wanted->backend_directories, wanted->n_backend_directories))
    {
        put_name(text, cap, "inference_backends");
    }
    if (!same_lists(now->agent_directories, now->n_agent_directories,
            wanted->agent_directories, wanted->n_agent_directories))
    {
        put_name(text, cap, "inference_agents");
    }
    if (!same_settings(now->backend_settings, now->n_backend_settings,
            wanted->backend_settings, wanted->n_backend_settings))
    {
        put_name(text, cap, "inference_backend_config");
    }
    if (now->auto_complete != wanted->auto_complete) {
        put_name(text, cap, "inference_auto_complete");
    }
    if (now->code_upload != wanted->code_upload) {
        put_name(text, cap, "inference_code_upload");
    }
    if (now->load_retries != wanted->load_retries) {
        put_name(text, cap, "inference_model_load");
    }
    if (!same_host_policies(now, wanted)) {
        put_name(text, cap, "inference_host_policy");
    }
}

void
inf_core_config_differences(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap)
{
    text[0] = '\0';

    if (!same_lists(now->environment, now->n_environment, wanted->environment,
            wanted->n_environment))
    {
        put_name(text, cap, "inference_env");
    }
    if (strcmp(core_setting(now), core_setting(wanted)) != 0) {
        put_name(text, cap, "inference_backend_config " INF_MIN_CAPABILITY_KEY);
    }
    if (!same_cache(now, wanted)) {
        put_name(text, cap, "inference_response_cache");
    }
    if (!same_lists(now->cache_directories, now->n_cache_directories,
            wanted->cache_directories, wanted->n_cache_directories))
    {
        put_name(text, cap, "inference_cache_directory");
    }
    if (now->response_arena_bytes != wanted->response_arena_bytes
        || now->pinned_pool_bytes != wanted->pinned_pool_bytes
        || !same_pools(now, wanted))
    {
        put_name(text, cap, "inference_memory");
    }
    if (now->spin_us != wanted->spin_us) {
        put_name(text, cap, "inference_core spin=");
    }
    if (strcmp(now->external_path, wanted->external_path) != 0) {
        put_name(text, cap, "inference_core external=");
    }
    if (!same_lists(now->external_users, now->n_external_users,
            wanted->external_users, wanted->n_external_users))
    {
        put_name(text, cap, "external_users");
    }
    if (now->model_namespacing != wanted->model_namespacing) {
        put_name(text, cap, "inference_model_namespacing");
    }
    if (strcmp(now->model_config_name, wanted->model_config_name) != 0) {
        put_name(text, cap, "inference_model_config_name");
    }
    if (now->load_threads != wanted->load_threads) {
        put_name(text, cap, "inference_model_load");
    }
    if (now->peer_access != wanted->peer_access) {
        put_name(text, cap, "inference_peer_access");
    }
    if (!same_metrics(now->metrics, wanted->metrics)) {
        put_name(text, cap, "inference_metrics");
    }
    if (now->rate_limit != wanted->rate_limit) {
        put_name(text, cap, "inference_rate_limit");
    }
    if (!same_rate_limits(now, wanted)) {
        put_name(text, cap, "inference_rate_limit_resource");
    }
}

/* A setting that the core itself reads at its start; "": not set. */
static const char *
core_setting(const NginxInference__CoreConfig *config)
{
    const char *value = "";

    for (size_t i = 0; i < config->n_backend_settings; i++) {
        const NginxInference__BackendSetting *s = config->backend_settings[i];
        if (s->backend[0] == '\0'
            && strcmp(s->key, INF_MIN_CAPABILITY_KEY) == 0)
        {
            value = s->value;
        }
    }

    return value;
}

static inf_err_t *
read_all(int fd, char **data, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return inf_err_os(errno, "fstat");
    }
    if (!S_ISREG(st.st_mode)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "not a regular file");
    }
    if (st.st_size < 0 || st.st_size > CONFIG_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%lld bytes, at most %u are"
            " read", (long long) st.st_size, CONFIG_MAX);
    }

    size_t size = (size_t) st.st_size;
    char *buf = malloc(size + 1);
    if (buf == NULL) {
        return inf_err_nomem();
    }

    size_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, buf + got, size - got, (off_t) got);
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            if (error == EINTR) {
                continue;
            }
            free(buf);
            return inf_err_os(error, "read");
        }
        got += (size_t) n;
    }

    buf[size] = '\0';
    *data = buf;
    *len = size;
    return NULL;
}

static bool
same_lists(char *const *a, size_t na, char *const *b, size_t nb)
{
    if (na != nb) {
        return false;
    }

    for (size_t i = 0; i < na; i++) {
        if (strcmp(a[i], b[i]) != 0) {
            return false;
        }
    }

    return true;
}

static bool
same_settings(NginxInference__BackendSetting *const *a, size_t na,
    NginxInference__BackendSetting *const *b, size_t nb)
{
    if (na != nb) {
        return false;
    }

    for (size_t i = 0; i < na; i++) {
        if (strcmp(a[i]->backend, b[i]->backend) != 0
            || strcmp(a[i]->key, b[i]->key) != 0
            || strcmp(a[i]->value, b[i]->value) != 0)
        {
            return false;
        }
    }

    return true;
}

static bool
same_cache(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b)
{
    return strcmp(a->cache_name, b->cache_name) == 0
        && strcmp(a->cache_config, b->cache_config) == 0
        && same_settings(a->cache_settings, a->n_cache_settings,
            b->cache_settings, b->n_cache_settings);
}

static bool
same_pools(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b)
{
    if (a->n_cuda_pools != b->n_cuda_pools) {
        return false;
    }

    for (size_t i = 0; i < a->n_cuda_pools; i++) {
        if (a->cuda_pools[i]->device != b->cuda_pools[i]->device
            || a->cuda_pools[i]->bytes != b->cuda_pools[i]->bytes)
        {
            return false;
        }
    }

    return true;
}

static bool
same_host_policies(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b)
{
    if (a->n_host_policies != b->n_host_policies) {
        return false;
    }

    for (size_t i = 0; i < a->n_host_policies; i++) {
        const NginxInference__HostPolicySetting *x = a->host_policies[i];
        const NginxInference__HostPolicySetting *y = b->host_policies[i];
        if (strcmp(x->policy, y->policy) != 0 || strcmp(x->key, y->key) != 0
            || strcmp(x->value, y->value) != 0)
        {
            return false;
        }
    }

    return true;
}

static bool
same_metrics(const NginxInference__MetricsSettings *a,
    const NginxInference__MetricsSettings *b)
{
    static const NginxInference__MetricsSettings usual =
        NGINX_INFERENCE__METRICS_SETTINGS__INIT;

    a = a != NULL ? a : &usual;
    b = b != NULL ? b : &usual;
    return a->enabled == b->enabled && a->cpu == b->cpu && a->gpu == b->gpu
        && a->interval_ms == b->interval_ms && a->counters == b->counters
        && a->histograms == b->histograms && a->summaries == b->summaries
        && strcmp(a->quantiles, b->quantiles) == 0;
}

static bool
same_rate_limits(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b)
{
    if (a->n_rate_limit_resources != b->n_rate_limit_resources) {
        return false;
    }

    for (size_t i = 0; i < a->n_rate_limit_resources; i++) {
        const NginxInference__RateLimitResource *x =
            a->rate_limit_resources[i];
        const NginxInference__RateLimitResource *y =
            b->rate_limit_resources[i];
        if (strcmp(x->name, y->name) != 0 || x->count != y->count
            || x->device != y->device)
        {
            return false;
        }
    }

    return true;
}

static void
put_name(char *text, size_t cap, const char *name)
{
    size_t len = strlen(text);
    snprintf(text + len, cap - len, "%s%s", len > 0 ? ", " : "", name);
}
