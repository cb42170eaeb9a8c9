#include "core/repository/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/model/config_load.h"
#include "core/model/labels.h"
#include "core/model/model.h"
#include "core/model/versions.h"
#include "core/proto/message.h"
#include "core/repository/agent_table.h"
#include "core/repository/backend_search.h"
#include "core/repository/ensemble_check.h"
#include "core/repository/rate_check.h"
#include "core/repository/scan.h"
#include "core/repository/storage.h"
#include "core/sched/sequence_inputs.h"

typedef struct {
    const inf_check_t *what;
    inf_check_fn       fn;
    void              *userp;
    inf_scan_root_t   *roots;
    inf_storage_t    **storages;
    char             **addresses;
    size_t             root_count;
    bool               whole;           /* no repository was left out        */
    inf_ensemble_check_t *ensembles;
    inf_rate_check_t  *rates;           /* NULL: nothing is limited          */
} checker_t;

static inf_err_t *open_roots(checker_t *c);
static void close_roots(checker_t *c);
static bool is_remote(const char *address);
static void check_model(checker_t *c, const inf_scan_model_t *m);
static void check_ensemble(checker_t *c, const inf_scan_model_t *m);
static void note_model(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config, const int64_t *versions, size_t count);
static bool check_agents(checker_t *c, const inf_scan_model_t *m,
    const inf_config_options_t *opt);
static void check_libraries(checker_t *c, const inf_storage_t *st,
    const inf_model_config_t *config);
static void check_rates(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config);
static void check_findings(checker_t *c, const char *origin,
    const inf_findings_t *f);
static void check_versions(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config);
static void check_backend(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config, int64_t version);
static void check_states(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config);
static void check_labels(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config);
static void report_error(checker_t *c, const char *origin, inf_err_t *err);

inf_err_t *
inf_repository_check(const inf_check_t *what, inf_check_fn fn, void *userp)
{
    checker_t c = { .what = what, .fn = fn, .userp = userp };
    inf_scan_t scan;

    inf_err_t *err = open_roots(&c);
    if (err == NULL && what->rates_limited) {
        err = inf_rate_check_new(what->rate_resources,
            what->rate_resource_count, &c.rates);
    }
    if (err != NULL) {
        close_roots(&c);
        return err;
    }

    err = inf_scan(c.roots, c.root_count, &scan);
    if (err == NULL) {
        for (size_t i = 0; i < scan.problem_count; i++) {
            fn(userp, scan.problems[i].level, scan.problems[i].text);
        }
        err = inf_ensemble_check_new(c.whole, &c.ensembles);
        for (size_t i = 0; err == NULL && i < scan.model_count; i++) {
            check_model(&c, &scan.models[i]);
        }
        for (size_t i = 0; err == NULL && i < scan.model_count; i++) {
            check_ensemble(&c, &scan.models[i]);
        }
        inf_ensemble_check_free(c.ensembles);
        inf_scan_fini(&scan);
    }

    inf_rate_check_free(c.rates);
    close_roots(&c);
    return err;
}

/* An address that can't be opened is reported and left out. */
static inf_err_t *
open_roots(checker_t *c)
{
    size_t count = c->what->repository_count;

    c->whole = true;
    c->roots = calloc(count + 1, sizeof(*c->roots));
    c->storages = calloc(count + 1, sizeof(*c->storages));
    c->addresses = calloc(count + 1, sizeof(*c->addresses));
    if (c->roots == NULL || c->storages == NULL || c->addresses == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const char *address = c->what->repositories[i];
        size_t n = c->root_count;

        if (is_remote(address)) {
            c->whole = false;
            continue;
        }

        inf_err_t *err = inf_storage_open(address, &c->storages[n],
            &c->addresses[n]);
        if (err != NULL) {
            report_error(c, NULL, err);
            c->whole = false;
            continue;
        }
        c->roots[n] = (inf_scan_root_t) {
            .storage = c->storages[n],
            .root = c->addresses[n],
            .space = c->what->namespacing ? address : NULL
        };
        c->root_count++;
    }
    return NULL;
}

static void
close_roots(checker_t *c)
{
    for (size_t i = 0; i < c->root_count; i++) {
        inf_storage_close(c->storages[i]);
        free(c->addresses[i]);
    }
    free(c->roots);
    free(c->storages);
    free(c->addresses);
}

static bool
is_remote(const char *address)
{
    const char *colon = strstr(address, "://");
    return colon != NULL && memchr(address, '/', (size_t) (colon - address))
        == NULL;
}

static void
check_model(checker_t *c, const inf_scan_model_t *m)
{
    const inf_config_options_t opt = {
        .auto_complete = c->what->auto_complete,
        .config_name = c->what->config_name
    };
    const inf_storage_t *st = c->roots[m->repository].storage;
    inf_model_config_t *config;
    inf_findings_t f;

    if (m->duplicate || m->unreadable) {
        note_model(c, m, NULL, NULL, 0);
        return;                 /* the scan has said so                      */
    }
    if (check_agents(c, m, &opt)) {
        note_model(c, m, NULL, NULL, 0);
        return;
    }

    inf_findings_init(&f);
    inf_model_config_check(st, m->dir, m->name, &opt, &f, &config);
    check_findings(c, config != NULL ? config->origin : NULL, &f);

    if (config != NULL) {
        if (c->rates != NULL) {
            check_rates(c, m, config);
        }
        if (inf_findings_total(&f) == 0) {
            check_versions(c, m, config);
            check_labels(c, m, config);
            check_states(c, m, config);
        }
    }
    if (config == NULL || inf_findings_total(&f) > 0) {
        note_model(c, m, NULL, NULL, 0);
    }
    inf_model_config_unref(config);
    inf_findings_fini(&f);
}

/* Once all models are known. */
static void
check_ensemble(checker_t *c, const inf_scan_model_t *m)
{
    const inf_model_id_t id = {
        .space = m->space != NULL ? m->space : "", .name = m->name
    };
    inf_model_config_t *config = NULL;
    inf_findings_t f;

    inf_findings_init(&f);
    inf_err_t *err = inf_ensemble_check_find(c->ensembles, &id, &f, &config);
    if (err != NULL) {
        report_error(c, m->dir, err);
    } else if (inf_findings_total(&f) > 0) {
        inf_err_free(inf_model_config_explain(config,
            c->roots[m->repository].storage, &f));
        check_findings(c, config->origin, &f);
    }
    inf_findings_fini(&f);
}

/* config NULL: what it will be nobody can tell. */
static void
note_model(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config, const int64_t *versions, size_t count)
{
    const inf_model_id_t id = {
        .space = m->space != NULL ? m->space : "", .name = m->name
    };

    inf_err_t *err = inf_ensemble_check_add(c->ensembles, &id, config,
        versions, count);
    if (err != NULL) {
        report_error(c, m->dir, err);
    }
}

/*
 * Repository agents may bring what is missing and change the rest, so that
 * only their own libraries can be missed.  false: there are none.
 */
static bool
check_agents(checker_t *c, const inf_scan_model_t *m,
    const inf_config_options_t *opt)
{
    const inf_storage_t *st = c->roots[m->repository].storage;
    Inference__ModelConfig *msg;
    inf_model_config_t *config = NULL;
    char *file;

    inf_err_t *err = inf_model_config_parse(st, m->dir, opt, &file, &msg);
    if (err != NULL || msg == NULL) {
        inf_err_free(err);              /* the check says it better          */
        return false;
    }
    if (msg->model_repository_agents == NULL
        || msg->model_repository_agents->n_agents == 0)
    {
        inf_message_free(&msg->base);
        free(file);
        return false;
    }

    err = inf_model_config_new(msg, file, file, &config);
    if (err != NULL) {
        inf_message_free(&msg->base);
        report_error(c, m->dir, err);
    } else {
        check_libraries(c, st, config);
        inf_model_config_unref(config);
    }

    free(file);
    return true;
}

static void
check_libraries(checker_t *c, const inf_storage_t *st,
    const inf_model_config_t *config)
{
    const Inference__ModelRepositoryAgents *agents =
        config->msg->model_repository_agents;
    inf_findings_t f;

    inf_findings_init(&f);
    for (size_t i = 0; i < agents->n_agents; i++) {
        char *library;
        inf_err_t *err = inf_agent_library_find(c->what->agent_dirs,
            c->what->agent_dir_count, agents->agents[i]->name, &library);
        if (err == NULL) {
            free(library);
            continue;
        }

        char key[64];
        snprintf(key, sizeof(key), "model_repository_agents.agents[%zu].name",
            i);
        inf_findings_add(&f, inf_err_code(err), key, "%s", inf_err_msg(err));
        inf_err_free(err);
    }

    if (inf_findings_total(&f) > 0) {
        inf_model_config_place(config, st, &f);
        check_findings(c, config->origin, &f);
    }
    inf_findings_fini(&f);
}

static void
check_rates(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config)
{
    inf_findings_t f;

    inf_findings_init(&f);
    inf_err_t *err = inf_rate_check_model(c->rates, config->msg, &f);
    if (err != NULL) {
        report_error(c, config->origin, err);
    }
    if (inf_findings_total(&f) > 0) {
        inf_model_config_place(config, c->roots[m->repository].storage, &f);
        check_findings(c, config->origin, &f);
    }
    inf_findings_fini(&f);
}

static void
check_findings(checker_t *c, const char *origin, const inf_findings_t *f)
{
    for (size_t i = 0; i < f->count; i++) {
        inf_findings_t one = { .items = &f->items[i], .count = 1 };
        report_error(c, NULL, inf_findings_error(&one, origin));
    }

    if (f->more + f->lost > 0) {
        report_error(c, origin, inf_err_new(INF_ERR_INVALID_ARG,
            "%zu more findings", f->more + f->lost));
    }
}

static void
check_versions(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config)
{
    size_t count = m->version_count;
    size_t chosen = 0;
    int64_t *versions = calloc(count + 1, sizeof(*versions));

    if (versions == NULL) {
        report_error(c, m->dir, inf_err_nomem());
        return;
    }
    if (count > 0) {
        memcpy(versions, m->versions, count * sizeof(*versions));
    }

    inf_err_t *err = inf_versions_choose(config->msg->version_policy, m->name,
        versions, count, &chosen);
    if (err != NULL) {
        report_error(c, m->dir, err);
    }

    note_model(c, m, err == NULL ? config : NULL, versions, chosen);
    bool ensemble = inf_config_is_ensemble(config->msg);
    for (size_t i = 0; err == NULL && !ensemble && i < chosen; i++) {
        check_backend(c, m, config, versions[i]);
    }
    free(versions);
}

static void
check_backend(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config, int64_t version)
{
    const inf_backend_query_t query = {
        .model_name = m->name,
        .model_dir = m->dir,
        .version = version,
        .backend = config->msg->backend,
        .runtime = config->msg->runtime,
        .global_dirs = c->what->backend_dirs,
        .global_count = c->what->backend_dir_count
    };
    inf_backend_location_t where;
    inf_findings_t f;

    inf_err_t *err = inf_backend_search(&query, &where);
    if (err == NULL) {
        inf_backend_location_fini(&where);
        return;
    }

    inf_findings_init(&f);
    inf_findings_add(&f, inf_err_code(err), "backend", "%s",
        inf_err_msg(err));
    inf_err_free(err);
    report_error(c, NULL, inf_model_config_explain(config,
        c->roots[m->repository].storage, &f));
    inf_findings_fini(&f);
}

/* The files that sequences begin with. */
static void
check_states(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config)
{
    inf_sequence_inputs_t *inputs;

    if (config->msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        return;
    }

    inf_model_t *model = inf_model_new(m->name, 1, m->dir);
    if (model == NULL) {
        report_error(c, NULL, inf_err_nomem());
        return;
    }

    model->built = config->msg;             /* lent                          */
    inf_err_t *err = inf_config_tensors_new(config->msg, &model->tensors);
    if (err == NULL) {
        err = inf_sequence_inputs_new(c->roots[m->repository].storage, m->dir,
            model, &inputs);
    }
    if (err != NULL) {
        report_error(c, config->origin, err);
    } else {
        inf_sequence_inputs_free(inputs);
    }
    model->built = NULL;
    inf_model_free(model);
}

static void
check_labels(checker_t *c, const inf_scan_model_t *m,
    const inf_model_config_t *config)
{
    inf_labels_t *labels;
    inf_err_t *err = inf_labels_load(c->roots[m->repository].storage, m->dir,
        config->msg, &labels);

    if (err != NULL) {
        report_error(c, config->origin, err);
        return;
    }
    inf_labels_unref(labels);
}

/* Takes err. */
static void
report_error(checker_t *c, const char *origin, inf_err_t *err)
{
    if (origin != NULL) {
        err = inf_err_add(err, "%s", origin);
    }
    c->fn(c->userp, INF_LOG_ERROR, inf_err_msg(err));
    inf_err_free(err);
}
