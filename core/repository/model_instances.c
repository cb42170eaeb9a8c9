#include "core/repository/model_instances.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/model/instances.h"
#include "core/model/warmup.h"
#include "core/proto/core_config.h"
#include "core/proto/number.h"
#include "core/repository/children.h"
#include "core/tensor/ledger.h"
#include "core/tensor/memory.h"

typedef struct {
    const inf_model_load_t *what;
    inf_instance_t         *instance;
    inf_err_t              *err;
    pthread_t               thread;
} instance_init_t;

/* The preparation of instance threads. */
typedef struct {
    const inf_model_load_t *what;
    inf_warmup_t           *warmup;     /* NULL: none                        */
} instance_prepare_t;

static inf_err_t *check_rates(inf_rate_gate_t *gate,
    const Inference__ModelConfig *msg);
static inf_err_t *init_instances(const inf_model_load_t *what,
    inf_model_t *model, inf_instance_t *const *instances, uint32_t count);
static inf_err_t *time_gpus(inf_model_t *model,
    inf_instance_t *const *instances, uint32_t count);
static inf_err_t *first_error(instance_init_t *jobs, uint32_t count);
static inf_err_t *open_ledger(const inf_model_load_t *what,
    inf_model_t *model);
static bool in_parallel(const inf_model_t *model);
static void init_all(instance_init_t *jobs, uint32_t count, bool parallel);
static void *init_main(void *arg);
static inf_err_t *init_on_device(const instance_init_t *job);
static inf_err_t *check_gpu_limit(const NginxInference__CoreConfig *config,
    const inf_instance_spec_t *spec);
static inf_err_t *make_options(const inf_model_load_t *what,
    const inf_model_t *model, instance_prepare_t *prepare,
    inf_runner_options_t *out);
static inf_err_t *prepare_instance(void *userp, inf_instance_t *instance);
static uint32_t drop_idle(const inf_lifecycle_options_t *options,
    inf_instance_t **instances, uint32_t count);
static void finish(const inf_lifecycle_options_t *options,
    inf_instance_t *instance);

inf_err_t *
inf_model_settle_groups(const inf_model_load_t *what,
    const inf_backend_t *backend, Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    const inf_instance_host_t host = {
        .preferred = backend->preferred,
        .preferred_count = backend->preferred_count,
        .gpus = what->options->gpus
    };

    inf_err_t *err = inf_instance_groups_normalize(msg, &host);
    if (err == NULL) {
        inf_instance_groups_find(msg, &host.gpus, what->bounded
            ? INF_INSTANCES_MAX_REQUESTED : INF_INSTANCES_MAX, f);
    }
    return err != NULL || what->options->rate_gate == NULL ? err
        : check_rates(what->options->rate_gate, msg);
}

inf_err_t *
inf_model_make_instances(const inf_model_load_t *what, inf_model_t *model)
{
    inf_instance_specs_t specs;

    inf_err_t *err = inf_instance_specs_make(model->built, &specs);
    if (err != NULL) {
        return err;
    }

    uint32_t count = 0;
    inf_instance_t **made = calloc(specs.count + 1, sizeof(*made));
    err = made == NULL ? inf_err_nomem()
        : inf_model_new_instances(model, &specs, NULL, made, &count);
    if (err == NULL) {
        err = inf_instances_link(model, made, count);
        for (uint32_t i = 0; err != NULL && i < count; i++) {
            inf_instance_free(made[i]);
        }
    }
    if (err == NULL) {
        err = init_instances(what, model, made, count);
    }

    free(made);
    inf_instance_specs_fini(&specs);
    return err;
}

inf_err_t *
inf_model_new_instances(inf_model_t *model, inf_instance_specs_t *specs,
    const bool *met, inf_instance_t **out, uint32_t *count)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < specs->count; i++) {
        if (met == NULL || !met[i]) {
            err = inf_instance_new(model, &specs->items[i], &out[*count]);
            *count += err == NULL;
        }
    }
    while (err != NULL && *count > 0) {
        inf_instance_free(out[--*count]);
    }
    return err;
}

inf_err_t *
inf_model_start_runner(const inf_model_load_t *what, inf_model_t *model)
{
    instance_prepare_t prepare;
    inf_runner_options_t options;

    inf_err_t *err = make_options(what, model, &prepare, &options);
    if (err == NULL) {
        err = inf_runner_start(model, &options);
        inf_warmup_free(prepare.warmup);
    }
    return err;
}

inf_err_t *
inf_model_add_instances(const inf_model_load_t *what, inf_model_t *model,
    inf_instance_t *const *instances, uint32_t count)
{
    instance_prepare_t prepare = { .warmup = NULL };
    inf_runner_options_t options;

    inf_instances_begin(model);
    inf_err_t *err = init_instances(what, model, instances, count);
    inf_instances_end(model);
    if (err == NULL) {
        err = make_options(what, model, &prepare, &options);
    }
    if (err == NULL) {
        err = inf_runner_add(model->sched.runner, instances, count, &options);
        inf_warmup_free(prepare.warmup);
    }
    if (err == NULL) {
        err = inf_instances_link(model, instances, count);
        if (err == NULL) {
            return NULL;
        }
        inf_runner_dismiss(model->sched.runner, instances, count);
        inf_runner_collect(model->sched.runner, instances, count);
    }

    for (uint32_t i = 0; i < count; i++) {
        finish(what->options, instances[i]);
        inf_instance_unlink(instances[i]);      /* its counts stay           */
        inf_instance_free(instances[i]);
    }
    return err;
}

void
inf_model_drop_instances(const inf_lifecycle_options_t *options,
    inf_model_t *model, inf_instance_t **instances, uint32_t count)
{
    useconds_t pause_us = 500;

    for (uint32_t i = 0; i < count; i++) {
        inf_instance_leave(instances[i]);
    }

    while (count > 0) {
        uint32_t left = drop_idle(options, instances, count);
        if (left > 0 && inf_runner_is_closed(model->sched.runner)) {
            return;
        }
        pause_us = left < count ? 500 : pause_us < 50000 ? pause_us * 2
            : pause_us;
        count = left;
        if (count > 0) {
            usleep(pause_us);
        }
    }
}

/* false for sequences, which belong to one instance: each keeps its thread. */
bool
inf_model_is_device_blocking(const inf_model_t *model)
{
    if (model->backend->execution_policy != INF_BACKEND_DEVICE_BLOCKING) {
        return false;
    }

    if (model->built->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        inf_log(INF_LOG_INFO, "model=%s version=%lld: the backend's execution"
            " policy DEVICE_BLOCKING has no effect on sequence_batching",
            model->name, (long long) model->version);
        return false;
    }

    return true;
}

/* Checks rate limits; the errors are worded as Triton's. */
static inf_err_t *
check_rates(inf_rate_gate_t *gate, const Inference__ModelConfig *msg)
{
    inf_findings_t f;

    inf_findings_init(&f);
    inf_err_t *err = inf_rate_gate_find(gate, msg, &f);
    if (err == NULL && f.count > 0) {
        err = inf_err_new(f.items[0].code, "%s", f.items[0].text);
    } else if (err == NULL) {
        err = inf_findings_error(&f, NULL);
    }
    inf_findings_fini(&f);
    return err;
}

static inf_err_t *
init_instances(const inf_model_load_t *what, inf_model_t *model,
    inf_instance_t *const *instances, uint32_t count)
{
    inf_err_t *err = time_gpus(model, instances, count);
    if (err != NULL) {
        return err;
    }

    instance_init_t *jobs = calloc(count + 1, sizeof(*jobs));
    if (jobs == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        jobs[i].what = what;
        jobs[i].instance = instances[i];
    }

    init_all(jobs, count, in_parallel(model));
    err = first_error(jobs, count);
    free(jobs);
    return err != NULL ? err : open_ledger(what, model);
}

/* Keeps latencies for the instances of each GPU. */
static inf_err_t *
time_gpus(inf_model_t *model, inf_instance_t *const *instances, uint32_t count)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; err == NULL && model->latencies != NULL && i < count;
        i++)
    {
        if (instances[i]->spec->kind == INF_INSTANCE_GPU) {
            err = inf_latencies_add_gpu(model->latencies,
                instances[i]->spec->device_id);
        }
    }

    return err;
}

static inf_err_t *
first_error(instance_init_t *jobs, uint32_t count)
{
    inf_err_t *first = NULL;

    for (uint32_t i = 0; i < count; i++) {
        if (jobs[i].err == NULL) {
            continue;
        }
        if (first == NULL) {
            first = inf_err_note(jobs[i].err, "instance '%s'",
                jobs[i].instance->spec->name);
        } else {
            inf_err_free(jobs[i].err);
        }
    }

    return first;
}

/* Opens the ledger of a model with watched processes; requests that already run
   are not in it. */
static inf_err_t *
open_ledger(const inf_model_load_t *what, inf_model_t *model)
{
    if (atomic_load(&model->ledger) != NULL
        || !inf_children_any(what->options->children, model))
    {
        return NULL;
    }

    inf_ledger_t *ledger = inf_ledger_new();
    atomic_store_explicit(&model->ledger, ledger, memory_order_release);
    return ledger != NULL ? NULL : inf_err_nomem();
}

/* Whether instances are initialized in parallel; the environment has precedence
   over the backend. */
static bool
in_parallel(const inf_model_t *model)
{
    const char *env = getenv("TRITON_PARALLEL_INSTANCE_LOADING");
    if (env != NULL && env[0] != '\0') {
        return strcmp(env, "1") == 0;
    }

    return model->backend->parallel_loading;
}

static void
init_all(instance_init_t *jobs, uint32_t count, bool parallel)
{
    for (uint32_t i = 0; i < count; i++) {
        instance_init_t *job = &jobs[i];
        if (!parallel || count == 1) {
            init_main(job);
            continue;
        }

        inf_err_t *err = inf_thread_start(&job->thread, "initialize",
            init_main, job);
        if (err != NULL) {
            inf_err_free(err);
            job->thread = 0;
            init_main(job);         /* here, without a thread                */
        }
    }

    for (uint32_t i = 0; parallel && i < count; i++) {
        if (jobs[i].thread != 0) {
            pthread_join(jobs[i].thread, NULL);
        }
    }
}

static void *
init_main(void *arg)
{
    instance_init_t *job = arg;
    const inf_host_policies_t *policies = job->instance->model->host_policies;
    const char *policy = job->instance->spec->host_policy;
    inf_host_place_t place;
    inf_load_thread_t me;

    inf_host_place_save(&place, policies, policy);
    inf_load_threads_enter(job->what->options->threads, &me,
        job->what->load);
    job->err = inf_host_policy_apply(policies, policy);
    if (job->err == NULL) {
        job->err = init_on_device(job);
    }
    if (job->err == NULL) {
        inf_children_watch(job->what->options->children, job->instance,
            &me.before);
    }
    inf_load_threads_leave(job->what->options->threads, &me);
    inf_host_place_restore(&place);
    if (job->err == NULL) {
        job->err = check_gpu_limit(job->what->core_config->values,
            job->instance->spec);
    }
    return NULL;
}

/* Initializes an instance, unless its GPU has failed; reports a GPU that fails
   meanwhile. */
static inf_err_t *
init_on_device(const instance_init_t *job)
{
    const inf_instance_spec_t *spec = job->instance->spec;
    const inf_plugin_ops_t *plugins = job->what->options->plugins;
    inf_memory_t *memory = inf_memory_shared();

    if (spec->kind != INF_INSTANCE_GPU) {
        return plugins->instance_init(job->instance);
    }

    const char *why = inf_memory_gpu_failure(memory, spec->device_id);
    if (why != NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%s", why);
    }

    inf_err_t *err = plugins->instance_init(job->instance);
    inf_err_t *gone = err == NULL ? NULL
        : inf_memory_check_gpu(memory, spec->device_id);
    if (gone != NULL && job->what->options->gpu_failed != NULL) {
        job->what->options->gpu_failed(job->instance->model,
            inf_err_msg(gone));
    }
    inf_err_free(gone);
    return err;
}

/* Checks the memory in use on the instance's GPU, if there is a limit for that
   GPU: a fraction of its memory, 0 to 1. */
static inf_err_t *
check_gpu_limit(const NginxInference__CoreConfig *config,
    const inf_instance_spec_t *spec)
{
    char key[sizeof(INF_DEVICE_LIMIT_KEY) + 16];
    double fill = 0;
    double limit;

    snprintf(key, sizeof(key), "%s%d", INF_DEVICE_LIMIT_KEY,
        (int) spec->device_id);
    const char *text = spec->kind == INF_INSTANCE_GPU
        ? inf_core_config_setting(config, "", key) : NULL;
    if (text == NULL) {
        return NULL;
    }

    if (!inf_number_parse_double(inf_slice_str(text + strspn(text, " ")),
            &limit) || !(limit >= 0.0 && limit <= 1.0))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "backend setting %s expects"
            " limit fraction to be in range [0.0, 1.0], got \"%s\"", key,
            text);
    }

    inf_err_t *err = inf_memory_gpu_fill(inf_memory_shared(), spec->device_id,
        &fill);
    if (err == NULL && fill > limit) {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "can not create model '%s':"
            " memory limit set for GPU %d has exceeded, model loading is"
            " rejected.", spec->name, (int) spec->device_id);
    }
    return err;
}

/* Fills the runner's options; prepare->warmup is the caller's. */
static inf_err_t *
make_options(const inf_model_load_t *what, const inf_model_t *model,
    instance_prepare_t *prepare, inf_runner_options_t *out)
{
    prepare->what = what;
    inf_err_t *err = inf_warmup_new(what->storage, what->dir, model,
        &prepare->warmup);
    if (err != NULL) {
        return err;
    }

    *out = (inf_runner_options_t) {
        .executor = what->options->plugins->executor,
        .spin_ns = what->core_config->values->spin_us * 1000,
        .idle = what->options->idle,
        .idle_userp = what->options->idle_userp,
        .timekeeper = what->timekeeper,
        .rate_gate = what->options->rate_gate,
        .stuck_limit = what->options->stuck_limit,
        .device_blocking = inf_model_is_device_blocking(model),
        .prepare = prepare->warmup != NULL
            || what->core_config->host_policies.count > 0
            ? prepare_instance : NULL,
        .prepare_userp = prepare,
        .parallel = in_parallel(model)
    };
    return NULL;
}

static inf_err_t *
prepare_instance(void *userp, inf_instance_t *instance)
{
    const instance_prepare_t *p = userp;

    inf_err_t *err = inf_host_policy_apply(instance->model->host_policies,
        instance->spec->host_policy);
    if (err == NULL && p->warmup != NULL) {
        err = inf_warmup_run(p->warmup, instance,
            p->what->options->plugins->executor->execute, p->what->stopping);
    }
    return err;
}

/* Drops idle instances; returns the number of others, moved to the front.  A
   backend may hold requests beyond Execute, and responses beyond the
   request. */
static uint32_t
drop_idle(const inf_lifecycle_options_t *options, inf_instance_t **instances,
    uint32_t count)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < count; i++) {
        inf_instance_t *instance = instances[i];
        if (!inf_instance_is_idle(instance)) {
            instances[left++] = instance;
            continue;
        }

        inf_instances_begin(instance->model);
        finish(options, instance);
        inf_instances_end(instance->model);
        inf_instance_unlink(instance);
        inf_instance_free(instance);
    }

    return left;
}

static void
finish(const inf_lifecycle_options_t *options, inf_instance_t *instance)
{
    inf_children_let_go(options->children, instance->model, instance);
    options->plugins->instance_fini(instance);
    inf_leftovers_remove(inf_children_forget(options->children,
        instance->model, instance), false);
}
