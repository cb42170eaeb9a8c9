#include "core/server/server.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/private_dir.h"
#include "core/server/archives.h"
#include "core/server/client_settings.h"
#include "core/server/crash_page.h"
#include "core/server/journal.h"
#include "core/server/memory_options.h"
#include "core/storage/storage.h"
#include "core/tensor/memory.h"

#define DRAIN_RANK        1
#define POLL_INTERVAL_MAX UINT64_C(31536000000)     /* one year              */

static uint32_t control_of(const NginxInference__CoreConfig *config);
static void open_journal(inf_server_t *server,
    const inf_server_host_t *host);
static inf_err_t *open_parts(inf_server_t *server,
    const inf_server_host_t *host, void *userp, inf_crash_page_t *page);
static inf_err_t *open_memory(inf_server_t *server);
static inf_err_t *open_cache(inf_server_t *server,
    const inf_server_host_t *host);
static inf_err_t *open_change(inf_server_t *server);
static inf_err_t *open_poll(inf_server_t *server,
    const inf_server_host_t *host);
static inf_repository_desired_t desired_of(
    const NginxInference__CoreConfig *config);
static bool is_all(const NginxInference__CoreConfig *config);
static inf_err_t *set_poll(inf_server_t *server,
    const NginxInference__CoreConfig *config);
static void end_changes(inf_server_t *server);
static inf_err_t *open_lifecycle(inf_server_t *server,
    const inf_server_host_t *host, void *userp, inf_crash_page_t *page);

inf_err_t *
inf_server_start(inf_core_config_t *shared, const inf_server_host_t *host,
    void *userp, inf_crash_page_t *page, inf_server_t **out)
{
    const NginxInference__CoreConfig *config = shared->values;
    inf_server_t *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return inf_err_nomem();
    }

    server->config = inf_core_config_ref(shared);
    atomic_init(&server->exit_timeout_ns, config->drain_ms * 1000000);
    atomic_init(&server->strict_readiness, config->strict_readiness);
    atomic_init(&server->stuck_limit.ns, config->stuck_ms * 1000000);
    atomic_init(&server->control, control_of(config));
    atomic_init(&server->max_json_bytes, config->max_json_bytes);
    server->follows = host->follows;
    server->gpu_failed = host->gpu_failed;
    inf_lock_init(&server->drain_lock, DRAIN_RANK);
    inf_registry_init(&server->registry);
    inf_canceller_init(&server->canceller);
    inf_cpu_metrics_init(&server->cpu_metrics, inf_clock_ns());

    inf_private_dir_sweep(NULL);
    open_journal(server, host);
    inf_err_t *err = open_parts(server, host, userp, page);
    if (err == NULL && server->journal != NULL) {
        inf_archives_restore(server);
        err = inf_journal_restore(server->journal, server->lifecycle,
            is_all(config));
    } else if (err == NULL) {
        err = inf_lifecycle_start(server->lifecycle, is_all(config),
            config->load_models, config->n_load_models, NULL, 0);
    }
    if (err == NULL) {
        inf_repository_change_begin(server->change);
    }
    if (err == NULL && server->polls) {
        err = set_poll(server, config);
    }
    if (err != NULL) {
        inf_server_stop(server, config->drain_ms * 1000000);
        return err;
    }

    atomic_store(&server->start, INF_SERVER_LOADS);
    *out = server;
    return NULL;
}

/* Opens the parts in the order of their dependencies. */
static inf_err_t *
open_parts(inf_server_t *server, const inf_server_host_t *host, void *userp,
    inf_crash_page_t *page)
{
    inf_err_t *err = inf_tracer_new(server->config->values->trace,
        &server->tracer);
    if (err == NULL) {
        err = inf_readiness_new(host->plugins->backends,
            INF_READINESS_LIMIT_NS, &server->readiness);
    }
    if (err == NULL) {
        err = open_memory(server);
    }
    if (err == NULL) {
        err = inf_shm_regions_new(&server->regions);
    }
    if (err == NULL) {
        inf_client_settings_open(server);
        err = open_cache(server, host);
    }
    if (err == NULL) {
        err = open_lifecycle(server, host, userp, page);
    }
    if (err == NULL) {
        err = inf_pollers_new(&server->repositories, &server->pollers);
    }
    if (err == NULL) {
        err = open_change(server);
    }
    if (err == NULL) {
        err = open_poll(server, host);
    }
    return err;
}

static uint32_t
control_of(const NginxInference__CoreConfig *config)
{
    return (uint32_t) config->model_control
        | (config->client_archives ? INF_SERVER_ARCHIVES : 0);
}

inf_err_t *
inf_server_reconfigure(inf_server_t *server, const inf_core_config_t *before,
    inf_core_config_t *now)
{
    const NginxInference__CoreConfig *wanted = now->values;
    char loads[512];
    inf_repository_desired_t desired = desired_of(wanted);

    inf_err_t *err = inf_journal_start(server->journal, is_all(wanted),
        wanted->load_models, wanted->n_load_models);
    if (err != NULL) {
        return err;
    }

    inf_core_config_differences(before, now, INF_RELOAD_LOADS, loads,
        sizeof(loads));
    if (loads[0] != '\0') {
        desired.core_config = now;
    }
    atomic_store(&server->strict_readiness, wanted->strict_readiness != 0);
    atomic_store_explicit(&server->stuck_limit.ns, wanted->stuck_ms * 1000000,
        memory_order_relaxed);
    atomic_store(&server->exit_timeout_ns, wanted->drain_ms * 1000000);
    atomic_store(&server->control, control_of(wanted));
    atomic_store_explicit(&server->max_json_bytes, wanted->max_json_bytes,
        memory_order_relaxed);
    err = inf_repository_change_ask(server->change, &desired);
    if (err == NULL && server->polls) {
        err = set_poll(server, wanted);
    }
    if (err == NULL && wanted->model_control != before->values->model_control)
    {
        inf_poll_hasten(server->poll);      /* in poll mode                  */
    }
    return err;
}

static inf_repository_desired_t
desired_of(const NginxInference__CoreConfig *config)
{
    return (inf_repository_desired_t) {
        .addresses = config->repositories,
        .count = config->n_repositories,
        .models = {
            .all = is_all(config),
            .names = config->load_models,
            .count = config->n_load_models
        }
    };
}

/* Whether repositories decide what is loaded. */
static bool
is_all(const NginxInference__CoreConfig *config)
{
    return config->model_control != NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT;
}

static inf_err_t *
set_poll(inf_server_t *server, const NginxInference__CoreConfig *config)
{
    bool polls = config->model_control == NGINX_INFERENCE__MODEL_CONTROL__POLL;
    uint64_t interval_ms = config->poll_interval_ms < POLL_INTERVAL_MAX
        ? config->poll_interval_ms : POLL_INTERVAL_MAX;

    return inf_poll_set(server->poll, polls ? interval_ms * UINT64_C(1000000)
        : 0, config->poll_inotify);
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
        return false;           /* the models' threads still use the server  */
    }

    inf_server_free(server);
    return true;
}

void
inf_server_end_loads(inf_server_t *server, uint64_t drain_ns)
{
    end_changes(server);

    inf_lock(&server->drain_lock);
    if (server->lifecycle != NULL) {
        inf_lifecycle_end_loads(server->lifecycle, drain_ns);
    }
    inf_unlock(&server->drain_lock);
}

/* Ends what makes loads of its own accord. */
static void
end_changes(inf_server_t *server)
{
    atomic_store(&server->stopping, true);
    inf_repository_change_stop(server->change);
    inf_poll_stop(server->poll);
    inf_pollers_stop(server->pollers);
}

bool
inf_server_drain(inf_server_t *server, uint64_t drain_ns)
{
    end_changes(server);

    inf_lock(&server->drain_lock);
    bool done = server->lifecycle == NULL
        || inf_lifecycle_stop(server->lifecycle, drain_ns);
    inf_unlock(&server->drain_lock);

    return done;
}

void
inf_server_end_sequences(inf_server_t *server, uint64_t until_ns)
{
    uint64_t now = inf_clock_ns();

    atomic_store(&server->stopping, true);
    if (server->lifecycle != NULL && until_ns > now) {
        inf_lifecycle_end_sequences(server->lifecycle, until_ns - now);
    }
}

void
inf_server_attend(inf_server_t *server, bool attended)
{
    inf_lifecycle_attend(server->lifecycle, attended);
}

void
inf_server_free(inf_server_t *server)
{
    inf_repository_change_free(server->change);
    inf_poll_free(server->poll);
    inf_pollers_free(server->pollers);
    inf_lifecycle_free(server->lifecycle);
    inf_server_cache_close(&server->cache);
    inf_rate_gate_free(server->rate_gate);
    inf_gpu_metrics_free(server->gpu_metrics);
    inf_shm_regions_free(server->regions);
    if (server->has_memory) {
        inf_memory_unshare();
    }
    inf_readiness_free(server->readiness);
    inf_tracer_stop(server->tracer);
    inf_canceller_fini(&server->canceller);
    inf_cpu_metrics_fini(&server->cpu_metrics);
    inf_lock_fini(&server->drain_lock);
    inf_registry_fini(&server->registry);

    inf_journal_close(server->journal);
    inf_repositories_close(&server->repositories);
    inf_core_config_unref(server->config);
    free(server);
}

bool
inf_server_ready(inf_server_t *server)
{
    inf_server_check_gpus(server);

    bool strict = atomic_load(&server->strict_readiness);
    bool before = atomic_load_explicit(&server->ready, memory_order_relaxed);
    bool ready = atomic_load(&server->start) != INF_SERVER_SCANS
        && !atomic_load(&server->stopping)
        && inf_lifecycle_settled(server->lifecycle)
        && (!strict || ((before
                || !inf_repository_change_pending(server->change))
            && inf_lifecycle_all_ready(server->lifecycle)));

    atomic_store_explicit(&server->ready, ready, memory_order_relaxed);
    return ready;
}

void
inf_server_gpu_failed(inf_server_t *server, const inf_model_t *guilty,
    bool loading, const char *why)
{
    if (server != NULL && server->gpu_failed != NULL) {
        server->gpu_failed(guilty, loading, why);
    }
}

void
inf_server_check_gpus(inf_server_t *server)
{
    const inf_memory_t *memory = inf_memory_shared();
    int64_t gpu = inf_memory_failed_gpu(memory);

    if (gpu >= 0) {
        inf_server_gpu_failed(server, NULL, false,
            inf_memory_gpu_failure(memory, gpu));
    }
}

bool
inf_server_restoring(inf_server_t *server)
{
    inf_server_start_t start = atomic_load(&server->start);
    if (!server->follows || start == INF_SERVER_STARTED) {
        return false;
    }

    bool done = start == INF_SERVER_LOADS
        && inf_lifecycle_settled(server->lifecycle);
    if (done) {
        atomic_store(&server->start, INF_SERVER_STARTED);
    }
    return !done;
}

bool
inf_server_restores(inf_server_t *server, inf_slice_t name)
{
    return atomic_load(&server->start) == INF_SERVER_SCANS
        || inf_lifecycle_is_starting(server->lifecycle, name);
}

/* Opens the journal, which records changes by requests.  Every mode needs it: a
   reload may permit such requests later. */
static void
open_journal(inf_server_t *server, const inf_server_host_t *host)
{
    const NginxInference__CoreConfig *config = server->config->values;

    if (host->journal_fd > 0) {
        inf_err_log(inf_err_add(inf_journal_open(host->journal_fd,
            is_all(config), config->load_models, config->n_load_models,
            &server->journal), "loads and unloads are not remembered"));
    }
}

/* Called before any backend is opened: the driver must start first. */
static inf_err_t *
open_memory(inf_server_t *server)
{
    const NginxInference__CoreConfig *config = server->config->values;

    inf_err_t *err = inf_memory_share_configured(config);
    if (err != NULL) {
        return err;
    }
    server->has_memory = true;

    const NginxInference__MetricsSettings *metrics = config->metrics;
    return !metrics->enabled || !metrics->gpu ? NULL : inf_gpu_metrics_new(
        inf_memory_shared(), metrics->interval_ms * 1000000,
        &server->gpu_metrics);
}

/* Opens the cache; unless it is required, a failure is logged and kept. */
static inf_err_t *
open_cache(inf_server_t *server, const inf_server_host_t *host)
{
    inf_err_t *err = inf_server_cache_open(&server->cache,
        host->plugins->caches, server->config->values);
    if (err == NULL || host->cache_required) {
        return err;
    }

    inf_err_log(inf_err_add(inf_err_copy(err),
        "models are served without a cache"));
    server->cache.failure = err;
    return NULL;
}

static inf_err_t *
open_change(inf_server_t *server)
{
    const inf_repository_desired_t desired = desired_of(
        server->config->values);

    return inf_repository_change_new(server->lifecycle, server->pollers,
        &desired, &server->change);
}

static inf_err_t *
open_poll(inf_server_t *server, const inf_server_host_t *host)
{
    server->polls = host->polls;
    return inf_poll_new(server->lifecycle, server->pollers,
        INF_POLL_SETTLE_NS, &server->poll);
}

static const char *
why_left_out(int64_t device)
{
    return inf_memory_left_out(inf_memory_shared(), device);
}

static void
load_broke_gpu(inf_model_t *model, const char *why)
{
    inf_server_gpu_failed(model->server, NULL, true, why);
}

static inf_err_t *
open_lifecycle(inf_server_t *server, const inf_server_host_t *host,
    void *userp, inf_crash_page_t *page)
{
    const inf_memory_t *memory = inf_memory_shared();
    const NginxInference__CoreConfig *config = server->config->values;

    inf_err_t *err = inf_repositories_open(config->repositories,
        config->n_repositories, config->model_namespacing, inf_storage_open,
        &server->repositories);
    if (err != NULL) {
        return err;
    }

    err = inf_rate_gate_from_config(config, &server->rate_gate);
    if (err != NULL) {
        return err;
    }

    inf_gpus_t gpus = {
        .min_capability = inf_memory_min_capability(memory),
        .why_none = inf_memory_no_gpus(memory),
        .left_out = why_left_out
    };
    gpus.ids = inf_memory_gpus(memory, &gpus.count);

    const inf_lifecycle_options_t options = {
        .server = server,
        .gpus = gpus,
        .plugins = host->plugins->backends,
        .registry = &server->registry,
        .repositories = &server->repositories,
        .changed = host->changed,
        .userp = userp,
        .core_config = server->config,
        .agents = host->plugins->agents,
        .load_composing = config->model_control
            == NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT,
        .idle = host->idle,
        .idle_userp = userp,
        .cache = server->cache.cache,
        .rate_gate = server->rate_gate,
        .watch = page != NULL ? &inf_crash_page_watch : NULL,
        .watch_userp = page,
        .gpu_failed = load_broke_gpu,
        .stuck_limit = &server->stuck_limit,
        .notes = server->journal != NULL ? &inf_journal_notes : NULL,
        .notes_userp = server->journal
    };
    return inf_lifecycle_new(&options, &server->lifecycle);
}

