#include "core/service/server.h"

#include <stdlib.h>

#include "core/abi/plugin.h"
#include "core/abi/repository_agent.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/instances.h"
#include "core/repository/private_dir.h"
#include "core/service/core_config.h"
#include "core/service/crash_page.h"
#include "core/service/journal.h"
#include "core/service/memory_options.h"
#include "core/tensor/memory.h"

#define DRAIN_RANK 1

static void open_journal(inf_server_t *server,
    const inf_server_host_t *host);
static inf_err_t *open_memory(inf_server_t *server);
static inf_err_t *open_cache(inf_server_t *server,
    const inf_server_host_t *host);
static inf_err_t *open_change(inf_server_t *server);
static inf_err_t *open_poll(inf_server_t *server);
static inf_err_t *open_lifecycle(inf_server_t *server,
    const inf_server_host_t *host, void *userp, inf_crash_page_t *page);
static inf_err_t *read_host_policies(inf_server_t *server);
static inf_err_t *open_rate_gate(inf_server_t *server);

inf_err_t *
inf_server_start(const NginxInference__CoreConfig *config,
    const inf_server_host_t *host, void *userp, inf_crash_page_t *page,
    inf_server_t **out)
{
    inf_server_t *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return inf_err_nomem();
    }

    server->config = config;
    atomic_init(&server->exit_timeout_ns, config->drain_ms * 1000000);
    atomic_init(&server->strict_readiness, config->strict_readiness);
    inf_lock_init(&server->drain_lock, DRAIN_RANK);
    inf_registry_init(&server->registry);
    inf_canceller_init(&server->canceller);
    inf_cpu_metrics_init(&server->cpu_metrics, inf_clock_ns());

    inf_private_dir_sweep(NULL);
    open_journal(server, host);
    inf_err_t *err = open_memory(server);
    if (err == NULL) {
        err = open_cache(server, host);
    }
    if (err == NULL) {
        err = open_lifecycle(server, host, userp, page);
    }
    if (err == NULL) {
        err = open_change(server);
    }
    if (err == NULL) {
        err = open_poll(server);
    }
    if (err == NULL && server->journal != NULL) {
        err = inf_journal_restore(server->journal, server->lifecycle);
    } else if (err == NULL) {
        err = inf_lifecycle_start(server->lifecycle, config->model_control
            != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT, config->load_models,
            config->n_load_models, NULL, 0);
    }
    if (err == NULL && server->poll != NULL && host->polls
        && config->poll_interval_ms > 0)
    {
        err = inf_poll_start(server->poll, config->poll_interval_ms
            * UINT64_C(1000000));
    }
    if (err != NULL) {
        inf_server_stop(server, config->drain_ms * 1000000);
        return err;
    }

    atomic_store(&server->scanned, true);
    *out = server;
    return NULL;
}

inf_err_t *
inf_server_reconfigure(inf_server_t *server,
    const NginxInference__CoreConfig *wanted)
{
    atomic_store(&server->strict_readiness, wanted->strict_readiness != 0);
    return inf_repository_change_ask(server->change, wanted->repositories,
        wanted->n_repositories);
}

bool
inf_server_stop(inf_server_t *server, uint64_t drain_ns)
{
    if (server == NULL) {
        return true;
    }

    if (!inf_server_drain(server, drain_ns)) {
        inf_log(INF_LOG_WARN, "models are still busy after the drain time:"
            " leaving without finalizing them");
        return false;           /* their threads still use the server        */
    }

    inf_server_free(server);
    return true;
}

bool
inf_server_drain(inf_server_t *server, uint64_t drain_ns)
{
    atomic_store(&server->stopping, true);
    inf_repository_change_stop(server->change);
    inf_poll_stop(server->poll);

    inf_lock(&server->drain_lock);
    bool done = server->lifecycle == NULL
        || inf_lifecycle_stop(server->lifecycle, drain_ns);
    inf_unlock(&server->drain_lock);

    return done;
}

void
inf_server_free(inf_server_t *server)
{
    inf_repository_change_free(server->change);
    inf_poll_free(server->poll);
    inf_lifecycle_free(server->lifecycle);
    inf_server_cache_close(&server->cache);
    inf_rate_gate_free(server->rate_gate);
    inf_gpu_metrics_free(server->gpu_metrics);
    if (server->has_memory) {
        inf_memory_unshare();
    }
    inf_canceller_fini(&server->canceller);
    inf_cpu_metrics_fini(&server->cpu_metrics);
    inf_lock_fini(&server->drain_lock);
    inf_registry_fini(&server->registry);

    inf_journal_close(server->journal);
    inf_repositories_close(&server->repositories);
    free(server->settings);
    free(server->host_settings);
    free(server);
}

bool
inf_server_ready(inf_server_t *server)
{
    return atomic_load(&server->scanned) && !atomic_load(&server->stopping)
        && inf_lifecycle_settled(server->lifecycle)
        && (!atomic_load(&server->strict_readiness)
            || (!inf_repository_change_pending(server->change)
                && inf_lifecycle_all_ready(server->lifecycle)));
}

bool
inf_server_instances_ready(inf_model_t *model)
{
    inf_instance_t *instance = NULL;
    bool ready = inf_model_enter(model);
    if (!ready) {
        return false;
    }

    while (ready && (instance = inf_instance_visit_next(model, instance))
        != NULL)
    {
        inf_err_t *not_ready = inf_plugin_ops.instance_ready(instance);
        ready = not_ready == NULL;
        inf_err_free(not_ready);
    }

    if (instance != NULL) {
        inf_instance_visited(instance);
    }
    inf_model_leave(model);
    return ready;
}

/* Only what requests have changed needs to be remembered. */
static void
open_journal(inf_server_t *server, const inf_server_host_t *host)
{
    const NginxInference__CoreConfig *config = server->config;

    if (host->journal_fd > 0 && config->model_control
        == NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT)
    {
        inf_err_log(inf_err_add(inf_journal_open(host->journal_fd, false,
            config->load_models, config->n_load_models, &server->journal),
            "loads and unloads are not remembered"));
    }
}

/* Before any backend is opened: the driver must start first. */
static inf_err_t *
open_memory(inf_server_t *server)
{
    static const NginxInference__MetricsSettings usual =
        NGINX_INFERENCE__METRICS_SETTINGS__INIT;
    const NginxInference__CoreConfig *config = server->config;

    inf_err_t *err = inf_memory_share_configured(config);
    if (err != NULL) {
        return err;
    }
    server->has_memory = true;

    const NginxInference__MetricsSettings *metrics = config->metrics != NULL
        ? config->metrics : &usual;
    return !metrics->enabled || !metrics->gpu ? NULL : inf_gpu_metrics_new(
        inf_memory_shared(), metrics->interval_ms * 1000000,
        &server->gpu_metrics);
}

/* Models are worth more than a cache. */
static inf_err_t *
open_cache(inf_server_t *server, const inf_server_host_t *host)
{
    inf_err_t *err = inf_server_cache_open(&server->cache, server->config);
    if (err == NULL || host->cache_required) {
        return err;
    }

    inf_err_log(inf_err_add(err, "models are served without a cache"));
    return NULL;
}

static inf_err_t *
open_change(inf_server_t *server)
{
    const inf_repository_change_options_t options = {
        .lifecycle = server->lifecycle,
        .repositories = &server->repositories,
        .all = server->config->model_control
            != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT
    };
    return inf_repository_change_new(&options, &server->change);
}

static inf_err_t *
open_poll(inf_server_t *server)
{
    if (server->config->model_control != NGINX_INFERENCE__MODEL_CONTROL__POLL)
    {
        return NULL;
    }

    return inf_poll_new(server->lifecycle, &server->repositories,
        INF_POLL_SETTLE_NS, &server->poll);
}

static inf_err_t *
open_lifecycle(inf_server_t *server, const inf_server_host_t *host,
    void *userp, inf_crash_page_t *page)
{
    const inf_memory_t *memory = inf_memory_shared();
    const NginxInference__CoreConfig *config = server->config;
    size_t count = config->n_backend_settings;

    inf_err_t *err = config->model_namespacing
        ? inf_repositories_open_namespaced(config->repositories,
            config->n_repositories, &server->repositories)
        : inf_repositories_open(config->repositories, config->n_repositories,
            &server->repositories);
    if (err != NULL) {
        return err;
    }

    server->settings = calloc(count + 1, sizeof(*server->settings));
    if (server->settings == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; i < count; i++) {
        server->settings[i] = (inf_backend_setting_t) {
            .backend = config->backend_settings[i]->backend,
            .key = config->backend_settings[i]->key,
            .value = config->backend_settings[i]->value
        };
    }

    err = read_host_policies(server);
    if (err == NULL) {
        err = open_rate_gate(server);
    }
    if (err != NULL) {
        return err;
    }
    inf_gpus_t gpus = {
        .min_capability = inf_memory_min_capability(memory)
    };
    gpus.ids = inf_memory_gpus(memory, &gpus.count);

    const inf_lifecycle_options_t options = {
        .server = server,
        .gpus = gpus,
        .plugins = &inf_plugin_ops,
        .registry = &server->registry,
        .repositories = &server->repositories,
        .changed = host->changed,
        .userp = userp,
        .backend_dirs = (const char *const *) config->backend_directories,
        .backend_dir_count = config->n_backend_directories,
        .agents = &inf_agent_ops,
        .agent_dirs = (const char *const *) config->agent_directories,
        .agent_dir_count = config->n_agent_directories,
        .settings = server->settings,
        .setting_count = count,
        .auto_complete = config->auto_complete,
        .load_threads = config->load_threads,
        .load_retries = config->load_retries,
        .spin_ns = config->spin_us * 1000,
        .host_policies = { server->host_settings, config->n_host_policies },
        .config_name = config->model_config_name,
        .summaries = config->metrics != NULL && config->metrics->summaries,
        .histograms = config->metrics != NULL && config->metrics->histograms,
        .idle = host->idle,
        .idle_userp = userp,
        .cache = server->cache.cache,
        .rate_gate = server->rate_gate,
        .watch = page != NULL ? &inf_crash_page_watch : NULL,
        .watch_userp = page,
        .notes = server->journal != NULL ? &inf_journal_notes : NULL,
        .notes_userp = server->journal
    };
    return inf_lifecycle_new(&options, &server->lifecycle);
}
static inf_err_t *read_host_policies(inf_server_t *server);

/* Checked here too: a configuration may come from anywhere. */
static inf_err_t *
read_host_policies(inf_server_t *server)
{
    const NginxInference__CoreConfig *config = server->config;
    size_t count = config->n_host_policies;

    server->host_settings = calloc(count + 1, sizeof(*server->host_settings));
    if (server->host_settings == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const NginxInference__HostPolicySetting *s = config->host_policies[i];
        inf_err_t *err = inf_host_setting_check(s->key, s->value);
        if (err != NULL) {
            return inf_err_add(err, "host policy '%s'", s->policy);
        }
        server->host_settings[i] = (inf_host_setting_t) {
            .policy = s->policy, .key = s->key, .value = s->value
        };
    }

    return NULL;
}

static inf_err_t *
open_rate_gate(inf_server_t *server)
{
    const NginxInference__CoreConfig *config = server->config;
    size_t count = config->n_rate_limit_resources;

    if (!inf_core_config_limits_rates(config)) {
        return NULL;
    }

    inf_rate_resource_t *resources = inf_core_config_rates(config);
    if (resources == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_rate_gate_new(resources, count, &server->rate_gate);
    free(resources);
    return err;
}
