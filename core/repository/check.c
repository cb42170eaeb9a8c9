#include "core/repository/check.h"

#include <stdlib.h>

#include "core/model/config_load.h"
#include "core/model/config_validate.h"
#include "core/model/instance_groups.h"
#include "core/model/versions.h"
#include "core/proto/message.h"
#include "core/repository/agent_table.h"
#include "core/repository/ensemble_check.h"
#include "core/repository/model_validate.h"
#include "core/repository/name_check.h"
#include "core/repository/rate_check.h"
#include "core/repository/scan.h"
#include "core/repository/strategy_search.h"
#include "core/storage/storage.h"

typedef struct {
    const inf_core_config_t *core_config;
    inf_config_options_t     options;       /* of reading a configuration    */
    inf_name_check_t         names;         /* and the reporter              */
    inf_scan_root_t         *roots;
    inf_storage_t          **storages;
    size_t                   root_count;
    bool                     whole;         /* no repository was skipped     */
    inf_ensemble_check_t    *ensembles;
    inf_rate_check_t        *rates;         /* NULL: no limits               */
    const char              *origin;        /* of report_problem's errors    */
} checker_t;

static inf_err_t *open_roots(checker_t *c);
static void close_roots(checker_t *c);
static inf_err_t *check_names(const checker_t *c, const inf_scan_t *scan);
static void check_model(checker_t *c, const inf_scan_model_t *m);
static void add_unknown(checker_t *c, const inf_scan_model_t *m);
static bool check_agents(checker_t *c, const inf_scan_model_t *m);
static void check_libraries(checker_t *c, const inf_storage_t *st,
    const inf_model_config_t *config);
static void find_later(checker_t *c, const Inference__ModelConfig *msg,
    inf_findings_t *f);
static bool check_versions(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config);
static inf_model_t *check_version(checker_t *c, const inf_model_load_t *what);
static inf_err_t *check_backend(const inf_model_load_t *what,
    const inf_model_t *draft);
static inf_err_t *check_files(checker_t *c, const inf_model_load_t *what,
    inf_model_t *draft);
static void last_unref(inf_model_t *draft);
static void check_ensemble(checker_t *c, const inf_scan_model_t *m);
static void report_findings(checker_t *c, const char *origin,
    const inf_findings_t *f);
static void report_problem(void *userp, inf_err_t *err);
static void report_error(checker_t *c, const char *origin, inf_err_t *err);

static const inf_model_ops_t draft_ops = { .last_unref = last_unref };

inf_err_t *
inf_repository_check(const inf_core_config_t *config, inf_check_fn fn,
    void *userp)
{
    checker_t c = {
        .core_config = config,
        .options = {
            .auto_complete = config->values->auto_complete,
            .config_name = config->values->model_config_name
        },
        .names = { .config = config->values, .fn = fn, .userp = userp }
    };
    inf_scan_t scan;

    inf_err_t *err = open_roots(&c);
    if (err == NULL) {
        err = inf_rate_check_new(config->values, &c.rates);
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
        if (err == NULL) {
            err = check_names(&c, &scan);
        }
        inf_ensemble_check_free(c.ensembles);
        inf_scan_fini(&scan);
    }

    inf_rate_check_free(c.rates);
    close_roots(&c);
    return err;
}

/* Opens the roots; an address that cannot be opened is reported and skipped. */
static inf_err_t *
open_roots(checker_t *c)
{
    const NginxInference__CoreConfig *config = c->core_config->values;
    size_t count = config->n_repositories;

    c->whole = true;
    c->roots = calloc(count + 1, sizeof(*c->roots));
    c->storages = calloc(count + 1, sizeof(*c->storages));
    if (c->roots == NULL || c->storages == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const char *address = config->repositories[i];
        size_t n = c->root_count;

        if (inf_storage_address_is_remote(address)) {
            c->whole = false;
            continue;
        }

        char *root;
        inf_err_t *err = inf_storage_open(address, &c->storages[n], &root);
        if (err != NULL) {
            report_error(c, NULL, err);
            c->whole = false;
            continue;
        }
        c->roots[n] = (inf_scan_root_t) {
            .storage = c->storages[n],
            .root = root,
            .space = config->model_namespacing ? address : NULL
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
        free((char *) (uintptr_t) c->roots[i].root);
    }
    free(c->roots);
    free(c->storages);
}

/* Checks the models that directives name, if all repositories were listed. */
static inf_err_t *
check_names(const checker_t *c, const inf_scan_t *scan)
{
    for (size_t i = 0; i < c->root_count; i++) {
        if (scan->root_failed[i]) {
            return NULL;
        }
    }
    return c->whole ? inf_name_check_unknown(&c->names, scan) : NULL;
}

static void
check_model(checker_t *c, const inf_scan_model_t *m)
{
    const inf_storage_t *st = c->roots[m->repository].storage;
    inf_model_config_t *config;
    inf_findings_t f;

    /* the scan has reported the first two */
    if (m->duplicate || m->unreadable != NULL || check_agents(c, m)) {
        add_unknown(c, m);
        return;
    }

    inf_findings_init(&f);
    inf_model_config_check(st, m->dir, m->name, &c->options, &f, &config);
    if (config != NULL) {
        find_later(c, config->msg, &f);
        inf_model_config_place(config, st, &f);
    }
    report_findings(c, config != NULL ? config->origin : NULL, &f);

    if (inf_findings_total(&f) > 0 || !check_versions(c, m, config)) {
        add_unknown(c, m);
    }
    inf_model_config_free(config);
    inf_findings_fini(&f);
}

static void
add_unknown(checker_t *c, const inf_scan_model_t *m)
{
    const inf_model_id_t id = { .space = m->space, .name = m->name };

    inf_err_t *err = inf_ensemble_check_add(c->ensembles, &id, NULL, NULL, 0);
    if (err != NULL) {
        report_error(c, m->dir, err);
    }
}

/*
 * Checks only the agents' libraries of a model with repository agents, which
 * may change everything else.  false: it has no agents.
 */
static bool
check_agents(checker_t *c, const inf_scan_model_t *m)
{
    const inf_storage_t *st = c->roots[m->repository].storage;
    Inference__ModelConfig *msg;
    inf_model_config_t *config = NULL;
    char *file;

    inf_err_t *err = inf_model_config_parse(st, m->dir, &c->options, &file,
        &msg);
    if (err != NULL || msg == NULL) {
        inf_err_free(err);              /* reported by the check below       */
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
        inf_model_config_free(config);
    }

    free(file);
    return true;
}

static void
check_libraries(checker_t *c, const inf_storage_t *st,
    const inf_model_config_t *config)
{
    const NginxInference__CoreConfig *core_config = c->core_config->values;
    const Inference__ModelRepositoryAgents *agents =
        config->msg->model_repository_agents;
    char key[INF_KEY_MAX];
    inf_findings_t f;
    const inf_agent_dirs_t dirs = {
        .items = core_config->agent_directories,
        .count = core_config->n_agent_directories
    };

    inf_findings_init(&f);
    for (size_t i = 0; i < agents->n_agents; i++) {
        char *library = NULL;
        inf_err_t *err = inf_agent_library_find(&dirs,
            agents->agents[i]->name, &library);
        if (err != NULL) {
            inf_findings_add(&f, inf_err_code(err), inf_key(key,
                "model_repository_agents.agents[%zu].name", i), "%s",
                inf_err_msg(err));
            inf_err_free(err);
            continue;
        }
        free(library);
    }

    inf_model_config_place(config, st, &f);
    report_findings(c, config->origin, &f);
    inf_findings_fini(&f);
}

/* Runs the checks that a load makes after the backend's initialization, as far
   as they do not depend on it. */
static void
find_later(checker_t *c, const Inference__ModelConfig *msg, inf_findings_t *f)
{
    inf_config_find(msg, INF_RULES_STATE, f);
    inf_instance_groups_find_anywhere(msg, f);
    if (c->rates != NULL) {
        inf_err_t *err = inf_rate_check_model(c->rates, msg, f);
        if (err != NULL) {
            report_error(c, NULL, err);
        }
    }
}

/* Checks the versions that would serve.  false: these are not known. */
static bool
check_versions(checker_t *c, const inf_scan_model_t *m,
    inf_model_config_t *config)
{
    const inf_model_id_t id = { .space = m->space, .name = m->name };
    const inf_lifecycle_options_t options = { .plugins = NULL };
    inf_model_load_t what = {
        .options = &options,
        .core_config = c->core_config,
        .storage = c->storages[m->repository],
        .name = m->name,
        .space = m->space,
        .dir = m->dir,
        .config = config,
        .ops = &draft_ops
    };
    inf_model_t *draft = NULL;
    int64_t *versions;
    size_t count;

    inf_err_t *err = inf_versions_select(config->msg->version_policy, m->name,
        m->versions, m->version_count, &versions, &count);
    if (err == NULL && m->space[0] == '\0') {
        err = inf_name_check_versions(&c->names, m, versions, count);
        if (err != NULL) {
            free(versions);
        }
    }
    if (err != NULL) {
        report_error(c, m->dir, err);
        return false;
    }

    for (size_t i = 0; i < count; i++) {
        inf_model_unref(draft);
        what.version = versions[i];
        draft = check_version(c, &what);
    }
    if (draft != NULL) {
        err = check_files(c, &what, draft);
        if (err == NULL) {
            err = inf_ensemble_check_add(c->ensembles, &id, draft, versions,
                count);
            versions = NULL;
        }
        if (err != NULL) {
            report_error(c, config->origin, err);
        }
    }

    inf_model_unref(draft);
    free(versions);
    return draft != NULL && err == NULL;
}

/* Checks a version; returns the draft, or NULL. */
static inf_model_t *
check_version(checker_t *c, const inf_model_load_t *what)
{
    inf_model_t *draft;

    inf_err_t *err = inf_model_draft(what, &draft);
    if (err != NULL) {
        report_error(c, what->dir, err);
        return NULL;
    }

    err = inf_config_is_ensemble(draft->config->msg) ? NULL
        : check_backend(what, draft);
    if (err != NULL) {
        report_error(c, NULL, err);
    }
    return draft;
}

static inf_err_t *
check_backend(const inf_model_load_t *what, const inf_model_t *draft)
{
    inf_backend_location_t where;
    inf_findings_t f;

    inf_err_t *err = inf_model_find_backend(what, draft, &where);
    if (err == NULL) {
        inf_backend_location_fini(&where);
        return NULL;
    }

    inf_findings_init(&f);
    inf_findings_add(&f, inf_err_code(err), "backend", "%s",
        inf_err_msg(err));
    inf_err_free(err);
    err = inf_model_config_explain(draft->config, what->storage, &f);
    inf_findings_fini(&f);
    return err;
}

/* Checks the files that the configuration names. */
static inf_err_t *
check_files(checker_t *c, const inf_model_load_t *what, inf_model_t *draft)
{
    char *library = NULL;

    c->origin = draft->config->origin;
    inf_err_t *err = inf_model_fix_config(draft);
    if (err == NULL) {
        err = inf_model_make_tables(what, draft, report_problem, c);
    }
    if (err != NULL) {
        return err;
    }

    err = inf_strategy_search(draft, c->core_config->values, &library);
    if (err != NULL) {
        report_error(c, c->origin, err);
    }
    free(library);
    return NULL;
}

static void
last_unref(inf_model_t *draft)
{
    inf_model_unload(draft, NULL, NULL);
}

/* Checks an ensemble, after all models are known. */
static void
check_ensemble(checker_t *c, const inf_scan_model_t *m)
{
    const inf_model_id_t id = { .space = m->space, .name = m->name };
    const inf_model_config_t *config = NULL;
    inf_findings_t f;

    inf_findings_init(&f);
    inf_err_t *err = inf_ensemble_check_find(c->ensembles, &id, &f, &config);
    if (err != NULL) {
        report_error(c, m->dir, err);
    } else if (inf_findings_total(&f) > 0) {
        inf_model_config_place(config, c->storages[m->repository], &f);
        report_findings(c, config->origin, &f);
    }
    inf_findings_fini(&f);
}

static void
report_findings(checker_t *c, const char *origin, const inf_findings_t *f)
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
report_problem(void *userp, inf_err_t *err)
{
    checker_t *c = userp;
    report_error(c, c->origin, err);
}

/* Reports err, which is taken. */
static void
report_error(checker_t *c, const char *origin, inf_err_t *err)
{
    if (origin != NULL) {
        err = inf_err_add(err, "%s", origin);
    }
    c->names.fn(c->names.userp, INF_LOG_ERROR, inf_err_msg(err));
    inf_err_free(err);
}
