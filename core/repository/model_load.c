#include "core/repository/model_load.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/config_edit.h"
#include "core/model/config_load.h"
#include "core/model/config_validate.h"
#include "core/repository/children.h"
#include "core/repository/model_instances.h"
#include "core/repository/model_validate.h"
#include "core/repository/strategy_search.h"
#include "core/sched/ensemble.h"
#include "core/sched/sequence_inputs.h"
#include "core/tensor/ledger.h"

#define ENVIRONMENT_KEY "EXECUTION_ENV_PATH"

static inf_err_t *load_ensemble(const inf_model_load_t *what,
    inf_model_t *model, uint64_t start_ns, inf_model_t **out);
static inf_err_t *describe_ensemble(const inf_model_load_t *what,
    inf_model_t *model);
static inf_err_t *inherit_labels(inf_model_t *model, size_t step,
    const inf_model_t *composing);
static inf_err_t *init_model(const inf_model_load_t *what,
    inf_model_t *model);
static void finalize(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children);
static void answer_queued(inf_model_t *model, const char *why);
static inf_err_t *open_backend(const inf_model_load_t *what,
    inf_model_t *model);
static inf_err_t *describe_python(inf_model_t *model, const char *environment);
static inf_err_t *build_tables(const inf_model_load_t *what,
    inf_model_t *model);
static inf_err_t *check_rules(const inf_model_load_t *what,
    const inf_model_t *model);
static inf_err_t *explain_rejection(const inf_model_load_t *what,
    inf_model_t *model, inf_err_t *err);
static inf_err_t *make_latencies(const inf_model_load_t *what,
    inf_model_t *model);
static inf_err_t *open_strategy(const inf_model_load_t *what,
    inf_model_t *model);
static inf_err_t *put_cache(const inf_model_load_t *what, inf_model_t *model);

inf_err_t *
inf_model_load(const inf_model_load_t *what, inf_model_t **out)
{
    const inf_plugin_ops_t *plugins = what->options->plugins;
    bool initialized = false;
    uint64_t start_ns = inf_clock_ns();

    inf_model_t *model;
    inf_err_t *err = inf_model_draft(what, &model);
    if (err != NULL) {
        return err;
    }
    if (inf_config_is_ensemble(model->config->msg)) {
        return load_ensemble(what, model, start_ns, out);
    }

    err = open_backend(what, model);
    if (err == NULL) {
        err = init_model(what, model);
        initialized = err == NULL;
        if (err != NULL) {
            err = explain_rejection(what, model, err);
        }
    }
    if (err == NULL) {
        err = build_tables(what, model);
    }
    if (err == NULL) {
        err = open_strategy(what, model);
    }
    if (err == NULL) {
        err = inf_model_make_instances(what, model);
    }
    if (err == NULL) {
        err = inf_model_start_runner(what, model);
    }
    if (err == NULL) {
        err = put_cache(what, model);
    }
    if (err == NULL) {
        model->load_ns = inf_clock_ns() - start_ns;
        *out = model;
        return NULL;
    }

    if (initialized) {
        inf_model_unload(model, plugins, what->options->children);
    } else {
        inf_model_free(model);
    }
    return err;
}

/* Initializes the model; the backend may start processes and complete the
   configuration. */
static inf_err_t *
init_model(const inf_model_load_t *what, inf_model_t *model)
{
    inf_load_thread_t me;

    inf_load_threads_enter(what->options->threads, &me, what->load);
    inf_err_t *err = what->options->plugins->model_init(model);
    inf_load_threads_leave(what->options->threads, &me);
    return err;
}

/* Builds an ensemble from its configuration and composing models. */
static inf_err_t *
load_ensemble(const inf_model_load_t *what, inf_model_t *model,
    uint64_t start_ns, inf_model_t **out)
{
    inf_err_t *err = build_tables(what, model);
    if (err == NULL) {
        err = inf_ensemble_new(model, what->composing, what->composing_count,
            NULL, &model->sched.ensemble);
    }
    if (err == NULL) {
        err = describe_ensemble(what, model);
    }
    for (size_t i = 0; err == NULL && i < what->composing_count; i++) {
        err = inherit_labels(model, i, what->composing[i]);
    }
    if (err == NULL) {
        err = put_cache(what, model);
    }
    if (err != NULL) {
        inf_model_unload(model, what->options->plugins,
            what->options->children);
        return err;
    }

    uint32_t most = model->built->ensemble_scheduling->max_inflight_requests;
    if (most > 0) {
        inf_log(INF_LOG_INFO, "Ensemble model '%s' configured with"
            " max_inflight_requests: %u", model->name, most);
    }

    model->load_ns = inf_clock_ns() - start_ns;
    *out = model;
    return NULL;
}

void
inf_model_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children)
{
    inf_runner_free(model->sched.runner);
    model->sched.runner = NULL;
    inf_sequence_inputs_free(model->sched.sequence_inputs);
    model->sched.sequence_inputs = NULL;
    inf_cached_model_free(model->sched.gate);
    model->sched.gate = NULL;
    inf_ensemble_free(model->sched.ensemble);
    model->sched.ensemble = NULL;
    if (model->sched.strategy != NULL) {
        plugins->strategy_close(model->sched.strategy);
        model->sched.strategy = NULL;
    }

    if (!atomic_load(&model->unloaded) && model->backend != NULL) {
        finalize(model, plugins, children);
        inf_leftovers_remove(inf_children_forget(children, model, NULL),
            false);
    }

    inf_model_free(model);
}

static void
finalize(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children)
{
    inf_children_let_go(children, model, NULL);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        plugins->instance_fini(model->instances[i]);
    }
    plugins->model_fini(model);
}

void
inf_model_force_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children, const char *why)
{
    inf_runner_close(model->sched.runner);
    answer_queued(model, why);
    inf_model_close(model);             /* no changes of instances now       */
    inf_runner_stop(model->sched.runner);
    finalize(model, plugins, children);

    inf_ledger_t *ledger = atomic_load(&model->ledger);
    uint32_t open = ledger != NULL ? inf_ledger_settle(ledger, why) : 0;
    if (open > 0) {
        inf_log(INF_LOG_WARN, "model=%s version=%lld: %u requests that were"
            " running are answered for it", model->name,
            (long long) model->version, open);
    }
    inf_leftovers_remove(inf_children_forget(children, model, NULL), false);
}

/* Answers queued requests, which only instances without their process could
   run. */
static void
answer_queued(inf_model_t *model, const char *why)
{
    inf_request_t *req;

    while ((req = inf_runner_take_queued(model->sched.runner)) != NULL) {
        inf_statistics_failure(&model->statistics, req->start_ns,
            inf_clock_ns());
        inf_factory_send_error(req->factory, inf_err_new(INF_ERR_UNAVAILABLE,
            "%s", why));
        inf_request_release(req, 1);
    }
}

static inf_err_t *
open_backend(const inf_model_load_t *what, inf_model_t *model)
{
    inf_backend_location_t where;

    inf_err_t *err = inf_model_find_backend(what, model, &where);
    if (err != NULL) {
        return err;
    }

    err = inf_backend_table_get(what->backends,
        what->core_config->values, model->config->msg->backend, &where,
        &model->backend);
    if (err == NULL && where.python_based) {
        err = describe_python(model, where.environment);
    }
    inf_backend_location_fini(&where);
    if (err != NULL) {
        return err;
    }

    inf_findings_t f;
    inf_findings_init(&f);
    inf_lock(&model->config_lock);
    err = inf_model_settle_groups(what, model->backend, model->config->msg,
        &f);
    inf_unlock(&model->config_lock);
    if (err == NULL) {
        err = inf_model_config_explain(model->config, what->storage, &f);
    }
    inf_findings_fini(&f);
    return err;
}

/* Takes the parameters of a backend written in Python; the model's own
   environment has precedence. */
static inf_err_t *
describe_python(inf_model_t *model, const char *environment)
{
    inf_lock(&model->config_lock);

    Inference__ModelConfig *msg = model->config->msg;
    inf_err_t *err = inf_config_put_text(&msg->base, "runtime", "model.py");

    bool own = false;
    for (size_t i = 0; i < msg->n_parameters; i++) {
        own |= strcmp(msg->parameters[i]->key, ENVIRONMENT_KEY) == 0;
    }

    if (err == NULL && environment != NULL && !own) {
        Inference__ModelConfig__ParametersEntry *entry = NULL;
        Inference__ModelParameter *value = NULL;

        err = inf_config_put_message(&msg->base, "parameters", &entry);
        if (err == NULL) {
            err = inf_config_put_text(&entry->base, "key", ENVIRONMENT_KEY);
        }
        if (err == NULL) {
            err = inf_config_put_message(&entry->base, "value", &value);
        }
        if (err == NULL) {
            err = inf_config_put_text(&value->base, "string_value",
                environment);
        }
    }

    inf_unlock(&model->config_lock);
    return err;
}

/* Builds tables after the backend has completed the configuration. */
static inf_err_t *
build_tables(const inf_model_load_t *what, inf_model_t *model)
{
    if (model->config->file == NULL && !what->overridden
        && !model->completed)
    {
        return inf_err_new(INF_ERR_NOT_FOUND,
            "model configuration is not provided for model '%s'", model->name);
    }

    inf_err_t *err = inf_model_fix_config(model);
    if (err == NULL) {
        err = check_rules(what, model);
    }
    if (err == NULL) {
        err = inf_model_make_tables(what, model, NULL, NULL);
    }
    return err != NULL ? err : make_latencies(what, model);
}

/* Completes an ensemble's configuration from its composing models: decoupled,
   and their namespaces. */
static inf_err_t *
describe_ensemble(const inf_model_load_t *what, inf_model_t *model)
{
    Inference__ModelTransactionPolicy *policy;

    inf_lock(&model->config_lock);
    Inference__ModelConfig *msg = model->config->msg;
    inf_err_t *err = msg->model_transaction_policy != NULL ? NULL
        : inf_config_put_message(&msg->base, "model_transaction_policy",
            &policy);
    if (err == NULL) {
        msg->model_transaction_policy->decoupled = model->decoupled;
    }
    for (size_t i = 0; err == NULL && i < what->composing_count; i++) {
        const char *space = what->composing[i]->space;
        if (space != NULL) {
            err = inf_config_put_text(
                &msg->ensemble_scheduling->step[i]->base, "model_namespace",
                space);
        }
    }
    inf_unlock(&model->config_lock);
    return err;
}

/* Gives an output without own labels those of its step. */
static inf_err_t *
inherit_labels(inf_model_t *model, size_t step, const inf_model_t *composing)
{
    const Inference__ModelConfig *msg = model->built;
    const Inference__ModelEnsembling__Step *s =
        msg->ensemble_scheduling->step[step];
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < s->n_output_map; i++) {
        for (size_t k = 0; err == NULL && k < msg->n_output; k++) {
            if (strcmp(s->output_map[i]->value, msg->output[k]->name) == 0) {
                err = inf_labels_inherit(model->labels,
                    inf_slice_str(msg->output[k]->name), composing->labels,
                    inf_slice_str(s->output_map[i]->key));
            }
        }
    }

    return err;
}

static inf_err_t *
make_latencies(const inf_model_load_t *what, inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;
    const NginxInference__MetricsSettings *metrics =
        what->core_config->values->metrics;
    const inf_latencies_options_t options = {
        .summaries = metrics->summaries,
        .histogram = metrics->histograms,
        .cached = what->options->cache != NULL && msg->response_cache != NULL
            && msg->response_cache->enable
    };

    return inf_latencies_new(msg, &options, &model->latencies);
}

/* Opens the batch strategy for the dynamic batcher; an invalid one fails the
   load even without that. */
static inf_err_t *
open_strategy(const inf_model_load_t *what, inf_model_t *model)
{
    char *library;

    inf_err_t *err = inf_strategy_search(model,
        what->core_config->values, &library);
    if (err == NULL && library != NULL) {
        err = what->options->plugins->strategy_open(model, library,
            &model->sched.strategy);
        free(library);
    }
    return err;
}

static inf_err_t *
check_rules(const inf_model_load_t *what, const inf_model_t *model)
{
    inf_findings_t f;

    inf_findings_init(&f);
    inf_config_find(model->built, INF_RULES_ALL, &f);
    inf_err_t *err = inf_model_config_explain(model->config, what->storage,
        &f);
    inf_findings_fini(&f);
    return err;
}

/* Appends findings on the configuration, with their place in its file, to the
   backend's rejection.  Takes err. */
static inf_err_t *
explain_rejection(const inf_model_load_t *what, inf_model_t *model,
    inf_err_t *err)
{
    inf_findings_t f;

    inf_findings_init(&f);
    inf_lock(&model->config_lock);
    inf_config_find(model->config->msg, INF_RULES_ALL, &f);
    inf_unlock(&model->config_lock);
    inf_err_t *lack = inf_model_config_explain(model->config, what->storage,
        &f);
    inf_findings_fini(&f);

    if (lack == NULL) {
        return err;
    }

    inf_err_t *both = inf_err_new(inf_err_code(err), "%s (%s)",
        inf_err_msg(err), inf_err_msg(lack));
    inf_err_free(err);
    inf_err_free(lack);
    return both;
}

/* Adds the response cache, if the configuration asks for it and the server has
   one. */
static inf_err_t *
put_cache(const inf_model_load_t *what, inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;
    if (msg->response_cache == NULL || !msg->response_cache->enable) {
        return NULL;
    }
    if (what->options->cache == NULL) {
        inf_log(INF_LOG_WARN, "model=%s version=%lld: response_cache is"
            " enabled, but the server has no response cache: requests are"
            " served without it", model->name, (long long) model->version);
        return NULL;
    }

    return inf_cached_model_new(what->options->cache, model, what->timekeeper,
        &model->sched.gate);
}
