#include "core/service/server.h"

#include <stdlib.h>
#include <string.h>

#include "core/abi/plugin.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/scan.h"
#include "core/repository/storage.h"
#include "core/service/crash_page.h"
#include "core/service/memory_options.h"
#include "core/tensor/memory.h"

#define DRAIN_RANK 1

static inf_err_t *open_memory(inf_server_t *server);
static inf_err_t *open_cache(inf_server_t *server,
    const inf_server_host_t *host);
static inf_err_t *open_lifecycle(inf_server_t *server,
    const inf_server_host_t *host, void *userp, inf_crash_page_t *page);
static inf_err_t *read_host_policies(inf_server_t *server);
static inf_err_t *load_repositories(inf_server_t *server);
static inf_err_t *load_scan(inf_server_t *server, const inf_scan_t *scan,
    inf_storage_t **by_root);
static bool wanted(const NginxInference__CoreConfig *config,
    const char *name);
static inf_err_t *refuse_missing(inf_server_t *server, const inf_scan_t *scan);
static void report_problems(const inf_scan_t *scan);

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
    inf_lock_init(&server->drain_lock, DRAIN_RANK);
    inf_registry_init(&server->registry);
    inf_canceller_init(&server->canceller);
    inf_cpu_metrics_init(&server->cpu_metrics, inf_clock_ns());

    inf_err_t *err = open_memory(server);
    if (err == NULL) {
        err = open_cache(server, host);
    }
    if (err == NULL) {
        err = open_lifecycle(server, host, userp, page);
    }
    if (err == NULL) {
        err = load_repositories(server);
    }
    if (err != NULL) {
        inf_server_stop(server, config->drain_ms * 1000000);
        return err;
    }

    atomic_store(&server->scanned, true);
    *out = server;
    return NULL;
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

    inf_lock(&server->drain_lock);
    bool done = server->lifecycle == NULL
        || inf_lifecycle_stop(server->lifecycle, drain_ns);
    inf_unlock(&server->drain_lock);

    return done;
}

void
inf_server_free(inf_server_t *server)
{
    inf_lifecycle_free(server->lifecycle);
    inf_server_cache_close(&server->cache);
    inf_gpu_metrics_free(server->gpu_metrics);
    if (server->has_memory) {
        inf_memory_unshare();
    }
    inf_canceller_fini(&server->canceller);
    inf_cpu_metrics_fini(&server->cpu_metrics);
    inf_lock_fini(&server->drain_lock);
    inf_registry_fini(&server->registry);

    for (size_t i = 0; i < server->storage_count; i++) {
        inf_storage_close(server->storages[i]);
    }
    free(server->storages);
    free(server->settings);
    free(server->host_settings);
    free(server);
}

bool
inf_server_ready(inf_server_t *server)
{
    return atomic_load(&server->scanned) && !atomic_load(&server->stopping)
        && inf_lifecycle_settled(server->lifecycle)
        && (!server->config->strict_readiness
            || inf_lifecycle_all_ready(server->lifecycle));
}

bool
inf_server_instances_ready(inf_model_t *model)
{
    for (uint32_t i = 0; i < model->instance_count; i++) {
        inf_err_t *not_ready = inf_plugin_ops.instance_ready(
            &model->instances[i]);
        if (not_ready != NULL) {
            inf_err_free(not_ready);
            return false;
        }
    }

    return true;
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
open_lifecycle(inf_server_t *server, const inf_server_host_t *host,
    void *userp, inf_crash_page_t *page)
{
    const inf_memory_t *memory = inf_memory_shared();
    const NginxInference__CoreConfig *config = server->config;
    size_t count = config->n_backend_settings;

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

    inf_err_t *err = read_host_policies(server);
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
        .changed = host->changed,
        .userp = userp,
        .backend_dirs = (const char *const *) config->backend_directories,
        .backend_dir_count = config->n_backend_directories,
        .settings = server->settings,
        .setting_count = count,
        .auto_complete = config->auto_complete,
        .load_threads = config->load_threads,
        .spin_ns = config->spin_us * 1000,
        .host_policies = { server->host_settings, config->n_host_policies },
        .config_name = config->model_config_name,
        .summaries = config->metrics != NULL && config->metrics->summaries,
        .histograms = config->metrics != NULL && config->metrics->histograms,
        .idle = host->idle,
        .idle_userp = userp,
        .cache = server->cache.cache,
        .watch = page != NULL ? &inf_crash_page_watch : NULL,
        .watch_userp = page
    };
    return inf_lifecycle_new(&options, &server->lifecycle);
}

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
load_repositories(inf_server_t *server)
{
    const NginxInference__CoreConfig *config = server->config;
    size_t count = config->n_repositories;
    inf_scan_root_t *roots = calloc(count + 1, sizeof(*roots));
    inf_storage_t **by_root = calloc(count + 1, sizeof(*by_root));
    char **paths = calloc(count + 1, sizeof(*paths));
    inf_err_t *err = NULL;
    size_t n = 0;

    server->storages = calloc(count + 1, sizeof(*server->storages));
    if (roots == NULL || by_root == NULL || paths == NULL
        || server->storages == NULL)
    {
        err = inf_err_nomem();
    }

    for (size_t i = 0; err == NULL && i < count; i++) {
        inf_storage_t *storage;
        inf_err_t *bad = inf_storage_open(config->repositories[i], &storage,
            &paths[n]);
        if (bad != NULL) {
            inf_err_log(inf_err_add(bad, "repository \"%s\" is left out",
                config->repositories[i]));
            continue;
        }

        server->storages[server->storage_count++] = storage;
        by_root[n] = storage;
        roots[n].storage = storage;
        roots[n].root = paths[n];
        n++;
    }

    inf_scan_t scan;
    if (err == NULL) {
        err = inf_scan(roots, n, &scan);
    }
    if (err == NULL) {
        report_problems(&scan);
        err = load_scan(server, &scan, by_root);
        if (err == NULL) {
            err = refuse_missing(server, &scan);
        }
        inf_scan_fini(&scan);
    }

    for (size_t i = 0; paths != NULL && i < n; i++) {
        free(paths[i]);
    }
    free(paths);
    free(by_root);
    free(roots);
    return err;
}

static inf_err_t *
load_scan(inf_server_t *server, const inf_scan_t *scan,
    inf_storage_t **by_root)
{
    for (size_t i = 0; i < scan->model_count; i++) {
        const inf_scan_model_t *m = &scan->models[i];
        inf_err_t *err;

        if (!wanted(server->config, m->name)) {
            continue;
        }
        if (m->duplicate) {
            if (i > 0 && strcmp(scan->models[i - 1].name, m->name) == 0) {
                continue;
            }
            err = inf_lifecycle_refuse(server->lifecycle, m->name,
                "model appears in two or more repositories");
        } else if (m->unreadable) {
            err = inf_lifecycle_refuse(server->lifecycle, m->name,
                "the model's directory can't be read");
        } else {
            err = inf_lifecycle_load(server->lifecycle,
                by_root[m->repository], m->name, m->dir, m->versions,
                m->version_count);
        }
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* "*" alone means all of them. */
static bool
wanted(const NginxInference__CoreConfig *config, const char *name)
{
    if (config->model_control != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT) {
        return true;
    }

    for (size_t i = 0; i < config->n_load_models; i++) {
        if (strcmp(config->load_models[i], "*") == 0
            || strcmp(config->load_models[i], name) == 0)
        {
            return true;
        }
    }

    return false;
}

/* A model to load at the start that no repository holds. */
static inf_err_t *
refuse_missing(inf_server_t *server, const inf_scan_t *scan)
{
    const NginxInference__CoreConfig *config = server->config;
    if (config->model_control != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT) {
        return NULL;
    }

    for (size_t i = 0; i < config->n_load_models; i++) {
        const char *name = config->load_models[i];
        if (strcmp(name, "*") == 0 || inf_scan_find(scan, name) != NULL) {
            continue;
        }

        inf_err_t *err = inf_lifecycle_refuse(server->lifecycle, name,
            "model not found in any model repository.");
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static void
report_problems(const inf_scan_t *scan)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        inf_log(scan->problems[i].level, "%s", scan->problems[i].text);
    }
}
